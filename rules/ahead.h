/* SPDX-License-Identifier: Apache-2.0 */
/* Ahead of the OOM: sees that a container's memory will reach its limit within a minute. It is told
 * the memory that no reclaim can give back, so that page cache which fills up to the limit never
 * counts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define AHEAD_POINTS 12U
#define AHEAD_WATCH_FRACTION 0.6 /* of the limit: look every second from here on… */
#define AHEAD_CALM_FRACTION 0.5  /* …until below here */
#define AHEAD_HORIZON_SECONDS 60.0
#define AHEAD_SLOPE_USEC UINT64_C(15000000)   /* the slope is that of the last so many seconds, */
#define AHEAD_POINTS_MIN 3U                   /* of no fewer points, */
#define AHEAD_SPAN_MIN_USEC UINT64_C(1500000) /* over no less time */
#define AHEAD_RISE_MIN_FRACTION 0.01          /* of the limit: smaller rises are noise */
/* A fall by this share of the limit is a recovery (garbage collection): up to the crest that it
 * fell from, a rise is nothing new. */
#define AHEAD_FALL_FRACTION 0.05
#define AHEAD_AGAIN_USEC UINT64_C(600000000) /* one warning per limit in so long a time */

struct ahead_point {
	uint64_t t_usec;
	double bytes;
};

struct ahead {
	struct ahead_point points[AHEAD_POINTS]; /* a ring */
	uint32_t n;                              /* ever */
	bool watching;
	double top, crest;
	bool warned;
	int64_t warned_limit;
	uint64_t warned_usec;
};

enum ahead_verdict {
	AHEAD_CALM,
	AHEAD_WATCH, /* look again in a second */
	AHEAD_WARN,  /* watch, and raise now */
};

/* A reading at t_usec (monotonic) under limit_bytes (<= 0: none). All zeros is a fresh state. */
enum ahead_verdict ahead_take(
	struct ahead *a, uint64_t t_usec, int64_t unreclaimable_bytes, int64_t limit_bytes);
/* Bytes per second over the last readings; 0 when there are too few. */
double ahead_slope(const struct ahead *a);
