/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a request is to be changed, and to what. Growth is never held back. Shrinking is careful:
 * it needs a day of history, goes in steps with time between them, and stays above what memory was
 * used lately. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rules/estimator.h"

#define UPDATE_DRIFT_PERCENT                                                                       \
	10 /* within its bounds, a request this far below the target is changed; this far above… \
	    */
#define UPDATE_DRIFT_AGE_NS (12 * INSTANT_HOUR) /* …when it has stood for so long */
#define UPDATE_SHRINK_HISTORY_NS INSTANT_DAY
#define UPDATE_SHRINK_REST_NS INSTANT_HOUR /* since the last change */
#define UPDATE_SHRINK_STEP_PERCENT 50      /* of the request, at most */
/* A change that is smaller is not worth a resize, unless the request is below its lower bound. */
#define UPDATE_LEAST_MILLICORES 2
#define UPDATE_LEAST_BYTES INT64_C(1048576)

enum update_reason {
	UPDATE_NOT,
	UPDATE_BELOW, /* the lower bound; also what an OOM or an early warning leads to */
	UPDATE_ABOVE, /* the upper bound */
	UPDATE_DRIFT, /* in between, but far from the target for long */
};

struct update_facts {
	struct amounts request; /* a resource without one is left alone */
	struct recommendation published;
	int64_t now;
	int64_t changed_at; /* when the request was last set; TIME_NONE: before anyone looked */
	int64_t since;      /* time of the first sample; TIME_NONE */
	int64_t recent_peak_bytes; /* highest memory lately; 0: not known */
};

struct update_verdict {
	bool needed;
	struct amounts request; /* what it is to be; the old one where nothing changes */
	enum update_reason reason[RESOURCES];
};

void update_judge(const struct update_facts *f, struct update_verdict *ret);
