/* SPDX-License-Identifier: Apache-2.0 */
/* The paths a JSON reader wants, as a tree that is walked along with the document. */
#pragma once

#include "proto/json_read.h"

#define JSON_PATH_DEPTH 16U /* steps of the longest path, of the prefix too */
#define JSON_PATH_NODES \
	192U /* steps of all paths of one reader, those with a common beginning counted once */

enum json_step { JSON_STEP_KEY, JSON_STEP_ANY_KEY, JSON_STEP_ELEMENT };

struct json_path_node {
	struct str key;
	enum json_step step;
	uint16_t child; /* index, 0: none */
	uint16_t sibling;
	bool wanted;
	bool has_key; /* there is a '*' in its path */
	unsigned int id;
};

struct json_path_tree {
	size_t n;
	struct json_path_node node[JSON_PATH_NODES]; /* [0] is the document */
};

void json_path_tree_init(struct json_path_tree *t);
/* Adds paths below prefix (NULL: the document). -EINVAL: a path that is none; -E2BIG: too many or
 * too long ones. Both are errors of the program. */
int json_path_tree_add(
	struct json_path_tree *t, const char *prefix, const struct json_path *paths, size_t n);

/* The child of a node for a key or an array's element; 0: none. */
uint16_t json_path_key(const struct json_path_tree *t, uint16_t node, struct str key);
uint16_t json_path_element(const struct json_path_tree *t, uint16_t node);
