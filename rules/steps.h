/* SPDX-License-Identifier: Apache-2.0 */
/* The median of the steps between samples, of fixed size: recordings have few different steps.
 * Exact for up to STEPS_MAX of them; more are counted with the nearest. */
#pragma once

#include <stdint.h>

#define STEPS_MAX 32U

struct steps {
	uint32_t n, latest; /* different ones; where the last one was counted */
	uint64_t count;
	int64_t median;
	struct {
		int64_t step;
		uint64_t count;
	} step[STEPS_MAX]; /* ascending */
};

void steps_add(struct steps *s, int64_t step);
/* The lower median; 0 when there is none. */
static inline int64_t steps_median(const struct steps *s)
{
	return s->median;
}
