/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stddef.h>
#include <time.h>

static uint64_t system_mono_usec(void *arg)
{
	struct timespec t;

	(void)arg;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * USEC_PER_SEC + (uint64_t)(t.tv_nsec / NSEC_PER_USEC);
}

static int64_t system_wall_usec(void *arg)
{
	struct timespec t;

	(void)arg;
	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * (int64_t)USEC_PER_SEC + t.tv_nsec / NSEC_PER_USEC;
}

const struct clock clock_system = {system_mono_usec, system_wall_usec, NULL};

static uint64_t manual_mono_usec(void *arg)
{
	return ((struct clock_manual *)arg)->mono_usec;
}

static int64_t manual_wall_usec(void *arg)
{
	return ((struct clock_manual *)arg)->wall_usec;
}

void clock_manual_init(struct clock_manual *m, int64_t wall_usec)
{
	*m = (struct clock_manual){
		.clock = {manual_mono_usec, manual_wall_usec, m}, .wall_usec = wall_usec};
}

void clock_manual_advance(struct clock_manual *m, uint64_t usec)
{
	m->mono_usec += usec;
	m->wall_usec += (int64_t)usec;
}

int64_t clock_watch_look(struct clock_watch *w, const struct clock *c, uint64_t tolerance_usec)
{
	uint64_t mono = clock_mono_usec(c);
	int64_t wall = clock_wall_usec(c);
	int64_t jump = 0;

	if (w->seen)
		jump = (wall - w->wall_usec) - (int64_t)(mono - w->mono_usec);
	*w = (struct clock_watch){.mono_usec = mono, .wall_usec = wall, .seen = true};
	uint64_t size = jump < 0 ? 0 - (uint64_t)jump : (uint64_t)jump;
	return size > tolerance_usec ? jump : 0;
}
