/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the tracker share: tracker.c (cgroups taken up and let go, timers),
 * tracker_pods.c (what the pod source says), tracker_events.c (what sampling and the OOM watch
 * say). */
#pragma once

#include "agent/pods/tracker.h"

int64_t tracker_now_ns(const struct tracker *t);

/* tracker.c */
void tracker_let_go(struct tracker *t, struct live_container *pc);
void tracker_look_for(struct tracker *t, struct live_container *pc);
void tracker_schedule(struct tracker *t); /* after changes of lost or retry_usec */
void tracker_forget_pod(struct tracker *t, struct pod_entry *pod);
/* Its workload's pod_uid says that it is the one: its numbers go there. */
void tracker_make_current(struct tracker *t, struct live_container *pc);

/* tracker_pods.c: an instance that is not known yet, told by elimination: the only container of its
 * pod that has no cgroup, and the only cgroup that nobody has. True: pc->id was set. */
bool tracker_adopt(struct tracker *t, struct live_container *pc);
/* All containers of the pod are measured: the other ids are the sandbox and ended init containers.
 */
void tracker_remember_others(struct tracker *t, struct pod_entry *pod);

/* tracker_events.c */
struct sampler_events tracker_sampler_events(struct tracker *t);
struct oomwatch_events tracker_oom_events(struct tracker *t);
void tracker_after_round(struct tracker *t);
/* Fills in whose it is and adds it. */
void tracker_event(struct tracker *t, const struct live_container *pc, struct event *event);
/* An OOM kill that the pod's status tells of, of an instance that was not measured when it
 * happened. */
void tracker_told_kill(
	struct tracker *t, struct live_container *pc, int64_t at_ns, int64_t limit_bytes);
