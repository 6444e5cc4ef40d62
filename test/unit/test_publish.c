// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/macros.h"
#include "rules/publish.h"
#include "test/unit/unit.h"

#define MIB INT64_C(1048576)
#define HOUR USEC_PER_HOUR
#define MINUTE USEC_PER_MINUTE

/* xorshift64*: the same run every time. */
static uint64_t chance(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

/* -1: unknown. */
static struct amounts pair(int64_t cpu, int64_t memory)
{
	return (struct amounts){
		.value = {cpu < 0 ? 0 : cpu, memory < 0 ? 0 : memory},
		.known = {cpu >= 0, memory >= 0},
	};
}

static struct recommendation values(int64_t cpu, int64_t memory)
{
	return (struct recommendation){.amounts = {
					       [BOUND_TARGET] = pair(cpu, memory),
					       [BOUND_LOWER] = pair(cpu / 2, memory / 2),
					       [BOUND_UPPER] = pair(cpu * 2, memory * 2),
				       }};
}

static struct publish_facts facts(struct recommendation r)
{
	return (struct publish_facts){.today = r, .request = pair(-1, -1), .ready = true};
}

static struct publish_item published(struct recommendation r)
{
	struct publish_item i;

	publish_item_init(&i);
	i.published = r;
	i.at = 0;
	i.hash = 1;
	return i;
}

static void a_target_is_due_at_ten_per_cent_and_rides_at_five(void **state)
{
	static const struct {
		int64_t cpu, memory;
		enum publish_need need;
	} cases[] = {
		{1000, 1000000, PUBLISH_NOT},
		{1049, 1000000, PUBLISH_NOT},
		{1050, 1000000, PUBLISH_RIDES},
		{1099, 1000000, PUBLISH_RIDES},
		{1100, 1000000, PUBLISH_DUE},
		{951, 1000000, PUBLISH_NOT},
		{950, 1000000, PUBLISH_RIDES},
		{900, 1000000, PUBLISH_DUE},
		{1000, 1100000, PUBLISH_DUE},
		{1000, 900000, PUBLISH_DUE},
		{1000, 1099999, PUBLISH_RIDES},
		{1000, 0, PUBLISH_DUE},
		{0, 1000000, PUBLISH_DUE},
		{AMOUNT_MAX, AMOUNT_MAX, PUBLISH_DUE},
	};
	struct publish_item i = published(values(1000, 1000000));

	for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
		struct recommendation r = values(1000, 1000000);
		struct publish_facts f;

		r.amounts[BOUND_TARGET] = pair(cases[c].cpu, cases[c].memory);
		f = facts(r);
		assert_int_equal(publish_judge(&i, &f, 0, NULL), cases[c].need);
	}
}

static void zero_equals_zero(void **state)
{
	struct publish_item i = published(values(0, 0));
	struct publish_facts f = facts(values(0, 0));

	assert_int_equal(publish_judge(&i, &f, 0, NULL), PUBLISH_NOT);
}

static void a_bound_alone_rides_but_is_never_due_without_a_request(void **state)
{
	struct publish_item i = published(values(1000, 1000000));
	struct publish_facts f = facts(values(1000, 1000000));

	f.today.amounts[BOUND_LOWER] = pair(100, 1);
	assert_int_equal(publish_judge(&i, &f, 0, NULL), PUBLISH_RIDES);
	f = facts(values(1000, 1000000));
	f.today.amounts[BOUND_UPPER].known[RESOURCE_CPU] = false;
	assert_int_equal(publish_judge(&i, &f, 0, NULL), PUBLISH_RIDES);
}

static void a_resource_that_becomes_known_is_due(void **state)
{
	struct publish_item i = published(values(1000, 1000000));
	struct publish_facts f = facts(values(1000, 1000000));

	i.published.amounts[BOUND_TARGET].known[RESOURCE_MEMORY] = false;
	assert_int_equal(publish_judge(&i, &f, 0, NULL), PUBLISH_DUE);
}

static void a_request_that_changes_sides_is_due(void **state)
{
	/* published: lower 500, upper 2000 */
	static const struct {
		int64_t request, lower, upper;
		enum publish_need need;
	} cases[] = {
		{600, 500, 2000, PUBLISH_NOT},
		{600, 601, 2000, PUBLISH_DUE},  /* was inside, is below */
		{400, 510, 2000, PUBLISH_NOT},  /* below before and now */
		{400, 390, 2000, PUBLISH_DUE},  /* was below, is inside */
		{2000, 500, 1999, PUBLISH_DUE}, /* was inside, is above */
		{2001, 500, 2001, PUBLISH_DUE}, /* was above, is inside */
		{2001, 500, -1, PUBLISH_DUE},   /* the bound is gone */
		{-1, 700, 1500, PUBLISH_RIDES}, /* no request, no side */
	};
	struct publish_item i = published(values(1000, 1000000));

	for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
		struct publish_facts f = facts(values(1000, 1000000));

		f.today.amounts[BOUND_LOWER] = pair(cases[c].lower, 500000);
		f.today.amounts[BOUND_UPPER] = pair(cases[c].upper, 2000000);
		f.request = pair(cases[c].request, -1);
		assert_int_equal(publish_judge(&i, &f, 0, NULL), cases[c].need);
	}
}

static void a_request_that_trembles_at_the_edge_goes_at_the_slow_pace(void **state)
{
	struct publish_item i = published(values(1000, 1000000));
	struct publish_facts f = facts(values(1000, 1000000));
	int64_t t = 1000 * INSTANT_HOUR;

	f.request = pair(500, -1);
	f.today.amounts[BOUND_LOWER] = pair(505, 500000);
	assert_int_equal(publish_judge(&i, &f, t, NULL), PUBLISH_DUE);
	publish_item_sent(&i, &f, PUBLISH_USAGE, 7, t);
	publish_item_done(&i, t);
	f.today.amounts[BOUND_LOWER] = pair(500, 500000);
	assert_int_equal(publish_judge(&i, &f, t + INSTANT_MINUTE, NULL), PUBLISH_SLOW);
	assert_int_equal(publish_judge(&i, &f, t + PUBLISH_TREMBLES_NS - 1, NULL), PUBLISH_SLOW);
	assert_int_equal(publish_judge(&i, &f, t + PUBLISH_TREMBLES_NS, NULL), PUBLISH_DUE);
	/* The clock was set back: the rest does not last for years. */
	assert_int_equal(publish_judge(&i, &f, t - INSTANT_DAY, NULL), PUBLISH_DUE);
	/* A target that moves is not held back by it. */
	f.today.amounts[BOUND_TARGET] = pair(1100, 1000000);
	assert_int_equal(publish_judge(&i, &f, t + INSTANT_MINUTE, NULL), PUBLISH_DUE);
}

static void a_first_value_waits_until_there_is_something_to_tell(void **state)
{
	struct publish_item i;
	struct publish_facts f = facts(values(1000, 1000000));
	enum publish_reason reason;

	publish_item_init(&i);
	f.ready = false;
	assert_int_equal(publish_judge(&i, &f, 0, NULL), PUBLISH_NOT);
	f.ready = true;
	assert_int_equal(publish_judge(&i, &f, 0, &reason), PUBLISH_NEW);
	assert_int_equal(reason, PUBLISH_FIRST);
	publish_item_urgent(&i, PUBLISH_OOM);
	assert_int_equal(publish_judge(&i, &f, 0, &reason), PUBLISH_NOW);
	assert_int_equal(reason, PUBLISH_OOM);
}

static void an_oom_goes_at_once_if_it_says_more(void **state)
{
	struct publish_item i = published(values(1000, 1000000));
	struct publish_facts f = facts(values(1000, 1000000));
	enum publish_reason reason;

	f.oom_kills = 1;
	publish_item_urgent(&i, PUBLISH_OOM);
	assert_int_equal(publish_judge(&i, &f, 0, NULL), PUBLISH_RIDES);
	f.today.amounts[BOUND_LOWER].value[RESOURCE_MEMORY] += 1;
	assert_int_equal(publish_judge(&i, &f, 0, &reason), PUBLISH_NOW);
	assert_int_equal(reason, PUBLISH_OOM);
}

static void a_kill_is_not_hidden_by_a_warning(void **state)
{
	struct publish_item i;

	publish_item_init(&i);
	publish_item_urgent(&i, PUBLISH_AHEAD_OF_OOM);
	publish_item_urgent(&i, PUBLISH_OOM);
	publish_item_urgent(&i, PUBLISH_AHEAD_OF_OOM);
	assert_int_equal(i.urgent_reason, PUBLISH_OOM);
}

static void what_was_urgent_is_so_again_after_a_failure(void **state)
{
	struct publish_item i = published(values(1000, 1000000));
	struct publish_facts f = facts(values(1000, 2000000));

	publish_item_urgent(&i, PUBLISH_OOM);
	publish_item_sent(&i, &f, PUBLISH_OOM, 9, 0);
	assert_int_equal(publish_judge(&i, &f, 0, NULL), PUBLISH_NOT);
	publish_item_failed(&i);
	assert_int_equal(publish_judge(&i, &f, 0, NULL), PUBLISH_NOW);
	/* and one that comes while a patch is under way outlives it */
	publish_item_sent(&i, &f, PUBLISH_OOM, 9, 0);
	publish_item_urgent(&i, PUBLISH_OOM);
	publish_item_done(&i, 5);
	assert_true(i.urgent);
	f = facts(values(1000, 3000000));
	assert_int_equal(publish_judge(&i, &f, 0, NULL), PUBLISH_NOW);
}

static void the_reason_is_throttling_when_that_made_cpu_grow(void **state)
{
	struct publish_item i = published(values(1000, 1000000));
	struct publish_facts f = facts(values(1200, 1000000));
	enum publish_reason reason;

	assert_int_equal(publish_judge(&i, &f, 0, &reason), PUBLISH_DUE);
	assert_int_equal(reason, PUBLISH_USAGE);
	f.throttled_minutes = 3;
	assert_int_equal(publish_judge(&i, &f, 0, &reason), PUBLISH_DUE);
	assert_int_equal(reason, PUBLISH_THROTTLED);
	f.today = values(800, 1000000);
	assert_int_equal(publish_judge(&i, &f, 0, &reason), PUBLISH_DUE);
	assert_int_equal(reason, PUBLISH_USAGE);
}

static void what_the_node_lost_is_written_again_and_then_at_the_slow_pace(void **state)
{
	struct publish_item i = published(values(1000, 1000000));
	struct publish_facts f = facts(values(1000, 1000000));
	int64_t t = 1000 * INSTANT_HOUR;

	publish_item_lost(&i);
	assert_int_equal(publish_judge(&i, &f, t, NULL), PUBLISH_DUE);
	publish_item_sent(&i, &f, PUBLISH_USAGE, 7, t);
	publish_item_done(&i, t);
	assert_int_equal(publish_judge(&i, &f, t, NULL), PUBLISH_NOT);
	publish_item_lost(&i);
	assert_int_equal(publish_judge(&i, &f, t + INSTANT_MINUTE, NULL), PUBLISH_SLOW);
	assert_int_equal(publish_judge(&i, &f, t + PUBLISH_TREMBLES_NS, NULL), PUBLISH_DUE);
}

static void a_key_whose_daemonset_is_gone_is_taken_away_and_may_come_back(void **state)
{
	struct publish_item i = published(values(1000, 1000000));
	struct publish_facts f = facts(values(1000, 1000000));

	f.gone = true;
	assert_int_equal(publish_judge(&i, &f, 0, NULL), PUBLISH_DUE);
	publish_item_sent(&i, &f, PUBLISH_USAGE, 0, 0);
	publish_item_done(&i, 0);
	assert_true(i.at == TIME_NONE);
	assert_int_equal(publish_judge(&i, &f, 0, NULL), PUBLISH_NOT);
	f.gone = false;
	assert_int_equal(publish_judge(&i, &f, 0, NULL), PUBLISH_NEW);
}

static void rounding_keeps_order_and_stays_within_a_32nd(void **state)
{
	uint64_t random = 42;
	int64_t previous = 0, rounded_previous = 0;

	assert_true(publish_round_amount(0) == 0);
	assert_true(publish_round_amount(63) == 63);
	assert_true(publish_round_amount(64) == 64);
	assert_true(publish_round_amount(65) == 66);
	assert_true(publish_round_amount(49566436) == 48 * MIB);
	assert_true(publish_round_amount(AMOUNT_MAX) == AMOUNT_MAX);
	for (int64_t v = 1; v < 100000; v++) {
		int64_t r = publish_round_amount(v);

		assert_true(r >= v && (r - v) * 32 < v);
		assert_true(r >= rounded_previous);
		assert_true(publish_round_amount(r) == r);
		rounded_previous = r;
	}
	for (int n = 0; n < 100000; n++) {
		int64_t v =
			(int64_t)(chance(&random) % (uint64_t)AMOUNT_MAX) >> chance(&random) % 40;
		int64_t r = publish_round_amount(v), p = publish_round_amount(previous);

		assert_true(r >= v && (v < 32 ? r == v : (r - v) < v / 32 + 1));
		assert_true(v >= previous ? r >= p : r <= p);
		previous = v;
	}
}

static bool same_saved(const struct publish_item *a, const struct publish_item *b)
{
	_cleanup_buf_ struct buf x = BUF_INIT(PUBLISH_SAVED_MAX), y = BUF_INIT(PUBLISH_SAVED_MAX);

	assert_int_equal(publish_item_save(a, &x), 0);
	assert_int_equal(publish_item_save(b, &y), 0);
	return str_eq(buf_str(&x), buf_str(&y));
}

static void what_is_saved_is_what_is_loaded(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(PUBLISH_SAVED_MAX);
	struct publish_item i = published(values(1000, 1000000)), loaded;
	struct err e = {0};

	i.at = 123456789;
	i.oom_kills = 3;
	i.samples = 400;
	i.throttled_minutes = 17;
	i.trembled_at = 55;
	i.reason = PUBLISH_AHEAD_OF_OOM;
	i.published.amounts[BOUND_UPPER].known[RESOURCE_CPU] = false;
	publish_item_urgent(&i, PUBLISH_OOM);
	assert_int_equal(publish_item_save(&i, &b), 0);
	assert_int_equal(publish_item_load(&loaded, buf_str(&b), &e), 0);
	assert_true(same_saved(&loaded, &i));
	assert_true(loaded.at == 123456789 && loaded.oom_kills == 3 && loaded.samples == 400);
	assert_true(loaded.throttled_minutes == 17 && loaded.trembled_at == 55 && loaded.urgent);
	assert_int_equal(loaded.reason, PUBLISH_AHEAD_OF_OOM);
	assert_false(loaded.published.amounts[BOUND_UPPER].known[RESOURCE_CPU]);

	/* Cut anywhere: refused, and as new. */
	for (size_t n = 0; n < b.n; n++) {
		struct err cut = {0};

		assert_int_equal(publish_item_load(&loaded, (struct str){b.p, n}, &cut), -EINVAL);
		assert_true(loaded.at == TIME_NONE && cut.text[0]);
	}
	/* Any byte changed: refused, or within limits. */
	for (size_t n = 0; n < b.n; n++) {
		b.p[n] = (char)~b.p[n];
		if (publish_item_load(&loaded, buf_str(&b), &e) == 0) {
			assert_true((unsigned int)loaded.reason < PUBLISH_REASONS);
			assert_true(loaded.published.amounts[BOUND_TARGET].value[0] >= 0);
		}
		b.p[n] = (char)~b.p[n];
	}
}

static void an_urgent_item_on_its_way_is_saved_as_urgent(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(PUBLISH_SAVED_MAX);
	struct publish_item i = published(values(1000, 1000000)), loaded;
	struct publish_facts f = facts(values(1000, 2000000));

	publish_item_urgent(&i, PUBLISH_AHEAD_OF_OOM);
	publish_item_sent(&i, &f, PUBLISH_AHEAD_OF_OOM, 9, 0);
	assert_int_equal(publish_item_save(&i, &b), 0);
	assert_int_equal(publish_item_load(&loaded, buf_str(&b), NULL), 0);
	assert_true(loaded.urgent && loaded.urgent_reason == PUBLISH_AHEAD_OF_OOM);
	assert_false(loaded.in_flight);
}

/* The node's budget. */

/* A node of containers whose values tremble around their place by up to ±percent, with requests
 * anywhere, also at the very edge of their bounds; what it writes in a day is counted. */
static uint64_t writes_of_a_day(uint64_t seed, int64_t percent)
{
	enum { ITEMS = 30 };
	struct publish_item item[ITEMS];
	int64_t base[ITEMS], request[ITEMS];
	struct publish_node n;
	uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15), writes = 0;

	publish_node_init(&n, NULL, 0);
	for (int i = 0; i < ITEMS; i++) {
		publish_item_init(&item[i]);
		base[i] = 20 + (int64_t)(chance(&random) % 500);
		request[i] = chance(&random) % 2 ? base[i] / 2 : base[i];
	}
	for (uint64_t t = 0; t < 24 * HOUR; t += MINUTE) {
		struct publish_facts f[ITEMS];
		enum publish_need need = PUBLISH_NOT, one[ITEMS];
		enum publish_reason reason[ITEMS];
		int64_t wall = (int64_t)t * 1000;

		for (int i = 0; i < ITEMS; i++) {
			int64_t m = 100 - percent +
				    (int64_t)(chance(&random) % (uint64_t)(2 * percent + 1));

			f[i] = facts(values(base[i] * m / 100, base[i] * m / 100 * MIB));
			f[i].request = pair(request[i], request[i] * MIB);
			publish_round(&f[i].today);
			one[i] = publish_judge(&item[i], &f[i], wall, &reason[i]);
			need = MAX(need, one[i]);
		}
		if (publish_node_wait(&n, t, need, true, chance(&random)) != 0)
			continue;
		publish_node_sent(&n, t, need);
		for (int i = 0; i < ITEMS; i++)
			if (one[i] != PUBLISH_NOT)
				publish_item_sent(&item[i], &f[i], reason[i], 1, wall);
		publish_node_done(&n, t, chance(&random));
		for (int i = 0; i < ITEMS; i++)
			publish_item_done(&item[i], wall);
		writes++;
	}
	return writes;
}

static void noise_around_a_steady_place_costs_at_most_a_write_per_hour(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		uint64_t writes = writes_of_a_day(seed, 3);
		assert_true(writes >= 1 && writes <= 24);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_target_is_due_at_ten_per_cent_and_rides_at_five),
		cmocka_unit_test(zero_equals_zero),
		cmocka_unit_test(a_bound_alone_rides_but_is_never_due_without_a_request),
		cmocka_unit_test(a_resource_that_becomes_known_is_due),
		cmocka_unit_test(a_request_that_changes_sides_is_due),
		cmocka_unit_test(a_request_that_trembles_at_the_edge_goes_at_the_slow_pace),
		cmocka_unit_test(a_first_value_waits_until_there_is_something_to_tell),
		cmocka_unit_test(an_oom_goes_at_once_if_it_says_more),
		cmocka_unit_test(a_kill_is_not_hidden_by_a_warning),
		cmocka_unit_test(what_was_urgent_is_so_again_after_a_failure),
		cmocka_unit_test(the_reason_is_throttling_when_that_made_cpu_grow),
		cmocka_unit_test(what_the_node_lost_is_written_again_and_then_at_the_slow_pace),
		cmocka_unit_test(a_key_whose_daemonset_is_gone_is_taken_away_and_may_come_back),
		cmocka_unit_test(rounding_keeps_order_and_stays_within_a_32nd),
		cmocka_unit_test(what_is_saved_is_what_is_loaded),
		cmocka_unit_test(an_urgent_item_on_its_way_is_saved_as_urgent),
		cmocka_unit_test(noise_around_a_steady_place_costs_at_most_a_write_per_hour),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
