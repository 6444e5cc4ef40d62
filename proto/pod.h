/* SPDX-License-Identifier: Apache-2.0 */
/* Pods, as far as pernode needs them, read from their JSON as it arrives. What has no place here is
 * not kept, so a pod of any size takes the same memory. A pod that is not as it should be is
 * refused with its name and the reason; those after it are not touched by that. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "proto/quantity.h"

#define POD_NAME_MAX 254U /* a DNS subdomain, with its NUL */
#define POD_LABEL_MAX 64U /* a DNS label or label value, with its NUL */
#define POD_UID_MAX 64U
#define POD_ID_MAX 80U /* of a container: 64 hex digits, and room */
#define POD_VERSION_MAX 64U
#define POD_RECOMMENDER_MAX 2048U
#define POD_CONTAINERS_MAX 48U

struct pod_terminated {
	bool known;
	int64_t exit_code;
	int64_t finished_at_ns;     /* TIME_NONE: not known */
	char reason[POD_LABEL_MAX]; /* "OOMKilled", "Error", … */
	char container_id[POD_ID_MAX];
};

struct pod_container {
	char name[POD_LABEL_MAX];
	bool sidecar; /* an init container with restartPolicy Always */
	bool in_spec;
	struct quantity_pair requests, limits; /* of the spec; -1: none */

	/* The status. container_id is the bare id, "" while there is none. */
	bool has_status;
	char container_id[POD_ID_MAX];
	bool running, started, ready;
	int64_t restart_count;
	int64_t running_since_ns;                            /* TIME_NONE: not known */
	struct pod_terminated terminated, last_terminated;   /* state, lastState */
	struct quantity_pair actual_requests, actual_limits; /* -1: not told */
};

enum pod_phase { POD_PHASE_UNKNOWN, POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED };

struct pod {
	char namespace[POD_LABEL_MAX];
	char name[POD_NAME_MAX];
	char uid[POD_UID_MAX];
	char resource_version[POD_VERSION_MAX];
	char node_name[POD_NAME_MAX];
	char runtime_class[POD_NAME_MAX];
	char daemonset[POD_NAME_MAX]; /* the controller, if that is a DaemonSet of apps/v1, else ""
				       */
	char daemonset_uid[POD_UID_MAX];
	char revision[POD_LABEL_MAX];          /* label controller-revision-hash */
	char recommender[POD_RECOMMENDER_MAX]; /* annotation pernode.io/recommender, "" for none */
	bool recommender_too_long;             /* it was: recommender is "" */
	enum pod_phase phase;
	int64_t deletion_ns; /* metadata.deletionTimestamp, TIME_NONE: not being deleted */
	unsigned int n_containers;
	unsigned int containers_left_out;                   /* over POD_CONTAINERS_MAX */
	struct pod_container container[POD_CONTAINERS_MAX]; /* containers and sidecars, in order */
};

/* One pod object at a time, in pieces: begin, feed…, end. */
struct pod_reader;
struct pod_reader *pod_reader_create(void); /* NULL: no memory */
void pod_reader_destroy(struct pod_reader *r);
/* Forgets what it was reading, complete or not. */
void pod_reader_begin(struct pod_reader *r);
/* -EBADMSG: not JSON; -EMSGSIZE; -ENOMEM. */
int pod_reader_feed(struct pod_reader *r, struct str piece, struct err *e);
/* *ret is valid until the next begin. -EINVAL: it is no usable pod; e names it and says why. */
int pod_reader_end(struct pod_reader *r, const struct pod **ret, struct err *e);

/* The pods of a list (kind PodList, or List, whose other kinds are passed over). */
struct pod_list_ops {
	void (*pod)(void *arg, const struct pod *p);
	void (*skipped)(void *arg, const struct err *e); /* one that is not usable */
};
struct pod_list;
struct pod_list *pod_list_create(const struct pod_list_ops *ops, void *arg);
void pod_list_destroy(struct pod_list *l);
int pod_list_feed(struct pod_list *l, struct str piece, struct err *e);
/* The text is over. Only with 0 it was a whole list, and what was told of it is all. */
int pod_list_end(struct pod_list *l, struct err *e);

/* The container of that name, or NULL. */
const struct pod_container *pod_container_find(const struct pod *p, struct str name);
