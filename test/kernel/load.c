/* SPDX-License-Identifier: Apache-2.0 */
/* A load of a chosen shape, for the tests and the demonstration:
 *     load [--cgroup=DIR] [--busy=MS/MS] [--anon=MIB] [--leak=KIB] [--read=DIR] [--children=N]
 * joins the cgroup, has its N children do the rest, and does what is asked until it is killed:
 *     --busy=20/100   uses 20 ms of CPU, then sleeps until the next full 100 ms since its start;
 * again and again. 100/100 never sleeps
 *     --anon=MIB      takes so much memory at once
 *     --leak=KIB      and so much more each second
 *     --read=DIR      reads every file below DIR, again and again: page cache. The last ones stay
 * open, since a guest forgets the pages of a host's file when it is closed */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/macros.h"
#include "base/num.h"
#include "base/str.h"

#define MS INT64_C(1000000)
#define KEPT_OPEN 512U

struct shape {
	const char *cgroup, *read_dir;
	uint64_t busy_ms, period_ms, anon_mib, leak_kib, children;
};

static int64_t now_ns(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void sleep_until(int64_t ns)
{
	struct timespec t = {ns / INT64_C(1000000000), ns % INT64_C(1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		continue;
}

static void take(uint64_t bytes)
{
	char *p;

	if (!bytes)
		return;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		exit(3);
	for (uint64_t i = 0; i < bytes; i += 4096)
		((volatile char *)p)[i] = (char)(i >> 12 | 1);
}

static void read_tree(int parent, const char *name, unsigned int depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	static char buffer[1 << 16];
	static int kept[KEPT_OPEN];
	static unsigned int n_kept;
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		struct stat st;
		int file;

		if (entry->d_name[0] == '.')
			continue;
		if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode) && depth < 8)
			read_tree(fd, entry->d_name, depth + 1);
		if (!S_ISREG(st.st_mode))
			continue;
		file = openat(fd, entry->d_name, O_RDONLY | O_CLOEXEC);
		if (file < 0)
			continue;
		while (read(file, buffer, sizeof(buffer)) > 0)
			continue;
		if (n_kept >= KEPT_OPEN)
			(void)close(kept[n_kept % KEPT_OPEN]);
		kept[n_kept++ % KEPT_OPEN] = file;
	}
}

static void busy_once(const struct shape *s, int64_t start)
{
	int64_t end = now_ns(CLOCK_PROCESS_CPUTIME_ID) + (int64_t)s->busy_ms * MS;
	int64_t period = (int64_t)s->period_ms * MS;

	while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < end)
		continue;
	if (s->busy_ms < s->period_ms)
		sleep_until(start + ((now_ns(CLOCK_MONOTONIC) - start) / period + 1) * period);
}

static void run(const struct shape *s)
{
	int64_t start = now_ns(CLOCK_MONOTONIC), leaked = start;

	take(s->anon_mib << 20);
	for (;;) {
		if (s->leak_kib) {
			/* An eighth of a second's leak each eighth of a second. */
			take(s->leak_kib << 7);
			leaked += 125 * MS;
			sleep_until(leaked);
		} else if (s->read_dir) {
			read_tree(AT_FDCWD, s->read_dir, 0);
		} else if (s->busy_ms) {
			busy_once(s, start);
		} else {
			(void)pause();
		}
	}
}

static int join(const char *cgroup)
{
	_cleanup_close_ int dir = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int fd = dir >= 0 ? openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC) : -1;

	if (fd < 0 || write(fd, "0", 1) != 1) {
		fprintf(stderr, "load: %s: %s\n", cgroup, strerror(errno));
		return -1;
	}
	return 0;
}

static bool parse(struct shape *s, const char *argument)
{
	struct str value = str_of(argument), name = str_cut(&value, '=');

	if (!value.p)
		return false;
	if (str_is(name, "--cgroup"))
		s->cgroup = value.p;
	else if (str_is(name, "--read"))
		s->read_dir = value.p;
	else if (str_is(name, "--anon"))
		return parse_u64(value, &s->anon_mib) == 0;
	else if (str_is(name, "--leak"))
		return parse_u64(value, &s->leak_kib) == 0;
	else if (str_is(name, "--children"))
		return parse_u64(value, &s->children) == 0;
	else if (str_is(name, "--busy"))
		return parse_u64(str_cut(&value, '/'), &s->busy_ms) == 0 &&
		       parse_u64(value, &s->period_ms) == 0 && s->period_ms > 0;
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	struct shape s = {0};

	for (int i = 1; i < argc; i++) {
		if (!parse(&s, argv[i])) {
			fprintf(stderr, "load: %s: not understood\n", argv[i]);
			return 2;
		}
	}
	if (s.cgroup && join(s.cgroup) < 0)
		return 1;
	for (uint64_t i = 0; i < s.children; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			run(&s);
		}
	}
	if (s.children)
		for (;;)
			(void)pause();
	run(&s);
	return 0;
}
