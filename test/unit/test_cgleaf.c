/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves and rounds on recorded trees: an ordinary directory stands for a cgroup, and time is the
 * test's. What only a kernel does is in test/kernel. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "agent/sample/sampler.h"
#include "base/file.h"
#include "rules/estimator.h"

#define SECOND USEC_PER_SEC

struct bed {
	char path[64];
	int root;
	struct clock_manual clock;
	struct knobs knobs;
	struct model model;
	struct usage_history usage, other_usage;
	struct sampler sampler;
	struct container container, other;
	unsigned int gone, windows, ahead;
	double last_millicores, last_minutes;
	int64_t jumped_ns;
};

static void on_window(
	struct container *c, int64_t t_ns, double millicores, double minutes, void *arg)
{
	struct bed *b = arg;

	b->windows++;
	b->last_millicores = millicores;
	b->last_minutes = minutes;
}

static void on_gone(struct container *c, void *arg)
{
	((struct bed *)arg)->gone++;
}

static void on_ahead(struct container *c, int64_t t_ns, void *arg)
{
	((struct bed *)arg)->ahead++;
}

static void on_jump(int64_t by_ns, void *arg)
{
	((struct bed *)arg)->jumped_ns += by_ns;
}

static void put(struct bed *b, const char *cgroup, const char *file, const char *text)
{
	char path[128];
	int fd;

	(void)mkdirat(b->root, cgroup, 0755);
	(void)snprintf(path, sizeof(path), "%s/%s", cgroup, file);
	fd = openat(b->root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, text, strlen(text)), 0);
	(void)close(fd);
}

static void put_usual(struct bed *b, const char *cgroup)
{
	put(b, cgroup, "cpu.stat", "usage_usec 1000000\nuser_usec 1\nsystem_usec 1\n");
	put(b, cgroup, "memory.current", "50000000\n");
	put(b, cgroup, "memory.stat",
		"anon 20000000\nfile 30000000\nkernel 1000\nshmem 0\ninactive_file 10000000\n"
		"slab_reclaimable 100\n");
	put(b, cgroup, "memory.max", "max\n");
	put(b, cgroup, "cpu.max", "max 100000\n");
}

static int setup(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));
	const struct sampler_events events = {on_window, on_ahead, on_gone, on_jump, b};

	assert_non_null(b);
	(void)snprintf(b->path, sizeof(b->path), "/tmp/pernode-leaf-XXXXXX");
	assert_non_null(mkdtemp(b->path));
	b->root = open(b->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	clock_manual_init(&b->clock, INT64_C(1800000000000000));
	b->clock.mono_usec = 1000 * SECOND;
	knobs_defaults(&b->knobs, PROFILE_FINE);
	model_init(&b->model, &b->knobs);
	usage_init(&b->usage, &b->model);
	usage_init(&b->other_usage, &b->model);
	sampler_init(&b->sampler, &b->clock.clock, 10 * SECOND, 60 * SECOND, 16, &events);
	b->sampler.n_cpus = 4;
	*state = b;
	return 0;
}

static int remove_file(struct bed *b, const char *cgroup, const char *file)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", cgroup, file);
	return unlinkat(b->root, path, 0);
}

static int teardown(void **state)
{
	struct bed *b = *state;

	while (b->sampler.first) {
		struct container *c = b->sampler.first;

		sampler_remove(&b->sampler, c);
		cgleaf_finish(&c->leaf, &b->sampler.io);
	}
	assert_int_equal(b->sampler.io.held, 0);
	sampler_finish(&b->sampler);
	for (const char *const *name = (const char *const[]){"a", "b", NULL}; *name; name++) {
		static const char *const files[] = {"cpu.stat", "memory.current", "memory.stat",
			"memory.max", "cpu.max", "memory.peak", "memory.swap.current",
			"memory.swap.max", "cpu.pressure", "memory.pressure"};

		for (size_t i = 0; i < ARRAY_SIZE(files); i++)
			(void)remove_file(b, *name, files[i]);
		(void)unlinkat(b->root, *name, AT_REMOVEDIR);
	}
	(void)close(b->root);
	assert_int_equal(rmdir(b->path), 0);
	free(b);
	return 0;
}

static void add(struct bed *b, struct container *c, const char *cgroup, struct usage_history *u)
{
	struct cgleaf leaf;

	assert_int_equal(cgleaf_open(&leaf, b->root, cgroup, -1), CG_OK);
	container_init(c, &leaf, u, u ? &b->knobs : NULL);
	sampler_add(&b->sampler, c);
}

static void cpu(struct bed *b, const char *cgroup, uint64_t usage_usec)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "usage_usec %llu\n", (unsigned long long)usage_usec);
	put(b, cgroup, "cpu.stat", text);
}

static void round_after(struct bed *b, uint64_t usec)
{
	clock_manual_advance(&b->clock, usec);
	sampler_round(&b->sampler);
}

static void one_cpu_sample_a_minute_from_the_minutes_mean(void **state)
{
	struct bed *b = *state;

	put_usual(b, "a");
	add(b, &b->container, "a", &b->usage);
	for (unsigned int i = 1; i <= 12; i++) {
		cpu(b, "a", 1000000 + i * 2500000); /* 250m */
		round_after(b, 10 * SECOND + (i % 2 ? 200000 : 0) - (i % 2 ? 0 : 200000));
	}
	assert_int_equal(b->windows, 2);
	assert_int_equal(b->usage.cpu_samples, 2);
	assert_true(fabs(b->last_millicores - 250) < 2);
	assert_true(b->last_minutes == 1);
	assert_true(fabs(b->container.millicores - 250) < 10);
}

static void working_set_is_current_less_inactive_file(void **state)
{
	struct bed *b = *state;

	put_usual(b, "a");
	add(b, &b->container, "a", &b->usage);
	assert_true(b->container.working_set_known);
	assert_int_equal(b->container.working_set_bytes, 40000000);
	put(b, "a", "memory.current", "5000000\n");
	round_after(b, 10 * SECOND);
	assert_int_equal(b->container.working_set_bytes, 0);
	assert_int_equal(b->usage.memory_samples, 2);
}

/* Each of these costs its container the value it concerns, and nobody anything else. */
static void each_bad_file_is_its_own_outcome(void **state)
{
	static const struct {
		const char *file, *text; /* NULL: no such file */
		enum cg_outcome cpu, current, stat, working_set;
	} cases[] = {
		{"memory.current", "", CG_OK, CG_EMPTY, CG_OK, CG_EMPTY},
		{"memory.current", "max\nx", CG_OK, CG_MALFORMED, CG_OK, CG_MALFORMED},
		{"memory.current", NULL, CG_OK, CG_NO_FILE, CG_OK, CG_NO_FILE},
		{"memory.stat", "", CG_OK, CG_OK, CG_EMPTY, CG_EMPTY},
		{"memory.stat", "anon 5\n", CG_OK, CG_OK, CG_OK, CG_NO_KEY},
		{"memory.stat", "inactive_file x\n", CG_OK, CG_OK, CG_MALFORMED, CG_MALFORMED},
		{"memory.stat", NULL, CG_OK, CG_OK, CG_NO_FILE, CG_NO_FILE},
		{"cpu.stat", "", CG_EMPTY, CG_OK, CG_OK, CG_OK},
		{"cpu.stat", "user_usec 5\n", CG_NO_KEY, CG_OK, CG_OK, CG_OK},
		{"cpu.stat", NULL, CG_NO_FILE, CG_OK, CG_OK, CG_OK},
	};
	struct bed *b = *state;

	put_usual(b, "b");
	add(b, &b->other, "b", &b->other_usage);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cgleaf_sample *s = &b->container.sample;
		int64_t others = b->other_usage.memory_samples;
		uint64_t bytes;

		put_usual(b, "a");
		if (cases[i].text)
			put(b, "a", cases[i].file, cases[i].text);
		else
			assert_int_equal(remove_file(b, "a", cases[i].file), 0);
		usage_init(&b->usage, &b->model);
		add(b, &b->container, "a", &b->usage);
		round_after(b, 10 * SECOND);
		if (s->cpu_outcome != cases[i].cpu || s->current_outcome != cases[i].current ||
			s->stat_outcome != cases[i].stat ||
			cgleaf_working_set(s, &bytes) != cases[i].working_set)
			fail_msg("case %zu, %s: cpu %s, current %s, stat %s", i, cases[i].file,
				cg_outcome_name(s->cpu_outcome),
				cg_outcome_name(s->current_outcome),
				cg_outcome_name(s->stat_outcome));
		assert_int_equal(b->gone, 0);
		assert_int_equal(b->container.working_set_known, cases[i].working_set == CG_OK);
		assert_int_equal(b->container.millicores_known, cases[i].cpu == CG_OK);
		assert_int_equal(b->usage.memory_samples, cases[i].working_set == CG_OK ? 2 : 0);
		assert_int_equal(b->other_usage.memory_samples, others + 1);
		sampler_remove(&b->sampler, &b->container);
		cgleaf_finish(&b->container.leaf, &b->sampler.io);
	}
}

static void a_file_longer_than_the_buffer_is_malformed_and_not_cut(void **state)
{
	_cleanup_free_ char *text = malloc(CGIO_SIZE + 1);
	struct bed *b = *state;

	assert_non_null(text);
	memset(text, '1', CGIO_SIZE);
	text[CGIO_SIZE] = 0;
	put_usual(b, "a");
	put(b, "a", "memory.current", text);
	add(b, &b->container, "a", &b->usage);
	assert_int_equal(b->container.sample.current_outcome, CG_MALFORMED);
}

static void a_counter_that_goes_backwards_starts_the_window_anew(void **state)
{
	struct bed *b = *state;

	put_usual(b, "a");
	add(b, &b->container, "a", &b->usage);
	cpu(b, "a", 4000000);
	round_after(b, 10 * SECOND);
	cpu(b, "a", 500000);
	round_after(b, 10 * SECOND);
	assert_int_equal(b->container.backwards, 1);
	assert_false(b->container.millicores_known);
	for (unsigned int i = 1; i <= 6; i++) {
		assert_int_equal(b->windows, 0);
		cpu(b, "a", 500000 + i * 1000000);
		round_after(b, 10 * SECOND);
	}
	assert_int_equal(b->windows, 1);
	assert_true(fabs(b->last_millicores - 100) < 1e-6);
}

static void more_than_all_cpus_had_is_no_sample(void **state)
{
	struct bed *b = *state;

	put_usual(b, "a");
	add(b, &b->container, "a", &b->usage);
	cpu(b, "a", 1000000 + 50 * SECOND); /* 4 CPUs have 40 s in 10 */
	round_after(b, 10 * SECOND);
	assert_int_equal(b->container.impossible, 1);
	assert_false(b->container.millicores_known);
	cpu(b, "a", 1000000 + 90 * SECOND);
	round_after(b, 10 * SECOND);
	assert_true(b->container.millicores_known);
}

static void throttling_counts_for_more_than_usage(void **state)
{
	struct bed *b = *state;
	char text[128];

	put_usual(b, "a");
	put(b, "a", "cpu.max", "10000 100000\n");
	put(b, "a", "cpu.stat", "usage_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
	add(b, &b->container, "a", &b->usage);
	for (unsigned int i = 1; i <= 6; i++) {
		(void)snprintf(text, sizeof(text),
			"usage_usec %u\nnr_periods %u\nnr_throttled %u\nthrottled_usec %u\n",
			i * 1000000, i * 100, i * 100, i * 9000000);
		put(b, "a", "cpu.stat", text);
		round_after(b, 10 * SECOND);
	}
	assert_int_equal(b->windows, 1);
	assert_true(fabs(b->last_millicores - 200) < 1e-6);
	assert_true(b->container.throttled && b->container.throttled_fraction == 1);
	assert_int_equal(b->usage.throttled_minutes, 1);
	/* Switched off, it is the usage. */
	b->knobs.throttling_demand = false;
	for (unsigned int i = 7; i <= 12; i++) {
		(void)snprintf(text, sizeof(text),
			"usage_usec %u\nnr_periods %u\nnr_throttled %u\nthrottled_usec %u\n",
			i * 1000000, i * 100, i * 100, i * 9000000);
		put(b, "a", "cpu.stat", text);
		round_after(b, 10 * SECOND);
	}
	assert_true(fabs(b->last_millicores - 100) < 1e-6);
}

static void without_swap_files_the_machines_swap_does_not_hide_a_leak(void **state)
{
	struct recommendation r;
	struct bed *b = *state;
	char text[160];

	put_usual(b, "a");
	put(b, "a", "memory.max", "134217728\n");
	put(b, "a", "memory.swap.current", "0\n");
	put(b, "a", "memory.swap.max", "0\n");
	add(b, &b->container, "a", &b->usage);
	for (unsigned int mib = 70; mib < 120 && !b->ahead; mib += 2) {
		(void)snprintf(text, sizeof(text),
			"anon %u\nkernel 0\nshmem 0\ninactive_file 0\nslab_reclaimable 0\n",
			mib << 20);
		put(b, "a", "memory.stat", text);
		(void)snprintf(text, sizeof(text), "%u\n", mib << 20);
		put(b, "a", "memory.current", text);
		clock_manual_advance(&b->clock, SECOND);
		if (b->container.fast)
			sampler_round_fast(&b->sampler);
		else
			sampler_round(&b->sampler);
		assert_true(b->container.fast || mib < 78);
	}
	assert_int_equal(b->ahead, 1);
	estimate(&b->usage, &b->knobs, 1, b->clock.wall_usec * 1000, &r, NULL);
	assert_true(r.amounts[BOUND_TARGET].value[RESOURCE_MEMORY] > 128 << 20);
	assert_true(r.amounts[BOUND_LOWER].value[RESOURCE_MEMORY] > 128 << 20);
	assert_int_equal(b->usage.oom_kills, 0);
}

static void a_clock_that_is_set_is_told_before_the_next_sample(void **state)
{
	struct bed *b = *state;

	put_usual(b, "a");
	add(b, &b->container, "a", &b->usage);
	round_after(b, 10 * SECOND);
	assert_int_equal(b->jumped_ns, 0);
	b->clock.wall_usec -= 3600 * (int64_t)SECOND;
	round_after(b, 10 * SECOND);
	assert_true(b->jumped_ns == -3600 * NSEC_PER_SEC);
	assert_int_equal(b->sampler.clock_jumps, 1);
}

/* What is read of a container that nobody knows yet counts once it is known. */
static void readings_of_an_unknown_container_are_held(void **state)
{
	struct bed *b = *state;

	put_usual(b, "a");
	add(b, &b->container, "a", NULL);
	cpu(b, "a", 7000000);
	round_after(b, 10 * SECOND);
	put(b, "a", "memory.current", "20000000\n");
	round_after(b, 10 * SECOND);
	container_attach(&b->container, &b->usage, &b->knobs, b->clock.wall_usec * 1000);
	assert_int_equal(b->usage.window.peak, 40000000);
	for (unsigned int i = 0; i < 4; i++)
		round_after(b, 10 * SECOND);
	assert_int_equal(b->windows, 1);
	assert_true(fabs(b->last_millicores - 100) < 1e-6);
}

static void pressure_and_swap_are_read_where_they_exist(void **state)
{
	struct bed *b = *state;

	put_usual(b, "a");
	put(b, "a", "memory.peak", "60000000\n");
	put(b, "a", "memory.swap.current", "4096\n");
	put(b, "a", "memory.swap.max", "max\n");
	put(b, "a", "cpu.pressure", "some avg10=1.50 avg60=0.00 avg300=0.00 total=5\n");
	put(b, "a", "memory.pressure", "");
	add(b, &b->container, "a", &b->usage);
	assert_int_equal(b->container.limits.peak_bytes, 60000000);
	assert_int_equal(b->container.limits.swap_current_bytes, 4096);
	assert_true(b->container.limits.swap_max_bytes == CG_MAX);
	assert_int_equal(b->container.limits.cpu_psi_outcome, CG_OK);
	assert_int_equal(b->container.limits.cpu_psi.some.avg10_centipercent, 150);
	assert_int_equal(b->container.limits.memory_psi_outcome, CG_EMPTY);
	assert_int_equal(b->container.failed, 0);
}

static void an_unfinished_window_is_closed_with_what_it_stands_for(void **state)
{
	struct bed *b = *state;

	put_usual(b, "a");
	add(b, &b->container, "a", &b->usage);
	cpu(b, "a", 2500000);
	round_after(b, 15 * SECOND);
	sampler_close_windows(&b->sampler);
	assert_int_equal(b->windows, 1);
	assert_true(fabs(b->last_millicores - 100) < 1e-6);
	assert_true(fabs(b->last_minutes - 0.25) < 1e-9);
}

static void steps_of_cpu_time(void **state)
{
	uint64_t used = 0;

	assert_int_equal(cpu_step(5, 4, 1000, 1, &used), STEP_BACKWARDS);
	assert_int_equal(cpu_step(0, 10 * SECOND, 10 * SECOND, 1, &used), STEP_OK);
	assert_int_equal(used, 10 * SECOND);
	assert_int_equal(cpu_step(0, 12 * SECOND, 10 * SECOND, 1, &used), STEP_IMPOSSIBLE);
	assert_int_equal(cpu_step(0, 12 * SECOND, 10 * SECOND, 2, &used), STEP_OK);
	assert_int_equal(cpu_step(0, UINT64_MAX, UINT64_MAX, 4096, &used), STEP_OK);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_cpu_sample_a_minute_from_the_minutes_mean),
		TEST(working_set_is_current_less_inactive_file),
		TEST(each_bad_file_is_its_own_outcome),
		TEST(a_file_longer_than_the_buffer_is_malformed_and_not_cut),
		TEST(a_counter_that_goes_backwards_starts_the_window_anew),
		TEST(more_than_all_cpus_had_is_no_sample),
		TEST(throttling_counts_for_more_than_usage),
		TEST(without_swap_files_the_machines_swap_does_not_hide_a_leak),
		TEST(a_clock_that_is_set_is_told_before_the_next_sample),
		TEST(readings_of_an_unknown_container_are_held),
		TEST(pressure_and_swap_are_read_where_they_exist),
		TEST(an_unfinished_window_is_closed_with_what_it_stands_for),
		cmocka_unit_test(steps_of_cpu_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
