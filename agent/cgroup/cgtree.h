/* SPDX-License-Identifier: Apache-2.0 */
/* Walking a cgroup tree. Bounded in depth and in directories, follows no symbolic link, and takes
 * directories that come and go while it walks for what they are. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"

#define CGTREE_DEPTH_MAX 24U
#define CGTREE_DIRS_MAX SIZE_OR_TINY(20000U, 64U) /* of one walk */
#define CGTREE_PATH_MAX 4096U

enum cgtree_advice {
	CGTREE_DESCEND,
	CGTREE_SKIP, /* not into this one */
	CGTREE_STOP, /* enough seen */
};

struct cgtree_dir {
	const char *path; /* from the root: "/kubepods/burstable"; "/" is the root itself */
	const char *name; /* its last component, "" for the root */
	int fd;           /* open for reading during the call */
	bool leaf;        /* without child directories */
	unsigned int depth;
};

/* Calls visit for every directory below root_fd and for root_fd itself, parents first. Returns the
 * number of directories seen, or -errno when the root cannot be read. *ret_cut (may be NULL): there
 * was more than CGTREE_DEPTH_MAX or CGTREE_DIRS_MAX allow. */
int cgtree_walk(int root_fd, enum cgtree_advice (*visit)(const struct cgtree_dir *dir, void *arg),
	void *arg, bool *ret_cut);

/* The same for the immediate child directories of dirfd; path is then the name. -ENOENT when dirfd
 * was removed. */
int cgtree_children(int dirfd, enum cgtree_advice (*visit)(const char *name, void *arg), void *arg);
