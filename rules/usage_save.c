/* SPDX-License-Identifier: Apache-2.0 */
/* A history as bytes: our own exact form, and the reference's quantised one. */
#include <errno.h>
#include <math.h>
#include <stddef.h>

#include "rules/instant.h"
#include "rules/usage.h"

#define SAVED_VERSION 1U

/* Everything of a history that is one int64 or one double, in the order in which it is kept. Only
 * ever add at the end of the lists of a new version. */
static const size_t integers[] = {
	offsetof(struct usage_history, cpu_first),
	offsetof(struct usage_history, cpu_last),
	offsetof(struct usage_history, cpu_samples),
	offsetof(struct usage_history, cpu_container_last),
	offsetof(struct usage_history, memory_first),
	offsetof(struct usage_history, memory_last),
	offsetof(struct usage_history, memory_samples),
	offsetof(struct usage_history, memory_minutes),
	offsetof(struct usage_history, window.last),
	offsetof(struct usage_history, window.end),
	offsetof(struct usage_history, window.peak),
	offsetof(struct usage_history, window.oom_peak),
	offsetof(struct usage_history, oom_kills),
	offsetof(struct usage_history, oom_last),
	offsetof(struct usage_history, floor.used),
	offsetof(struct usage_history, floor.at),
	offsetof(struct usage_history, ahead_last),
	offsetof(struct usage_history, throttled_minutes),
	offsetof(struct usage_history, startup.started),
};

/* Counts and amounts: what is below zero, or absurdly large, is damage. */
#define COUNT_MAX (INT64_C(1) << 53)
static const size_t not_negative[] = {
	offsetof(struct usage_history, cpu_samples),
	offsetof(struct usage_history, memory_samples),
	offsetof(struct usage_history, memory_minutes),
	offsetof(struct usage_history, window.peak),
	offsetof(struct usage_history, window.oom_peak),
	offsetof(struct usage_history, oom_kills),
	offsetof(struct usage_history, floor.used),
	offsetof(struct usage_history, throttled_minutes),
};

static int64_t *integer_at(struct usage_history *u, size_t offset)
{
	return (int64_t *)((char *)u + offset);
}

static void save_histogram(const struct histogram *h, struct buf *b)
{
	unsigned int i;

	checkpoint_put_u32(b, (uint32_t)h->buckets->scheme);
	checkpoint_put_i64(b, h->half_life_ns);
	checkpoint_put_i64(b, h->reference);
	checkpoint_put_double(b, h->total);
	checkpoint_put_u32(b, h->min);
	checkpoint_put_u32(b, h->max);
	checkpoint_put_u32(b, histogram_nonzero(h));
	for (i = 0; i < h->buckets->n; i++) {
		if (!(h->weight[i] > 0))
			continue;
		checkpoint_put_u8(b, (uint8_t)i);
		checkpoint_put_double(b, h->weight[i]);
	}
}

static void save_startup(const struct startup *s, struct buf *b)
{
	unsigned int i;

	checkpoint_put_u32(b, s->starts);
	checkpoint_put_u32(b, s->kept);
	checkpoint_put_u32(b, s->n_recent);
	for (i = 0; i < STARTUP_SETTLED; i++) {
		checkpoint_put_double(b, s->recent[i]);
		checkpoint_put_i64(b, s->recent_at[i]);
	}
	for (i = 0; i < STARTUP_MINUTES; i++) {
		checkpoint_put_double(b, s->minute[i]);
		checkpoint_put_u32(b, s->minute_starts[i]);
	}
}

void usage_save(const struct usage_history *u, struct buf *b)
{
	checkpoint_put_u32(b, SAVED_VERSION);
	checkpoint_put_i64(b, u->model->memory_interval_ns);
	for (size_t i = 0; i < ARRAY_SIZE(integers); i++)
		checkpoint_put_i64(b, *(const int64_t *)((const char *)u + integers[i]));
	checkpoint_put_double(b, u->cpu_minutes);
	checkpoint_put_u8(b, u->window.has_peak);
	save_startup(&u->startup, b);
	for (int r = 0; r < RESOURCES; r++)
		save_histogram(&u->histogram[r], b);
}

static bool usable(double v)
{
	return v >= 0 && !isinf(v);
}

/* Into h, whose buckets and half-life become those of the saved one; buckets is storage for them.
 */
static int load_histogram(struct histogram *h, struct buckets *buckets, enum resource resource,
	struct checkpoint_cursor *c, struct err *e)
{
	uint32_t scheme = checkpoint_get_u32(c), min, max, n;
	int64_t half_life_ns = checkpoint_get_i64(c);

	if (c->failed || scheme > BUCKETS_FINE || half_life_ns <= 0)
		return err_set(e, EINVAL, "bucket scheme %u, half-life %lld ns: not known", scheme,
			(long long)half_life_ns);
	buckets_init(buckets, (enum bucket_scheme)scheme, resource);
	histogram_init(h, buckets, half_life_ns);
	h->reference = checkpoint_get_i64(c);
	h->total = checkpoint_get_double(c);
	min = checkpoint_get_u32(c);
	max = checkpoint_get_u32(c);
	n = checkpoint_get_u32(c);
	if (c->failed || !usable(h->total) || min >= buckets->n || max >= buckets->n ||
		n > buckets->n)
		return err_set(e, EINVAL, "histogram of %u buckets from %u to %u, total %g", n, min,
			max, h->total);
	h->min = (uint16_t)min;
	h->max = (uint16_t)max;
	while (n-- > 0) {
		uint8_t i = checkpoint_get_u8(c);
		double weight = checkpoint_get_double(c);

		if (c->failed || i >= buckets->n || !usable(weight))
			return err_set(
				e, EINVAL, "weight %g in bucket %u of %u", weight, i, buckets->n);
		h->weight[i] = weight;
	}
	if (!histogram_empty(h) && (h->max < h->min || h->reference == TIME_NONE))
		return err_set(
			e, EINVAL, "histogram from bucket %u to %u without a reference", min, max);
	return 0;
}

static int load_startup(struct startup *s, struct checkpoint_cursor *c, struct err *e)
{
	bool good = true;
	unsigned int i;

	s->starts = checkpoint_get_u32(c);
	s->kept = checkpoint_get_u32(c);
	s->n_recent = checkpoint_get_u32(c);
	for (i = 0; i < STARTUP_SETTLED; i++) {
		s->recent[i] = checkpoint_get_double(c);
		s->recent_at[i] = checkpoint_get_i64(c);
		good = good && usable(s->recent[i]);
	}
	for (i = 0; i < STARTUP_MINUTES; i++) {
		s->minute[i] = checkpoint_get_double(c);
		s->minute_starts[i] = checkpoint_get_u32(c);
		good = good && usable(s->minute[i]);
	}
	if (c->failed || !good || s->n_recent > STARTUP_SETTLED)
		return err_set(e, EINVAL, "start-up profile is damaged");
	return 0;
}

static int load_scalars(struct usage_history *u, int64_t *ret_interval_ns,
	struct checkpoint_cursor *c, struct err *e)
{
	uint32_t version = checkpoint_get_u32(c);
	size_t i;

	if (c->failed || version != SAVED_VERSION)
		return err_set(
			e, EINVAL, "history of version %u, expected %u", version, SAVED_VERSION);
	*ret_interval_ns = checkpoint_get_i64(c);
	for (i = 0; i < ARRAY_SIZE(integers); i++)
		*integer_at(u, integers[i]) = checkpoint_get_i64(c);
	u->cpu_minutes = checkpoint_get_double(c);
	u->window.has_peak = checkpoint_get_u8(c) != 0;
	if (c->failed || *ret_interval_ns <= 0 || !usable(u->cpu_minutes))
		return err_set(e, EINVAL, "history is cut short or damaged");
	for (i = 0; i < ARRAY_SIZE(not_negative); i++)
		if (*integer_at(u, not_negative[i]) < 0 ||
			*integer_at(u, not_negative[i]) > COUNT_MAX)
			return err_set(e, EINVAL, "a count in the history is %lld",
				(long long)*integer_at(u, not_negative[i]));
	return load_startup(&u->startup, c, e);
}

static int load(
	struct usage_history *u, struct checkpoint_cursor *c, bool *ret_converted, struct err *e)
{
	int64_t interval_ns = 0;
	int r;

	r = load_scalars(u, &interval_ns, c, e);
	if (r < 0)
		return r;
	*ret_converted = interval_ns != u->model->memory_interval_ns;
	if (*ret_converted) {
		/* The next reading opens an interval of the new length; the peak so far stays
		 * counted. */
		u->window.end = TIME_NONE;
		u->window.peak = u->window.oom_peak = 0;
		u->window.has_peak = false;
	}
	for (int i = 0; i < RESOURCES; i++) {
		struct histogram *to = &u->histogram[i], from = {.buckets = to->buckets};
		struct buckets buckets;
		int64_t at = i == RESOURCE_CPU ? u->cpu_last : u->memory_last;

		r = load_histogram(&from, &buckets, (enum resource)i, c, e);
		if (r < 0)
			return r;
		if (from.buckets->scheme == to->buckets->scheme &&
			from.half_life_ns == to->half_life_ns) {
			from.buckets = to->buckets;
			*to = from;
			continue;
		}
		*ret_converted = true;
		histogram_convert(to, &from, at == TIME_NONE ? from.reference : at);
	}
	return 0;
}

int usage_load(
	struct usage_history *u, struct checkpoint_cursor *c, bool *ret_converted, struct err *e)
{
	bool converted = false;
	int r;

	r = load(u, c, &converted, e);
	if (r < 0) {
		usage_init(u, u->model);
		return r;
	}
	if (ret_converted)
		*ret_converted = converted;
	return 0;
}

/* To whole seconds, as times in a Kubernetes object are. */
static int64_t whole_second(int64_t t)
{
	int64_t rest = t % INSTANT_SECOND;

	if (t == TIME_NONE)
		return t;
	return instant_add(t, rest < 0 ? -rest - INSTANT_SECOND : -rest);
}

void usage_quantise(
	const struct usage_history *u, bool drop_peak, int64_t now, struct usage_quantised *ret)
{
	struct histogram memory = u->histogram[RESOURCE_MEMORY];

	if (drop_peak && u->window.end != TIME_NONE && now < u->window.end)
		histogram_subtract(&memory, (double)usage_recent_peak(u), 1.0, u->window.end);
	histogram_quantise(&u->histogram[RESOURCE_CPU], &ret->histogram[RESOURCE_CPU]);
	histogram_quantise(&memory, &ret->histogram[RESOURCE_MEMORY]);
	for (int r = 0; r < RESOURCES; r++)
		ret->histogram[r].reference = whole_second(ret->histogram[r].reference);
	ret->first = whole_second(u->cpu_first);
	ret->last = whole_second(u->cpu_last);
	ret->samples = u->cpu_samples;
}

int usage_unquantise(struct usage_history *u, const struct usage_quantised *q, struct err *e)
{
	struct usage_history loaded;

	if (q->samples < 0)
		return err_set(e, EINVAL, "%lld samples: expected a number that is not negative",
			(long long)q->samples);
	usage_init(&loaded, u->model);
	for (int r = 0; r < RESOURCES; r++) {
		int error = histogram_unquantise(&loaded.histogram[r], &q->histogram[r], e);

		if (error < 0)
			return error;
	}
	loaded.cpu_first = q->first;
	loaded.cpu_last = q->last;
	loaded.cpu_samples = q->samples;
	loaded.cpu_minutes = (double)q->samples;
	*u = loaded;
	return 0;
}
