/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/instant.h"

/* From 0001-01-01T00:00:00Z to the Unix epoch. */
#define SECONDS_BEFORE_EPOCH INT64_C(62135596800)

int64_t instant_round(int64_t t, int64_t step)
{
	__int128 since, rest;

	if (t == TIME_NONE || step <= 0)
		return t;
	since = (__int128)t + (__int128)SECONDS_BEFORE_EPOCH * INSTANT_SECOND;
	rest = since % step;
	if (rest < 0)
		rest += step;
	return rest * 2 < step ? instant_add(t, -(int64_t)rest)
			       : instant_add(t, step - (int64_t)rest);
}
