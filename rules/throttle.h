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
/* Running and throttled time together, as a share of the window on every CPU that the quota pays
 * for, from which a container counts as one that always wanted to run, and may have wanted any
 * amount: up to twice its usage. Not 1, since others run too while it waits for its turn. */
#define THROTTLE_ALWAYS 0.9
/* One that was idle in between got through with its work, only later. It cannot have wanted much
 * more than it used, also where it used its whole quota: this much of the growth is left. */
#define THROTTLE_IDLE_GROWTH 0.35

/* The growth of cpu.stat's counters over one window, of the level that holds the quota. */
struct throttle_window {
	double usage_millicores;
	double quota_millicores; /* 0: not known */
	uint64_t elapsed_usec;
	uint64_t nr_periods, nr_throttled, throttled_usec;
};

/* nr_throttled / nr_periods, at most 1; 0 without periods. */
double throttle_fraction(const struct throttle_window *w);
/* What to take for the window's demand, in millicores: usage × (1 + growth × fraction), never more
 * than running and throttled time together; its usage when it was not throttled. *ret_throttled
 * (may be NULL): whether it was. */
double throttle_demand(const struct throttle_window *w, bool *ret_throttled);
