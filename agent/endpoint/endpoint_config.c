/* SPDX-License-Identifier: Apache-2.0 */
/* What happened lately, and with which settings: /v1/events, /v1/config. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "agent/endpoint/endpoint_private.h"
#include "agent/state/events.h"
#include "base/duration.h"
#include "base/flags.h"
#include "proto/quantity.h"
#include "version.h"

/* ---- /v1/events ---- */

static void put_str(struct json_writer *w, const char *key, struct str s)
{
	if (!s.n)
		return;
	json_key(w, key);
	json_str(w, s);
}

static void put_bytes(struct json_writer *w, const char *key, int64_t bytes)
{
	if (bytes < 0)
		return;
	json_key(w, key);
	json_i64(w, bytes);
}

static void put_event(struct json_writer *w, const struct event *e)
{
	bool oom = e->kind == EVENT_KIND_OOM;

	json_begin_object(w);
	json_key(w, "time");
	json_time(w, e->at_ns);
	json_key(w, "kind");
	json_string(w, event_kind_name(e->kind));
	endpoint_text(w, oom ? "class" : "detail", e->detail);
	put_str(w, "namespace", e->namespace);
	put_str(w, "daemonset", e->daemonset);
	put_str(w, "container", e->container);
	put_str(w, "pod", e->pod);
	put_bytes(w, "limit_bytes", e->limit_bytes);
	put_bytes(w, "peak_bytes", e->peak_bytes);
	if (e->target.known[RESOURCE_CPU] || e->target.known[RESOURCE_MEMORY]) {
		json_key(w, "target");
		amounts_object(w, &e->target);
	}
	put_str(w, "text", e->text);
	json_end_object(w);
}

int endpoint_events(void *arg, const struct http_request *request, struct http_response *response,
	struct err *e)
{
	const struct agent_view *view = arg;
	struct json_writer w = JSON_WRITER(&response->body);
	const struct event *event;

	json_begin_object(&w);
	json_key(&w, "node");
	json_string(&w, view->node_name);
	json_key(&w, "since");
	json_time(&w, view->started_wall_usec * NSEC_PER_USEC);
	json_key(&w, "forgotten"); /* older than the ring reaches, or without memory for them */
	json_u64(&w, view->events->added - events_n(view->events) + view->events->lost);
	json_key(&w, "events");
	json_begin_array(&w);
	for (unsigned int i = 0; (event = events_get(view->events, i)); i++)
		put_event(&w, event);
	json_end_array(&w);
	endpoint_end(&w);
	return 0;
}

/* ---- /v1/config ---- */

static void put_quantity(struct json_writer *w, const struct flag *f, const void *p)
{
	char text[QUANTITY_TEXT_MAX];
	int64_t v = *(const int64_t *)p;

	if (v < 0)
		json_null(w);
	else {
		(void)(f->parse == flag_parse_millicores ? quantity_format_millicores(v, text)
							 : quantity_format_bytes_binary(v, text));
		json_string(w, text);
	}
}

/* As one would write it on the command line; null where it is not set. */
static void put_value(struct json_writer *w, const struct flag_set *set, const struct flag *f)
{
	const void *p = (const char *)set->settings + f->offset;
	char text[32];

	switch (f->kind) {
	case FLAG_BOOL:
		json_bool(w, *(const bool *)p);
		return;
	case FLAG_STRING:
		json_string(w, *(const char *const *)p);
		return;
	case FLAG_CHOICE:
		if (*(const int *)p >= 0)
			json_string(w, f->choices[*(const int *)p]);
		else
			json_null(w);
		return;
	case FLAG_INT:
		json_i64(w, *(const int64_t *)p);
		return;
	case FLAG_DOUBLE:
		json_double(w, *(const double *)p);
		return;
	case FLAG_DURATION:
		(void)duration_format(*(const int64_t *)p, text);
		json_string(w, text);
		return;
	case FLAG_CUSTOM:
		if (f->parse == flag_parse_millicores || f->parse == flag_parse_bytes)
			put_quantity(w, f, p);
		else
			json_null(w);
	}
}

static void put_environment(struct json_writer *w, const struct flag *f)
{
	char name[96];
	size_t n = (size_t)snprintf(name, sizeof(name), "PERNODE_%s", f->name);

	for (size_t i = 0; i < n && i < sizeof(name) - 1; i++)
		name[i] = name[i] == '-' ? '_' : (char)toupper((unsigned char)name[i]);
	json_key(w, "environment");
	json_string(w, name);
}

static void put_settings(struct json_writer *w, const struct flag_set *set)
{
	static const char *const sources[] = {[FLAG_FROM_DEFAULT] = "default",
		[FLAG_FROM_ENVIRONMENT] = "environment",
		[FLAG_FROM_COMMAND_LINE] = "command line"};
	size_t i = 0;

	for (const struct flag *const *table = set->tables; *table; table++) {
		for (const struct flag *f = *table; f->name && i < FLAGS_MAX; f++, i++) {
			json_begin_object(w);
			json_key(w, "name");
			json_string(w, f->name);
			json_key(w, "value");
			put_value(w, set, f);
			json_key(w, "source");
			json_string(w, sources[set->sources[i]]);
			put_environment(w, f);
			json_key(w, "help");
			json_string(w, f->help);
			json_end_object(w);
		}
	}
}

int endpoint_config(void *arg, const struct http_request *request, struct http_response *response,
	struct err *e)
{
	const struct agent_view *view = arg;
	struct json_writer w = JSON_WRITER(&response->body);

	json_begin_object(&w);
	json_key(&w, "node");
	json_string(&w, view->node_name);
	endpoint_text(&w, "nodeUID", view->node_uid);
	json_key(&w, "version");
	json_string(&w, PERNODE_VERSION);
	json_key(&w, "commit");
	json_string(&w, PERNODE_COMMIT);
	json_key(&w, "startedAt");
	json_time(&w, view->started_wall_usec * NSEC_PER_USEC);
	json_key(&w, "state");
	json_string(&w, view->state);
	endpoint_text(&w, "reason", view->reason);
	json_key(&w, "settings");
	json_begin_array(&w);
	if (view->flags)
		put_settings(&w, view->flags);
	json_end_array(&w);
	endpoint_end(&w);
	return 0;
}
