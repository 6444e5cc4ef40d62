/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/endpoint/endpoint_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void endpoint_key(
	struct json_writer *w, const char *namespace, const char *daemonset, const char *container)
{
	json_key(w, "namespace");
	json_string(w, namespace);
	json_key(w, "daemonset");
	json_string(w, daemonset);
	json_key(w, "container");
	json_string(w, container);
}

void endpoint_text(struct json_writer *w, const char *key, const char *value)
{
	if (!value || !value[0])
		return;
	json_key(w, key);
	json_string(w, value);
}

void endpoint_end(struct json_writer *w)
{
	json_end_object(w);
	(void)buf_putc(w->b, '\n');
}

const char *endpoint_why_not(const struct container_entry *entry)
{
	if (entry->reason[0] || entry->state != CONTAINER_WAITING)
		return entry->reason;
	return entry->container_id[0] ? "its cgroup is not there yet"
				      : "the kubelet has not told its container ID yet";
}

int64_t endpoint_now(const struct agent_view *view)
{
	return clock_wall_usec(view->clock) * NSEC_PER_USEC;
}

/* JSON's writer already knows what is UTF-8 and what is not; its escapes begin with a backslash. */
void endpoint_html(struct buf *out, struct str s)
{
	_cleanup_buf_ struct buf clean = BUF_INIT(6 * s.n + 1);
	const char *p;

	json_escape(&clean, s);
	if (clean.error) {
		out->error = out->error ? out->error : clean.error;
		return;
	}
	for (size_t i = 0; i < clean.n; i++) {
		p = clean.p + i;
		if (*p == '\\') {
			/* \" and \\ stand for themselves; \n, \u001f… are control characters. */
			bool unicode = p[1] == 'u';

			i += unicode ? 5 : 1;
			(void)buf_puts(out, p[1] == '"' ? "&quot;" : p[1] == '\\' ? "\\" : " ");
		} else if (*p == '<') {
			(void)buf_puts(out, "&lt;");
		} else if (*p == '>') {
			(void)buf_puts(out, "&gt;");
		} else if (*p == '&') {
			(void)buf_puts(out, "&amp;");
		} else if (*p == '\'') {
			(void)buf_puts(out, "&#39;");
		} else {
			(void)buf_putc(out, *p);
		}
	}
}

int endpoint_find(const struct agent_view *view, const struct http_request *request,
	const struct workload **ret, struct err *e)
{
	const struct str *p = request->params;
	const struct workload *w = workloads_find(view->workloads, p[0], p[1], p[2]);

	if (!w)
		return err_set(e, ENOENT,
			"container \"%.*s\" of DaemonSet \"%.*s/%.*s\" is not known on this node; "
			"/v1/recommendations lists those that are",
			STR_ARG(p[2]), STR_ARG(p[0]), STR_ARG(p[1]));
	*ret = w;
	return 0;
}

static int compare(const struct workload *w, const char *namespace, const char *daemonset,
	const char *container)
{
	int r = strcmp(w->namespace, namespace);

	if (r == 0)
		r = strcmp(w->daemonset, daemonset);
	return r ? r : strcmp(w->container, container);
}

const struct workload *endpoint_after(const struct workloads *t, const char *namespace,
	const char *daemonset, const char *container)
{
	const struct workload *w = t->first;

	while (w && compare(w, namespace, daemonset, container) <= 0)
		w = w->next;
	return w;
}

enum { PHASE_FIRST, PHASE_WORKLOADS, PHASE_CONTAINERS, PHASE_LAST, PHASE_OVER };

static bool full(const struct endpoint_list *l)
{
	return l->out->n >= ENDPOINT_PIECE_BYTES || l->out->error;
}

static void workloads_piece(struct endpoint_list *l)
{
	const struct workload *w = l->view->workloads->first;

	if (l->any_workload)
		w = endpoint_after(l->view->workloads, l->namespace, l->daemonset, l->container);
	for (; w && l->ops->workload; w = w->next) {
		l->ops->workload(l, w);
		if (!full(l))
			continue;
		l->any_workload = true;
		memcpy(l->namespace, w->namespace, sizeof(l->namespace));
		memcpy(l->daemonset, w->daemonset, sizeof(l->daemonset));
		memcpy(l->container, w->container, sizeof(l->container));
		return;
	}
	if (l->ops->between)
		l->ops->between(l);
	l->phase = PHASE_CONTAINERS;
}

static int container_item(void *arg, const struct container_entry *entry)
{
	struct endpoint_list *l = arg;

	if (l->skip) {
		l->skip--;
		return 0;
	}
	l->ops->container(l, entry);
	l->containers++;
	return full(l);
}

static void containers_piece(struct endpoint_list *l)
{
	l->skip = l->containers;
	if (l->ops->container && l->view->each_container)
		l->view->each_container(l->view->arg, container_item, l);
	if (!full(l))
		l->phase = PHASE_LAST;
}

static int list_next(void *state, struct buf *out)
{
	struct endpoint_list *l = state;

	l->out = l->json.b = out;
	while (l->phase != PHASE_OVER && !full(l)) {
		switch (l->phase) {
		case PHASE_FIRST:
			l->ops->first(l);
			l->phase = PHASE_WORKLOADS;
			break;
		case PHASE_WORKLOADS:
			workloads_piece(l);
			break;
		case PHASE_CONTAINERS:
			containers_piece(l);
			break;
		default:
			l->ops->last(l);
			l->phase = PHASE_OVER;
		}
	}
	if (out->error)
		return out->error;
	return l->phase != PHASE_OVER;
}

int endpoint_list_start(const struct agent_view *view, const struct endpoint_list_ops *ops,
	struct http_response *response)
{
	struct endpoint_list *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->view = view;
	l->ops = ops;
	response->producer.next = list_next;
	response->producer.finish = free;
	response->producer.state = l;
	return 0;
}
