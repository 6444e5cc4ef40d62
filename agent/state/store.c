/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state/store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "base/file.h"

int store_open(struct store *s, const char *path)
{
	*s = (struct store){.dirfd = -1, .saved_at_ns = INT64_MIN};
	if (str_copy(s->path, sizeof(s->path), str_of(path)) < 0)
		return err_set(&s->trouble, ENAMETOOLONG,
			"state directory: its path is longer than %zu bytes", sizeof(s->path) - 1);

	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(&s->trouble, errno, "state directory %s: %s", path, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(&s->trouble, errno == EWOULDBLOCK ? EBUSY : errno,
			"state directory %s: %s", path,
			errno == EWOULDBLOCK ? "in use by another agent" : strerror(errno));
	s->dirfd = TAKE_FD(fd);
	return 0;
}

void store_finish(struct store *s)
{
	closep(&s->dirfd);
	s->dirfd = -1;
}

/* The name tells why, and there is one file per reason: what is set aside does not fill the disk.
 */
static void set_aside(struct store *s, const char *name, enum checkpoint_verdict verdict,
	const struct err *why, void (*told)(void *arg, const char *text), void *arg)
{
	char aside[64];
	struct err text = {""};

	(void)snprintf(aside, sizeof(aside), "%s.%s", name, checkpoint_verdict_name(verdict));
	s->set_aside[verdict]++;
	int r = renameat(s->dirfd, name, s->dirfd, aside) < 0 ? -errno : 0;
	(void)err_set(&text, EBADMSG, "%s/%s: %s; %s %s%s%s", s->path, name,
		err_text(why, -EBADMSG), r == 0 ? "set aside as" : "could not be set aside as",
		aside, r == 0 ? "" : ": ", r == 0 ? "" : strerror(-r));
	if (told)
		told(arg, text.text);
}

/* 1: loaded; 0: this generation is no use. */
static int load_one(struct store *s, const char *name, const struct checkpoint_identity *identity,
	int (*load)(void *arg, const struct checkpoint *c), void *arg,
	void (*told)(void *arg, const char *text))
{
	_cleanup_buf_ struct buf b = BUF_INIT(STORE_MAX_BYTES);
	struct checkpoint c;
	struct err e = {""};

	int r = file_read(s->dirfd, name, &b, &e);
	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		if (told)
			told(arg, err_text(&e, r));
		return r == -ENOMEM ? r : 0;
	}
	enum checkpoint_verdict verdict = checkpoint_read(buf_str(&b), identity, &c, &e);
	if (verdict != CHECKPOINT_OK) {
		set_aside(s, name, verdict, &e, told, arg);
		return 0;
	}
	r = load(arg, &c);
	if (r < 0)
		return r;
	s->saved_at_ns = c.saved_at_ns;
	(void)snprintf(s->loaded, sizeof(s->loaded), "%s", name);
	return 1;
}

int store_load(struct store *s, const struct checkpoint_identity *identity,
	int (*load)(void *arg, const struct checkpoint *c), void *arg,
	void (*told)(void *arg, const char *text))
{
	static const char *const names[] = {STORE_NAME, STORE_OLDER_NAME};

	if (s->dirfd < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		int r = load_one(s, names[i], identity, load, arg, told);
		if (r != 0)
			return r;
	}
	return 0;
}

static int write_generation(struct store *s, struct str content)
{
	/* Without the older one (first save) this is ENOENT, and right. */
	if (renameat(s->dirfd, STORE_NAME, s->dirfd, STORE_OLDER_NAME) < 0 && errno != ENOENT)
		return err_set(&s->trouble, errno, "%s/%s: cannot be moved aside: %s", s->path,
			STORE_NAME, strerror(errno));
	int r = file_write_atomic(s->dirfd, STORE_NAME, content.p, content.n, 0640, &s->trouble);
	return r < 0 ? err_wrap(&s->trouble, r, "state directory %s", s->path) : 0;
}

static int reopen(struct store *s)
{
	struct store fresh;
	char path[sizeof(s->path)];

	memcpy(path, s->path, sizeof(path));
	int r = store_open(&fresh, path);
	s->trouble = fresh.trouble;
	s->dirfd = fresh.dirfd;
	return r;
}

int store_save(struct store *s, const struct checkpoint_identity *identity, int64_t now_ns,
	int (*save)(void *arg, struct buf *b), void *arg)
{
	_cleanup_buf_ struct buf b = BUF_INIT(STORE_MAX_BYTES);

	s->trouble = (struct err){""};
	int r = s->dirfd < 0 ? reopen(s) : 0;
	if (r == 0) {
		checkpoint_begin(&b, identity, now_ns);
		r = save(arg, &b);
		if (r == 0)
			r = checkpoint_finish(&b);
		if (r < 0)
			(void)err_set(
				&s->trouble, -r, "state: cannot be put together: %s", strerror(-r));
		else
			r = write_generation(s, buf_str(&b));
	}
	if (r < 0) {
		s->failures++;
		return r;
	}
	s->saves++;
	s->saved_at_ns = now_ns;
	s->saved_bytes = b.n;
	return 0;
}
