/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files, bounded and atomic. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Appends the file's content to b (within b's maximum: -EFBIG beyond it). dirfd and path as for
 * openat. Regular files and kernel files; a directory, a device or a FIFO is refused. */
int file_read(int dirfd, const char *path, struct buf *b, struct err *e);

/* Replaces dirfd/name by the given bytes so that a reader, or the next start after a power cut,
 * sees the old or the new content and nothing else: temporary file beside it, fsync, rename, fsync
 * of the directory. The temporary file is removed on failure. */
int file_write_atomic(
	int dirfd, const char *name, const void *p, size_t n, mode_t mode, struct err *e);

/* pread until n bytes, end of file, or an error other than EINTR. Bytes read, or -errno. */
ssize_t pread_full(int fd, void *p, size_t n, off_t offset);
/* Makes sure that descriptors 0, 1 and 2 are taken, before anything is opened: else, in a program
 * that was started without them, the next file opened would get what is meant for stdout or the
 * log. What was closed still fails: reading 0, and writing 1 and 2, gives EBADF. 0 or -errno. */
int file_keep_standard(void);
/* write(2) until all n bytes are out. 0 or -errno. */
int write_full(int fd, const void *p, size_t n);
