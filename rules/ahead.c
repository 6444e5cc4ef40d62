/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/ahead.h"

#include <math.h>

/* The i-th point back from the newest. */
static const struct ahead_point *point(const struct ahead *a, uint32_t back)
{
	return &a->points[(a->n - 1 - back) % AHEAD_POINTS];
}

/* How many points back the slope reaches: the recent ones, but at least AHEAD_POINTS_MIN of those
 * there are. */
static uint32_t reach(const struct ahead *a)
{
	uint32_t have = a->n < AHEAD_POINTS ? a->n : AHEAD_POINTS, n = 0;

	while (n < have && (n < AHEAD_POINTS_MIN ||
				   point(a, 0)->t_usec - point(a, n)->t_usec <= AHEAD_SLOPE_USEC))
		n++;
	return n;
}

/* Least squares. */
double ahead_slope(const struct ahead *a)
{
	uint32_t n = reach(a);
	double mean_t = 0, mean_b = 0, tt = 0, tb = 0;

	if (n < AHEAD_POINTS_MIN ||
		point(a, 0)->t_usec - point(a, n - 1)->t_usec < AHEAD_SPAN_MIN_USEC)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		mean_t -= (double)(point(a, 0)->t_usec - point(a, i)->t_usec) / 1e6 / n;
		mean_b += point(a, i)->bytes / n;
	}
	for (uint32_t i = 0; i < n; i++) {
		double t = -(double)(point(a, 0)->t_usec - point(a, i)->t_usec) / 1e6 - mean_t;

		tt += t * t;
		tb += t * (point(a, i)->bytes - mean_b);
	}
	return tt > 0 ? tb / tt : 0;
}

/* Follows the saw teeth of a container that collects its garbage. */
static void follow_crest(struct ahead *a, double bytes, double limit)
{
	if (bytes < a->top - AHEAD_FALL_FRACTION * limit) {
		a->crest = fmax(a->crest, a->top);
		a->top = bytes;
	} else {
		a->top = fmax(a->top, bytes);
	}
}

static bool will_reach(const struct ahead *a, double bytes, double limit)
{
	double slope = ahead_slope(a);
	uint32_t n = reach(a);

	if (slope <= 0 || bytes <= a->crest)
		return false;
	if (bytes - point(a, n - 1)->bytes < AHEAD_RISE_MIN_FRACTION * limit)
		return false;
	/* A rise that is over already (the last step was none) has nothing to go on. */
	if (bytes <= point(a, 1)->bytes)
		return false;
	return (limit - bytes) / slope <= AHEAD_HORIZON_SECONDS;
}

enum ahead_verdict ahead_take(
	struct ahead *a, uint64_t t_usec, int64_t unreclaimable_bytes, int64_t limit_bytes)
{
	double bytes = (double)unreclaimable_bytes, limit = (double)limit_bytes;

	if (a->n > 0 && t_usec <= point(a, 0)->t_usec)
		return a->watching ? AHEAD_WATCH : AHEAD_CALM;
	a->points[a->n++ % AHEAD_POINTS] = (struct ahead_point){t_usec, bytes};
	if (limit_bytes <= 0) {
		a->watching = false;
		return AHEAD_CALM;
	}
	follow_crest(a, bytes, limit);
	if (bytes > AHEAD_WATCH_FRACTION * limit)
		a->watching = true;
	else if (bytes < AHEAD_CALM_FRACTION * limit)
		a->watching = false;
	if (!a->watching)
		return AHEAD_CALM;
	if (bytes <= AHEAD_WATCH_FRACTION * limit || !will_reach(a, bytes, limit))
		return AHEAD_WATCH;
	if (a->warned && a->warned_limit == limit_bytes &&
		t_usec - a->warned_usec < AHEAD_AGAIN_USEC)
		return AHEAD_WATCH;
	a->warned = true;
	a->warned_limit = limit_bytes;
	a->warned_usec = t_usec;
	return AHEAD_WARN;
}
