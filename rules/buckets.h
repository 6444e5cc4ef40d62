/* SPDX-License-Identifier: Apache-2.0 */
/* Bucket schemes: which bucket a usage falls into, and which amount answers for a bucket. Bucket n
 * is first·ratio^n wide and starts at first·(ratio^n − 1)/(ratio − 1); the last one is open to the
 * top. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "rules/amount.h"

#define BUCKETS_MAX 224U
#define BUCKETS_RATIO 1.05

enum bucket_scheme {
	BUCKETS_VPA,  /* the reference's: from 10 millicores or 10^7 bytes, 176 buckets, bit for bit
		       */
	BUCKETS_FINE, /* from 1 millicore or 1 MiB: small daemons are told apart */
};

/* Slots of the look-up from a usage's leading bits to its bucket: 16 per power of two, up to 2^41.
 */
#define BUCKETS_OCTAVES 41U
#define BUCKETS_SLOTS (16U * BUCKETS_OCTAVES)

struct buckets {
	enum bucket_scheme scheme;
	enum resource resource;
	uint16_t n;
	double from[BUCKETS_MAX +
		    1]; /* smallest usage in the bucket (amounts); [n] is NaN: out of reach */
	int64_t answer[BUCKETS_MAX]; /* what a percentile that ends in the bucket says: its upper
					edge */
	uint8_t slot[BUCKETS_SLOTS + 1]; /* the bucket of the slot's smallest usage */
};

void buckets_init(struct buckets *b, enum bucket_scheme scheme, enum resource resource);

/* The bucket of a usage in millicores or bytes; negative and NaN are 0's. */
static inline unsigned int buckets_find(const struct buckets *b, double usage)
{
	union {
		double d;
		uint64_t u;
	} bits = {.d = usage};
	uint64_t place;
	unsigned int i;

	if (!(usage >= 1.0))
		return 0;
	/* Exponent and the four leading bits of the fraction. */
	place = (bits.u >> 48) - (UINT64_C(1023) << 4);
	i = b->slot[place < BUCKETS_SLOTS ? place : BUCKETS_SLOTS];
	while (usage >= b->from[i + 1])
		i++;
	return i;
}
