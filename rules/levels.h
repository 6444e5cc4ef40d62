/* SPDX-License-Identifier: Apache-2.0 */
/* For how long usage was how high: time by level of usage, of fixed size however long the
 * recording. Levels are 1 % apart. */
#pragma once

#include <stdint.h>

#include "rules/amount.h"

#define LEVELS_MAX 1280U

struct levels {
	enum resource resource;
	double highest;            /* usage ever */
	float minutes[LEVELS_MAX]; /* half the size; whole minutes are exact for 30 years */
};

void levels_init(struct levels *l, enum resource resource);
void levels_add(struct levels *l, double usage, double minutes);
void levels_merge(struct levels *l, const struct levels *o);
/* The smallest request that covers level i: its upper edge, or the highest usage where that is
 * less. */
int64_t levels_covering(const struct levels *l, unsigned int i);
