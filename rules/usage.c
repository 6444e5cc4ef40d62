/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/usage.h"

#include <errno.h>
#include <math.h>

#include "base/macros.h"
#include "rules/instant.h"

/* The weight of a CPU sample that stands for a minute, and of an interval's memory peak. */
#define CPU_WEIGHT 0.1
#define MEMORY_WEIGHT 1.0

static void forget_container(struct usage_history *u)
{
	u->cpu_container_last = TIME_NONE;
	u->window = (struct memory_window){.last = TIME_NONE, .end = TIME_NONE};
}

void usage_init(struct usage_history *u, const struct model *model)
{
	*u = (struct usage_history){
		.model = model,
		.cpu_first = TIME_NONE,
		.cpu_last = TIME_NONE,
		.memory_first = TIME_NONE,
		.memory_last = TIME_NONE,
		.oom_last = TIME_NONE,
		.ahead_last = TIME_NONE,
		.floor.at = TIME_NONE,
	};
	for (int r = 0; r < RESOURCES; r++)
		histogram_init(&u->histogram[r], &model->buckets[r], model->half_life_ns[r]);
	forget_container(u);
	startup_init(&u->startup);
}

bool usage_any(const struct usage_history *u)
{
	return u->cpu_samples > 0 || u->memory_samples > 0 || u->oom_kills > 0;
}

void usage_restart(struct usage_history *u, int64_t t)
{
	if (u->model->profile == PROFILE_FINE && u->cpu_minutes >= STARTUP_NEEDS_MINUTES)
		startup_begin(&u->startup, t);
}

void usage_pod_gone(struct usage_history *u)
{
	if (u->model->profile == PROFILE_VPA)
		forget_container(u);
}

static void count_cpu(struct usage_history *u, int64_t t, double millicores, double minutes)
{
	histogram_add(&u->histogram[RESOURCE_CPU], millicores, CPU_WEIGHT * minutes, t);
	if (u->cpu_last == TIME_NONE || t > u->cpu_last)
		u->cpu_last = t;
	if (u->cpu_first == TIME_NONE || t < u->cpu_first)
		u->cpu_first = t;
	u->cpu_samples++;
	u->cpu_minutes += minutes;
}

/* Seldom exceeded. */
static double usual_cpu(const struct usage_history *u)
{
	return (double)histogram_percentile(&u->histogram[RESOURCE_CPU], 0.95);
}

int usage_add_cpu(struct usage_history *u, int64_t t, double millicores, double minutes)
{
	struct startup_settled settled;

	if (!(millicores >= 0) || !(minutes > 0) || t == TIME_NONE)
		return -EINVAL;
	if (u->cpu_container_last != TIME_NONE && t <= u->cpu_container_last)
		return t == u->cpu_container_last ? -EEXIST : -ESTALE;
	millicores = u->model->profile == PROFILE_VPA ? (double)amount_from_double(millicores)
						      : fmin(millicores, (double)AMOUNT_MAX);
	u->cpu_container_last = t;
	if (!startup_running(&u->startup)) {
		count_cpu(u, t, millicores, minutes);
		return 0;
	}
	if (startup_take(&u->startup, t, millicores, usual_cpu(u), &settled))
		return 0;
	for (uint32_t i = 0; i < settled.n; i++)
		count_cpu(u, settled.at[i], settled.millicores[i], minutes);
	return 0;
}

/* Moves the window so that it holds t, which is at or after its end. */
static void next_window(struct memory_window *w, int64_t t, int64_t interval_ns)
{
	int64_t since = instant_since(t, w->end);

	w->end = instant_add(instant_add(w->end, since - since % interval_ns), interval_ns);
	w->peak = w->oom_peak = 0;
	w->has_peak = false;
}

/* A reading, or a value derived from an OOM: the window's peak if it is higher than the one before.
 */
static int add_peak(struct usage_history *u, int64_t t, int64_t bytes, bool oom)
{
	struct histogram *h = &u->histogram[RESOURCE_MEMORY];
	struct memory_window *w = &u->window;
	int64_t old;

	if (bytes < 0 || t == TIME_NONE)
		return -EINVAL;
	if (!oom && w->last != TIME_NONE && t < w->last)
		return -ESTALE;
	w->last = t;
	if (w->end == TIME_NONE)
		w->end = t;
	if (t < w->end) {
		old = w->peak > w->oom_peak ? w->peak : w->oom_peak;
		/* The reference takes a peak of 0 for "none was stored", and then stores none until
		 * the window ends. */
		if (u->model->profile == PROFILE_VPA ? old == 0 : !w->has_peak)
			return 0;
		if (bytes <= old)
			return 0;
		histogram_subtract(h, (double)old, MEMORY_WEIGHT, w->end);
	} else {
		next_window(w, t, u->model->memory_interval_ns);
	}
	histogram_add(h, (double)bytes, MEMORY_WEIGHT, w->end);
	w->has_peak = true;
	if (oom)
		w->oom_peak = bytes;
	else
		w->peak = bytes;
	return 0;
}

static int64_t minute_of(int64_t t)
{
	return t / INSTANT_MINUTE - (t % INSTANT_MINUTE < 0);
}

int usage_add_memory(struct usage_history *u, int64_t t, int64_t bytes)
{
	int r;

	r = add_peak(u, t, bytes < AMOUNT_MAX ? bytes : AMOUNT_MAX, false);
	if (r < 0)
		return r;
	if (u->memory_last == TIME_NONE || minute_of(t) > minute_of(u->memory_last))
		u->memory_minutes++;
	if (u->memory_first == TIME_NONE || t < u->memory_first)
		u->memory_first = t;
	if (u->memory_last == TIME_NONE || t > u->memory_last)
		u->memory_last = t;
	u->memory_samples++;
	return 0;
}

int64_t usage_bump(const struct knobs *k, int64_t used)
{
	int64_t by_bytes = used + amount_from_double(k->oom_min_bump_up_bytes);
	int64_t by_ratio = amount_scale(used, k->oom_bump_up_ratio);

	return by_bytes > by_ratio ? by_bytes : by_ratio;
}

int64_t usage_above(const struct model *m, int64_t used)
{
	const struct buckets *b = &m->buckets[RESOURCE_MEMORY];
	int64_t above = b->answer[buckets_find(b, (double)used)];

	return above > used ? above : used + 1;
}

static void raise_floor(struct usage_history *u, int64_t t, int64_t used)
{
	struct memory_floor *f = &u->floor;

	if (f->used == 0 || used > f->used || instant_since(t, f->at) > u->model->retention_ns)
		f->used = used;
	if (f->at == TIME_NONE || t > f->at)
		f->at = t;
}

static int record_shortage(struct usage_history *u, const struct knobs *k, int64_t t, int64_t bytes)
{
	const struct memory_window *w = &u->window;
	int64_t used;
	int r;

	if (t == TIME_NONE)
		return -EINVAL;
	if (w->last != TIME_NONE && instant_since(t, w->last) < -u->model->memory_interval_ns)
		return -ESTALE;
	/* Without oom_peak: kills that follow each other do not add up. */
	used = bytes > w->peak ? bytes : w->peak;
	used = used < AMOUNT_MAX ? used : AMOUNT_MAX;
	r = add_peak(u, t, usage_bump(k, used), true);
	if (r < 0)
		return r;
	raise_floor(u, t, used);
	return 0;
}

int usage_record_oom(struct usage_history *u, const struct knobs *k, int64_t t, int64_t bytes)
{
	int r;

	r = record_shortage(u, k, t, bytes);
	if (r < 0)
		return r;
	usage_count_oom(u, t);
	return 0;
}

void usage_count_oom(struct usage_history *u, int64_t t)
{
	u->oom_kills++;
	if (u->oom_last == TIME_NONE || t > u->oom_last)
		u->oom_last = t;
}

int usage_record_ahead(
	struct usage_history *u, const struct knobs *k, int64_t t, int64_t limit_bytes)
{
	int r;

	r = record_shortage(u, k, t, limit_bytes);
	if (r < 0)
		return r;
	if (u->ahead_last == TIME_NONE || t > u->ahead_last)
		u->ahead_last = t;
	return 0;
}

int64_t usage_recent_peak(const struct usage_history *u)
{
	return u->window.peak > u->window.oom_peak ? u->window.peak : u->window.oom_peak;
}

static int64_t earlier(int64_t a, int64_t b)
{
	if (a == TIME_NONE || b == TIME_NONE)
		return a == TIME_NONE ? b : a;
	return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int usage_merge(struct usage_history *u, struct usage_history *o)
{
	if (u->model != o->model)
		return -EINVAL;
	for (int r = 0; r < RESOURCES; r++) {
		int error = histogram_merge(&u->histogram[r], &o->histogram[r]);

		if (error < 0)
			return error;
	}
	u->cpu_first = earlier(u->cpu_first, o->cpu_first);
	u->cpu_last = later(u->cpu_last, o->cpu_last);
	u->cpu_samples += o->cpu_samples;
	u->cpu_minutes += o->cpu_minutes;
	u->memory_first = earlier(u->memory_first, o->memory_first);
	u->memory_last = later(u->memory_last, o->memory_last);
	u->memory_samples += o->memory_samples;
	u->memory_minutes += o->memory_minutes;
	u->oom_kills += o->oom_kills;
	u->oom_last = later(u->oom_last, o->oom_last);
	u->ahead_last = later(u->ahead_last, o->ahead_last);
	u->throttled_minutes += o->throttled_minutes;
	if (o->floor.used > 0)
		raise_floor(u, o->floor.at, o->floor.used);
	return 0;
}

void usage_shift(struct usage_history *u, int64_t by_ns)
{
	int64_t *const instants[] = {&u->cpu_first, &u->cpu_last, &u->cpu_container_last,
		&u->memory_first, &u->memory_last, &u->window.last, &u->window.end, &u->oom_last,
		&u->floor.at, &u->ahead_last, &u->startup.started,
		&u->histogram[RESOURCE_CPU].reference, &u->histogram[RESOURCE_MEMORY].reference};

	for (size_t i = 0; i < ARRAY_SIZE(instants); i++)
		*instants[i] = instant_add(*instants[i], by_ns);
	for (size_t i = 0; i < ARRAY_SIZE(u->startup.recent_at); i++)
		u->startup.recent_at[i] = instant_add(u->startup.recent_at[i], by_ns);
}
