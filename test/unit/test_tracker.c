/* SPDX-License-Identifier: Apache-2.0 */
/* Pods come, change and go; their numbers reach the right history. Directories with files stand for
 * cgroups; what only a kernel does (counters that vanish, notifications) is tested in test/kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "helper_bed.h"

static void test_a_pod_is_found_measured_and_known_by_its_daemonset(void **state)
{
	struct bed *bed = *state;

	bed_make(bed, "kubepods/burstable/pod" UID_A "/" ID_1);
	bed_make(bed, "kubepods/burstable/pod" UID_A "/" SANDBOX);
	tracker_begin(&bed->tracker);
	tracker_pod(&bed->tracker, bed_pod(UID_A, "shipper-x", 1, IDS(ID_1)));
	tracker_synced(&bed->tracker);
	assert_int_equal(bed->synced, 1);
	struct live_container *pc = bed_live(bed, UID_A, "main");
	assert_non_null(pc);
	assert_int_equal(pc->state, CONTAINER_SAMPLED);
	assert_string_equal(pc->cgroup, "kubepods/burstable/pod" UID_A "/" ID_1);
	struct workload *w = bed_workload(bed, "main");
	assert_non_null(w);
	assert_true(w->here);
	assert_string_equal(w->pod, "shipper-x");
	assert_int_equal(w->request_millicores, 100);
	assert_ptr_equal(pc->measured.usage, &w->usage);
	assert_int_equal(pc->pod->n_others, 1);
}

static void test_pods_of_others_and_ended_ones_are_not_followed(void **state)
{
	struct bed *bed = *state;
	struct pod *pod = bed_pod(UID_A, "web-x", 1, IDS(ID_1));

	pod->daemonset[0] = '\0';
	tracker_pod(&bed->tracker, pod);
	assert_int_equal(bed->tracker.pods.n, 0);
	pod = bed_pod(UID_A, "shipper-x", 1, IDS(ID_1));
	tracker_pod(&bed->tracker, pod);
	assert_int_equal(bed->tracker.pods.n, 1);
	pod->phase = POD_FAILED;
	tracker_pod(&bed->tracker, pod);
	assert_int_equal(bed->tracker.pods.n, 0);
	assert_false(bed_workload(bed, "main")->here);
}

static void test_a_cgroup_that_comes_late_is_waited_for(void **state)
{
	struct bed *bed = *state;

	tracker_pod(&bed->tracker, bed_pod(UID_A, "shipper-x", 1, IDS(ID_1)));
	struct live_container *pc = bed_live(bed, UID_A, "main");
	assert_int_equal(pc->state, CONTAINER_WAITING);
	assert_true(pc->retry_usec == bed->clock.mono_usec + TRACKER_DELAY_FIRST_USEC);
	assert_non_null(strstr(pc->reason.text, "no kubepods cgroup"));
	/* Looked for less and less often, and after a minute it is said not to be found. */
	uint64_t longest = 0;
	for (int i = 0; i < 40 && pc->state == CONTAINER_WAITING; i++) {
		longest = MAX(longest, pc->retry_usec - bed->clock.mono_usec);
		clock_manual_advance(&bed->clock, pc->retry_usec - bed->clock.mono_usec);
		bed->tracker.retry.fire(&bed->tracker);
	}
	assert_true(longest == TRACKER_DELAY_LAST_USEC);
	assert_int_equal(pc->state, CONTAINER_NOT_FOUND);
	bed_make(bed, "kubepods/burstable/pod" UID_A "/" ID_1);
	clock_manual_advance(&bed->clock, TRACKER_PATIENCE_USEC);
	bed->tracker.retry.fire(&bed->tracker);
	assert_int_equal(pc->state, CONTAINER_SAMPLED);
	assert_string_equal(pc->reason.text, "");
}

static void test_a_restarted_container_goes_on_with_the_same_history(void **state)
{
	struct bed *bed = *state;

	bed_make(bed, "kubepods/burstable/pod" UID_A "/" ID_1);
	tracker_pod(&bed->tracker, bed_pod(UID_A, "shipper-x", 1, IDS(ID_1)));
	struct workload *w = bed_workload(bed, "main");
	bed_make(bed, "kubepods/burstable/pod" UID_A "/" ID_2);
	tracker_pod(&bed->tracker, bed_pod(UID_A, "shipper-x", 1, IDS(ID_2)));
	struct live_container *pc = bed_live(bed, UID_A, "main");
	assert_string_equal(pc->id, ID_2);
	assert_int_equal(pc->state, CONTAINER_SAMPLED);
	assert_ptr_equal(bed_workload(bed, "main"), w);
	assert_string_equal(w->container_id, ID_2);
	assert_int_equal(bed->events.of_kind[EVENT_KIND_RESTARTED], 1);
	assert_int_equal(bed->workloads.n, 1);
}

static void test_a_recreated_pod_takes_the_history_over_and_the_old_one_stops_feeding_it(
	void **state)
{
	struct bed *bed = *state;

	bed_make(bed, "kubepods/burstable/pod" UID_A "/" ID_1);
	bed_make(bed, "kubepods/burstable/pod" UID_B "/" ID_2);
	tracker_pod(&bed->tracker, bed_pod(UID_A, "shipper-x", 1, IDS(ID_1)));
	struct workload *w = bed_workload(bed, "main");
	struct pod *pod = bed_pod(UID_A, "shipper-x", 1, IDS(ID_1));
	pod->deletion_ns = T0_USEC * NSEC_PER_USEC;
	tracker_pod(&bed->tracker, pod);
	tracker_pod(&bed->tracker, bed_pod(UID_B, "shipper-y", 1, IDS(ID_2)));
	assert_string_equal(w->pod_uid, UID_B);
	assert_null(bed_live(bed, UID_A, "main")->measured.usage);
	assert_ptr_equal(bed_live(bed, UID_B, "main")->measured.usage, &w->usage);
	tracker_pod_gone(&bed->tracker, UID_A);
	assert_true(w->here);
	tracker_pod_gone(&bed->tracker, UID_B);
	assert_false(w->here);
	assert_int_equal(bed->workloads.n, 1); /* what was learned stays */
}

static void test_what_a_picture_does_not_show_is_gone(void **state)
{
	struct bed *bed = *state;

	tracker_pod(&bed->tracker, bed_pod(UID_A, "shipper-x", 1, IDS(ID_1)));
	tracker_pod(&bed->tracker, bed_pod(UID_B, "shipper-y", 1, IDS(ID_2)));
	tracker_begin(&bed->tracker);
	tracker_pod(&bed->tracker, bed_pod(UID_B, "shipper-y", 1, IDS(ID_2)));
	tracker_synced(&bed->tracker);
	assert_int_equal(bed->tracker.pods.n, 1);
	assert_null(podtable_find(&bed->tracker.pods, UID_A));
}

static void test_rounds_make_minutes_and_minutes_make_samples(void **state)
{
	struct bed *bed = *state;
	const char *cgroup = "kubepods/burstable/pod" UID_A "/" ID_1;

	bed_make(bed, cgroup);
	tracker_pod(&bed->tracker, bed_pod(UID_A, "shipper-x", 1, IDS(ID_1)));
	struct workload *w = bed_workload(bed, "main");
	for (unsigned int i = 1; i <= 30; i++) {
		clock_manual_advance(&bed->clock, 10 * USEC_PER_SEC);
		bed_numbers(bed, cgroup, 1000 + i * 500000, 30 << 20); /* 50 millicores */
		bed->tracker.round.fire(&bed->tracker);
	}
	assert_int_equal(w->usage.cpu_samples, 5);
	assert_true(workload_ready(w));
	assert_true(bed->urgent > 0); /* a first value waits to be told */
	struct recommendation r;
	workload_estimate(w, bed->clock.wall_usec * NSEC_PER_USEC, &r, NULL);
	assert_in_range(r.amounts[BOUND_TARGET].value[RESOURCE_CPU], 50, 62);
	assert_in_range(r.amounts[BOUND_TARGET].value[RESOURCE_MEMORY], 30 << 20, 40 << 20);
}

static void test_an_oom_kill_told_by_the_status_counts_once_and_old_ones_do_not(void **state)
{
	struct bed *bed = *state;
	struct pod *pod = bed_pod(UID_A, "shipper-x", 1, IDS(ID_2));
	struct pod_terminated *end = &pod->container[0].last_terminated;

	*end = (struct pod_terminated){
		.known = true, .exit_code = 137, .reason = "OOMKilled", .container_id = ID_1};
	end->finished_at_ns =
		(T0_USEC - 3600 * INT64_C(1000000)) * NSEC_PER_USEC; /* long before the agent */
	tracker_pod(&bed->tracker, pod);
	struct workload *w = bed_workload(bed, "main");
	assert_int_equal(w->usage.oom_kills, 0);
	/* The same container is killed again, in an instance that was never measured here. */
	memcpy(end->container_id, ID_2, sizeof(ID_2));
	memcpy(pod->container[0].container_id, ID_3, sizeof(ID_3));
	end->finished_at_ns = T0_USEC * NSEC_PER_USEC;
	tracker_pod(&bed->tracker, pod);
	tracker_pod(&bed->tracker, pod);
	assert_int_equal(w->usage.oom_kills, 1);
	assert_int_equal(bed->urgent, 1);
	struct recommendation r;
	workload_estimate(w, bed->clock.wall_usec * NSEC_PER_USEC, &r, NULL);
	/* From the limit of 64 MiB: × 1.25, and the margin. */
	assert_true(r.amounts[BOUND_TARGET].value[RESOURCE_MEMORY] >= 80 << 20);
	/* The kernel's account of the same kill comes late, and does not count again. */
	struct oomwatch_pod watched = {.owner = podtable_find(&bed->tracker.pods, UID_A)};
	bed->tracker.oomwatch.events.killed(
		&watched, NULL, OOM_LIMIT, true, bed->tracker.oomwatch.events.arg);
	assert_int_equal(w->usage.oom_kills, 1);
}

static void test_a_kill_the_kernel_told_of_first_is_not_counted_again_from_the_status(void **state)
{
	struct bed *bed = *state;

	bed_make(bed, "kubepods/burstable/pod" UID_A "/" ID_1);
	tracker_pod(&bed->tracker, bed_pod(UID_A, "shipper-x", 1, IDS(ID_1)));
	struct workload *w = bed_workload(bed, "main");
	struct live_container *pc = bed_live(bed, UID_A, "main");
	bed->tracker.oomwatch.events.killed(
		&pc->pod->oom, &pc->oom, OOM_LIMIT, false, bed->tracker.oomwatch.events.arg);
	assert_int_equal(w->usage.oom_kills, 1);
	struct pod *pod = bed_pod(UID_A, "shipper-x", 1, IDS(ID_2));
	pod->container[0].last_terminated = (struct pod_terminated){.known = true,
		.reason = "OOMKilled",
		.container_id = ID_1,
		.finished_at_ns = T0_USEC * NSEC_PER_USEC};
	tracker_pod(&bed->tracker, pod);
	assert_int_equal(w->usage.oom_kills, 1);
}

static void test_a_kill_for_the_nodes_sake_is_counted_and_raises_nothing(void **state)
{
	struct bed *bed = *state;

	bed_make(bed, "kubepods/burstable/pod" UID_A "/" ID_1);
	tracker_pod(&bed->tracker, bed_pod(UID_A, "shipper-x", 1, IDS(ID_1)));
	struct workload *w = bed_workload(bed, "main");
	struct live_container *pc = bed_live(bed, UID_A, "main");
	bed->tracker.oomwatch.events.killed(
		&pc->pod->oom, &pc->oom, OOM_GLOBAL, false, bed->tracker.oomwatch.events.arg);
	assert_int_equal(w->usage.oom_kills, 1);
	assert_int_equal(bed->urgent, 0);
	assert_int_equal(w->usage.floor.used, 0);
}

/* The agent was away when the container was killed and replaced: all that is left of the kill is in
 * the pod's counters, and what it was allowed in its pod's limit. */
static void test_a_kill_while_the_agent_was_away_raises_from_the_limit(void **state)
{
	struct bed *bed = *state;
	const char *cgroup = "kubepods/burstable/pod" UID_A;
	struct pod_saved saved = {.explained = 0, .kills = {0}};
	struct recommendation r;

	bed_make(bed, cgroup);
	bed_put(bed, cgroup, "memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n");
	bed_put(bed, cgroup, "memory.events.local", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n");
	bed_make(bed, "kubepods/burstable/pod" UID_A "/" ID_2);
	tracker_restore(&bed->tracker, bed_pod(UID_A, "shipper-x", 1, IDS(ID_1)), &saved);
	for (int i = 0; i < 20; i++) {
		clock_manual_advance(&bed->clock, USEC_PER_SEC);
		oomwatch_look(&bed->tracker.oomwatch);
		bed_turn(bed);
	}
	struct workload *w = bed_workload(bed, "main");
	assert_int_equal(w->usage.oom_kills, 1);
	assert_int_equal(bed->urgent, 1);
	workload_estimate(w, bed->clock.wall_usec * NSEC_PER_USEC, &r, NULL);
	assert_true(r.amounts[BOUND_TARGET].value[RESOURCE_MEMORY] >= 80 << 20); /* 64 MiB × 1.25 */
	/* The status tells of the same kill later. */
	struct pod *pod = bed_pod(UID_A, "shipper-x", 1, IDS(ID_2));
	pod->container[0].last_terminated = (struct pod_terminated){.known = true,
		.reason = "OOMKilled",
		.container_id = ID_1,
		.finished_at_ns = bed->clock.wall_usec * NSEC_PER_USEC};
	tracker_pod(&bed->tracker, pod);
	assert_int_equal(w->usage.oom_kills, 1);
}

static void test_an_instance_that_nobody_names_is_told_by_elimination(void **state)
{
	struct bed *bed = *state;
	const char *old = "kubepods/burstable/pod" UID_A "/" ID_1;

	bed_make(bed, old);
	bed_make(bed, "kubepods/burstable/pod" UID_A "/" ID_3);
	bed_make(bed, "kubepods/burstable/pod" UID_A "/" SANDBOX);
	tracker_pod(&bed->tracker, bed_pod(UID_A, "shipper-x", 2, IDS(ID_1, ID_3)));
	struct live_container *pc = bed_live(bed, UID_A, "main");
	assert_int_equal(pc->pod->n_others, 1);
	/* The API server is away; the container is replaced. */
	char path[256];
	(void)snprintf(path, sizeof(path), "%s/%s", bed->path, old);
	assert_int_equal(nftw(path, bed_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	bed_make(bed, "kubepods/burstable/pod" UID_A "/" ID_2);
	pc->lost = true;
	bed->tracker.retry.fire(&bed->tracker);
	assert_int_equal(pc->state, CONTAINER_WAITING); /* its status is given time to say it */
	for (int i = 0; i < 30 && pc->state == CONTAINER_WAITING; i++) {
		clock_manual_advance(&bed->clock, pc->retry_usec - bed->clock.mono_usec);
		bed->tracker.retry.fire(&bed->tracker);
	}
	assert_int_equal(pc->state, CONTAINER_SAMPLED);
	assert_string_equal(pc->id, ID_2);
	assert_int_equal(bed->tracker.adopted, 1);
}

static void test_an_empty_cgroup_of_a_sandboxed_runtime_is_not_measurable(void **state)
{
	struct bed *bed = *state;

	bed_make(bed, "kubepods/burstable/pod" UID_A "/" ID_1);
	bed_put(bed, "kubepods/burstable/pod" UID_A "/" ID_1, "cgroup.events",
		"populated 0\nfrozen 0\n");
	tracker_pod(&bed->tracker, bed_pod(UID_A, "shipper-x", 1, IDS(ID_1)));
	struct live_container *pc = bed_live(bed, UID_A, "main");
	for (int i = 0; i < 40 && pc->state == CONTAINER_WAITING; i++) {
		clock_manual_advance(&bed->clock, pc->retry_usec - bed->clock.mono_usec);
		bed->tracker.retry.fire(&bed->tracker);
	}
	assert_int_equal(pc->state, CONTAINER_NOT_MEASURABLE);
	assert_false(usage_any(&bed_workload(bed, "main")->usage));
}

static void test_settings_of_a_pod_apply_and_bad_ones_are_said_once(void **state)
{
	struct bed *bed = *state;
	struct pod *pod = bed_pod(UID_A, "shipper-x", 1, IDS(ID_1));

	(void)snprintf(pod->recommender, sizeof(pod->recommender),
		"{\"recommendation-margin-fraction\": 0.5}");
	tracker_pod(&bed->tracker, pod);
	struct workload *w = bed_workload(bed, "main");
	assert_true(w->knobs->margin_fraction == 0.5);
	(void)snprintf(pod->recommender, sizeof(pod->recommender),
		"{\"recommendation-margin-fraction\": \"much\"}");
	tracker_pod(&bed->tracker, pod);
	tracker_pod(&bed->tracker, pod);
	assert_true(w->knobs->margin_fraction == 0.15);
	assert_non_null(w->knobs_error);
	assert_int_equal(bed->events.of_kind[EVENT_KIND_SETTINGS], 2);
}

static void test_a_restarted_agent_goes_on_where_it_was_without_the_api_server(void **state)
{
	struct bed *bed = *state;
	const char *cgroup = "kubepods/burstable/pod" UID_A "/" ID_1;
	struct saved saved = {
		.workloads = &bed->workloads, .tracker = &bed->tracker, .boot_id = "boot-1"};
	struct checkpoint_identity id = {STR("uid"), STR("machine")};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct checkpoint c;

	bed_make(bed, cgroup);
	tracker_pod(&bed->tracker, bed_pod(UID_A, "shipper-x", 1, IDS(ID_1)));
	for (unsigned int i = 1; i <= 30; i++) {
		clock_manual_advance(&bed->clock, 10 * USEC_PER_SEC);
		bed_numbers(bed, cgroup, 1000 + i * 500000, 30 << 20);
		bed->tracker.round.fire(&bed->tracker);
	}
	struct recommendation before, after;
	int64_t now = bed->clock.wall_usec * NSEC_PER_USEC;
	workload_estimate(bed_workload(bed, "main"), now, &before, NULL);
	checkpoint_begin(&b, &id, now);
	assert_int_equal(saved_write(&saved, &b), 0);
	assert_int_equal(checkpoint_finish(&b), 0);

	tracker_finish(&bed->tracker);
	(void)uv_run(&bed->loop.uv,
		UV_RUN_NOWAIT); /* its timers are closed before their memory is used again */
	struct knobs knobs = bed->workloads.knobs;
	workloads_finish(&bed->workloads);
	workloads_init(&bed->workloads, &knobs);
	bed_start(bed);
	assert_int_equal(checkpoint_read(buf_str(&b), &id, &c, NULL), CHECKPOINT_OK);
	assert_int_equal(saved_read_workloads(&saved, &c), 0);
	assert_int_equal(saved_read_pods(&saved, &c), 0);
	assert_int_equal(saved.n_workloads, 1);
	assert_int_equal(saved.n_pods, 1);
	assert_int_equal(saved.damaged, 0);
	workload_estimate(bed_workload(bed, "main"), now, &after, NULL);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(bed_live(bed, UID_A, "main")->state, CONTAINER_SAMPLED);
	assert_false(startup_running(&bed_workload(bed, "main")->usage.startup));
}

static void test_a_clock_that_is_set_takes_the_histories_along(void **state)
{
	struct bed *bed = *state;
	const char *cgroup = "kubepods/burstable/pod" UID_A "/" ID_1;

	bed_make(bed, cgroup);
	tracker_pod(&bed->tracker, bed_pod(UID_A, "shipper-x", 1, IDS(ID_1)));
	struct workload *w = bed_workload(bed, "main");
	for (unsigned int i = 1; i <= 60; i++) {
		clock_manual_advance(&bed->clock, 10 * USEC_PER_SEC);
		if (i == 30)
			bed->clock.wall_usec -=
				30 * 86400 * (int64_t)USEC_PER_SEC; /* a month back */
		bed_numbers(bed, cgroup, 1000 + i * 500000, 30 << 20);
		bed->tracker.round.fire(&bed->tracker);
	}
	assert_int_equal(
		w->usage.cpu_samples, 10); /* none was refused for being older than the last */
	assert_int_equal(bed->events.of_kind[EVENT_KIND_CLOCK], 1);
	assert_true(w->usage.cpu_last <= bed->clock.wall_usec * NSEC_PER_USEC);
}

static void test_hundreds_of_pods_come_and_go(void **state)
{
	struct bed *bed = *state;
	char uid[POD_UID_MAX];

	for (unsigned int i = 0; i < PODS_MAX + 5; i++) {
		(void)snprintf(uid, sizeof(uid), "%08x-0c1e-4b57-9a63-2f8f0f6d1b11", i);
		tracker_pod(&bed->tracker, bed_pod(uid, "shipper-x", 2, IDS("", "")));
	}
	assert_int_equal(bed->tracker.pods.n, PODS_MAX);
	assert_int_equal(bed->tracker.pods.refused, 5);
	tracker_begin(&bed->tracker);
	tracker_synced(&bed->tracker);
	assert_int_equal(bed->tracker.pods.n, 0);
	bed_turn(bed);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, bed_setup, bed_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_a_pod_is_found_measured_and_known_by_its_daemonset),
		TEST(test_pods_of_others_and_ended_ones_are_not_followed),
		TEST(test_a_cgroup_that_comes_late_is_waited_for),
		TEST(test_a_restarted_container_goes_on_with_the_same_history),
		TEST(test_a_recreated_pod_takes_the_history_over_and_the_old_one_stops_feeding_it),
		TEST(test_what_a_picture_does_not_show_is_gone),
		TEST(test_rounds_make_minutes_and_minutes_make_samples),
		TEST(test_an_oom_kill_told_by_the_status_counts_once_and_old_ones_do_not),
		TEST(test_a_kill_the_kernel_told_of_first_is_not_counted_again_from_the_status),
		TEST(test_a_kill_for_the_nodes_sake_is_counted_and_raises_nothing),
		TEST(test_a_kill_while_the_agent_was_away_raises_from_the_limit),
		TEST(test_an_instance_that_nobody_names_is_told_by_elimination),
		TEST(test_an_empty_cgroup_of_a_sandboxed_runtime_is_not_measurable),
		TEST(test_settings_of_a_pod_apply_and_bad_ones_are_said_once),
		TEST(test_a_restarted_agent_goes_on_where_it_was_without_the_api_server),
		TEST(test_a_clock_that_is_set_takes_the_histories_along),
		TEST(test_hundreds_of_pods_come_and_go),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
