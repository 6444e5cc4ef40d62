// SPDX-License-Identifier: Apache-2.0
/* What the publisher makes of what it finds on its Node. */
#include <stdio.h>

#include "test/unit/helper_publisher.h"
#include "test/unit/unit.h"

static void a_node_that_was_made_anew_gets_everything_again(void **state)
{
	struct bench *b = *state;

	bench_work(b, "a", 50, 40 * MIB);
	bench_begin(b);
	b->node.status = 404;
	bench_pass(b, 2 * HOUR);
	assert_int_equal(publisher_trouble(b->p), PUBLISHER_NOT_FOUND);
	while (b->node.n)
		fake_node_set(&b->node, b->node.key[0], NULL);
	snprintf(b->node.uid, sizeof b->node.uid, "uid-2");
	b->node.status = 0;
	bench_pass(b, 30 * MINUTE);
	assert_int_equal(b->identified, 2);
	assert_string_equal(publisher_node_uid(b->p), "uid-2");
	assert_non_null(fake_node_get(&b->node, A));
	assert_non_null(strstr(fake_node_get(&b->node, ANNOTATION_AGENT), "uid-2"));
}

static void what_was_lost_or_changed_is_written_again(void **state)
{
	struct bench *b = *state;
	struct annotation_value v;

	bench_work(b, "a", 50, 40 * MIB);
	bench_work(b, "b", 50, 40 * MIB);
	bench_work(b, "c", 50, 40 * MIB);
	bench_begin(b);
	fake_node_set(&b->node, A, NULL);
	fake_node_set(&b->node, B, "{\"target\":{\"cpu\":\"1000\"}}");
	fake_node_set(&b->node, ANNOTATION_AGENT, NULL);
	fake_node_set(&b->node, "other.io/x", "theirs");
	bench_pass(b, 2 * HOUR);
	assert_int_equal(b->node.taken, 2);
	bench_read_value(b, A, &v);
	bench_read_value(b, B, &v);
	assert_true(v.target.cpu_millicores < 100);
	assert_non_null(fake_node_get(&b->node, ANNOTATION_AGENT));
	assert_null(strstr(b->node.last_patch, C));
	assert_string_equal(fake_node_get(&b->node, "other.io/x"), "theirs");
	assert_int_equal(publisher_stats(b->p)->lost, 3);
}

static void who_undoes_us_for_ever_is_answered_slowly(void **state)
{
	struct bench *b = *state;
	unsigned int taken;

	bench_work(b, "a", 50, 40 * MIB);
	bench_begin(b);
	taken = b->node.taken;
	for (int i = 0; i < 24 * 60; i++) {
		fake_node_set(&b->node, A, NULL);
		fake_node_set(&b->node, ANNOTATION_AGENT, "mine");
		fake_node_set(&b->node, "x.y.pernode.io/z", "stray");
		bench_pass(b, MINUTE);
	}
	assert_in_range(b->node.taken - taken, 8, 24);
}

static void keys_of_what_left_and_of_nobody_are_removed(void **state)
{
	struct bench *b = *state;
	struct workload *w = bench_work(b, "a", 50, 40 * MIB);

	bench_work(b, "b", 50, 40 * MIB);
	fake_node_set(&b->node, "gone.kube-system.pernode.io/x", "{\"target\":{\"cpu\":\"1\"}}");
	fake_node_set(&b->node, "pernode.io/something", "of a later version");
	fake_node_set(&b->node, "notpernode.io/x", "theirs");
	bench_begin(b);
	assert_null(fake_node_get(&b->node, "gone.kube-system.pernode.io/x"));
	assert_string_equal(fake_node_get(&b->node, "pernode.io/something"), "of a later version");
	assert_string_equal(fake_node_get(&b->node, "notpernode.io/x"), "theirs");
	assert_int_equal(b->removed, 1);
	w->here = false;
	bench_pass(b, 23 * HOUR);
	assert_non_null(fake_node_get(&b->node, A));
	bench_pass(b, 2 * HOUR);
	assert_null(fake_node_get(&b->node, A));
	assert_non_null(fake_node_get(&b->node, B));
	assert_int_equal(b->removed, 2);
	/* It comes back with what it learned. */
	w->here = true;
	w->seen_at_ns = bench_now_ns(b);
	bench_pass(b, 5 * MINUTE);
	assert_non_null(fake_node_get(&b->node, A));
}

static void before_the_pods_are_known_nothing_is_known_to_be_gone(void **state)
{
	struct bench *b = *state;
	struct workload *w = bench_work(b, "a", 50, 40 * MIB);

	bench_begin(b);
	b->p->synced = false;
	w->here = false;
	bench_pass(b, 48 * HOUR);
	assert_non_null(fake_node_get(&b->node, A));
	publisher_synced(b->p);
	bench_pass(b, HOUR);
	assert_null(fake_node_get(&b->node, A));
}

static void write_old(struct bench *b, const char *key, const char *uid)
{
	_cleanup_buf_ struct buf value = BUF_INIT(4096), agent = BUF_INIT(4096);
	struct annotation_value v = {.target = {50, 40 * MIB},
		.lower = {40, 30 * MIB},
		.upper = {60, 50 * MIB},
		.samples = 1000,
		.since_ns = bench_now_ns(b) - 1000 * 60 * NSEC_PER_SEC,
		.at_ns = bench_now_ns(b) - 60 * NSEC_PER_SEC,
		.reason = ANNOTATION_REASON_USAGE,
		.coverage_cpu = -1,
		.coverage_memory = -1};
	struct annotation_agent a = {
		.version = "1.0", .started_at_ns = bench_now_ns(b), .state = "ok"};

	snprintf(a.node_uid, sizeof a.node_uid, "%s", uid);
	annotation_machine_hash(a.machine, str_of(b->node.machine_id));
	annotation_value_write(&value, &v);
	annotation_agent_write(&agent, &a);
	fake_node_set(&b->node, key, value.p);
	fake_node_set(&b->node, ANNOTATION_AGENT, agent.p);
}

static void values_of_this_node_are_taken_over(void **state)
{
	struct bench *b = *state;
	struct workload *w;

	b->adopting = true;
	write_old(b, A, "uid-1");
	bench_begin(b);
	assert_int_equal(b->found, 1);
	w = workloads_find(&b->workloads, STR("logging"), STR("a"), STR("main"));
	assert_non_null(w);
	assert_true(w->publish.published.amounts[BOUND_TARGET].value[RESOURCE_CPU] == 50);
	assert_int_equal(w->publish.samples, 1000);
	/* Only who writes now is new. */
	assert_int_equal(b->node.taken, 1);
	assert_null(strstr(b->node.last_patch, A));
	bench_pass(b, 20 * HOUR);
	assert_int_equal(b->found, 1);
	assert_non_null(fake_node_get(&b->node, A));
	assert_int_equal(b->node.taken, 1);
}

static void a_value_is_told_also_when_its_pod_was_there_first(void **state)
{
	struct bench *b = *state;
	struct workload *w;

	b->adopting = true;
	assert_int_equal(
		workloads_get(&b->workloads, STR("logging"), STR("a"), STR("main"), &w, NULL), 0);
	w->here = true;
	write_old(b, A, "uid-1");
	bench_begin(b);
	assert_int_equal(b->found, 1);
	assert_int_equal(w->publish.samples, 1000);
}

static void values_of_another_node_or_machine_are_not(void **state)
{
	struct bench *b = *state;

	b->adopting = true;
	write_old(b, A, "uid-0");
	write_old(b, B, "uid-0");
	bench_work(b, "b", 500, 400 * MIB);
	bench_begin(b);
	assert_int_equal(b->found, 0);
	assert_null(fake_node_get(&b->node, A));
	assert_non_null(strstr(fake_node_get(&b->node, B), "\"reason\":\"first\""));
}

static void a_value_newer_than_the_checkpoint_is_believed(void **state)
{
	struct bench *b = *state;
	struct workload *w = bench_work(b, "a", 40, 34 * MIB);

	write_old(b, A, "uid-1");
	w->publish.at = bench_now_ns(b) - 3600 * NSEC_PER_SEC;
	w->publish.hash = 5;
	w->publish.published.amounts[BOUND_TARGET] =
		(struct amounts){.value = {1, 1}, .known = {true, true}};
	bench_begin(b);
	assert_false(w->publish.lost);
	assert_int_equal(publisher_stats(b->p)->lost, 0);
}

static void hostile_nodes_cost_a_wait_and_nothing_else(void **state)
{
	static const char *const answers[] = {
		"",
		"<html>sign in</html>",
		"{",
		"[]",
		"null",
		"{}",
		"{\"kind\":\"Status\"}",
		"{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}",
		"{\"kind\":\"Node\",\"metadata\":{\"name\":\"another\",\"uid\":\"u\"}}",
		"{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"uid\":\"u\",\"annotations\":[]}",
		"{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"uid\":\"\\u0000\"}}",
		"{\"kind\":\"Node\",\"metadata\":{\"name\":5,\"uid\":{}}}",
	};
	struct bench *b = *state;

	bench_work(b, "a", 50, 40 * MIB);
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		b->node.raw = answers[i];
		assert_int_equal(bench_create(b, NULL), 0);
		bench_pass(b, 10 * MINUTE);
		assert_int_equal(publisher_trouble(b->p), PUBLISHER_PROTOCOL);
		assert_int_equal(b->node.patches, 0);
		assert_in_range(b->node.reads, 3, 20);
		b->node.reads = 0;
		publisher_destroy(b->p);
		b->p = NULL;
	}
}

static void hostile_values_under_our_keys_count_as_absent(void **state)
{
	struct bench *b = *state;
	_cleanup_free_ char *giant = malloc(200000);
	char key[64];

	b->adopting = true;
	memset(giant, 'x', 199999);
	giant[199999] = '\0';
	write_old(b, B, "uid-1");
	fake_node_set(&b->node, A, giant);
	fake_node_set(&b->node, "..pernode.io/x", "x");
	fake_node_set(&b->node, ".pernode.io/", "x");
	fake_node_set(&b->node, "x.y.pernode.io/", "x");
	fake_node_set(&b->node, "\xc3\xa9.y.pernode.io/\xf0\x9f\x92\xa9", "x");
	for (int i = 0; i < 300; i++) {
		snprintf(key, sizeof key, "h%d.y.pernode.io/c", i);
		fake_node_set(&b->node, key,
			i % 2 ? "{\"target\":{\"cpu\":\"1e400\",\"memory\":-1}}" : "[[[[[[");
	}
	bench_work(b, "a", 50, 40 * MIB);
	bench_begin(b);
	bench_pass(b, 12 * HOUR);
	assert_true(strlen(fake_node_get(&b->node, A)) < 1000);
	assert_non_null(fake_node_get(&b->node, B));
	assert_null(fake_node_get(&b->node, "h0.y.pernode.io/c"));
	assert_null(fake_node_get(&b->node, "h299.y.pernode.io/c"));
	assert_true(publisher_stats(b->p)->unreadable >= 301);
	assert_int_equal(b->workloads.n, 2);
}

static void random_answers_never_break_it(void **state)
{
	struct bench *b = *state;
	struct workload *w = bench_work(b, "a", 50, 40 * MIB);

	bench_work(b, "b", 50, 40 * MIB);
	bench_begin(b);
	for (int i = 0; i < 400; i++) {
		static const unsigned int statuses[] = {
			0, 0, 0, 401, 403, 404, 409, 413, 429, 500, 503};

		b->node.status = statuses[bench_random(b) % ARRAY_SIZE(statuses)];
		b->node.error = bench_random(b) % 8 == 0 ? -ECONNRESET : 0;
		b->node.raw = bench_random(b) % 8 == 0 ? "{\"kind\":\"No" : NULL;
		if (bench_random(b) % 4 == 0) {
			(void)usage_record_oom(&w->usage, w->knobs, bench_now_ns(b),
				(int64_t)(bench_random(b) % 1000) * MIB);
			publish_item_urgent(&w->publish, PUBLISH_OOM);
			publisher_poke(b->p);
		}
		if (bench_random(b) % 16 == 0)
			fake_node_set(&b->node, A, bench_random(b) % 2 ? "x" : NULL);
		bench_pass(b, bench_random(b) % (20 * MINUTE));
	}
	b->node.status = 0;
	b->node.error = 0;
	b->node.raw = NULL;
	bench_pass(b, 12 * HOUR);
	assert_int_equal(publisher_trouble(b->p), PUBLISHER_OK);
	struct annotation_value v;
	bench_read_value(b, A, &v);
	bench_read_value(b, B, &v);
	assert_int_equal(v.at_ns / NSEC_PER_SEC,
		w->next->publish.at / NSEC_PER_SEC); /* it is told as it is known */
}

static void a_workload_that_goes_while_its_patch_is_under_way_is_no_trouble(void **state)
{
	struct bench *b = *state;
	struct workload *w = bench_work(b, "a", 50, 40 * MIB);

	bench_work(b, "b", 50, 40 * MIB);
	assert_int_equal(bench_create(b, NULL), 0);
	publisher_synced(b->p);
	while (b->node.patches == 0) {
		if (b->p->wake_usec > b->clock.mono_usec)
			clock_manual_advance(&b->clock, b->p->wake_usec - b->clock.mono_usec);
		publisher_turn(b->p);
		if (b->node.busy && b->node.patches == 0)
			fake_node_answer(&b->node);
	}
	workloads_remove(&b->workloads, w);
	fake_node_answer(&b->node);
	assert_int_equal(b->published, 1);
	/* Its key belongs to nobody now. */
	bench_pass(b, 6 * HOUR);
	assert_null(fake_node_get(&b->node, A));
	assert_non_null(fake_node_get(&b->node, B));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, publisher_setup, publisher_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_lost_or_changed_is_written_again),
		TEST(who_undoes_us_for_ever_is_answered_slowly),
		TEST(keys_of_what_left_and_of_nobody_are_removed),
		TEST(before_the_pods_are_known_nothing_is_known_to_be_gone),
		TEST(a_node_that_was_made_anew_gets_everything_again),
		TEST(values_of_this_node_are_taken_over),
		TEST(a_value_is_told_also_when_its_pod_was_there_first),
		TEST(values_of_another_node_or_machine_are_not),
		TEST(a_value_newer_than_the_checkpoint_is_believed),
		TEST(hostile_nodes_cost_a_wait_and_nothing_else),
		TEST(hostile_values_under_our_keys_count_as_absent),
		TEST(random_answers_never_break_it),
		TEST(a_workload_that_goes_while_its_patch_is_under_way_is_no_trouble),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
