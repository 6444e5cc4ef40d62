/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sample/oomwatch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

#define EPOLL_BATCH 64

/* ---- reading */

static enum cg_outcome parse_events(struct str text, struct memory_events *ret)
{
	return cgfile_memory_events(text, ret) == 0 ? CG_OK : CG_MALFORMED;
}

/* memory.events through the held file, or by opening it. */
static enum cg_outcome read_events(
	struct oomwatch *w, int events, int dirfd, struct memory_events *ret)
{
	struct str text;
	enum cg_outcome outcome = CG_NO_FILE;

	if (events >= 0)
		outcome = cgio_read_fd(w->io, events, &text);
	else if (dirfd >= 0)
		outcome = cgio_read_at(w->io, dirfd, "memory.events", &text);
	return outcome == CG_OK ? parse_events(text, ret) : outcome;
}

static void read_local(struct oomwatch *w, int dirfd, struct oom_rise *rise, uint64_t now)
{
	struct memory_events e;
	struct str text;

	if (dirfd >= 0 && cgio_read_at(w->io, dirfd, "memory.events.local", &text) == CG_OK &&
		parse_events(text, &e) == CG_OK)
		oom_rise_take(rise, &e, now);
}

/* ---- polling: one epoll set for all files, whose single descriptor the loop waits for. Each file
 * is armed for one wake-up, so that a storm of them costs one look per pause. */

static void arm(struct oomwatch *w, struct oomwatch_pod *pod, int fd, int operation)
{
	struct epoll_event e = {.events = EPOLLPRI | EPOLLONESHOT, .data.ptr = pod};

	if (fd >= 0 && epoll_ctl(w->epoll, operation, fd, &e) < 0 && operation == EPOLL_CTL_ADD)
		w->unwatched++;
}

static int hold_events(struct oomwatch *w, struct oomwatch_pod *pod, int dirfd)
{
	int fd;

	if (dirfd < 0)
		return -1;
	if (w->io->held >= w->io->held_max) {
		w->unwatched++;
		return -1;
	}
	fd = openat(dirfd, "memory.events", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -1;
	w->io->held++;
	arm(w, pod, fd, EPOLL_CTL_ADD);
	return fd;
}

static void let_go(struct oomwatch *w, int *fd)
{
	if (*fd < 0)
		return;
	(void)close(*fd); /* which takes it out of the epoll set */
	*fd = -1;
	w->io->held--;
}

static void rearm(struct oomwatch *w, struct oomwatch_pod *pod)
{
	arm(w, pod, pod->events, EPOLL_CTL_MOD);
	for (struct oomwatch_child *c = pod->children; c; c = c->next)
		arm(w, pod, c->events, EPOLL_CTL_MOD);
}

/* ---- one look at one pod */

/* Reads the pod's counter. It is read before the children's: they are counted first, so what the
 * pod shows is in them. */
static void look_at_pod_counter(struct oomwatch *w, struct oomwatch_pod *pod, uint64_t now)
{
	struct memory_events e;
	enum cg_outcome outcome = read_events(w, pod->events, pod->dirfd, &e);

	if (outcome == CG_GONE)
		let_go(w, &pod->events);
	if (outcome != CG_OK || !(e.seen & EVENT_OOM_KILL))
		return;
	oom_rise_take(&pod->rise, &e, now);
	/* Fewer than before: the pod's directory was made anew. */
	if (!pod->known || e.oom_kill < pod->kills)
		pod->explained = e.oom_kill;
	pod->known = true;
	pod->kills = e.oom_kill;
}

/* True when the child was found to be gone just now. */
static bool look_at_child(
	struct oomwatch *w, struct oomwatch_pod *pod, struct oomwatch_child *c, uint64_t now)
{
	struct memory_events e;
	enum cg_outcome outcome;
	uint64_t kills;

	if (c->gone)
		return false;
	outcome = read_events(w, c->events, c->dirfd, &e);
	if (outcome == CG_GONE) {
		c->gone = true;
		let_go(w, &c->events);
		return true;
	}
	if (outcome != CG_OK)
		return false;
	oom_rise_take(&c->rise, &e, now);
	c->pending += oom_count_take(&c->count, &e, &kills);
	pod->explained += kills;
	if ((e.seen & EVENT_MAX) && e.max > c->max_hits && w->events.limit_hit)
		w->events.limit_hit(c, w->events.arg);
	c->max_hits = e.seen & EVENT_MAX ? e.max : 0;
	return false;
}

static void tell(struct oomwatch *w, struct oomwatch_pod *pod, struct oomwatch_child *c,
	bool vanished, uint64_t now)
{
	struct oom_evidence evidence = {
		.container_oom = c && !vanished && oom_rise_is_recent(&c->rise, now),
		.pod_oom = oom_rise_is_recent(&pod->rise, now),
		.pod_local_oom = oom_rise_is_recent(&pod->local, now),
		.node_local_oom = oom_rise_is_recent(&pod->node, now),
		.container_vanished = vanished,
	};

	if (w->events.killed)
		w->events.killed(pod, c, oom_classify(&evidence), vanished, w->events.arg);
}

/* The fullest of the containers that went since the last look. */
static struct oomwatch_child *fullest_gone(struct oomwatch_pod *pod)
{
	struct oomwatch_child *best = NULL;

	for (struct oomwatch_child *c = pod->children; c; c = c->next)
		if (c->gone && !c->settled && (!best || c->fullness > best->fullness))
			best = c;
	return best;
}

/* Kills that no living container explains. */
static void settle(struct oomwatch *w, struct oomwatch_pod *pod, uint64_t now)
{
	struct oomwatch_child *gone = fullest_gone(pod);

	if (pod->known && pod->kills > pod->explained) {
		if (gone || (pod->unexplained_usec &&
				    now - pod->unexplained_usec >= OOMWATCH_UNEXPLAINED_USEC)) {
			pod->explained = pod->kills;
			tell(w, pod, gone, true,
				pod->unexplained_usec ? pod->unexplained_usec : now);
		} else if (!pod->unexplained_usec) {
			pod->unexplained_usec = MAX(now, (uint64_t)1);
		}
	}
	if (!pod->known || pod->kills <= pod->explained)
		pod->unexplained_usec = 0;
	for (struct oomwatch_child *c = pod->children; c; c = c->next)
		c->settled = c->gone;
}

static void look(struct oomwatch *w, struct oomwatch_pod *pod, bool full)
{
	uint64_t now = clock_mono_usec(w->clock);
	bool went = false, kills;

	w->looking = true;
	look_at_pod_counter(w, pod, now);
	for (struct oomwatch_child *c = pod->children; c; c = c->next)
		went |= look_at_child(w, pod, c, now);
	if (went) {
		/* A kill comes before its cgroup goes: now the pod's counter has it for certain. */
		look_at_pod_counter(w, pod, now);
		for (struct oomwatch_child *c = pod->children; c; c = c->next)
			(void)look_at_child(w, pod, c, now);
	}
	kills = pod->known && pod->kills > pod->explained;
	for (struct oomwatch_child *c = pod->children; c; c = c->next)
		kills |= c->pending > 0;
	/* What ran out is looked up after the kill was seen: the kernel counts it first. */
	if (full || kills) {
		read_local(w, pod->dirfd, &pod->local, now);
		read_local(w, pod->node_dirfd, &pod->node, now);
	}
	for (struct oomwatch_child *c = pod->children; c; c = c->next)
		for (; c->pending > 0; c->pending--)
			tell(w, pod, c, false, now);
	settle(w, pod, now);
	pod->looked_usec = now;
	pod->woken = false;
	rearm(w, pod);
	w->looking = false;
}

void oomwatch_look_at(struct oomwatch *w, struct oomwatch_pod *pod)
{
	if (!w->looking)
		look(w, pod, true);
}

void oomwatch_look(struct oomwatch *w)
{
	for (struct oomwatch_pod *pod = w->pods; pod; pod = pod->next)
		oomwatch_look_at(w, pod);
}

/* ---- wake-ups */

/* Looks at those that woke, unless that was just done: then when the pause is over. */
static void look_at_woken(struct oomwatch *w)
{
	uint64_t now = clock_mono_usec(w->clock);
	bool left = false;

	for (struct oomwatch_pod *pod = w->pods; pod; pod = pod->next) {
		if (!pod->woken)
			continue;
		if (pod->looked_usec && now - pod->looked_usec < OOMWATCH_PAUSE_USEC)
			left = true;
		else
			look(w, pod, false);
	}
	if (left && !loop_timer_armed(&w->pause))
		loop_timer_set(&w->pause, OOMWATCH_PAUSE_USEC);
}

static void on_pause_over(void *arg)
{
	look_at_woken(arg);
}

static void on_ready(void *arg, int status, unsigned int events)
{
	struct oomwatch *w = arg;
	struct epoll_event batch[EPOLL_BATCH];
	int n = epoll_wait(w->epoll, batch, EPOLL_BATCH, 0);

	(void)status;
	(void)events;
	for (int i = 0; i < n; i++) {
		struct oomwatch_pod *pod = batch[i].data.ptr;

		pod->woken = true;
		w->wakes++;
	}
	if (n > 0)
		look_at_woken(w);
}

/* ---- life */

int oomwatch_init(struct oomwatch *w, struct loop *loop, const struct clock *clock, struct cgio *io,
	const struct oomwatch_events *events)
{
	int r;

	*w = (struct oomwatch){.loop = loop, .clock = clock, .io = io, .epoll = -1};
	if (events)
		w->events = *events;
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll < 0)
		return -errno;
	r = loop_timer_init(loop, &w->pause, on_pause_over, w);
	if (r == 0)
		r = loop_fd_init(loop, &w->ready, w->epoll, on_ready, w);
	if (r == 0)
		r = loop_fd_set(&w->ready, LOOP_READ);
	if (r < 0)
		oomwatch_finish(w);
	return r;
}

void oomwatch_finish(struct oomwatch *w)
{
	while (w->pods)
		oomwatch_pod_remove(w, w->pods);
	if (w->ready.open)
		loop_fd_close(&w->ready, NULL);
	if (w->pause.open)
		loop_timer_close(&w->pause, NULL);
	closep(&w->epoll);
	w->epoll = -1;
}

void oomwatch_pod_add(struct oomwatch *w, struct oomwatch_pod *pod, int dirfd, int node_dirfd,
	uint64_t explained, void *owner)
{
	uint64_t now = clock_mono_usec(w->clock);

	*pod = (struct oomwatch_pod){
		.owner = owner, .dirfd = dirfd, .node_dirfd = node_dirfd, .next = w->pods};
	pod->events = hold_events(w, pod, dirfd);
	look_at_pod_counter(w, pod, now);
	if (pod->known && explained <= pod->kills)
		pod->explained = explained;
	read_local(w, pod->dirfd, &pod->local, now);
	read_local(w, pod->node_dirfd, &pod->node, now);
	if (pod->known && pod->kills > pod->explained) {
		/* Killed while nobody watched. The ooms that the pod's counters show are taken for
		 * those of these kills; which kill began the pod's other ones nobody knows. */
		oom_rise_is_news(&pod->rise, now);
		oom_rise_is_news(&pod->local, now);
		pod->unexplained_usec = MAX(now, (uint64_t)1);
	}
	w->pods = pod;
	rearm(w, pod);
}

void oomwatch_pod_remove(struct oomwatch *w, struct oomwatch_pod *pod)
{
	for (struct oomwatch_pod **p = &w->pods; *p; p = &(*p)->next) {
		if (*p != pod)
			continue;
		*p = pod->next;
		break;
	}
	for (struct oomwatch_child *c = pod->children; c; c = c->next)
		let_go(w, &c->events);
	pod->children = NULL;
	let_go(w, &pod->events);
}

/* How many of the kills that a new container shows are news. */
static uint64_t fresh_kills(
	const struct oomwatch_pod *pod, const struct memory_events *e, uint64_t before, bool born)
{
	if (before != OOM_KILLS_UNKNOWN)
		return before <= e->oom_kill ? e->oom_kill - before : 0;
	if (!pod->known)
		return born ? e->oom_kill : 0;
	return MIN(e->oom_kill, pod->kills > pod->explained ? pod->kills - pod->explained : 0);
}

void oomwatch_child_add(struct oomwatch *w, struct oomwatch_pod *pod, struct oomwatch_child *child,
	int dirfd, uint64_t kills, bool born, void *owner)
{
	uint64_t now = clock_mono_usec(w->clock);
	struct memory_events e;

	uint64_t fresh = 0;

	*child = (struct oomwatch_child){.owner = owner, .dirfd = dirfd, .next = pod->children};
	child->events = hold_events(w, pod, dirfd);
	look_at_pod_counter(w, pod, now);
	if (read_events(w, child->events, dirfd, &e) == CG_OK) {
		if (e.seen & EVENT_OOM_KILL)
			fresh = fresh_kills(pod, &e, kills, born);
		oom_count_start(&child->count, &e, fresh);
		oom_rise_take(&child->rise, &e, now);
		/* The ooms that go with fresh kills are news as well. */
		if (fresh > 0)
			oom_rise_is_news(&child->rise, now);
		child->max_hits = e.seen & EVENT_MAX ? e.max : 0;
	}
	pod->children = child;
	rearm(w, pod);
	/* What is news is told at the next look, when the caller is done with adding. */
	if (fresh > 0 || (pod->known && pod->kills > pod->explained)) {
		pod->woken = true;
		loop_timer_set(&w->pause, OOMWATCH_PAUSE_USEC);
	}
}

void oomwatch_child_remove(
	struct oomwatch *w, struct oomwatch_pod *pod, struct oomwatch_child *child)
{
	oomwatch_look_at(w, pod);
	for (struct oomwatch_child **c = &pod->children; *c; c = &(*c)->next) {
		if (*c != child)
			continue;
		*c = child->next;
		break;
	}
	let_go(w, &child->events);
}
