/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's HTTP endpoint: what it sees, thinks and does, read-only. */
#pragma once

#include <stdint.h>

#include "agent/endpoint/metrics.h"
#include "agent/endpoint/view.h"
#include "base/err.h"
#include "base/loop.h"
#include "net/http/server.h"

#define ENDPOINT_ROUTES 11U

struct endpoint {
	const struct agent_view *view;
	enum metrics_detail detail;
	struct http_route routes[ENDPOINT_ROUTES];
	struct http_server *server;
};

/* Fills in the routes; nothing listens yet. view must outlive the endpoint. */
void endpoint_init(struct endpoint *ep, const struct agent_view *view, enum metrics_detail detail);
/* Listens on the address (net/http/server.h). -errno with e. The server is ep->server, also for the
 * view. */
int endpoint_listen(struct endpoint *ep, struct loop *loop, const char *address, struct err *e);
/* Before loop_finish. */
void endpoint_finish(struct endpoint *ep);
