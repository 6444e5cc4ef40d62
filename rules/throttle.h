/* SPDX-License-Identifier: Apache-2.0 */
/* Throttling is demand. Usage under a CPU limit hides what the container wanted, and a
 * recommendation made of usage alone could never grow past the limit. What it wanted cannot be read
 * off (usage + throttled time overstates bursty daemons several times); it can be approached: a
 * throttled window counts for more than its usage, by the share of its periods that were throttled.
 * The next window, under a larger limit, tells the rest. The climb ends when throttling does. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Below this share of throttled periods a window is not throttled: a short burst at start, a cron
 * job. */
#define THROTTLE_FRACTION_MIN 0.05
/* Usage at least this share of the quota: it took all it was given, and may have wanted any amount.
 * Otherwise it caught up within the window, and throttling only delayed it. */
#define THROTTLE_SATURATED 0.9
#define THROTTLE_FACTOR_MAX 2.0
#define THROTTLE_FACTOR_CAUGHT_UP_MAX 1.5

/* The growth of cpu.stat's counters over one window, of the level that holds the quota. */
struct throttle_window {
	double usage_millicores;
	double quota_millicores;
	uint64_t elapsed_usec;
	uint64_t nr_periods, nr_throttled, throttled_usec;
};

/* nr_throttled / nr_periods; 0 without periods. */
double throttle_fraction(const struct throttle_window *w);
/* What to take for the window's demand, in millicores; its usage when it was not throttled.
 * *ret_throttled (may be NULL): whether it was. */
double throttle_demand(const struct throttle_window *w, bool *ret_throttled);
