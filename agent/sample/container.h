/* SPDX-License-Identifier: Apache-2.0 */
/* One container (or, for observe, any cgroup) that is measured: what was last read and what the
 * running window has so far. Its memory belongs to whoever found it; the sampler only links it. */
#pragma once

#include "agent/cgroup/cgleaf.h"
#include "rules/ahead.h"
#include "rules/oomclass.h"
#include "rules/usage.h"

/* A cumulative counter's step, judged. */
enum step {
	STEP_OK,
	STEP_FIRST,      /* nothing to compare with */
	STEP_BACKWARDS,  /* less than before: another cgroup's, or the kernel's fault; start anew */
	STEP_IMPOSSIBLE, /* more CPU time than all CPUs had: start anew */
};
/* CPU time used between two readings, elapsed_usec apart on a machine with n_cpus. The kernel
 * accounts in batches, so a tenth and 100 ms above the possible are let pass. */
enum step cpu_step(uint64_t before_usec, uint64_t after_usec, uint64_t elapsed_usec,
	unsigned int n_cpus, uint64_t *ret_used_usec);

struct cpu_window {
	bool open;
	uint64_t start_usec; /* monotonic */
	uint64_t start_usage_usec;
	bool throttle_known; /* nr_… below were read at the window's start */
	uint64_t nr_periods, nr_throttled, throttled_usec;
};

struct container {
	struct container *next; /* the sampler's */
	void *owner;
	struct cgleaf leaf;
	/* Where the history goes; NULL while it is not known whose cgroup this is: readings are
	 * then held in the running window and held_peak_bytes, and count once container_attach says
	 * whose it is. */
	struct usage_history *usage;
	const struct knobs *knobs; /* of the estimator for this history; NULL with it */

	struct cpu_window window;
	bool cpu_known; /* last_usec and last_usage_usec hold a reading */
	uint64_t last_usec, last_usage_usec;

	/* For people. */
	struct cgleaf_sample sample; /* the last one, outcomes included */
	struct cgleaf_limits limits;
	uint64_t read_usec; /* monotonic time of the last round; 0: never */
	bool millicores_known, working_set_known;
	double millicores; /* over the last interval */
	uint64_t working_set_bytes;
	uint64_t last_working_set_bytes; /* the last that was known; stays when it is gone */
	uint64_t held_peak_bytes;
	double throttled_fraction; /* of the last closed window's periods; NAN: no quota */
	bool throttled;            /* that was enough to count for more than its usage */
	uint64_t limits_usec;      /* when limits were read; 0: never */

	uint64_t rounds;     /* with a CPU or memory reading */
	uint64_t backwards;  /* STEP_BACKWARDS seen */
	uint64_t impossible; /* STEP_IMPOSSIBLE seen */
	uint64_t failed;     /* files that could not be read, other than gone */
	double activity; /* decaying mean of millicores: who keeps held files when they are short */
	struct ahead ahead;
	bool fast; /* its memory is looked at every second */
	bool gone;
};

/* Everything zero but the leaf, which is taken over (cgleaf_finish it later). */
void container_init(struct container *c, const struct cgleaf *leaf, struct usage_history *usage,
	const struct knobs *knobs);
/* It is known now whose cgroup this is: what was held counts. */
void container_attach(
	struct container *c, struct usage_history *usage, const struct knobs *knobs, int64_t t_ns);

/* The least memory.max over its levels, as last read. False: none, or not known. */
bool container_memory_limit(const struct container *c, uint64_t *ret_bytes);
/* Working set / limit, for comparing containers. */
double container_fullness(const struct container *c);

/* Records an OOM kill in its history: a kill at its own or its pod's limit raises what it needs,
 * from the real limit and peak at the kill; one for the node's sake only counts (profile vpa raises
 * for all, as upstream does). request_bytes: -1 when there is none. */
void container_oom(struct container *c, struct cgio *io, enum oom_class class, bool vanished,
	int64_t t_ns, int64_t request_bytes);
