/* SPDX-License-Identifier: Apache-2.0 */
/* What the pod source says: pods come, change and go. */
#include <errno.h>
#include <string.h>

#include "agent/pods/tracker_inner.h"
#include "base/log.h"

/* ---- whose numbers count ---- */

/* During a rollout two pods of one DaemonSet may be here: the one that stays has the workload. */
static bool takes_over(
	const struct tracker *t, const struct pod_entry *pod, const struct workload *w)
{
	const struct pod_entry *holder = podtable_find(&t->pods, w->pod_uid);

	if (!holder || holder == pod)
		return true;
	return !pod->deleting && (holder->deleting || strcmp(holder->revision, pod->revision) != 0);
}

static void take_over(struct tracker *t, struct live_container *pc)
{
	struct workload *w = pc->workload;
	struct pod_entry *pod = pc->pod;

	if (strcmp(w->pod_uid, pod->uid) != 0) {
		struct pod_entry *before = podtable_find(&t->pods, w->pod_uid);
		struct live_container *old = before ? live_container_find(before, pc->name) : NULL;
		if (old)
			old->measured.usage = NULL;
		if (w->pod_uid[0])
			usage_pod_gone(&w->usage);
	}
	memcpy(w->pod, pod->name, sizeof(w->pod));
	memcpy(w->pod_uid, pod->uid, sizeof(w->pod_uid));
	w->containers = pod->n_containers;
	w->request_millicores = pc->request_millicores;
	w->request_bytes = pc->request_bytes;
	w->here = true;
	w->seen_at_ns = tracker_now_ns(t);
	tracker_make_current(t, pc);
}

/* The pod is gone: another one of the workload has it, or none. */
static void hand_on(struct tracker *t, struct workload *w, const struct pod_entry *from)
{
	if (!w || strcmp(w->pod_uid, from->uid) != 0)
		return;
	w->here = false;
	w->seen_at_ns = tracker_now_ns(t);
	w->pod[0] = w->pod_uid[0] = '\0';
	usage_pod_gone(&w->usage);
	for (struct pod_entry *pod = t->pods.first; pod; pod = pod->next) {
		struct live_container *pc =
			pod == from ? NULL : live_container_find(pod, w->container);
		if (pc && pc->workload == w) {
			take_over(t, pc);
			return;
		}
	}
}

static void set_knobs(struct tracker *t, struct live_container *pc, const struct pod *pod)
{
	struct err why = {""};
	struct workload *w = pc->workload;
	bool had = w->knobs_text || w->knobs_error;
	bool same = !pod->recommender_too_long &&
		    !strcmp(pod->recommender, w->knobs_text ? w->knobs_text : "");

	if (same && (had || !pod->recommender[0]))
		return;
	int r = pod->recommender_too_long
			? err_set(&why, EINVAL, "longer than %u bytes", POD_RECOMMENDER_MAX)
			: workload_set_knobs(t->workloads, w, str_of(pod->recommender), &why);
	pc->measured.knobs = w->knobs;
	struct event event = EVENT(EVENT_KIND_SETTINGS, tracker_now_ns(t));
	event.detail = r < 0 ? "unusable" : pod->recommender[0] ? "applied" : "removed";
	event.text = str_of(why.text);
	tracker_event(t, pc, &event);
	if (r < 0)
		log_warn("%s/%s: annotation pernode.io/recommender: %s; the agent's own settings "
			 "hold",
			pod->namespace, pod->name, why.text);
}

/* ---- one container of a pod, as its status has it ---- */

/* The newest end of this container that was an OOM kill, or NULL. */
static const struct pod_terminated *oom_kill_of(const struct pod_container *info)
{
	const struct pod_terminated *ends[] = {&info->terminated, &info->last_terminated};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		if (ends[i]->known && !strcmp(ends[i]->reason, "OOMKilled") &&
			ends[i]->container_id[0])
			return ends[i];
	}
	return NULL;
}

static int64_t told_or(int64_t actual, int64_t spec)
{
	return actual >= 0 ? actual : spec;
}

/* An OOM kill is told once by the kernel and once, later, by the pod's status. */
static void take_termination(
	struct tracker *t, struct live_container *pc, const struct pod_container *info, bool first)
{
	const struct pod_terminated *end = oom_kill_of(info);

	if (!end || !strcmp(end->container_id, pc->charged_id))
		return;
	memcpy(pc->charged_id, end->container_id, sizeof(pc->charged_id));
	/* What had happened before anybody watched is not news; only a checkpoint tells that it was
	 * missed. */
	if (first &&
		(end->finished_at_ns == TIME_NONE || end->finished_at_ns < t->options.since_ns))
		return;
	tracker_told_kill(t, pc, end->finished_at_ns,
		told_or(info->actual_limits.memory_bytes, info->limits.memory_bytes));
}

static void take_instance(
	struct tracker *t, struct live_container *pc, const struct pod_container *info)
{
	pc->running = info->running;
	pc->started_at_ns = info->running_since_ns;
	if (!info->container_id[0] || !strcmp(info->container_id, pc->id)) {
		if (pc->running && !pc->sampling && !pc->retry_usec)
			tracker_look_for(t, pc);
		return;
	}
	/* Whatever killed the one before is charged to it before it is let go. */
	tracker_let_go(t, pc);
	if (pc->id[0])
		pc->saved_kills = OOM_KILLS_UNKNOWN;
	memcpy(pc->id, info->container_id, sizeof(pc->id));
	tracker_look_for(t, pc);
}

static void take_container(struct tracker *t, struct live_container *pc, const struct pod *pod,
	const struct pod_container *info, bool first)
{
	struct err why = {""};

	pc->request_millicores =
		told_or(info->actual_requests.cpu_millicores, info->requests.cpu_millicores);
	pc->request_bytes =
		told_or(info->actual_requests.memory_bytes, info->requests.memory_bytes);
	if (!pc->workload) {
		int r = workloads_get(t->workloads, str_of(pod->namespace), str_of(pod->daemonset),
			str_of(info->name), &pc->workload, &why);
		if (r < 0)
			log_warn("%s/%s container %s is left out: %s", pod->namespace, pod->name,
				info->name, err_text(&why, r));
	}
	if (pc->workload && takes_over(t, pc->pod, pc->workload)) {
		take_over(t, pc);
		set_knobs(t, pc, pod);
	}
	/* First the kernel's account of the instance that ended, then what the status says of it:
	 * the same kill. */
	take_instance(t, pc, info);
	if (pc->workload)
		take_termination(t, pc, info, first);
}

/* ---- pods ---- */

static bool has_ended(const struct pod *pod)
{
	return pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
}

static unsigned int containers_of(const struct pod *pod)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < pod->n_containers; i++)
		n += pod->container[i].in_spec ? 1U : 0U;
	return n;
}

static struct pod_entry *new_entry(struct tracker *t, const struct pod *pod)
{
	struct pod_entry *entry;
	struct err why = {""};
	unsigned int n = 0;

	int r = podtable_add(&t->pods, pod->uid, containers_of(pod), &entry, &why);
	if (r < 0) {
		log_warn("pod %s/%s is left out: %s", pod->namespace, pod->name, err_text(&why, r));
		return NULL;
	}
	for (unsigned int i = 0; i < pod->n_containers; i++) {
		if (!pod->container[i].in_spec)
			continue;
		struct live_container *pc = &entry->containers[n++];
		memcpy(pc->name, pod->container[i].name, sizeof(pc->name));
		pc->waiting_since_usec = clock_mono_usec(t->clock);
		pc->delay_usec = TRACKER_DELAY_FIRST_USEC;
	}
	return entry;
}

static void remove_pod(struct tracker *t, struct pod_entry *entry)
{
	struct workload *workloads[POD_CONTAINERS_MAX];
	unsigned int n = entry->n_containers;

	/* Letting go looks once more at the OOM counters and closes the window: both still count.
	 */
	for (unsigned int i = 0; i < n; i++) {
		tracker_let_go(t, &entry->containers[i]);
		workloads[i] = entry->containers[i].workload;
	}
	for (unsigned int i = 0; i < n; i++)
		hand_on(t, workloads[i], entry);
	tracker_forget_pod(t, entry);
	tracker_schedule(t);
}

void tracker_pod_gone(struct tracker *t, const char *uid)
{
	struct pod_entry *entry = podtable_find(&t->pods, uid);

	if (entry)
		remove_pod(t, entry);
}

static bool same_containers(struct pod_entry *entry, const struct pod *pod)
{
	if (entry->n_containers != containers_of(pod))
		return false;
	for (unsigned int i = 0; i < pod->n_containers; i++) {
		if (pod->container[i].in_spec &&
			!live_container_find(entry, pod->container[i].name))
			return false;
	}
	return true;
}

static void take_pod(struct tracker *t, struct pod_entry *entry, const struct pod *pod, bool first)
{
	memcpy(entry->namespace, pod->namespace, sizeof(entry->namespace));
	memcpy(entry->name, pod->name, sizeof(entry->name));
	memcpy(entry->daemonset, pod->daemonset, sizeof(entry->daemonset));
	memcpy(entry->revision, pod->revision, sizeof(entry->revision));
	entry->deleting = pod->deletion_ns != TIME_NONE;
	entry->told = true;
	for (unsigned int i = 0; i < pod->n_containers; i++) {
		if (pod->container[i].in_spec)
			take_container(t, live_container_find(entry, pod->container[i].name), pod,
				&pod->container[i], first);
	}
	tracker_schedule(t);
}

void tracker_pod(struct tracker *t, const struct pod *pod)
{
	struct pod_entry *entry = podtable_find(&t->pods, pod->uid);

	if (entry && (!pod->daemonset[0] || has_ended(pod) || !same_containers(entry, pod))) {
		remove_pod(t, entry);
		entry = NULL;
	}
	if (!pod->daemonset[0] || has_ended(pod) || !pod->uid[0])
		return;
	bool first = !entry;
	if (first && !(entry = new_entry(t, pod)))
		return;
	take_pod(t, entry, pod, first);
}

void tracker_restore(struct tracker *t, const struct pod *pod, const struct pod_saved *saved)
{
	struct pod_entry *entry = pod->n_containers && pod->uid[0] ? new_entry(t, pod) : NULL;

	if (!entry)
		return;
	entry->saved_explained = saved->explained;
	for (unsigned int i = 0; i < pod->n_containers; i++) {
		entry->containers[i].saved_kills = saved->kills[i];
		memcpy(entry->containers[i].charged_id, saved->charged_id[i],
			sizeof(entry->containers[i].charged_id));
	}
	take_pod(t, entry, pod, false);
}

void tracker_begin(struct tracker *t)
{
	for (struct pod_entry *pod = t->pods.first; pod; pod = pod->next)
		pod->told = false;
}

void tracker_synced(struct tracker *t)
{
	for (struct pod_entry *pod = t->pods.first, *next; pod; pod = next) {
		next = pod->next;
		if (!pod->told)
			remove_pod(t, pod);
	}
	t->synced = true;
	if (t->options.synced)
		t->options.synced(t->options.arg);
}

/* ---- an instance that the status does not name yet ---- */

struct unknown_ids {
	const struct pod_entry *pod;
	unsigned int n;
	char id[POD_ID_MAX];
};

static bool is_known_id(const struct pod_entry *pod, struct str id)
{
	for (unsigned int i = 0; i < pod->n_containers; i++) {
		if (str_is(id, pod->containers[i].id))
			return true;
	}
	for (unsigned int i = 0; i < pod->n_others; i++) {
		if (str_is(id, pod->others[i]))
			return true;
	}
	return false;
}

static int count_unknown(void *arg, struct str id, const char *name)
{
	struct unknown_ids *u = arg;

	(void)name;
	if (!is_known_id(u->pod, id)) {
		u->n++;
		(void)str_copy(u->id, sizeof(u->id), id);
	}
	return 0;
}

bool tracker_adopt(struct tracker *t, struct live_container *pc)
{
	struct unknown_ids u = {.pod = pc->pod};

	/* Without a picture of who else is in the pod (its sandbox at least), an unknown one could
	 * be anybody. */
	if (!pc->pod->cgroup || pc->pod->n_others == 0)
		return false;
	for (unsigned int i = 0; i < pc->pod->n_containers; i++) {
		const struct live_container *other = &pc->pod->containers[i];
		if (other != pc && !other->sampling)
			return false;
	}
	if (cgfind_each(&t->find, pc->pod->cgroup, count_unknown, &u) != 0 || u.n != 1)
		return false;
	memcpy(pc->id, u.id, sizeof(pc->id));
	t->adopted++;
	log_info("%s/%s container %s: taken to be %.12s…, the only one in its pod that nobody has",
		pc->pod->namespace, pc->pod->name, pc->name, pc->id);
	return true;
}

static int remember_other(void *arg, struct str id, const char *name)
{
	struct pod_entry *pod = arg;

	(void)name;
	if (!is_known_id(pod, id) && pod->n_others < POD_OTHER_IDS_MAX &&
		str_copy(pod->others[pod->n_others], sizeof(pod->others[0]), id) == 0)
		pod->n_others++;
	return 0;
}

void tracker_remember_others(struct tracker *t, struct pod_entry *pod)
{
	if (!pod->cgroup)
		return;
	for (unsigned int i = 0; i < pod->n_containers; i++) {
		if (!pod->containers[i].sampling)
			return;
	}
	pod->n_others = 0;
	(void)cgfind_each(&t->find, pod->cgroup, remember_other, pod);
}

/* ---- for the endpoint ---- */

void tracker_each(const struct tracker *t,
	int (*fn)(void *arg, const struct container_entry *entry), void *arg)
{
	for (const struct pod_entry *pod = t->pods.first; pod; pod = pod->next) {
		for (unsigned int i = 0; i < pod->n_containers; i++) {
			const struct live_container *pc = &pod->containers[i];
			struct container_entry entry = {.namespace = pod->namespace,
				.daemonset = pod->daemonset,
				.container = pc->name,
				.pod = pod->name,
				.pod_uid = pod->uid,
				.container_id = pc->id,
				.cgroup = pc->cgroup ? pc->cgroup : "",
				.state = pc->state,
				.reason = pc->reason.text,
				.measured = pc->sampling ? &pc->measured : NULL};
			if (fn(arg, &entry) != 0)
				return;
		}
	}
}

void tracker_count(const struct tracker *t, unsigned int *ret_containers, unsigned int *ret_sampled)
{
	*ret_containers = *ret_sampled = 0;
	for (const struct pod_entry *pod = t->pods.first; pod; pod = pod->next) {
		for (unsigned int i = 0; i < pod->n_containers; i++) {
			++*ret_containers;
			*ret_sampled += pod->containers[i].sampling ? 1U : 0U;
		}
	}
}
