/* SPDX-License-Identifier: Apache-2.0 */
/* What all histories of one program share: their buckets, and the knobs that shape what is stored.
 */
#pragma once

#include "rules/buckets.h"
#include "rules/knobs.h"

struct model {
	struct buckets buckets[RESOURCES];
	int64_t half_life_ns[RESOURCES];
	int64_t memory_interval_ns;
	int64_t retention_ns; /* interval × count: how long what was learned from an OOM, or of a
				 key, is kept */
	enum profile profile;
};

/* From resolved knobs. About 12 KB, one per program. */
void model_init(struct model *m, const struct knobs *k);
