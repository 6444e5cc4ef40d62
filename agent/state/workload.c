/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state/workload.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"

#define KNOBS_TEXT_MAX 4096U /* bytes of a pod's annotation pernode.io/recommender */

void workloads_init(struct workloads *t, const struct knobs *knobs)
{
	*t = (struct workloads){.knobs = *knobs};
	model_init(&t->model, &t->knobs);
}

static void workload_destroy(struct workload *w)
{
	free(w->knobs_text);
	free(w->knobs_error);
	free(w);
}

void workloads_finish(struct workloads *t)
{
	while (t->first) {
		struct workload *w = t->first;
		t->first = w->next;
		workload_destroy(w);
	}
	t->n = 0;
}

static int name_order(const char *have, struct str want)
{
	size_t n = strlen(have);
	int r = want.n ? memcmp(have, want.p, MIN(n, want.n)) : 0;

	if (r)
		return r;
	return n < want.n ? -1 : n > want.n;
}

static int key_order(
	const struct workload *w, struct str namespace, struct str daemonset, struct str container)
{
	int r = name_order(w->namespace, namespace);

	if (r == 0)
		r = name_order(w->daemonset, daemonset);
	return r ? r : name_order(w->container, container);
}

/* Where the key is, or would have to be put in. */
static struct workload **place_of(struct workload **at, struct str namespace, struct str daemonset,
	struct str container, bool *ret_there)
{
	int r = 1;

	while (*at && (r = key_order(*at, namespace, daemonset, container)) < 0)
		at = &(*at)->next;
	*ret_there = *at && r == 0;
	return at;
}

struct workload *workloads_find(
	const struct workloads *t, struct str namespace, struct str daemonset, struct str container)
{
	struct workload *first = t->first;
	bool there;
	struct workload **at = place_of(&first, namespace, daemonset, container, &there);

	return there ? *at : NULL;
}

int workloads_get(struct workloads *t, struct str namespace, struct str daemonset,
	struct str container, struct workload **ret, struct err *e)
{
	bool there;
	struct workload **at = place_of(&t->first, namespace, daemonset, container, &there);

	if (there) {
		*ret = *at;
		return 0;
	}
	if (t->n == WORKLOADS_MAX) {
		t->refused++;
		return err_set(e, ENOSPC, "more than %u workloads on this node", WORKLOADS_MAX);
	}
	struct workload *w = calloc(1, sizeof(*w));
	if (!w) {
		t->refused++;
		return -ENOMEM;
	}
	if (!namespace.n || !daemonset.n || !container.n ||
		str_copy(w->namespace, sizeof(w->namespace), namespace) < 0 ||
		str_copy(w->daemonset, sizeof(w->daemonset), daemonset) < 0 ||
		str_copy(w->container, sizeof(w->container), container) < 0) {
		free(w);
		t->refused++;
		return err_set(e, EINVAL, "%.*s/%.*s/%.*s: not the names of a container",
			STR_ARG(namespace), STR_ARG(daemonset), STR_ARG(container));
	}
	usage_init(&w->usage, &t->model);
	coverage_init(&w->coverage);
	publish_item_init(&w->publish);
	history_init(&w->history);
	w->knobs = &t->knobs;
	w->containers = 1;
	w->request_millicores = w->request_bytes = -1;
	w->seen_at_ns = TIME_NONE;
	w->next = *at;
	*at = w;
	t->n++;
	*ret = w;
	return 0;
}

void workloads_remove(struct workloads *t, struct workload *w)
{
	for (struct workload **at = &t->first; *at; at = &(*at)->next) {
		if (*at == w) {
			*at = w->next;
			t->n--;
			workload_destroy(w);
			return;
		}
	}
}

unsigned int workloads_expire(struct workloads *t, int64_t now_ns)
{
	unsigned int removed = 0;

	for (struct workload **at = &t->first; *at;) {
		struct workload *w = *at;
		if (w->here || instant_since(now_ns, w->seen_at_ns) <= t->model.retention_ns) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		t->n--;
		workload_destroy(w);
		removed++;
	}
	return removed;
}

int workload_set_knobs(struct workloads *t, struct workload *w, struct str json, struct err *e)
{
	struct err why = {""};

	if (str_eq(json, str_of(w->knobs_text ? w->knobs_text : "")))
		return w->knobs_error ? err_set(e, EINVAL, "%s", w->knobs_error) : 0;
	free(w->knobs_text);
	free(w->knobs_error);
	w->knobs_text = w->knobs_error = NULL;
	w->knobs = &t->knobs;
	if (json.n == 0)
		return 0;

	int r = json.n > KNOBS_TEXT_MAX
			? err_set(&why, EINVAL, "longer than %u bytes", KNOBS_TEXT_MAX)
			: knobs_override(&t->knobs, json, &w->own_knobs, &why);
	/* Kept, so that an unchanged annotation is not read (and complained about) at every event.
	 */
	w->knobs_text = json.n > KNOBS_TEXT_MAX ? NULL : str_dup(json);
	if (r == 0) {
		w->knobs = &w->own_knobs;
		return 0;
	}
	w->knobs_error = str_dup(str_of(err_text(&why, r)));
	return err_set(e, EINVAL, "%s", err_text(&why, r));
}

void workload_estimate(const struct workload *w, int64_t now_ns, struct recommendation *ret,
	struct explain *explain)
{
	estimate(&w->usage, w->knobs, MAX(w->containers, 1U), now_ns, ret, explain);
}
