/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/tracker.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/pods/tracker_inner.h"
#include "base/log.h"

int64_t tracker_now_ns(const struct tracker *t)
{
	return clock_wall_usec(t->clock) * NSEC_PER_USEC;
}

/* ---- taking a cgroup up, and letting it go ---- */

void tracker_let_go(struct tracker *t, struct live_container *pc)
{
	if (pc->sampling) {
		oomwatch_child_remove(&t->oomwatch, &pc->pod->oom, &pc->oom);
		sampler_remove(&t->sampler, &pc->measured);
		cgleaf_finish(&pc->measured.leaf, &t->sampler.io);
	}
	free(pc->cgroup);
	pc->cgroup = NULL;
	pc->sampling = pc->lost = false;
	pc->state = CONTAINER_WAITING;
	pc->waiting_since_usec = clock_mono_usec(t->clock);
	pc->delay_usec = TRACKER_DELAY_FIRST_USEC;
}

/* This container's numbers go to its workload from now on, and no other's do. */
static void attach(struct tracker *t, struct live_container *pc)
{
	struct workload *w = pc->workload;
	int64_t now_ns = tracker_now_ns(t);
	bool known = w->container_id[0] != '\0';
	bool another = strcmp(w->container_id, pc->id) != 0;

	/* A new instance is starting; one that has run for long when first seen is not. */
	if (another && (known || instant_since(now_ns, pc->started_at_ns) < TRACKER_STARTED_NS)) {
		usage_restart(&w->usage, now_ns);
		if (known) {
			struct event event = EVENT(EVENT_KIND_RESTARTED, now_ns);
			tracker_event(t, pc, &event);
		}
	}
	memcpy(w->container_id, pc->id, sizeof(w->container_id));
	memcpy(w->revision, pc->pod->revision, sizeof(w->revision));
	if (!pc->measured.usage)
		container_attach(&pc->measured, &w->usage, w->knobs, now_ns);
}

static bool is_current(const struct live_container *pc)
{
	return pc->workload && !strcmp(pc->workload->pod_uid, pc->pod->uid);
}

/* Opens the pod's own directory and what limits all pods, and watches it. */
static int open_pod(struct tracker *t, struct pod_entry *pod, struct err *e)
{
	char path[CGROOT_PATH_MAX], node[CGROOT_PATH_MAX];

	int r = cgfind_pod(&t->find, str_of(pod->uid), clock_mono_usec(t->clock), path, e);
	if (r < 0)
		return r;
	_cleanup_close_ int fd =
		openat(t->root_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_set(e, errno, "%s: %s", path, strerror(errno));
	/* Up to the component that is called kubepods in one way or another. */
	memcpy(node, path, strlen(path) + 1);
	char *slash;
	while ((slash = strrchr(node, '/')) &&
		cgname_parse(str_of(slash + 1)).kind != CGNAME_KUBEPODS)
		*slash = '\0';
	pod->cgroup = str_dup(str_of(path));
	if (!pod->cgroup)
		return -ENOMEM;
	pod->dirfd = TAKE_FD(fd);
	pod->node_dirfd = openat(t->root_fd, node, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	oomwatch_pod_add(
		&t->oomwatch, &pod->oom, pod->dirfd, pod->node_dirfd, pod->saved_explained, pod);
	return 0;
}

static void close_pod(struct tracker *t, struct pod_entry *pod)
{
	if (!pod->cgroup)
		return;
	oomwatch_pod_remove(&t->oomwatch, &pod->oom);
	closep(&pod->dirfd);
	closep(&pod->node_dirfd);
	pod->dirfd = pod->node_dirfd = -1;
	free(pod->cgroup);
	pod->cgroup = NULL;
}

/* The pod's directory was removed (and perhaps made anew under another QoS class): look for it
 * again. */
static bool pod_moved(struct tracker *t, struct pod_entry *pod)
{
	struct stat st;

	if (!pod->cgroup || fstatat(t->root_fd, pod->cgroup, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return false;
	for (unsigned int i = 0; i < pod->n_containers; i++) {
		if (pod->containers[i].sampling)
			return false;
	}
	close_pod(t, pod);
	return true;
}

/* A pod of a runtime that has containers of its own inside (gVisor) leaves the directory of each
 * empty. */
static bool is_populated(struct tracker *t, const struct cgleaf *leaf)
{
	struct str text;
	bool populated = true;

	if (cgio_read_at(&t->sampler.io, leaf->dirfd, "cgroup.events", &text) == CG_OK)
		(void)cgfile_populated(text, &populated);
	return populated;
}

static int find_cgroup(
	struct tracker *t, struct live_container *pc, char path[CGROOT_PATH_MAX], struct err *e)
{
	struct pod_entry *pod = pc->pod;
	struct str uid = str_of(pod->uid), id = str_of(pc->id);

	if (!pod->cgroup) {
		int r = open_pod(t, pod, e);
		if (r == -ENOENT)
			return cgfind_container(&t->find, "", uid, id, path, NULL) == 0 ? 0 : r;
		if (r < 0)
			return r;
	}
	return cgfind_container(&t->find, pod->cgroup, uid, id, path, e);
}

/* 0, or -errno with the reason. -EOPNOTSUPP: it is there, and cannot be measured. */
static int take_up(struct tracker *t, struct live_container *pc, struct err *e)
{
	char path[CGROOT_PATH_MAX];
	struct cgleaf leaf;

	int r = find_cgroup(t, pc, path, e);
	if (r < 0)
		return r;
	enum cg_outcome outcome = cgleaf_open(&leaf, t->root_fd, path, pc->pod->dirfd);
	if (outcome != CG_OK)
		return err_set(e, outcome == CG_DENIED ? EACCES : ENOENT, "%s: %s", path,
			cg_outcome_name(outcome));
	if (!is_populated(t, &leaf)) {
		cgleaf_finish(&leaf, &t->sampler.io);
		return err_set(e, EOPNOTSUPP,
			"%s: has no processes; a sandboxed runtime keeps them elsewhere, or the "
			"container has just ended",
			path);
	}
	pc->cgroup = str_dup(str_of(path));
	if (!pc->cgroup) {
		cgleaf_finish(&leaf, &t->sampler.io);
		return -ENOMEM;
	}
	container_init(&pc->measured, &leaf, NULL, NULL);
	pc->measured.owner = pc;
	pc->sampling = true;
	sampler_add(&t->sampler, &pc->measured);
	if (is_current(pc))
		attach(t, pc);
	if (pc->pod->cgroup)
		oomwatch_child_add(&t->oomwatch, &pc->pod->oom, &pc->oom, pc->measured.leaf.dirfd,
			pc->saved_kills,
			pc->saved_kills == OOM_KILLS_UNKNOWN &&
				pc->started_at_ns >= t->options.since_ns,
			pc);
	pc->saved_kills = OOM_KILLS_UNKNOWN;
	pc->state = CONTAINER_SAMPLED;
	pc->reason = (struct err){""};
	if (pc->measured.sample.cpu_outcome != CG_OK &&
		pc->measured.sample.current_outcome != CG_OK) {
		pc->state = CONTAINER_NOT_MEASURABLE;
		(void)err_set(&pc->reason, EOPNOTSUPP, "%s: cpu.stat %s, memory.current %s", path,
			cg_outcome_name(pc->measured.sample.cpu_outcome),
			cg_outcome_name(pc->measured.sample.current_outcome));
	}
	return 0;
}

/* ---- looking for cgroups, again and again ---- */

void tracker_schedule(struct tracker *t)
{
	uint64_t now = clock_mono_usec(t->clock), next = UINT64_MAX;

	for (const struct pod_entry *pod = t->pods.first; pod; pod = pod->next) {
		for (unsigned int i = 0; i < pod->n_containers; i++) {
			const struct live_container *pc = &pod->containers[i];
			if (pc->lost)
				next = now;
			else if (pc->retry_usec)
				next = MIN(next, pc->retry_usec);
		}
	}
	if (next == UINT64_MAX)
		loop_timer_stop(&t->retry);
	else
		loop_timer_set(&t->retry, next > now ? next - now : 0);
}

void tracker_look_for(struct tracker *t, struct live_container *pc)
{
	uint64_t now = clock_mono_usec(t->clock);
	struct err why = {""};

	pc->retry_usec = 0;
	if (pc->sampling)
		return;
	if (t->options.unsupported) {
		pc->state = CONTAINER_NOT_MEASURABLE;
		(void)err_set(&pc->reason, EOPNOTSUPP, "%s", t->options.unsupported);
		return;
	}
	if (!pc->id[0]) {
		pc->state = CONTAINER_WAITING;
		(void)err_set(&pc->reason, EAGAIN,
			"the pod's status does not name this container's instance yet");
		return;
	}
	int r = take_up(t, pc, &why);
	if (r == -ENOENT && !pod_moved(t, pc->pod) &&
		now - pc->waiting_since_usec >= 2 * TRACKER_DELAY_LAST_USEC && tracker_adopt(t, pc))
		r = take_up(t, pc, &why);
	if (r == 0) {
		tracker_remember_others(t, pc->pod);
		return;
	}
	bool patient = now - pc->waiting_since_usec < TRACKER_PATIENCE_USEC;
	if (!patient && pc->state == CONTAINER_WAITING)
		log_warn("%s/%s container %s: %s", pc->pod->namespace, pc->pod->name, pc->name,
			err_text(&why, r));
	if (!patient)
		pc->state = r == -EOPNOTSUPP ? CONTAINER_NOT_MEASURABLE : CONTAINER_NOT_FOUND;
	(void)err_set(&pc->reason, -r, "%s", err_text(&why, r));
	pc->delay_usec = MAX(pc->delay_usec, TRACKER_DELAY_FIRST_USEC);
	pc->retry_usec = now + (patient ? pc->delay_usec : TRACKER_PATIENCE_USEC);
	pc->delay_usec = MIN(pc->delay_usec * 3 / 2, TRACKER_DELAY_LAST_USEC);
}

static void on_retry(void *arg)
{
	struct tracker *t = arg;
	uint64_t now = clock_mono_usec(t->clock);

	for (struct pod_entry *pod = t->pods.first; pod; pod = pod->next) {
		for (unsigned int i = 0; i < pod->n_containers; i++) {
			struct live_container *pc = &pod->containers[i];
			if (pc->lost) {
				tracker_let_go(t, pc);
				tracker_look_for(t, pc);
			} else if (pc->retry_usec && pc->retry_usec <= now) {
				tracker_look_for(t, pc);
			}
		}
	}
	tracker_schedule(t);
}

/* ---- the rounds ---- */

/* The next round is due an interval after the last was due, so that rounds do not drift. */
static void on_round(void *arg)
{
	struct tracker *t = arg;
	uint64_t interval = t->options.interval_usec;

	sampler_round(&t->sampler);
	tracker_after_round(t);
	uint64_t now = clock_mono_usec(t->clock);
	t->round_due_usec += interval;
	if (t->round_due_usec <= now) /* a stall: the rounds that it cost are not made up for */
		t->round_due_usec = now + interval - (now - t->round_due_usec) % interval;
	loop_timer_set(&t->round, t->round_due_usec - now);
	if (t->sampler.n_fast && !loop_timer_armed(&t->fast))
		loop_timer_set(&t->fast, FAST_INTERVAL_USEC);
}

static void on_fast(void *arg)
{
	struct tracker *t = arg;

	sampler_round_fast(&t->sampler);
	if (t->sampler.n_fast)
		loop_timer_set(&t->fast, FAST_INTERVAL_USEC);
}

static void on_look(void *arg)
{
	struct tracker *t = arg;

	oomwatch_look(&t->oomwatch);
	loop_timer_set(&t->look, TRACKER_LOOK_USEC);
}

/* ---- life ---- */

int tracker_init(struct tracker *t, struct loop *loop, const struct clock *clock, int root_fd,
	struct workloads *workloads, struct events *events, const struct tracker_options *options,
	struct err *e)
{
	*t = (struct tracker){.loop = loop,
		.clock = clock,
		.root_fd = root_fd,
		.workloads = workloads,
		.events = events,
		.options = *options};
	struct sampler_events sampler_events = tracker_sampler_events(t);
	struct oomwatch_events oom_events = tracker_oom_events(t);

	cgfind_init(&t->find, root_fd);
	sampler_init(
		&t->sampler, clock, options->interval_usec, USEC_PER_MINUTE, 64, &sampler_events);
	int r = oomwatch_init(&t->oomwatch, loop, clock, &t->sampler.io, &oom_events);
	if (r == 0)
		r = loop_timer_init(loop, &t->round, on_round, t);
	if (r == 0)
		r = loop_timer_init(loop, &t->fast, on_fast, t);
	if (r == 0)
		r = loop_timer_init(loop, &t->look, on_look, t);
	if (r == 0)
		r = loop_timer_init(loop, &t->retry, on_retry, t);
	if (r < 0)
		return err_set(e, -r, "cannot start sampling: %s", strerror(-r));
	t->round_due_usec = clock_mono_usec(clock);
	if (!options->unsupported) {
		loop_timer_set(&t->round, 0);
		loop_timer_set(&t->look, TRACKER_LOOK_USEC);
	}
	return 0;
}

void tracker_finish(struct tracker *t)
{
	sampler_close_windows(&t->sampler);
	while (t->pods.first)
		tracker_forget_pod(t, t->pods.first);
	oomwatch_finish(&t->oomwatch);
	sampler_finish(&t->sampler);
	cgfind_finish(&t->find);
	loop_timer_close(&t->round, NULL);
	loop_timer_close(&t->fast, NULL);
	loop_timer_close(&t->look, NULL);
	loop_timer_close(&t->retry, NULL);
}

void tracker_forget_pod(struct tracker *t, struct pod_entry *pod)
{
	for (unsigned int i = 0; i < pod->n_containers; i++)
		tracker_let_go(t, &pod->containers[i]);
	close_pod(t, pod);
	podtable_remove(&t->pods, pod);
}

void tracker_make_current(struct tracker *t, struct live_container *pc)
{
	if (pc->sampling && is_current(pc))
		attach(t, pc);
}
