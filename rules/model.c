/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/model.h"

#include "base/num.h"

void model_init(struct model *m, const struct knobs *k)
{
	enum bucket_scheme scheme = k->profile == PROFILE_VPA ? BUCKETS_VPA : BUCKETS_FINE;

	m->profile = (enum profile)k->profile;
	m->memory_interval_ns = k->memory_aggregation_interval_ns;
	m->retention_ns = i64_mul_sat(
		k->memory_aggregation_interval_ns, k->memory_aggregation_interval_count);
	for (int r = 0; r < RESOURCES; r++) {
		buckets_init(&m->buckets[r], scheme, (enum resource)r);
		m->half_life_ns[r] = k->half_life_ns[r];
	}
}
