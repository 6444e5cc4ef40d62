/* SPDX-License-Identifier: Apache-2.0 */
/* What sampling and the OOM watch say, on its way to the histories. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "agent/pods/tracker_inner.h"
#include "base/log.h"

void tracker_event(struct tracker *t, const struct live_container *pc, struct event *event)
{
	event->namespace = str_of(pc->pod->namespace);
	event->daemonset = str_of(pc->pod->daemonset);
	event->container = str_of(pc->name);
	event->pod = str_of(pc->pod->name);
	events_add(t->events, event);
}

static void urgent(struct tracker *t, struct workload *w, enum publish_reason reason)
{
	publish_item_urgent(&w->publish, reason);
	if (t->options.urgent)
		t->options.urgent(t->options.arg, w);
}

static struct amounts request_of(const struct workload *w)
{
	return (struct amounts){.value = {w->request_millicores, w->request_bytes},
		.known = {w->request_millicores >= 0, w->request_bytes >= 0}};
}

/* ---- OOM kills ---- */

/* The history knows of a kill now: the rest follows from it. */
static void kill_counted(struct tracker *t, struct live_container *pc, const char *class,
	int64_t at_ns, int64_t limit_bytes, bool raises)
{
	struct event event = EVENT(EVENT_KIND_OOM, at_ns);
	struct recommendation r;
	struct workload *w = pc->workload;

	history_oom(&w->history, tracker_now_ns(t));
	workload_estimate(w, tracker_now_ns(t), &r, NULL);
	event.detail = class;
	event.limit_bytes = limit_bytes;
	if (pc->sampling && pc->measured.limits.peak_outcome == CG_OK)
		event.peak_bytes =
			(int64_t)MIN(pc->measured.limits.peak_bytes, (uint64_t)INT64_MAX);
	event.target = r.amounts[BOUND_TARGET];
	tracker_event(t, pc, &event);
	log_info("%s/%s container %s was OOM-killed (%s)", pc->pod->namespace, pc->pod->name,
		pc->name, class);
	if (raises)
		urgent(t, w, PUBLISH_OOM);
}

static bool class_raises(const struct workload *w, enum oom_class class)
{
	return oom_class_is_own(class) || w->knobs->profile == PROFILE_VPA;
}

static void kill_seen(
	struct tracker *t, struct live_container *pc, enum oom_class class, bool vanished)
{
	struct workload *w = pc->workload;
	uint64_t limit;

	memcpy(pc->charged_id, pc->id, sizeof(pc->charged_id));
	if (!w)
		return;
	/* The kill belongs to the workload, also when another pod of it is the one that is learned
	 * from. */
	struct usage_history *learned = pc->measured.usage;
	pc->measured.usage = &w->usage;
	pc->measured.knobs = w->knobs;
	container_oom(&pc->measured, &t->sampler.io, class, vanished, tracker_now_ns(t),
		pc->request_bytes);
	pc->measured.usage = learned;
	kill_counted(t, pc, oom_class_name(class), tracker_now_ns(t),
		container_memory_limit(&pc->measured, &limit)
			? (int64_t)MIN(limit, (uint64_t)INT64_MAX)
			: -1,
		class_raises(w, class));
}

/* What a kill is learned from that nobody measured: the limit (-1: not known), of which the
 * reference knows nothing, or the request. */
static int64_t bytes_at_unmeasured_kill(const struct live_container *pc, int64_t limit_bytes)
{
	int64_t bytes = pc->workload->knobs->profile == PROFILE_VPA
				? pc->request_bytes
				: MAX(limit_bytes, pc->request_bytes);

	return MAX(bytes, INT64_C(0));
}

/* What the only container of a pod was allowed, as far as nothing else tells: by its pod. */
static int64_t allowed_by_pod(struct tracker *t, const struct pod_entry *pod)
{
	uint64_t limit;

	if (pod->dirfd < 0 ||
		cgio_read_number(&t->sampler.io, pod->dirfd, "memory.max", &limit) != CG_OK ||
		limit == CG_MAX)
		return -1;
	return (int64_t)MIN(limit, (uint64_t)INT64_MAX);
}

/* A container that nobody had measured: its pod's only one is the one. With more of them the pod's
 * status will tell. */
static void kill_of_unseen(struct tracker *t, struct pod_entry *pod, enum oom_class class)
{
	struct live_container *pc = &pod->containers[0];
	int64_t limit;

	t->unseen_kills++;
	if (pod->told_kills > 0) {
		pod->told_kills--;
		return;
	}
	if (pod->n_containers != 1 || !pc->workload)
		return;
	pod->seen_kills++;
	limit = allowed_by_pod(t, pod);
	if (class_raises(pc->workload, class))
		(void)usage_record_oom(&pc->workload->usage, pc->workload->knobs, tracker_now_ns(t),
			bytes_at_unmeasured_kill(pc, limit));
	else
		usage_count_oom(&pc->workload->usage, tracker_now_ns(t));
	kill_counted(t, pc, oom_class_name(class), tracker_now_ns(t), limit,
		class_raises(pc->workload, class));
}

static void on_killed(struct oomwatch_pod *watched, struct oomwatch_child *child,
	enum oom_class class, bool vanished, void *arg)
{
	struct tracker *t = arg;

	if (child)
		kill_seen(t, child->owner, class, vanished);
	else
		kill_of_unseen(t, watched->owner, class);
}

void tracker_told_kill(
	struct tracker *t, struct live_container *pc, int64_t at_ns, int64_t limit_bytes)
{
	struct workload *w = pc->workload;

	if (pc->pod->seen_kills > 0) { /* the kernel told of it first */
		pc->pod->seen_kills--;
		return;
	}
	pc->pod->told_kills++;
	if (at_ns == TIME_NONE)
		at_ns = tracker_now_ns(t);
	int r = usage_record_oom(
		&w->usage, w->knobs, at_ns, bytes_at_unmeasured_kill(pc, limit_bytes));
	if (r < 0)
		log_info("%s/%s container %s: an OOM kill of long ago is not counted",
			pc->pod->namespace, pc->pod->name, pc->name);
	else
		kill_counted(t, pc, "limit", at_ns, limit_bytes, true);
}

/* ---- samples ---- */

static void on_window(
	struct container *c, int64_t t_ns, double millicores, double minutes, void *arg)
{
	struct live_container *pc = c->owner;
	struct workload *w = pc->workload;
	struct amounts request = request_of(w);
	const struct tracker *t = arg;

	(void)t_ns;
	w->seeded = false; /* what this node's own annotations said is replaced by what is seen */
	memcpy(w->revision, pc->pod->revision, sizeof(w->revision));
	coverage_add(&w->coverage, RESOURCE_CPU, (uint64_t)(minutes * (double)USEC_PER_MINUTE),
		millicores, &w->publish.published.amounts[BOUND_TARGET], &request);
	if (w->publish.at == TIME_NONE && workload_ready(w) && t->options.urgent)
		t->options.urgent(t->options.arg, w);
}

static void on_ahead(struct container *c, int64_t t_ns, void *arg)
{
	struct tracker *t = arg;
	struct live_container *pc = c->owner;
	struct event event = EVENT(EVENT_KIND_AHEAD, t_ns);
	struct recommendation r;
	uint64_t limit;

	if (!c->usage || !container_memory_limit(c, &limit))
		return;
	workload_estimate(pc->workload, tracker_now_ns(t), &r, NULL);
	event.limit_bytes = (int64_t)MIN(limit, (uint64_t)INT64_MAX);
	event.target = r.amounts[BOUND_TARGET];
	tracker_event(t, pc, &event);
	log_info("%s/%s container %s is about to reach its memory limit", pc->pod->namespace,
		pc->pod->name, pc->name);
	urgent(t, pc->workload, PUBLISH_AHEAD_OF_OOM);
}

static void on_gone(struct container *c, void *arg)
{
	struct live_container *pc = c->owner;

	pc->lost = true;
	tracker_schedule(arg);
}

static void on_clock_jumped(int64_t by_ns, void *arg)
{
	struct tracker *t = arg;
	struct event event = EVENT(EVENT_KIND_CLOCK, tracker_now_ns(t));
	struct err text = {""};

	(void)err_set(&text, 0, "the wall clock was set by %+.1f s",
		(double)by_ns / (double)NSEC_PER_SEC);
	event.text = str_of(text.text);
	events_add(t->events, &event);
	log_warn("%s; histories are moved along", text.text);
	for (struct workload *w = t->workloads->first; w; w = w->next) {
		usage_shift(&w->usage, by_ns);
		history_shift(&w->history, by_ns);
		w->seen_at_ns = instant_add(w->seen_at_ns, by_ns);
	}
}

static void after_round_of(struct tracker *t, const struct live_container *pc, int64_t now_ns)
{
	const struct container *c = &pc->measured;
	struct workload *w = pc->workload;
	struct amounts request = request_of(w);
	struct history_sample s = {.millicores = c->millicores_known ? c->millicores : NAN,
		.working_set_bytes = c->working_set_known ? (double)c->working_set_bytes : NAN,
		.throttled_share = c->throttled_fraction};

	w->seen_at_ns = now_ns;
	if (c->working_set_known)
		coverage_add(&w->coverage, RESOURCE_MEMORY, t->options.interval_usec,
			(double)c->working_set_bytes, &w->publish.published.amounts[BOUND_TARGET],
			&request);
	history_add(&w->history, now_ns, &s);
	history_levels(&w->history, &request, &w->publish.published.amounts[BOUND_TARGET]);
}

void tracker_after_round(struct tracker *t)
{
	int64_t now_ns = tracker_now_ns(t);

	for (const struct pod_entry *pod = t->pods.first; pod; pod = pod->next) {
		for (unsigned int i = 0; i < pod->n_containers; i++) {
			const struct live_container *pc = &pod->containers[i];
			if (pc->sampling && !pc->measured.gone && pc->measured.usage)
				after_round_of(t, pc, now_ns);
		}
	}
}

struct sampler_events tracker_sampler_events(struct tracker *t)
{
	return (struct sampler_events){.window = on_window,
		.ahead = on_ahead,
		.gone = on_gone,
		.clock_jumped = on_clock_jumped,
		.arg = t};
}

struct oomwatch_events tracker_oom_events(struct tracker *t)
{
	return (struct oomwatch_events){.killed = on_killed, .arg = t};
}
