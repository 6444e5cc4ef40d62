/* SPDX-License-Identifier: Apache-2.0 */
/* The rounds: reads every container, turns counters into samples, and feeds their histories. Time
 * is the clock's, so a test or a soak can be the one who says what it is. Nothing is allocated per
 * round, and a container that cannot be read costs no other one its sample.
 *
 * CPU: one sample per window (a minute), the window's mean. Memory: every reading goes to the
 * history, which keeps the peaks. Histories are told wall time; when the wall clock is set,
 * clock_jumped says so before the next sample, and the owner moves the histories along. */
#pragma once

#include "agent/sample/container.h"
#include "base/clock.h"

#define FAST_INTERVAL_USEC USEC_PER_SEC
#define CLOCK_JUMP_USEC                                                                           \
	USEC_PER_SEC /* the wall clock moving by more than this against the monotonic one was set \
		      */

/* All may be NULL. */
struct sampler_events {
	/* A window was closed and its sample counted. millicores includes throttled demand. */
	void (*window)(
		struct container *c, int64_t t_ns, double millicores, double minutes, void *arg);
	/* The memory that cannot be reclaimed will reach the limit within a minute; its history has
	 * been told. */
	void (*ahead)(struct container *c, int64_t t_ns, void *arg);
	/* The cgroup is gone; its window has been closed. The sampler leaves it alone from now on.
	 */
	void (*gone)(struct container *c, void *arg);
	void (*clock_jumped)(int64_t by_ns, void *arg);
	void *arg;
};

struct sampler {
	struct cgio io;
	const struct clock *clock;
	struct clock_watch watch;
	struct sampler_events events;
	struct container *first, *last; /* in the order they were added: one after the other, so
					   that a long list is a long walk and not a long line */
	unsigned int n_containers;
	unsigned int n_fast;
	unsigned int n_cpus;
	uint64_t interval_usec;
	uint64_t window_usec;
	uint64_t swap_free_bytes; /* of the machine; re-read once a minute */
	uint64_t swap_read_usec;

	uint64_t rounds;
	uint64_t clock_jumps;
};

/* clock must outlive s. reserve: descriptors that others need. */
void sampler_init(struct sampler *s, const struct clock *clock, uint64_t interval_usec,
	uint64_t window_usec, unsigned int reserve, const struct sampler_events *events);
/* Containers are not the sampler's: it only forgets them. */
void sampler_finish(struct sampler *s);

/* Takes up a container whose leaf is open and whose other members are zero (container_init); its
 * files are held while there are descriptors. Reads it at once. */
void sampler_add(struct sampler *s, struct container *c);
/* Closes its window, lets its files go and forgets it. */
void sampler_remove(struct sampler *s, struct container *c);

/* Its owner knows that the cgroup is gone: as when a round finds that. */
void sampler_gone(struct sampler *s, struct container *c);

/* One round over all. */
void sampler_round(struct sampler *s);
/* Looks at the memory of those that near their limit (n_fast of them): once a second while there
 * are any. */
void sampler_round_fast(struct sampler *s);
/* Looks at one's memory now, because it ran into its limit. */
void sampler_look(struct sampler *s, struct container *c);
/* Closes every window that is under way: at the end. */
void sampler_close_windows(struct sampler *s);
