/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/ahead.h"

#include <math.h>
#include <string.h>

/* Enough to act: a resize takes a second, a slow API server some more. With more time than this,
 * more evidence is gathered first. */
#define LAST_CALL_SECONDS 14.0
#define INTERVALS_LAST_CALL 3U
#define INTERVALS_HORIZON (AHEAD_READINGS - 1U)
/* One interval with more than this share of the whole rise: a jump, not a climb. */
#define JUMP_SHARE 0.7
/* Of all ups and downs, this share must be the rise: else it is noise. */
#define CLIMB_SHARE 0.6
/* With less evidence than usual, the rise must be worth something beside the room that is left. */
#define ROOM_SHARE 0.15
/* A rise below this share of the limit, in one interval, is noise; within bounds. */
#define NOISE_SHARE 0.0005
#define NOISE_LEAST_BYTES 4096.0
#define NOISE_MOST_BYTES 131072.0

static const struct ahead_reading *last(const struct ahead *a)
{
	return &a->reading[a->n - 1];
}

static void note_crest(struct ahead *a, const struct ahead_reading *r)
{
	if (r->bytes < a->crest)
		return;
	a->crest = r->bytes;
	a->crest_usec = r->t_usec;
}

static void keep(struct ahead *a, uint64_t t_usec, double bytes)
{
	if (a->n == AHEAD_READINGS) {
		note_crest(a, &a->reading[0]);
		memmove(&a->reading[0], &a->reading[1], sizeof(a->reading) - sizeof(a->reading[0]));
		a->n--;
	}
	a->reading[a->n++] = (struct ahead_reading){t_usec, bytes};
}

/* All but the latest reading are forgotten, but for how high they were. */
static void forget(struct ahead *a)
{
	for (uint32_t i = 0; i + 1 < a->n; i++)
		note_crest(a, &a->reading[i]);
	a->reading[0] = *last(a);
	a->n = 1;
}

static double slope_since(const struct ahead *a, uint32_t i)
{
	return (last(a)->bytes - a->reading[i].bytes) /
	       ((double)(last(a)->t_usec - a->reading[i].t_usec) / 1e6);
}

/* The slower of the whole watch and its last intervals, so that neither a jump long ago nor one
 * just now is taken for a slope. */
double ahead_slope(const struct ahead *a)
{
	if (a->n <= INTERVALS_LAST_CALL)
		return 0;
	return fmax(0, fmin(slope_since(a, 0), slope_since(a, a->n - 1 - INTERVALS_LAST_CALL)));
}

struct climb {
	double rise, largest, moved;
	uint32_t risen, risen_lately;
};

static struct climb measure(const struct ahead *a, double noise)
{
	struct climb c = {.rise = last(a)->bytes - a->reading[0].bytes};

	for (uint32_t i = 1; i < a->n; i++) {
		double step = a->reading[i].bytes - a->reading[i - 1].bytes;

		c.largest = fmax(c.largest, step);
		c.moved += fabs(step);
		c.risen += step > noise;
		c.risen_lately += step > noise && i + INTERVALS_LAST_CALL >= a->n;
	}
	return c;
}

/* A climb goes on, is spread over intervals, and leads to where usage has not been before. */
static bool will_reach(const struct ahead *a)
{
	double noise = fmin(fmax(NOISE_SHARE * a->limit, NOISE_LEAST_BYTES), NOISE_MOST_BYTES);
	double room = a->limit - last(a)->bytes, slope = ahead_slope(a), seconds_left;
	struct climb c;

	if (slope <= 0 || last(a)->bytes <= a->crest + noise)
		return false;
	/* Seen first when it was high already: it may be swinging there. */
	if (!a->came_from_below && a->n <= INTERVALS_HORIZON)
		return false;
	seconds_left = room / slope;
	c = measure(a, noise);
	if (c.largest > JUMP_SHARE * c.rise || c.rise < CLIMB_SHARE * c.moved)
		return false;
	/* Two steps and it is there: two steps must do. */
	if (room <= 2 * (last(a)->bytes - a->reading[a->n - 2].bytes) && c.risen_lately >= 2)
		return true;
	if (c.risen < INTERVALS_LAST_CALL || c.risen_lately == 0)
		return false;
	if (a->n > INTERVALS_HORIZON)
		return seconds_left <= AHEAD_HORIZON_SECONDS;
	return seconds_left <= LAST_CALL_SECONDS && c.rise >= ROOM_SHARE * room;
}

/* Whether the next reading would come too late if it came at an ordinary time. */
static bool soon(double bytes, double limit)
{
	return bytes >= AHEAD_SOON_FRACTION * limit &&
	       limit - bytes < 2 * AHEAD_SOON_SECONDS * AHEAD_EXPECTED_BYTES_PER_SECOND;
}

static void come_close_or_go(struct ahead *a, uint64_t t_usec, double bytes)
{
	bool was_close = a->close, was_watching = a->watching;

	if (bytes > AHEAD_WATCH_FRACTION * a->limit) {
		a->watching = true;
	} else if (bytes < AHEAD_CALM_FRACTION * a->limit) {
		a->watching = a->warned = false;
		if (t_usec - a->crest_usec > AHEAD_FORGET_USEC)
			a->crest = 0;
	}
	a->close = a->watching || soon(bytes, a->limit);
	if ((a->close && !was_close) || (a->watching && !was_watching))
		a->came_from_below = a->n > 1;
	if (!a->close || !was_close)
		forget(a);
}

enum ahead_verdict ahead_take(
	struct ahead *a, uint64_t t_usec, int64_t unreclaimable_bytes, int64_t limit_bytes)
{
	double bytes = (double)unreclaimable_bytes;

	if (limit_bytes <= 0) {
		*a = (struct ahead){0};
		return AHEAD_CALM;
	}
	if (a->n > 0 && t_usec <= last(a)->t_usec)
		return a->close ? AHEAD_WATCH : AHEAD_CALM;
	if (a->limit != (double)limit_bytes) {
		a->limit = (double)limit_bytes;
		a->warned = false;
	}
	keep(a, t_usec, bytes);
	come_close_or_go(a, t_usec, bytes);
	if (!a->close)
		return AHEAD_CALM;
	if (a->warned || bytes <= AHEAD_WATCH_FRACTION * a->limit || !will_reach(a))
		return AHEAD_WATCH;
	a->warned = true;
	return AHEAD_WARN;
}
