/* SPDX-License-Identifier: Apache-2.0 */
/* The families about the agent itself: its process, its rounds, its disk, its clients and its API
 * server. Every path on which something is refused, skipped, retried or fails is counted by whoever
 * takes it; here it gets its name. */
#include <sys/resource.h>

#include "agent/endpoint/metrics_private.h"
#include "agent/endpoint/process.h"
#include "agent/pods/tracker.h"
#include "agent/state/events.h"
#include "agent/state/store.h"
#include "agent/state/workload.h"
#include "base/loop.h"
#include "net/http/server.h"
#include "version.h"

static const struct tracker *tracker(struct metrics *m)
{
	return metrics_view(m)->tracker;
}

/* ---- process ---- */

static void build(struct metrics *m)
{
	metric_put2(m, "version", PERNODE_VERSION, "commit", PERNODE_COMMIT, 1);
}

static void start_time(struct metrics *m)
{
	metric_put(m, (double)metrics_view(m)->started_wall_usec / USEC_PER_SEC);
}

static void uptime(struct metrics *m)
{
	const struct agent_view *v = metrics_view(m);

	metric_put(m, (double)(clock_mono_usec(v->clock) - v->started_mono_usec) / USEC_PER_SEC);
}

static void cpu(struct metrics *m)
{
	metric_put(m, process_cpu_seconds());
}

static void resident(struct metrics *m)
{
	metric_put(m, process_resident_bytes());
}

static void open_fds(struct metrics *m)
{
	metric_put(m, process_open_fds());
}

static void loop_lag(struct metrics *m)
{
	const struct agent_view *v = metrics_view(m);

	if (v->lag)
		metric_put(m, (double)loop_lag_max_usec(v->lag, clock_mono_usec(v->clock)) /
				      USEC_PER_SEC);
}

static void timers_late(struct metrics *m)
{
	const struct agent_view *v = metrics_view(m);

	if (v->lag)
		metric_put(m, (double)v->lag->late);
}

static void state(struct metrics *m)
{
	metric_put1(m, "state", metrics_view(m)->state, 1);
}

static void put_ready(void *arg, const struct health_item *item)
{
	metric_put1(arg, "check", item->name, item->health < HEALTH_NOT_READY);
}

static void ready(struct metrics *m)
{
	const struct agent_view *v = metrics_view(m);

	if (v->each_health)
		v->each_health(v->arg, put_ready, m);
}

/* ---- what is followed ---- */

static int count_state(void *arg, const struct container_entry *entry)
{
	unsigned int *n = arg;

	n[entry->state]++;
	return 0;
}

static void containers(struct metrics *m)
{
	const struct agent_view *v = metrics_view(m);
	unsigned int n[CONTAINER_STATES] = {0};

	if (v->each_container)
		v->each_container(v->arg, count_state, n);
	for (enum container_state s = 0; s < CONTAINER_STATES; s++)
		metric_put1(m, "state", container_state_name(s), n[s]);
}

static void workloads(struct metrics *m)
{
	metric_put(m, metrics_view(m)->workloads->n);
}

static void workloads_refused(struct metrics *m)
{
	metric_put(m, (double)metrics_view(m)->workloads->refused);
}

static void settings_refused(struct metrics *m)
{
	unsigned int n = 0;

	for (const struct workload *w = metrics_view(m)->workloads->first; w; w = w->next)
		n += w->knobs_error != NULL;
	metric_put(m, n);
}

static void events(struct metrics *m)
{
	for (enum event_kind k = 0; k < EVENT_KINDS; k++)
		metric_put1(
			m, "kind", event_kind_name(k), (double)metrics_view(m)->events->of_kind[k]);
}

static void events_lost(struct metrics *m)
{
	metric_put(m, (double)metrics_view(m)->events->lost);
}

static void oom_kills(struct metrics *m)
{
	for (enum oom_class c = 0; c < OOM_CLASSES; c++)
		metric_put1(m, "class", oom_class_name(c),
			(double)metrics_view(m)->events->oom_of_class[c]);
}

static void oom_unseen(struct metrics *m)
{
	if (tracker(m))
		metric_put(m, (double)tracker(m)->unseen_kills);
}

static void adopted(struct metrics *m)
{
	if (tracker(m))
		metric_put(m, (double)tracker(m)->adopted);
}

static void pods(struct metrics *m)
{
	if (tracker(m))
		metric_put(m, tracker(m)->pods.n);
}

static void pods_refused(struct metrics *m)
{
	if (tracker(m))
		metric_put(m, (double)tracker(m)->pods.refused);
}

static void oom_wakes(struct metrics *m)
{
	if (tracker(m))
		metric_put(m, (double)tracker(m)->oomwatch.wakes);
}

static void oom_unwatched(struct metrics *m)
{
	if (tracker(m))
		metric_put(m, (double)tracker(m)->oomwatch.unwatched);
}

/* ---- sampling ---- */

static void rounds(struct metrics *m)
{
	if (tracker(m))
		metric_put(m, (double)tracker(m)->sampler.rounds);
}

static void clock_jumps(struct metrics *m)
{
	if (tracker(m))
		metric_put(m, (double)tracker(m)->sampler.clock_jumps);
}

static void files_held(struct metrics *m)
{
	if (tracker(m))
		metric_put(m, tracker(m)->sampler.io.held);
}

static void files_reopened(struct metrics *m)
{
	if (tracker(m))
		metric_put(m, (double)tracker(m)->sampler.io.reopened);
}

static void sampled_every_second(struct metrics *m)
{
	if (tracker(m))
		metric_put(m, tracker(m)->sampler.n_fast);
}

static void tree_walks(struct metrics *m)
{
	if (tracker(m))
		metric_put(m, (double)tracker(m)->find.walks);
}

/* ---- disk ---- */

static void saves(struct metrics *m)
{
	const struct store *s = metrics_view(m)->store;

	if (!s)
		return;
	metric_put1(m, "result", "ok", (double)s->saves);
	metric_put1(m, "result", "failed", (double)s->failures);
}

static void saved_at(struct metrics *m)
{
	const struct store *s = metrics_view(m)->store;

	if (s && s->saved_at_ns != INT64_MIN)
		metric_put(m, (double)s->saved_at_ns / (double)NSEC_PER_SEC);
}

static void saved_bytes(struct metrics *m)
{
	if (metrics_view(m)->store && metrics_view(m)->store->saved_bytes)
		metric_put(m, (double)metrics_view(m)->store->saved_bytes);
}

static void set_aside(struct metrics *m)
{
	const struct store *s = metrics_view(m)->store;

	for (enum checkpoint_verdict v = CHECKPOINT_EMPTY; s && v <= CHECKPOINT_TOO_NEW; v++)
		metric_put1(m, "reason", checkpoint_verdict_name(v), (double)s->set_aside[v]);
}

/* ---- who asks us ---- */

static void http_requests(struct metrics *m)
{
	if (metrics_view(m)->server)
		metric_put(m, (double)http_server_stats(metrics_view(m)->server)->requests);
}

static void http_refused(struct metrics *m)
{
	const struct http_server_stats *s;

	if (!metrics_view(m)->server)
		return;
	s = http_server_stats(metrics_view(m)->server);
	metric_put1(m, "reason", "error", (double)s->errors);
	metric_put1(m, "reason", "too-many-connections", (double)s->refused);
	metric_put1(m, "reason", "timeout", (double)s->timed_out);
}

static void http_connections(struct metrics *m)
{
	if (metrics_view(m)->server)
		metric_put(m, http_server_stats(metrics_view(m)->server)->connections);
}

const struct metric_family metrics_of_agent[] = {
	{"build", METRIC_INFO, "", "version, commit", false, "Always 1; what is running.", build,
		NULL},
	{"start_time_seconds", METRIC_GAUGE, "seconds", "", false,
		"When the agent started, Unix time.", start_time, NULL},
	{"uptime_seconds", METRIC_GAUGE, "seconds", "", false,
		"How long the agent has been running.", uptime, NULL},
	{"loop_lag_seconds", METRIC_GAUGE, "seconds", "", false,
		"How late a timer of the agent fired at most, over the last five to ten minutes.",
		loop_lag, NULL},
	{"loop_timers_late", METRIC_COUNTER, "", "", false,
		"Timers of the agent that fired more than 0.1 s late.", timers_late, NULL},
	{"cpu_seconds", METRIC_COUNTER, "seconds", "", false,
		"CPU time that the agent used, user and system.", cpu, NULL},
	{"resident_memory_bytes", METRIC_GAUGE, "bytes", "", false,
		"Memory of the agent that is resident.", resident, NULL},
	{"open_fds", METRIC_GAUGE, "", "", false, "File descriptors that the agent holds open.",
		open_fds, NULL},
	{"state", METRIC_INFO, "", "state", false,
		"Always 1; what the agent says of this node in the annotation pernode.io/agent.",
		state, NULL},
	{"check_ready", METRIC_GAUGE, "", "check", false,
		"Checks of /readyz: 1 passed (perhaps with a note), 0 failed.", ready, NULL},
	{"pods", METRIC_GAUGE, "", "", false, "DaemonSet pods of this node.", pods, NULL},
	{"pods_refused", METRIC_COUNTER, "", "", false,
		"Pods left out: there are too many, or memory was short.", pods_refused, NULL},
	{"containers_adopted", METRIC_COUNTER, "", "", false,
		"Containers that were told by elimination before the API server named them.",
		adopted, NULL},
	{"containers", METRIC_GAUGE, "", "state", false,
		"Containers that the DaemonSet pods of this node name, by what became of them.",
		containers, NULL},
	{"workloads", METRIC_GAUGE, "", "", false,
		"Histories kept, one per namespace, DaemonSet and container.", workloads, NULL},
	{"workloads_refused", METRIC_COUNTER, "", "", false,
		"Containers without a history: there are too many, or memory was short.",
		workloads_refused, NULL},
	{"settings_unusable", METRIC_GAUGE, "", "", false,
		"Workloads whose pod annotation pernode.io/recommender cannot be used.",
		settings_refused, NULL},
	{"events", METRIC_COUNTER, "", "kind", false, "What happened, as listed by /v1/events.",
		events, NULL},
	{"events_lost", METRIC_COUNTER, "", "", false,
		"Events left out of /v1/events because memory was short.", events_lost, NULL},
	{"oom_kills", METRIC_COUNTER, "", "class", false,
		"OOM kills of containers, by what ran out.", oom_kills, NULL},
	{"oom_kills_unseen", METRIC_COUNTER, "", "", false,
		"OOM kills of containers that were gone before they could be measured.", oom_unseen,
		NULL},
	{"oom_wakes", METRIC_COUNTER, "", "", false,
		"Wake-ups by the kernel because memory events of a cgroup changed.", oom_wakes,
		NULL},
	{"oom_unwatched", METRIC_COUNTER, "", "", false,
		"Memory event files that could not be watched and are read by the clock instead.",
		oom_unwatched, NULL},
	{"rounds", METRIC_COUNTER, "", "", false, "Rounds of reading all containers.", rounds,
		NULL},
	{"clock_jumps", METRIC_COUNTER, "", "", false,
		"Times the wall clock was set while the agent ran.", clock_jumps, NULL},
	{"files_held", METRIC_GAUGE, "", "", false,
		"Containers' files that are held open between rounds.", files_held, NULL},
	{"files_reopened", METRIC_COUNTER, "", "", false,
		"Reads that had to open their file because descriptors are short.", files_reopened,
		NULL},
	{"sampled_every_second", METRIC_GAUGE, "", "", false,
		"Containers looked at every second because they near their memory limit.",
		sampled_every_second, NULL},
	{"tree_walks", METRIC_COUNTER, "", "", false,
		"Walks of the whole cgroup tree to find where pods live.", tree_walks, NULL},
	{"saves", METRIC_COUNTER, "", "result", false, "Attempts to save the histories to disk.",
		saves, NULL},
	{"last_save_timestamp_seconds", METRIC_GAUGE, "seconds", "", false,
		"When the histories were last saved, Unix time.", saved_at, NULL},
	{"saved_bytes", METRIC_GAUGE, "bytes", "", false, "Size of the saved histories.",
		saved_bytes, NULL},
	{"saved_files_set_aside", METRIC_COUNTER, "", "reason", false,
		"Saved files that could not be used at the start and were renamed.", set_aside,
		NULL},
	{"http_requests", METRIC_COUNTER, "", "", false, "Requests that the endpoint answered.",
		http_requests, NULL},
	{"http_refused", METRIC_COUNTER, "", "reason", false,
		"Requests answered with an error (4xx, 5xx), and connections refused or closed for "
		"slowness.",
		http_refused, NULL},
	{"http_connections", METRIC_GAUGE, "", "", false,
		"Connections to the endpoint that are open.", http_connections, NULL},
	{.name = NULL},
};
