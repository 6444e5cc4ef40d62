/* SPDX-License-Identifier: Apache-2.0 */
/* The per-node program, put together: who knows whom, what happens at start and at the end. Each
 * part is of its own file; here they only meet. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/cgroup/cgroot.h"
#include "agent/endpoint/endpoint.h"
#include "agent/endpoint/view.h"
#include "agent/options.h"
#include "agent/pods/podsource.h"
#include "agent/pods/tracker.h"
#include "agent/publish/publisher.h"
#include "agent/saved.h"
#include "agent/state/events.h"
#include "agent/state/store.h"
#include "agent/state/workload.h"
#include "base/clock.h"
#include "base/loop.h"
#include "net/kube/client.h"
#include "rules/knobs.h"

struct agent_settings {
	struct knobs knobs; /* first: knobs_flags */
	struct common_settings common;
	const char *node_name;
	const char *pod_source; /* "api" or "file:PATH" */
	const char *publish;    /* "api", "none" or "file:PATH" */
	const char *cgroup_root, *state_dir, *listen, *kubeconfig;
	int metrics; /* enum metrics_detail */
	int64_t interval_ns, checkpoint_interval_ns, publish_interval_ns, first_publish_spread_ns,
		start_spread_ns, stale_after_ns;
};

struct agent {
	const struct agent_settings *settings;
	const struct clock *clock;
	struct loop loop;
	struct workloads workloads;
	struct events events;
	struct cgroot root;
	struct err unsupported; /* why this node cannot be measured; empty: it can */
	struct tracker tracker;
	bool tracking; /* tracker is initialised */
	struct store store;
	struct saved saved;
	bool restored; /* from a checkpoint */
	struct loop_timer save, expire;
	struct kube_client *client;
	struct podsource *podsource;
	struct publisher *publisher;
	struct endpoint endpoint;
	struct agent_view view;
	struct publish_pace pace;
};

/* Everything up to the point where the loop may run. flags are kept for /v1/config. settings, flags
 * and clock must outlive a. On failure e says what to do, and agent_finish is still to be called.
 */
int agent_init(struct agent *a, const struct agent_settings *settings, const struct flag_set *flags,
	const struct clock *clock, struct err *e);
/* Runs until SIGTERM or SIGINT. */
void agent_run(struct agent *a);
/* Saves, and takes everything apart. */
void agent_finish(struct agent *a);

/* agent_health.c: what /readyz says. arg is the agent. */
void agent_each_health(
	void *arg, void (*fn)(void *fn_arg, const struct health_item *item), void *fn_arg);
