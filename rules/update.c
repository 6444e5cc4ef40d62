/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/update.h"

#include "base/macros.h"
#include "rules/instant.h"

static int64_t distance(int64_t a, int64_t b)
{
	return a > b ? a - b : b - a;
}

/* Longer ago than span; what was before anyone looked is. */
static bool older(int64_t now, int64_t then, int64_t span)
{
	return then == TIME_NONE || instant_since(now, then) >= span;
}

static enum update_reason why(const struct update_facts *f, int r, int64_t request, int64_t target)
{
	const struct amounts *lower = &f->published.amounts[BOUND_LOWER];
	const struct amounts *upper = &f->published.amounts[BOUND_UPPER];

	if (lower->known[r] && request < lower->value[r])
		return UPDATE_BELOW;
	if (upper->known[r] && request > upper->value[r])
		return UPDATE_ABOVE;
	/* A request of 0 is as far off as can be. */
	if (distance(target, request) * 100 < MAX(request, INT64_C(1)) * UPDATE_DRIFT_PERCENT)
		return UPDATE_NOT;
	return target > request || older(f->now, f->changed_at, UPDATE_DRIFT_AGE_NS) ? UPDATE_DRIFT
										     : UPDATE_NOT;
}

/* Where a request that is too high may go now; itself: nowhere. */
static int64_t shrink(const struct update_facts *f, int r, int64_t request, int64_t target)
{
	int64_t least = request - request / 100 * UPDATE_SHRINK_STEP_PERCENT -
			request % 100 * UPDATE_SHRINK_STEP_PERCENT / 100;

	/* Without a first sample there is no history, however old. */
	if (f->since == TIME_NONE || !older(f->now, f->since, UPDATE_SHRINK_HISTORY_NS) ||
		!older(f->now, f->changed_at, UPDATE_SHRINK_REST_NS))
		return request;
	if (r == RESOURCE_MEMORY)
		least = MAX(least, f->recent_peak_bytes);
	return MIN(request, MAX(target, least));
}

void update_judge(const struct update_facts *f, struct update_verdict *ret)
{
	static const int64_t smallest[RESOURCES] = {UPDATE_LEAST_MILLICORES, UPDATE_LEAST_BYTES};
	const struct amounts *target = &f->published.amounts[BOUND_TARGET];

	*ret = (struct update_verdict){.request = f->request};
	for (int r = 0; r < RESOURCES; r++) {
		int64_t request = f->request.value[r], wanted = target->value[r];
		enum update_reason reason;

		if (!f->request.known[r] || !target->known[r])
			continue;
		reason = why(f, r, request, wanted);
		if (reason == UPDATE_NOT)
			continue;
		if (wanted < request)
			wanted = shrink(f, r, request, wanted);
		if (wanted == request ||
			(reason != UPDATE_BELOW && distance(wanted, request) < smallest[r]))
			continue;
		ret->needed = true;
		ret->reason[r] = reason;
		ret->request.value[r] = wanted;
	}
}
