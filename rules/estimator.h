/* SPDX-License-Identifier: Apache-2.0 */
/* From history to target and bounds, each step open to inspection. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rules/amount.h"
#include "rules/knobs.h"
#include "rules/usage.h"

/* amounts[BOUND_TARGET], [BOUND_LOWER], [BOUND_UPPER]. What is not known (never measured; a bound
 * without confidence) is marked so; profile vpa knows everything: it gives the minimum, as the
 * reference does. */
struct recommendation {
	struct amounts amounts[BOUNDS];
};

enum explain_stage {
	EXPLAIN_PERCENTILE, /* factor: p;          amount: what the histogram answers */
	EXPLAIN_MARGIN,     /* factor: fraction */
	EXPLAIN_CONFIDENCE, /* factor: multiplier */
	EXPLAIN_OOM_FLOOR,  /* amount after holding it above what an OOM or a warning showed to be
			       too little */
	EXPLAIN_MINIMUM,    /* amount after the floor */
	EXPLAIN_ROUNDING,   /* amount after the rounding step */
	EXPLAIN_MAXIMUM,    /* amount after --container-recommendation-max-allowed-… */
	EXPLAIN_STAGES
};
/* "percentile", "margin", … */
const char *explain_stage_name(enum explain_stage stage);

struct explain_step {
	enum bound bound;
	enum resource resource;
	enum explain_stage stage;
	double factor; /* NAN where the stage has none */
	int64_t amount;
	bool changed; /* the stage made a difference */
};

#define EXPLAIN_STEPS_MAX (BOUNDS * RESOURCES * EXPLAIN_STAGES)

struct explain {
	double confidence[RESOURCES];
	uint32_t n;
	struct explain_step steps[EXPLAIN_STEPS_MAX];
};

/* now only decides whether what an OOM taught is still held (profile fine); a replay passes the
 * time of its last row. n_containers ≥ 1: over how many the pod's minimum is split. explain may be
 * NULL. */
void estimate(const struct usage_history *u, const struct knobs *k, unsigned int n_containers,
	int64_t now, struct recommendation *ret, struct explain *explain);

/* A value is worth telling: two CPU samples, or an OOM. */
bool estimate_ready(const struct usage_history *u);
