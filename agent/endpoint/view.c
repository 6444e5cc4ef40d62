/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/endpoint/view.h"

#include <string.h>

#include "agent/state/workload.h"

struct search {
	const struct workload *w;
	struct container_entry *ret;
	bool found;
};

static int search_entry(void *arg, const struct container_entry *entry)
{
	struct search *s = arg;

	if (entry->state == CONTAINER_HELD || strcmp(entry->container, s->w->container) != 0 ||
		strcmp(entry->daemonset, s->w->daemonset) != 0 ||
		strcmp(entry->namespace, s->w->namespace) != 0)
		return 0;
	if (!s->found || entry->state == CONTAINER_SAMPLED)
		*s->ret = *entry;
	s->found = true;
	return entry->state == CONTAINER_SAMPLED;
}

bool view_find(const struct agent_view *view, const struct workload *w, struct container_entry *ret)
{
	struct container_entry entry;
	struct search s = {.w = w, .ret = &entry};

	if (view->each_container)
		view->each_container(view->arg, search_entry, &s);
	if (s.found)
		*ret = entry;
	return s.found;
}
