/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and sampling against a real cgroup v2: what the files hold, and what happens as cgroups
 * come and go. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/cgroup/cgroot.h"
#include "agent/observe/observe.h"
#include "agent/sample/sampler.h"
#include "bed.h"

#define CROWD 200

/* Time is the test's: a second per round. */
struct bed {
	struct clock_manual clock;
	struct sampler sampler;
	struct knobs knobs;
	struct model model;
	struct usage_history usage;
	struct container container;
	unsigned int gone, ahead;
	int root;
};

static void on_gone(struct container *c, void *arg)
{
	((struct bed *)arg)->gone++;
}

static void on_ahead(struct container *c, int64_t t_ns, void *arg)
{
	((struct bed *)arg)->ahead++;
}

static void start(struct bed *b)
{
	const struct sampler_events events = {.gone = on_gone, .ahead = on_ahead, .arg = b};

	memset(b, 0, sizeof(*b));
	clock_manual_init(&b->clock, INT64_C(1800000000000000));
	b->clock.mono_usec = USEC_PER_MINUTE;
	knobs_defaults(&b->knobs, PROFILE_FINE);
	model_init(&b->model, &b->knobs);
	usage_init(&b->usage, &b->model);
	sampler_init(&b->sampler, &b->clock.clock, USEC_PER_SEC, 10 * USEC_PER_SEC, 32, &events);
	b->root = open(BED_ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(b->root >= 0);
}

static void add(struct bed *b, const char *cgroup)
{
	struct cgleaf leaf;

	assert_int_equal(cgleaf_open(&leaf, b->root, cgroup, -1), CG_OK);
	container_init(&b->container, &leaf, &b->usage, &b->knobs);
	sampler_add(&b->sampler, &b->container);
}

static void end(struct bed *b)
{
	while (b->sampler.first) {
		struct container *c = b->sampler.first;

		sampler_remove(&b->sampler, c);
		cgleaf_finish(&c->leaf, &b->sampler.io);
	}
	assert_int_equal(b->sampler.io.held, 0);
	sampler_finish(&b->sampler);
	closep(&b->root);
}

static void round_after(struct bed *b, uint64_t usec)
{
	clock_manual_advance(&b->clock, usec);
	sampler_round(&b->sampler);
}

static void every_file_of_a_real_cgroup_is_read(void **state)
{
	const struct container *c;
	struct bed b;

	bed_create("leaf");
	bed_set("leaf", "memory.max", "33554432");
	bed_set("leaf", "cpu.max", "50000 100000");
	start(&b);
	add(&b, "leaf");
	round_after(&b, USEC_PER_SEC);
	c = &b.container;
	assert_int_equal(c->sample.cpu_outcome, CG_OK);
	assert_int_equal(c->sample.current_outcome, CG_OK);
	assert_int_equal(c->sample.stat_outcome, CG_OK);
	assert_int_equal(c->sample.cpu.seen, CPU_USAGE_USEC | CPU_THROTTLE_KEYS);
	assert_int_equal(c->sample.memory.seen, MEMORY_ANON | MEMORY_KERNEL | MEMORY_SHMEM |
							MEMORY_INACTIVE_FILE |
							MEMORY_SLAB_RECLAIMABLE);
	assert_int_equal(c->limits.memory_max_bytes, 33554432);
	assert_int_equal(c->limits.cpu_max_millicores, 500);
	assert_int_equal(c->limits.peak_outcome, CG_OK);
	/* This kernel has no PSI: that is a missing file, and costs nothing else. */
	assert_int_equal(c->limits.cpu_psi_outcome, CG_NO_FILE);
	assert_int_equal(c->failed, 0);
	end(&b);
	bed_remove("leaf");
}

static void working_set_is_without_inactive_page_cache(void **state)
{
	struct bed b;
	pid_t pid;

	bed_create("cache");
	bed_set("cache", "memory.max", "25165824");
	start(&b);
	add(&b, "cache");
	pid = bed_load("cache", "--read=/usr/lib/gcc", NULL, NULL, NULL);
	while (bed_read("cache", "memory.events", "max") < 5)
		round_after(&b, USEC_PER_SEC);
	round_after(&b, USEC_PER_SEC);
	assert_true(b.container.sample.current_bytes > 16 * MIB);
	assert_true(b.container.working_set_known);
	assert_true(b.container.working_set_bytes < b.container.sample.current_bytes - 4 * MIB);
	/* And is never announced as an OOM that comes. */
	assert_int_equal(b.ahead, 0);
	bed_kill(pid);
	end(&b);
	bed_remove("cache");
}

static void cpu_time_becomes_millicores(void **state)
{
	struct bed b;
	pid_t pid;

	bed_create("busy");
	start(&b);
	add(&b, "busy");
	pid = bed_load("busy", "--busy=10/10", NULL, NULL, NULL);
	while (bed_read("busy", "cpu.stat", "usage_usec") < 300000)
		continue;
	(void)kill(pid, SIGSTOP);
	round_after(&b, USEC_PER_SEC);
	assert_true(b.container.millicores_known);
	/* At least what was seen before it was stopped, in one second of the test's time. */
	assert_true(b.container.millicores >= 300);
	assert_true(b.container.millicores ==
		    (double)bed_read("busy", "cpu.stat", "usage_usec") / 1000);
	bed_kill(pid);
	end(&b);
	bed_remove("busy");
}

static void more_than_all_cpus_could_do_is_no_sample(void **state)
{
	struct bed b;
	pid_t pid;

	bed_create("jump");
	start(&b);
	add(&b, "jump");
	pid = bed_load("jump", "--busy=10/10", NULL, NULL, NULL);
	while (bed_read("jump", "cpu.stat", "usage_usec") < 300000)
		continue;
	/* As if all that had happened in a millisecond. */
	round_after(&b, USEC_PER_MSEC);
	assert_int_equal(b.container.impossible, 1);
	assert_false(b.container.millicores_known);
	round_after(&b, USEC_PER_SEC);
	assert_true(b.container.millicores_known);
	bed_kill(pid);
	end(&b);
	bed_remove("jump");
}

static void a_removed_cgroup_is_gone_with_held_files_and_without(void **state)
{
	for (int held = 0; held < 2; held++) {
		struct bed b;

		bed_create("going");
		start(&b);
		if (!held)
			b.sampler.io.held_max = 0;
		add(&b, "going");
		assert_int_equal(b.container.leaf.held, held);
		round_after(&b, USEC_PER_SEC);
		assert_int_equal(b.gone, 0);
		assert_int_equal(b.container.sample.stat_outcome, CG_OK);
		bed_remove("going");
		round_after(&b, USEC_PER_SEC);
		round_after(&b, USEC_PER_SEC);
		assert_int_equal(b.gone, 1);
		assert_true(b.container.gone);
		assert_false(b.container.working_set_known);
		assert_int_equal(cgleaf_look(&b.container.leaf, b.root, "going"), CG_GONE);
		end(&b);
	}
}

static void another_cgroup_of_the_same_name_is_not_mixed_up(void **state)
{
	struct bed b;

	bed_create("name");
	start(&b);
	add(&b, "name");
	assert_int_equal(cgleaf_look(&b.container.leaf, b.root, "name"), CG_OK);
	bed_remove("name");
	bed_create("name");
	assert_int_equal(cgleaf_look(&b.container.leaf, b.root, "name"), CG_REPLACED);
	round_after(&b, USEC_PER_SEC);
	assert_int_equal(b.gone, 1);
	end(&b);
	bed_remove("name");
}

static void a_cgroup_without_controllers_is_not_a_cgroup_with_zeros(void **state)
{
	struct bed b;

	bed_create("off");
	(void)mkdir(BED_ROOT "/off/bare", 0755);
	start(&b);
	add(&b, "off/bare");
	round_after(&b, USEC_PER_SEC);
	assert_int_equal(b.gone, 0);
	assert_int_equal(
		b.container.sample.cpu_outcome, CG_OK); /* CPU time is counted everywhere */
	assert_int_equal(b.container.sample.current_outcome, CG_NO_FILE);
	assert_int_equal(b.container.sample.stat_outcome, CG_NO_FILE);
	assert_false(b.container.working_set_known);
	assert_int_equal(b.usage.memory_samples, 0);
	assert_int_equal(b.container.limits.memory_max_outcome, CG_NO_FILE);
	end(&b);
	bed_remove("off/bare");
	bed_remove("off");
}

static void limits_in_a_child_or_in_the_pod_count(void **state)
{
	struct cgleaf_limits limits;
	struct cpu_stat stat;
	struct cgleaf leaf;
	struct bed b;
	int pod;

	bed_create("crio/scope/container");
	bed_set("crio", "memory.max", "67108864");
	bed_set("crio/scope/container", "memory.max", "33554432");
	bed_set("crio/scope/container", "cpu.max", "20000 100000");
	start(&b);
	pod = bed_open("crio");
	assert_int_equal(cgleaf_open(&leaf, b.root, "crio/scope", pod), CG_OK);
	cgleaf_read_limits(&leaf, &b.sampler.io, &limits);
	assert_int_equal(limits.memory_max_bytes, 33554432);
	assert_int_equal(limits.cpu_max_millicores, 200);
	assert_int_equal(limits.quota_level, LEVEL_CHILD);
	assert_int_equal(cgleaf_read_throttling(&leaf, &b.sampler.io, LEVEL_CHILD, &stat), CG_OK);
	bed_set("crio/scope/container", "memory.max", "max");
	bed_set("crio", "cpu.max", "10000 100000");
	cgleaf_read_limits(&leaf, &b.sampler.io, &limits);
	assert_int_equal(limits.memory_max_bytes, 67108864);
	assert_int_equal(limits.cpu_max_millicores, 100);
	assert_int_equal(limits.quota_level, LEVEL_POD);
	cgleaf_finish(&leaf, &b.sampler.io);
	(void)close(pod);
	end(&b);
	bed_remove("crio/scope/container");
	bed_remove("crio/scope");
	bed_remove("crio");
}

static void when_descriptors_are_short_the_busiest_keep_their_files(void **state)
{
	struct container quiet = {0};
	struct cgleaf leaf;
	struct bed b;
	pid_t pid;

	bed_create("quiet");
	bed_create("loud");
	start(&b);
	b.sampler.io.held_max = LEAF_FILES;
	assert_int_equal(cgleaf_open(&leaf, b.root, "quiet", -1), CG_OK);
	container_init(&quiet, &leaf, NULL, NULL);
	sampler_add(&b.sampler, &quiet);
	add(&b, "loud");
	assert_true(quiet.leaf.held && !b.container.leaf.held);
	pid = bed_load("loud", "--busy=10/10", NULL, NULL, NULL);
	while (bed_read("loud", "cpu.stat", "usage_usec") < 100000)
		continue;
	round_after(&b, USEC_PER_SEC);
	round_after(&b, USEC_PER_SEC);
	assert_true(!quiet.leaf.held && b.container.leaf.held);
	assert_true(b.sampler.io.reopened > 0);
	assert_true(quiet.working_set_known && b.container.working_set_known);
	bed_kill(pid);
	end(&b);
	bed_remove("quiet");
	bed_remove("loud");
}

/* ---- a crowd that comes and goes, as observe sees it */

static uint32_t random_next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static void two_hundred_cgroups_at_random(void **state)
{
	char pattern[] = "/crowd/*", *patterns[] = {pattern, NULL};
	struct cgroot root = {.fd = -1};
	struct oomwatch_events none = {0};
	struct oomwatch watch;
	struct observe_table table;
	struct loop loop;
	struct bed b;
	bool here[CROWD] = {false};
	unsigned int alive = 0, born = 0;
	uint32_t seed = 20260101;
	char path[64];

	bed_create("crowd/steady");
	start(&b);
	assert_int_equal(cgroot_open(&root, BED_ROOT, NULL), 0);
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(oomwatch_init(&watch, &loop, &b.clock.clock, &b.sampler.io, &none), 0);
	table = (struct observe_table){.root = &root,
		.clock = &b.clock.clock,
		.knobs = &b.knobs,
		.model = &b.model,
		.patterns = patterns,
		.sampler = &b.sampler,
		.oomwatch = &watch};
	for (int round = 0; round < 30; round++) {
		for (int i = 0; i < 40; i++) {
			unsigned int n = random_next(&seed) % CROWD;

			(void)snprintf(path, sizeof(path), BED_ROOT "/crowd/n%u", n);
			assert_int_equal(here[n] ? rmdir(path) : mkdir(path, 0755), 0);
			born += !here[n];
			alive += here[n] ? -1U : 1U;
			here[n] = !here[n];
			/* Now and then one goes between the walk and the reading. */
			if (i == 20)
				assert_int_equal(observe_table_scan(&table, NULL), 0);
		}
		clock_manual_advance(&b.clock, USEC_PER_SEC);
		sampler_round(&b.sampler);
		oomwatch_look(&watch);
		assert_int_equal(observe_table_scan(&table, NULL), 0);
	}
	clock_manual_advance(&b.clock, USEC_PER_SEC);
	sampler_round(&b.sampler);
	assert_true(born > CROWD);
	for (struct observed *o = table.first; o; o = o->next) {
		unsigned int n;

		if (strcmp(o->path, "/crowd/steady") == 0) {
			/* The steady one missed no round: one reading when it was joined, 30
			 * rounds, and the last. */
			assert_int_equal(o->usage.memory_samples, 32);
			continue;
		}
		n = 0;
		for (const char *p = o->path + strlen("/crowd/n"); *p; p++)
			n = n * 10 + (unsigned int)(*p - '0');
		assert_true(n < CROWD);
		assert_int_equal(o->here && !o->container.gone, here[n]);
		alive -= o->here && !o->container.gone;
	}
	assert_int_equal(alive, 0);
	observe_table_finish(&table);
	oomwatch_finish(&watch);
	loop_finish(&loop);
	cgroot_finish(&root);
	end(&b);
	for (unsigned int n = 0; n < CROWD; n++) {
		(void)snprintf(path, sizeof(path), "crowd/n%u", n);
		if (here[n])
			bed_remove(path);
	}
	bed_remove("crowd/steady");
	bed_remove("crowd");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_file_of_a_real_cgroup_is_read),
		cmocka_unit_test(working_set_is_without_inactive_page_cache),
		cmocka_unit_test(cpu_time_becomes_millicores),
		cmocka_unit_test(more_than_all_cpus_could_do_is_no_sample),
		cmocka_unit_test(a_removed_cgroup_is_gone_with_held_files_and_without),
		cmocka_unit_test(another_cgroup_of_the_same_name_is_not_mixed_up),
		cmocka_unit_test(a_cgroup_without_controllers_is_not_a_cgroup_with_zeros),
		cmocka_unit_test(limits_in_a_child_or_in_the_pod_count),
		cmocka_unit_test(when_descriptors_are_short_the_busiest_keep_their_files),
		cmocka_unit_test(two_hundred_cgroups_at_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
