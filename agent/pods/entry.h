/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a container that a pod of this node names, to whoever only looks. */
#pragma once

struct container;

/* What became of a container that a pod of this node names. */
enum container_state {
	CONTAINER_SAMPLED,
	CONTAINER_WAITING,        /* the kubelet or the runtime has not made its cgroup yet */
	CONTAINER_NOT_FOUND,      /* looked for long enough; looked for again now and then */
	CONTAINER_NOT_MEASURABLE, /* its cgroup has no figures of it: gVisor, Kata, memory
				     controller off */
	CONTAINER_HELD,           /* a cgroup that is read while it is not known yet whose it is */
	CONTAINER_STATES
};
/* "sampled", "waiting", "not found", "not measurable", "held" */
const char *container_state_name(enum container_state state);

/* Strings are "" where nothing is known, never NULL; valid until the loop goes on. */
struct container_entry {
	const char *namespace, *daemonset, *container; /* "" for a held one */
	const char *pod, *pod_uid;
	const char *container_id; /* as the runtime names it, without "containerd://" */
	const char *cgroup;       /* path below the cgroup root */
	enum container_state state;
	const char *reason;               /* one sentence unless sampled */
	const struct container *measured; /* NULL unless sampled or held */
};
