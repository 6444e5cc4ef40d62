/* SPDX-License-Identifier: Apache-2.0 */
/* Instants: Unix time in ns as int64 (years 1678 to 2262), and TIME_NONE for "never", which lies so
 * far back that every difference to it saturates. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/rfc3339.h"

#define INSTANT_SECOND INT64_C(1000000000)
#define INSTANT_MINUTE (60 * INSTANT_SECOND)
#define INSTANT_HOUR (60 * INSTANT_MINUTE)
#define INSTANT_DAY (24 * INSTANT_HOUR)

/* a − b in ns, saturating; two nevers are 0 apart. */
static inline int64_t instant_since(int64_t a, int64_t b)
{
	int64_t d;

	if (a == TIME_NONE || b == TIME_NONE) {
		if (a == b)
			return 0;
		return b == TIME_NONE ? INT64_MAX : INT64_MIN;
	}
	if (__builtin_sub_overflow(a, b, &d))
		return a > b ? INT64_MAX : INT64_MIN;
	return d;
}

/* a + d, kept inside the range of instants. */
static inline int64_t instant_add(int64_t a, int64_t d)
{
	int64_t r;

	if (a == TIME_NONE)
		return a;
	if (__builtin_add_overflow(a, d, &r) || r == TIME_NONE)
		return d > 0 ? INT64_MAX : INT64_MIN + 1;
	return r;
}

/* The nearest multiple of step (> 0), counted from 0001-01-01T00:00:00Z; a half rounds up. */
int64_t instant_round(int64_t t, int64_t step);
