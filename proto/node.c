// SPDX-License-Identifier: Apache-2.0
#include "proto/node.h"

#include <errno.h>

#include "proto/annotation.h"
#include "proto/field.h"
#include "proto/json_read.h"
#include "proto/rfc3339.h"

enum { NODE, KIND, NAME, UID, RESOURCE_VERSION, DELETION, ANNOTATION, MACHINE_ID, BOOT_ID };

static const struct json_path paths[] = {
	{"", NODE},
	{"kind", KIND},
	{"metadata.name", NAME},
	{"metadata.uid", UID},
	{"metadata.resourceVersion", RESOURCE_VERSION},
	{"metadata.deletionTimestamp", DELETION},
	{"metadata.annotations.*", ANNOTATION},
	{"status.nodeInfo.machineID", MACHINE_ID},
	{"status.nodeInfo.bootID", BOOT_ID},
};

struct node_reader {
	struct json_reader *json;
	void (*annotation)(void *arg, struct str key, struct str value);
	void *arg;
	struct node node;
	char kind[NODE_STR_MAX];
	bool complete;
	int error;
	struct err why;
};

static void pass_annotation(struct node_reader *r, const struct json_value *v)
{
	struct annotation_names names;
	enum annotation_kind kind = annotation_key_parse(v->key, &names);

	if (v->type != JSON_STRING)
		return;
	if (kind != ANNOTATION_IS_RECOMMENDATION)
		r->node.other_annotations_bytes += v->key.n + v->text.n;
	if (kind != ANNOTATION_FOREIGN && r->annotation)
		r->annotation(r->arg, v->key, v->text);
}

static int read_member(struct node_reader *r, unsigned int id, const struct json_value *v)
{
	struct node *n = &r->node;

	switch (id) {
	case NODE:
		r->complete = v->type == JSON_OBJECT_END;
		return v->type == JSON_NULL ? field_wrong(v, "the Node", "an object", &r->why)
					    : field_object(v, "the Node", &r->why);
	case KIND:
		return field_string(v, "kind", r->kind, sizeof r->kind, FIELD_LINE, &r->why);
	case NAME:
		return field_string(
			v, "metadata.name", n->name, sizeof n->name, FIELD_NAME, &r->why);
	case UID:
		return field_string(v, "metadata.uid", n->uid, sizeof n->uid, FIELD_NAME, &r->why);
	case RESOURCE_VERSION:
		return field_string(v, "metadata.resourceVersion", n->resource_version,
			sizeof n->resource_version, FIELD_LINE, &r->why);
	case DELETION:
		return field_time(v, "metadata.deletionTimestamp", &n->deletion_ns, &r->why);
	case MACHINE_ID:
		return field_string(v, "status.nodeInfo.machineID", n->machine_id,
			sizeof n->machine_id, FIELD_LINE, &r->why);
	case BOOT_ID:
		return field_string(v, "status.nodeInfo.bootID", n->boot_id, sizeof n->boot_id,
			FIELD_LINE, &r->why);
	default:
		pass_annotation(r, v);
		return 0;
	}
}

static int on_value(void *arg, unsigned int id, const struct json_value *v)
{
	struct node_reader *r = arg;

	if (r->error == 0)
		r->error = read_member(r, id, v);
	return 0;
}

static const struct json_spec spec = {.paths = paths,
	.n_paths = ARRAY_SIZE(paths),
	.value = on_value,
	.string_max = ANNOTATION_VALUE_MAX + 1,
	.one_document = true};

struct node_reader *node_reader_create(
	void (*annotation)(void *arg, struct str key, struct str value), void *arg)
{
	struct node_reader *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->annotation = annotation;
	r->arg = arg;
	r->json = json_reader_create(&spec, r);
	if (!r->json) {
		free(r);
		return NULL;
	}
	node_reader_begin(r);
	return r;
}

void node_reader_destroy(struct node_reader *r)
{
	if (!r)
		return;
	json_reader_destroy(r->json);
	free(r);
}

void node_reader_begin(struct node_reader *r)
{
	json_reader_reset(r->json);
	r->node = (struct node){.deletion_ns = TIME_NONE};
	r->kind[0] = '\0';
	r->complete = false;
	r->error = 0;
}

int node_reader_feed(struct node_reader *r, struct str piece, struct err *e)
{
	return json_reader_feed(r->json, piece.p, piece.n, e);
}

int node_reader_end(struct node_reader *r, const struct node **ret, struct err *e)
{
	int result = json_reader_end(r->json, e);
	if (result < 0)
		return result;
	if (r->error == 0 && !r->complete)
		r->error = err_set(&r->why, EINVAL, "there is no object");
	if (r->error == 0 && r->kind[0] && !str_is(str_of(r->kind), "Node"))
		r->error = err_set(&r->why, EINVAL, "kind is %s, expected Node", r->kind);
	if (r->error == 0 && (!r->node.name[0] || !r->node.uid[0]))
		r->error = err_set(
			&r->why, EINVAL, "metadata has no %s", r->node.name[0] ? "uid" : "name");
	if (r->error < 0) {
		if (e)
			*e = r->why;
		return err_wrap(e, r->error, "node %s", r->node.name[0] ? r->node.name : "?");
	}
	*ret = &r->node;
	return 0;
}
