// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a pod, a list of pods, a Node, an annotation's key or value. What was read is
 * within its bounds, and a value that was read can be written and read again. */
#include <stdint.h>
#include <stdlib.h>

#include "proto/annotation.h"
#include "proto/node.h"
#include "proto/pod.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pod(void *arg, const struct pod *p)
{
	if (!p->name[0] || !p->uid[0] || strchr(p->uid, '/') ||
		p->n_containers > POD_CONTAINERS_MAX)
		abort();
	for (unsigned int i = 0; i < p->n_containers; i++)
		if (!p->container[i].name[0] ||
			!memchr(p->container[i].container_id, 0, POD_ID_MAX))
			abort();
}

static void ignore(void *arg, const struct err *e)
{
}

static void check_value(struct str text)
{
	struct annotation_value v, again;
	_cleanup_buf_ struct buf b = BUF_INIT(8192);

	if (annotation_value_read(text, &v, NULL) < 0)
		return;
	annotation_value_write(&b, &v);
	if (annotation_value_read(buf_str(&b), &again, NULL) < 0 || again.samples != v.samples ||
		again.target.cpu_millicores != v.target.cpu_millicores)
		abort();
}

static void on_annotation(void *arg, struct str key, struct str value)
{
	struct annotation_names names;
	char built[ANNOTATION_KEY_MAX];

	if (annotation_key_parse(key, &names) == ANNOTATION_IS_RECOMMENDATION &&
		(annotation_key(built, names.namespace, names.daemonset, names.container) < 0 ||
			!str_is(key, built)))
		abort();
	check_value(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct pod_list_ops ops = {.pod = check_pod, .skipped = ignore};
	struct str text = {(const char *)data, size};
	struct pod_reader *pods = pod_reader_create();
	struct pod_list *list = pod_list_create(&ops, NULL);
	struct node_reader *nodes = node_reader_create(on_annotation, NULL);
	const struct pod *p;
	const struct node *n;
	struct annotation_agent agent;
	struct err e;

	if (!pods || !list || !nodes)
		abort();
	if (pod_reader_feed(pods, text, &e) == 0 && pod_reader_end(pods, &p, &e) == 0)
		check_pod(NULL, p);
	if (pod_list_feed(list, text, &e) == 0)
		(void)pod_list_end(list, &e);
	if (node_reader_feed(nodes, text, &e) == 0)
		(void)node_reader_end(nodes, &n, &e);
	on_annotation(NULL, text, text);
	(void)annotation_agent_read(text, &agent, &e);
	pod_reader_destroy(pods);
	pod_list_destroy(list);
	node_reader_destroy(nodes);
	return 0;
}
