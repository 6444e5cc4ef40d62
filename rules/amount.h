/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts: CPU in millicores, memory in bytes, both int64. Every stage of an estimate ends in a
 * whole amount, cut toward zero and kept within [0, AMOUNT_MAX]. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum resource { RESOURCE_CPU, RESOURCE_MEMORY, RESOURCES };

#define AMOUNT_MAX INT64_C(100000000000000)

/* Cuts toward zero. Below zero and NaN give 0, above AMOUNT_MAX (infinity too) AMOUNT_MAX. */
static inline int64_t amount_from_double(double x)
{
	if (!(x > 0))
		return 0;
	return x > (double)AMOUNT_MAX ? AMOUNT_MAX : (int64_t)x;
}

static inline int64_t amount_scale(int64_t a, double factor)
{
	return amount_from_double((double)a * factor);
}

/* A CPU and a memory amount, each of which may be unknown: what is unknown is never shown as 0. */
struct amounts {
	int64_t value[RESOURCES];
	bool known[RESOURCES];
};
