/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/endpoint/endpoint.h"

#include "agent/endpoint/endpoint_private.h"
#include "version.h"

#define WORKLOAD "/{namespace}/{daemonset}/{container}"

const char *endpoint_profile_name(int profile)
{
	return profile == PROFILE_VPA ? "vpa" : "fine";
}

/* ---- /healthz, /readyz ---- */

struct health_answer {
	struct buf *out;
	enum health limit; /* what is this bad or worse is a no */
	bool verbose;
	bool no;
};

static void put_health(void *arg, const struct health_item *item)
{
	static const char *const marks[] = {[HEALTH_OK] = "[+]",
		[HEALTH_NOTE] = "[!]",
		[HEALTH_NOT_READY] = "[-]",
		[HEALTH_FAILED] = "[-]"};
	struct health_answer *a = arg;
	bool no = item->health >= a->limit;

	a->no |= no;
	/* What works is only told when asked for. */
	if (item->health == HEALTH_OK && !a->verbose)
		return;
	(void)buf_printf(a->out, "%s%s%s", marks[item->health], item->name,
		item->health == HEALTH_OK ? " ok" : "");
	if (item->text[0])
		(void)buf_printf(a->out, ": %s", item->text);
	(void)buf_putc(a->out, '\n');
}

static int answer_health(const struct agent_view *view, const struct http_request *request,
	struct http_response *response, enum health limit, const char *word)
{
	_cleanup_buf_ struct buf lines = BUF_INIT(64U * 1024U);
	struct health_answer a = {.out = &lines,
		.limit = limit,
		.verbose = http_target_query(request->target, "verbose").p != NULL};

	if (view->each_health)
		view->each_health(view->arg, put_health, &a);
	response->content_type = HTTP_TYPE_TEXT;
	response->status = a.no ? 503 : 200;
	(void)buf_add(&response->body, buf_str(&lines));
	(void)buf_printf(&response->body, "%s%s\n", a.no ? "not " : "", word);
	return lines.error;
}

int endpoint_healthz(void *arg, const struct http_request *request, struct http_response *response,
	struct err *e)
{
	return answer_health(arg, request, response, HEALTH_FAILED, "ok");
}

int endpoint_readyz(void *arg, const struct http_request *request, struct http_response *response,
	struct err *e)
{
	return answer_health(arg, request, response, HEALTH_NOT_READY, "ready");
}

/* ---- /metrics ---- */

int endpoint_metrics(void *arg, const struct http_request *request, struct http_response *response,
	struct err *e)
{
	const struct endpoint *ep = arg;

	return metrics_start(ep->view, ep->detail, request->accept, response);
}

void endpoint_init(struct endpoint *ep, const struct agent_view *view, enum metrics_detail detail)
{
	void *v = (void *)view;
	const struct http_route routes[ENDPOINT_ROUTES] = {
		{"/", endpoint_page, v},
		{"/metrics", endpoint_metrics, ep},
		{"/healthz", endpoint_healthz, v},
		{"/readyz", endpoint_readyz, v},
		{"/v1/recommendations", endpoint_recommendations, v},
		{"/v1/containers", endpoint_containers, v},
		{"/v1/histogram" WORKLOAD, endpoint_histogram, v},
		{"/v1/explain" WORKLOAD, endpoint_explain, v},
		{"/v1/history" WORKLOAD, endpoint_history, v},
		{"/v1/events", endpoint_events, v},
		{"/v1/config", endpoint_config, v},
	};

	*ep = (struct endpoint){.view = view, .detail = detail};
	memcpy(ep->routes, routes, sizeof(routes));
}

int endpoint_listen(struct endpoint *ep, struct loop *loop, const char *address, struct err *e)
{
	const struct http_server_options options = {.listen = address,
		.routes = ep->routes,
		.routes_n = ENDPOINT_ROUTES,
		.server_name = "pernode-agent/" PERNODE_VERSION};

	return http_server_create(&ep->server, loop, &options, e);
}

void endpoint_finish(struct endpoint *ep)
{
	http_server_destroy(TAKE_PTR(ep->server));
}
