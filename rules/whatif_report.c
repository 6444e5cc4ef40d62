/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "rules/whatif_inner.h"

/* The smallest request that leaves the group no longer short than pernode did. */
static int64_t find_fixed(const struct group *g, int r)
{
	struct levels all;
	double allowed = 0, above = 0;
	unsigned int i = LEVELS_MAX - 1;

	levels_init(&all, (enum resource)r);
	for (const struct whatif_series *s = g->first; s; s = s->next_in_group) {
		allowed += s->shortage[r];
		levels_merge(&all, &s->track[r].levels);
	}
	/* Sums in another order, and of less precision, differ in their last digits. */
	allowed += 1e-5 * (1 + allowed);
	while (i > 0 && above + all.minutes[i] <= allowed)
		above += all.minutes[i--];
	return levels_covering(&all, i);
}

static const struct amounts *fixed_of(const struct whatif *w, struct group *g)
{
	if (g->looked)
		return &g->fixed;
	g->looked = true;
	g->fixed = w->given;
	for (int r = 0; r < RESOURCES; r++) {
		if (w->given.known[r])
			continue;
		for (const struct whatif_series *s = g->first; s; s = s->next_in_group)
			g->fixed.known[r] = g->fixed.known[r] || s->minutes[r] > 0;
		if (g->fixed.known[r])
			g->fixed.value[r] = find_fixed(g, r);
	}
	return &g->fixed;
}

static double minutes_above(
	const struct whatif *w, const struct whatif_series *s, int r, int64_t request)
{
	const struct levels *l = &s->track[r].levels;
	double minutes = 0;

	if (w->given.known[r])
		return s->fixed_shortage[r];
	for (unsigned int i = LEVELS_MAX; i-- > 0;) {
		if (l->minutes[i] > 0 && levels_covering(l, i) <= request)
			break;
		minutes += l->minutes[i];
	}
	return minutes;
}

static void set_hours(struct whatif_result *ret, int r, double amount_minutes)
{
	if (r == RESOURCE_CPU)
		ret->cpu_core_hours = amount_minutes / 1000 / 60;
	else
		ret->memory_gib_hours = amount_minutes / (1024.0 * 1024 * 1024) / 60;
}

static void set_shortage(struct whatif_result *ret, int r, double minutes)
{
	if (r == RESOURCE_CPU)
		ret->cpu_shortage_minutes = minutes;
	else
		ret->memory_shortage_minutes = minutes;
}

void whatif_report(const struct whatif *w, const struct whatif_series *s, struct whatif_report *ret)
{
	*ret = (struct whatif_report){.fixed_request = *fixed_of(w, s->group)};
	for (int r = 0; r < RESOURCES; r++) {
		int64_t fixed = ret->fixed_request.value[r];

		set_hours(&ret->pernode, r, s->request_minutes[r]);
		set_shortage(&ret->pernode, r, s->shortage[r]);
		set_hours(&ret->used, r, s->usage_minutes[r]);
		if (!ret->fixed_request.known[r])
			continue;
		set_hours(&ret->fixed, r, (double)fixed * s->minutes[r]);
		set_shortage(&ret->fixed, r, minutes_above(w, s, r, fixed));
	}
	ret->pernode.resizes = s->resizes;
	ret->pernode.node_writes = s->node_writes;
}

static void add(struct whatif_result *to, const struct whatif_result *r)
{
	to->cpu_core_hours += r->cpu_core_hours;
	to->memory_gib_hours += r->memory_gib_hours;
	to->cpu_shortage_minutes += r->cpu_shortage_minutes;
	to->memory_shortage_minutes += r->memory_shortage_minutes;
	to->resizes += r->resizes;
	to->node_writes += r->node_writes;
}

void whatif_report_all(const struct whatif *w, struct whatif_report *ret)
{
	*ret = (struct whatif_report){0};
	for (const struct whatif_series *s = w->series; s; s = s->next) {
		struct whatif_report one;

		whatif_report(w, s, &one);
		add(&ret->pernode, &one.pernode);
		add(&ret->fixed, &one.fixed);
		add(&ret->used, &one.used);
	}
}
