// SPDX-License-Identifier: Apache-2.0
/* What a publisher does at the start, before its first patch of values. */
#include "test/unit/helper_publisher.h"
#include "test/unit/unit.h"

/* What the Node tells of us. */
static bool agent_of(const struct bench *b, struct annotation_agent *a)
{
	const char *text = fake_node_get(&b->node, ANNOTATION_AGENT);

	return text && annotation_agent_read(str_of(text), a, NULL) == 0;
}

/* A container that is still learning holds up the first patch, not who writes here. */
static void who_writes_here_is_told_soon_and_the_first_patch_loses_nothing(void **state)
{
	struct bench *b = *state;
	struct annotation_agent a;
	struct workload *w;

	bench_work(b, "a", 50, 40 * MIB);
	assert_int_equal(workloads_get(&b->workloads, STR("logging"), STR("learning"), STR("main"),
				 &w, NULL),
		0);
	w->here = true;
	assert_int_equal(bench_create(b, NULL), 0);
	publisher_synced(b->p);
	bench_pass(b, MINUTE + USEC_PER_SEC);
	assert_true(agent_of(b, &a));
	assert_string_equal(a.state, "ok");
	assert_int_equal(b->node.taken, 1);
	assert_null(fake_node_get(&b->node, A));
	bench_pass(b, 3 * MINUTE);
	assert_non_null(fake_node_get(&b->node, A));
	assert_int_equal(b->node.taken, 2);
	assert_null(strstr(b->node.last_patch, ANNOTATION_AGENT));
	bench_pass(b, 12 * HOUR);
	assert_int_equal(b->node.taken, 2);
}

static void an_agent_with_nothing_to_publish_tells_of_itself(void **state)
{
	struct bench *b = *state;
	struct annotation_agent a;

	assert_int_equal(bench_create(b, NULL), 0);
	publisher_set_state(b->p, "unsupported", "cgroup v1");
	/* The pods never come to be known. */
	bench_pass(b, MINUTE + USEC_PER_SEC);
	assert_true(agent_of(b, &a));
	assert_string_equal(a.state, "unsupported");
	assert_string_equal(a.reason, "cgroup v1");
	bench_pass(b, 12 * HOUR);
	assert_int_equal(b->node.taken, 1);
}

static void what_the_node_tells_already_waits_for_the_first_patch(void **state)
{
	struct bench *b = *state;
	struct annotation_agent a;
	struct workload *w;
	int64_t before;

	assert_int_equal(workloads_get(&b->workloads, STR("logging"), STR("learning"), STR("main"),
				 &w, NULL),
		0);
	w->here = true;
	bench_begin(b);
	assert_int_equal(b->node.taken, 1);
	assert_true(agent_of(b, &a));
	before = a.started_at_ns;
	/* A start like the last: no patch before the first one. */
	publisher_destroy(b->p);
	clock_manual_advance(&b->clock, MINUTE);
	assert_int_equal(bench_create(b, NULL), 0);
	publisher_synced(b->p);
	bench_pass(b, 2 * MINUTE - USEC_PER_SEC);
	assert_int_equal(b->node.taken, 1);
	bench_pass(b, 2 * MINUTE);
	assert_int_equal(b->node.taken, 2);
	assert_true(agent_of(b, &a));
	assert_true(a.started_at_ns > before);
	/* One that ends before it: none at all, however often. */
	for (int i = 0; i < 50; i++) {
		publisher_destroy(b->p);
		assert_int_equal(bench_create(b, NULL), 0);
		publisher_synced(b->p);
		bench_pass(b, MINUTE);
	}
	assert_int_equal(b->node.taken, 2);
}

static void the_first_look_is_spread_and_what_cannot_wait_is_not(void **state)
{
	struct bench *b = *state;
	struct workload *w = bench_work(b, "a", 50, 40 * MIB);

	b->start_spread_usec = HOUR;
	assert_int_equal(bench_create(b, NULL), 0);
	publisher_synced(b->p);
	bench_pass(b, USEC_PER_SEC);
	assert_int_equal(b->node.reads, 0);
	(void)usage_record_oom(&w->usage, w->knobs, bench_now_ns(b), 100 * MIB);
	publish_item_urgent(&w->publish, PUBLISH_OOM);
	publisher_poke(b->p);
	bench_pass(b, USEC_PER_SEC);
	assert_int_equal(b->node.reads, 1);
	assert_non_null(fake_node_get(&b->node, A));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, publisher_setup, publisher_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_writes_here_is_told_soon_and_the_first_patch_loses_nothing),
		TEST(an_agent_with_nothing_to_publish_tells_of_itself),
		TEST(what_the_node_tells_already_waits_for_the_first_patch),
		TEST(the_first_look_is_spread_and_what_cannot_wait_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
