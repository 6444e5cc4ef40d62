/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kube/backoff.h"

#include "base/macros.h"
#include "base/num.h"

void backoff_init(struct backoff *b, uint64_t first_usec, uint64_t last_usec)
{
	/* Half of the ceiling must be something. */
	if (first_usec < 2)
		first_usec = 2;
	*b = (struct backoff){.first_usec = first_usec, .last_usec = last_usec};
	if (b->last_usec < first_usec)
		b->last_usec = first_usec;
}

void backoff_reset(struct backoff *b)
{
	b->ceiling_usec = 0;
}

uint64_t backoff_next(struct backoff *b, uint64_t random)
{
	uint64_t ceiling = b->ceiling_usec ? b->ceiling_usec : b->first_usec;
	uint64_t half = ceiling / 2;

	b->ceiling_usec = MIN(u64_add_sat(ceiling, ceiling), b->last_usec);
	return half + random % (ceiling - half + 1);
}

uint64_t backoff_spread(uint64_t usec, uint64_t random)
{
	return u64_add_sat(usec, random % (usec / 5 + 1));
}
