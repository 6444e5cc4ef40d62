/* SPDX-License-Identifier: Apache-2.0 */
/* What the endpoint's answers have in common: how names are written, and answers that are made
 * piece by piece. Private to agent/endpoint/. */
#pragma once

#include <stdint.h>

#include "agent/endpoint/view.h"
#include "agent/state/workload.h"
#include "net/http/server.h"
#include "proto/json_write.h"
#include "rules/amount_json.h"

/* A piece of a long answer ends with the item that reaches this size. */
#define ENDPOINT_PIECE_BYTES SIZE_OR_TINY(8192U, 64U)

/* Members namespace, daemonset, container. */
void endpoint_key(
	struct json_writer *w, const char *namespace, const char *daemonset, const char *container);
/* Ends the outermost object, and the line. */
void endpoint_end(struct json_writer *w);
/* A member, left out when it is "". */
void endpoint_text(struct json_writer *w, const char *key, const char *value);
/* Why a container is not sampled; "" when it is. */
const char *endpoint_why_not(const struct container_entry *entry);
/* Wall time in ns. */
int64_t endpoint_now(const struct agent_view *view);

/* For HTML text and attributes. Bytes that are no UTF-8 become U+FFFD; control characters a blank.
 */
void endpoint_html(struct buf *out, struct str s);

/* The workload that a route's {namespace}/{daemonset}/{container} names. -ENOENT with e. */
int endpoint_find(const struct agent_view *view, const struct http_request *request,
	const struct workload **ret, struct err *e);

/* A long answer: first, then each workload in order, then each container that has one of the wanted
 * states, then last. Between pieces the tables may change: workloads are found again by name,
 * containers by their place. */
struct endpoint_list;
struct endpoint_list_ops {
	void (*first)(struct endpoint_list *l);
	void (*workload)(struct endpoint_list *l, const struct workload *w); /* NULL: none wanted */
	void (*between)(struct endpoint_list *l);                            /* may be NULL */
	void (*container)(struct endpoint_list *l,
		const struct container_entry *entry); /* NULL: none wanted */
	void (*last)(struct endpoint_list *l);
};
struct endpoint_list {
	const struct agent_view *view;
	const struct endpoint_list_ops *ops;
	struct buf *out;
	struct json_writer json; /* into out */
	int phase;
	bool any_workload;
	char namespace[LABEL_MAX_BYTES], daemonset[NAME_MAX_BYTES],
		container[LABEL_MAX_BYTES]; /* the last one */
	unsigned int containers;            /* done */
	unsigned int skip;
};
/* Makes it the response's body. -ENOMEM. */
int endpoint_list_start(const struct agent_view *view, const struct endpoint_list_ops *ops,
	struct http_response *response);
/* The first workload that comes after the names, by its order in the table. */
const struct workload *endpoint_after(const struct workloads *t, const char *namespace,
	const char *daemonset, const char *container);
