/* SPDX-License-Identifier: Apache-2.0 */
/* Every setting of the estimator, under the reference's flag names, units and defaults. The two
 * profiles differ in defaults only; what differs in behaviour is told apart by knobs.profile. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/flags.h"
#include "base/str.h"
#include "rules/amount.h"

enum profile {
	PROFILE_FINE, /* made for daemons: the default */
	PROFILE_VPA,  /* equal to the reference recommender to the last bit */
};

enum bound { BOUND_TARGET, BOUND_LOWER, BOUND_UPPER, BOUNDS };

struct knobs {
	int profile; /* enum profile */

	/* Estimate. These may also be set per DaemonSet (knobs_override). */
	double percentile[BOUNDS][RESOURCES]; /* 0…1 */
	double margin_fraction;
	int64_t confidence_interval_ns[RESOURCES];
	double pod_min_cpu_millicores;    /* split evenly over the pod's containers */
	double pod_min_memory_mb;         /* MiB, likewise */
	int64_t container_min[RESOURCES]; /* floor of each container */
	double oom_bump_up_ratio;
	double oom_min_bump_up_bytes;

	/* Shape of the stored history: per program. */
	int64_t memory_aggregation_interval_ns;
	int64_t memory_aggregation_interval_count;
	int64_t half_life_ns[RESOURCES];

	/* Output. */
	int64_t round_cpu_millicores, round_memory_bytes; /* step; 1: none */
	bool humanize_memory;
	bool integer_cpu;               /* whole cores, rounded up */
	int64_t max_allowed[RESOURCES]; /* < 0: unset */

	/* What the reference does not have; without effect in profile vpa. */
	bool throttling_demand;
	bool ahead_of_oom;
};

/* Everything "not given". Then let flags_parse fill in what was given, then knobs_resolve the rest.
 */
void knobs_unset(struct knobs *k);
/* Gives every setting that is still unset its profile's default and checks what no single flag's
 * range can. -EINVAL with the reason in e. */
int knobs_resolve(struct knobs *k, struct err *e);
/* A profile's defaults: unset and resolve in one. */
void knobs_defaults(struct knobs *k, enum profile profile);

/* For flags_parse, relative to a struct that starts with (or is) a struct knobs at offset 0.
 * Includes --profile. */
extern const struct flag knobs_flags[];

/* The settings of one DaemonSet, from the JSON of its pods' annotation pernode.io/recommender: an
 * object whose members are flag names of the first group above (percentiles, margin, confidence,
 * floors, bump) with the values the flags take (numbers may be JSON numbers or strings). *ret is
 * base with those changed. -EINVAL: unusable, with the reason in e and *ret untouched; the caller
 * reports it and goes on with base. */
int knobs_override(const struct knobs *base, struct str json, struct knobs *ret, struct err *e);
