/* SPDX-License-Identifier: Apache-2.0 */
/* How long to wait before trying again: doubles with every failure up to a ceiling, half of it left
 * to chance, so that a fleet that lost its server together does not come back together. Pure:
 * chance comes in as a number. */
#pragma once

#include <stdint.h>

struct backoff {
	uint64_t first_usec;   /* ceiling of the first wait; never 0 */
	uint64_t last_usec;    /* ceiling of every wait */
	uint64_t ceiling_usec; /* of the next wait; 0: none has been asked for */
};

void backoff_init(struct backoff *b, uint64_t first_usec, uint64_t last_usec);
/* After real progress: the next wait is a first one. */
void backoff_reset(struct backoff *b);
/* The next wait: between half the ceiling and the ceiling, never 0. random is uniform over all 64
 * bits. */
uint64_t backoff_next(struct backoff *b, uint64_t random);
/* usec made longer by up to a fifth: for a wait that somebody else chose for many at once
 * (Retry-After). */
uint64_t backoff_spread(uint64_t usec, uint64_t random);
