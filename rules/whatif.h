/* SPDX-License-Identifier: Apache-2.0 */
/* What would have happened: recorded usage run against the request pernode would have set, one
 * fixed request, and the usage itself. Memory does not grow with the recording's length: usage is
 * kept as a histogram of time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "rules/estimator.h"

struct whatif_result {
	double cpu_core_hours;
	double memory_gib_hours;
	double cpu_shortage_minutes; /* with usage above the request */
	double memory_shortage_minutes;
	int64_t resizes;
	int64_t node_writes;
};

struct whatif_report {
	struct whatif_result pernode, fixed, used;
	struct amounts fixed_request; /* in report of "all": not known */
};

/* All series of one run. */
struct whatif;
/* One series. Series whose names agree up to the first '@' share one fixed request. */
struct whatif_series;

/* knobs is copied. request: what every series starts with; resources that are not known start at
 * the first recommendation. -ENOMEM. */
int whatif_create(const struct knobs *knobs, const struct amounts *request, struct whatif **ret);
void whatif_destroy(struct whatif *w); /* with all its series; takes NULL */
int whatif_series_add(struct whatif *w, struct str name, struct whatif_series **ret);

/* Time goes on to t, with the history as it was before the row at t is taken in: call it first. */
void whatif_advance(struct whatif_series *s, const struct usage_history *u, int64_t t);
/* A row that the history u has taken in. cpu and memory are NAN where not recorded; oom: the row
 * reported an OOM kill, and its memory is no usage. Times do not go backwards (an earlier one
 * counts as the latest). */
void whatif_row(struct whatif_series *s, const struct usage_history *u, int64_t t,
	double cpu_millicores, double memory_bytes, bool oom);
/* No more rows: the last one stands for one median step. The history of the last row is still
 * there. */
void whatif_end(struct whatif_series *s);

/* After whatif_end of every series. */
void whatif_report(
	const struct whatif *w, const struct whatif_series *s, struct whatif_report *ret);
void whatif_report_all(const struct whatif *w, struct whatif_report *ret);
