/* SPDX-License-Identifier: Apache-2.0 */
/* The answers about one workload: its histogram, how its numbers came about, its last day. */
#include <errno.h>
#include <math.h>

#include "agent/endpoint/endpoint_private.h"
#include "agent/publish/publisher.h"
#include "agent/sample/container.h"
#include "base/duration.h"
#include "rules/publish.h"

#define HISTORY_WINDOW_NS (INT64_C(86400) * NSEC_PER_SEC)

static void begin(struct json_writer *w, const struct agent_view *view, const struct workload *work)
{
	json_begin_object(w);
	json_key(w, "node");
	json_string(w, view->node_name);
	endpoint_key(w, work->namespace, work->daemonset, work->container);
}

/* ---- /v1/histogram ---- */

static int resource_of(const struct http_request *request, enum resource *ret, struct err *e)
{
	struct str s = http_target_query(request->target, "resource");

	if (!s.p || str_is(s, "cpu"))
		*ret = RESOURCE_CPU;
	else if (str_is(s, "memory"))
		*ret = RESOURCE_MEMORY;
	else
		return err_set(e, EINVAL, "resource=%.*s: accepted: cpu, memory", STR_ARG(s));
	return 0;
}

static void put_buckets(struct json_writer *w, const struct histogram *h)
{
	json_key(w, "buckets");
	json_begin_array(w);
	for (unsigned int i = h->min; i <= h->max && i < h->buckets->n; i++) {
		if (!(h->weight[i] > 0))
			continue;
		json_begin_object(w);
		json_key(w, "start");
		json_double(w, h->buckets->from[i]);
		json_key(w, "end");
		json_double(w, h->buckets->from[i + 1]); /* null: the last one is open */
		json_key(w, "weight");
		json_double(w, h->weight[i]);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_percentiles(struct json_writer *w, const struct histogram *h, enum resource r)
{
	static const double shown[] = {0.5, 0.9, 0.95, 0.99, 1};

	json_key(w, "percentiles");
	json_begin_array(w);
	for (unsigned int i = 0; i < ARRAY_SIZE(shown) && !histogram_empty(h); i++) {
		json_begin_object(w);
		json_key(w, "percentile");
		json_double(w, shown[i]);
		json_key(w, amount_key(r));
		json_i64(w, histogram_percentile(h, shown[i]));
		json_end_object(w);
	}
	json_end_array(w);
}

int endpoint_histogram(void *arg, const struct http_request *request,
	struct http_response *response, struct err *e)
{
	const struct agent_view *view = arg;
	struct json_writer w = JSON_WRITER(&response->body);
	const struct workload *work;
	const struct histogram *h;
	struct recommendation rec;
	enum resource r = RESOURCE_CPU;
	int err = endpoint_find(view, request, &work, e);

	if (err >= 0)
		err = resource_of(request, &r, e);
	if (err < 0)
		return err;
	h = &work->usage.histogram[r];
	begin(&w, view, work);
	json_key(&w, "resource");
	json_string(&w, resource_name(r));
	json_key(&w, "unit");
	json_string(&w, r == RESOURCE_CPU ? "millicores" : "bytes");
	json_key(&w, "referenceTime");
	json_time(&w, h->reference);
	json_key(&w, "halfLife_seconds");
	json_double(&w, (double)h->half_life_ns / (double)NSEC_PER_SEC);
	json_key(&w, "total");
	json_double(&w, h->total);
	put_buckets(&w, h);
	put_percentiles(&w, h, r);
	workload_estimate(work, endpoint_now(view), &rec, NULL);
	for (enum bound b = 0; b < BOUNDS; b++) {
		if (!rec.amounts[b].known[r])
			continue;
		json_key(&w, bound_name(b));
		json_i64(&w, rec.amounts[b].value[r]);
	}
	endpoint_end(&w);
	return 0;
}

/* ---- /v1/explain ---- */

static void put_step(struct json_writer *w, enum resource r, enum bound b, const char *stage,
	double factor, int64_t amount, bool changed)
{
	json_begin_object(w);
	json_key(w, "resource");
	json_string(w, resource_name(r));
	json_key(w, "bound");
	json_string(w, bound_name(b));
	json_key(w, "stage");
	json_string(w, stage);
	if (!isnan(factor)) {
		json_key(w, "factor");
		json_double(w, factor);
	}
	json_key(w, amount_key(r));
	json_i64(w, amount);
	json_key(w, "changed");
	json_bool(w, changed);
	json_end_object(w);
}

/* From the percentile to what is on the Node, for one bound of one resource. */
static void put_steps(struct json_writer *w, const struct workload *work, enum resource r,
	enum bound b, const struct explain *x, const struct publish_facts *facts)
{
	const struct amounts *told = &facts->today.amounts[b];
	const struct publish_item *p = &work->publish;
	int64_t last = -1;

	for (uint32_t i = 0; i < x->n; i++) {
		const struct explain_step *s = &x->steps[i];

		if (s->resource != r || s->bound != b)
			continue;
		put_step(w, r, b, explain_stage_name(s->stage), s->factor, s->amount, s->changed);
		last = s->amount;
	}
	if (facts->ready && told->known[r]) {
		put_step(w, r, b, "publish-rounding", (double)NAN, told->value[r],
			told->value[r] != last);
		last = told->value[r];
	}
	if (p->at != TIME_NONE && p->published.amounts[b].known[r])
		put_step(w, r, b, "published", (double)NAN, p->published.amounts[b].value[r],
			p->published.amounts[b].value[r] != last);
}

/* What the publish rule says of it now. */
static void put_next(struct json_writer *w, const struct agent_view *view,
	const struct workload *work, const struct publish_facts *facts, int64_t now)
{
	static const struct {
		const char *name, *text;
	} needs[] = {
		[PUBLISH_NOT] = {"none", "nothing new to tell"},
		[PUBLISH_RIDES] = {"rides", "moved by 5 %: goes when a patch goes"},
		[PUBLISH_SLOW] = {"slow",
			"hardly more than noise: goes when nothing went for an hour"},
		[PUBLISH_DUE] = {"due", "goes with the next patch of this node's interval"},
		[PUBLISH_NEW] = {"new", "a first value: goes out of turn, spread over some time"},
		[PUBLISH_NOW] = {"now", "cannot wait: goes out of turn, at once"},
	};
	const struct publish_item *p = &work->publish;
	enum publish_reason reason = PUBLISH_FIRST;
	enum publish_need need = publish_judge(p, facts, now, &reason);
	const char *text = needs[need].text;

	if (!view->publisher)
		text = "publishing is switched off";
	else if (p->refused)
		text = "the Node has no room for it, or the server does not take it";
	else if (p->in_flight)
		text = "a patch with it is under way";
	else if (!facts->ready)
		text = "too little was seen to tell anything";
	json_key(w, "next");
	json_begin_object(w);
	json_key(w, "need");
	json_string(w, needs[need].name);
	if (need != PUBLISH_NOT) {
		json_key(w, "reason");
		json_string(w, publish_reason_name(reason));
	}
	json_key(w, "text");
	json_string(w, text);
	json_end_object(w);
}

static void put_known(struct json_writer *w, const struct workload *work)
{
	const struct usage_history *u = &work->usage;
	const struct {
		const char *key;
		int64_t n;
	} counts[] = {{"samples", u->cpu_samples}, {"memorySamples", u->memory_samples},
		{"memoryMinutes", u->memory_minutes}, {"throttledMinutes", u->throttled_minutes},
		{"oomKills", u->oom_kills}, {"starts", u->startup.starts},
		{"startupSamplesKeptApart", u->startup.kept}};
	const struct {
		const char *key;
		int64_t at;
	} times[] = {{"since", u->cpu_first}, {"last", u->cpu_last},
		{"memorySince", u->memory_first}, {"memoryLast", u->memory_last},
		{"lastOOM", u->oom_last}, {"lastAheadOfOOM", u->ahead_last}};

	json_key(w, "history");
	json_begin_object(w);
	for (unsigned int i = 0; i < ARRAY_SIZE(counts); i++) {
		json_key(w, counts[i].key);
		json_i64(w, counts[i].n);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(times); i++) {
		json_key(w, times[i].key);
		json_time(w, times[i].at);
	}
	if (u->floor.used > 0) {
		json_key(w, "oomFloor");
		json_begin_object(w);
		json_key(w, "memory_bytes");
		json_i64(w, u->floor.used);
		json_key(w, "at");
		json_time(w, u->floor.at);
		json_end_object(w);
	}
	if (u->startup.starts) {
		json_key(w, "startupPeak");
		json_begin_object(w);
		json_key(w, "cpu_millicores");
		json_i64(w, llround(startup_peak(&u->startup)));
		json_end_object(w);
	}
	json_key(w, "seeded");
	json_bool(w, work->seeded);
	json_end_object(w);
}

/* What throttling hides: both numbers of the last minute. */
static void put_throttling(
	struct json_writer *w, const struct agent_view *view, const struct workload *work)
{
	struct container_entry entry;
	const struct container *c;

	if (!view_find(view, work, &entry) || !entry.measured ||
		isnan(entry.measured->throttled_fraction))
		return;
	c = entry.measured;
	json_key(w, "throttling");
	json_begin_object(w);
	json_key(w, "last_minute_share");
	json_double(w, c->throttled_fraction);
	if (c->millicores_known) {
		json_key(w, "cpu_millicores");
		json_i64(w, llround(c->millicores));
	}
	json_end_object(w);
}

static void put_settings(struct json_writer *w, const struct workload *work)
{
	const struct knobs *k = work->knobs;

	json_key(w, "settings");
	json_begin_object(w);
	json_key(w, "profile");
	json_string(w, endpoint_profile_name(k->profile));
	json_key(w, "from");
	json_string(w, k == &work->own_knobs ? "pod annotation pernode.io/recommender" : "agent");
	endpoint_text(w, "error", work->knobs_error);
	json_key(w, "containersOfPod");
	json_u64(w, work->containers);
	json_end_object(w);
}

int endpoint_explain(void *arg, const struct http_request *request, struct http_response *response,
	struct err *e)
{
	const struct agent_view *view = arg;
	struct json_writer w = JSON_WRITER(&response->body);
	char reason[ENDPOINT_REASON_MAX];
	const struct workload *work;
	struct recommendation rec;
	struct explain x = {.n = 0};
	struct publish_facts facts;
	int64_t now = endpoint_now(view);
	int r = endpoint_find(view, request, &work, e);

	if (r < 0)
		return r;
	workload_estimate(work, now, &rec, &x);
	publisher_facts(view->workloads, work, now, PUBLISHER_STALE_AFTER_USEC, &facts);
	begin(&w, view, work);
	json_key(&w, "at");
	json_time(&w, now);
	json_key(&w, "state");
	json_string(&w, endpoint_workload_state(view, work, reason));
	endpoint_text(&w, "reason", reason);
	put_settings(&w, work);
	put_known(&w, work);
	put_throttling(&w, view, work);
	json_key(&w, "confidence");
	json_begin_object(&w);
	for (enum resource i = 0; i < RESOURCES; i++) {
		if (histogram_empty(&work->usage.histogram[i]))
			continue;
		json_key(&w, resource_name(i));
		json_double(&w, x.confidence[i]);
	}
	json_end_object(&w);
	json_key(&w, "steps");
	json_begin_array(&w);
	for (enum resource i = 0; i < RESOURCES; i++) {
		for (enum bound b = 0; b < BOUNDS; b++) {
			if (rec.amounts[b].known[i])
				put_steps(&w, work, i, b, &x, &facts);
		}
	}
	json_end_array(&w);
	json_key(&w, "request");
	endpoint_request(&w, work);
	bounds_members(&w, &rec);
	endpoint_published(&w, &work->publish);
	put_next(&w, view, work, &facts, now);
	endpoint_end(&w);
	return 0;
}

/* ---- /v1/history ---- */

static int window_of(const struct http_request *request, int64_t *ret_ns, struct err *e)
{
	struct str s = http_target_query(request->target, "window");
	int64_t ns;

	if (!s.p) {
		*ret_ns = HISTORY_WINDOW_NS;
		return 0;
	}
	if (duration_parse(s, &ns) < 0 || ns <= 0)
		return err_set(e, EINVAL,
			"window=%.*s: accepted: a duration above 0, for example 1h30m; 24h are "
			"kept",
			STR_ARG(s));
	*ret_ns = MIN(ns, HISTORY_WINDOW_NS);
	return 0;
}

/* One column of the table that the history is sent as. */
struct column {
	const char *key;
	double (*value)(const struct history_row *row);
	bool whole;
};

static double row_time(const struct history_row *row)
{
	int64_t seconds = row->at_ns / NSEC_PER_SEC;

	return (double)seconds;
}
static double row_step(const struct history_row *row)
{
	return row->step_seconds;
}
static double row_throttled(const struct history_row *row)
{
	return row->throttled_share;
}
static double row_oom_kills(const struct history_row *row)
{
	return row->oom_kills;
}
#define ROW_VALUE(member, resource)                                            \
	static double row_##member##_##resource(const struct history_row *row) \
	{                                                                      \
		return row->member[resource];                                  \
	}
ROW_VALUE(mean, RESOURCE_CPU)
ROW_VALUE(mean, RESOURCE_MEMORY)
ROW_VALUE(max, RESOURCE_CPU)
ROW_VALUE(max, RESOURCE_MEMORY)
ROW_VALUE(request, RESOURCE_CPU)
ROW_VALUE(request, RESOURCE_MEMORY)
ROW_VALUE(target, RESOURCE_CPU)
ROW_VALUE(target, RESOURCE_MEMORY)

static const struct column columns[] = {
	{"time", row_time, true},
	{"step_seconds", row_step, true},
	{"cpu_mean_millicores", row_mean_RESOURCE_CPU, false},
	{"cpu_max_millicores", row_max_RESOURCE_CPU, false},
	{"cpu_request_millicores", row_request_RESOURCE_CPU, true},
	{"cpu_target_millicores", row_target_RESOURCE_CPU, true},
	{"memory_mean_bytes", row_mean_RESOURCE_MEMORY, true},
	{"memory_max_bytes", row_max_RESOURCE_MEMORY, true},
	{"memory_request_bytes", row_request_RESOURCE_MEMORY, true},
	{"memory_target_bytes", row_target_RESOURCE_MEMORY, true},
	{"throttled_share", row_throttled, false},
	{"oomKills", row_oom_kills, true},
};

int endpoint_history(void *arg, const struct http_request *request, struct http_response *response,
	struct err *e)
{
	const struct agent_view *view = arg;
	struct json_writer w = JSON_WRITER(&response->body);
	const struct workload *work;
	int64_t now = endpoint_now(view), window = 0;
	int r = endpoint_find(view, request, &work, e);

	if (r >= 0)
		r = window_of(request, &window, e);
	if (r < 0)
		return r;
	begin(&w, view, work);
	json_key(&w, "from");
	json_time(&w, now - window);
	json_key(&w, "to");
	json_time(&w, now);
	json_key(&w, "columns");
	json_begin_object(&w);
	for (unsigned int i = 0; i < ARRAY_SIZE(columns); i++) {
		struct history_row row;
		unsigned int cursor = 0;

		json_key(&w, columns[i].key);
		json_begin_array(&w);
		while (history_next(&work->history, now - window, &cursor, &row)) {
			double v = columns[i].value(&row);

			if (columns[i].whole && !isnan(v))
				json_i64(&w, llround(v));
			else
				json_double(&w, v); /* NAN: null, a gap */
		}
		json_end_array(&w);
	}
	json_end_object(&w);
	endpoint_end(&w);
	return 0;
}
