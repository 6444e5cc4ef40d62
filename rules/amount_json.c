/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/amount_json.h"

const char *resource_name(enum resource r)
{
	return r == RESOURCE_CPU ? "cpu" : "memory";
}

const char *amount_key(enum resource r)
{
	return r == RESOURCE_CPU ? "cpu_millicores" : "memory_bytes";
}

const char *bound_name(enum bound b)
{
	static const char *const names[BOUNDS] = {[BOUND_TARGET] = "target",
		[BOUND_LOWER] = "lowerBound",
		[BOUND_UPPER] = "upperBound"};

	return names[b];
}

void amounts_members(struct json_writer *w, const struct amounts *a)
{
	for (enum resource r = 0; r < RESOURCES; r++) {
		if (!a->known[r])
			continue;
		json_key(w, amount_key(r));
		json_i64(w, a->value[r]);
	}
}

void amounts_object(struct json_writer *w, const struct amounts *a)
{
	json_begin_object(w);
	amounts_members(w, a);
	json_end_object(w);
}

void bounds_members(struct json_writer *w, const struct recommendation *r)
{
	for (enum bound b = 0; b < BOUNDS; b++) {
		json_key(w, bound_name(b));
		amounts_object(w, &r->amounts[b]);
	}
}
