/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/saved.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"

enum {
	TAG_BOOT = CHECKPOINT_TAG('b', 'o', 'o', 't'),
	TAG_WORKLOAD = CHECKPOINT_TAG('w', 'k', 'l', 'd'),
	TAG_USAGE = CHECKPOINT_TAG('u', 's', 'a', 'g'),
	TAG_PUBLISH = CHECKPOINT_TAG('p', 'u', 'b', 'l'),
	TAG_COVERAGE = CHECKPOINT_TAG('c', 'o', 'v', 'r'),
	TAG_KNOBS = CHECKPOINT_TAG('k', 'n', 'o', 'b'),
	TAG_POD = CHECKPOINT_TAG('p', 'o', 'd', ' '),
	TAG_CONTAINER = CHECKPOINT_TAG('c', 'o', 'n', 't'),
};

/* ---- writing ---- */

static void write_workload(struct buf *b, const struct workload *w)
{
	size_t chunk = checkpoint_open_chunk(b, TAG_WORKLOAD), inner;

	checkpoint_put_str(b, str_of(w->namespace));
	checkpoint_put_str(b, str_of(w->daemonset));
	checkpoint_put_str(b, str_of(w->container));
	checkpoint_put_str(b, str_of(w->container_id));
	checkpoint_put_str(b, str_of(w->revision));
	checkpoint_put_i64(b, w->seen_at_ns);
	checkpoint_put_u8(b, w->seeded);
	inner = checkpoint_open_chunk(b, TAG_USAGE);
	usage_save(&w->usage, b);
	checkpoint_close_chunk(b, inner);
	inner = checkpoint_open_chunk(b, TAG_PUBLISH);
	(void)publish_item_save(&w->publish, b);
	checkpoint_close_chunk(b, inner);
	inner = checkpoint_open_chunk(b, TAG_COVERAGE);
	(void)coverage_save(&w->coverage, b);
	checkpoint_close_chunk(b, inner);
	if (w->knobs_text) {
		inner = checkpoint_open_chunk(b, TAG_KNOBS);
		checkpoint_put_str(b, str_of(w->knobs_text));
		checkpoint_close_chunk(b, inner);
	}
	checkpoint_close_chunk(b, chunk);
}

static void write_pod(struct buf *b, const struct pod_entry *pod)
{
	size_t chunk = checkpoint_open_chunk(b, TAG_POD), inner;

	checkpoint_put_str(b, str_of(pod->uid));
	checkpoint_put_str(b, str_of(pod->namespace));
	checkpoint_put_str(b, str_of(pod->name));
	checkpoint_put_str(b, str_of(pod->daemonset));
	checkpoint_put_str(b, str_of(pod->revision));
	checkpoint_put_u64(
		b, pod->cgroup && pod->oom.known ? pod->oom.explained : pod->saved_explained);
	for (unsigned int i = 0; i < pod->n_containers; i++) {
		const struct live_container *pc = &pod->containers[i];
		inner = checkpoint_open_chunk(b, TAG_CONTAINER);
		checkpoint_put_str(b, str_of(pc->name));
		checkpoint_put_str(b, str_of(pc->id));
		checkpoint_put_str(b, str_of(pc->charged_id));
		checkpoint_put_i64(b, pc->started_at_ns);
		checkpoint_put_i64(b, pc->request_millicores);
		checkpoint_put_i64(b, pc->request_bytes);
		checkpoint_put_u64(b, pc->sampling ? pc->oom.count.kills : pc->saved_kills);
		checkpoint_close_chunk(b, inner);
	}
	checkpoint_close_chunk(b, chunk);
}

int saved_write(void *arg, struct buf *b)
{
	const struct saved *s = arg;
	size_t chunk = checkpoint_open_chunk(b, TAG_BOOT);

	checkpoint_put_str(b, str_of(s->boot_id));
	checkpoint_close_chunk(b, chunk);
	for (const struct workload *w = s->workloads->first; w; w = w->next)
		write_workload(b, w);
	for (const struct pod_entry *pod = s->tracker->pods.first; pod; pod = pod->next)
		write_pod(b, pod);
	return b->error;
}

/* ---- reading ---- */

static struct str content_of(const struct checkpoint_cursor *c)
{
	return (struct str){(const char *)c->p, c->n};
}

/* Copies a string that was bounded when it was written; one that does not fit is damage. */
static void get_name(struct checkpoint_cursor *c, char *out, size_t size)
{
	if (str_copy(out, size, checkpoint_get_str(c)) < 0)
		c->failed = true;
}

static void damaged(
	struct saved *s, const struct workload *w, const char *part, const struct err *why)
{
	s->damaged++;
	log_warn("state of %s/%s/%s: its %s cannot be used: %s", w->namespace, w->daemonset,
		w->container, part, why->text);
}

static void read_part(
	struct saved *s, struct workload *w, uint32_t tag, struct checkpoint_cursor *part)
{
	struct err why = {""};
	bool converted = false;

	switch (tag) {
	case TAG_USAGE:
		if (usage_load(&w->usage, part, &converted, &why) < 0)
			damaged(s, w, "history", &why);
		s->converted |= converted;
		break;
	case TAG_PUBLISH:
		if (publish_item_load(&w->publish, content_of(part), &why) < 0)
			damaged(s, w, "account of what was published", &why);
		break;
	case TAG_COVERAGE:
		if (coverage_load(&w->coverage, content_of(part), &why) < 0)
			damaged(s, w, "score", &why);
		break;
	case TAG_KNOBS:
		(void)workload_set_knobs(s->workloads, w, checkpoint_get_str(part), NULL);
		break;
	default:
		break; /* of a later version */
	}
}

static int read_workload(struct saved *s, struct checkpoint_cursor c)
{
	struct str namespace = checkpoint_get_str(&c), daemonset = checkpoint_get_str(&c);
	struct str container = checkpoint_get_str(&c);
	struct checkpoint_cursor part;
	struct workload *w;
	struct err why = {""};
	uint32_t tag;

	int r = workloads_get(s->workloads, namespace, daemonset, container, &w, &why);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		s->damaged++;
		return 0;
	}
	get_name(&c, w->container_id, sizeof(w->container_id));
	get_name(&c, w->revision, sizeof(w->revision));
	w->seen_at_ns = checkpoint_get_i64(&c);
	w->seeded = checkpoint_get_u8(&c) != 0;
	if (c.failed) {
		s->damaged++;
		workloads_remove(s->workloads, w);
		return 0;
	}
	while (checkpoint_next_chunk(&c, &tag, &part))
		read_part(s, w, tag, &part);
	s->n_workloads++;
	return 0;
}

int saved_read_workloads(void *arg, const struct checkpoint *c)
{
	struct saved *s = arg;
	struct checkpoint_cursor chunks = c->chunks, chunk;
	uint32_t tag;

	(void)str_copy(s->node_uid, sizeof(s->node_uid), c->identity.node_uid);
	(void)str_copy(s->machine, sizeof(s->machine), c->identity.machine);
	while (checkpoint_next_chunk(&chunks, &tag, &chunk)) {
		int r = tag == TAG_WORKLOAD ? read_workload(s, chunk) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static void read_container(
	struct pod *pod, struct pod_saved *saved, struct checkpoint_cursor c, bool same_boot)
{
	struct pod_container *info = &pod->container[pod->n_containers];

	*info = (struct pod_container){.in_spec = true,
		.running = true,
		.limits = {-1, -1},
		.actual_requests = {-1, -1},
		.actual_limits = {-1, -1}};
	get_name(&c, info->name, sizeof(info->name));
	get_name(&c, info->container_id, sizeof(info->container_id));
	get_name(&c, saved->charged_id[pod->n_containers], sizeof(saved->charged_id[0]));
	info->running_since_ns = checkpoint_get_i64(&c);
	info->requests.cpu_millicores = checkpoint_get_i64(&c);
	info->requests.memory_bytes = checkpoint_get_i64(&c);
	saved->kills[pod->n_containers] = checkpoint_get_u64(&c);
	if (!same_boot)
		saved->kills[pod->n_containers] = OOM_KILLS_UNKNOWN;
	if (!c.failed)
		pod->n_containers++;
}

static void read_pod(struct saved *s, struct pod *pod, struct checkpoint_cursor c, bool same_boot)
{
	struct pod_saved saved = {.explained = OOM_KILLS_UNKNOWN};
	struct checkpoint_cursor part;
	uint32_t tag;

	*pod = (struct pod){.phase = POD_RUNNING, .deletion_ns = TIME_NONE};
	get_name(&c, pod->uid, sizeof(pod->uid));
	get_name(&c, pod->namespace, sizeof(pod->namespace));
	get_name(&c, pod->name, sizeof(pod->name));
	get_name(&c, pod->daemonset, sizeof(pod->daemonset));
	get_name(&c, pod->revision, sizeof(pod->revision));
	uint64_t explained = checkpoint_get_u64(&c);
	if (same_boot)
		saved.explained = explained;
	if (c.failed) {
		s->damaged++;
		return;
	}
	while (pod->n_containers < POD_CONTAINERS_MAX && checkpoint_next_chunk(&c, &tag, &part)) {
		if (tag == TAG_CONTAINER)
			read_container(pod, &saved, part, same_boot);
	}
	/* The annotation is the pod's, and kept with its workloads. */
	for (unsigned int i = 0; i < pod->n_containers && !pod->recommender[0]; i++) {
		const struct workload *w = workloads_find(s->workloads, str_of(pod->namespace),
			str_of(pod->daemonset), str_of(pod->container[i].name));
		if (w && w->knobs_text)
			(void)str_copy(
				pod->recommender, sizeof(pod->recommender), str_of(w->knobs_text));
	}
	tracker_restore(s->tracker, pod, &saved);
	s->n_pods++;
}

int saved_read_pods(void *arg, const struct checkpoint *c)
{
	struct saved *s = arg;
	struct checkpoint_cursor chunks = c->chunks, chunk;
	_cleanup_free_ struct pod *pod = malloc(sizeof(*pod));
	bool same_boot = false;
	uint32_t tag;

	if (!pod)
		return -ENOMEM;
	while (checkpoint_next_chunk(&chunks, &tag, &chunk)) {
		if (tag == TAG_BOOT)
			same_boot = s->boot_id[0] && str_is(checkpoint_get_str(&chunk), s->boot_id);
		else if (tag == TAG_POD)
			read_pod(s, pod, chunk, same_boot);
	}
	return 0;
}
