/* SPDX-License-Identifier: Apache-2.0 */
/* Where on this node a pod's containers live. Nothing is assumed about prefixes, drivers or
 * runtimes: the tree itself is looked at, and remembered is only where pods are found (the kubepods
 * directories and their quality-of-service levels), so that the next look-up reads three
 * directories and not the whole tree. Paths are relative to the root. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/cgroup/cgpath.h"
#include "agent/cgroup/cgroot.h"
#include "base/err.h"

#define CGFIND_PARENTS_MAX \
	16U /* directories that hold pods: a kubepods and two levels, for some nested kubelets */
#define CGFIND_DEPTH_MAX 6U     /* of a kubepods below the root: kind in docker in a slice has 5 */
#define CGFIND_VISITS_MAX 4096U /* directories of one walk */
#define CGFIND_WALK_USEC 5000000U /* at least this long between two walks of the tree */
#define CGFIND_NAME_MAX 256U      /* a directory's name with its NUL */

struct cgfind {
	int root_fd; /* not owned */
	unsigned int n_parents;
	char *parents[CGFIND_PARENTS_MAX];
	bool walked;
	uint64_t walked_usec;
	uint64_t walks; /* ever made */
	bool cut;       /* the last walk ended at CGFIND_VISITS_MAX */
};

void cgfind_init(struct cgfind *f, int root_fd);
void cgfind_finish(struct cgfind *f);

/* A pod's directory. now_usec is monotonic: when the pod is in none of the known places the tree is
 * walked again, if that was not just done. -ENOENT: not (yet) there, e says what was looked at;
 * -ENAMETOOLONG, -ENOMEM. */
int cgfind_pod(struct cgfind *f, struct str uid, uint64_t now_usec, char ret_path[CGROOT_PATH_MAX],
	struct err *e);

/* A container's directory. pod_path as found, or empty to look for a misplaced one (a systemd path
 * that the runtime used as a plain name: kubepods-…-pod<uid>.slice:cri-containerd:<id>). -ENOENT:
 * not (yet) there; -EOPNOTSUPP: the pod is a virtual machine whose containers cannot be seen from
 * this node. */
int cgfind_container(struct cgfind *f, const char *pod_path, struct str uid, struct str id,
	char ret_path[CGROOT_PATH_MAX], struct err *e);

/* Every container directory of a pod, its sandbox included. Stops when each returns non-zero and
 * returns that. */
int cgfind_each(struct cgfind *f, const char *pod_path,
	int (*each)(void *arg, struct str id, const char *name), void *arg);
