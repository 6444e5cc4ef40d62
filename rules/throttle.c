/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/throttle.h"

#include <math.h>

double throttle_fraction(const struct throttle_window *w)
{
	return w->nr_periods ? fmin((double)w->nr_throttled / (double)w->nr_periods, 1) : 0;
}

double throttle_demand(const struct throttle_window *w, bool *ret_throttled)
{
	double fraction = throttle_fraction(w);
	bool throttled = fraction >= THROTTLE_FRACTION_MIN && w->elapsed_usec > 0;
	bool saturated = w->usage_millicores >= THROTTLE_SATURATED * w->quota_millicores;
	double factor =
		fmin(1 + fraction, saturated ? THROTTLE_FACTOR_MAX : THROTTLE_FACTOR_CAUGHT_UP_MAX);
	double waited_millicores;

	if (ret_throttled)
		*ret_throttled = throttled;
	if (!throttled)
		return w->usage_millicores;
	waited_millicores = (double)w->throttled_usec * 1000 / (double)w->elapsed_usec;
	return fmin(w->usage_millicores * factor, w->usage_millicores + waited_millicores);
}
