/* SPDX-License-Identifier: Apache-2.0 */
#include "bed.h"

#include <errno.h>
#include <fcntl.h>
#include <libcgroup.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/num.h"

#define DEADLINE_SECONDS 30

static void path_of(const char *cgroup, const char *file, char out[512])
{
	int n = snprintf(out, 512, "%s/%s%s%s", BED_ROOT, cgroup, file[0] ? "/" : "", file);

	assert_true(n > 0 && n < 512);
}

static void libcgroup_ready(void)
{
	static bool ready;
	int r = ready ? 0 : cgroup_init();

	if (r)
		fail_msg("libcgroup: %s", cgroup_strerror(r));
	ready = true;
}

/* The parts of "a/b/c" are cgroups with children, but for the last: their controllers must be on
 * below them. */
void bed_create(const char *cgroup)
{
	char part[256];
	size_t length = strlen(cgroup);

	libcgroup_ready();
	assert_true(length < sizeof(part));
	for (size_t i = 1; i <= length; i++) {
		struct cgroup *c;
		char path[512];
		int r;

		if (cgroup[i] && cgroup[i] != '/')
			continue;
		memcpy(part, cgroup, i);
		part[i] = 0;
		path_of(part, "", path);
		if (access(path, F_OK) < 0) {
			c = cgroup_new_cgroup(part);
			assert_non_null(c);
			assert_non_null(cgroup_add_controller(c, "memory"));
			assert_non_null(cgroup_add_controller(c, "cpu"));
			r = cgroup_create_cgroup(c, 1);
			cgroup_free(&c);
			if (r)
				fail_msg("create %s: %s (%s)", part, cgroup_strerror(r),
					strerror(errno));
		}
		if (cgroup[i])
			bed_set(part, "cgroup.subtree_control", "+cpu +memory");
	}
}

void bed_set(const char *cgroup, const char *file, const char *value)
{
	char path[512];
	int fd;

	path_of(cgroup, file, path);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		fail_msg("%s < %s: %s", path, value, strerror(errno));
	(void)close(fd);
}

static void nap(void)
{
	const struct timespec t = {.tv_nsec = 1000000};

	(void)nanosleep(&t, NULL);
}

void bed_remove(const char *cgroup)
{
	uint64_t deadline = clock_mono_usec(&clock_system) + DEADLINE_SECONDS * USEC_PER_SEC;
	char path[512], kill_path[512];

	path_of(cgroup, "", path);
	path_of(cgroup, "cgroup.kill", kill_path);
	while (rmdir(path) < 0 && errno != ENOENT) {
		int fd = open(kill_path, O_WRONLY | O_CLOEXEC);

		if (fd >= 0) {
			(void)!write(fd, "1", 1);
			(void)close(fd);
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			continue;
		if (clock_mono_usec(&clock_system) > deadline)
			fail_msg("rmdir %s: %s", path, strerror(errno));
		nap();
	}
}

int bed_open(const char *cgroup)
{
	char path[512];
	int fd;

	path_of(cgroup, "", path);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		fail_msg("%s: %s", path, strerror(errno));
	return fd;
}

uint64_t bed_read(const char *cgroup, const char *file, const char *key)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct str text;
	char path[512];
	uint64_t value = 0;
	struct err e;

	path_of(cgroup, file, path);
	if (file_read(AT_FDCWD, path, &b, &e) < 0)
		fail_msg("%s", e.text);
	text = buf_str(&b);
	while (text.n > 0) {
		struct str line = str_cut(&text, '\n'),
			   name = key[0] ? str_cut(&line, ' ') : str_of("");

		if (str_is(name, key) && parse_u64(line, &value) == 0)
			return value;
	}
	fail_msg("%s: no number for \"%s\"", path, key);
	return 0;
}

/* Tests protect themselves from the machine's OOM killer; what they start is fair game. */
static void make_victim(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, "500", 3);
	(void)close(fd);
}

pid_t bed_load(const char *cgroup, const char *a, const char *b, const char *c, const char *d)
{
	const char *program = getenv("PERNODE_LOAD");
	char join[600];
	pid_t pid;

	assert_non_null(program);
	path_of(cgroup, "", join);
	memmove(join + 9, join, strlen(join) + 1);
	memcpy(join, "--cgroup=", 9);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		make_victim();
		(void)execl(program, "load", join, a, b, c, d, (char *)NULL);
		_exit(127);
	}
	return pid;
}

void bed_kill(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	bed_wait(pid);
}

void bed_wait(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

struct wait {
	struct loop *loop;
	struct loop_timer timer;
	const unsigned int *condition;
	unsigned int value;
	uint64_t deadline_usec;
	bool late;
	void (*tick)(void *arg);
	void *arg;
};

static void check(void *arg)
{
	struct wait *w = arg;

	if (w->tick)
		w->tick(w->arg);
	w->late = clock_mono_usec(&clock_system) > w->deadline_usec;
	if (*w->condition >= w->value || w->late)
		loop_stop(w->loop);
	else
		loop_timer_set(&w->timer, 100 * USEC_PER_MSEC);
}

void bed_run_until(struct loop *loop, const unsigned int *condition, unsigned int value,
	unsigned int seconds, void (*tick)(void *arg), void *arg)
{
	struct wait w = {.loop = loop,
		.condition = condition,
		.value = value,
		.deadline_usec = clock_mono_usec(&clock_system) + seconds * USEC_PER_SEC,
		.tick = tick,
		.arg = arg};

	assert_int_equal(loop_timer_init(loop, &w.timer, check, &w), 0);
	loop_timer_set(&w.timer, 10 * USEC_PER_MSEC);
	(void)loop_run(loop);
	loop_timer_close(&w.timer, NULL);
	/* The timer's memory is on this stack: it must be closed before we leave. */
	(void)uv_run(&loop->uv, UV_RUN_NOWAIT);
	if (w.late && *condition < value)
		fail_msg("not within %u s: %u of %u", seconds, *condition, value);
}
