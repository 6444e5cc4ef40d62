/* SPDX-License-Identifier: Apache-2.0 */
/* The score that pernode keeps of itself: for how much of the time usage was within the published
 * target, and within the pod's real request. Kept even while nothing is applied, so that one can
 * see how good the numbers would have been. Two sums per line and resource: exact and of fixed size
 * however long it runs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "rules/amount.h"

/* A reading stands for at most so long: what happened in a longer gap is not known. */
#define COVERAGE_GAP_MAX_USEC UINT64_C(300000000)

enum coverage_line {
	COVERAGE_TARGET,  /* the published target */
	COVERAGE_REQUEST, /* the pod's real request */
	COVERAGE_LINES,
};

struct coverage_sum {
	uint64_t counted_usec; /* with both usage and the line known */
	uint64_t above_usec;   /* thereof, with usage above the line */
};

struct coverage {
	struct coverage_sum sum[COVERAGE_LINES][RESOURCES];
};

void coverage_init(struct coverage *c);

/* Usage of one resource over the duration_usec that end now: the mean for CPU, the working set for
 * memory. Nothing is counted where usage is negative or not a number, or the line is not known.
 * Usage equal to the line is within it. */
void coverage_add(struct coverage *c, enum resource resource, uint64_t duration_usec, double usage,
	const struct amounts *published_target, const struct amounts *request);

/* Share of the counted time within the line, 0…1; NAN when nothing was counted. */
double coverage_share(const struct coverage *c, enum coverage_line line, enum resource resource);
/* The same as it is told: three decimals, cut, so that 1 means always and 0.999 almost. */
double coverage_share_rounded(
	const struct coverage *c, enum coverage_line line, enum resource resource);
/* Counted time above the line, in seconds. */
double coverage_above_seconds(
	const struct coverage *c, enum coverage_line line, enum resource resource);

/* For the checkpoint. At most COVERAGE_SAVED_MAX bytes are appended to b. */
#define COVERAGE_SAVED_MAX 128U
int coverage_save(const struct coverage *c, struct buf *b);
/* -EINVAL: damaged, with the reason in e; c is then as after coverage_init. */
int coverage_load(struct coverage *c, struct str saved, struct err *e);
