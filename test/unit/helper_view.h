/* SPDX-License-Identifier: Apache-2.0 */
/* An agent's state to look at: a few workloads, containers in every state, events, settings; and
 * asking the endpoint's handlers without a socket. */
#pragma once

#include "agent/endpoint/endpoint.h"
#include "agent/endpoint/view.h"
#include "agent/sample/container.h"
#include "agent/state/events.h"
#include "agent/state/workload.h"
#include "base/buf.h"
#include "base/flags.h"

#define VIEW_ENTRIES_MAX 8U
#define VIEW_HEALTH_MAX 4U

struct fixture {
	struct clock_manual clock;
	struct knobs knobs;
	struct workloads workloads;
	struct events events;
	struct container measured;
	unsigned int n_entries, n_health;
	struct container_entry entries[VIEW_ENTRIES_MAX];
	struct health_item health[VIEW_HEALTH_MAX];
	struct flag_set flags;
	struct agent_view view;
	struct endpoint endpoint;
};

/* Nothing known yet: no workload, no container. */
void fixture_init(struct fixture *f);
/* Three days of one workload (default/shipper/main), another that is not found, one with a name of
 * four languages. */
void fixture_fill(struct fixture *f);
void fixture_finish(struct fixture *f);
struct workload *fixture_workload(
	struct fixture *f, const char *namespace, const char *daemonset, const char *container);

struct reply {
	int error;           /* of the handler */
	unsigned int status; /* as the server would send it */
	const char *content_type;
	struct buf body;
	size_t longest_piece;
	struct err e;
};
/* between is called after each piece of a long answer; may be NULL. Free with buf_finish(&body). */
struct reply fixture_get(
	struct fixture *f, const char *url, const char *accept, void (*between)(struct fixture *f));
/* Fails the test unless it is one JSON document. */
void assert_json(const struct buf *body);
bool contains(const struct buf *body, const char *text);
unsigned int count(const struct buf *body, const char *text);
