/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "agent/observe/observe.h"
#include "proto/json_write.h"
#include "proto/quantity.h"
#include "rules/amount_json.h"
#include "rules/instant.h"

static const char *const event_names[] = {
	[OBSERVED_OOM] = "oom", [OBSERVED_AHEAD] = "ahead-of-oom", [OBSERVED_GONE] = "gone"};

static void recommend(
	const struct observe_table *t, const struct observed *o, struct recommendation *ret)
{
	estimate(&o->usage, t->knobs, 1, clock_wall_usec(t->clock) * NSEC_PER_USEC, ret, NULL);
}

/* ---- JSON */

static void put_cpu(struct json_writer *w, const struct container *c)
{
	json_key(w, "cpu");
	json_begin_object(w);
	json_key(w, "last_millicores");
	if (c->millicores_known)
		json_i64(w, llround(c->millicores));
	else
		json_null(w);
	if (!isnan(c->throttled_fraction)) {
		json_key(w, "throttled_fraction");
		json_double(w, c->throttled_fraction);
	}
	if (c->limits_usec && c->limits.cpu_max_millicores != CG_MAX) {
		json_key(w, "limit_millicores");
		json_u64(w, c->limits.cpu_max_millicores);
	}
	json_end_object(w);
}

static void put_memory(struct json_writer *w, const struct container *c)
{
	uint64_t limit;

	json_key(w, "memory");
	json_begin_object(w);
	json_key(w, "last_bytes");
	if (c->working_set_known)
		json_u64(w, c->working_set_bytes);
	else
		json_null(w);
	if (container_memory_limit(c, &limit)) {
		json_key(w, "limit_bytes");
		json_u64(w, limit);
	}
	json_end_object(w);
}

static void put_events(struct json_writer *w, const struct observed *o)
{
	uint64_t first = o->n_events > OBSERVE_EVENTS_MAX ? o->n_events - OBSERVE_EVENTS_MAX : 0;

	json_key(w, "events");
	json_begin_array(w);
	for (uint64_t i = first; i < o->n_events; i++) {
		const struct observed_event *e = &o->events[i % OBSERVE_EVENTS_MAX];

		json_begin_object(w);
		json_key(w, "time");
		json_time(w, e->t_ns);
		json_key(w, "kind");
		json_string(w, event_names[e->kind]);
		if (e->kind == OBSERVED_OOM) {
			json_key(w, "class");
			json_string(w, oom_class_name(e->class));
		}
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_observed(
	const struct observe_table *t, const struct observed *o, struct json_writer *w)
{
	struct recommendation r;

	recommend(t, o, &r);
	json_begin_object(w);
	json_key(w, "cgroup");
	json_string(w, o->path);
	json_key(w, "gone");
	json_bool(w, !o->here || o->container.gone);
	json_key(w, "samples");
	json_i64(w, o->usage.cpu_samples);
	put_cpu(w, &o->container);
	put_memory(w, &o->container);
	json_key(w, "oomKills");
	json_i64(w, o->usage.oom_kills);
	put_events(w, o);
	bounds_members(w, &r);
	json_end_object(w);
}

void observe_print_json(const struct observe_table *t, struct buf *b)
{
	struct json_writer w = JSON_WRITER(b);

	json_begin_object(&w);
	json_key(&w, "containers");
	json_begin_array(&w);
	for (const struct observed *o = t->first; o; o = o->next)
		put_observed(t, o, &w);
	json_end_array(&w);
	json_end_object(&w);
	(void)buf_putc(b, '\n');
}

/* ---- text */

#define CELL_MAX QUANTITY_TEXT_MAX

/* "12.3Mi": three digits are enough for the eye. */
static void show_bytes(bool known, uint64_t bytes, char out[CELL_MAX])
{
	static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
	double v = (double)bytes;
	size_t unit = 0;

	while (v >= 1000 && unit + 1 < ARRAY_SIZE(units)) {
		v /= 1024;
		unit++;
	}
	if (!known)
		(void)snprintf(out, CELL_MAX, "-");
	else
		(void)snprintf(
			out, CELL_MAX, "%.*f%s", unit > 0 && v < 100 ? 1 : 0, v, units[unit]);
}

static void show_millicores(bool known, int64_t millicores, char out[CELL_MAX])
{
	if (known)
		(void)quantity_format_millicores(millicores, out);
	else
		(void)snprintf(out, CELL_MAX, "-");
}

static const char *latest_event(const struct observed *o)
{
	if (!o->here || o->container.gone)
		return "gone";
	return o->n_events > 0 ? event_names[o->events[(o->n_events - 1) % OBSERVE_EVENTS_MAX].kind]
			       : "";
}

static void print_row(const struct observe_table *t, const struct observed *o, int path_width,
	bool colour, struct buf *b)
{
	const struct container *c = &o->container;
	char cpu[CELL_MAX], memory[CELL_MAX], target_cpu[CELL_MAX], target_memory[CELL_MAX];
	char throttled[CELL_MAX] = "-";
	const struct amounts *target;
	struct recommendation r;
	size_t length = strlen(o->path), skip;
	bool loud = colour && o->usage.oom_kills > 0;

	recommend(t, o, &r);
	target = &r.amounts[BOUND_TARGET];
	show_millicores(c->millicores_known, llround(c->millicores), cpu);
	show_bytes(c->working_set_known, c->working_set_bytes, memory);
	show_millicores(target->known[RESOURCE_CPU], target->value[RESOURCE_CPU], target_cpu);
	show_bytes(target->known[RESOURCE_MEMORY], (uint64_t)target->value[RESOURCE_MEMORY],
		target_memory);
	if (!isnan(c->throttled_fraction))
		(void)snprintf(throttled, sizeof(throttled), "%.0f%%", c->throttled_fraction * 100);
	/* The end of a path tells more than its beginning. */
	skip = length > (size_t)path_width ? length - (size_t)path_width + 1 : 0;
	(void)buf_printf(b, "%s%s%-*s %8s %8s %9s %4lld %8s %8s  %s%s\n", loud ? "\033[31m" : "",
		skip ? "<" : "", path_width - (skip ? 1 : 0), o->path + skip, cpu, memory,
		throttled, (long long)o->usage.oom_kills, target_cpu, target_memory,
		latest_event(o), loud ? "\033[0m" : "");
}

#define OTHER_COLUMNS 70 /* width of all columns but the path */

static int path_width(const struct observe_table *t, unsigned int columns)
{
	size_t longest = sizeof("CGROUP") - 1;

	for (const struct observed *o = t->first; o; o = o->next)
		longest = MAX(longest, strlen(o->path));
	if (columns > 0)
		longest = MIN(longest,
			(size_t)(columns > OTHER_COLUMNS + 20 ? columns - OTHER_COLUMNS : 20));
	return (int)longest;
}

void observe_print_table(const struct observe_table *t, unsigned int rows, unsigned int columns,
	bool colour, struct buf *b)
{
	int width = path_width(t, columns);
	unsigned int shown = 0, room = rows > 4 ? rows - 3 : rows > 0 ? 1 : OBSERVED_MAX;

	(void)buf_printf(b, "%-*s %8s %8s %9s %4s %8s %8s\n", width, "CGROUP", "CPU", "MEMORY",
		"THROTTLED", "OOM", "->CPU", "->MEMORY");
	for (const struct observed *o = t->first; o && shown < room; o = o->next, shown++)
		print_row(t, o, width, colour, b);
	if (shown < t->n)
		(void)buf_printf(b, "... and %u more\n", t->n - shown);
	if (t->refused > 0)
		(void)buf_printf(b,
			"%llu cgroups more than can be watched at once (%u): name fewer\n",
			(unsigned long long)t->refused, OBSERVED_MAX);
	if (t->cut)
		(void)buf_puts(b, "the tree is too large to look at all of it: name a part of it "
				  "with --cgroup-root\n");
}
