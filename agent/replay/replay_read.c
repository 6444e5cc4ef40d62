// SPDX-License-Identifier: Apache-2.0
/* Files of any length, plain or gzip, in pieces. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/replay/replay.h"
#include "base/clock.h"
#include "proto/inflate.h"

#define PIECE SIZE_OR_TINY(262144U, 7U)
#define PROGRESS_FIRST_USEC (USEC_PER_SEC)
#define PROGRESS_EVERY_USEC (USEC_PER_SEC / 5)

struct progress {
	const char *file;
	uint64_t size; /* 0: not known */
	uint64_t done;
	uint64_t next_usec; /* 0: nobody looks */
	bool shown;
};

static void progress_init(struct progress *p, const char *file, int fd)
{
	struct stat st;

	*p = (struct progress){.file = file};
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		p->size = (uint64_t)st.st_size;
	if (isatty(STDERR_FILENO))
		p->next_usec = clock_mono_usec(&clock_system) + PROGRESS_FIRST_USEC;
}

static void progress_show(struct progress *p, size_t n)
{
	p->done += n;
	if (p->next_usec == 0)
		return;
	uint64_t now = clock_mono_usec(&clock_system);
	if (now < p->next_usec)
		return;
	p->next_usec = now + PROGRESS_EVERY_USEC;
	p->shown = true;
	if (p->size)
		fprintf(stderr, "\r\033[K%s: %.0f %%", p->file,
			100.0 * (double)p->done / (double)p->size);
	else
		fprintf(stderr, "\r\033[K%s: %llu MiB", p->file,
			(unsigned long long)(p->done >> 20));
}

static void progress_end(const struct progress *p)
{
	if (p->shown)
		fprintf(stderr, "\r\033[K");
}

/* Past the end the decompressor is asked whether it was one. */
static int read_all(int fd, struct inflate *z, struct progress *p, struct err *e)
{
	_cleanup_free_ char *piece = malloc(PIECE);

	if (!piece)
		return err_set(e, ENOMEM, "no memory left");
	for (;;) {
		ssize_t n = read(fd, piece, PIECE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, errno, "cannot be read: %m");
		if (n == 0)
			return inflate_end(z, e);
		int r = inflate_feed(z, (struct str){piece, (size_t)n}, e);
		if (r < 0)
			return r;
		progress_show(p, (size_t)n);
	}
}

int replay_read(
	const char *file, int (*sink)(void *arg, struct str piece), void *arg, struct err *e)
{
	_cleanup_close_ int opened = -1;
	struct progress p;

	if (!str_is(str_of(file), "-")) {
		opened = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (opened < 0)
			return err_set(e, errno, "cannot be opened: %m");
	}
	int fd = opened >= 0 ? opened : STDIN_FILENO;
	struct inflate *z = inflate_create(sink, arg);
	if (!z)
		return err_set(e, ENOMEM, "no memory left");
	progress_init(&p, file, fd);
	int r = read_all(fd, z, &p, e);
	progress_end(&p);
	inflate_destroy(z);
	return r;
}
