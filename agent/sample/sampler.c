/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sample/sampler.h"

#include <fcntl.h>
#include <math.h>

#include "base/num.h"
#include "rules/throttle.h"

#define LIMITS_INTERVAL_USEC USEC_PER_MINUTE
#define FAST_LIMITS_INTERVAL_USEC                                                          \
	(5 * USEC_PER_SEC)                    /* near its limit it is likely to be resized \
					       */
#define ACTIVITY_WEIGHT 0.1                   /* of the newest interval in the decaying mean */
#define WINDOW_MIN_USEC (250 * USEC_PER_MSEC) /* less says nothing about CPU use */
#define WINDOW_TOLERANCE 0.1 /* a window this near to the nominal length counts as nominal */

/* Wall time of a monotonic instant, by the last look at both clocks. A round looks once: each
 * container comes at the same place of each round, so the time between two of its readings is right
 * to the jitter of a round, and a look per container would cost as much as a read where the kernel
 * has no vDSO. */
static int64_t wall_ns(const struct sampler *s, uint64_t mono_usec)
{
	return (s->watch.wall_usec + (int64_t)(mono_usec - s->watch.mono_usec)) * NSEC_PER_USEC;
}

static void look_at_clock(struct sampler *s)
{
	int64_t jump = clock_watch_look(&s->watch, s->clock, CLOCK_JUMP_USEC);

	if (!jump)
		return;
	s->clock_jumps++;
	if (s->events.clock_jumped)
		s->events.clock_jumped(i64_mul_sat(jump, NSEC_PER_USEC), s->events.arg);
}

/* ---- CPU */

/* The throttling counters of the level that holds the quota. False: there is no quota, or they
 * cannot be read. */
static bool throttling_now(struct sampler *s, struct container *c, struct cpu_stat *ret)
{
	enum cgleaf_level level = c->limits.quota_level;

	if (c->limits.cpu_max_millicores == CG_MAX)
		return false;
	if (level == LEVEL_SELF) {
		*ret = c->sample.cpu;
		return c->sample.cpu_outcome == CG_OK &&
		       (ret->seen & CPU_THROTTLE_KEYS) == CPU_THROTTLE_KEYS;
	}
	return cgleaf_read_throttling(&c->leaf, &s->io, level, ret) == CG_OK;
}

static void window_open(struct sampler *s, struct container *c)
{
	struct cpu_window *w = &c->window;
	struct cpu_stat t;

	*w = (struct cpu_window){
		.open = true, .start_usec = c->last_usec, .start_usage_usec = c->last_usage_usec};
	if (throttling_now(s, c, &t)) {
		w->throttle_known = true;
		w->nr_periods = t.nr_periods;
		w->nr_throttled = t.nr_throttled;
		w->throttled_usec = t.throttled_usec;
	}
}

/* What the window's usage says about demand, given how much of it was throttled. */
static double window_demand(
	struct sampler *s, struct container *c, double usage_millicores, uint64_t elapsed_usec)
{
	const struct cpu_window *w = &c->window;
	struct throttle_window t = {.usage_millicores = usage_millicores,
		.quota_millicores = (double)c->limits.cpu_max_millicores,
		.elapsed_usec = elapsed_usec};
	struct cpu_stat now;
	double demand;

	c->throttled_fraction = NAN;
	c->throttled = false;
	if (!w->throttle_known || c->gone || !throttling_now(s, c, &now) ||
		now.nr_periods < w->nr_periods || now.nr_throttled < w->nr_throttled ||
		now.throttled_usec < w->throttled_usec)
		return usage_millicores;
	t.nr_periods = now.nr_periods - w->nr_periods;
	t.nr_throttled = now.nr_throttled - w->nr_throttled;
	t.throttled_usec = now.throttled_usec - w->throttled_usec;
	c->throttled_fraction = throttle_fraction(&t);
	demand = throttle_demand(&t, &c->throttled);
	return c->knobs->throttling_demand ? demand : usage_millicores;
}

/* What the window stands for, in minutes: its nominal length when it is about that long. */
static double window_minutes(const struct sampler *s, uint64_t elapsed_usec)
{
	double nominal = (double)s->window_usec / (double)USEC_PER_MINUTE;
	double actual = (double)elapsed_usec / (double)USEC_PER_MINUTE;

	return fabs(actual - nominal) <= nominal * WINDOW_TOLERANCE ? nominal : actual;
}

/* Ends the window at the last reading, and counts it. Whose it is must be known. */
static void window_close(struct sampler *s, struct container *c)
{
	struct cpu_window *w = &c->window;
	uint64_t elapsed = c->last_usec - w->start_usec;
	double millicores, minutes;
	int64_t t;

	if (!w->open || !c->usage || elapsed < WINDOW_MIN_USEC)
		return;
	w->open = false;
	millicores = (double)(c->last_usage_usec - w->start_usage_usec) * 1000 / (double)elapsed;
	millicores = window_demand(s, c, millicores, elapsed);
	minutes = window_minutes(s, elapsed);
	/* The sample belongs to the instant of the last reading. */
	t = wall_ns(s, c->last_usec);
	if (usage_add_cpu(c->usage, t, millicores, minutes) < 0)
		return;
	c->usage->throttled_minutes += c->throttled;
	if (s->events.window)
		s->events.window(c, t, millicores, minutes, s->events.arg);
}

static void take_cpu(struct sampler *s, struct container *c, uint64_t now)
{
	uint64_t usage = c->sample.cpu.usage_usec, used = 0;
	uint64_t elapsed = now - c->last_usec;
	enum step step = STEP_FIRST;

	if (c->cpu_known)
		step = cpu_step(c->last_usage_usec, usage, elapsed, s->n_cpus, &used);
	c->backwards += step == STEP_BACKWARDS;
	c->impossible += step == STEP_IMPOSSIBLE;
	c->millicores_known = step == STEP_OK && elapsed > 0;
	if (c->millicores_known) {
		c->millicores = (double)used * 1000 / (double)elapsed;
		c->activity += ACTIVITY_WEIGHT * (c->millicores - c->activity);
	} else if (step != STEP_OK) {
		/* What the window has so far cannot be joined to what comes. */
		c->window.open = false;
	}
	c->cpu_known = true;
	c->last_usec = now;
	c->last_usage_usec = usage;
	if (!c->window.open)
		window_open(s, c);
	/* Rounds are a little early or late: the nearest one to the window's end ends it. */
	if (now - c->window.start_usec + s->interval_usec / 2 >= s->window_usec) {
		window_close(s, c);
		if (!c->window.open)
			window_open(s, c);
	}
}

/* ---- memory */

static int64_t as_amount(uint64_t bytes)
{
	return (int64_t)MIN(bytes, (uint64_t)INT64_MAX);
}

/* How far anonymous memory of this container could still be swapped out. */
static uint64_t swap_room(const struct sampler *s, const struct container *c)
{
	const struct cgleaf_limits *l = &c->limits;

	if (l->swap_outcome != CG_OK)
		return s->swap_free_bytes;
	if (l->swap_max_bytes <= l->swap_current_bytes)
		return 0;
	return MIN(s->swap_free_bytes, l->swap_max_bytes - l->swap_current_bytes);
}

static void look_ahead(struct sampler *s, struct container *c, uint64_t now)
{
	enum ahead_verdict verdict;
	uint64_t bytes, limit = 0;
	int64_t t = wall_ns(s, now);
	bool fast;

	if (!c->usage || !c->knobs->ahead_of_oom || c->sample.stat_outcome != CG_OK ||
		!memory_stat_unreclaimable(&c->sample.memory, swap_room(s, c), &bytes))
		return;
	if (!container_memory_limit(c, &limit))
		limit = 0;
	verdict = ahead_take(&c->ahead, now, as_amount(bytes), as_amount(limit));
	fast = verdict != AHEAD_CALM;
	s->n_fast += (unsigned int)fast - (unsigned int)c->fast;
	c->fast = fast;
	if (verdict != AHEAD_WARN)
		return;
	(void)usage_record_ahead(c->usage, c->knobs, t, as_amount(limit));
	if (s->events.ahead)
		s->events.ahead(c, t, s->events.arg);
}

static void take_memory(struct sampler *s, struct container *c, uint64_t now)
{
	uint64_t bytes;

	c->working_set_known = cgleaf_working_set(&c->sample, &bytes) == CG_OK;
	if (c->working_set_known) {
		c->working_set_bytes = c->last_working_set_bytes = bytes;
		if (c->usage)
			(void)usage_add_memory(c->usage, wall_ns(s, now), as_amount(bytes));
		else
			c->held_peak_bytes = MAX(c->held_peak_bytes, bytes);
	}
	look_ahead(s, c, now);
}

/* ---- rounds */

void sampler_gone(struct sampler *s, struct container *c)
{
	if (c->gone)
		return;
	c->gone = true;
	s->n_fast -= c->fast;
	c->fast = false;
	window_close(s, c);
	c->millicores_known = c->working_set_known = false;
	cgleaf_release(&c->leaf, &s->io);
	if (s->events.gone)
		s->events.gone(c, s->events.arg);
}

static void read_limits(struct sampler *s, struct container *c, uint64_t now)
{
	uint64_t interval = c->fast ? FAST_LIMITS_INTERVAL_USEC : LIMITS_INTERVAL_USEC;

	if (c->limits_usec && now - c->limits_usec < interval)
		return;
	cgleaf_read_limits(&c->leaf, &s->io, &c->limits);
	c->limits_usec = MAX(now, (uint64_t)1);
}

static unsigned int counts_as_failed(enum cg_outcome o)
{
	return o != CG_OK && o != CG_NOT_READ && o != CG_GONE;
}

static void sample(struct sampler *s, struct container *c)
{
	uint64_t now;

	read_limits(s, c, s->watch.mono_usec);
	cgleaf_read(&c->leaf, &s->io, &c->sample);
	if (cgleaf_sample_gone(&c->sample)) {
		sampler_gone(s, c);
		return;
	}
	now = s->watch.mono_usec;
	c->read_usec = MAX(now, (uint64_t)1);
	c->failed += counts_as_failed(c->sample.cpu_outcome) +
		     counts_as_failed(c->sample.current_outcome) +
		     counts_as_failed(c->sample.stat_outcome);
	if (c->sample.cpu_outcome == CG_OK)
		take_cpu(s, c, now);
	else
		c->millicores_known = false;
	take_memory(s, c, now);
	c->rounds += c->millicores_known || c->working_set_known;
}

/* Free swap of the machine, in bytes; 0 when there is none or it cannot be read. */
static uint64_t swap_free(struct cgio *io)
{
	struct str text;

	if (cgio_read_at(io, AT_FDCWD, "/proc/meminfo", &text) != CG_OK)
		return 0;
	while (text.n > 0) {
		struct str line = str_cut(&text, '\n'), name = str_cut(&line, ':');
		uint64_t kib;

		if (!str_is(name, "SwapFree"))
			continue;
		line = str_trim(line);
		return parse_u64(str_cut(&line, ' '), &kib) == 0 && kib < UINT64_MAX >> 10
			       ? kib << 10
			       : 0;
	}
	return 0;
}

/* When descriptors are short: the busiest container without held files gets those of the quietest
 * one with them. One exchange a round is enough, since activity changes slowly. */
static void rebalance(struct sampler *s)
{
	struct container *busiest = NULL, *quietest = NULL;

	for (struct container *c = s->first; c; c = c->next) {
		if (c->gone)
			continue;
		if (!c->leaf.held && (!busiest || c->activity > busiest->activity))
			busiest = c;
		if (c->leaf.held && (!quietest || c->activity < quietest->activity))
			quietest = c;
	}
	if (!busiest || cgleaf_hold(&busiest->leaf, &s->io))
		return;
	if (quietest && quietest->activity < busiest->activity) {
		cgleaf_release(&quietest->leaf, &s->io);
		(void)cgleaf_hold(&busiest->leaf, &s->io);
	}
}

void sampler_round(struct sampler *s)
{
	bool short_of_fds = false;
	uint64_t now;

	look_at_clock(s);
	now = s->watch.mono_usec;
	if (!s->swap_read_usec || now - s->swap_read_usec >= LIMITS_INTERVAL_USEC) {
		s->swap_free_bytes = swap_free(&s->io);
		s->swap_read_usec = MAX(now, (uint64_t)1);
	}
	for (struct container *c = s->first, *next; c; c = next) {
		next = c->next; /* an event may remove c */
		if (c->gone)
			continue;
		short_of_fds |= !c->leaf.held;
		sample(s, c);
	}
	if (short_of_fds)
		rebalance(s);
	s->rounds++;
}

void sampler_look(struct sampler *s, struct container *c)
{
	struct cgleaf_sample sample = c->sample;
	uint64_t now;

	if (c->gone)
		return;
	look_at_clock(s);
	read_limits(s, c, s->watch.mono_usec);
	cgleaf_read_memory(&c->leaf, &s->io, &sample);
	if (cgleaf_sample_gone(&sample)) {
		sampler_gone(s, c);
		return;
	}
	sample.cpu_outcome = c->sample.cpu_outcome;
	c->sample = sample;
	now = s->watch.mono_usec;
	take_memory(s, c, now);
}

void sampler_round_fast(struct sampler *s)
{
	for (struct container *c = s->first, *next; c && s->n_fast > 0; c = next) {
		next = c->next;
		if (c->fast)
			sampler_look(s, c);
	}
}

void sampler_close_windows(struct sampler *s)
{
	look_at_clock(s);
	for (struct container *c = s->first; c; c = c->next)
		if (!c->gone)
			window_close(s, c);
}

void sampler_init(struct sampler *s, const struct clock *clock, uint64_t interval_usec,
	uint64_t window_usec, unsigned int reserve, const struct sampler_events *events)
{
	long n_cpus = sysconf(_SC_NPROCESSORS_CONF);

	*s = (struct sampler){.clock = clock,
		.interval_usec = interval_usec,
		.window_usec = window_usec,
		.n_cpus = n_cpus > 0 ? (unsigned int)n_cpus : 1};
	if (events)
		s->events = *events;
	cgio_init(&s->io, reserve);
	(void)clock_watch_look(&s->watch, clock, CLOCK_JUMP_USEC);
}

void sampler_finish(struct sampler *s)
{
	s->first = s->last = NULL;
	s->n_containers = 0;
}

void sampler_add(struct sampler *s, struct container *c)
{
	c->next = NULL;
	if (s->last)
		s->last->next = c;
	else
		s->first = c;
	s->last = c;
	s->n_containers++;
	(void)cgleaf_hold(&c->leaf, &s->io);
	look_at_clock(s);
	sample(s, c);
}

void sampler_remove(struct sampler *s, struct container *c)
{
	struct container *before = NULL;

	if (!c->gone)
		window_close(s, c);
	cgleaf_release(&c->leaf, &s->io);
	for (struct container *i = s->first; i && i != c; i = i->next)
		before = i;
	if (before)
		before->next = c->next;
	else
		s->first = c->next;
	if (s->last == c)
		s->last = before;
	s->n_containers--;
	s->n_fast -= c->fast;
}
