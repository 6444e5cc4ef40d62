/* SPDX-License-Identifier: Apache-2.0 */
/* What ran out when a container was OOM-killed. The kernel counts "oom" where the limit was hit and
 * "oom_kill" where the victim was, both also in every ancestor; memory.events.local counts a
 * cgroup's own only. Measured on Linux 6.1:
 *
 *     what ran out                      container oom   pod oom   pod.local oom   node.local oom
 *     the container's limit                  +1           +1           0               0
 *     the pod's limit                         0           +1          +1               0
 *     the limit of all pods                   0            0           0              +1
 *     the machine's memory                    0            0           0               0
 */
#pragma once

#include <stdbool.h>

enum oom_class {
	OOM_LIMIT,            /* the container's limit */
	OOM_POD,              /* the pod's */
	OOM_NODE_ALLOCATABLE, /* what all pods together may use */
	OOM_GLOBAL,           /* the machine: nothing above says "oom" */
	OOM_CLASSES
};

/* Which counters rose along with the kill. What could not be read is false. */
struct oom_evidence {
	bool container_oom;
	bool pod_oom, pod_local_oom;
	bool node_local_oom;
	bool container_vanished; /* its own counter was lost with it */
};

enum oom_class oom_classify(const struct oom_evidence *e);
/* "limit", "pod", "node-allocatable", "global" */
const char *oom_class_name(enum oom_class c);
/* Whether such a kill says that the container needs more. The other two say that the node is short.
 */
bool oom_class_is_own(enum oom_class c);
