/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the DaemonSet pods of this node. In: what a pod source says of pods, and the checkpoint.
 * Then, for each container: find its cgroup, sample it, watch it for OOM kills, and let the numbers
 * go to the history of its workload, whoever the pod is. Out: histories that are up to date, and a
 * call when something cannot wait. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/cgroup/cgfind.h"
#include "agent/pods/podtable.h"
#include "agent/sample/oomwatch.h"
#include "agent/sample/sampler.h"
#include "agent/state/events.h"
#include "agent/state/health.h"
#include "agent/state/workload.h"
#include "base/clock.h"
#include "base/loop.h"

#define TRACKER_DELAY_FIRST_USEC (100 * USEC_PER_MSEC) /* between looks for a cgroup */
#define TRACKER_DELAY_LAST_USEC (5 * USEC_PER_SEC)
#define TRACKER_PATIENCE_USEC \
	USEC_PER_MINUTE /* then it counts as not found, and is looked for this seldom */
#define TRACKER_LOOK_USEC USEC_PER_SEC /* between looks at the OOM counters, besides wake-ups */
#define TRACKER_STARTED_NS (INT64_C(600) * NSEC_PER_SEC) /* a container this young is starting */

struct tracker_options {
	uint64_t interval_usec;
	/* OOM kills that ended before were seen by an earlier run, or are nobody's business: wall
	 * time. */
	int64_t since_ns;
	const char *unsupported; /* why this node cannot be measured; NULL: it can */
	/* A workload has something that cannot wait to be published, or its first value. */
	void (*urgent)(void *arg, struct workload *w);
	/* A whole picture of the pods was seen, for the first time or again. */
	void (*synced)(void *arg);
	void *arg;
};

struct tracker {
	struct loop *loop;
	const struct clock *clock;
	struct workloads *workloads; /* not owned */
	struct events *events;       /* not owned */
	struct tracker_options options;
	int root_fd; /* not owned */
	struct cgfind find;
	struct sampler sampler;
	struct oomwatch oomwatch;
	struct podtable pods;
	struct loop_timer round, fast, look, retry;
	uint64_t round_due_usec; /* monotonic */
	bool synced;             /* a whole picture was seen */
	uint64_t adopted;        /* containers told by elimination */
	uint64_t unseen_kills;   /* OOM kills of containers that were never measured */
};

/* root_fd (O_PATH of the cgroup root; -1 with options->unsupported), clock, workloads and events
 * must outlive t. Sampling starts with the loop. */
int tracker_init(struct tracker *t, struct loop *loop, const struct clock *clock, int root_fd,
	struct workloads *workloads, struct events *events, const struct tracker_options *options,
	struct err *e);
/* Closes the running windows into the histories first. Before loop_finish. */
void tracker_finish(struct tracker *t);

/* A full picture begins; ends; and in it, or afterwards: a pod as it is now. Pods that are not of a
 * DaemonSet, or that have ended, are forgotten if they were known. */
void tracker_begin(struct tracker *t);
void tracker_synced(struct tracker *t);
void tracker_pod(struct tracker *t, const struct pod *pod);
void tracker_pod_gone(struct tracker *t, const char *uid);

/* A pod as the checkpoint knows it, with what an earlier run had dealt with. */
struct pod_saved {
	uint64_t explained;                 /* of the pod's oom_kill; OOM_KILLS_UNKNOWN */
	uint64_t kills[POD_CONTAINERS_MAX]; /* of each container's, in the order of the pod */
	char charged_id[POD_CONTAINERS_MAX][POD_ID_MAX];
};
void tracker_restore(struct tracker *t, const struct pod *pod, const struct pod_saved *saved);

/* For the endpoint. */
void tracker_each(const struct tracker *t,
	int (*fn)(void *arg, const struct container_entry *entry), void *arg);
/* How many containers there are, and how many of these are being sampled. */
void tracker_count(
	const struct tracker *t, unsigned int *ret_containers, unsigned int *ret_sampled);
