/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define READ_STEP SIZE_OR_TINY(16384U, 1U)

int file_read(int dirfd, const char *path, struct buf *b, struct err *e)
{
	/* Non-blocking, so that a FIFO put where a file is expected is refused instead of waited
	 * for. */
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return err_set(e, errno, "%s: cannot open: %s", path, strerror(errno));
	if (fstat(fd, &st) < 0)
		return err_set(e, errno, "%s: cannot stat: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, S_ISDIR(st.st_mode) ? EISDIR : EINVAL,
			"%s: is not a regular file", path);
	for (;;) {
		/* One byte beyond the maximum tells "exactly full" from "too large". */
		size_t room = b->max - b->n;
		char probe = 0;
		char *p = room ? buf_reserve(b, MIN(room, (size_t)READ_STEP)) : &probe;
		if (!p)
			return err_set(e, -b->error, "%s: %s", path, strerror(-b->error));
		ssize_t n = read(fd, p, room ? MIN(room, (size_t)READ_STEP) : 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, errno, "%s: cannot read: %s", path, strerror(errno));
		if (n == 0)
			return 0;
		if (!room)
			return err_set(e, EFBIG, "%s: is larger than the %zu bytes that are read",
				path, b->max);
		buf_grew(b, (size_t)n);
	}
}

int file_keep_standard(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* The lowest free number is fd itself, since those below it are taken. */
		if (fcntl(fd, F_GETFD) < 0 &&
			open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
			return -errno;
	}
	return 0;
}

int write_full(int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n) {
		ssize_t w = write(fd, at, MIN(n, (size_t)SIZE_OR_TINY(1U << 30, 7U)));
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		at += w;
		n -= (size_t)w;
	}
	return 0;
}

ssize_t pread_full(int fd, void *p, size_t n, off_t offset)
{
	size_t have = 0;

	while (have < n) {
		ssize_t r = pread(fd, (char *)p + have, n - have, offset + (off_t)have);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		have += (size_t)r;
	}
	return (ssize_t)have;
}

static int fsync_directory(int dirfd)
{
	_cleanup_close_ int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	/* Some file systems have nothing to sync for a directory and say EINVAL. */
	if (fsync(fd) < 0 && errno != EINVAL)
		return -errno;
	return 0;
}

static int write_and_sync(int dirfd, const char *name, const void *p, size_t n, mode_t mode)
{
	_cleanup_close_ int fd =
		openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);

	if (fd < 0)
		return -errno;
	int r = write_full(fd, p, n);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	/* close may be the one that tells of a full disk (NFS, quotas). */
	if (close(TAKE_FD(fd)) < 0 && r == 0)
		r = -errno;
	return r;
}

int file_write_atomic(
	int dirfd, const char *name, const void *p, size_t n, mode_t mode, struct err *e)
{
	char temporary[256];
	int length = snprintf(temporary, sizeof(temporary), "%s.tmp", name);

	if (length < 0 || (size_t)length >= sizeof(temporary))
		return err_set(e, ENAMETOOLONG, "%s: name too long", name);
	int r = write_and_sync(dirfd, temporary, p, n, mode);
	if (r == 0 && renameat(dirfd, temporary, dirfd, name) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(dirfd, temporary, 0);
		return err_set(e, -r, "%s: cannot write: %s", name, strerror(-r));
	}
	r = fsync_directory(dirfd);
	if (r < 0)
		return err_set(e, -r, "%s: cannot sync its directory: %s", name, strerror(-r));
	return 0;
}
