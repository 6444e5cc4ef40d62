/* SPDX-License-Identifier: Apache-2.0 */
/* Ahead of the OOM: sees memory that cannot be reclaimed run towards its limit, early enough to do
 * something about it. Told the memory that no reclaim can give back, so that page cache never
 * counts, however full; nor does usage that stays where it is, jumps once, or swings below a level
 * that it has been at before. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define AHEAD_WATCH_FRACTION 0.6 /* of the limit: look every second from here on… */
#define AHEAD_CALM_FRACTION 0.5  /* …until below here */
#define AHEAD_HORIZON_SECONDS 60.0
/* A small limit is reached from below that within one ordinary interval: it is watched when a leak
 * of AHEAD_EXPECTED_BYTES_PER_SECOND would use half of the room that is left in AHEAD_SOON_SECONDS,
 * from this share on. */
#define AHEAD_SOON_FRACTION 0.25
#define AHEAD_SOON_SECONDS 10.0
#define AHEAD_EXPECTED_BYTES_PER_SECOND (2.0 * 1024 * 1024)
#define AHEAD_FORGET_USEC                                                      \
	UINT64_C(3600000000) /* a crest longer ago is news when it comes again \
			      */
#define AHEAD_READINGS 9U

struct ahead_reading {
	uint64_t t_usec;
	double bytes;
};

struct ahead {
	bool watching;        /* from AHEAD_WATCH_FRACTION on */
	bool close;           /* watching, or a small limit: every reading is kept */
	bool warned;          /* for this limit, on this climb */
	bool came_from_below; /* it came close by a rise, not with its first reading */
	double limit;
	double crest; /* highest before the readings kept */
	uint64_t crest_usec;
	uint32_t n;
	struct ahead_reading
		reading[AHEAD_READINGS]; /* oldest first; only the last one unless close */
};

enum ahead_verdict {
	AHEAD_CALM,
	AHEAD_WATCH, /* look again in a second */
	AHEAD_WARN,  /* watch, and raise now */
};

/* A reading at t_usec (monotonic) under limit_bytes (<= 0: none). All zeros is a fresh state. Warns
 * once per limit and climb: again after the limit was changed, or after usage was below
 * AHEAD_CALM_FRACTION of it. A reading that is not younger than the last one is ignored. */
enum ahead_verdict ahead_take(
	struct ahead *a, uint64_t t_usec, int64_t unreclaimable_bytes, int64_t limit_bytes);
/* Bytes per second over the last readings; 0 when there are too few, or it does not rise. */
double ahead_slope(const struct ahead *a);
