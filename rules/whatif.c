/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/whatif.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/macros.h"
#include "rules/instant.h"
#include "rules/update.h"
#include "rules/whatif_inner.h"

/* A row stands until the next one, at most so many median steps, and no longer than a day: a wrong
 * date must not fill years. */
#define STANDS_STEPS 5
#define STANDS_MAX_NS INSTANT_DAY
/* Until so many rows of a resource have come, the median is not taken for known, and what happened
 * is kept to be counted by the median that they have in the end. */
#define WARM_ROWS 64U
#define WARM_STANDS_NS INSTANT_DAY
/* While the last look found nothing to publish, so much passes before the next: a histogram moves
 * slowly. */
#define QUIET_NS (5 * INSTANT_MINUTE)
/* In place of chance: the middle of every jitter. */
#define NO_CHANCE (UINT64_MAX / 2)

int whatif_create(const struct knobs *knobs, const struct amounts *request, struct whatif **ret)
{
	struct whatif *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->knobs = *knobs;
	w->given = *request;
	*ret = w;
	return 0;
}

void whatif_destroy(struct whatif *w)
{
	if (!w)
		return;
	for (struct whatif_series *s = w->series, *next; s; s = next) {
		next = s->next;
		free(s);
	}
	for (struct group *g = w->groups, *next; g; g = next) {
		next = g->next;
		free(g->name);
		free(g);
	}
	free(w);
}

static struct group *group_of(struct whatif *w, struct str name)
{
	struct str prefix = str_cut(&name, '@');
	struct group *g = w->groups;

	while (g && !str_is(prefix, g->name))
		g = g->next;
	if (g)
		return g;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->name = str_dup(prefix);
	if (!g->name) {
		free(g);
		return NULL;
	}
	g->next = w->groups;
	w->groups = g;
	return g;
}

int whatif_series_add(struct whatif *w, struct str name, struct whatif_series **ret)
{
	struct group *g = group_of(w, name);
	struct whatif_series *s;

	if (!g)
		return -ENOMEM;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->whatif = w;
	s->group = g;
	s->next = w->series;
	w->series = s;
	s->next_in_group = g->first;
	g->first = s;
	s->start = s->clock = s->changed_at = s->quiet_until = TIME_NONE;
	s->request = w->given;
	publish_item_init(&s->item);
	for (int r = 0; r < RESOURCES; r++) {
		s->track[r].at = TIME_NONE;
		levels_init(&s->track[r].levels, (enum resource)r);
	}
	*ret = s;
	return 0;
}

/* How long the latest row stands. */
static int64_t stands_ns(const struct track *track)
{
	return MIN(steps_median(&track->steps), STANDS_MAX_NS / STANDS_STEPS) * STANDS_STEPS;
}

/* ---- counting */

static void settle(struct whatif_series *s, const struct segment *g)
{
	for (int r = 0; r < RESOURCES; r++) {
		struct track *track = &s->track[r];
		double usage = g->usage[r], minutes;
		int64_t to;

		if (g->row_at[r] == TIME_NONE || !g->request.known[r])
			continue;
		to = MIN(g->to, instant_add(g->row_at[r], stands_ns(track)));
		if (to <= g->from)
			continue;
		minutes = (double)(to - g->from) / (double)INSTANT_MINUTE;
		s->minutes[r] += minutes;
		s->usage_minutes[r] += usage * minutes;
		s->request_minutes[r] += (double)g->request.value[r] * minutes;
		if (usage > (double)g->request.value[r])
			s->shortage[r] += minutes;
		if (usage > (double)s->whatif->given.value[r])
			s->fixed_shortage[r] += minutes;
		levels_add(&track->levels, usage, minutes);
	}
}

static void warm_up(struct whatif_series *s)
{
	s->warm = true;
	for (uint32_t i = 0; i < s->n_pending; i++)
		settle(s, &s->pending[i]);
	s->n_pending = 0;
}

static bool continues(const struct segment *a, const struct segment *b)
{
	for (int r = 0; r < RESOURCES; r++)
		if (a->row_at[r] != b->row_at[r] || a->request.known[r] != b->request.known[r] ||
			a->request.value[r] != b->request.value[r])
			return false;
	return a->to == b->from;
}

static void count(struct whatif_series *s, int64_t from, int64_t to)
{
	struct segment g = {.from = from, .to = to, .request = s->request};

	for (int r = 0; r < RESOURCES; r++) {
		g.row_at[r] = s->track[r].at;
		g.usage[r] = s->track[r].value;
	}
	if (s->warm) {
		settle(s, &g);
	} else if (s->n_pending > 0 && continues(&s->pending[s->n_pending - 1], &g)) {
		s->pending[s->n_pending - 1].to = to;
	} else {
		s->pending[s->n_pending++] = g;
		if (s->n_pending == PENDING_MAX)
			warm_up(s);
	}
}

/* ---- what pernode would have done */

static bool ready(const struct usage_history *u)
{
	/* A recording may have no CPU at all. */
	return estimate_ready(u) || (u->cpu_samples == 0 && u->memory_samples >= 2);
}

static uint64_t mono(const struct whatif_series *s, int64_t t)
{
	return (uint64_t)instant_since(t, s->start) / 1000 + 1;
}

static void first_request(struct whatif_series *s, const struct recommendation *today)
{
	for (int r = 0; r < RESOURCES; r++)
		if (!s->request.known[r] && today->amounts[BOUND_TARGET].known[r]) {
			s->request.known[r] = true;
			s->request.value[r] = today->amounts[BOUND_TARGET].value[r];
		}
}

static void consider_publishing(
	struct whatif_series *s, const struct usage_history *u, int64_t now, uint64_t now_usec)
{
	struct publish_facts facts = {
		.oom_kills = u->oom_kills,
		.samples = u->cpu_samples,
		.throttled_minutes = u->throttled_minutes,
		.ready = true,
	};
	enum publish_reason reason;
	enum publish_need need;

	estimate(u, &s->whatif->knobs, 1, now, &facts.today, NULL);
	publish_round(&facts.today);
	first_request(s, &facts.today);
	facts.request = s->request;
	need = publish_judge(&s->item, &facts, now, &reason);
	if (need <= PUBLISH_RIDES)
		s->quiet_until = instant_add(now, QUIET_NS);
	if (need == PUBLISH_NOT || publish_node_wait(&s->node, now_usec, need, true, NO_CHANCE) > 0)
		return;
	publish_item_sent(&s->item, &facts, reason, 1, now);
	publish_node_sent(&s->node, now_usec, need);
	publish_item_done(&s->item, now);
	publish_node_done(&s->node, now_usec, NO_CHANCE);
	s->node_writes++;
}

static void consider_resizing(struct whatif_series *s, const struct usage_history *u, int64_t now)
{
	struct update_facts facts = {
		.request = s->request,
		.published = s->item.published,
		.now = now,
		.changed_at = s->changed_at,
		.since = u->cpu_first != TIME_NONE ? u->cpu_first : u->memory_first,
		.recent_peak_bytes = usage_recent_peak(u),
	};
	struct update_verdict verdict;

	update_judge(&facts, &verdict);
	if (!verdict.needed)
		return;
	s->request = verdict.request;
	s->changed_at = now;
	s->resizes++;
}

/* Once a minute. */
static void look(struct whatif_series *s, const struct usage_history *u, int64_t now)
{
	uint64_t now_usec = mono(s, now);

	if (!ready(u))
		return;
	/* Between two ordinary patches only what cannot wait is worth an estimate. */
	if (s->item.at == TIME_NONE || s->item.urgent ||
		(now_usec >= s->node.ordinary_usec && now >= s->quiet_until))
		consider_publishing(s, u, now, now_usec);
	if (s->item.at != TIME_NONE)
		consider_resizing(s, u, now);
}

/* ---- time */

static int64_t stands_until(const struct whatif_series *s)
{
	int64_t until = s->clock;

	for (int r = 0; r < RESOURCES; r++) {
		const struct track *track = &s->track[r];
		int64_t stands = stands_ns(track);

		if (track->at == TIME_NONE)
			continue;
		if (!s->warm)
			stands = MAX(stands, WARM_STANDS_NS);
		until = MAX(until, instant_add(track->at, stands));
	}
	return until;
}

static int64_t next_minute(int64_t t)
{
	int64_t rest = t % INSTANT_MINUTE;

	return instant_add(t, rest < 0 ? -rest : INSTANT_MINUTE - rest);
}

void whatif_advance(struct whatif_series *s, const struct usage_history *u, int64_t t)
{
	int64_t until;

	if (s->clock == TIME_NONE || t <= s->clock)
		return;
	until = MIN(t, stands_until(s));
	while (s->clock < until) {
		int64_t minute = next_minute(s->clock), to = MIN(until, minute);

		count(s, s->clock, to);
		s->clock = to;
		if (to == minute)
			look(s, u, minute);
	}
	s->clock = t;
}

static void take(struct whatif_series *s, struct track *track, int64_t t, double value)
{
	if (track->at != TIME_NONE && t > track->at)
		steps_add(&track->steps, instant_since(t, track->at));
	track->at = track->at == TIME_NONE || t > track->at ? t : track->at;
	track->value = value;
	if (track->rows < WARM_ROWS)
		track->rows++;
	else if (!s->warm)
		warm_up(s);
}

void whatif_row(struct whatif_series *s, const struct usage_history *u, int64_t t,
	double cpu_millicores, double memory_bytes, bool oom)
{
	if (s->clock == TIME_NONE) {
		s->start = s->clock = t;
		publish_node_init(&s->node, NULL, 1);
	}
	whatif_advance(s, u, t);
	s->usage = u;
	if (!isnan(cpu_millicores))
		take(s, &s->track[RESOURCE_CPU], s->clock, cpu_millicores);
	if (!isnan(memory_bytes) && !oom)
		take(s, &s->track[RESOURCE_MEMORY], s->clock, memory_bytes);
	if (oom)
		publish_item_urgent(&s->item, PUBLISH_OOM);
	if (oom || s->item.at == TIME_NONE)
		look(s, u, s->clock);
}

void whatif_end(struct whatif_series *s)
{
	int64_t end = s->clock;

	if (s->clock == TIME_NONE)
		return;
	for (int r = 0; r < RESOURCES; r++) {
		const struct track *track = &s->track[r];

		if (track->at != TIME_NONE)
			end = MAX(end, instant_add(track->at,
					       MIN(steps_median(&track->steps), STANDS_MAX_NS)));
	}
	whatif_advance(s, s->usage, end);
	if (!s->warm)
		warm_up(s);
}
