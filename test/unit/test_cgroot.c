/* SPDX-License-Identifier: Apache-2.0 */
/* Where cgroup v2 is mounted, and walking a tree of directories. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "agent/cgroup/cgroot.h"
#include "agent/cgroup/cgtree.h"

static void mounts_of_the_field(void **state)
{
	static const struct {
		const char *mounts, *path;
		bool v1;
	} cases[] = {
		{"", "", false},
		{"proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n",
			"/sys/fs/cgroup", false},
		{"cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n", "", true},
		{"cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
		 "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n",
			"/sys/fs/cgroup/unified", true},
		/* a node's tree mounted into a container, beside its own */
		{"cgroup /sys/fs/cgroup cgroup2 ro 0 0\ncgroup2 /host/cgroup cgroup2 ro 0 0\n",
			"/sys/fs/cgroup", false},
		{"cgroup2 /a cgroup2 rw 0 0\ncgroup2 /b cgroup2 rw 0 0\n", "/b", false},
		{"cgroup2 /with\\040blank cgroup2 rw 0 0\n", "/with blank", false},
		{"cgroup2 /cut\\04 cgroup2 rw 0 0\n", "/cut\\04", false},
		{"cgroup2", "", false},
		{"cgroup2 ", "", false},
		{"\n\n \n", "", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char path[CGROOT_PATH_MAX];
		bool v1;

		cgroot_parse_mounts(str_of(cases[i].mounts), path, &v1);
		if (strcmp(path, cases[i].path) != 0 || v1 != cases[i].v1)
			fail_msg("%s: %s, %d", cases[i].mounts, path, v1);
	}
}

static void a_mount_path_that_is_too_long_is_left_out(void **state)
{
	char mounts[CGROOT_PATH_MAX + 64], path[CGROOT_PATH_MAX];
	size_t n = (size_t)snprintf(mounts, sizeof(mounts), "cgroup2 /");
	bool v1;

	memset(mounts + n, 'x', CGROOT_PATH_MAX);
	(void)snprintf(mounts + n + CGROOT_PATH_MAX, 32, " cgroup2 rw 0 0\n");
	cgroot_parse_mounts(str_of(mounts), path, &v1);
	assert_string_equal(path, "");
}

static void an_ordinary_directory_is_a_recorded_tree(void **state)
{
	struct cgroot r;
	struct err e;

	assert_int_equal(cgroot_open(&r, "/usr", &e), 0);
	assert_int_equal(r.kind, CGROOT_PLAIN);
	assert_int_equal(cgroot_check(&r, &e), 0);
	cgroot_finish(&r);
	assert_int_equal(cgroot_open(&r, "/no/such/place", &e), -ENOENT);
	assert_non_null(strstr(e.text, "/no/such/place"));
}

static void v1_and_hybrid_are_refused_with_what_to_do(void **state)
{
	static const enum cgroot_kind kinds[] = {CGROOT_V1, CGROOT_HYBRID};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct cgroot r = {.fd = -1, .path = "/sys/fs/cgroup", .kind = kinds[i]};
		struct err e;

		assert_int_equal(cgroot_check(&r, &e), -EOPNOTSUPP);
		assert_non_null(strstr(e.text, "systemd.unified_cgroup_hierarchy"));
	}
}

/* ---- walking */

struct tree {
	char path[64];
	int fd;
	char seen[1024];
	size_t n;
	const char *skip;
	const char *stop;
};

static void make(struct tree *t, const char *directory)
{
	assert_int_equal(mkdirat(t->fd, directory, 0755), 0);
}

static int setup(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));
	int file;

	assert_non_null(t);
	(void)snprintf(t->path, sizeof(t->path), "/tmp/pernode-tree-XXXXXX");
	assert_non_null(mkdtemp(t->path));
	t->fd = open(t->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	make(t, "a");
	make(t, "a/b");
	make(t, "a/b/c");
	make(t, "d");
	assert_int_equal(symlinkat("/", t->fd, "d/loop"), 0);
	assert_int_equal(symlinkat("..", t->fd, "a/up"), 0);
	file = openat(t->fd, "d/cgroup.procs", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	assert_true(file >= 0);
	(void)close(file);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	static const char *const files[] = {"d/loop", "a/up", "d/cgroup.procs"};
	static const char *const directories[] = {"a/b/c", "a/b", "a", "d"};
	struct tree *t = *state;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		assert_int_equal(unlinkat(t->fd, files[i], 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		assert_int_equal(unlinkat(t->fd, directories[i], AT_REMOVEDIR), 0);
	(void)close(t->fd);
	assert_int_equal(rmdir(t->path), 0);
	free(t);
	return 0;
}

static enum cgtree_advice note(const struct cgtree_dir *dir, void *arg)
{
	struct tree *t = arg;
	const char *slash = strrchr(dir->path, '/');

	assert_string_equal(dir->name, dir->path[1] ? slash + 1 : "");
	t->n += (size_t)snprintf(
		t->seen + t->n, sizeof(t->seen) - t->n, "%s%s ", dir->path, dir->leaf ? "!" : "");
	if (t->skip && strcmp(t->skip, dir->path) == 0)
		return CGTREE_SKIP;
	return t->stop && strcmp(t->stop, dir->path) == 0 ? CGTREE_STOP : CGTREE_DESCEND;
}

static void every_directory_is_seen_parents_first_and_no_link_followed(void **state)
{
	struct tree *t = *state;
	bool cut = true;

	assert_int_equal(cgtree_walk(t->fd, note, t, &cut), 5);
	assert_false(cut);
	if (strcmp(t->seen, "/ /a /a/b /a/b/c! /d! ") != 0)
		assert_string_equal(t->seen, "/ /d! /a /a/b /a/b/c! ");
}

static void a_visitor_may_skip_or_stop(void **state)
{
	struct tree *t = *state;

	t->skip = "/a";
	assert_int_equal(cgtree_walk(t->fd, note, t, NULL), 3);
	assert_null(strstr(t->seen, "/a/b"));
	t->n = 0;
	t->skip = NULL;
	t->stop = "/";
	assert_int_equal(cgtree_walk(t->fd, note, t, NULL), 1);
}

static void a_tree_that_is_too_deep_is_cut(void **state)
{
	char path[256] = "x";
	struct tree *t = *state;
	bool cut = false;

	for (unsigned int i = 0; i < CGTREE_DEPTH_MAX + 3; i++) {
		make(t, path);
		memcpy(path + strlen(path), "/x", 3);
	}
	assert_true(cgtree_walk(t->fd, note, t, &cut) > 0);
	assert_true(cut);
	for (unsigned int i = 0; i < CGTREE_DEPTH_MAX + 3; i++) {
		path[strlen(path) - 2] = 0;
		assert_int_equal(unlinkat(t->fd, path, AT_REMOVEDIR), 0);
	}
}

static void a_root_that_cannot_be_read_is_an_error(void **state)
{
	struct tree *t = *state;

	assert_int_equal(cgtree_walk(-1, note, t, NULL), -EBADF);
}

#define TREE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mounts_of_the_field),
		cmocka_unit_test(a_mount_path_that_is_too_long_is_left_out),
		cmocka_unit_test(an_ordinary_directory_is_a_recorded_tree),
		cmocka_unit_test(v1_and_hybrid_are_refused_with_what_to_do),
		TREE_TEST(every_directory_is_seen_parents_first_and_no_link_followed),
		TREE_TEST(a_visitor_may_skip_or_stop),
		TREE_TEST(a_tree_that_is_too_deep_is_cut),
		TREE_TEST(a_root_that_cannot_be_read_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
