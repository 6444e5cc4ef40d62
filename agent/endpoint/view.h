/* SPDX-License-Identifier: Apache-2.0 */
/* What the endpoint may look at: the agent's state, read-only, gathered in one place by the `run`
 * verb. Pointers belong to their owners and outlive the endpoint; what may be NULL says so.
 * Everything is read on the loop, while nothing changes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/pods/entry.h"
#include "agent/state/health.h"
#include "base/clock.h"

struct events;
struct flag_set;
struct http_server;
struct kube_client;
struct kube_reflector;
struct loop_lag;
struct publisher;
struct store;
struct tracker;
struct workload;
struct workloads;

struct agent_view {
	const char *node_name;
	const char *node_uid; /* "" until known */
	const char *state;    /* what pernode.io/agent says: "ok", "unsupported"… Never NULL. */
	const char *reason;   /* of a state that is not "ok", else "" */
	const struct clock *clock;
	int64_t started_wall_usec;
	uint64_t started_mono_usec;

	const struct workloads *workloads;
	const struct events *events;
	const struct flag_set *flags;
	const struct tracker *tracker; /* NULL: in a test */
	const struct loop_lag *lag;    /* of the loop; NULL: in a test */

	const struct publisher *publisher;      /* NULL: --publish=none */
	const struct kube_client *client;       /* NULL: no API server */
	const struct kube_reflector *reflector; /* NULL: pods from a file */
	const struct store *store;              /* NULL: no state directory */
	const struct http_server *server;       /* set once it listens; NULL before */

	/* Calls fn for each container that the pods of this node name, and for each that is held,
	 * in a stable order; stops when fn returns other than 0. */
	void (*each_container)(void *arg,
		int (*fn)(void *fn_arg, const struct container_entry *entry), void *fn_arg);
	/* Calls fn for each thing that has a health. */
	void (*each_health)(
		void *arg, void (*fn)(void *fn_arg, const struct health_item *item), void *fn_arg);
	void *arg; /* of both */
};

/* The container that a workload is now: the first one that is sampled, else the first one named.
 * False: there is none. */
bool view_find(
	const struct agent_view *view, const struct workload *w, struct container_entry *ret);
