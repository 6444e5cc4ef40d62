/* SPDX-License-Identifier: Apache-2.0 */
/* Time. Monotonic for intervals, wall for what is told and kept; both come through a struct clock
 * so that a test or a replay can be the one who says what time it is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define USEC_PER_MSEC UINT64_C(1000)
#define USEC_PER_SEC UINT64_C(1000000)
#define USEC_PER_MINUTE (60 * USEC_PER_SEC)
#define USEC_PER_HOUR (60 * USEC_PER_MINUTE)
#define USEC_PER_DAY (24 * USEC_PER_HOUR)
#define NSEC_PER_USEC INT64_C(1000)
#define NSEC_PER_SEC INT64_C(1000000000)

struct clock {
	uint64_t (*mono_usec)(void *arg);
	int64_t (*wall_usec)(void *arg); /* Unix epoch */
	void *arg;
};

/* CLOCK_MONOTONIC (CLOCK_BOOTTIME where the difference matters is not wanted: a suspended node used
 * nothing) and CLOCK_REALTIME. */
extern const struct clock clock_system;

static inline uint64_t clock_mono_usec(const struct clock *c)
{
	return c->mono_usec(c->arg);
}

static inline int64_t clock_wall_usec(const struct clock *c)
{
	return c->wall_usec(c->arg);
}

/* A clock whose hands are set: for tests, replay and soak runs. */
struct clock_manual {
	struct clock clock; /* pass &m->clock on */
	uint64_t mono_usec;
	int64_t wall_usec;
};
void clock_manual_init(struct clock_manual *m, int64_t wall_usec);
void clock_manual_advance(struct clock_manual *m, uint64_t usec); /* both hands */

/* Notices when the wall clock was set: compares how far both hands moved since the last look. */
struct clock_watch {
	uint64_t mono_usec;
	int64_t wall_usec;
	bool seen;
};
/* 0, or by how many microseconds the wall clock jumped (positive: forward) when that is more than
 * tolerance_usec. */
int64_t clock_watch_look(struct clock_watch *w, const struct clock *c, uint64_t tolerance_usec);
