// SPDX-License-Identifier: Apache-2.0
/* For people: what each container needs, what would have happened, and what that means. */
#include <math.h>

#include "agent/replay/replay.h"
#include "proto/rfc3339.h"
#include "rules/instant.h"

#define NAME_WIDTH_MAX 44U
#define CELL_MAX 48U

/* Columns are counted in characters, not bytes: "…" is one. */
static void put_padded(struct buf *out, const char *text, size_t width, bool right)
{
	size_t n = 0;

	for (const char *p = text; *p; p++)
		n += (*p & 0xc0) != 0x80;
	for (size_t i = n; right && i < width; i++)
		(void)buf_putc(out, ' ');
	(void)buf_puts(out, text);
	for (size_t i = n; !right && i < width; i++)
		(void)buf_putc(out, ' ');
}

/* A name may hold anything; the terminal gets printable ASCII. Of a long one the end is kept: there
 * is the node. */
static void name_cell(const char *name, char out[NAME_WIDTH_MAX + 3])
{
	size_t n = strlen(name), at = 0, from = n > NAME_WIDTH_MAX ? n - NAME_WIDTH_MAX + 1 : 0;

	if (n == 0) {
		memcpy(out, "(unnamed)", sizeof "(unnamed)");
		return;
	}
	if (from > 0) {
		memcpy(out, "…", 3);
		at = 3;
	}
	for (size_t i = from; i < n; i++)
		out[at++] = name[i] >= 0x20 && name[i] < 0x7f ? name[i] : '?';
	out[at] = '\0';
}

static void cpu_text(bool known, int64_t millicores, char out[CELL_MAX])
{
	if (!known)
		(void)snprintf(out, CELL_MAX, "-");
	else if (millicores >= 10000)
		(void)snprintf(out, CELL_MAX, "%.1f", (double)millicores / 1000);
	else
		(void)snprintf(out, CELL_MAX, "%lldm", (long long)millicores);
}

static void memory_text(bool known, int64_t bytes, char out[CELL_MAX])
{
	static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti"};
	double v = (double)bytes;
	size_t u = 0;

	if (!known) {
		(void)snprintf(out, CELL_MAX, "-");
		return;
	}
	for (; v >= 1024 && u + 1 < ARRAY_SIZE(units); u++)
		v /= 1024;
	(void)snprintf(out, CELL_MAX, "%.*f%s", u > 0 && v < 100 ? 1 : 0, v, units[u]);
}

static void amount_text(const struct amounts *a, enum resource resource, char out[CELL_MAX])
{
	(resource == RESOURCE_CPU ? cpu_text : memory_text)(
		a->known[resource], a->value[resource], out);
}

/* "587m", and "349m…1254m" beside it. */
static void put_need(struct buf *out, const struct recommendation *r, enum resource resource)
{
	char target[CELL_MAX], lower[CELL_MAX], upper[CELL_MAX], range[2 * CELL_MAX + 4];

	amount_text(&r->amounts[BOUND_TARGET], resource, target);
	amount_text(&r->amounts[BOUND_LOWER], resource, lower);
	amount_text(&r->amounts[BOUND_UPPER], resource, upper);
	(void)snprintf(range, sizeof range, "%s…%s", lower, upper);
	put_padded(out, target, 9, true);
	(void)buf_puts(out, "  ");
	put_padded(out,
		r->amounts[BOUND_LOWER].known[resource] || r->amounts[BOUND_UPPER].known[resource]
			? range
			: "",
		18, false);
}

static size_t name_width(const struct replay *r)
{
	size_t width = strlen("(unnamed)");

	for (size_t i = 0; i < r->n_series; i++)
		width = MAX(width, MIN(strlen(r->series[i]->name), (size_t)NAME_WIDTH_MAX));
	return width;
}

static void put_heading(struct buf *out, const char *text)
{
	(void)buf_printf(out, "\n%s\n", text);
}

static void put_needs(const struct replay *r, struct buf *out, size_t width)
{
	char name[NAME_WIDTH_MAX + 3];

	put_heading(out, "What each container needs: the request to set, and the bounds inside "
			 "which a request may stay");
	put_padded(out, "SERIES", width, false);
	(void)buf_puts(
		out, "        CPU  bounds                MEMORY  bounds              OOM KILLS\n");
	for (size_t i = 0; i < r->n_series; i++) {
		const struct replay_series *s = r->series[i];
		name_cell(s->name, name);
		put_padded(out, name, width, false);
		(void)buf_puts(out, "  ");
		put_need(out, &s->recommendation, RESOURCE_CPU);
		(void)buf_puts(out, "  ");
		put_need(out, &s->recommendation, RESOURCE_MEMORY);
		(void)buf_printf(out, "%9lld\n", (long long)s->usage.oom_kills);
	}
}

static void put_number(struct buf *out, double v, size_t width)
{
	char text[CELL_MAX];

	(void)snprintf(text, sizeof text, "%.*f", v < 10 ? 2 : v < 100 ? 1 : 0, v);
	put_padded(out, text, width, true);
}

static void put_measured(struct buf *out, bool known, double v, size_t width)
{
	if (known)
		put_number(out, v, width);
	else
		put_padded(out, "-", width, true);
}

static void put_minutes_cell(struct buf *out, bool known, double minutes, size_t width)
{
	char text[CELL_MAX];

	(void)snprintf(text, sizeof text, "%.0f", minutes);
	put_padded(out, known ? text : "-", width, true);
}

struct measured {
	bool cpu, memory;
};

static struct measured measured_of(const struct replay_series *s)
{
	return (struct measured){s->usage.cpu_samples > 0, s->usage.memory_samples > 0};
}

static struct measured measured_anywhere(const struct replay *r)
{
	struct measured any = {false, false};

	for (size_t i = 0; i < r->n_series; i++) {
		struct measured m = measured_of(r->series[i]);
		any = (struct measured){any.cpu || m.cpu, any.memory || m.memory};
	}
	return any;
}

static void put_what_if_row(struct buf *out, const char *name, size_t width,
	const struct whatif_report *r, struct measured m)
{
	put_padded(out, name, width, false);
	put_measured(out, m.cpu, r->pernode.cpu_core_hours, 10);
	put_measured(out, m.cpu, r->fixed.cpu_core_hours, 9);
	put_measured(out, m.cpu, r->used.cpu_core_hours, 9);
	put_measured(out, m.memory, r->pernode.memory_gib_hours, 10);
	put_measured(out, m.memory, r->fixed.memory_gib_hours, 9);
	put_measured(out, m.memory, r->used.memory_gib_hours, 9);
	put_minutes_cell(out, m.cpu, r->pernode.cpu_shortage_minutes, 10);
	put_minutes_cell(out, m.cpu, r->fixed.cpu_shortage_minutes, 9);
	put_minutes_cell(out, m.memory, r->pernode.memory_shortage_minutes, 10);
	put_minutes_cell(out, m.memory, r->fixed.memory_shortage_minutes, 9);
	(void)buf_printf(out, "%10lld%8lld\n", (long long)r->pernode.resizes,
		(long long)r->pernode.node_writes);
}

static void put_legend(const struct replay *r, struct buf *out)
{
	(void)buf_puts(out,
		"\n"
		"pernode  each series has its own request, which follows what it used\n");
	if (r->settings->request.cpu_millicores >= 0 || r->settings->request.memory_bytes >= 0)
		(void)buf_puts(
			out, "fixed    every series keeps the request given with --request\n");
	else
		(void)buf_puts(out, "fixed    one request for all series of the same name (before "
				    "\"@\"), chosen with\n"
				    "         hindsight: the smallest that is short no longer than "
				    "pernode's. Compare with\n"
				    "         your own by --request\n");
	(void)buf_puts(out, "used     what was really used\n"
			    "short    how long usage was above the request\n");
}

static void put_what_if(const struct replay *r, struct buf *out, size_t width)
{
	char name[NAME_WIDTH_MAX + 3];

	put_heading(out, "What would have happened");
	put_padded(out, "", width, false);
	(void)buf_puts(out, "             CPU, core-hours           MEMORY, GiB-hours"
			    "  CPU short, minutes    MEMORY short, min.           CHANGES\n");
	put_padded(out, "SERIES", width, false);
	(void)buf_puts(out, "   pernode    fixed     used   pernode    fixed     used"
			    "   pernode    fixed   pernode    fixed   resizes  writes\n");
	for (size_t i = 0; i < r->n_series; i++) {
		name_cell(r->series[i]->name, name);
		put_what_if_row(out, name, width, &r->series[i]->report, measured_of(r->series[i]));
	}
	if (r->n_series > 1)
		put_what_if_row(out, "all", width, &r->all, measured_anywhere(r));
	put_legend(r, out);
}

/* "42 % less than", "3 % more than", "about as much as" */
static void put_comparison(struct buf *out, double a, double b)
{
	double change = b > 0 ? (a - b) / b * 100 : 0;

	if (fabs(change) < 2)
		(void)buf_puts(out, "about as much as");
	else if (change > 200)
		(void)buf_printf(out, "%.1f times as much as", a / b);
	else
		(void)buf_printf(
			out, "%.0f %% %s than", fabs(change), change < 0 ? "less" : "more");
}

static void put_minutes(struct buf *out, double minutes, double all_minutes)
{
	if (minutes < 0.5)
		(void)buf_puts(out, "never short");
	else if (minutes < 180)
		(void)buf_printf(out, "short for %.0f minutes", minutes);
	else
		(void)buf_printf(out, "short for %.0f hours", minutes / 60);
	if (minutes >= 0.5 && all_minutes > 0)
		(void)buf_printf(
			out, " (%.2g %% of the time)", MIN(100 * minutes / all_minutes, 100.0));
}

static void put_resource_verdict(struct buf *out, const char *what, const char *unit,
	double pernode, double fixed, double used, double short_pernode, double short_fixed,
	double all_minutes)
{
	(void)buf_printf(out, "%-8spernode would have reserved ", what);
	put_comparison(out, pernode, fixed);
	(void)buf_puts(out, " the fixed request: ");
	put_number(out, pernode, 0);
	(void)buf_puts(out, " against ");
	put_number(out, fixed, 0);
	(void)buf_printf(out, " %s; ", unit);
	put_number(out, used, 0);
	(void)buf_puts(out, " were used.\n        It was ");
	put_minutes(out, short_pernode, all_minutes);
	(void)buf_puts(out, ", the fixed one ");
	put_minutes(out, short_fixed, all_minutes);
	(void)buf_puts(out, ".\n");
}

/* -1…: how much more or less than the fixed request; 0: as good as the same. */
static double change_of(double pernode, double fixed)
{
	double change = fixed > 0 ? pernode / fixed - 1 : 0;
	return fabs(change) < 0.02 ? 0 : change;
}

/* One sentence that answers: would it be worth it? */
static void put_verdict(struct buf *out, const struct whatif_report *a)
{
	double cpu = change_of(a->pernode.cpu_core_hours, a->fixed.cpu_core_hours);
	double memory = change_of(a->pernode.memory_gib_hours, a->fixed.memory_gib_hours);
	double gained = a->fixed.cpu_shortage_minutes + a->fixed.memory_shortage_minutes -
			a->pernode.cpu_shortage_minutes - a->pernode.memory_shortage_minutes;
	bool saves = cpu < 0 || memory<0, costs = cpu> 0 || memory > 0;
	const char *verdict;

	if (saves && costs)
		verdict = "a trade: less of one resource reserved, more of the other";
	else if (saves)
		verdict = "less would have been reserved for the same work";
	else if (costs)
		verdict = "more would have been reserved than with the fixed request";
	else
		verdict = "about as much would have been reserved as with the fixed request";
	(void)buf_printf(out, "In short: %s, and containers short of it for ", verdict);
	if (fabs(gained) < 1)
		(void)buf_puts(out, "as long as with the fixed one.\n");
	else if (fabs(gained) < 180)
		(void)buf_printf(
			out, "%.0f minutes %s.\n", fabs(gained), gained > 0 ? "less" : "more");
	else
		(void)buf_printf(
			out, "%.0f hours %s.\n", fabs(gained) / 60, gained > 0 ? "less" : "more");
}

static void put_summary(const struct replay *r, struct buf *out)
{
	const struct whatif_report *a = &r->all;
	double minutes = 0;
	struct measured m = measured_anywhere(r);

	for (size_t i = 0; i < r->n_series; i++) {
		const struct replay_series *s = r->series[i];
		if (s->since != TIME_NONE)
			minutes +=
				(double)instant_since(s->last, s->since) / (double)INSTANT_MINUTE;
	}
	(void)buf_putc(out, '\n');
	if (m.cpu)
		put_resource_verdict(out, "CPU:", "core-hours", a->pernode.cpu_core_hours,
			a->fixed.cpu_core_hours, a->used.cpu_core_hours,
			a->pernode.cpu_shortage_minutes, a->fixed.cpu_shortage_minutes, minutes);
	if (m.memory)
		put_resource_verdict(out, "Memory:", "GiB-hours", a->pernode.memory_gib_hours,
			a->fixed.memory_gib_hours, a->used.memory_gib_hours,
			a->pernode.memory_shortage_minutes, a->fixed.memory_shortage_minutes,
			minutes);
	(void)buf_printf(out,
		"Changes: %lld resizes and %lld writes to Node objects in %.1f days of all series "
		"together.\n",
		(long long)a->pernode.resizes, (long long)a->pernode.node_writes, minutes / 1440);
	put_verdict(out, a);
}

static void put_title(const struct replay *r, struct buf *out)
{
	int64_t since = INT64_MAX, last = TIME_NONE, samples = 0;
	char from[RFC3339_TEXT_MAX], to[RFC3339_TEXT_MAX];

	for (size_t i = 0; i < r->n_series; i++) {
		const struct replay_series *s = r->series[i];
		if (s->since == TIME_NONE)
			continue;
		since = MIN(since, s->since);
		last = MAX(last, s->last);
		samples += MAX(s->usage.cpu_samples, s->usage.memory_samples);
	}
	(void)rfc3339_format(since, from);
	(void)rfc3339_format(last, to);
	(void)buf_printf(out, "%zu series, %lld samples, %s to %s, profile %s\n", r->n_series,
		(long long)samples, from, to,
		r->settings->knobs.profile == PROFILE_VPA ? "vpa" : "fine");
	if (r->bad)
		(void)buf_printf(out, "%llu lines could not be used and were skipped\n",
			(unsigned long long)r->bad);
}

void replay_print_text(const struct replay *r, struct buf *out)
{
	size_t width = name_width(r);

	put_title(r, out);
	put_needs(r, out, width);
	put_what_if(r, out, width);
	put_summary(r, out);
}
