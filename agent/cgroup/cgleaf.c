/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cgroup/cgleaf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/num.h"

#define HELD_LIMIT \
	60000U /* descriptors; more are of no use: a node has at most some hundred containers */

static const char *const file_names[LEAF_FILES] = {
	[LEAF_CPU_STAT] = "cpu.stat",
	[LEAF_MEMORY_CURRENT] = "memory.current",
	[LEAF_MEMORY_STAT] = "memory.stat",
};

const char *cg_outcome_name(enum cg_outcome outcome)
{
	static const char *const names[CG_OUTCOMES] = {
		[CG_OK] = "ok",
		[CG_NOT_READ] = "not read yet",
		[CG_NO_FILE] = "no such file",
		[CG_NO_KEY] = "key missing",
		[CG_EMPTY] = "empty",
		[CG_MALFORMED] = "malformed",
		[CG_GONE] = "gone",
		[CG_REPLACED] = "replaced",
		[CG_UNSUPPORTED] = "not supported by this kernel",
		[CG_DENIED] = "permission denied",
		[CG_FAILED] = "read failed",
	};

	return names[outcome];
}

static enum cg_outcome of_errno(int error)
{
	switch (error) {
	case ENODEV:
		return CG_GONE;
	case ENOENT:
	case ENOTDIR:
		return CG_NO_FILE;
	case EOPNOTSUPP:
		return CG_UNSUPPORTED;
	case EACCES:
	case EPERM:
		return CG_DENIED;
	default:
		return CG_FAILED;
	}
}

/* What a parser of cgfile.h returned. */
static enum cg_outcome of_parse(int r)
{
	return r == 0 ? CG_OK : r == -ENODATA ? CG_EMPTY : CG_MALFORMED;
}

void cgio_init(struct cgio *io, unsigned int reserve)
{
	struct rlimit limit;

	io->held = 0;
	io->reopened = 0;
	io->held_max = 0;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	if (limit.rlim_cur < limit.rlim_max) {
		rlim_t before = limit.rlim_cur;

		limit.rlim_cur = MIN(limit.rlim_max, (rlim_t)(HELD_LIMIT + reserve));
		if (limit.rlim_cur < before || setrlimit(RLIMIT_NOFILE, &limit) < 0)
			limit.rlim_cur = before;
	}
	if (limit.rlim_cur > reserve)
		io->held_max = (unsigned int)MIN(limit.rlim_cur - reserve, (rlim_t)HELD_LIMIT);
}

enum cg_outcome cgio_read_fd(struct cgio *io, int fd, struct str *ret)
{
	ssize_t n;

	do
		n = pread(fd, io->buffer, sizeof(io->buffer), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return of_errno(errno);
	if (n == 0)
		return CG_EMPTY;
	if ((size_t)n == sizeof(io->buffer))
		return CG_MALFORMED;
	*ret = (struct str){io->buffer, (size_t)n};
	return CG_OK;
}

/* A removed directory answers ENOENT for every name. It is told from a missing file by a file that
 * every cgroup has; other file systems drop the link count. */
static bool is_removed(int dirfd)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(dirfd, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
		return faccessat(dirfd, "cgroup.controllers", F_OK, 0) < 0 && errno == ENOENT;
	return fstat(dirfd, &st) == 0 && st.st_nlink == 0;
}

enum cg_outcome cgio_read_at(struct cgio *io, int dirfd, const char *name, struct str *ret)
{
	_cleanup_close_ int fd =
		openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd >= 0)
		return cgio_read_fd(io, fd, ret);
	if (errno == ENOENT)
		return is_removed(dirfd) ? CG_GONE : CG_NO_FILE;
	return of_errno(errno);
}

enum cg_outcome cgio_read_number(struct cgio *io, int dirfd, const char *name, uint64_t *ret)
{
	struct str text;
	enum cg_outcome outcome = cgio_read_at(io, dirfd, name, &text);

	return outcome == CG_OK ? of_parse(cgfile_number(text, ret)) : outcome;
}

enum cg_outcome cgleaf_open(struct cgleaf *l, int dirfd, const char *path, int pod_dirfd)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0)
		return of_errno(errno);
	if (fstat(fd, &st) < 0)
		return CG_FAILED;
	*l = (struct cgleaf){.dirfd = fd, .device = st.st_dev, .inode = st.st_ino};
	for (size_t i = 0; i < LEAF_FILES; i++)
		l->fds[i] = -1;
	l->levels[LEVEL_SELF] = fd;
	l->levels[LEVEL_POD] = pod_dirfd;
	l->levels[LEVEL_CHILD] =
		openat(fd, "container", O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	(void)TAKE_FD(fd);
	return CG_OK;
}

void cgleaf_finish(struct cgleaf *l, struct cgio *io)
{
	cgleaf_release(l, io);
	closep(&l->levels[LEVEL_CHILD]);
	closep(&l->dirfd);
	l->dirfd = l->levels[LEVEL_SELF] = l->levels[LEVEL_CHILD] = l->levels[LEVEL_POD] = -1;
}

bool cgleaf_hold(struct cgleaf *l, struct cgio *io)
{
	if (l->held)
		return true;
	if (io->held + LEAF_FILES > io->held_max)
		return false;
	for (size_t i = 0; i < LEAF_FILES; i++)
		l->fds[i] = openat(l->dirfd, file_names[i], O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	io->held += LEAF_FILES;
	l->held = true;
	return true;
}

void cgleaf_release(struct cgleaf *l, struct cgio *io)
{
	if (!l->held)
		return;
	for (size_t i = 0; i < LEAF_FILES; i++) {
		closep(&l->fds[i]);
		l->fds[i] = -1;
	}
	io->held -= LEAF_FILES;
	l->held = false;
}

enum cg_outcome cgleaf_look(const struct cgleaf *l, int dirfd, const char *path)
{
	struct stat st;

	if (fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == ENODEV ? CG_GONE : of_errno(errno);
	return st.st_ino == l->inode && st.st_dev == l->device ? CG_OK : CG_REPLACED;
}

static enum cg_outcome read_file(
	struct cgleaf *l, struct cgio *io, enum cgleaf_file file, struct str *ret)
{
	if (l->fds[file] >= 0)
		return cgio_read_fd(io, l->fds[file], ret);
	io->reopened++;
	return cgio_read_at(io, l->dirfd, file_names[file], ret);
}

void cgleaf_read_memory(struct cgleaf *l, struct cgio *io, struct cgleaf_sample *ret)
{
	struct str text;

	ret->cpu_outcome = CG_NOT_READ;
	ret->current_outcome = read_file(l, io, LEAF_MEMORY_CURRENT, &text);
	if (ret->current_outcome == CG_OK)
		ret->current_outcome = of_parse(cgfile_number(text, &ret->current_bytes));
	ret->stat_outcome = read_file(l, io, LEAF_MEMORY_STAT, &text);
	if (ret->stat_outcome == CG_OK)
		ret->stat_outcome = of_parse(cgfile_memory_stat(text, &ret->memory));
}

void cgleaf_read(struct cgleaf *l, struct cgio *io, struct cgleaf_sample *ret)
{
	struct str text;

	cgleaf_read_memory(l, io, ret);
	ret->cpu_outcome = read_file(l, io, LEAF_CPU_STAT, &text);
	if (ret->cpu_outcome == CG_OK)
		ret->cpu_outcome = of_parse(cgfile_cpu_stat(text, &ret->cpu));
	if (ret->cpu_outcome == CG_OK && !(ret->cpu.seen & CPU_USAGE_USEC))
		ret->cpu_outcome = CG_NO_KEY;
}

enum cg_outcome cgleaf_working_set(const struct cgleaf_sample *s, uint64_t *ret_bytes)
{
	if (s->current_outcome != CG_OK)
		return s->current_outcome;
	if (s->stat_outcome != CG_OK)
		return s->stat_outcome;
	if (!(s->memory.seen & MEMORY_INACTIVE_FILE))
		return CG_NO_KEY;
	*ret_bytes = s->current_bytes > s->memory.inactive_file_bytes
			     ? s->current_bytes - s->memory.inactive_file_bytes
			     : 0;
	return CG_OK;
}

/* The least of a limit over the levels. What the pod level does not tell is no loss: the root of
 * the tree has no limit files. */
static enum cg_outcome least_memory_max(
	const struct cgleaf *l, struct cgio *io, uint64_t *ret_bytes)
{
	enum cg_outcome self = CG_NO_FILE;
	uint64_t least = CG_MAX;

	for (int level = 0; level < LEVELS; level++) {
		uint64_t value;
		enum cg_outcome outcome;

		if (l->levels[level] < 0)
			continue;
		outcome = cgio_read_number(io, l->levels[level], "memory.max", &value);
		if (outcome == CG_OK)
			least = MIN(least, value);
		if (level == LEVEL_SELF)
			self = outcome;
	}
	*ret_bytes = least;
	return self;
}

static enum cg_outcome least_cpu_max(const struct cgleaf *l, struct cgio *io,
	uint64_t *ret_millicores, enum cgleaf_level *ret_level)
{
	enum cg_outcome self = CG_NO_FILE;

	*ret_millicores = CG_MAX;
	*ret_level = LEVEL_SELF;
	for (int level = 0; level < LEVELS; level++) {
		struct cpu_max max;
		struct str text;
		enum cg_outcome outcome;

		if (l->levels[level] < 0)
			continue;
		outcome = cgio_read_at(io, l->levels[level], "cpu.max", &text);
		if (outcome == CG_OK)
			outcome = of_parse(cgfile_cpu_max(text, &max));
		if (outcome == CG_OK && cpu_max_millicores(&max) < *ret_millicores) {
			*ret_millicores = cpu_max_millicores(&max);
			*ret_level = (enum cgleaf_level)level;
		}
		if (level == LEVEL_SELF)
			self = outcome;
	}
	return self;
}

static enum cg_outcome read_psi(
	const struct cgleaf *l, struct cgio *io, const char *name, struct psi *ret)
{
	struct str text;
	enum cg_outcome outcome = cgio_read_at(io, l->dirfd, name, &text);

	return outcome == CG_OK ? of_parse(cgfile_psi(text, ret)) : outcome;
}

void cgleaf_read_limits(const struct cgleaf *l, struct cgio *io, struct cgleaf_limits *ret)
{
	ret->memory_max_outcome = least_memory_max(l, io, &ret->memory_max_bytes);
	ret->cpu_max_outcome = least_cpu_max(l, io, &ret->cpu_max_millicores, &ret->quota_level);
	ret->peak_outcome = cgio_read_number(io, l->dirfd, "memory.peak", &ret->peak_bytes);
	ret->swap_outcome =
		cgio_read_number(io, l->dirfd, "memory.swap.current", &ret->swap_current_bytes);
	if (ret->swap_outcome == CG_OK)
		ret->swap_outcome =
			cgio_read_number(io, l->dirfd, "memory.swap.max", &ret->swap_max_bytes);
	ret->cpu_psi_outcome = read_psi(l, io, "cpu.pressure", &ret->cpu_psi);
	ret->memory_psi_outcome = read_psi(l, io, "memory.pressure", &ret->memory_psi);
}

enum cg_outcome cgleaf_read_throttling(
	const struct cgleaf *l, struct cgio *io, enum cgleaf_level level, struct cpu_stat *ret)
{
	struct str text = {0};
	enum cg_outcome outcome = CG_NO_FILE;

	if (l->levels[level] >= 0)
		outcome = cgio_read_at(io, l->levels[level], "cpu.stat", &text);
	if (outcome == CG_OK)
		outcome = of_parse(cgfile_cpu_stat(text, ret));
	if (outcome == CG_OK && (ret->seen & CPU_THROTTLE_KEYS) != CPU_THROTTLE_KEYS)
		outcome = CG_NO_KEY;
	return outcome;
}
