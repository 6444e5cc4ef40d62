/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/throttle.h"

#include <math.h>

double throttle_fraction(const struct throttle_window *w)
{
	return w->nr_periods ? fmin((double)w->nr_throttled / (double)w->nr_periods, 1) : 0;
}

double throttle_demand(const struct throttle_window *w, bool *ret_throttled)
{
	double fraction = throttle_fraction(w), wanted, cpus, growth;
	bool throttled = fraction >= THROTTLE_FRACTION_MIN && w->elapsed_usec > 0;

	if (ret_throttled)
		*ret_throttled = throttled;
	if (!throttled)
		return w->usage_millicores;
	wanted = w->usage_millicores + (double)w->throttled_usec * 1000 / (double)w->elapsed_usec;
	cpus = fmax(1, ceil(w->quota_millicores / 1000));
	growth = wanted >= THROTTLE_ALWAYS * 1000 * cpus ? 1 : THROTTLE_IDLE_GROWTH;
	return fmin(w->usage_millicores * (1 + growth * fraction), wanted);
}
