/* SPDX-License-Identifier: Apache-2.0 */
/* The start-up profile: what a container uses in the minutes after a (re)start, kept apart from
 * what it needs to run. A daemon that was just restarted (by us, perhaps) catches up on what it
 * missed; were that counted, each resize would inflate the next. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define STARTUP_MINUTES 10U /* usage that has not settled by then is taken as what it needs */
#define STARTUP_SETTLED 3U  /* so many samples close together are "settled" */
#define STARTUP_NEEDS_MINUTES \
	60 /* of history: before that a start is all that is known, and counts */

struct startup {
	int64_t started; /* TIME_NONE: not starting */
	uint32_t starts; /* ever seen */
	uint32_t kept;   /* samples kept apart, ever */
	double recent[STARTUP_SETTLED];
	int64_t recent_at[STARTUP_SETTLED];
	uint32_t n_recent;
	double minute[STARTUP_MINUTES]; /* mean usage in minute i after a start, recent starts
					   weighing more */
	uint32_t minute_starts[STARTUP_MINUTES];
};

/* Samples that turned out to be settled usage, in time order: to be counted after all. */
struct startup_settled {
	double millicores[STARTUP_SETTLED];
	int64_t at[STARTUP_SETTLED];
	uint32_t n;
};

void startup_init(struct startup *s);
void startup_begin(struct startup *s, int64_t t);
bool startup_running(const struct startup *s);
/* A CPU sample at t while running. usual_millicores: what history says is seldom exceeded; a daemon
 * that catches up at a steady pace has not settled. True: kept apart. False: start-up is over; *ret
 * holds what to count, this sample included. */
bool startup_take(struct startup *s, int64_t t, double millicores, double usual_millicores,
	struct startup_settled *ret);
/* The highest mean of the profile's minutes; 0 when there was no start. */
double startup_peak(const struct startup *s);
