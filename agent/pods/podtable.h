/* SPDX-License-Identifier: Apache-2.0 */
/* The DaemonSet pods of this node and their containers: what the API server says of them, beside
 * what is known of their cgroups. Only data; agent/pods/tracker.h makes it live. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/pods/entry.h"
#include "agent/sample/container.h"
#include "agent/sample/oomwatch.h"
#include "agent/state/workload.h"
#include "base/err.h"
#include "proto/pod.h"

#define PODS_MAX 1024U /* of DaemonSets, on one node */
#define POD_OTHER_IDS_MAX \
	8U /* sandbox and finished init containers, for telling a new container by elimination */

struct live_container {
	struct pod_entry *pod;
	char name[POD_LABEL_MAX];
	char id[POD_ID_MAX]; /* the instance that is measured or looked for; "" not known yet */
	char charged_id[POD_ID_MAX]; /* the instance whose OOM kill was last counted, or was old
				when first seen */
	bool running;                /* as the pod's status says */
	int64_t started_at_ns;
	int64_t request_millicores, request_bytes; /* -1: none */
	uint64_t saved_kills;      /* from the checkpoint, of instance id; OOM_KILLS_UNKNOWN */
	struct workload *workload; /* not owned; NULL: no room for one */

	enum container_state state;
	struct err reason;
	uint64_t waiting_since_usec; /* monotonic */
	uint64_t retry_usec;         /* look again then; 0: nothing to look for */
	uint64_t delay_usec;

	bool sampling; /* the two below are in the sampler and in the OOM watch */
	bool lost;     /* its cgroup went; to be let go outside of the sampler's round */
	char *cgroup;  /* path below the root, while sampling */
	struct container measured;
	struct oomwatch_child oom;
};

struct pod_entry {
	struct pod_entry *next;
	char uid[POD_LABEL_MAX], namespace[POD_LABEL_MAX];
	char name[POD_NAME_MAX], daemonset[POD_NAME_MAX];
	char revision[POD_LABEL_MAX];
	bool deleting;
	bool told; /* by the picture that is being drawn */
	/* Kills that the API server told of and that were counted, of containers that were never
	 * measured here: the kernel's account of the same kills is then not counted again, and the
	 * other way round. */
	unsigned int told_kills, seen_kills;

	char *cgroup;             /* NULL: not found yet */
	int dirfd;                /* O_PATH of it; -1 */
	int node_dirfd;           /* O_PATH of what limits all pods; -1 */
	uint64_t saved_explained; /* from the checkpoint; OOM_KILLS_UNKNOWN */
	struct oomwatch_pod oom;
	unsigned int n_others;
	char others[POD_OTHER_IDS_MAX][POD_ID_MAX];

	unsigned int n_containers;
	struct live_container containers[]; /* in the order of the spec */
};

struct podtable {
	struct pod_entry *first;
	unsigned int n;
	uint64_t refused; /* over PODS_MAX or no memory */
};

struct pod_entry *podtable_find(const struct podtable *t, const char *uid);
/* A new entry with n containers, whose names are still to be filled in. -ENOSPC, -ENOMEM. */
int podtable_add(
	struct podtable *t, const char *uid, unsigned int n, struct pod_entry **ret, struct err *e);
/* Frees it; its containers must have been let go. */
void podtable_remove(struct podtable *t, struct pod_entry *pod);

struct live_container *live_container_find(struct pod_entry *pod, const char *name);
