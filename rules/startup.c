/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/startup.h"

#include <math.h>

#include "rules/instant.h"

/* Samples are close together when the highest and the lowest are at most a quarter of the highest,
 * or 2 millicores, apart. */
#define CLOSE_SHARE 0.25
#define CLOSE_MILLICORES 2.0
/* How much a start moves the profile. */
#define NEWEST_WEIGHT 0.25

void startup_init(struct startup *s)
{
	*s = (struct startup){.started = TIME_NONE};
}

void startup_begin(struct startup *s, int64_t t)
{
	s->started = t;
	s->n_recent = 0;
	s->starts++;
}

bool startup_running(const struct startup *s)
{
	return s->started != TIME_NONE;
}

static bool settled(const struct startup *s, double usual_millicores)
{
	double low = s->recent[0], high = s->recent[0];

	if (s->n_recent < STARTUP_SETTLED)
		return false;
	for (uint32_t i = 1; i < STARTUP_SETTLED; i++) {
		low = fmin(low, s->recent[i]);
		high = fmax(high, s->recent[i]);
	}
	return high <= usual_millicores && high - low <= fmax(CLOSE_MILLICORES, CLOSE_SHARE * high);
}

static void learn(struct startup *s, int64_t since, double millicores)
{
	uint32_t i = (uint32_t)(since / INSTANT_MINUTE);

	if (s->minute_starts[i] == 0)
		s->minute[i] = millicores;
	else
		s->minute[i] += NEWEST_WEIGHT * (millicores - s->minute[i]);
	s->minute_starts[i]++;
	s->kept++;
}

bool startup_take(struct startup *s, int64_t t, double millicores, double usual_millicores,
	struct startup_settled *ret)
{
	int64_t since = instant_since(t, s->started);

	*ret = (struct startup_settled){0};
	if (since < 0 || since >= STARTUP_MINUTES * INSTANT_MINUTE) {
		s->started = TIME_NONE;
		ret->millicores[0] = millicores;
		ret->at[0] = t;
		ret->n = 1;
		return false;
	}
	if (s->n_recent == STARTUP_SETTLED) {
		for (uint32_t i = 1; i < STARTUP_SETTLED; i++) {
			s->recent[i - 1] = s->recent[i];
			s->recent_at[i - 1] = s->recent_at[i];
		}
		s->n_recent--;
	}
	s->recent[s->n_recent] = millicores;
	s->recent_at[s->n_recent++] = t;
	learn(s, since, millicores);
	if (!settled(s, usual_millicores))
		return true;
	for (uint32_t i = 0; i < STARTUP_SETTLED; i++) {
		ret->millicores[i] = s->recent[i];
		ret->at[i] = s->recent_at[i];
	}
	ret->n = STARTUP_SETTLED;
	s->started = TIME_NONE;
	return false;
}

double startup_peak(const struct startup *s)
{
	double peak = 0;

	for (uint32_t i = 0; i < STARTUP_MINUTES; i++)
		peak = fmax(peak, s->minute[i]);
	return peak;
}
