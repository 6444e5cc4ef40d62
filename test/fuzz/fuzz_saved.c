/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as what a whole checkpoint holds: what cannot be used is left out, and with the rest
 * the agent can go on: estimate, judge what to publish, save it again. */
#include <stdint.h>
#include <stdlib.h>

#include "agent/publish/publisher.h"
#include "agent/saved.h"
#include "base/log.h"

#define NOW_NS (INT64_C(1800000000) * INSTANT_SECOND)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void no_log(const char *line, size_t n, void *arg)
{
}

static void go_on(const struct workloads *workloads)
{
	for (const struct workload *w = workloads->first; w; w = w->next) {
		struct publish_facts facts;

		publisher_facts(workloads, w, NOW_NS, USEC_PER_DAY, &facts);
		(void)publish_judge(&w->publish, &facts, NOW_NS, NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct checkpoint_identity nobody = {0};
	_cleanup_buf_ struct buf b = BUF_INIT(1U << 20), again = BUF_INIT(8U << 20);
	struct workloads workloads;
	struct tracker tracker = {0};
	struct knobs knobs;
	struct checkpoint c;
	struct saved saved = {.workloads = &workloads, .tracker = &tracker};
	struct err e;

	log_to(no_log, NULL);
	knobs_defaults(&knobs, size % 2 ? PROFILE_FINE : PROFILE_VPA);
	workloads_init(&workloads, &knobs);
	checkpoint_begin(&b, &nobody, 0);
	(void)buf_append(&b, data, size);
	if (checkpoint_finish(&b) == 0 &&
		checkpoint_read(buf_str(&b), &nobody, &c, &e) == CHECKPOINT_OK &&
		saved_read_workloads(&saved, &c) >= 0) {
		go_on(&workloads);
		if (saved_write(&saved, &again) < 0)
			abort();
	}
	workloads_finish(&workloads);
	return 0;
}
