// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "proto/field.h"
#include "proto/pod_reading.h"

#define LIST_KIND (POD_READING_ITEM - 1)

struct pod_reader {
	struct json_reader *json;
	struct pod_reading reading;
};

struct pod_list {
	struct json_reader *json;
	const struct pod_list_ops *ops;
	void *arg;
	uint64_t n_items;
	char kind[POD_LABEL_MAX];
	struct pod_reading reading;
};

static const struct json_path list_paths[] = {{"kind", LIST_KIND}};

static int on_pod_value(void *arg, unsigned int id, const struct json_value *v)
{
	struct pod_reader *r = arg;

	if (id != POD_READING_ITEM)
		pod_reading_value(&r->reading, id, v);
	else if (v->type == JSON_OBJECT_END)
		(void)pod_reading_end(&r->reading);
	else if (v->type != JSON_OBJECT)
		r->reading.error = field_wrong(v, "the pod", "an object", &r->reading.why);
	return 0;
}

static const struct json_spec pod_spec = {.paths = pod_reading_paths,
	.n_paths = POD_READING_PATHS,
	.value = on_pod_value,
	.one_document = true};

struct pod_reader *pod_reader_create(void)
{
	struct pod_reader *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->json = json_reader_create(&pod_spec, r);
	if (!r->json) {
		free(r);
		return NULL;
	}
	pod_reader_begin(r);
	return r;
}

void pod_reader_destroy(struct pod_reader *r)
{
	if (!r)
		return;
	json_reader_destroy(r->json);
	free(r);
}

void pod_reader_begin(struct pod_reader *r)
{
	json_reader_reset(r->json);
	pod_reading_begin(&r->reading);
}

int pod_reader_feed(struct pod_reader *r, struct str piece, struct err *e)
{
	return json_reader_feed(r->json, piece.p, piece.n, e);
}

int pod_reader_end(struct pod_reader *r, const struct pod **ret, struct err *e)
{
	int result = json_reader_end(r->json, e);
	if (result < 0)
		return result;
	if (r->reading.error < 0) {
		if (e)
			*e = r->reading.why;
		return r->reading.error;
	}
	if (!r->reading.complete)
		return err_set(e, EINVAL, "there is no pod object");
	*ret = &r->reading.pod;
	return 0;
}

static void list_item_end(struct pod_list *l)
{
	struct pod_reading *r = &l->reading;

	if (r->kind[0] && !str_is(str_of(r->kind), "Pod"))
		return;
	if (pod_reading_end(r) == 0) {
		l->ops->pod(l->arg, &r->pod);
		return;
	}
	(void)err_wrap(&r->why, r->error, "item %llu", (unsigned long long)l->n_items);
	l->ops->skipped(l->arg, &r->why);
}

static int on_list_value(void *arg, unsigned int id, const struct json_value *v)
{
	struct pod_list *l = arg;
	struct pod_reading *r = &l->reading;
	struct err ignored;

	if (id == LIST_KIND) {
		(void)field_string(v, "kind", l->kind, sizeof l->kind, FIELD_LINE, &ignored);
		return 0;
	}
	if (id != POD_READING_ITEM) {
		pod_reading_value(r, id, v);
		return 0;
	}
	switch (v->type) {
	case JSON_OBJECT:
		l->n_items++;
		pod_reading_begin(r);
		break;
	case JSON_OBJECT_END:
		list_item_end(l);
		break;
	default:
		l->n_items++;
		(void)field_wrong(v, "it", "an object", &r->why);
		(void)err_wrap(&r->why, -EINVAL, "item %llu", (unsigned long long)l->n_items);
		l->ops->skipped(l->arg, &r->why);
		return JSON_SKIP;
	}
	return 0;
}

static const struct json_spec list_spec = {.paths = pod_reading_paths,
	.n_paths = POD_READING_PATHS,
	.prefix = "items[]",
	.outer = list_paths,
	.n_outer = ARRAY_SIZE(list_paths),
	.value = on_list_value,
	.one_document = true};

struct pod_list *pod_list_create(const struct pod_list_ops *ops, void *arg)
{
	struct pod_list *l = calloc(1, sizeof *l);
	if (!l)
		return NULL;
	l->ops = ops;
	l->arg = arg;
	l->json = json_reader_create(&list_spec, l);
	if (!l->json) {
		free(l);
		return NULL;
	}
	return l;
}

void pod_list_destroy(struct pod_list *l)
{
	if (!l)
		return;
	json_reader_destroy(l->json);
	free(l);
}

int pod_list_feed(struct pod_list *l, struct str piece, struct err *e)
{
	return json_reader_feed(l->json, piece.p, piece.n, e);
}

int pod_list_end(struct pod_list *l, struct err *e)
{
	int r = json_reader_end(l->json, e);
	if (r < 0)
		return r;
	if (!str_is(str_of(l->kind), "PodList") && !str_is(str_of(l->kind), "List"))
		return err_set(e, EINVAL,
			"kind is \"%s\", expected PodList or List: write it with kubectl get pods "
			"-o json",
			l->kind);
	return 0;
}
