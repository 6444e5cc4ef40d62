/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/histogram.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "rules/exp2.h"
#include "rules/instant.h"

/* A sample this many half-lives younger than the reference moves the reference. */
#define SHIFT_AFTER_HALF_LIVES 100

void histogram_init(struct histogram *h, const struct buckets *buckets, int64_t half_life_ns)
{
	*h = (struct histogram){
		.buckets = buckets,
		.half_life_ns = half_life_ns,
		.reference = TIME_NONE,
		.min = (uint16_t)(buckets->n - 1),
	};
}

bool histogram_empty(const struct histogram *h)
{
	return h->weight[h->min] < HISTOGRAM_EPSILON;
}

/* Narrows the range to buckets that are not empty. */
static void tighten(struct histogram *h)
{
	while (h->weight[h->min] < HISTOGRAM_EPSILON && h->min < h->buckets->n - 1)
		h->min++;
	while (h->weight[h->max] < HISTOGRAM_EPSILON && h->max > 0)
		h->max--;
}

static void scale(struct histogram *h, double factor)
{
	unsigned int i;

	for (i = h->min; i <= h->max; i++)
		h->weight[i] *= factor;
	h->total *= factor;
	tighten(h);
}

/* Moves the reference to (the multiple of the half-life nearest to) t. By powers of two, so nothing
 * is lost. */
static void shift(struct histogram *h, int64_t t)
{
	int64_t reference = instant_round(t, h->half_life_ns);
	double half_lives = floor(
		(double)instant_since(h->reference, reference) / (double)h->half_life_ns + 0.5);

	scale(h, ldexp(1.0, (int)fmax(fmin(half_lives, 4096), -4096)));
	h->reference = reference;
}

static double factor_at(struct histogram *h, int64_t t)
{
	int64_t span, since = instant_since(t, h->reference);

	if (__builtin_mul_overflow(h->half_life_ns, SHIFT_AFTER_HALF_LIVES, &span))
		span = INT64_MAX;
	if (since > span || h->reference == TIME_NONE) {
		shift(h, t);
		since = instant_since(t, h->reference);
	}
	return exp2_reference((double)since / (double)h->half_life_ns);
}

void histogram_add(struct histogram *h, double usage, double weight, int64_t t)
{
	unsigned int i = buckets_find(h->buckets, usage);
	double w = weight * factor_at(h, t);

	h->weight[i] += w;
	h->total += w;
	if (h->weight[i] >= HISTOGRAM_EPSILON) {
		if (i < h->min)
			h->min = (uint16_t)i;
		if (i > h->max)
			h->max = (uint16_t)i;
	}
}

/* What is left, or exactly nothing. */
static double less(double from, double weight)
{
	double rest = from - weight;

	return rest < HISTOGRAM_EPSILON ? 0 : rest;
}

void histogram_subtract(struct histogram *h, double usage, double weight, int64_t t)
{
	unsigned int i = buckets_find(h->buckets, usage);
	double w = weight * factor_at(h, t);

	h->total = less(h->total, w);
	h->weight[i] = less(h->weight[i], w);
	tighten(h);
}

int histogram_merge(struct histogram *h, struct histogram *o)
{
	unsigned int i;

	if (h->half_life_ns != o->half_life_ns || h->buckets->scheme != o->buckets->scheme ||
		h->buckets->resource != o->buckets->resource)
		return -EINVAL;
	if (o->reference < h->reference)
		shift(o, h->reference);
	else if (h->reference < o->reference)
		shift(h, o->reference);
	for (i = o->min; i <= o->max; i++)
		h->weight[i] += o->weight[i];
	h->total += o->total;
	if (o->min < h->min)
		h->min = o->min;
	if (o->max > h->max)
		h->max = o->max;
	return 0;
}

void histogram_percentiles(const struct histogram *h, const double *p, int64_t *ret, unsigned int n)
{
	double sum = 0, threshold[HISTOGRAM_SHARES_MAX];
	unsigned int open = n < HISTOGRAM_SHARES_MAX ? n : HISTOGRAM_SHARES_MAX;
	unsigned int which[HISTOGRAM_SHARES_MAX];

	for (unsigned int k = 0; k < open; k++) {
		ret[k] = histogram_empty(h) ? 0 : h->buckets->answer[h->max];
		threshold[k] = p[k] * h->total;
		which[k] = k;
	}
	for (unsigned int i = h->min; i < h->max && open > 0; i++) {
		sum += h->weight[i];
		for (unsigned int k = open; k-- > 0;) {
			if (!(sum >= threshold[k]))
				continue;
			ret[which[k]] = h->buckets->answer[i];
			open--;
			threshold[k] = threshold[open];
			which[k] = which[open];
		}
	}
}

int64_t histogram_percentile(const struct histogram *h, double p)
{
	int64_t answer;

	histogram_percentiles(h, &p, &answer, 1);
	return answer;
}

unsigned int histogram_nonzero(const struct histogram *h)
{
	unsigned int i, n = 0;

	for (i = 0; i < h->buckets->n; i++)
		n += h->weight[i] > 0;
	return n;
}

void histogram_quantise(const struct histogram *h, struct histogram_quantised *ret)
{
	double heaviest = 0, ratio;
	unsigned int i;

	*ret = (struct histogram_quantised){.reference = h->reference, .total = h->total};
	for (i = h->min; i <= h->max; i++)
		heaviest = fmax(heaviest, h->weight[i]);
	if (!(heaviest > 0))
		return;
	ratio = (double)HISTOGRAM_QUANTA / heaviest;
	for (i = h->min; i <= h->max; i++)
		ret->weight[i] = (uint32_t)floor(h->weight[i] * ratio + 0.5);
}

int histogram_unquantise(struct histogram *h, const struct histogram_quantised *q, struct err *e)
{
	uint64_t sum = 0;
	unsigned int i;
	double ratio;

	if (!(q->total >= 0) || isinf(q->total))
		return err_set(e, EINVAL, "total weight %g: expected a number that is not negative",
			q->total);
	for (i = 0; i < BUCKETS_MAX; i++) {
		if (q->weight[i] > 0 && i >= h->buckets->n)
			return err_set(e, EINVAL, "weight in bucket %u: the last bucket is %u", i,
				h->buckets->n - 1U);
		sum += q->weight[i];
	}
	h->reference = q->reference;
	if (sum == 0)
		return 0;
	ratio = q->total / (double)sum;
	for (i = 0; i < h->buckets->n; i++) {
		if (q->weight[i] == 0)
			continue;
		if (i < h->min)
			h->min = (uint16_t)i;
		if (i > h->max)
			h->max = (uint16_t)i;
		h->weight[i] += (double)q->weight[i] * ratio;
	}
	h->total += q->total;
	tighten(h);
	return 0;
}

void histogram_convert(struct histogram *to, const struct histogram *from, int64_t at)
{
	double factor;
	unsigned int i;

	if (histogram_empty(from))
		return;
	factor = exp2_reference(
		(double)instant_since(from->reference, at) / (double)from->half_life_ns);
	for (i = from->min; i <= from->max; i++) {
		/* Below its answer by less than any bucket's width: inside the bucket, near its
		 * top. */
		double usage = (double)from->buckets->answer[i] * (1 - 1e-9);

		if (from->weight[i] > 0)
			histogram_add(to, usage, from->weight[i] * factor, at);
	}
}
