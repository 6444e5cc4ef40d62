/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram whose past fades: a sample's weight is doubled for each half-life that it is younger
 * than the reference instant, so nothing has to be touched as time goes by, and percentiles do not
 * depend on "now". No allocation. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "rules/buckets.h"

/* The weight below which a bucket counts as empty. */
#define HISTOGRAM_EPSILON (0.001 * 0.1)
/* The weight of the heaviest bucket in a quantised checkpoint. */
#define HISTOGRAM_QUANTA 10000U

struct histogram {
	const struct buckets *buckets; /* not owned */
	int64_t half_life_ns;
	int64_t reference; /* TIME_NONE before the first sample */
	double total;
	uint16_t min, max; /* first and last bucket that is not empty; buckets->n − 1 and 0 when all
			      are */
	double weight[BUCKETS_MAX];
};

/* half_life_ns > 0. buckets must outlive h. */
void histogram_init(struct histogram *h, const struct buckets *buckets, int64_t half_life_ns);
bool histogram_empty(const struct histogram *h);

/* usage in amounts (millicores or bytes, fractions allowed), weight ≥ 0, t an instant. */
void histogram_add(struct histogram *h, double usage, double weight, int64_t t);
/* Takes a sample back: same usage, weight and instant as it was added with. */
void histogram_subtract(struct histogram *h, double usage, double weight, int64_t t);
/* Adds o to h. Same buckets and half-life: -EINVAL otherwise. The older one is first brought to the
 * younger's reference, so o may be rescaled (without changing what it says). */
int histogram_merge(struct histogram *h, struct histogram *o);
/* The amount that the share p (0…1) of the weight does not exceed: the upper edge of the bucket
 * where that share is reached. 0 when empty. */
int64_t histogram_percentile(const struct histogram *h, double p);
/* The same for n shares at once, in one pass; n <= HISTOGRAM_SHARES_MAX. */
#define HISTOGRAM_SHARES_MAX 8U
void histogram_percentiles(
	const struct histogram *h, const double *p, int64_t *ret, unsigned int n);
unsigned int histogram_nonzero(const struct histogram *h);

/* The quantised form of a checkpoint as the reference keeps it: whole numbers relative to the
 * heaviest bucket. */
struct histogram_quantised {
	int64_t reference;
	double total;
	uint32_t weight[BUCKETS_MAX]; /* 0: not stored */
};
void histogram_quantise(const struct histogram *h, struct histogram_quantised *ret);
/* Adds to h (empty as a rule). -EINVAL with the reason in e, h untouched: total below zero or not a
 * number, or a weight in a bucket that the scheme does not have. */
int histogram_unquantise(struct histogram *h, const struct histogram_quantised *q, struct err *e);

/* Moves what from holds into to, which may have other buckets and another half-life: each bucket's
 * weight goes where its answer falls, as it weighs at the instant at. to must be freshly
 * initialised. */
void histogram_convert(struct histogram *to, const struct histogram *from, int64_t at);
