/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of the agent's endpoint: arg is a const struct agent_view *. Private to
 * agent/endpoint/ and its tests. */
#pragma once

#include "agent/endpoint/endpoint_write.h"

#define ENDPOINT_HANDLER(name)                                                                  \
	int name(void *arg, const struct http_request *request, struct http_response *response, \
		struct err *e)

ENDPOINT_HANDLER(endpoint_page);
ENDPOINT_HANDLER(endpoint_metrics); /* arg: const struct endpoint * */
ENDPOINT_HANDLER(endpoint_healthz);
ENDPOINT_HANDLER(endpoint_readyz);
ENDPOINT_HANDLER(endpoint_recommendations);
ENDPOINT_HANDLER(endpoint_containers);
ENDPOINT_HANDLER(endpoint_histogram);
ENDPOINT_HANDLER(endpoint_explain);
ENDPOINT_HANDLER(endpoint_history);
ENDPOINT_HANDLER(endpoint_events);
ENDPOINT_HANDLER(endpoint_config);

/* Shared by several of them. */
#define ENDPOINT_REASON_MAX 320U
/* "learning", "ready", "not found", "not measurable"; reason may stay empty. */
const char *endpoint_workload_state(
	const struct agent_view *view, const struct workload *w, char reason[ENDPOINT_REASON_MAX]);
void endpoint_published(struct json_writer *w, const struct publish_item *p);
void endpoint_request(struct json_writer *w, const struct workload *work);
const char *endpoint_profile_name(int profile); /* "fine", "vpa" */
