/* SPDX-License-Identifier: Apache-2.0 */
/* Node objects, as far as pernode needs them: who the node is, and the annotations under our
 * domain, handed on one by one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define NODE_NAME_MAX 254U
#define NODE_UID_MAX 64U
#define NODE_STR_MAX 128U

struct node {
	char name[NODE_NAME_MAX];
	char uid[NODE_UID_MAX];
	char resource_version[NODE_STR_MAX];
	char machine_id[NODE_STR_MAX]; /* status.nodeInfo; "" where absent */
	char boot_id[NODE_STR_MAX];
	int64_t deletion_ns; /* TIME_NONE: not being deleted */
	/* Keys and values of all annotations but recommendations of ours, at least: a value longer
	 * than any of ours counts as far as it was read. */
	size_t other_annotations_bytes;
};

struct node_reader;
/* annotation is called while the object is read, before it is known to be whole: key and value are
 * valid in the call only. A value longer than any of ours is cut, to more than
 * ANNOTATION_VALUE_MAX, so that annotation_value_read refuses it. May be NULL. NULL: no memory. */
struct node_reader *node_reader_create(
	void (*annotation)(void *arg, struct str key, struct str value), void *arg);
void node_reader_destroy(struct node_reader *r);
/* One object at a time, in pieces. */
void node_reader_begin(struct node_reader *r);
/* -EBADMSG: not JSON; -EMSGSIZE; -ENOMEM. */
int node_reader_feed(struct node_reader *r, struct str piece, struct err *e);
/* *ret is valid until the next begin. -EINVAL: it is no usable Node; e names it and says why. */
int node_reader_end(struct node_reader *r, const struct node **ret, struct err *e);
