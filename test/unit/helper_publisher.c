// SPDX-License-Identifier: Apache-2.0
#include "test/unit/helper_publisher.h"

#include "base/log.h"
#include "test/unit/unit.h"

#define T0 INT64_C(1800000000000000) /* wall, usec */

uint64_t bench_random(void *arg)
{
	struct bench *b = arg;

	b->random ^= b->random >> 12;
	b->random ^= b->random << 25;
	b->random ^= b->random >> 27;
	return b->random * UINT64_C(2685821657736338717);
}

static void on_identified(void *arg, const char *uid, const char *machine)
{
	struct bench *b = arg;

	assert_string_equal(uid, b->node.uid);
	assert_int_equal(strlen(machine), 16);
	b->identified++;
}

static struct workload *on_found(
	void *arg, const struct annotation_names *names, const struct annotation_value *v)
{
	struct bench *b = arg;
	struct workload *w;

	b->found++;
	if (!b->adopting || workloads_get(&b->workloads, names->namespace, names->daemonset,
				    names->container, &w, NULL) < 0)
		return NULL;
	return w;
}

static void on_published(void *arg, const struct workload *w)
{
	struct bench *b = arg;

	assert_true(w->publish.at != TIME_NONE);
	b->published++;
}

static void on_removed(void *arg, struct str key)
{
	struct bench *b = arg;

	b->removed++;
}

static void no_log(const char *line, size_t n, void *arg)
{
}

int publisher_setup(void **state)
{
	struct bench *b = calloc(1, sizeof *b);

	*state = b;
	log_to(no_log, NULL);
	b->random = 4711;
	assert_int_equal(loop_init(&b->loop), 0);
	clock_manual_init(&b->clock, T0);
	clock_manual_advance(&b->clock, HOUR);
	knobs_defaults(&b->knobs, PROFILE_FINE);
	workloads_init(&b->workloads, &b->knobs);
	fake_node_init(&b->node, "n");
	return 0;
}

int publisher_teardown(void **state)
{
	struct bench *b = *state;

	publisher_destroy(b->p);
	loop_finish(&b->loop);
	workloads_finish(&b->workloads);
	fake_node_finish(&b->node);
	free(b);
	log_to(NULL, NULL);
	return 0;
}

int bench_create(struct bench *b, const char *file)
{
	struct publisher_port port = fake_node_port(&b->node);
	struct publisher_options o = {
		.node_name = "n",
		.file = file,
		.version = "1.2.3",
		.boot_id = "boot",
		.clock = &b->clock.clock,
		.random = bench_random,
		.random_arg = b,
		.start_spread_usec = b->start_spread_usec,
		.hooks = {on_identified, on_found, on_published, on_removed, b},
		.port = &port,
	};

	return publisher_create(&b->p, &b->loop, NULL, &b->workloads, &o, NULL);
}

int64_t bench_now_ns(const struct bench *b)
{
	return b->clock.wall_usec * NSEC_PER_USEC;
}

/* Six hours of steady usage up to now: something to tell, with confidence. */
struct workload *bench_work(struct bench *b, const char *daemonset, double cpu, int64_t memory)
{
	struct workload *w;

	assert_int_equal(workloads_get(&b->workloads, STR("logging"), str_of(daemonset),
				 STR("main"), &w, NULL),
		0);
	for (int64_t m = 360; m >= 0; m--) {
		int64_t t = bench_now_ns(b) - m * 60 * NSEC_PER_SEC;

		(void)usage_add_cpu(&w->usage, t, cpu, 1);
		(void)usage_add_memory(&w->usage, t, memory);
	}
	w->here = true;
	w->seen_at_ns = bench_now_ns(b);
	snprintf(w->revision, sizeof w->revision, "6d9c7b5f4");
	return w;
}

/* Uses so much from now on: a day's samples at once, an hour after the last. */
void bench_use(struct bench *b, struct workload *w, double cpu, int64_t memory)
{
	for (int m = 0; m < 5000; m++) {
		int64_t t = bench_now_ns(b) - (5000 - m) * NSEC_PER_SEC / 100;

		(void)usage_add_cpu(&w->usage, t, cpu, 1);
		(void)usage_add_memory(&w->usage, t, memory);
	}
}

/* Lets time pass, as a loop would: turns when the publisher asked to, answers at once. */
void bench_pass(struct bench *b, uint64_t usec)
{
	uint64_t end = b->clock.mono_usec + usec;

	for (unsigned int turns = 0;; turns++) {
		uint64_t at = b->p->wake_usec;

		assert_true(turns < 100000); /* a tight loop */
		if (at > end)
			break;
		if (at > b->clock.mono_usec)
			clock_manual_advance(&b->clock, at - b->clock.mono_usec);
		publisher_turn(b->p);
		if (b->node.busy) {
			clock_manual_advance(&b->clock, 1000);
			fake_node_answer(&b->node);
		}
	}
	if (end > b->clock.mono_usec)
		clock_manual_advance(&b->clock, end - b->clock.mono_usec);
}

void bench_begin(struct bench *b)
{
	assert_int_equal(bench_create(b, NULL), 0);
	publisher_synced(b->p);
	bench_pass(b, 5 * MINUTE);
}

void bench_read_value(const struct bench *b, const char *key, struct annotation_value *v)
{
	const char *text = fake_node_get(&b->node, key);

	assert_non_null(text);
	assert_int_equal(annotation_value_read(str_of(text), v, NULL), 0);
}
