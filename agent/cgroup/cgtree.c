/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cgroup/cgtree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/macros.h"

struct walk {
	enum cgtree_advice (*visit)(const struct cgtree_dir *dir, void *arg);
	void *arg;
	char path[CGTREE_PATH_MAX];
	size_t n;           /* of path; 0 stands for the root */
	bool counted_links; /* the file system's link counts tell about child directories */
	bool cut, stop;
	unsigned int dirs;
};

static bool is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Child directories one after the other; other entries are passed over. NULL at the end. */
static const char *next_directory(DIR *dir)
{
	struct dirent *entry;

	while ((entry = readdir(dir))) {
		struct stat st;

		if (is_dots(entry->d_name))
			continue;
		if (entry->d_type == DT_DIR)
			return entry->d_name;
		if (entry->d_type == DT_UNKNOWN &&
			fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISDIR(st.st_mode))
			return entry->d_name;
	}
	return NULL;
}

/* A second, independent stream over an open directory. */
static DIR *open_stream(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;

	if (!dir)
		closep(&copy);
	return dir;
}

/* On cgroup2 a directory has 2 links and one per child: that saves reading the fifty entries of
 * every leaf. */
static bool has_children(const struct walk *w, int fd)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct stat st;

	if (w->counted_links)
		return fstat(fd, &st) == 0 && st.st_nlink > 2;
	dir = open_stream(fd);
	return dir && next_directory(dir);
}

static void walk_dir(struct walk *w, int fd, const char *name, unsigned int depth)
{
	_cleanup_closedir_ DIR *dir = NULL;
	bool children = has_children(w, fd);
	struct cgtree_dir d = {.path = w->n ? w->path : "/",
		.name = name,
		.fd = fd,
		.leaf = !children,
		.depth = depth};
	enum cgtree_advice advice;
	size_t n = w->n;
	const char *child;

	w->dirs++;
	advice = w->visit(&d, w->arg);
	w->stop = advice == CGTREE_STOP;
	if (advice != CGTREE_DESCEND || !children)
		return;
	if (depth >= CGTREE_DEPTH_MAX || !(dir = open_stream(fd))) {
		w->cut |= depth >= CGTREE_DEPTH_MAX;
		return;
	}
	while (!w->stop && (child = next_directory(dir))) {
		size_t length = strlen(child);
		_cleanup_close_ int child_fd = -1;

		if (w->dirs >= CGTREE_DIRS_MAX || n + 1 + length >= sizeof(w->path)) {
			w->cut = true;
			return;
		}
		child_fd = openat(fd, child, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (child_fd < 0)
			continue; /* removed meanwhile, or not ours to read */
		w->path[n] = '/';
		memcpy(w->path + n + 1, child, length + 1);
		w->n = n + 1 + length;
		walk_dir(w, child_fd, w->path + n + 1, depth + 1);
		w->n = n;
		w->path[n] = 0;
	}
}

int cgtree_walk(int root_fd, enum cgtree_advice (*visit)(const struct cgtree_dir *dir, void *arg),
	void *arg, bool *ret_cut)
{
	_cleanup_close_ int fd = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct walk w = {.visit = visit, .arg = arg};
	struct statfs fs;

	if (fd < 0)
		return -errno;
	w.counted_links = fstatfs(fd, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
	walk_dir(&w, fd, "", 0);
	if (ret_cut)
		*ret_cut = w.cut;
	return (int)w.dirs;
}

int cgtree_children(int dirfd, enum cgtree_advice (*visit)(const char *name, void *arg), void *arg)
{
	_cleanup_closedir_ DIR *dir = open_stream(dirfd);
	const char *name;
	int n = 0;

	if (!dir)
		return -errno;
	while ((name = next_directory(dir))) {
		n++;
		if (visit(name, arg) == CGTREE_STOP)
			break;
	}
	return n;
}
