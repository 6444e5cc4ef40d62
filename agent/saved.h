/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint holds: every workload with its history, what was published, and the live pods,
 * so that an agent that starts while the API server is away goes on where it was. */
#pragma once

#include "agent/pods/tracker.h"
#include "base/buf.h"
#include "proto/checkpoint.h"

struct saved {
	struct workloads *workloads;
	struct tracker *tracker;
	char boot_id[64]; /* of this boot: kernel counters of another one say nothing */
	/* Set by saved_read. */
	char node_uid[64], machine[64]; /* whose state it was */
	unsigned int n_workloads, n_pods;
	unsigned int damaged; /* parts that could not be used; the others were */
	bool converted;       /* other buckets or half-lives than now */
};

/* For store_save and store_load (arg is a struct saved). Reading is in two steps, since the tracker
 * wants to know when the state was saved before it hears of pods: workloads first, then the pods.
 */
int saved_write(void *arg, struct buf *b);
int saved_read_workloads(void *arg, const struct checkpoint *c);
int saved_read_pods(void *arg, const struct checkpoint *c);
