/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent remembers, per (namespace, DaemonSet, container): the history of what that
 * container needed on this node, whoever the pod was, and what was told about it. It outlives pods,
 * containers, the agent and reboots (agent/state/store.h). One table per agent; a few kilobytes per
 * workload. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/state/history.h"
#include "base/err.h"
#include "base/str.h"
#include "proto/pod.h"
#include "rules/coverage.h"
#include "rules/estimator.h"
#include "rules/knobs.h"
#include "rules/publish.h"
#include "rules/usage.h"

#define NAME_MAX_BYTES 254U /* an object's name: a DNS subdomain, with its NUL */
#define LABEL_MAX_BYTES 64U /* a namespace's or container's name: a DNS label, with its NUL */
#define WORKLOADS_MAX 1024U /* at once; beyond it the newest are left out and said to be */

struct workload {
	struct workload *next; /* in order of namespace, DaemonSet, container */
	char namespace[LABEL_MAX_BYTES];
	char daemonset[NAME_MAX_BYTES];
	char container[LABEL_MAX_BYTES];

	struct usage_history usage;
	struct coverage coverage;    /* how often usage was within what was published */
	struct publish_item publish; /* what was published, and what waits to be */
	struct history history;      /* the last day, to be looked at; not saved */

	/* The estimator's settings: the agent's, or those with the pod's annotation
	 * pernode.io/recommender on top. knobs_text is that annotation as it was last applied (""
	 * for none), knobs_error why it was not usable. */
	const struct knobs *knobs; /* &own_knobs or the table's */
	struct knobs own_knobs;
	char *knobs_text;
	char *knobs_error;

	/* Who is this workload now; all empty when no pod of it is here. */
	char pod[NAME_MAX_BYTES];
	char pod_uid[LABEL_MAX_BYTES];
	char container_id[POD_ID_MAX];  /* the instance that gave the newest sample */
	char revision[LABEL_MAX_BYTES]; /* label controller-revision-hash of the pod of the newest
					   sample */
	unsigned int containers;        /* of that pod, for splitting a pod's minimum; at least 1 */
	int64_t request_millicores, request_bytes; /* -1: none */
	int64_t seen_at_ns; /* wall time at which a pod of it was last here */
	bool here;
	bool seeded; /* history is only what this Node's own annotations said: low confidence */
};

struct workloads {
	struct workload *first;
	unsigned int n;
	uint64_t refused; /* over WORKLOADS_MAX, or no memory */
	struct model model;
	struct knobs knobs; /* the agent's own */
};

/* knobs are resolved (knobs_resolve). */
void workloads_init(struct workloads *t, const struct knobs *knobs);
void workloads_finish(struct workloads *t);

struct workload *workloads_find(const struct workloads *t, struct str namespace,
	struct str daemonset, struct str container);
/* Finds or makes one. -EINVAL: a name that is none; -ENOSPC: WORKLOADS_MAX; -ENOMEM. */
int workloads_get(struct workloads *t, struct str namespace, struct str daemonset,
	struct str container, struct workload **ret, struct err *e);
void workloads_remove(struct workloads *t, struct workload *w);
/* Removes those that were not here for longer than retention (model.retention_ns), and returns how
 * many. now is wall time in ns. */
unsigned int workloads_expire(struct workloads *t, int64_t now_ns);

/* Applies the pod annotation pernode.io/recommender (empty: none) when it changed. 0, or -EINVAL:
 * unusable; it is kept in knobs_error, and the agent's own settings hold. */
int workload_set_knobs(struct workloads *t, struct workload *w, struct str json, struct err *e);

/* The recommendation as of now. explain may be NULL. */
void workload_estimate(const struct workload *w, int64_t now_ns, struct recommendation *ret,
	struct explain *explain);

/* learning: too little seen to say anything; ready: worth publishing. */
static inline bool workload_ready(const struct workload *w)
{
	return estimate_ready(&w->usage) || w->seeded;
}
