/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/cgroup/cgtree.h"
#include "agent/observe/observe.h"

/* ---- which */

static bool matches(const char *pattern, const char *path)
{
	if (pattern[0] == '/')
		return fnmatch(pattern, path, 0) == 0;
	for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/'))
		if (fnmatch(pattern, at + 1, 0) == 0)
			return true;
	return false;
}

bool observe_wants(char *const *patterns, const char *path, bool leaf)
{
	if (!patterns || !patterns[0])
		return leaf && path[1];
	for (; *patterns; patterns++) {
		if (leaf ? matches(*patterns, path) : strcmp(*patterns, path) == 0)
			return true;
	}
	return false;
}

void observed_event(struct observed *o, const struct clock *clock, enum observed_event_kind kind,
	enum oom_class class)
{
	o->events[o->n_events++ % OBSERVE_EVENTS_MAX] = (struct observed_event){
		.t_ns = clock_wall_usec(clock) * NSEC_PER_USEC, .kind = kind, .class = class};
}

/* ---- pods */

/* Opens a path of the tree; the root itself is "/". */
static int open_dir(const struct cgroot *root, const char *path)
{
	return openat(
		root->fd, path[1] ? path + 1 : ".", O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static size_t parent_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

/* Parent of "/a/b" is "/a", of "/a" is "/"; owned, NULL when there is none or no memory. */
static char *parent_of(const char *path)
{
	size_t n = parent_length(path);

	if (!path[1])
		return NULL;
	return n ? str_dup((struct str){path, n}) : str_dup(STR("/"));
}

static void pod_release(struct observe_table *t, struct observed_pod *pod)
{
	if (!pod || --pod->users > 0)
		return;
	for (struct observed_pod **p = &t->pods; *p; p = &(*p)->next) {
		if (*p != pod)
			continue;
		*p = pod->next;
		break;
	}
	oomwatch_pod_remove(t->oomwatch, &pod->watch);
	closep(&pod->dirfd);
	closep(&pod->node_dirfd);
	free(pod->path);
	free(pod);
}

static struct observed_pod *pod_create(struct observe_table *t, const char *path)
{
	struct observed_pod *pod = calloc(1, sizeof(*pod));
	_cleanup_free_ char *node = parent_of(path);

	if (!pod)
		return NULL;
	pod->path = str_dup(str_of(path));
	pod->dirfd = open_dir(t->root, path);
	pod->node_dirfd = node ? open_dir(t->root, node) : -1;
	if (!pod->path || pod->dirfd < 0) {
		closep(&pod->dirfd);
		closep(&pod->node_dirfd);
		free(pod->path);
		free(pod);
		return NULL;
	}
	oomwatch_pod_add(
		t->oomwatch, &pod->watch, pod->dirfd, pod->node_dirfd, OOM_KILLS_UNKNOWN, pod);
	pod->next = t->pods;
	t->pods = pod;
	return pod;
}

static bool is_parent(const char *parent, const char *path)
{
	size_t n = parent_length(path);

	if (n == 0)
		return !parent[1];
	return strlen(parent) == n && memcmp(parent, path, n) == 0;
}

/* A directory that was removed and made again is another one. */
static bool still_there(const struct observe_table *t, const struct observed_pod *pod)
{
	const char *path = pod->path[1] ? pod->path + 1 : ".";
	struct stat held, found;

	return fstat(pod->dirfd, &held) == 0 &&
	       fstatat(t->root->fd, path, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
	       held.st_ino == found.st_ino && held.st_dev == found.st_dev;
}

/* The one that holds path; taken once more. */
static struct observed_pod *pod_acquire(struct observe_table *t, const char *path)
{
	struct observed_pod *pod = t->pods;

	while (pod && !(is_parent(pod->path, path) && still_there(t, pod)))
		pod = pod->next;
	if (!pod) {
		_cleanup_free_ char *parent = parent_of(path);

		pod = parent ? pod_create(t, parent) : NULL;
	}
	if (pod)
		pod->users++;
	return pod;
}

/* ---- cgroups */

static void leave(struct observe_table *t, struct observed *o)
{
	if (!o->here)
		return;
	if (o->pod)
		oomwatch_child_remove(t->oomwatch, &o->pod->watch, &o->watch);
	sampler_remove(t->sampler, &o->container);
	cgleaf_finish(&o->container.leaf, &t->sampler->io);
	pod_release(t, o->pod);
	o->pod = NULL;
	o->here = false;
}

/* Opens the directory and has it sampled and watched. */
static void join(struct observe_table *t, struct observed *o)
{
	struct cgleaf leaf;
	/* The root itself has no parent, and none of the files of one. */
	struct observed_pod *pod = o->path[1] ? pod_acquire(t, o->path) : NULL;
	const char *path = o->path[1] ? o->path + 1 : ".";

	if (o->path[1] && !pod) {
		t->refused++; /* until the next scan */
		return;
	}
	if (cgleaf_open(&leaf, t->root->fd, path, pod ? pod->dirfd : -1) != CG_OK) {
		pod_release(t, pod);
		return;
	}
	container_init(&o->container, &leaf, &o->usage, t->knobs);
	o->container.owner = o;
	o->pod = pod;
	o->here = true;
	if (usage_any(&o->usage))
		usage_restart(&o->usage, clock_wall_usec(t->clock) * NSEC_PER_USEC);
	sampler_add(t->sampler, &o->container);
	if (pod)
		oomwatch_child_add(t->oomwatch, &pod->watch, &o->watch, leaf.dirfd,
			OOM_KILLS_UNKNOWN, t->scanned, o);
}

/* Where path stands, or where it belongs, in the ordered list. */
static struct observed **place_of(struct observe_table *t, const char *path)
{
	struct observed **p = &t->first;

	while (*p && strcmp((*p)->path, path) < 0)
		p = &(*p)->next;
	return p;
}

static void forget(struct observe_table *t, struct observed *o)
{
	*place_of(t, o->path) = o->next;
	t->n--;
	leave(t, o);
	free(o->path);
	free(o);
}

/* Makes room for a new cgroup by forgetting one that is gone. */
static bool make_room(struct observe_table *t)
{
	for (struct observed *o = t->first; o; o = o->next) {
		if (o->here)
			continue;
		forget(t, o);
		return true;
	}
	return false;
}

static struct observed *create(struct observe_table *t, const char *path)
{
	struct observed *o, **place;

	if (t->n >= OBSERVED_MAX && !make_room(t))
		return NULL;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->path = str_dup(str_of(path));
	if (!o->path) {
		free(o);
		return NULL;
	}
	usage_init(&o->usage, t->model);
	place = place_of(t, path);
	o->next = *place;
	*place = o;
	t->n++;
	return o;
}

static struct observed *find(struct observe_table *t, const char *path)
{
	struct observed *o = *place_of(t, path);

	return o && strcmp(o->path, path) == 0 ? o : NULL;
}

static enum cgtree_advice visit(const struct cgtree_dir *dir, void *arg)
{
	struct observe_table *t = arg;
	struct observed *o = find(t, dir->path);

	if (!observe_wants(t->patterns, dir->path, dir->leaf)) {
		/* It has children by now and is no leaf any more: what is in it is told by them. */
		if (o && o->here)
			forget(t, o);
		return CGTREE_DESCEND;
	}
	if (!o)
		o = create(t, dir->path);
	if (!o) {
		t->refused++;
		return CGTREE_DESCEND;
	}
	if (o->here && cgleaf_look(&o->container.leaf, dir->fd, ".") == CG_REPLACED) {
		sampler_gone(t->sampler, &o->container);
		leave(t, o);
	}
	if (!o->here)
		join(t, o);
	return CGTREE_DESCEND;
}

int observe_table_scan(struct observe_table *t, struct err *e)
{
	int r;

	for (struct observed *o = t->first; o; o = o->next)
		if (o->here && o->container.gone)
			leave(t, o);
	t->refused = 0;
	r = cgtree_walk(t->root->fd, visit, t, &t->cut);
	if (r < 0)
		return err_set(e, -r, "%.200s: %s", t->root->path, strerror(-r));
	t->scanned = true;
	return 0;
}

void observe_table_finish(struct observe_table *t)
{
	while (t->first)
		forget(t, t->first);
}
