/* SPDX-License-Identifier: Apache-2.0 */
/* The page at "/": what this node's DaemonSet containers use, ask for and should ask for.
 * Self-contained, without scripts; made piece by piece. */
#include <math.h>

#include "agent/endpoint/endpoint_private.h"
#include "agent/sample/container.h"
#include "agent/state/events.h"
#include "proto/rfc3339.h"
#include "version.h"

#define EVENTS_SHOWN 10U

static const char head[] =
	"<!doctype html><html lang=en><meta charset=utf-8>"
	"<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src "
	"'unsafe-inline'\">"
	"<meta name=viewport content=\"width=device-width\"><style>"
	"body{font:14px system-ui,sans-serif;margin:1.5em;color:#222;background:#fff}"
	"table{border-collapse:collapse}th,td{padding:.3em .8em;text-align:left;border-bottom:1px "
	"solid #ddd}"
	"td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}small{color:#666}"
	"@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}th,td{border-color:#"
	"444}"
	"a{color:#8bf}small{color:#999}}</style>";

static void text(struct endpoint_list *l, const char *z)
{
	endpoint_html(l->out, str_of(z));
}

/* A path segment for a link: everything but letters, digits, '-', '.' and '_' is percent-encoded.
 */
static void segment(struct buf *out, const char *z)
{
	for (; *z; z++) {
		unsigned char c = (unsigned char)*z;

		if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			c == '-' || c == '.' || c == '_')
			(void)buf_putc(out, (char)c);
		else
			(void)buf_printf(out, "%%%02X", c);
	}
}

static void page_first(struct endpoint_list *l)
{
	const struct agent_view *v = l->view;

	(void)buf_puts(l->out, head);
	(void)buf_puts(l->out, "<title>pernode: ");
	text(l, v->node_name);
	(void)buf_puts(l->out, "</title><h1>");
	text(l, v->node_name);
	(void)buf_printf(l->out, "</h1><p>pernode-agent " PERNODE_VERSION ", profile %s, state: ",
		endpoint_profile_name(v->workloads->knobs.profile));
	text(l, v->state);
	if (v->reason[0]) {
		(void)buf_puts(l->out, " (");
		text(l, v->reason);
		(void)buf_puts(l->out, ")");
	}
	(void)buf_puts(l->out,
		"<p><a href=v1/recommendations>recommendations</a> · <a "
		"href=v1/containers>containers</a> · "
		"<a href=v1/events>events</a> · <a href=v1/config>config</a> · <a "
		"href=metrics>metrics</a> · "
		"<a href=\"readyz?verbose\">readyz</a>"
		"<table><tr><th>DaemonSet<th>container<th class=n>CPU used<th class=n>requested"
		"<th class=n>target<th class=n>memory used<th class=n>requested<th class=n>target"
		"<th class=n>OOM kills<th>state<th>more");
}

/* A cell with "63m" or "47.3 MiB", or empty when not known. */
static void cell(struct endpoint_list *l, enum resource r, double amount)
{
	(void)buf_puts(l->out, "<td class=n>");
	if (isnan(amount))
		return;
	if (r == RESOURCE_CPU)
		(void)buf_printf(l->out, "%.0fm", amount);
	else
		(void)buf_printf(l->out, "%.1f MiB", amount / 1048576);
}

static void link_to(struct endpoint_list *l, const char *what, const struct workload *w,
	const char *query, const char *label)
{
	(void)buf_printf(l->out, "<a href=\"v1/%s/", what);
	segment(l->out, w->namespace);
	(void)buf_putc(l->out, '/');
	segment(l->out, w->daemonset);
	(void)buf_putc(l->out, '/');
	segment(l->out, w->container);
	(void)buf_printf(l->out, "%s\">%s</a> ", query, label);
}

static void page_workload(struct endpoint_list *l, const struct workload *w)
{
	char reason[ENDPOINT_REASON_MAX];
	const char *state = endpoint_workload_state(l->view, w, reason);
	struct container_entry entry;
	const struct container *c = view_find(l->view, w, &entry) ? entry.measured : NULL;
	const int64_t request[RESOURCES] = {w->request_millicores, w->request_bytes};
	struct recommendation rec;

	workload_estimate(w, endpoint_now(l->view), &rec, NULL);
	(void)buf_puts(l->out, "<tr><td>");
	text(l, w->namespace);
	(void)buf_putc(l->out, '/');
	text(l, w->daemonset);
	(void)buf_puts(l->out, "<td>");
	text(l, w->container);
	for (enum resource r = 0; r < RESOURCES; r++) {
		const struct amounts *target = &rec.amounts[BOUND_TARGET];
		double used = (double)NAN;

		if (c && r == RESOURCE_CPU && c->millicores_known)
			used = c->millicores;
		if (c && r == RESOURCE_MEMORY && c->working_set_known)
			used = (double)c->working_set_bytes;
		cell(l, r, used);
		cell(l, r, request[r] >= 0 ? (double)request[r] : (double)NAN);
		cell(l, r, target->known[r] ? (double)target->value[r] : (double)NAN);
	}
	(void)buf_printf(l->out, "<td class=n>%lld<td>%s", (long long)w->usage.oom_kills, state);
	if (reason[0]) {
		(void)buf_puts(l->out, " <small>");
		text(l, reason);
		(void)buf_puts(l->out, "</small>");
	}
	(void)buf_puts(l->out, "<td>");
	link_to(l, "explain", w, "", "explain");
	link_to(l, "history", w, "", "history");
	link_to(l, "histogram", w, "?resource=cpu", "CPU");
	link_to(l, "histogram", w, "?resource=memory", "memory");
}

static void page_last(struct endpoint_list *l)
{
	const struct event *e;
	char when[RFC3339_TEXT_MAX];

	(void)buf_puts(l->out, "</table><h2>Lately</h2><table><tr><th>when<th>what<th>where<th>");
	for (unsigned int i = 0; i < EVENTS_SHOWN && (e = events_get(l->view->events, i)); i++) {
		(void)rfc3339_format(e->at_ns, when);
		(void)buf_printf(l->out, "<tr><td>%s<td>%s ", when, event_kind_name(e->kind));
		text(l, e->detail);
		(void)buf_puts(l->out, "<td>");
		endpoint_html(l->out, e->daemonset);
		(void)buf_puts(l->out, e->container.n ? "/" : "");
		endpoint_html(l->out, e->container);
		(void)buf_puts(l->out, "<td>");
		endpoint_html(l->out, e->text);
	}
	(void)buf_puts(l->out, "</table></html>\n");
}

static const struct endpoint_list_ops page_ops = {
	.first = page_first,
	.workload = page_workload,
	.last = page_last,
};

int endpoint_page(void *arg, const struct http_request *request, struct http_response *response,
	struct err *e)
{
	response->content_type = HTTP_TYPE_HTML;
	return endpoint_list_start(arg, &page_ops, response);
}
