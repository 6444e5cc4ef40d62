/* SPDX-License-Identifier: Apache-2.0 */
/* What is remembered of one key (namespace, DaemonSet, container on this node): CPU samples, memory
 * peaks per aggregation interval, OOM kills. No allocation; about 4 KB. Times are Unix ns. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "proto/checkpoint.h"
#include "rules/histogram.h"
#include "rules/model.h"
#include "rules/startup.h"

/* The highest memory of the running aggregation interval. */
struct memory_window {
	int64_t last;     /* latest memory sample; TIME_NONE before any */
	int64_t end;      /* of the interval, and the instant at which its peak is stored; TIME_NONE
			     before any */
	int64_t peak;     /* highest sample */
	int64_t oom_peak; /* highest value derived from an OOM */
	bool has_peak;    /* one of the two is in the histogram (profile fine; the reference takes 0
			     for "none") */
};

/* The memory with which this container is known to have been killed, or to have been about to be:
 * the lower bound is held above it, and the target at its bumped value, for the model's retention.
 */
struct memory_floor {
	int64_t used; /* bytes; 0: none */
	int64_t at;
};

struct usage_history {
	const struct model *model; /* not owned */
	struct histogram histogram[RESOURCES];

	int64_t cpu_first, cpu_last; /* of the counted CPU samples; TIME_NONE before any */
	int64_t cpu_samples;         /* ever counted */
	double cpu_minutes; /* what they stand for; equals cpu_samples where each is a minute's mean
			     */
	int64_t cpu_container_last; /* order check; differs from cpu_last after usage_pod_gone
				       (profile vpa) */

	int64_t memory_first, memory_last; /* TIME_NONE before any */
	int64_t memory_samples;
	int64_t memory_minutes; /* with at least one reading */
	struct memory_window window;

	int64_t oom_kills; /* incidents */
	int64_t oom_last;  /* TIME_NONE */
	struct memory_floor floor;
	int64_t ahead_last; /* last early warning; TIME_NONE */
	int64_t throttled_minutes;

	struct startup startup;
};

/* model must outlive u. */
void usage_init(struct usage_history *u, const struct model *model);
/* True once something was counted. */
bool usage_any(const struct usage_history *u);

/* A new container instance took over the key at t. Profile fine: CPU samples of its first minutes
 * are kept apart (rules/startup.h). */
void usage_restart(struct usage_history *u, int64_t t);
/* The pod is gone, or another one took over. Profile vpa: the peak window and the order checks
 * begin anew, as they belong to a pod upstream. */
void usage_pod_gone(struct usage_history *u);

/* One CPU sample: the mean over some time that ends at t, in millicores. minutes is what it stands
 * for (1 for a minute's mean; the weight and the confidence scale with it). Profile vpa cuts
 * fractions off. 0: counted (or kept apart as start-up). -EEXIST: same time as the last one, to be
 * ignored silently. -ESTALE: older than the last one. -EINVAL: negative or not a number. */
int usage_add_cpu(struct usage_history *u, int64_t t, double millicores, double minutes);

/* One memory reading (working set) in bytes. 0, -ESTALE: older than the last one (an equal time is
 * taken), -EINVAL: negative. */
int usage_add_memory(struct usage_history *u, int64_t t, int64_t bytes);

/* An OOM kill at t of a container that had, or was allowed, bytes (the larger of limit, request and
 * peak as far as they are known; 0 or less: nothing is known, the recent peak counts). One incident
 * per call. k: how much to bump. -ESTALE: more than an aggregation interval older than the last
 * memory reading, ignored. */
int usage_record_oom(struct usage_history *u, const struct knobs *k, int64_t t, int64_t bytes);
/* An OOM kill that says nothing about this container's needs (the node ran out): counted only. */
void usage_count_oom(struct usage_history *u, int64_t t);
/* The memory is about to reach its limit: raises like an OOM at that limit, without counting one.
 */
int usage_record_ahead(
	struct usage_history *u, const struct knobs *k, int64_t t, int64_t limit_bytes);

/* The bumped value for a kill at used bytes: max(used + min bump, used × ratio). */
int64_t usage_bump(const struct knobs *k, int64_t used);
/* The smallest memory that the buckets can tell to be more than used. */
int64_t usage_above(const struct model *m, int64_t used);
/* The highest memory of the running interval (usage or OOM-derived), 0 when none. */
int64_t usage_recent_peak(const struct usage_history *u);

/* The wall clock was set by by_ns: everything that is remembered moves along, so that it stays as
 * long ago as it was. */
void usage_shift(struct usage_history *u, int64_t by_ns);

/* Adds o to u: histograms, first and last, counts. The windows are u's. o may be rescaled. */
int usage_merge(struct usage_history *u, struct usage_history *o);

/* Our own checkpoint of one key, as content of a chunk (proto/checkpoint.h): exact, at most
 * USAGE_SAVED_MAX bytes; an error stays in the buffer. */
#define USAGE_SAVED_MAX 8192U
void usage_save(const struct usage_history *u, struct buf *b);
/* Into a freshly initialised u; c is left behind what was read. What was kept with other buckets,
 * half-lives or another interval than the model's is converted (*ret_converted says so; may be
 * NULL). -EINVAL: damaged, with the reason in e; u is then as after usage_init. */
int usage_load(
	struct usage_history *u, struct checkpoint_cursor *c, bool *ret_converted, struct err *e);

/* The checkpoint as the reference keeps it: quantised, whole seconds, without the running
 * interval's peak when drop_peak and that interval is not over at now. */
struct usage_quantised {
	struct histogram_quantised histogram[RESOURCES];
	int64_t first, last; /* of CPU samples; TIME_NONE */
	int64_t samples;
};
void usage_quantise(
	const struct usage_history *u, bool drop_peak, int64_t now, struct usage_quantised *ret);
int usage_unquantise(struct usage_history *u, const struct usage_quantised *q, struct err *e);
