/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/podtable.h"

#include <errno.h>
#include <string.h>

struct pod_entry *podtable_find(const struct podtable *t, const char *uid)
{
	for (struct pod_entry *pod = t->first; pod; pod = pod->next) {
		if (!strcmp(pod->uid, uid))
			return pod;
	}
	return NULL;
}

int podtable_add(
	struct podtable *t, const char *uid, unsigned int n, struct pod_entry **ret, struct err *e)
{
	struct pod_entry *pod = NULL;

	if (n > POD_CONTAINERS_MAX)
		return err_set(
			e, E2BIG, "pod %s: more than %u containers", uid, POD_CONTAINERS_MAX);
	if (t->n < PODS_MAX)
		pod = calloc(1, sizeof(*pod) + n * sizeof(pod->containers[0]));
	if (!pod) {
		t->refused++;
		return t->n < PODS_MAX
			       ? -ENOMEM
			       : err_set(e, ENOSPC, "more than %u DaemonSet pods on this node",
					 PODS_MAX);
	}
	if (str_copy(pod->uid, sizeof(pod->uid), str_of(uid)) < 0) {
		free(pod);
		t->refused++;
		return err_set(e, EINVAL, "a pod's UID of more than %u bytes", POD_LABEL_MAX - 1);
	}
	pod->dirfd = pod->node_dirfd = -1;
	pod->saved_explained = OOM_KILLS_UNKNOWN;
	pod->n_containers = n;
	for (unsigned int i = 0; i < n; i++) {
		pod->containers[i].pod = pod;
		pod->containers[i].saved_kills = OOM_KILLS_UNKNOWN;
		pod->containers[i].started_at_ns = TIME_NONE;
		pod->containers[i].state = CONTAINER_WAITING;
		pod->containers[i].request_millicores = pod->containers[i].request_bytes = -1;
	}
	struct pod_entry **at = &t->first;
	while (*at) /* in the order in which they came */
		at = &(*at)->next;
	*at = pod;
	t->n++;
	*ret = pod;
	return 0;
}

void podtable_remove(struct podtable *t, struct pod_entry *pod)
{
	for (struct pod_entry **at = &t->first; *at; at = &(*at)->next) {
		if (*at != pod)
			continue;
		*at = pod->next;
		t->n--;
		break;
	}
	closep(&pod->dirfd);
	closep(&pod->node_dirfd);
	free(pod->cgroup);
	free(pod);
}

struct live_container *live_container_find(struct pod_entry *pod, const char *name)
{
	for (unsigned int i = 0; i < pod->n_containers; i++) {
		if (!strcmp(pod->containers[i].name, name))
			return &pod->containers[i];
	}
	return NULL;
}
