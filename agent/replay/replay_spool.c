// SPDX-License-Identifier: Apache-2.0
#include "agent/replay/replay_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"

/* Without a name where the file system can do that. */
static int open_temporary(struct err *e)
{
	const char *dir = secure_getenv("TMPDIR");
	char path[4096];

	if (!dir || !*dir)
		dir = "/tmp";
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	if (snprintf(path, sizeof path, "%s/pernode-replay-XXXXXX", dir) < (int)sizeof path) {
		fd = mkostemp(path, O_CLOEXEC);
		if (fd >= 0) {
			(void)unlink(path);
			return fd;
		}
	}
	return err_set(
		e, errno, "no temporary file in %s: %m; set TMPDIR to a directory with room", dir);
}

int spool_init(struct spool *s, struct err *e)
{
	*s = (struct spool){.fd = -1};
	s->buffer = malloc(SPOOL_BUFFER * sizeof *s->buffer);
	if (!s->buffer)
		return err_set(e, ENOMEM, "no memory left");
	s->fd = open_temporary(e);
	if (s->fd < 0) {
		int r = s->fd;
		spool_finish(s);
		return r;
	}
	return 0;
}

void spool_finish(struct spool *s)
{
	closep(&s->fd);
	free(s->buffer);
	*s = (struct spool){.fd = -1};
}

int spool_flush(struct spool *s, struct err *e)
{
	int r = write_full(s->fd, s->buffer, s->n_buffered * sizeof *s->buffer);

	if (r < 0)
		return err_set(e, -r,
			"the temporary file cannot be written: %s; set TMPDIR to a directory with "
			"room",
			err_text(NULL, r));
	s->n_buffered = 0;
	return 0;
}

int spool_add(struct spool *s, const struct sample *sample, struct err *e)
{
	s->buffer[s->n_buffered++] = *sample;
	s->n++;
	return s->n_buffered == SPOOL_BUFFER ? spool_flush(s, e) : 0;
}

void spool_cursor_init(struct spool_cursor *c, const struct spool *s, uint64_t first, uint64_t n)
{
	c->spool = s;
	c->next = first;
	c->end = first + n;
	c->n_buffered = c->i = 0;
}

const struct sample *spool_peek(struct spool_cursor *c, int *ret_error)
{
	if (c->i < c->n_buffered)
		return &c->buffer[c->i];
	if (c->next == c->end)
		return NULL;
	size_t n = (size_t)MIN(c->end - c->next, (uint64_t)ARRAY_SIZE(c->buffer));
	ssize_t bytes = pread_full(c->spool->fd, c->buffer, n * sizeof c->buffer[0],
		(off_t)(c->next * sizeof c->buffer[0]));
	if (bytes != (ssize_t)(n * sizeof c->buffer[0])) {
		*ret_error = bytes < 0 ? (int)bytes : -EIO;
		return NULL;
	}
	c->next += n;
	c->n_buffered = n;
	c->i = 0;
	return &c->buffer[0];
}
