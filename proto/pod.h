/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent needs to know of a Kubernetes Pod, read from its JSON as it arrives: a PodList, single objects, or the
 * bare object of a watch event. Everything is bounded; a pod that does not fit, or whose fields have the wrong type, is
 * refused with its name, and the others are not touched by it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define POD_NAME_MAX 254U       /* an object's name with its NUL */
#define POD_LABEL_MAX 64U       /* a DNS label (namespace, container) with its NUL */
#define POD_CONTAINERS_MAX 64U  /* containers and restartable init containers of one pod */
#define POD_RECOMMENDER_MAX 4096U /* bytes of the annotation pernode.io/recommender */

/* A regular container, or an init container with restartPolicy Always (a native sidecar). Other init containers and
 * ephemeral ones are left out. */
struct pod_container_info {
	char name[POD_LABEL_MAX];
	/* Of its status, where there is one; "" and false elsewhere. */
	char id[65];            /* 64 hexadecimal digits; "" also when the runtime's id is of another form */
	bool running;
	uint32_t restart_count;
	int64_t started_at_ns;  /* TIME_NONE */
	/* lastState.terminated, or state.terminated of one that ended */
	bool terminated_oom;    /* reason OOMKilled */
	char terminated_id[65];
	int64_t finished_at_ns; /* TIME_NONE */
	/* From status.resources where the kubelet tells it, else from spec; -1: none. */
	int64_t request_millicores, request_bytes, limit_millicores, limit_bytes;
};

struct pod {
	char namespace[POD_LABEL_MAX];
	char name[POD_NAME_MAX];
	char uid[POD_LABEL_MAX];
	char resource_version[POD_LABEL_MAX];
	char node[POD_NAME_MAX];
	char daemonset[POD_NAME_MAX]; /* of the controlling apps/v1 DaemonSet; "" when it has none */
	char daemonset_uid[POD_LABEL_MAX];
	char revision[POD_LABEL_MAX]; /* label controller-revision-hash */
	bool deleting;                /* has a deletionTimestamp */
	bool ended;                   /* phase Succeeded or Failed */
	bool recommender_cut;         /* the annotation is longer than POD_RECOMMENDER_MAX: unusable */
	char recommender[POD_RECOMMENDER_MAX + 1];
	unsigned int n_containers;
	struct pod_container_info containers[POD_CONTAINERS_MAX];
};

/* Reads pods out of a stream of bytes: one object after the other, or Lists. One reader (about 30 KB) serves for all. */
struct pod_reader;
/* each: a complete pod, valid during the call; a negative return ends the reading with it. refused (may be NULL): a pod
 * that cannot be used, with whatever of its names is known. */
struct pod_reader *pod_reader_create(int (*each)(void *arg, const struct pod *pod),
	void (*refused)(void *arg, const struct pod *names, const struct err *why), void *arg);
void pod_reader_destroy(struct pod_reader *r);
/* Ready for another text (the next object of a watch). */
void pod_reader_reset(struct pod_reader *r);
/* Any piece; errors as json_reader_feed. */
int pod_reader_feed(struct pod_reader *r, struct str piece, struct err *e);
int pod_reader_end(struct pod_reader *r, struct err *e);
