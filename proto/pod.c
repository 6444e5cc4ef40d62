// SPDX-License-Identifier: Apache-2.0
#include "proto/pod.h"

#include <errno.h>

#include "proto/annotation.h"
#include "proto/field.h"
#include "proto/pod_reading.h"
#include "proto/rfc3339.h"

enum {
	KIND = POD_READING_ITEM + 1,
	NAMESPACE,
	NAME,
	UID,
	RESOURCE_VERSION,
	DELETION,
	REVISION,
	RECOMMENDER,
	OWNER,
	OWNER_API_VERSION,
	OWNER_KIND,
	OWNER_NAME,
	OWNER_UID,
	OWNER_CONTROLLER,
	NODE_NAME,
	RUNTIME_CLASS,
	PHASE,
	CONTAINER, /* the four kinds of entries */
	INIT_CONTAINER,
	STATUS,
	INIT_STATUS,
	C_NAME, /* from here on: of the current entry */
	C_RESTART_POLICY,
	C_ID,
	C_RESTART_COUNT,
	C_STARTED,
	C_READY,
	C_RUNNING,
	C_RUNNING_SINCE,
	C_REQUESTS_CPU,
	C_REQUESTS_MEMORY,
	C_LIMITS_CPU,
	C_LIMITS_MEMORY,
	T_TERMINATED, /* of its state */
	T_REASON,
	T_EXIT_CODE,
	T_FINISHED,
	T_ID,
	L_TERMINATED, /* the same of its last state */
	L_REASON,
	L_EXIT_CODE,
	L_FINISHED,
	L_ID,
};

#define RESOURCE_PATHS(at)                                                    \
	{at ".name", C_NAME}, {at ".resources.requests.cpu", C_REQUESTS_CPU}, \
		{at ".resources.requests.memory", C_REQUESTS_MEMORY},         \
		{at ".resources.limits.cpu", C_LIMITS_CPU},                   \
	{                                                                     \
		at ".resources.limits.memory", C_LIMITS_MEMORY                \
	}

#define TERMINATED_PATHS(at, first)                                          \
	{at, first}, {at ".reason", first + 1}, {at ".exitCode", first + 2}, \
		{at ".finishedAt", first + 3},                               \
	{                                                                    \
		at ".containerID", first + 4                                 \
	}

#define STATUS_PATHS(at)                                                                      \
	RESOURCE_PATHS(at), {at ".containerID", C_ID}, {at ".restartCount", C_RESTART_COUNT}, \
		{at ".started", C_STARTED}, {at ".ready", C_READY},                           \
		{at ".state.running", C_RUNNING},                                             \
		{at ".state.running.startedAt", C_RUNNING_SINCE},                             \
		TERMINATED_PATHS(at ".state.terminated", T_TERMINATED),                       \
		TERMINATED_PATHS(at ".lastState.terminated", L_TERMINATED)

const struct json_path pod_reading_paths[POD_READING_PATHS] = {
	{"", POD_READING_ITEM},
	{"kind", KIND},
	{"metadata.namespace", NAMESPACE},
	{"metadata.name", NAME},
	{"metadata.uid", UID},
	{"metadata.resourceVersion", RESOURCE_VERSION},
	{"metadata.deletionTimestamp", DELETION},
	{"metadata.labels['controller-revision-hash']", REVISION},
	{"metadata.annotations['" ANNOTATION_RECOMMENDER "']", RECOMMENDER},
	{"metadata.ownerReferences[]", OWNER},
	{"metadata.ownerReferences[].apiVersion", OWNER_API_VERSION},
	{"metadata.ownerReferences[].kind", OWNER_KIND},
	{"metadata.ownerReferences[].name", OWNER_NAME},
	{"metadata.ownerReferences[].uid", OWNER_UID},
	{"metadata.ownerReferences[].controller", OWNER_CONTROLLER},
	{"spec.nodeName", NODE_NAME},
	{"spec.runtimeClassName", RUNTIME_CLASS},
	{"status.phase", PHASE},
	{"spec.containers[]", CONTAINER},
	RESOURCE_PATHS("spec.containers[]"),
	{"spec.initContainers[]", INIT_CONTAINER},
	RESOURCE_PATHS("spec.initContainers[]"),
	{"spec.initContainers[].restartPolicy", C_RESTART_POLICY},
	{"status.containerStatuses[]", STATUS},
	STATUS_PATHS("status.containerStatuses[]"),
	{"status.initContainerStatuses[]", INIT_STATUS},
	STATUS_PATHS("status.initContainerStatuses[]"),
};

static const struct quantity_pair no_amounts = {-1, -1};

void pod_reading_begin(struct pod_reading *r)
{
	struct pod *p = &r->pod;

	/* The containers are written when they come. */
	memset(p, 0, offsetof(struct pod, container));
	p->deletion_ns = TIME_NONE;
	r->kind[0] = '\0';
	r->complete = false;
	r->error = 0;
}

static void entry_begin(struct pod_reading *r)
{
	r->entry = (struct pod_container){.requests = no_amounts,
		.limits = no_amounts,
		.actual_requests = no_amounts,
		.actual_limits = no_amounts,
		.running_since_ns = TIME_NONE,
		.terminated.finished_at_ns = TIME_NONE,
		.last_terminated.finished_at_ns = TIME_NONE};
	r->restart_policy[0] = '\0';
}

const struct pod_container *pod_container_find(const struct pod *p, struct str name)
{
	for (unsigned int i = 0; i < p->n_containers; i++)
		if (str_is(name, p->container[i].name))
			return &p->container[i];
	return NULL;
}

/* Finds or makes the container that the entry is about; NULL when there is no room. */
static struct pod_container *entry_target(struct pod_reading *r)
{
	struct pod *p = &r->pod;
	const struct pod_container *found = pod_container_find(p, str_of(r->entry.name));

	if (found)
		return &p->container[found - p->container];
	if (p->n_containers == POD_CONTAINERS_MAX) {
		p->containers_left_out++;
		return NULL;
	}
	struct pod_container entry = r->entry, *made = &p->container[p->n_containers++];
	entry_begin(r);
	*made = r->entry;
	r->entry = entry;
	memcpy(made->name, entry.name, sizeof made->name);
	return made;
}

/* Spec and status of a container may come in any order. */
static int entry_end(struct pod_reading *r, unsigned int id)
{
	const struct pod_container *from = &r->entry;
	bool is_sidecar = id == INIT_CONTAINER && str_is(str_of(r->restart_policy), "Always");

	if (!from->name[0])
		return err_set(&r->why, EINVAL, "a container has no name");
	if (id == INIT_CONTAINER && !is_sidecar)
		return 0;
	struct pod_container *to = entry_target(r);
	if (!to)
		return 0;
	if (id == CONTAINER || id == INIT_CONTAINER) {
		to->in_spec = true;
		to->sidecar = is_sidecar;
		to->requests = from->requests;
		to->limits = from->limits;
		return 0;
	}
	to->has_status = true;
	memcpy(to->container_id, from->container_id, sizeof to->container_id);
	to->running = from->running;
	to->started = from->started;
	to->ready = from->ready;
	to->restart_count = from->restart_count;
	to->running_since_ns = from->running_since_ns;
	to->terminated = from->terminated;
	to->last_terminated = from->last_terminated;
	to->actual_requests = from->requests;
	to->actual_limits = from->limits;
	return 0;
}

static void owner_end(struct pod_reading *r)
{
	const struct pod_owner *o = &r->owner;

	if (!o->controller || !str_is(str_of(o->api_version), "apps/v1") ||
		!str_is(str_of(o->kind), "DaemonSet"))
		return;
	memcpy(r->pod.daemonset, o->name, sizeof r->pod.daemonset);
	memcpy(r->pod.daemonset_uid, o->uid, sizeof r->pod.daemonset_uid);
}

/* "containerd://0123…" → "0123…" */
static int read_container_id(const struct json_value *v, char out[POD_ID_MAX], struct err *e)
{
	struct json_value bare = *v;
	const char *colon = v->type == JSON_STRING ? memmem(v->text.p, v->text.n, "://", 3) : NULL;

	if (colon)
		bare.text = (struct str){colon + 3, v->text.n - (size_t)(colon + 3 - v->text.p)};
	return field_string(&bare, "containerID", out, POD_ID_MAX, FIELD_NAME, e);
}

static int read_phase(const struct json_value *v, enum pod_phase *ret, struct err *e)
{
	static const char *const names[] = {[POD_PENDING] = "Pending",
		[POD_RUNNING] = "Running",
		[POD_SUCCEEDED] = "Succeeded",
		[POD_FAILED] = "Failed"};
	char name[POD_LABEL_MAX] = "";
	int r = field_string(v, "status.phase", name, sizeof name, FIELD_LINE, e);

	*ret = POD_PHASE_UNKNOWN;
	for (size_t i = POD_PENDING; i < ARRAY_SIZE(names); i++)
		if (str_is(str_of(name), names[i]))
			*ret = (enum pod_phase)i;
	return r;
}

static int read_owner(struct pod_reading *r, unsigned int id, const struct json_value *v)
{
	struct pod_owner *o = &r->owner;

	switch (id) {
	case OWNER:
		if (v->type == JSON_OBJECT)
			*o = (struct pod_owner){0};
		else if (v->type == JSON_OBJECT_END)
			owner_end(r);
		return field_object(v, "metadata.ownerReferences[]", &r->why);
	case OWNER_API_VERSION:
		return field_string(v, "ownerReferences[].apiVersion", o->api_version,
			sizeof o->api_version, FIELD_LINE, &r->why);
	case OWNER_KIND:
		return field_string(
			v, "ownerReferences[].kind", o->kind, sizeof o->kind, FIELD_LINE, &r->why);
	case OWNER_NAME:
		return field_string(
			v, "ownerReferences[].name", o->name, sizeof o->name, FIELD_NAME, &r->why);
	case OWNER_UID:
		return field_string(
			v, "ownerReferences[].uid", o->uid, sizeof o->uid, FIELD_NAME, &r->why);
	default:
		return field_bool(v, "ownerReferences[].controller", &o->controller, &r->why);
	}
}

static int read_terminated(struct pod_reading *r, unsigned int id, const struct json_value *v)
{
	struct pod_terminated *t =
		id >= L_TERMINATED ? &r->entry.last_terminated : &r->entry.terminated;

	switch (id >= L_TERMINATED ? id - L_TERMINATED + T_TERMINATED : id) {
	case T_TERMINATED:
		t->known |= v->type == JSON_OBJECT;
		return field_object(v, "terminated", &r->why);
	case T_REASON:
		return field_string(
			v, "terminated.reason", t->reason, sizeof t->reason, FIELD_LINE, &r->why);
	case T_EXIT_CODE:
		return field_i64(v, "terminated.exitCode", &t->exit_code, &r->why);
	case T_FINISHED:
		return field_time(v, "terminated.finishedAt", &t->finished_at_ns, &r->why);
	default:
		return read_container_id(v, t->container_id, &r->why);
	}
}

/* A member of an entry of containers, initContainers, or one of their statuses. */
static int read_entry(struct pod_reading *r, unsigned int id, const struct json_value *v)
{
	struct pod_container *c = &r->entry;

	switch (id) {
	case C_NAME:
		return field_string(
			v, "a container's name", c->name, sizeof c->name, FIELD_NAME, &r->why);
	case C_RESTART_POLICY:
		return field_string(v, "restartPolicy", r->restart_policy, sizeof r->restart_policy,
			FIELD_LINE, &r->why);
	case C_ID:
		return read_container_id(v, c->container_id, &r->why);
	case C_RESTART_COUNT:
		return field_i64(v, "restartCount", &c->restart_count, &r->why);
	case C_STARTED:
		return field_bool(v, "started", &c->started, &r->why);
	case C_READY:
		return field_bool(v, "ready", &c->ready, &r->why);
	case C_RUNNING:
		c->running |= v->type == JSON_OBJECT;
		return field_object(v, "state.running", &r->why);
	case C_RUNNING_SINCE:
		return field_time(v, "state.running.startedAt", &c->running_since_ns, &r->why);
	case C_REQUESTS_CPU:
		return field_millicores(
			v, "resources.requests.cpu", &c->requests.cpu_millicores, &r->why);
	case C_REQUESTS_MEMORY:
		return field_bytes(
			v, "resources.requests.memory", &c->requests.memory_bytes, &r->why);
	case C_LIMITS_CPU:
		return field_millicores(
			v, "resources.limits.cpu", &c->limits.cpu_millicores, &r->why);
	case C_LIMITS_MEMORY:
		return field_bytes(v, "resources.limits.memory", &c->limits.memory_bytes, &r->why);
	default:
		return read_terminated(r, id, v);
	}
}

static int read_entry_edge(struct pod_reading *r, unsigned int id, const struct json_value *v)
{
	if (v->type == JSON_OBJECT)
		entry_begin(r);
	else if (v->type == JSON_OBJECT_END)
		return entry_end(r, id);
	else
		return field_wrong(v, "a container", "an object", &r->why);
	return 0;
}

/* Too long a one is the pod's user's mistake, not a reason to leave the pod out. */
static int read_recommender(struct pod *p, const struct json_value *v, struct err *e)
{
	if (v->type == JSON_STRING && (v->cut || v->text.n >= sizeof p->recommender)) {
		p->recommender_too_long = true;
		return 0;
	}
	return field_string(v, "annotation " ANNOTATION_RECOMMENDER, p->recommender,
		sizeof p->recommender, FIELD_ANY, e);
}

static int read_member(struct pod_reading *r, unsigned int id, const struct json_value *v)
{
	struct pod *p = &r->pod;

	switch (id) {
	case KIND:
		return field_string(v, "kind", r->kind, sizeof r->kind, FIELD_LINE, &r->why);
	case NAMESPACE:
		return field_string(v, "metadata.namespace", p->namespace, sizeof p->namespace,
			FIELD_NAME, &r->why);
	case NAME:
		return field_string(
			v, "metadata.name", p->name, sizeof p->name, FIELD_NAME, &r->why);
	case UID:
		return field_string(v, "metadata.uid", p->uid, sizeof p->uid, FIELD_NAME, &r->why);
	case RESOURCE_VERSION:
		return field_string(v, "metadata.resourceVersion", p->resource_version,
			sizeof p->resource_version, FIELD_LINE, &r->why);
	case DELETION:
		return field_time(v, "metadata.deletionTimestamp", &p->deletion_ns, &r->why);
	case REVISION:
		return field_string(v, "label controller-revision-hash", p->revision,
			sizeof p->revision, FIELD_NAME, &r->why);
	case RECOMMENDER:
		return read_recommender(p, v, &r->why);
	case NODE_NAME:
		return field_string(
			v, "spec.nodeName", p->node_name, sizeof p->node_name, FIELD_NAME, &r->why);
	case RUNTIME_CLASS:
		return field_string(v, "spec.runtimeClassName", p->runtime_class,
			sizeof p->runtime_class, FIELD_NAME, &r->why);
	case PHASE:
		return read_phase(v, &p->phase, &r->why);
	default:
		break;
	}
	if (id >= CONTAINER && id <= INIT_STATUS)
		return read_entry_edge(r, id, v);
	return id >= C_NAME ? read_entry(r, id, v) : read_owner(r, id, v);
}

/* Statuses of containers that are not in the spec go, and so do those of ordinary init containers.
 */
static void drop_unspecified(struct pod *p)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < p->n_containers; i++) {
		if (!p->container[i].in_spec)
			continue;
		if (n != i)
			p->container[n] = p->container[i];
		n++;
	}
	p->n_containers = n;
}

int pod_reading_end(struct pod_reading *r)
{
	struct pod *p = &r->pod;

	r->complete = true;
	drop_unspecified(p);
	if (r->error == 0 && r->kind[0] && !str_is(str_of(r->kind), "Pod"))
		r->error = err_set(&r->why, EINVAL, "kind is %s, expected Pod", r->kind);
	if (r->error == 0 && (!p->name[0] || !p->namespace[0] || !p->uid[0]))
		r->error = err_set(&r->why, EINVAL, "metadata has no %s",
			!p->name[0]        ? "name"
			: !p->namespace[0] ? "namespace"
					   : "uid");
	if (r->error < 0)
		return err_wrap(&r->why, r->error, "pod %s/%s",
			p->namespace[0] ? p->namespace : "?", p->name[0] ? p->name : "?");
	return 0;
}

/* After the first mistake the rest of this pod is passed over, but for its end and its name. */
void pod_reading_value(struct pod_reading *r, unsigned int id, const struct json_value *v)
{
	struct err ignored;

	if (r->error == 0)
		r->error = read_member(r, id, v);
	else if (id == NAME && v->type == JSON_STRING)
		(void)field_string(
			v, "metadata.name", r->pod.name, sizeof r->pod.name, FIELD_NAME, &ignored);
	else if (id == NAMESPACE && v->type == JSON_STRING)
		(void)field_string(v, "metadata.namespace", r->pod.namespace,
			sizeof r->pod.namespace, FIELD_NAME, &ignored);
}
