/* SPDX-License-Identifier: Apache-2.0 */
#include "helper_view.h"

#include <math.h>

#include "proto/json_read.h"
#include "unit.h"

#define START_USEC (INT64_C(1767225600) * 1000000) /* 2026-01-01T00:00:00Z */

static void each_container(
	void *arg, int (*fn)(void *fn_arg, const struct container_entry *entry), void *fn_arg)
{
	struct fixture *f = arg;

	for (unsigned int i = 0; i < f->n_entries; i++) {
		if (fn(fn_arg, &f->entries[i]))
			return;
	}
}

static void each_health(
	void *arg, void (*fn)(void *fn_arg, const struct health_item *item), void *fn_arg)
{
	struct fixture *f = arg;

	for (unsigned int i = 0; i < f->n_health; i++)
		fn(fn_arg, &f->health[i]);
}

void fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	clock_manual_init(&f->clock, START_USEC);
	knobs_defaults(&f->knobs, PROFILE_FINE);
	workloads_init(&f->workloads, &f->knobs);
	events_init(&f->events);
	f->view = (struct agent_view){.node_name = "node-a",
		.node_uid = "",
		.state = "ok",
		.reason = "",
		.clock = &f->clock.clock,
		.started_wall_usec = START_USEC,
		.started_mono_usec = f->clock.mono_usec,
		.workloads = &f->workloads,
		.events = &f->events,
		.each_container = each_container,
		.each_health = each_health,
		.arg = f};
	endpoint_init(&f->endpoint, &f->view, METRICS_SUMMARY);
}

struct workload *fixture_workload(
	struct fixture *f, const char *namespace, const char *daemonset, const char *container)
{
	struct workload *w;
	struct err e = {""};

	if (workloads_get(&f->workloads, str_of(namespace), str_of(daemonset), str_of(container),
		    &w, &e) < 0)
		fail_msg("%s", e.text);
	return w;
}

static void fill_history(struct fixture *f, struct workload *w)
{
	const struct amounts request = {{250, 104857600}, {true, true}};
	const struct amounts target = {{63, 49566436}, {true, true}};

	for (int minute = 0; minute < 3 * 24 * 60; minute++) {
		int64_t now = f->clock.wall_usec * 1000;
		const struct history_sample s = {40 + minute % 20, 40e6, (double)NAN};

		(void)usage_add_cpu(&w->usage, now, 40 + minute % 20, 1);
		(void)usage_add_memory(&w->usage, now, 40000000 + minute);
		history_levels(&w->history, &request, &target);
		history_add(&w->history, now, &s);
		clock_manual_advance(&f->clock, USEC_PER_MINUTE);
	}
}

static void fill_measured(struct fixture *f)
{
	struct container *c = &f->measured;

	memset(c, 0, sizeof(*c));
	c->read_usec = f->clock.mono_usec;
	c->millicores_known = c->working_set_known = true;
	c->millicores = 47.4;
	c->working_set_bytes = 41000000;
	c->throttled_fraction = 0.25;
	c->sample.cpu = (struct cpu_stat){CPU_USAGE_USEC | CPU_THROTTLE_KEYS, 1, 100, 25, 2500000};
	c->sample.current_bytes = 52000000;
	c->limits.memory_max_bytes = 104857600;
	c->limits.cpu_max_millicores = 500;
	c->limits.peak_outcome = CG_NO_FILE;
	c->limits.cpu_psi.some = (struct psi_line){true, 1234, 10, 5000000};
	c->limits_usec = 1;
	c->backwards = 2;
}

static void fill_events(struct fixture *f)
{
	struct event e = EVENT(EVENT_KIND_OOM, START_USEC * 1000);

	e.detail = "limit";
	e.namespace = STR("default");
	e.daemonset = STR("shipper");
	e.container = STR("main");
	e.text = STR("killed at \"64 MiB\" <b>");
	e.limit_bytes = 67108864;
	events_add(&f->events, &e);
	e = EVENT(EVENT_KIND_PUBLISHED, START_USEC * 1000 + 1);
	e.detail = "oom";
	e.target = (struct amounts){{63, 83886080}, {false, true}};
	events_add(&f->events, &e);
}

void fixture_fill(struct fixture *f)
{
	struct workload *w = fixture_workload(f, "default", "shipper", "main");

	fill_history(f, w);
	usage_count_oom(&w->usage, f->clock.wall_usec * 1000);
	w->here = true;
	w->request_millicores = 250;
	w->request_bytes = 104857600;
	(void)snprintf(w->pod, sizeof(w->pod), "shipper-x7k2p");
	w->publish.at = f->clock.wall_usec * 1000;
	w->publish.reason = PUBLISH_USAGE;
	w->publish.published.amounts[BOUND_TARGET] = (struct amounts){{63, 49566436}, {true, true}};
	w = fixture_workload(f, "kube-system", "proxy", "proxy");
	w->here = true;
	w = fixture_workload(f, "kube-system", "proxy", "starting");
	w->here = true;
	fill_measured(f);
	fill_events(f);
	f->entries[f->n_entries++] =
		(struct container_entry){"default", "shipper", "main", "shipper-x7k2p", "uid-1",
			"0123", "kubepods.slice/x", CONTAINER_SAMPLED, "", &f->measured};
	f->entries[f->n_entries++] = (struct container_entry){"kube-system", "proxy", "proxy",
		"proxy-1", "uid-2", "", "", CONTAINER_NOT_MEASURABLE,
		"runs in a virtual machine (\xff<script>\"\\\n\xf0\x9f\x90\xb3)", NULL};
	f->entries[f->n_entries++] = (struct container_entry){"kube-system", "\xd0\xb6\xff", "new",
		"", "", "0a1b", "", CONTAINER_WAITING, "", NULL};
	f->entries[f->n_entries++] = (struct container_entry){"", "", "", "", "", "ffff", "a/b",
		CONTAINER_HELD, "whose it is is not known yet", &f->measured};
	f->health[f->n_health++] = (struct health_item){"pods", HEALTH_OK, ""};
	f->health[f->n_health++] =
		(struct health_item){"state", HEALTH_NOTE, "the state directory is read-only"};
}

void fixture_finish(struct fixture *f)
{
	workloads_finish(&f->workloads);
	events_finish(&f->events);
}

static void drain(struct fixture *f, struct reply *r, struct http_response *response,
	void (*between)(struct fixture *f))
{
	struct http_producer *p = &response->producer;
	int more = 1;

	while (more > 0) {
		struct buf piece = BUF_INIT(HTTP_ANSWER_MAX_BYTES);

		more = p->next(p->state, &piece);
		r->longest_piece = MAX(r->longest_piece, piece.n);
		(void)buf_add(&r->body, buf_str(&piece));
		buf_finish(&piece);
		if (between && more > 0)
			between(f);
	}
	p->finish(p->state);
	r->error = more;
}

struct reply fixture_get(
	struct fixture *f, const char *url, const char *accept, void (*between)(struct fixture *f))
{
	struct http_target target;
	struct http_request request = {.path = url, .target = &target, .accept = accept};
	struct http_response response = {.status = 200, .content_type = HTTP_TYPE_JSON};
	struct reply r = {.status = 404, .error = -ENOENT};

	buf_init(&response.body, HTTP_ANSWER_MAX_BYTES);
	buf_init(&r.body, SIZE_MAX / 2);
	assert_int_equal(http_target_parse(str_of(url), &target), 0);
	for (unsigned int i = 0; i < ENDPOINT_ROUTES; i++) {
		const struct http_route *route = &f->endpoint.routes[i];

		if (!http_target_match(&target, route->pattern, request.params))
			continue;
		r.error = route->handle(route->arg, &request, &response, &r.e);
		r.status = response.status;
		r.content_type = response.content_type;
		if (r.error >= 0 && response.producer.next)
			drain(f, &r, &response, between);
		else if (r.error >= 0)
			r.error = response.body.error;
		(void)buf_add(&r.body, buf_str(&response.body));
		break;
	}
	buf_finish(&response.body);
	return r;
}

static int any_value(void *arg, unsigned int id, const struct json_value *v)
{
	return 0;
}

void assert_json(const struct buf *body)
{
	static const struct json_path paths[] = {{"", 0}};
	static const struct json_spec spec = {.paths = paths, .n_paths = 1, .value = any_value};
	struct err e = {""};

	if (json_read(&spec, NULL, buf_str(body), &e) < 0)
		fail_msg("%s in: %.2000s", e.text, body->p ? body->p : "");
}

unsigned int count(const struct buf *body, const char *text)
{
	unsigned int n = 0;

	for (const char *p = body->p; p && (p = strstr(p, text)); p++)
		n++;
	return n;
}

bool contains(const struct buf *body, const char *text)
{
	return count(body, text) > 0;
}
