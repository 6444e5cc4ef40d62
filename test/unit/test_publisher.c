// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/publisher_inner.h"
#include "base/file.h"
#include "base/log.h"
#include "test/unit/helper_alloc.h"
#include "test/unit/helper_node.h"
#include "test/unit/unit.h"

#define MIB INT64_C(1048576)
#define MINUTE USEC_PER_MINUTE
#define HOUR USEC_PER_HOUR
#define T0 INT64_C(1800000000000000) /* wall, usec */

struct bench {
	struct loop loop;
	struct clock_manual clock;
	struct knobs knobs;
	struct workloads workloads;
	struct fake_node node;
	struct publisher *p;
	uint64_t random;
	bool adopting;
	unsigned int identified, found, published, removed;
};

static uint64_t next_random(void *arg)
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

static int setup(void **state)
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

static int teardown(void **state)
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

static int create(struct bench *b, const char *file)
{
	struct publisher_port port = fake_node_port(&b->node);
	struct publisher_options o = {
		.node_name = "n",
		.file = file,
		.version = "1.2.3",
		.boot_id = "boot",
		.clock = &b->clock.clock,
		.random = next_random,
		.random_arg = b,
		.hooks = {on_identified, on_found, on_published, on_removed, b},
		.port = &port,
	};

	return publisher_create(&b->p, &b->loop, NULL, &b->workloads, &o, NULL);
}

static int64_t now_ns(const struct bench *b)
{
	return b->clock.wall_usec * NSEC_PER_USEC;
}

/* Six hours of steady usage up to now: something to tell, with confidence. */
static struct workload *work(struct bench *b, const char *daemonset, double cpu, int64_t memory)
{
	struct workload *w;

	assert_int_equal(workloads_get(&b->workloads, STR("logging"), str_of(daemonset),
				 STR("main"), &w, NULL),
		0);
	for (int64_t m = 360; m >= 0; m--) {
		int64_t t = now_ns(b) - m * 60 * NSEC_PER_SEC;

		(void)usage_add_cpu(&w->usage, t, cpu, 1);
		(void)usage_add_memory(&w->usage, t, memory);
	}
	w->here = true;
	w->seen_at_ns = now_ns(b);
	snprintf(w->revision, sizeof w->revision, "6d9c7b5f4");
	return w;
}

/* Uses so much from now on: a day's samples at once, an hour after the last. */
static void use(struct bench *b, struct workload *w, double cpu, int64_t memory)
{
	for (int m = 0; m < 5000; m++) {
		int64_t t = now_ns(b) - (5000 - m) * NSEC_PER_SEC / 100;

		(void)usage_add_cpu(&w->usage, t, cpu, 1);
		(void)usage_add_memory(&w->usage, t, memory);
	}
}

/* Lets time pass, as a loop would: turns when the publisher asked to, answers at once. */
static void pass(struct bench *b, uint64_t usec)
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

static void begin(struct bench *b)
{
	assert_int_equal(create(b, NULL), 0);
	publisher_synced(b->p);
	pass(b, 5 * MINUTE);
}

static void read_value(const struct bench *b, const char *key, struct annotation_value *v)
{
	const char *text = fake_node_get(&b->node, key);

	assert_non_null(text);
	assert_int_equal(annotation_value_read(str_of(text), v, NULL), 0);
}

#define A "a.logging.pernode.io/main"
#define B "b.logging.pernode.io/main"
#define C "c.logging.pernode.io/main"

static void all_first_values_go_in_one_patch_with_who_wrote_them(void **state)
{
	struct bench *b = *state;
	struct annotation_value v;
	struct annotation_agent agent;
	char machine[17];

	work(b, "a", 50, 40 * MIB);
	work(b, "b", 200, 100 * MIB);
	fake_node_set(&b->node, "other.io/x", "theirs");
	begin(b);
	assert_int_equal(b->node.reads, 1);
	assert_int_equal(b->node.taken, 1);
	assert_int_equal(b->identified, 1);
	assert_int_equal(b->published, 2);
	read_value(b, A, &v);
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
	pass(b, 24 * HOUR);
	assert_int_equal(b->node.taken, 1);
	assert_in_range(b->node.reads, 20, 28);
}

static void nothing_is_written_before_the_node_was_seen(void **state)
{
	struct bench *b = *state;
	const char *text;

	work(b, "a", 50, 40 * MIB);
	b->node.status = 503;
	begin(b);
	assert_int_equal(b->node.patches, 0);
	assert_int_equal(publisher_health(b->p, &text), HEALTH_NOTE);
	b->node.status = 0;
	pass(b, 5 * MINUTE);
	assert_int_equal(b->node.taken, 1);
	assert_int_equal(publisher_health(b->p, &text), HEALTH_OK);
	assert_string_equal(text, "");
}

static void an_oom_goes_out_at_the_next_turn(void **state)
{
	struct bench *b = *state;
	struct workload *w = work(b, "a", 50, 40 * MIB);
	struct annotation_value before, v;

	begin(b);
	read_value(b, A, &before);
	assert_int_equal(usage_record_oom(&w->usage, w->knobs, now_ns(b), 80 * MIB), 0);
	publish_item_urgent(&w->publish, PUBLISH_OOM);
	publisher_poke(b->p);
	assert_true(b->p->wake_usec <= b->clock.mono_usec);
	pass(b, 0);
	pass(b, 2000);
	read_value(b, A, &v);
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
	struct workload *w = work(b, "a", 50, 40 * MIB);

	begin(b);
	for (int i = 0; i < 100; i++) {
		usage_count_oom(&w->usage, now_ns(b));
		publish_item_urgent(&w->publish, PUBLISH_OOM);
		publisher_poke(b->p);
		pass(b, MINUTE);
	}
	assert_int_equal(b->node.taken, 1);
}

static void ooms_without_end_stay_within_the_bucket(void **state)
{
	struct bench *b = *state;
	struct workload *w = work(b, "a", 50, 40 * MIB);

	begin(b);
	for (int i = 0; i < 120; i++) {
		(void)usage_record_oom(&w->usage, w->knobs, now_ns(b), (100 + 50 * i) * MIB);
		publish_item_urgent(&w->publish, PUBLISH_OOM);
		publisher_poke(b->p);
		pass(b, 30 * USEC_PER_SEC);
	}
	/* An hour: the first, six tokens, six refills, four ordinary turns and a bit. */
	assert_in_range(b->node.taken, 6, 19);
}

static void after_an_outage_the_newest_state_goes_once(void **state)
{
	struct bench *b = *state;
	struct workload *w = work(b, "a", 50, 40 * MIB), *x = work(b, "b", 50, 40 * MIB);
	struct annotation_value v;
	unsigned int tries;
	const char *text;

	begin(b);
	b->node.error = -ECONNREFUSED;
	tries = b->node.patches + b->node.reads;
	for (int i = 1; i <= 50; i++) {
		use(b, w, 50 + 40 * i, (40 + i) * MIB);
		(void)usage_record_oom(&x->usage, x->knobs, now_ns(b), (40 + 10 * i) * MIB);
		publish_item_urgent(&x->publish, PUBLISH_OOM);
		publisher_poke(b->p);
		pass(b, 6 * MINUTE);
	}
	/* Five hours: about one try in half a minute to a minute. */
	assert_in_range(b->node.patches + b->node.reads - tries, 250, 650);
	assert_int_equal(publisher_trouble(b->p), PUBLISHER_UNREACHABLE);
	assert_int_equal(publisher_health(b->p, &text), HEALTH_NOTE);
	assert_true(strlen(text) > 0);
	b->node.error = 0;
	pass(b, 5 * MINUTE);
	assert_int_equal(b->node.taken, 2);
	read_value(b, A, &v);
	assert_true(v.target.cpu_millicores > 1000);
	read_value(b, B, &v);
	assert_int_equal(v.reason, ANNOTATION_REASON_OOM);
	assert_int_equal(v.oom_kills, 50);
	assert_int_equal(publisher_trouble(b->p), PUBLISHER_OK);
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
	struct workload *w = work(b, "a", 50, 40 * MIB);

	begin(b);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int tries, taken = b->node.taken;
		const char *text;

		pass(b, HOUR);
		taken = b->node.taken;
		b->node.status = cases[i].status;
		b->node.error = cases[i].error;
		tries = b->node.patches + b->node.reads;
		(void)usage_record_oom(&w->usage, w->knobs, now_ns(b), (100 << i) * MIB);
		publish_item_urgent(&w->publish, PUBLISH_OOM);
		publisher_poke(b->p);
		pass(b, 10 * USEC_PER_SEC);
		assert_int_equal(publisher_trouble(b->p), cases[i].outcome);
		assert_int_equal(publisher_health(b->p, &text), cases[i].health);
		assert_true(b->p->stats.patches[cases[i].outcome] > 0);
		pass(b, HOUR);
		assert_in_range(b->node.patches + b->node.reads - tries, 4, 130);
		b->node.status = 0;
		b->node.error = 0;
		pass(b, 15 * MINUTE);
		assert_int_equal(publisher_trouble(b->p), PUBLISHER_OK);
		/* A value that was refused for itself alone waits for the next start. */
		if (cases[i].outcome == PUBLISHER_INVALID) {
			assert_true(w->publish.refused);
			w->publish.refused = false;
			pass(b, HOUR);
		}
		assert_true(b->node.taken > taken);
	}
}

static void a_server_that_asks_to_wait_is_left_alone(void **state)
{
	struct bench *b = *state;

	work(b, "a", 50, 40 * MIB);
	b->node.status = 429;
	b->node.retry_after_usec = 10 * MINUTE;
	assert_int_equal(create(b, NULL), 0);
	pass(b, 9 * MINUTE);
	assert_int_equal(b->node.reads, 1);
	pass(b, 4 * MINUTE);
	assert_int_equal(b->node.reads, 2);
}

static void what_was_lost_or_changed_is_written_again(void **state)
{
	struct bench *b = *state;
	struct annotation_value v;

	work(b, "a", 50, 40 * MIB);
	work(b, "b", 50, 40 * MIB);
	work(b, "c", 50, 40 * MIB);
	begin(b);
	fake_node_set(&b->node, A, NULL);
	fake_node_set(&b->node, B, "{\"target\":{\"cpu\":\"1000\"}}");
	fake_node_set(&b->node, ANNOTATION_AGENT, NULL);
	fake_node_set(&b->node, "other.io/x", "theirs");
	pass(b, 2 * HOUR);
	assert_int_equal(b->node.taken, 2);
	read_value(b, A, &v);
	read_value(b, B, &v);
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

	work(b, "a", 50, 40 * MIB);
	begin(b);
	taken = b->node.taken;
	for (int i = 0; i < 24 * 60; i++) {
		fake_node_set(&b->node, A, NULL);
		fake_node_set(&b->node, ANNOTATION_AGENT, "mine");
		fake_node_set(&b->node, "x.y.pernode.io/z", "stray");
		pass(b, MINUTE);
	}
	assert_in_range(b->node.taken - taken, 8, 24);
}

static void keys_of_what_left_and_of_nobody_are_removed(void **state)
{
	struct bench *b = *state;
	struct workload *w = work(b, "a", 50, 40 * MIB);

	work(b, "b", 50, 40 * MIB);
	fake_node_set(&b->node, "gone.kube-system.pernode.io/x", "{\"target\":{\"cpu\":\"1\"}}");
	fake_node_set(&b->node, "pernode.io/something", "of a later version");
	fake_node_set(&b->node, "notpernode.io/x", "theirs");
	begin(b);
	assert_null(fake_node_get(&b->node, "gone.kube-system.pernode.io/x"));
	assert_string_equal(fake_node_get(&b->node, "pernode.io/something"), "of a later version");
	assert_string_equal(fake_node_get(&b->node, "notpernode.io/x"), "theirs");
	assert_int_equal(b->removed, 1);
	w->here = false;
	pass(b, 23 * HOUR);
	assert_non_null(fake_node_get(&b->node, A));
	pass(b, 2 * HOUR);
	assert_null(fake_node_get(&b->node, A));
	assert_non_null(fake_node_get(&b->node, B));
	assert_int_equal(b->removed, 2);
	/* It comes back with what it learned. */
	w->here = true;
	w->seen_at_ns = now_ns(b);
	pass(b, 5 * MINUTE);
	assert_non_null(fake_node_get(&b->node, A));
}

static void before_the_pods_are_known_nothing_is_known_to_be_gone(void **state)
{
	struct bench *b = *state;
	struct workload *w = work(b, "a", 50, 40 * MIB);

	begin(b);
	b->p->synced = false;
	w->here = false;
	pass(b, 48 * HOUR);
	assert_non_null(fake_node_get(&b->node, A));
	publisher_synced(b->p);
	pass(b, HOUR);
	assert_null(fake_node_get(&b->node, A));
}

static void a_node_that_was_made_anew_gets_everything_again(void **state)
{
	struct bench *b = *state;

	work(b, "a", 50, 40 * MIB);
	begin(b);
	b->node.status = 404;
	pass(b, 2 * HOUR);
	assert_int_equal(publisher_trouble(b->p), PUBLISHER_NOT_FOUND);
	while (b->node.n)
		fake_node_set(&b->node, b->node.key[0], NULL);
	snprintf(b->node.uid, sizeof b->node.uid, "uid-2");
	b->node.status = 0;
	pass(b, 30 * MINUTE);
	assert_int_equal(b->identified, 2);
	assert_string_equal(publisher_node_uid(b->p), "uid-2");
	assert_non_null(fake_node_get(&b->node, A));
	assert_non_null(strstr(fake_node_get(&b->node, ANNOTATION_AGENT), "uid-2"));
}

static void one_key_that_is_refused_spoils_no_other(void **state)
{
	struct bench *b = *state;
	char name[16], key[64];
	const char *text;

	for (int i = 0; i < 30; i++) {
		snprintf(name, sizeof name, "d%d", i);
		work(b, name, 50, 40 * MIB);
	}
	b->node.poison = "d17.logging.pernode.io/main";
	begin(b);
	pass(b, 3 * HOUR);
	for (int i = 0; i < 30; i++) {
		snprintf(key, sizeof key, "d%d.logging.pernode.io/main", i);
		assert_true((fake_node_get(&b->node, key) != NULL) == (i != 17));
	}
	assert_int_equal(publisher_stats(b->p)->refused, 1);
	assert_in_range(publisher_stats(b->p)->patches[PUBLISHER_INVALID], 1, 12);
	assert_int_equal(publisher_health(b->p, &text), HEALTH_NOTE);
	assert_non_null(strstr(text, "logging/d17/main"));
	pass(b, 24 * HOUR);
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
		work(b, name, 50, (20 + 5 * i) * MIB);
	}
	b->node.limit = 8000;
	begin(b);
	pass(b, 2 * HOUR);
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
	pass(b, 24 * HOUR);
	assert_int_equal(publisher_stats(b->p)->left_out, 0);
	assert_non_null(fake_node_get(&b->node, "d0.logging.pernode.io/main"));
	assert_int_equal(publisher_health(b->p, &text), HEALTH_OK);
}

static void write_old(struct bench *b, const char *key, const char *uid)
{
	_cleanup_buf_ struct buf value = BUF_INIT(4096), agent = BUF_INIT(4096);
	struct annotation_value v = {.target = {50, 40 * MIB},
		.lower = {40, 30 * MIB},
		.upper = {60, 50 * MIB},
		.samples = 1000,
		.since_ns = now_ns(b) - 1000 * 60 * NSEC_PER_SEC,
		.at_ns = now_ns(b) - 60 * NSEC_PER_SEC,
		.reason = ANNOTATION_REASON_USAGE,
		.coverage_cpu = -1,
		.coverage_memory = -1};
	struct annotation_agent a = {.version = "1.0", .started_at_ns = now_ns(b), .state = "ok"};

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
	begin(b);
	assert_int_equal(b->found, 1);
	w = workloads_find(&b->workloads, STR("logging"), STR("a"), STR("main"));
	assert_non_null(w);
	assert_true(w->publish.published.amounts[BOUND_TARGET].value[RESOURCE_CPU] == 50);
	assert_int_equal(w->publish.samples, 1000);
	/* Only who writes now is new. */
	assert_int_equal(b->node.taken, 1);
	assert_null(strstr(b->node.last_patch, A));
	pass(b, 20 * HOUR);
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
	begin(b);
	assert_int_equal(b->found, 1);
	assert_int_equal(w->publish.samples, 1000);
}

static void values_of_another_node_or_machine_are_not(void **state)
{
	struct bench *b = *state;

	b->adopting = true;
	write_old(b, A, "uid-0");
	write_old(b, B, "uid-0");
	work(b, "b", 500, 400 * MIB);
	begin(b);
	assert_int_equal(b->found, 0);
	assert_null(fake_node_get(&b->node, A));
	assert_non_null(strstr(fake_node_get(&b->node, B), "\"reason\":\"first\""));
}

static void a_value_newer_than_the_checkpoint_is_believed(void **state)
{
	struct bench *b = *state;
	struct workload *w = work(b, "a", 40, 34 * MIB);

	write_old(b, A, "uid-1");
	w->publish.at = now_ns(b) - 3600 * NSEC_PER_SEC;
	w->publish.hash = 5;
	w->publish.published.amounts[BOUND_TARGET] =
		(struct amounts){.value = {1, 1}, .known = {true, true}};
	begin(b);
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

	work(b, "a", 50, 40 * MIB);
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		b->node.raw = answers[i];
		assert_int_equal(create(b, NULL), 0);
		pass(b, 10 * MINUTE);
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
	work(b, "a", 50, 40 * MIB);
	begin(b);
	pass(b, 12 * HOUR);
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
	struct workload *w = work(b, "a", 50, 40 * MIB);

	work(b, "b", 50, 40 * MIB);
	begin(b);
	for (int i = 0; i < 400; i++) {
		static const unsigned int statuses[] = {
			0, 0, 0, 401, 403, 404, 409, 413, 429, 500, 503};

		b->node.status = statuses[next_random(b) % ARRAY_SIZE(statuses)];
		b->node.error = next_random(b) % 8 == 0 ? -ECONNRESET : 0;
		b->node.raw = next_random(b) % 8 == 0 ? "{\"kind\":\"No" : NULL;
		if (next_random(b) % 4 == 0) {
			(void)usage_record_oom(&w->usage, w->knobs, now_ns(b),
				(int64_t)(next_random(b) % 1000) * MIB);
			publish_item_urgent(&w->publish, PUBLISH_OOM);
			publisher_poke(b->p);
		}
		if (next_random(b) % 16 == 0)
			fake_node_set(&b->node, A, next_random(b) % 2 ? "x" : NULL);
		pass(b, next_random(b) % (20 * MINUTE));
	}
	b->node.status = 0;
	b->node.error = 0;
	b->node.raw = NULL;
	pass(b, 12 * HOUR);
	assert_int_equal(publisher_trouble(b->p), PUBLISHER_OK);
	struct annotation_value v;
	read_value(b, A, &v);
	read_value(b, B, &v);
	assert_int_equal(v.at_ns / NSEC_PER_SEC,
		w->next->publish.at / NSEC_PER_SEC); /* it is told as it is known */
}

static void a_workload_that_goes_while_its_patch_is_under_way_is_no_trouble(void **state)
{
	struct bench *b = *state;
	struct workload *w = work(b, "a", 50, 40 * MIB);

	work(b, "b", 50, 40 * MIB);
	assert_int_equal(create(b, NULL), 0);
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
	pass(b, 6 * HOUR);
	assert_null(fake_node_get(&b->node, A));
	assert_non_null(fake_node_get(&b->node, B));
}

static void ending_it_ends_the_request(void **state)
{
	struct bench *b = *state;
	struct workload *w = work(b, "a", 50, 40 * MIB);

	assert_int_equal(create(b, NULL), 0);
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

	begin(b);
	assert_int_equal(b->node.taken, 1); /* who is here, though nothing is to be said */
	publisher_set_state(b->p, "unsupported", "cgroup v1");
	pass(b, 20 * MINUTE);
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
	struct workload *w = work(b, "a", 50, 40 * MIB);
	char path[] = "/tmp/pernode-publish-XXXXXX";
	_cleanup_close_ int fd = mkstemp(path);
	_cleanup_buf_ struct buf content = BUF_INIT(65536);
	struct err e = {0};

	assert_true(fd >= 0);
	assert_int_equal(create(b, path), 0);
	publisher_synced(b->p);
	pass(b, 5 * MINUTE);
	(void)usage_record_oom(&w->usage, w->knobs, now_ns(b), 100 * MIB);
	publish_item_urgent(&w->publish, PUBLISH_OOM);
	publisher_poke(b->p);
	pass(b, MINUTE);
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

	work(b, "a", 50, 40 * MIB);
	assert_int_equal(create(b, "/nowhere/at/all"), 0);
	publisher_synced(b->p);
	pass(b, 5 * MINUTE);
	assert_int_equal(publisher_trouble(b->p), PUBLISHER_LOCAL);
	assert_int_equal(publisher_health(b->p, &text), HEALTH_NOTE);
	assert_non_null(strstr(text, "/nowhere/at/all"));
	assert_in_range(publisher_stats(b->p)->patches[PUBLISHER_LOCAL], 3, 20);
	assert_int_equal(b->published, 0);
}

static void memory_that_is_short_costs_a_wait(void **state)
{
	struct bench *b = *state;

	work(b, "a", 50, 40 * MIB);
	begin(b);
	for (long nth = 0; nth < 40; nth++) {
		publisher_destroy(b->p);
		b->p = NULL;
		alloc_fail_only(nth);
		if (create(b, NULL) == 0) {
			publisher_synced(b->p);
			/* The fake's own memory must hold: only turns, then answers. */
			publisher_turn(b->p);
		}
		(void)alloc_fail_never();
		if (b->p)
			pass(b, 10 * MINUTE);
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_first_values_go_in_one_patch_with_who_wrote_them),
		TEST(nothing_is_written_before_the_node_was_seen),
		TEST(an_oom_goes_out_at_the_next_turn),
		TEST(oom_kills_that_teach_nothing_cost_no_write),
		TEST(ooms_without_end_stay_within_the_bucket),
		TEST(after_an_outage_the_newest_state_goes_once),
		TEST(every_refusal_has_its_name_and_no_storm),
		TEST(a_server_that_asks_to_wait_is_left_alone),
		TEST(what_was_lost_or_changed_is_written_again),
		TEST(who_undoes_us_for_ever_is_answered_slowly),
		TEST(keys_of_what_left_and_of_nobody_are_removed),
		TEST(before_the_pods_are_known_nothing_is_known_to_be_gone),
		TEST(a_node_that_was_made_anew_gets_everything_again),
		TEST(one_key_that_is_refused_spoils_no_other),
		TEST(where_room_is_short_the_most_valuable_go_first),
		TEST(values_of_this_node_are_taken_over),
		TEST(a_value_is_told_also_when_its_pod_was_there_first),
		TEST(values_of_another_node_or_machine_are_not),
		TEST(a_value_newer_than_the_checkpoint_is_believed),
		TEST(hostile_nodes_cost_a_wait_and_nothing_else),
		TEST(hostile_values_under_our_keys_count_as_absent),
		TEST(random_answers_never_break_it),
		TEST(a_workload_that_goes_while_its_patch_is_under_way_is_no_trouble),
		TEST(ending_it_ends_the_request),
		TEST(a_state_that_is_not_ok_is_told),
		TEST(a_dry_run_writes_the_patches_as_lines),
		TEST(a_dry_run_that_cannot_write_says_so_and_tries_again),
		TEST(memory_that_is_short_costs_a_wait),
		TEST(it_needs_a_name_and_a_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
