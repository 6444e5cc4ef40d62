/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the pod readers: one pod, from the JSON values at its paths. */
#pragma once

#include "proto/json_read.h"
#include "proto/pod.h"

#define POD_READING_ITEM \
	1U /* the id of the pod itself; all others are passed to pod_reading_value */

#define POD_READING_PATHS 75U
extern const struct json_path pod_reading_paths[POD_READING_PATHS];

struct pod_owner {
	char api_version[POD_LABEL_MAX];
	char kind[POD_LABEL_MAX];
	char name[POD_NAME_MAX];
	char uid[POD_UID_MAX];
	bool controller;
};

/* A pod being read. */
struct pod_reading {
	struct pod pod;
	struct pod_container entry; /* the current one, of the spec or the status */
	struct pod_owner owner;     /* likewise */
	char kind[POD_LABEL_MAX];
	char restart_policy[POD_LABEL_MAX];
	bool complete;
	int error; /* the first thing that was wrong */
	struct err why;
};

void pod_reading_begin(struct pod_reading *r);
void pod_reading_value(struct pod_reading *r, unsigned int id, const struct json_value *v);
/* 0: the pod is whole and usable. Otherwise r->why names it and says why not. */
int pod_reading_end(struct pod_reading *r);
