/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cgroup/cgfind.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/cgroup/cgtree.h"
#include "base/macros.h"

/* What one directory of the tree is to a walk. */
typedef int (*visit_fn)(void *arg, const char *path, const char *name);

void cgfind_init(struct cgfind *f, int root_fd)
{
	*f = (struct cgfind){.root_fd = root_fd};
}

static void forget_parents(struct cgfind *f)
{
	for (unsigned int i = 0; i < f->n_parents; i++)
		free(f->parents[i]);
	f->n_parents = 0;
}

void cgfind_finish(struct cgfind *f)
{
	forget_parents(f);
}

static int path_join(char out[CGROOT_PATH_MAX], const char *directory, const char *name)
{
	int n = snprintf(out, CGROOT_PATH_MAX, "%s%s%s", directory, *directory ? "/" : "", name);

	return n < 0 || (unsigned int)n >= CGROOT_PATH_MAX ? -ENAMETOOLONG : 0;
}

struct children {
	visit_fn visit;
	void *arg;
	const char *path;
	int r;
};

static enum cgtree_advice visit_child(const char *name, void *arg)
{
	struct children *c = arg;

	c->r = c->visit(c->arg, c->path, name);
	return c->r ? CGTREE_STOP : CGTREE_SKIP;
}

/* Calls visit for each child directory of path until it returns non-zero, and returns that. */
static int each_directory(const struct cgfind *f, const char *path, visit_fn visit, void *arg)
{
	struct children c = {visit, arg, path, 0};
	_cleanup_close_ int fd = openat(
		f->root_fd, *path ? path : ".", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	int r = cgtree_children(fd, visit_child, &c);
	return c.r ? c.r : MIN(r, 0);
}

/* ---- the walk: where pods are ---- */

struct walk {
	struct cgfind *f;
	unsigned int depth;
	unsigned int visits;
};

static int remember_parent(struct cgfind *f, const char *path)
{
	if (f->n_parents == CGFIND_PARENTS_MAX)
		return 0;
	char *copy = str_dup(str_of(path));
	if (!copy)
		return -ENOMEM;
	f->parents[f->n_parents++] = copy;
	return 0;
}

static int visit_in_kubepods(void *arg, const char *directory, const char *name)
{
	char path[CGROOT_PATH_MAX];

	if (cgname_parse(str_of(name)).kind != CGNAME_QOS || path_join(path, directory, name) < 0)
		return 0;
	return remember_parent(arg, path);
}

static int visit_in_walk(void *arg, const char *directory, const char *name)
{
	struct walk *w = arg;
	enum cgname_kind kind = cgname_parse(str_of(name)).kind;
	char path[CGROOT_PATH_MAX];
	int r;

	if (w->visits == CGFIND_VISITS_MAX) {
		w->f->cut = true;
		return 0;
	}
	w->visits++;
	if (path_join(path, directory, name) < 0)
		return 0;
	if (kind == CGNAME_KUBEPODS) {
		r = remember_parent(w->f, path);
		if (r == 0)
			r = each_directory(w->f, path, visit_in_kubepods, w->f);
		return r == -ENOMEM ? r : 0;
	}
	/* A container outside of kubepods may be a whole node: kind's are docker's. */
	if ((kind != CGNAME_OTHER && kind != CGNAME_CONTAINER) || w->depth + 1 >= CGFIND_DEPTH_MAX)
		return 0;
	w->depth++;
	r = each_directory(w->f, path, visit_in_walk, w);
	w->depth--;
	return r == -ENOMEM
		       ? r
		       : 0; /* a directory that vanished or cannot be read hides nothing else */
}

static int walk(struct cgfind *f, uint64_t now_usec)
{
	struct walk w = {.f = f};

	forget_parents(f);
	f->cut = false;
	f->walked = true;
	f->walked_usec = now_usec;
	f->walks++;
	return each_directory(f, "", visit_in_walk, &w);
}

/* ---- pods ---- */

struct pod_search {
	struct str uid;
	char *path;
};

static int visit_for_pod(void *arg, const char *directory, const char *name)
{
	struct pod_search *s = arg;
	struct cgname n = cgname_parse(str_of(name));

	if (n.kind != CGNAME_POD || !pod_uid_same(n.uid, s->uid))
		return 0;
	int r = path_join(s->path, directory, name);
	return r < 0 ? r : 1;
}

static int search_parents(const struct cgfind *f, struct pod_search *s)
{
	for (unsigned int i = 0; i < f->n_parents; i++) {
		int r = each_directory(f, f->parents[i], visit_for_pod, s);
		if (r == 1)
			return 0;
		if (r < 0 && r != -ENOENT)
			return r;
	}
	return -ENOENT;
}

int cgfind_pod(struct cgfind *f, struct str uid, uint64_t now_usec, char ret_path[CGROOT_PATH_MAX],
	struct err *e)
{
	char path[CGROOT_PATH_MAX] = "";
	struct pod_search s = {.uid = uid, .path = path};

	int r = search_parents(f, &s);
	if (r == -ENOENT && (!f->walked || now_usec - f->walked_usec >= CGFIND_WALK_USEC)) {
		r = walk(f, now_usec);
		if (r == 0)
			r = search_parents(f, &s);
	}
	if (r == -ENOENT && f->n_parents == 0)
		return err_set(e, ENOENT, "no kubepods cgroup below the cgroup root%s",
			f->cut ? " in the first directories that were looked at" : "");
	if (r == -ENOENT)
		return err_set(
			e, ENOENT, "no cgroup of pod %.*s below %s", STR_ARG(uid), f->parents[0]);
	if (r < 0)
		return err_set(e, -r, "looking for the cgroup of pod %.*s: %s", STR_ARG(uid),
			strerror(-r));
	memcpy(ret_path, path, strlen(path) + 1);
	return 0;
}

/* ---- containers ---- */

struct container_search {
	struct str uid, id;
	char *path;
	bool virtual_machine;
	unsigned int visits, depth;
	const struct cgfind *f;
};

static int visit_for_container(void *arg, const char *directory, const char *name)
{
	struct container_search *s = arg;
	struct cgname n = cgname_parse(str_of(name));

	s->virtual_machine = s->virtual_machine || n.kind == CGNAME_KATA;
	if (n.kind != CGNAME_CONTAINER || !str_eq(n.id, s->id))
		return 0;
	int r = path_join(s->path, directory, name);
	return r < 0 ? r : 1;
}

#define MISPLACED_DEPTH_MAX 3U /* they were seen at the root and below the runtime's service */
#define MISPLACED_VISITS_MAX 1024U

static int visit_for_misplaced(void *arg, const char *directory, const char *name)
{
	struct container_search *s = arg;
	struct cgname n = cgname_parse(str_of(name));
	char path[CGROOT_PATH_MAX];

	if (s->visits++ >= MISPLACED_VISITS_MAX || path_join(path, directory, name) < 0)
		return 0;
	if (n.kind == CGNAME_POD_CONTAINER && str_eq(n.id, s->id) && pod_uid_same(n.uid, s->uid)) {
		memcpy(s->path, path, strlen(path) + 1);
		return 1;
	}
	if (n.kind != CGNAME_OTHER || s->depth + 1 >= MISPLACED_DEPTH_MAX)
		return 0;
	s->depth++;
	int r = each_directory(s->f, path, visit_for_misplaced, s);
	s->depth--;
	return r == 1 ? 1 : 0;
}

int cgfind_container(struct cgfind *f, const char *pod_path, struct str uid, struct str id,
	char ret_path[CGROOT_PATH_MAX], struct err *e)
{
	char path[CGROOT_PATH_MAX] = "";
	struct container_search s = {.uid = uid, .id = id, .path = path, .f = f};

	int r = *pod_path ? each_directory(f, pod_path, visit_for_container, &s)
			  : each_directory(f, "", visit_for_misplaced, &s);
	if (r == 1) {
		memcpy(ret_path, path, strlen(path) + 1);
		return 0;
	}
	if (s.virtual_machine)
		return err_set(e, EOPNOTSUPP,
			"%s is a virtual machine: its containers cannot be seen from this node",
			pod_path);
	if (r < 0 && r != -ENOENT)
		return err_set(e, -r, "looking for container %.12s…: %s", id.p, strerror(-r));
	return err_set(e, ENOENT, "no cgroup of container %.*s… %s%s", (int)MIN(id.n, (size_t)12),
		id.p, *pod_path ? "in " : "outside of kubepods", pod_path);
}

struct each_container {
	int (*each)(void *arg, struct str id, const char *name);
	void *arg;
};

static int visit_each(void *arg, const char *directory, const char *name)
{
	struct each_container *s = arg;
	struct cgname n = cgname_parse(str_of(name));

	(void)directory;
	return n.kind == CGNAME_CONTAINER ? s->each(s->arg, n.id, name) : 0;
}

int cgfind_each(struct cgfind *f, const char *pod_path,
	int (*each)(void *arg, struct str id, const char *name), void *arg)
{
	struct each_container s = {each, arg};

	return each_directory(f, pod_path, visit_each, &s);
}
