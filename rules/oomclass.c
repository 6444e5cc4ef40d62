/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/oomclass.h"

enum oom_class oom_classify(const struct oom_evidence *e)
{
	if (e->container_oom)
		return OOM_LIMIT;
	if (e->pod_local_oom)
		return OOM_POD;
	/* The pod's counter rose, its own did not: it was a container's limit, and this one's,
	 * since that is all that is left to say of a container that took its counters with it. */
	if (e->container_vanished && e->pod_oom)
		return OOM_LIMIT;
	return e->node_local_oom ? OOM_NODE_ALLOCATABLE : OOM_GLOBAL;
}

const char *oom_class_name(enum oom_class c)
{
	static const char *const names[OOM_CLASSES] = {
		[OOM_LIMIT] = "limit",
		[OOM_POD] = "pod",
		[OOM_NODE_ALLOCATABLE] = "node-allocatable",
		[OOM_GLOBAL] = "global",
	};

	return names[c];
}

bool oom_class_is_own(enum oom_class c)
{
	return c == OOM_LIMIT || c == OOM_POD;
}
