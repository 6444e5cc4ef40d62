/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cgroup/cgroot.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "agent/cgroup/cgfile.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/macros.h"

#define MOUNTS_MAX (4U << 20)
#define USUAL_PATH "/sys/fs/cgroup"

/* The kernel writes blanks, tabs, newlines and backslashes of a path as \ooo. */
static int unescape(struct str s, char out[CGROOT_PATH_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (c == '\\' && i + 3 < s.n && s.p[i + 1] >= '0' && s.p[i + 1] <= '3') {
			c = (char)((s.p[i + 1] - '0') << 6 | (s.p[i + 2] - '0') << 3 |
				   (s.p[i + 3] - '0'));
			i += 3;
		}
		if (n + 1 >= CGROOT_PATH_MAX)
			return -ENAMETOOLONG;
		out[n++] = c;
	}
	out[n] = 0;
	return 0;
}

void cgroot_parse_mounts(struct str mounts, char ret_path[CGROOT_PATH_MAX], bool *ret_v1)
{
	bool v1 = false, usual = false;

	ret_path[0] = 0;
	while (mounts.n > 0) {
		struct str line = str_cut(&mounts, '\n'), path, type;

		(void)str_cut(&line, ' ');
		path = str_cut(&line, ' ');
		type = str_cut(&line, ' ');
		if (str_is(type, "cgroup"))
			v1 = true;
		if (!str_is(type, "cgroup2") || usual)
			continue;
		/* The usual place wins: a pod that mounts the node's tree puts it there. */
		usual = str_is(path, USUAL_PATH);
		if (unescape(path, ret_path) < 0)
			ret_path[0] = 0;
	}
	*ret_v1 = v1;
}

static int find_mount(char path[CGROOT_PATH_MAX], bool *ret_v1, struct err *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT(MOUNTS_MAX);
	int r = file_read(AT_FDCWD, "/proc/self/mounts", &b, e);

	if (r < 0)
		return r;
	cgroot_parse_mounts(buf_str(&b), path, ret_v1);
	return 0;
}

static bool is_magic(int fd, long magic)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == magic;
}

static enum cgroot_kind kind_of(int fd)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	if (is_magic(fd, CGROUP_SUPER_MAGIC))
		return CGROOT_V1;
	if (!is_magic(fd, CGROUP2_SUPER_MAGIC)) {
		/* With v1 the usual place is a tmpfs with one mount per controller. */
		_cleanup_close_ int memory = openat(fd, "memory", O_PATH | O_DIRECTORY | O_CLOEXEC);

		return memory >= 0 && is_magic(memory, CGROUP_SUPER_MAGIC) ? CGROOT_V1
									   : CGROOT_PLAIN;
	}
	if (file_read(fd, "cgroup.controllers", &b, NULL) == 0 &&
		!cgfile_has_controller(buf_str(&b), "memory"))
		return CGROOT_HYBRID;
	return CGROOT_V2;
}

int cgroot_open(struct cgroot *ret, const char *path, struct err *e)
{
	struct cgroot r = {.fd = -1};
	bool v1 = false;
	int error;

	if (path && path[0]) {
		error = str_copy(r.path, sizeof(r.path), str_of(path));
		if (error < 0)
			return err_set(e, ENAMETOOLONG, "cgroup root: the path is too long");
	} else {
		error = find_mount(r.path, &v1, e);
		if (error < 0)
			return error;
		if (!r.path[0])
			return err_set(e, ENOENT,
				v1 ? "this machine has cgroup v1 only; boot with "
				     "systemd.unified_cgroup_hierarchy=1"
				   : "no cgroup v2 is mounted; mount one with: mount -t cgroup2 "
				     "none " USUAL_PATH);
	}
	r.fd = open(r.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r.fd < 0)
		return err_set(e, errno, "%.200s: %s", r.path, strerror(errno));
	r.kind = kind_of(r.fd);
	*ret = r;
	return 0;
}

void cgroot_finish(struct cgroot *r)
{
	if (r->fd >= 0)
		(void)close(r->fd);
	r->fd = -1;
}

int cgroot_check(const struct cgroot *r, struct err *e)
{
	switch (r->kind) {
	case CGROOT_V1:
		return err_set(e, EOPNOTSUPP,
			"%.200s: this is cgroup v1; only v2 is supported: boot with "
			"systemd.unified_cgroup_hierarchy=1",
			r->path);
	case CGROOT_HYBRID:
		return err_set(e, EOPNOTSUPP,
			"%.200s: cgroup v2 without the memory controller (a hybrid hierarchy, or "
			"cgroup_disable=memory); boot with systemd.unified_cgroup_hierarchy=1",
			r->path);
	case CGROOT_V2:
	case CGROOT_PLAIN:
		break;
	}
	return 0;
}
