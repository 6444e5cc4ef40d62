/* SPDX-License-Identifier: Apache-2.0 */
/* Notices OOM kills: within milliseconds, once each, with what ran out. Per pod and per container
 * memory.events is held and polled (POLLPRI); since the kernel rate-limits that, may skip it, and
 * says nothing when a cgroup goes, a timer looks as well (oomwatch_look). A wake-up alone means
 * nothing: reclaim at the limit wakes too; counters decide.
 *
 * For each pod: its directory, below it the containers, above it the node (what limits all pods). A
 * kill that no living container's counter explains belongs to one that went, and is charged to it,
 * once; if none went, to a container that was never seen.
 *
 * Callbacks may add containers, but must not remove containers or pods. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/cgroup/cgleaf.h"
#include "agent/sample/oomcount.h"
#include "base/clock.h"
#include "base/loop.h"
#include "rules/oomclass.h"

/* Pods under heavy reclaim wake a hundred times a second; they are looked at this seldom. */
#define OOMWATCH_PAUSE_USEC (20 * USEC_PER_MSEC)
/* A kill that nothing explains waits this long for its container to be found. */
#define OOMWATCH_UNEXPLAINED_USEC (3 * USEC_PER_SEC)
#define OOM_KILLS_UNKNOWN UINT64_MAX

struct oomwatch_child {
	struct oomwatch_child *next;
	void *owner;
	int dirfd;  /* not owned */
	int events; /* memory.events, held and polled; -1: the cgroup has none, or descriptors are
		       short */
	struct oom_count count;
	struct oom_rise rise;
	uint64_t max_hits;
	double fullness; /* usage / limit when last looked at, for choosing among several that went
			  */
	bool gone;
	bool settled;         /* gone, and kills after that cannot be its own */
	unsigned int pending; /* incidents of the look that is under way */
};

struct oomwatch_pod {
	struct oomwatch_pod *next;
	void *owner;
	int dirfd;          /* not owned; -1: there is no level of this kind */
	int node_dirfd;     /* likewise */
	int events;         /* memory.events, held and polled; -1 */
	bool known;         /* the pod's kills are counted: `explained` means something */
	uint64_t explained; /* of the pod's oom_kill: those that were dealt with */
	uint64_t kills;     /* the pod's oom_kill when last read */
	struct oom_rise rise, local, node;
	uint64_t unexplained_usec; /* since when kills > explained; 0: they are equal */
	uint64_t looked_usec;
	bool woken;
	struct oomwatch_child *children;
};

struct oomwatch_events {
	/* child NULL: a container that was never seen. vanished: its cgroup is gone. */
	void (*killed)(struct oomwatch_pod *pod, struct oomwatch_child *child, enum oom_class class,
		bool vanished, void *arg);
	/* The container ran into its limit (memory.events:max rose): time to look how full it is.
	 */
	void (*limit_hit)(struct oomwatch_child *child, void *arg);
	void *arg;
};

struct oomwatch {
	struct loop *loop;
	const struct clock *clock;
	struct cgio *io; /* not owned; held files are counted there */
	struct oomwatch_events events;
	struct oomwatch_pod *pods;
	int epoll;
	struct loop_fd ready;
	struct loop_timer pause;
	bool looking;              /* guards against looks from within callbacks */
	uint64_t wakes, unwatched; /* wake-ups; files that could not be polled */
};

/* loop, clock and io must outlive w. */
int oomwatch_init(struct oomwatch *w, struct loop *loop, const struct clock *clock, struct cgio *io,
	const struct oomwatch_events *events);
/* Before loop_finish; pods and children may be freed afterwards. */
void oomwatch_finish(struct oomwatch *w);

/* Memory is the caller's and must stay where it is until removed. explained: of the pod's oom_kill,
 * what an earlier run had dealt with (same boot), else OOM_KILLS_UNKNOWN: then all kills so far are
 * old. */
void oomwatch_pod_add(struct oomwatch *w, struct oomwatch_pod *pod, int dirfd, int node_dirfd,
	uint64_t explained, void *owner);
void oomwatch_pod_remove(struct oomwatch *w, struct oomwatch_pod *pod);
/* kills: of the container's oom_kill, what an earlier run had dealt with, else OOM_KILLS_UNKNOWN.
 * born: it came to be while the pod was watched, so that all its kills are news. */
void oomwatch_child_add(struct oomwatch *w, struct oomwatch_pod *pod, struct oomwatch_child *child,
	int dirfd, uint64_t kills, bool born, void *owner);
/* Looks at the pod first, so that a kill is charged before the container is forgotten. */
void oomwatch_child_remove(
	struct oomwatch *w, struct oomwatch_pod *pod, struct oomwatch_child *child);

/* Looks at all pods: on a timer. */
void oomwatch_look(struct oomwatch *w);
/* Looks at one, because its owner knows that something happened (a container ended). */
void oomwatch_look_at(struct oomwatch *w, struct oomwatch_pod *pod);
