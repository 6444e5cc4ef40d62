// SPDX-License-Identifier: Apache-2.0
#include "helper_replay.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/verbs.h"
#include "base/file.h"
#include "test/unit/unit.h"

char replay_dir[] = "/tmp/pernode-test-replay-XXXXXX";

void outcome_finish(struct outcome *o)
{
	buf_finish(&o->out);
	buf_finish(&o->err);
}
void put_file(const char *name, struct str text)
{
	char path[256];

	(void)snprintf(path, sizeof path, "%s/%s", replay_dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, text.p, text.n), 0);
	close(fd);
}

int redirect(int fd, const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof path, "%s/%s", replay_dir, name);
	int saved = dup(fd);
	int file = open(path, fd == STDIN_FILENO ? O_RDONLY : O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(saved >= 0 && file >= 0);
	dup2(file, fd);
	close(file);
	return saved;
}

void restore(int fd, int saved)
{
	dup2(saved, fd);
	close(saved);
}

/* Runs in the test's directory; a NULL-terminated list of arguments. */
void replay(struct outcome *o, const char *const *arguments)
{
	char *argv[32] = {(char *)"replay"};
	char before[256];
	int argc = 1;

	for (; *arguments; arguments++)
		argv[argc++] = (char *)(uintptr_t)*arguments;
	*o = (struct outcome){.out = BUF_INIT(16U << 20), .err = BUF_INIT(1U << 20)};
	assert_non_null(getcwd(before, sizeof before));
	fflush(stdout);
	fflush(stderr);
	int out = redirect(STDOUT_FILENO, "stdout"), err = redirect(STDERR_FILENO, "stderr");
	assert_int_equal(chdir(replay_dir), 0);
	o->exit_code = verb_replay(argc, argv);
	fflush(stdout);
	fflush(stderr);
	restore(STDOUT_FILENO, out);
	restore(STDERR_FILENO, err);
	assert_int_equal(file_read(AT_FDCWD, "stdout", &o->out, NULL), 0);
	assert_int_equal(file_read(AT_FDCWD, "stderr", &o->err, NULL), 0);
	assert_int_equal(chdir(before), 0);
	(void)buf_puts(&o->out, "");
	(void)buf_puts(&o->err, "");
}

void assert_says(const struct buf *b, const char *what)
{
	if (!strstr(b->p ? b->p : "", what))
		fail_msg("missing: %s\nin: %s", what, b->p ? b->p : "(nothing)");
}

int replay_make_dir(void **state)
{
	return mkdtemp(replay_dir) ? 0 : -1;
}

int replay_remove_dir(void **state)
{
	_cleanup_closedir_ DIR *d = opendir(replay_dir);
	const struct dirent *entry;

	while (d && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			(void)unlinkat(dirfd(d), entry->d_name, 0);
	return rmdir(replay_dir);
}
