/* SPDX-License-Identifier: Apache-2.0 */
/* The OOM watch against real kills of a real kernel. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/sample/oomwatch.h"
#include "bed.h"

#define ROOM 4 /* containers of one pod in these tests */

struct seen {
	unsigned int incidents;
	enum oom_class class;
	bool vanished;
	const void *owner;
	unsigned int limit_hits;
};

struct bed {
	struct loop loop;
	struct cgio io;
	struct oomwatch watch;
	struct oomwatch_pod pod;
	struct oomwatch_child child[ROOM];
	int pod_fd, node_fd, child_fd[ROOM];
	struct seen seen;
};

static void on_killed(struct oomwatch_pod *pod, struct oomwatch_child *child, enum oom_class class,
	bool vanished, void *arg)
{
	struct seen *s = arg;

	s->incidents++;
	s->class = class;
	s->vanished = vanished;
	s->owner = child ? child->owner : NULL;
}

static void on_limit_hit(struct oomwatch_child *child, void *arg)
{
	struct seen *s = arg;

	s->limit_hits++;
}

static void start(struct bed *b)
{
	const struct oomwatch_events events = {on_killed, on_limit_hit, &b->seen};

	memset(b, 0, sizeof(*b));
	b->pod_fd = b->node_fd = -1;
	for (int i = 0; i < ROOM; i++)
		b->child_fd[i] = -1;
	assert_int_equal(loop_init(&b->loop), 0);
	cgio_init(&b->io, 32);
	assert_int_equal(oomwatch_init(&b->watch, &b->loop, &clock_system, &b->io, &events), 0);
}

static void end(struct bed *b)
{
	oomwatch_finish(&b->watch);
	assert_int_equal(b->io.held, 0);
	loop_finish(&b->loop);
	closep(&b->pod_fd);
	closep(&b->node_fd);
	for (int i = 0; i < ROOM; i++)
		closep(&b->child_fd[i]);
}

/* node/pod and its containers c0, c1… with the limits given (NULL: none). */
static void make_pod(const char *node_max, const char *pod_max, const char *ctr_max, int n)
{
	char path[64];

	bed_create("node/pod");
	if (node_max)
		bed_set("node", "memory.max", node_max);
	if (pod_max)
		bed_set("node/pod", "memory.max", pod_max);
	for (int i = 0; i < n; i++) {
		(void)snprintf(path, sizeof(path), "node/pod/c%d", i);
		bed_create(path);
		if (ctr_max)
			bed_set(path, "memory.max", ctr_max);
		bed_set(path, "memory.oom.group", "1");
	}
}

static void remove_pod(int n)
{
	char path[64];

	for (int i = 0; i < n; i++) {
		(void)snprintf(path, sizeof(path), "node/pod/c%d", i);
		bed_remove(path);
	}
	bed_remove("node/pod");
	bed_remove("node");
}

static void watch_pod(struct bed *b, uint64_t explained)
{
	b->pod_fd = bed_open("node/pod");
	b->node_fd = bed_open("node");
	oomwatch_pod_add(&b->watch, &b->pod, b->pod_fd, b->node_fd, explained, b);
}

static void watch_child(struct bed *b, int i, uint64_t kills)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "node/pod/c%d", i);
	b->child_fd[i] = bed_open(path);
	oomwatch_child_add(
		&b->watch, &b->pod, &b->child[i], b->child_fd[i], kills, false, &b->child[i]);
}

static void look(void *arg)
{
	struct bed *b = arg;

	oomwatch_look(&b->watch);
}

/* Whatever is told, it is told once: some more looks change nothing. */
static void expect_one(struct bed *b, enum oom_class class, int child, bool vanished, bool timer)
{
	bed_run_until(&b->loop, &b->seen.incidents, 1, 60, timer ? look : NULL, b);
	for (int i = 0; i < 5; i++)
		oomwatch_look(&b->watch);
	assert_int_equal(b->seen.incidents, 1);
	if (b->seen.class != class)
		fail_msg("class %s, expected %s", oom_class_name(b->seen.class),
			oom_class_name(class));
	assert_int_equal(b->seen.vanished, vanished);
	assert_ptr_equal(b->seen.owner, child < 0 ? NULL : (void *)&b->child[child]);
}

static void row(const char *node_max, const char *pod_max, const char *ctr_max, const char *sibling,
	const char *children, enum oom_class class)
{
	struct bed b;
	pid_t quiet, greedy;

	make_pod(node_max, pod_max, ctr_max, 2);
	start(&b);
	watch_pod(&b, OOM_KILLS_UNKNOWN);
	watch_child(&b, 0, OOM_KILLS_UNKNOWN);
	watch_child(&b, 1, OOM_KILLS_UNKNOWN);
	/* The sibling holds some memory and, being smaller, survives. */
	quiet = bed_load("node/pod/c1", sibling, NULL, NULL, NULL);
	greedy = bed_load("node/pod/c0", "--leak=32768", children, NULL, NULL);
	expect_one(&b, class, 0, false, false);
	/* By wake-up, without the timer. */
	assert_true(b.watch.wakes > 0);
	bed_wait(greedy);
	bed_kill(quiet);
	end(&b);
	remove_pod(2);
}

static void a_kill_at_the_containers_limit(void **state)
{
	row(NULL, NULL, "16777216", "--anon=1", NULL, OOM_LIMIT);
}

static void a_group_kill_of_many_processes_is_one_incident(void **state)
{
	row(NULL, NULL, "16777216", "--anon=1", "--children=3", OOM_LIMIT);
}

static void a_kill_at_the_pods_limit(void **state)
{
	row(NULL, "16777216", "16777216", "--anon=3", NULL, OOM_POD);
}

static void a_kill_at_the_limit_of_all_pods(void **state)
{
	row("16777216", NULL, NULL, "--anon=1", NULL, OOM_NODE_ALLOCATABLE);
}

static void a_kill_by_the_whole_machine(void **state)
{
	row(NULL, NULL, NULL, "--anon=1", NULL, OOM_GLOBAL);
}

static void without_group_kill_the_others_live_and_it_is_one_incident(void **state)
{
	struct bed b;
	pid_t pid;

	make_pod(NULL, NULL, "16777216", 1);
	bed_set("node/pod/c0", "memory.oom.group", "0");
	start(&b);
	watch_pod(&b, OOM_KILLS_UNKNOWN);
	watch_child(&b, 0, OOM_KILLS_UNKNOWN);
	pid = bed_load("node/pod/c0", "--leak=32768", "--children=1", NULL, NULL);
	expect_one(&b, OOM_LIMIT, 0, false, false);
	assert_int_equal(bed_read("node/pod/c0", "memory.events", "oom_group_kill"), 0);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	bed_kill(pid);
	end(&b);
	remove_pod(1);
}

/* The cgroup is removed the moment its last process is gone, before anyone could read it. */
static void a_container_that_vanished_is_charged_once(void **state)
{
	struct bed b;
	pid_t pid;

	make_pod(NULL, NULL, "16777216", 2);
	start(&b);
	watch_pod(&b, OOM_KILLS_UNKNOWN);
	watch_child(&b, 0, OOM_KILLS_UNKNOWN);
	watch_child(&b, 1, OOM_KILLS_UNKNOWN);
	pid = bed_load("node/pod/c0", "--leak=65536", NULL, NULL, NULL);
	bed_wait(pid);
	bed_remove("node/pod/c0");
	expect_one(&b, OOM_LIMIT, 0, true, false);
	end(&b);
	remove_pod(2);
}

static void a_container_that_vanished_and_was_forgotten_first_is_charged(void **state)
{
	struct bed b;
	pid_t pid;

	make_pod(NULL, NULL, "16777216", 1);
	start(&b);
	watch_pod(&b, OOM_KILLS_UNKNOWN);
	watch_child(&b, 0, OOM_KILLS_UNKNOWN);
	pid = bed_load("node/pod/c0", "--leak=65536", NULL, NULL, NULL);
	bed_wait(pid);
	bed_remove("node/pod/c0");
	oomwatch_child_remove(&b.watch, &b.pod, &b.child[0]);
	assert_int_equal(b.seen.incidents, 1);
	assert_true(b.seen.vanished);
	oomwatch_look(&b.watch);
	assert_int_equal(b.seen.incidents, 1);
	end(&b);
	remove_pod(1);
}

static void a_container_that_ended_in_peace_is_not_charged(void **state)
{
	struct bed b;
	pid_t pid;

	make_pod(NULL, NULL, "16777216", 2);
	start(&b);
	watch_pod(&b, OOM_KILLS_UNKNOWN);
	watch_child(&b, 0, OOM_KILLS_UNKNOWN);
	watch_child(&b, 1, OOM_KILLS_UNKNOWN);
	bed_remove("node/pod/c0");
	oomwatch_look(&b.watch);
	assert_true(b.child[0].gone);
	/* Nor is it charged with what happens to another one later. */
	pid = bed_load("node/pod/c1", "--leak=65536", NULL, NULL, NULL);
	expect_one(&b, OOM_LIMIT, 1, false, false);
	bed_wait(pid);
	end(&b);
	remove_pod(2);
}

static void a_container_that_came_and_went_unseen_is_told(void **state)
{
	struct bed b;
	pid_t pid;

	make_pod(NULL, NULL, "16777216", 1);
	start(&b);
	watch_pod(&b, OOM_KILLS_UNKNOWN);
	pid = bed_load("node/pod/c0", "--leak=65536", NULL, NULL, NULL);
	bed_wait(pid);
	bed_remove("node/pod/c0");
	expect_one(&b, OOM_LIMIT, -1, true, true);
	end(&b);
	remove_pod(1);
}

static void a_container_found_after_its_kill_is_charged(void **state)
{
	struct bed b;
	pid_t pid;

	make_pod(NULL, NULL, "16777216", 1);
	start(&b);
	watch_pod(&b, OOM_KILLS_UNKNOWN);
	pid = bed_load("node/pod/c0", "--leak=65536", NULL, NULL, NULL);
	bed_wait(pid);
	watch_child(&b, 0, OOM_KILLS_UNKNOWN);
	expect_one(&b, OOM_LIMIT, 0, false, false);
	end(&b);
	remove_pod(1);
}

static void kills_before_the_first_sight_are_old(void **state)
{
	struct bed b;
	pid_t pid;

	make_pod(NULL, NULL, "16777216", 1);
	pid = bed_load("node/pod/c0", "--leak=65536", NULL, NULL, NULL);
	bed_wait(pid);
	assert_true(bed_read("node/pod/c0", "memory.events", "oom_kill") > 0);
	start(&b);
	watch_pod(&b, OOM_KILLS_UNKNOWN);
	watch_child(&b, 0, OOM_KILLS_UNKNOWN);
	for (int i = 0; i < 5; i++)
		oomwatch_look(&b.watch);
	assert_int_equal(b.seen.incidents, 0);
	end(&b);
	remove_pod(1);
}

/* An earlier run had dealt with the kills up to a point; one more came while nobody ran. */
static void a_kill_between_two_runs_is_told_once(void **state)
{
	uint64_t explained, kills;
	struct bed b;
	pid_t pid;

	make_pod(NULL, NULL, "16777216", 1);
	pid = bed_load("node/pod/c0", "--leak=65536", NULL, NULL, NULL);
	bed_wait(pid);
	explained = bed_read("node/pod", "memory.events", "oom_kill");
	kills = bed_read("node/pod/c0", "memory.events", "oom_kill");
	pid = bed_load("node/pod/c0", "--leak=65536", NULL, NULL, NULL);
	bed_wait(pid);
	start(&b);
	watch_pod(&b, explained);
	watch_child(&b, 0, kills);
	bed_run_until(&b.loop, &b.seen.incidents, 1, 60, NULL, NULL);
	for (int i = 0; i < 5; i++)
		oomwatch_look(&b.watch);
	assert_int_equal(b.seen.incidents, 1);
	assert_ptr_equal(b.seen.owner, &b.child[0]);
	end(&b);
	remove_pod(1);
}

static void page_cache_at_the_limit_wakes_but_is_no_kill(void **state)
{
	struct bed b;
	pid_t pid;

	make_pod(NULL, NULL, "16777216", 1);
	start(&b);
	watch_pod(&b, OOM_KILLS_UNKNOWN);
	watch_child(&b, 0, OOM_KILLS_UNKNOWN);
	pid = bed_load("node/pod/c0", "--read=/usr/lib/gcc", NULL, NULL, NULL);
	bed_run_until(&b.loop, &b.seen.limit_hits, 3, 60, NULL, NULL);
	oomwatch_look(&b.watch);
	assert_int_equal(b.seen.incidents, 0);
	bed_kill(pid);
	end(&b);
	remove_pod(1);
}

static void without_descriptors_the_timer_finds_it(void **state)
{
	struct bed b;
	pid_t pid;

	make_pod(NULL, NULL, "16777216", 1);
	start(&b);
	b.io.held_max = 0;
	watch_pod(&b, OOM_KILLS_UNKNOWN);
	watch_child(&b, 0, OOM_KILLS_UNKNOWN);
	assert_int_equal(b.watch.unwatched, 2);
	pid = bed_load("node/pod/c0", "--leak=65536", NULL, NULL, NULL);
	expect_one(&b, OOM_LIMIT, 0, false, true);
	bed_wait(pid);
	end(&b);
	remove_pod(1);
}

static void a_removed_pod_does_not_keep_us_busy(void **state)
{
	struct bed b;
	uint64_t wakes;

	make_pod(NULL, NULL, NULL, 1);
	start(&b);
	watch_pod(&b, OOM_KILLS_UNKNOWN);
	watch_child(&b, 0, OOM_KILLS_UNKNOWN);
	remove_pod(1);
	oomwatch_look(&b.watch);
	wakes = b.watch.wakes;
	for (int i = 0; i < 20; i++)
		oomwatch_look(&b.watch);
	assert_true(b.watch.wakes - wakes <= 1);
	assert_int_equal(b.io.held, 0);
	assert_int_equal(b.seen.incidents, 0);
	end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kill_at_the_containers_limit),
		cmocka_unit_test(a_group_kill_of_many_processes_is_one_incident),
		cmocka_unit_test(a_kill_at_the_pods_limit),
		cmocka_unit_test(a_kill_at_the_limit_of_all_pods),
		cmocka_unit_test(without_group_kill_the_others_live_and_it_is_one_incident),
		cmocka_unit_test(a_container_that_vanished_is_charged_once),
		cmocka_unit_test(a_container_that_vanished_and_was_forgotten_first_is_charged),
		cmocka_unit_test(a_container_that_ended_in_peace_is_not_charged),
		cmocka_unit_test(a_container_that_came_and_went_unseen_is_told),
		cmocka_unit_test(a_container_found_after_its_kill_is_charged),
		cmocka_unit_test(kills_before_the_first_sight_are_old),
		cmocka_unit_test(a_kill_between_two_runs_is_told_once),
		cmocka_unit_test(page_cache_at_the_limit_wakes_but_is_no_kill),
		cmocka_unit_test(without_descriptors_the_timer_finds_it),
		cmocka_unit_test(a_removed_pod_does_not_keep_us_busy),
		cmocka_unit_test(a_kill_by_the_whole_machine),
	};
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	/* The machine is to kill the load, not the test; loads get their own value back. */
	if (fd >= 0) {
		(void)!write(fd, "-900", 4);
		(void)close(fd);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
