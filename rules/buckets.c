/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/buckets.h"

#include <math.h>

/* What the schemes are made of: width of the first bucket, and the usage that must still lie below
 * the start of the last one. */
static const struct {
	double first, top;
} shapes[][RESOURCES] = {
	[BUCKETS_VPA] = {{10, 1e6}, {1e7, 1e12}},
	[BUCKETS_FINE] = {{1, 1e6}, {1048576, 1e12}},
};

/* The reference computes its edges in doubles. Only these three memory buckets feel it: their
 * edges, whole numbers when computed exactly, come out a hair beside. */
static void repeat_reference_artefacts(struct buckets *b)
{
	b->answer[1] = 20499999;
	b->answer[2] = 31524999;
	b->answer[3] = 43101249;
	b->from[2] = 20500001;
	b->from[3] = 31525001;
}

static void fill_slots(struct buckets *b)
{
	unsigned int i, bucket = 0;

	for (i = 0; i <= BUCKETS_SLOTS; i++) {
		double smallest = ldexp(1.0 + (double)(i % 16) / 16.0, (int)(i / 16));

		while (smallest >= b->from[bucket + 1])
			bucket++;
		b->slot[i] = (uint8_t)bucket;
	}
}

void buckets_init(struct buckets *b, enum bucket_scheme scheme, enum resource resource)
{
	long double start = 0, first = shapes[scheme][resource].first;
	unsigned int n = 0;

	*b = (struct buckets){.scheme = scheme, .resource = resource};
	for (;;) {
		/* Whole samples only in the reference's scheme, so an edge may be any number in its
		 * gap: the next whole one. */
		b->from[n] = scheme == BUCKETS_VPA ? (double)ceill(start) : (double)start;
		if (start >= shapes[scheme][resource].top)
			break;
		/* Multiplied before it is divided: exact where the edges are whole numbers. */
		start = start * 21 / 20 + first;
		b->answer[n] = (int64_t)(scheme == BUCKETS_VPA ? floorl(start) : ceill(start));
		n++;
	}
	/* The last bucket has no upper edge: its start answers. */
	b->answer[n] = (int64_t)(scheme == BUCKETS_VPA ? floorl(start) : ceill(start));
	b->n = (uint16_t)(n + 1);
	b->from[n + 1] = NAN;
	if (scheme == BUCKETS_VPA && resource == RESOURCE_MEMORY)
		repeat_reference_artefacts(b);
	fill_slots(b);
}
