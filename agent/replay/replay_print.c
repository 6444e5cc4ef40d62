// SPDX-License-Identifier: Apache-2.0
/* For programs: JSON and CSV. What was never measured is left out (JSON) or empty (CSV). */
#include "agent/replay/replay.h"
#include "base/num.h"
#include "proto/json_write.h"
#include "proto/rfc3339.h"
#include "rules/amount_json.h"
#include "rules/instant.h"

static void put_reference(struct json_writer *w, int64_t ns)
{
	if (ns == TIME_NONE)
		json_null(w);
	else if (ns % INSTANT_SECOND == 0)
		json_i64(w, ns / INSTANT_SECOND);
	else
		json_double17(w, (double)ns / (double)INSTANT_SECOND);
}

static void put_histogram(struct json_writer *w, const char *key, const struct histogram *h)
{
	json_key(w, key);
	json_begin_object(w);
	json_key(w, "referenceTime");
	put_reference(w, h->reference);
	json_key(w, "total");
	json_double17(w, h->total);
	json_key(w, "minBucket");
	json_u64(w, h->min);
	json_key(w, "maxBucket");
	json_u64(w, h->max);
	json_key(w, "nonZero");
	json_u64(w, histogram_nonzero(h));
	json_end_object(w);
}

struct measured {
	bool cpu, memory;
};

static struct measured measured_of(const struct replay_series *s)
{
	return (struct measured){
		s->usage.cpu_samples > 0, s->usage.memory_samples > 0 || s->usage.oom_kills > 0};
}

static void put_double(struct json_writer *w, const char *key, double v)
{
	json_key(w, key);
	json_double(w, v);
}

static void put_result(struct json_writer *w, const char *key, const struct whatif_result *r,
	struct measured m, const struct amounts *request)
{
	json_key(w, key);
	json_begin_object(w);
	if (m.cpu)
		put_double(w, "cpu_core_hours", r->cpu_core_hours);
	if (m.memory)
		put_double(w, "memory_gib_hours", r->memory_gib_hours);
	if (m.cpu)
		put_double(w, "cpu_shortage_minutes", r->cpu_shortage_minutes);
	if (m.memory)
		put_double(w, "memory_shortage_minutes", r->memory_shortage_minutes);
	json_key(w, "resizes");
	json_i64(w, r->resizes);
	json_key(w, "node_writes");
	json_i64(w, r->node_writes);
	if (request)
		amounts_members(w, request);
	json_end_object(w);
}

static void put_report(
	struct json_writer *w, const struct whatif_report *r, struct measured m, bool one_series)
{
	put_result(w, "pernode", &r->pernode, m, NULL);
	put_result(w, "fixed", &r->fixed, m, one_series ? &r->fixed_request : NULL);
	put_result(w, "used", &r->used, m, NULL);
}

static void put_series(struct json_writer *w, const struct replay_series *s)
{
	json_begin_object(w);
	json_key(w, "series");
	json_string(w, s->name);
	json_key(w, "samples");
	json_i64(w, s->usage.cpu_samples);
	json_key(w, "badLines");
	json_u64(w, s->bad_rows);
	json_key(w, "oomKills");
	json_i64(w, s->usage.oom_kills);
	json_key(w, "since");
	json_time(w, s->since);
	json_key(w, "last");
	json_time(w, s->last);
	bounds_members(w, &s->recommendation);
	json_key(w, "histogram");
	json_begin_object(w);
	put_histogram(w, "cpu", &s->usage.histogram[RESOURCE_CPU]);
	put_histogram(w, "memory", &s->usage.histogram[RESOURCE_MEMORY]);
	json_end_object(w);
	json_key(w, "whatIf");
	json_begin_object(w);
	put_report(w, &s->report, measured_of(s), true);
	json_end_object(w);
	json_end_object(w);
}

void replay_print_json(const struct replay *r, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);
	struct measured any = {false, false};
	int64_t samples = 0, oom_kills = 0;

	json_begin_object(&w);
	json_key(&w, "profile");
	json_string(&w, r->settings->knobs.profile == PROFILE_VPA ? "vpa" : "fine");
	json_key(&w, "series");
	json_begin_array(&w);
	for (size_t i = 0; i < r->n_series; i++) {
		const struct replay_series *s = r->series[i];
		struct measured m = measured_of(s);
		put_series(&w, s);
		any = (struct measured){any.cpu || m.cpu, any.memory || m.memory};
		samples += s->usage.cpu_samples;
		oom_kills += s->usage.oom_kills;
	}
	json_end_array(&w);
	json_key(&w, "all");
	json_begin_object(&w);
	json_key(&w, "samples");
	json_i64(&w, samples);
	json_key(&w, "badLines");
	json_u64(&w, r->bad);
	json_key(&w, "oomKills");
	json_i64(&w, oom_kills);
	put_report(&w, &r->all, any, false);
	json_end_object(&w);
	json_end_object(&w);
	(void)buf_putc(out, '\n');
}

/* In quotes only when need be. */
static void put_cell(struct buf *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		(void)buf_puts(out, text);
		return;
	}
	(void)buf_putc(out, '"');
	for (; *text; text++) {
		if (*text == '"')
			(void)buf_putc(out, '"');
		(void)buf_putc(out, *text);
	}
	(void)buf_putc(out, '"');
}

static void put_i64_cell(struct buf *out, bool known, int64_t v)
{
	(void)buf_putc(out, ',');
	if (known)
		(void)buf_printf(out, "%lld", (long long)v);
}

static void put_double_cell(struct buf *out, bool known, double v)
{
	char text[32];

	(void)buf_putc(out, ',');
	if (known)
		(void)buf_append(out, text, format_double(v, text));
}

static void put_result_cells(struct buf *out, const struct whatif_result *r, struct measured m)
{
	put_double_cell(out, m.cpu, r->cpu_core_hours);
	put_double_cell(out, m.memory, r->memory_gib_hours);
	put_double_cell(out, m.cpu, r->cpu_shortage_minutes);
	put_double_cell(out, m.memory, r->memory_shortage_minutes);
}

static void put_row(struct buf *out, const struct replay_series *s)
{
	struct measured m = measured_of(s);
	char since[RFC3339_TEXT_MAX], last[RFC3339_TEXT_MAX];

	(void)rfc3339_format(s->since, since);
	(void)rfc3339_format(s->last, last);
	put_cell(out, s->name);
	(void)buf_printf(out, ",%lld,%llu,%lld,%s,%s", (long long)s->usage.cpu_samples,
		(unsigned long long)s->bad_rows, (long long)s->usage.oom_kills, since, last);
	for (int b = 0; b < BOUNDS; b++)
		for (int i = 0; i < RESOURCES; i++)
			put_i64_cell(out, s->recommendation.amounts[b].known[i],
				s->recommendation.amounts[b].value[i]);
	put_result_cells(out, &s->report.pernode, m);
	put_i64_cell(out, true, s->report.pernode.resizes);
	put_i64_cell(out, true, s->report.pernode.node_writes);
	put_result_cells(out, &s->report.fixed, m);
	for (int i = 0; i < RESOURCES; i++)
		put_i64_cell(
			out, s->report.fixed_request.known[i], s->report.fixed_request.value[i]);
	put_double_cell(out, m.cpu, s->report.used.cpu_core_hours);
	put_double_cell(out, m.memory, s->report.used.memory_gib_hours);
	(void)buf_putc(out, '\n');
}

void replay_print_csv(const struct replay *r, struct buf *out)
{
	(void)buf_puts(out, "series,samples,bad_lines,oom_kills,since,last,"
			    "target_cpu_millicores,target_memory_bytes,lower_bound_cpu_millicores,"
			    "lower_bound_memory_bytes,"
			    "upper_bound_cpu_millicores,upper_bound_memory_bytes,"
			    "pernode_cpu_core_hours,pernode_memory_gib_hours,pernode_cpu_shortage_"
			    "minutes,pernode_memory_shortage_minutes,"
			    "pernode_resizes,pernode_node_writes,"
			    "fixed_cpu_core_hours,fixed_memory_gib_hours,fixed_cpu_shortage_"
			    "minutes,fixed_memory_shortage_minutes,"
			    "fixed_cpu_millicores,fixed_memory_bytes,used_cpu_core_hours,used_"
			    "memory_gib_hours\n");
	for (size_t i = 0; i < r->n_series; i++)
		put_row(out, r->series[i]);
}
