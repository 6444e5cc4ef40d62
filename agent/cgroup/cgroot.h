/* SPDX-License-Identifier: Apache-2.0 */
/* The mount point of cgroup v2, and what kind of hierarchy it is. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

#define CGROOT_PATH_MAX 4096U

enum cgroot_kind {
	CGROOT_V2,
	CGROOT_V1,     /* controllers mounted one by one */
	CGROOT_HYBRID, /* v2 is there but has no memory controller: that is with v1 */
	CGROOT_PLAIN,  /* an ordinary directory: a recorded tree */
};

struct cgroot {
	int fd; /* O_PATH */
	char path[CGROOT_PATH_MAX];
	enum cgroot_kind kind;
};

/* Opens path, or where the machine has cgroup v2 when path is NULL or empty. A v1 or hybrid
 * hierarchy is opened too: look at kind. -ENOENT: nothing of that kind is mounted. */
int cgroot_open(struct cgroot *ret, const char *path, struct err *e);
void cgroot_finish(struct cgroot *r);

/* 0, or -EOPNOTSUPP with the sentence that says why this hierarchy cannot be measured and what to
 * do. */
int cgroot_check(const struct cgroot *r, struct err *e);

/* Pure: in the text of /proc/mounts, where cgroup2 is mounted (the last one, which is on top), and
 * whether v1 controllers are. ret_path[0] is 0 when there is none. */
void cgroot_parse_mounts(struct str mounts, char ret_path[CGROOT_PATH_MAX], bool *ret_v1);
