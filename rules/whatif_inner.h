/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of what-if share: whatif.c, which lives through a recording, and
 * whatif_report.c, which sums up. */
#pragma once

#include "rules/levels.h"
#include "rules/publish.h"
#include "rules/steps.h"
#include "rules/whatif.h"

#define PENDING_MAX 96U

/* The latest row of one resource. */
struct track {
	int64_t at; /* TIME_NONE before any */
	double value;
	uint32_t rows; /* up to WARM_ROWS */
	struct steps steps;
	struct levels levels;
};

/* A stretch of time in which nothing changed. */
struct segment {
	int64_t from, to;
	int64_t row_at[RESOURCES]; /* TIME_NONE: nothing stands */
	double usage[RESOURCES];
	struct amounts request;
};

struct group {
	struct group *next;
	char *name;
	struct whatif_series *first;
	struct amounts fixed; /* known once it has been looked for */
	bool looked;
};

struct whatif_series {
	struct whatif *whatif;
	struct group *group;
	struct whatif_series *next, *next_in_group;
	struct track track[RESOURCES];
	int64_t start, clock;              /* TIME_NONE before the first row */
	const struct usage_history *usage; /* of the latest row; not owned */

	struct publish_item item;
	struct publish_node node;
	struct amounts request;
	int64_t changed_at;
	int64_t quiet_until; /* TIME_NONE: not */
	int64_t resizes, node_writes;

	bool warm;
	uint32_t n_pending;
	struct segment pending[PENDING_MAX];

	double minutes[RESOURCES];         /* counted */
	double request_minutes[RESOURCES]; /* request × minutes */
	double usage_minutes[RESOURCES];
	double shortage[RESOURCES];       /* minutes with usage above pernode's request */
	double fixed_shortage[RESOURCES]; /* above the given one */
};

struct whatif {
	struct knobs knobs;
	struct amounts given;
	struct group *groups;
	struct whatif_series *series;
};
