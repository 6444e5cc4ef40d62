// SPDX-License-Identifier: Apache-2.0
/* When the publisher writes, what, and what it makes of refusals. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "test/unit/helper_alloc.h"
#include "test/unit/helper_publisher.h"
#include "test/unit/unit.h"

static void all_first_values_go_in_one_patch_with_who_wrote_them(void **state)
{
	struct bench *b = *state;
	struct annotation_value v;
	struct annotation_agent agent;
	char machine[17];

	bench_work(b, "a", 50, 40 * MIB);
	bench_work(b, "b", 200, 100 * MIB);
	fake_node_set(&b->node, "other.io/x", "theirs");
	bench_begin(b);
	assert_int_equal(b->node.reads, 1);
	assert_int_equal(b->node.taken, 1);
	assert_int_equal(b->identified, 1);
	assert_int_equal(b->published, 2);
	bench_read_value(b, A, &v);
	assert_in_range(v.target.cpu_millicores, 50, 75);
	assert_in_range(v.target.memory_bytes, 40 * MIB, 60 * MIB);
	assert_true(v.target.memory_bytes % MIB == 0);
	assert_true(v.lower.cpu_millicores <= v.target.cpu_millicores);
	assert_int_equal(v.reason, ANNOTATION_REASON_FIRST);
	assert_string_equal(v.revision, "6d9c7b5f4");
	assert_int_equal(annotation_agent_read(
				 str_of(fake_node_get(&b->node, ANNOTATION_AGENT)), &agent, NULL),
		0);
	annotation_machine_hash(machine, STR("machine-1"));
	assert_string_equal(agent.node_uid, "uid-1");
	assert_string_equal(agent.machine, machine);
	assert_string_equal(agent.version, "1.2.3");
	assert_string_equal(agent.state, "ok");
	assert_string_equal(fake_node_get(&b->node, "other.io/x"), "theirs");
	assert_null(strstr(b->node.last_patch, "other.io"));
	/* A quiet day: one look an hour, no write. */
	bench_pass(b, 24 * HOUR);
	assert_int_equal(b->node.taken, 1);
	assert_in_range(b->node.reads, 20, 28);
}

static void nothing_is_written_before_the_node_was_seen(void **state)
{
	struct bench *b = *state;
	const char *text;

	bench_work(b, "a", 50, 40 * MIB);
	b->node.status = 503;
	bench_begin(b);
	assert_int_equal(b->node.patches, 0);
	assert_int_equal(publisher_health(b->p, &text), HEALTH_NOTE);
	b->node.status = 0;
	bench_pass(b, 5 * MINUTE);
	assert_int_equal(b->node.taken, 1);
	assert_int_equal(publisher_health(b->p, &text), HEALTH_OK);
	assert_string_equal(text, "");
}

static void an_oom_goes_out_at_the_next_turn(void **state)
{
	struct bench *b = *state;
	struct workload *w = bench_work(b, "a", 50, 40 * MIB);
	struct annotation_value before, v;

	bench_begin(b);
	bench_read_value(b, A, &before);
	assert_int_equal(usage_record_oom(&w->usage, w->knobs, bench_now_ns(b), 80 * MIB), 0);
	publish_item_urgent(&w->publish, PUBLISH_OOM);
	publisher_poke(b->p);
	assert_true(b->p->wake_usec <= b->clock.mono_usec);
	bench_pass(b, 0);
	bench_pass(b, 2000);
	bench_read_value(b, A, &v);
	assert_int_equal(v.reason, ANNOTATION_REASON_OOM);
	assert_int_equal(v.oom_kills, 1);
	assert_true(v.target.memory_bytes > before.target.memory_bytes);
	assert_true(v.lower.memory_bytes > 80 * MIB);
	assert_int_equal(b->node.taken, 2);
	assert_int_equal(b->published, 2);
}

static void oom_kills_that_teach_nothing_cost_no_write(void **state)
{
	struct bench *b = *state;
	struct workload *w = bench_work(b, "a", 50, 40 * MIB);

	bench_begin(b);
	for (int i = 0; i < 100; i++) {
		usage_count_oom(&w->usage, bench_now_ns(b));
		publish_item_urgent(&w->publish, PUBLISH_OOM);
		publisher_poke(b->p);
		bench_pass(b, MINUTE);
	}
	assert_int_equal(b->node.taken, 1);
}

static void ooms_without_end_stay_within_the_bucket(void **state)
{
	struct bench *b = *state;
	struct workload *w = bench_work(b, "a", 50, 40 * MIB);

	bench_begin(b);
	for (int i = 0; i < 120; i++) {
		(void)usage_record_oom(&w->usage, w->knobs, bench_now_ns(b), (100 + 50 * i) * MIB);
		publish_item_urgent(&w->publish, PUBLISH_OOM);
		publisher_poke(b->p);
		bench_pass(b, 30 * USEC_PER_SEC);
	}
	/* An hour: the first, six tokens, six refills, four ordinary turns and a bit. */
	assert_in_range(b->node.taken, 6, 19);
}

static void after_an_outage_the_newest_state_goes_once(void **state)
{
	struct bench *b = *state;
	struct workload *w = bench_work(b, "a", 50, 40 * MIB),
			*x = bench_work(b, "b", 50, 40 * MIB);
	struct annotation_value v;
	unsigned int tries;
	const char *text;

	bench_begin(b);
	b->node.error = -ECONNREFUSED;
	tries = b->node.patches + b->node.reads;
	for (int i = 1; i <= 50; i++) {
		bench_use(b, w, 50 + 40 * i, (40 + i) * MIB);
		(void)usage_record_oom(&x->usage, x->knobs, bench_now_ns(b), (40 + 10 * i) * MIB);
		publish_item_urgent(&x->publish, PUBLISH_OOM);
		publisher_poke(b->p);
		bench_pass(b, 6 * MINUTE);
	}
	/* Five hours: about one try in half a minute to a minute. */
	assert_in_range(b->node.patches + b->node.reads - tries, 250, 650);
	assert_int_equal(publisher_trouble(b->p), PUBLISHER_UNREACHABLE);
	assert_int_equal(publisher_health(b->p, &text), HEALTH_NOTE);
	assert_true(strlen(text) > 0);
	b->node.error = 0;
	bench_pass(b, 5 * MINUTE);
	assert_int_equal(b->node.taken, 2);
	bench_read_value(b, A, &v);
	assert_true(v.target.cpu_millicores > 1000);
	bench_read_value(b, B, &v);
	assert_int_equal(v.reason, ANNOTATION_REASON_OOM);
	assert_int_equal(v.oom_kills, 50);
	assert_int_equal(publisher_trouble(b->p), PUBLISHER_OK);
}

/* The server takes each patch and says nothing, but answers when it is asked. */
static void a_patch_whose_answer_was_lost_is_looked_for_and_not_sent_again(void **state)
{
	static const int errors[] = {-ETIMEDOUT, -ECONNRESET, -EPROTO};
	struct bench *b = *state;
	struct workload *w = bench_work(b, "a", 50, 40 * MIB);
	struct annotation_value v;

	bench_begin(b);
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		unsigned int taken = b->node.taken, published = b->published;

		b->node.lost = errors[i];
		bench_use(b, w, 400 * (double)(i + 2), 400 * (int64_t)(i + 2) * MIB);
		publisher_poke(b->p);
		while (b->node.taken == taken)
			bench_pass(b, USEC_PER_SEC / 10);
		assert_true(w->publish.in_flight);
		assert_int_equal(b->published, published);
		assert_true(publisher_trouble(b->p) != PUBLISHER_OK);
		bench_pass(b, 8 * USEC_PER_SEC);
		assert_int_equal(b->node.taken, taken + 1);
		assert_int_equal(b->published, published + 1);
		assert_false(w->publish.in_flight);
		assert_false(w->publish.lost);
		bench_read_value(b, A, &v);
		assert_true(v.at_ns / NSEC_PER_SEC == w->publish.at / NSEC_PER_SEC);
		assert_int_equal(publisher_trouble(b->p), PUBLISHER_OK);
	}
	assert_int_equal(publisher_stats(b->p)->lost, 0);
}

/* Killed for want of memory again and again, before a server that takes every patch and answers
 * none. */
static void answers_that_are_always_lost_do_not_cost_more_than_the_budget(void **state)
{
	struct bench *b = *state;
	struct workload *w = bench_work(b, "a", 50, 40 * MIB);
	unsigned int taken;

	bench_begin(b);
	taken = b->node.taken;
	for (int i = 1; i <= 240; i++) {
		(void)usage_record_oom(&w->usage, w->knobs, bench_now_ns(b), (40 + 10 * i) * MIB);
		publish_item_urgent(&w->publish, PUBLISH_OOM);
		publisher_poke(b->p);
		b->node.lost = -ETIMEDOUT;
		bench_pass(b, MINUTE);
	}
	/* Four hours: an ordinary patch each quarter of an hour, six tokens and one each ten
	 * minutes. */
	assert_in_range(b->node.taken - taken, 16, 18 + 6 + 24);
}

/* What the server did not take is sent again, with waits that grow. */
static void a_patch_that_was_not_taken_is_sent_again(void **state)
{
	struct bench *b = *state;
	struct workload *w = bench_work(b, "a", 50, 40 * MIB);
	unsigned int patches;

	bench_begin(b);
	patches = b->node.patches;
	bench_use(b, w, 800, 800 * MIB);
	b->node.broken_patches = true;
	bench_pass(b, HOUR);
	/* 1, 2, 4 … 120 s; each after a look that was answered. */
	assert_in_range(b->node.patches - patches, 30, 70);
	assert_int_equal(publisher_trouble(b->p), PUBLISHER_SERVER);
	b->node.broken_patches = false;
	bench_pass(b, 5 * MINUTE);
	assert_int_equal(publisher_trouble(b->p), PUBLISHER_OK);
	assert_false(w->publish.in_flight);
	assert_int_equal(w->publish.reason, PUBLISH_USAGE);
}

static void every_refusal_has_its_name_and_no_storm(void **state)
{
	static const struct {
		unsigned int status;
		int error;
		enum publisher_outcome outcome;
		enum health health;
	} cases[] = {
		{401, 0, PUBLISHER_UNAUTHORIZED, HEALTH_NOT_READY},
		{403, 0, PUBLISHER_FORBIDDEN, HEALTH_NOT_READY},
		{404, 0, PUBLISHER_NOT_FOUND, HEALTH_NOT_READY},
		{409, 0, PUBLISHER_CONFLICT, HEALTH_NOTE},
		{413, 0, PUBLISHER_TOO_LARGE, HEALTH_NOTE},
		{422, 0, PUBLISHER_INVALID, HEALTH_NOTE},
		{429, 0, PUBLISHER_THROTTLED, HEALTH_NOTE},
		{500, 0, PUBLISHER_SERVER, HEALTH_NOTE},
		{504, 0, PUBLISHER_SERVER, HEALTH_NOTE},
		{302, 0, PUBLISHER_REFUSED, HEALTH_NOTE},
		{0, -ETIMEDOUT, PUBLISHER_TIMEOUT, HEALTH_NOTE},
		{0, -ECONNRESET, PUBLISHER_UNREACHABLE, HEALTH_NOTE},
		{0, -EKEYREJECTED, PUBLISHER_TLS, HEALTH_NOT_READY},
		{0, -EPROTO, PUBLISHER_PROTOCOL, HEALTH_NOTE},
		{0, -ENOMEM, PUBLISHER_LOCAL, HEALTH_NOTE},
	};
	struct bench *b = *state;
	struct workload *w = bench_work(b, "a", 50, 40 * MIB);

	bench_begin(b);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int tries, taken = b->node.taken;
		const char *text;

		bench_pass(b, HOUR);
		taken = b->node.taken;
		b->node.status = cases[i].status;
		b->node.error = cases[i].error;
		tries = b->node.patches + b->node.reads;
		(void)usage_record_oom(&w->usage, w->knobs, bench_now_ns(b), (100 << i) * MIB);
		publish_item_urgent(&w->publish, PUBLISH_OOM);
		publisher_poke(b->p);
		bench_pass(b, 10 * USEC_PER_SEC);
		assert_int_equal(publisher_trouble(b->p), cases[i].outcome);
		assert_int_equal(publisher_health(b->p, &text), cases[i].health);
		assert_true(b->p->stats.patches[cases[i].outcome] > 0);
		bench_pass(b, HOUR);
		assert_in_range(b->node.patches + b->node.reads - tries, 4, 130);
		b->node.status = 0;
		b->node.error = 0;
		bench_pass(b, 15 * MINUTE);
		assert_int_equal(publisher_trouble(b->p), PUBLISHER_OK);
		/* A value that was refused for itself alone waits for the next start. */
		if (cases[i].outcome == PUBLISHER_INVALID) {
			assert_true(w->publish.refused);
			w->publish.refused = false;
			bench_pass(b, HOUR);
		}
		assert_true(b->node.taken > taken);
	}
}

static void a_server_that_asks_to_wait_is_left_alone(void **state)
{
	struct bench *b = *state;

	bench_work(b, "a", 50, 40 * MIB);
	b->node.status = 429;
	b->node.retry_after_usec = 10 * MINUTE;
	assert_int_equal(bench_create(b, NULL), 0);
	bench_pass(b, 9 * MINUTE);
	assert_int_equal(b->node.reads, 1);
	bench_pass(b, 4 * MINUTE);
	assert_int_equal(b->node.reads, 2);
}

static void one_key_that_is_refused_spoils_no_other(void **state)
{
	struct bench *b = *state;
	char name[16], key[64];
	const char *text;

	for (int i = 0; i < 30; i++) {
		snprintf(name, sizeof name, "d%d", i);
		bench_work(b, name, 50, 40 * MIB);
	}
	b->node.poison = "d17.logging.pernode.io/main";
	bench_begin(b);
	bench_pass(b, 3 * HOUR);
	for (int i = 0; i < 30; i++) {
		snprintf(key, sizeof key, "d%d.logging.pernode.io/main", i);
		assert_true((fake_node_get(&b->node, key) != NULL) == (i != 17));
	}
	assert_int_equal(publisher_stats(b->p)->refused, 1);
	assert_in_range(publisher_stats(b->p)->patches[PUBLISHER_INVALID], 1, 12);
	assert_int_equal(publisher_health(b->p, &text), HEALTH_NOTE);
	assert_non_null(strstr(text, "logging/d17/main"));
	bench_pass(b, 24 * HOUR);
	assert_in_range(publisher_stats(b->p)->patches[PUBLISHER_INVALID], 1, 12);
}

static void where_room_is_short_the_most_valuable_go_first(void **state)
{
	struct bench *b = *state;
	char name[16], key[64];
	const char *text;
	unsigned int there = 0;

	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof name, "d%d", i);
		bench_work(b, name, 50, (20 + 5 * i) * MIB);
	}
	b->node.limit = 8000;
	bench_begin(b);
	bench_pass(b, 2 * HOUR);
	for (int i = 0; i < 40; i++) {
		snprintf(key, sizeof key, "d%d.logging.pernode.io/main", i);
		there += fake_node_get(&b->node, key) != NULL;
		/* Whoever is there, all that need more are too. */
		assert_true(there == 0 || fake_node_get(&b->node, key));
	}
	assert_in_range(there, 8, 30);
	assert_int_equal(publisher_stats(b->p)->left_out, 40 - there);
	assert_int_equal(publisher_health(b->p, &text), HEALTH_NOTE);
	assert_non_null(strstr(text, "no room"));
	/* Room comes back. */
	b->node.limit = 0;
	bench_pass(b, 24 * HOUR);
	assert_int_equal(publisher_stats(b->p)->left_out, 0);
	assert_non_null(fake_node_get(&b->node, "d0.logging.pernode.io/main"));
	assert_int_equal(publisher_health(b->p, &text), HEALTH_OK);
}

/* The Node tells how much others have there: nobody has to be refused to learn it. */
static void what_others_have_on_the_node_is_left_to_them(void **state)
{
	struct bench *b = *state;
	char name[32], value[2001];
	size_t left_out;

	memset(value, 'x', sizeof value - 1);
	value[sizeof value - 1] = '\0';
	for (int i = 0; i < 125; i++) {
		snprintf(name, sizeof name, "example.org/other-%d", i);
		fake_node_set(&b->node, name, value);
	}
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof name, "d%d", i);
		bench_work(b, name, 50, (20 + 5 * i) * MIB);
	}
	b->node.limit = 262144;
	bench_begin(b);
	left_out = publisher_stats(b->p)->left_out;
	assert_in_range(left_out, 10, 30);
	assert_int_equal(publisher_stats(b->p)->patches[PUBLISHER_TOO_LARGE], 0);
	/* They go, and leave their room. */
	for (int i = 0; i < 125; i++) {
		snprintf(name, sizeof name, "example.org/other-%d", i);
		fake_node_set(&b->node, name, NULL);
	}
	bench_pass(b, 3 * HOUR);
	assert_int_equal(publisher_stats(b->p)->left_out, 0);
	assert_int_equal(publisher_stats(b->p)->patches[PUBLISHER_TOO_LARGE], 0);
}

static void ending_it_ends_the_request(void **state)
{
	struct bench *b = *state;
	struct workload *w = bench_work(b, "a", 50, 40 * MIB);

	assert_int_equal(bench_create(b, NULL), 0);
	publisher_turn(b->p);
	assert_true(b->node.busy);
	publisher_destroy(b->p);
	b->p = NULL;
	assert_true(b->node.cancelled);
	assert_false(w->publish.in_flight);
}

static void a_state_that_is_not_ok_is_told(void **state)
{
	struct bench *b = *state;
	struct annotation_agent a;

	bench_begin(b);
	assert_int_equal(b->node.taken, 1); /* who is here, though nothing is to be said */
	publisher_set_state(b->p, "unsupported", "cgroup v1");
	bench_pass(b, 20 * MINUTE);
	assert_int_equal(
		annotation_agent_read(str_of(fake_node_get(&b->node, ANNOTATION_AGENT)), &a, NULL),
		0);
	assert_string_equal(a.state, "unsupported");
	assert_string_equal(a.reason, "cgroup v1");
	assert_int_equal(b->node.taken, 2);
}

static void a_dry_run_writes_the_patches_as_lines(void **state)
{
	struct bench *b = *state;
	struct workload *w = bench_work(b, "a", 50, 40 * MIB);
	char path[] = "/tmp/pernode-publish-XXXXXX";
	_cleanup_close_ int fd = mkstemp(path);
	_cleanup_buf_ struct buf content = BUF_INIT(65536);
	struct err e = {0};

	assert_true(fd >= 0);
	assert_int_equal(bench_create(b, path), 0);
	publisher_synced(b->p);
	bench_pass(b, 5 * MINUTE);
	(void)usage_record_oom(&w->usage, w->knobs, bench_now_ns(b), 100 * MIB);
	publish_item_urgent(&w->publish, PUBLISH_OOM);
	publisher_poke(b->p);
	bench_pass(b, MINUTE);
	assert_int_equal(b->node.reads + b->node.patches, 0);
	assert_int_equal(file_read(AT_FDCWD, path, &content, &e), 0);
	struct str rest = buf_str(&content), line = str_cut(&rest, '\n');
	assert_true(str_starts(line, STR("{\"metadata\":{\"annotations\":{\"pernode.io/agent\":")));
	assert_true(str_ends(line, STR("}}}")));
	line = str_cut(&rest, '\n');
	assert_true(str_starts(line, STR("{\"metadata\":{\"annotations\":{\"" A "\":")));
	assert_int_equal(rest.n, 0);
	assert_int_equal(unlink(path), 0);
}

static void a_dry_run_that_cannot_write_says_so_and_tries_again(void **state)
{
	struct bench *b = *state;
	const char *text;

	bench_work(b, "a", 50, 40 * MIB);
	assert_int_equal(bench_create(b, "/nowhere/at/all"), 0);
	publisher_synced(b->p);
	bench_pass(b, 5 * MINUTE);
	assert_int_equal(publisher_trouble(b->p), PUBLISHER_LOCAL);
	assert_int_equal(publisher_health(b->p, &text), HEALTH_NOTE);
	assert_non_null(strstr(text, "/nowhere/at/all"));
	assert_in_range(publisher_stats(b->p)->patches[PUBLISHER_LOCAL], 3, 20);
	assert_int_equal(b->published, 0);
}

static void memory_that_is_short_costs_a_wait(void **state)
{
	struct bench *b = *state;

	bench_work(b, "a", 50, 40 * MIB);
	bench_begin(b);
	for (long nth = 0; nth < 40; nth++) {
		publisher_destroy(b->p);
		b->p = NULL;
		alloc_fail_only(nth);
		if (bench_create(b, NULL) == 0) {
			publisher_synced(b->p);
			/* The fake's own memory must hold: only turns, then answers. */
			publisher_turn(b->p);
		}
		(void)alloc_fail_never();
		if (b->p)
			bench_pass(b, 10 * MINUTE);
		if (b->p)
			assert_int_equal(publisher_trouble(b->p), PUBLISHER_OK);
	}
	assert_non_null(b->p);
}

static void it_needs_a_name_and_a_place(void **state)
{
	struct bench *b = *state;
	struct publisher_options o = {.node_name = ""};
	struct err e = {0};

	assert_int_equal(publisher_create(&b->p, &b->loop, NULL, &b->workloads, &o, &e), -EINVAL);
	assert_non_null(strstr(e.text, "--node-name"));
	o.node_name = "n";
	assert_int_equal(publisher_create(&b->p, &b->loop, NULL, &b->workloads, &o, &e), -EINVAL);
	assert_null(b->p);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, publisher_setup, publisher_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_first_values_go_in_one_patch_with_who_wrote_them),
		TEST(nothing_is_written_before_the_node_was_seen),
		TEST(an_oom_goes_out_at_the_next_turn),
		TEST(oom_kills_that_teach_nothing_cost_no_write),
		TEST(ooms_without_end_stay_within_the_bucket),
		TEST(after_an_outage_the_newest_state_goes_once),
		TEST(a_patch_whose_answer_was_lost_is_looked_for_and_not_sent_again),
		TEST(answers_that_are_always_lost_do_not_cost_more_than_the_budget),
		TEST(a_patch_that_was_not_taken_is_sent_again),
		TEST(every_refusal_has_its_name_and_no_storm),
		TEST(a_server_that_asks_to_wait_is_left_alone),
		TEST(one_key_that_is_refused_spoils_no_other),
		TEST(where_room_is_short_the_most_valuable_go_first),
		TEST(what_others_have_on_the_node_is_left_to_them),
		TEST(ending_it_ends_the_request),
		TEST(a_state_that_is_not_ok_is_told),
		TEST(a_dry_run_writes_the_patches_as_lines),
		TEST(a_dry_run_that_cannot_write_says_so_and_tries_again),
		TEST(memory_that_is_short_costs_a_wait),
		TEST(it_needs_a_name_and_a_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
