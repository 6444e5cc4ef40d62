// SPDX-License-Identifier: Apache-2.0
#include "proto/json_path.h"

#include <errno.h>

/* Takes the next step off a path: "a.b" → key a; "[]…" → element; "['a.b']…" → key a.b; "*" → any
 * key. */
static int take_step(const char **path, enum json_step *ret_step, struct str *ret_key)
{
	const char *p = *path, *end;

	*ret_step = JSON_STEP_KEY;
	if (p[0] == '[' && p[1] == ']') {
		*ret_step = JSON_STEP_ELEMENT;
		*ret_key = (struct str){NULL, 0};
		end = p + 2;
	} else if (p[0] == '[' && p[1] == '\'') {
		end = strstr(p + 2, "']");
		if (!end)
			return -EINVAL;
		*ret_key = (struct str){p + 2, (size_t)(end - p) - 2};
		end += 2;
	} else {
		end = p + strcspn(p, ".[");
		*ret_key = (struct str){p, (size_t)(end - p)};
		if (ret_key->n == 0)
			return -EINVAL;
		if (str_is(*ret_key, "*"))
			*ret_step = JSON_STEP_ANY_KEY;
	}
	if (*end == '.' && *++end == '\0')
		return -EINVAL;
	*path = end;
	return 0;
}

/* The child of parent for this step, made if need be; 0 when there is no room. */
static uint16_t descend(
	struct json_path_tree *t, uint16_t parent, enum json_step step, struct str key)
{
	for (uint16_t i = t->node[parent].child; i; i = t->node[i].sibling)
		if (t->node[i].step == step && str_eq(t->node[i].key, key))
			return i;
	if (t->n == JSON_PATH_NODES)
		return 0;
	uint16_t made = (uint16_t)t->n++;
	t->node[made] = (struct json_path_node){.key = key,
		.step = step,
		.sibling = t->node[parent].child,
		.has_key = step == JSON_STEP_ANY_KEY || t->node[parent].has_key};
	t->node[parent].child = made;
	return made;
}

/* The node at the end of the path below from. */
static int descend_path(struct json_path_tree *t, uint16_t from, const char *path, uint16_t *ret)
{
	uint16_t node = from;

	for (unsigned int depth = 0; *path; depth++) {
		enum json_step step;
		struct str key;
		int r = take_step(&path, &step, &key);
		if (r < 0)
			return r;
		node = descend(t, node, step, key);
		if (node == 0 || depth == JSON_PATH_DEPTH)
			return -E2BIG;
	}
	*ret = node;
	return 0;
}

void json_path_tree_init(struct json_path_tree *t)
{
	t->n = 1;
	t->node[0] = (struct json_path_node){0};
}

int json_path_tree_add(
	struct json_path_tree *t, const char *prefix, const struct json_path *paths, size_t n)
{
	uint16_t top = 0;
	int r = prefix ? descend_path(t, 0, prefix, &top) : 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		uint16_t node;
		r = descend_path(t, top, paths[i].path, &node);
		if (r == 0) {
			t->node[node].wanted = true;
			t->node[node].id = paths[i].id;
		}
	}
	return r;
}

uint16_t json_path_key(const struct json_path_tree *t, uint16_t node, struct str key)
{
	uint16_t any = 0;

	for (uint16_t i = t->node[node].child; i; i = t->node[i].sibling) {
		if (t->node[i].step == JSON_STEP_KEY && str_eq(t->node[i].key, key))
			return i;
		if (t->node[i].step == JSON_STEP_ANY_KEY)
			any = i;
	}
	return any;
}

uint16_t json_path_element(const struct json_path_tree *t, uint16_t node)
{
	for (uint16_t i = t->node[node].child; i; i = t->node[i].sibling)
		if (t->node[i].step == JSON_STEP_ELEMENT)
			return i;
	return 0;
}
