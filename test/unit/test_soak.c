/* SPDX-License-Identifier: Apache-2.0 */
/* What only shows after a long time. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "helper_bed.h"

/* A week of a full node at one round a minute: what is held after the first day is what is held at
 * the end. */
#define SOAK_PODS 30
static void test_a_week_needs_no_more_memory_than_a_day(void **state)
{
	struct bed *bed = *state;
	struct saved saved = {
		.workloads = &bed->workloads, .tracker = &bed->tracker, .boot_id = "boot-1"};
	char uid[SOAK_PODS][POD_UID_MAX], id[SOAK_PODS][POD_ID_MAX], cgroup[256];
	size_t after_a_day = 0, saved_after_a_day = 0;

	bed->tracker.options.interval_usec = bed->tracker.sampler.interval_usec = USEC_PER_MINUTE;
	for (unsigned int i = 0; i < SOAK_PODS; i++) {
		(void)snprintf(uid[i], sizeof(uid[i]), "%08x-0c1e-4b57-9a63-2f8f0f6d1b11", i);
		(void)snprintf(id[i], sizeof(id[i]), "%064x", i + 1);
		(void)snprintf(
			cgroup, sizeof(cgroup), "kubepods/burstable/pod%s/%s", uid[i], id[i]);
		bed_make(bed, cgroup);
		struct pod *pod = bed_pod(uid[i], "shipper-x", 1, IDS(id[i]));
		(void)snprintf(pod->daemonset, sizeof(pod->daemonset), "shipper-%u", i);
		tracker_pod(&bed->tracker, pod);
	}
	for (unsigned int minute = 1; minute <= 7 * 1440; minute++) {
		unsigned int i =
			minute % SOAK_PODS; /* one of them does something, the others idle */
		clock_manual_advance(&bed->clock, USEC_PER_MINUTE);
		(void)snprintf(
			cgroup, sizeof(cgroup), "kubepods/burstable/pod%s/%s", uid[i], id[i]);
		bed_numbers(bed, cgroup, 1000 + minute * 400000, (20U + minute % 50) << 20);
		bed->tracker.round.fire(&bed->tracker);
		if (minute == 1440 || minute == 7 * 1440) {
			_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
			assert_int_equal(saved_write(&saved, &b), 0);
			size_t held = mallinfo2().uordblks;
			after_a_day = after_a_day ? after_a_day : held;
			saved_after_a_day = saved_after_a_day ? saved_after_a_day : b.n;
			assert_int_equal(held, after_a_day);
			assert_true(b.n < saved_after_a_day * 2); /* it holds more buckets, and no
								     more than all of them */
		}
	}
	assert_int_equal(bed->workloads.n, SOAK_PODS);
	for (const struct workload *w = bed->workloads.first; w; w = w->next)
		assert_true(w->usage.cpu_samples >= 7 * 1440 - 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_week_needs_no_more_memory_than_a_day, bed_setup, bed_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
