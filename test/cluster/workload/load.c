// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CPU_THREADS_MAX 4
#define PERIOD_MSEC 50                    /* CPU is spread evenly over such slices */
#define CHUNK_BYTES (UINT64_C(256) << 10) /* memory comes and goes in such pieces */
#define CHUNKS_MAX (1u << 17)             /* 32 GiB */
#define IDLE_MSEC 20
#define CACHE_ROUND_MSEC 500

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct instruction instruction;
	uint64_t began_msec;
	unsigned generation; /* of the instruction */

	/* Threads only write what is theirs, and load_look() reads. */
	_Atomic uint64_t held_bytes, cached_bytes;
	char cache_path[256];

	pid_t child[INSTRUCTION_CHILDREN_MAX];
	unsigned child_generation;
} load = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now_msec(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t thread_usec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void sleep_msec(uint64_t msec)
{
	nanosleep(&(struct timespec){.tv_sec = (time_t)(msec / 1000),
			  .tv_nsec = (long)(msec % 1000) * 1000000},
		NULL);
}

static struct instruction current(uint64_t *ret_at_msec, unsigned *ret_generation)
{
	struct instruction instruction;

	pthread_mutex_lock(&load.lock);
	instruction = load.instruction;
	*ret_at_msec = now_msec(CLOCK_MONOTONIC) - load.began_msec;
	*ret_generation = load.generation;
	pthread_mutex_unlock(&load.lock);
	return instruction;
}

/* An idle thread costs nothing: it sleeps until there is another instruction. */
static void wait_for_change(unsigned generation)
{
	pthread_mutex_lock(&load.lock);
	while (load.generation == generation)
		pthread_cond_wait(&load.changed, &load.lock);
	pthread_mutex_unlock(&load.lock);
}

/* Some hundred microseconds of work that no compiler leaves out. */
static void burn(void)
{
	static _Thread_local volatile uint64_t sink;
	uint64_t x = sink | 1;

	for (int i = 0; i < 200000; i++)
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
	sink = x;
}

/* Thread number i takes the i-th thousand of the millicores, counted by its own CPU time. That time
 * may move in steps as large as 10 ms (a User Mode Linux kernel's tick), so what a slice took too
 * much is taken off the next ones. */
static void *use_cpu(void *argument)
{
	uint64_t number = (uint64_t)(uintptr_t)argument;
	int64_t owed_usec = 0;

	for (;;) {
		uint64_t at_msec, wanted, share, from_usec, from_msec, spent_msec;
		unsigned generation;
		struct instruction instruction = current(&at_msec, &generation);

		wanted = pulse_height(&instruction.burst, instruction.cpu_millicores, at_msec);
		share = wanted > number * 1000 ? wanted - number * 1000 : 0;
		if (share == 0 && instruction.burst.height <= number * 1000) {
			wait_for_change(generation);
			continue;
		}
		if (number + 1 < CPU_THREADS_MAX && share > 1000)
			share = 1000;
		owed_usec += (int64_t)(share * PERIOD_MSEC);
		if (owed_usec >
			PERIOD_MSEC * 1000) /* a slice that was too short is not made up for */
			owed_usec = PERIOD_MSEC * 1000;
		from_usec = thread_usec();
		from_msec = now_msec(CLOCK_MONOTONIC);
		spent_msec = 0;
		while ((int64_t)(thread_usec() - from_usec) < owed_usec &&
			spent_msec < PERIOD_MSEC) {
			burn();
			spent_msec = now_msec(CLOCK_MONOTONIC) - from_msec;
		}
		owed_usec -= (int64_t)(thread_usec() - from_usec);
		spent_msec = now_msec(CLOCK_MONOTONIC) - from_msec;
		if (spent_msec < PERIOD_MSEC)
			sleep_msec(PERIOD_MSEC - spent_msec);
	}
	return NULL;
}

/* Holds as much memory as is asked for at each moment, page by page, so that it can be asked to
 * stop half-way. */
static void *use_memory(void *argument)
{
	static void *chunk[CHUNKS_MAX];
	size_t count = 0;

	(void)argument;
	for (;;) {
		uint64_t at_msec, wanted;
		unsigned generation;
		struct instruction instruction = current(&at_msec, &generation);

		wanted = instruction.memory_bytes + instruction.leak_bytes_per_sec * at_msec / 1000;
		wanted = pulse_height(&instruction.spike, wanted, at_msec) / CHUNK_BYTES;
		if (count < wanted && count < CHUNKS_MAX) {
			void *new = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

			if (new != MAP_FAILED) {
				chunk[count++] = new;
				memset(new, 1, CHUNK_BYTES);
			} else {
				sleep_msec(IDLE_MSEC);
			}
		} else if (count > wanted) {
			munmap(chunk[--count], CHUNK_BYTES);
		} else if (instruction.leak_bytes_per_sec || instruction.spike.height) {
			sleep_msec(IDLE_MSEC);
		} else {
			wait_for_change(generation);
		}
		atomic_store(&load.held_bytes, count * CHUNK_BYTES);
	}
	return NULL;
}

/* Makes the cache file as long as asked for; returns its length. */
static uint64_t grow_cache(int fd, uint64_t have_bytes, uint64_t want_bytes)
{
	static char block[64 << 10];

	while (have_bytes < want_bytes) {
		uint64_t rest = want_bytes - have_bytes;
		ssize_t n = pwrite(fd, block, rest < sizeof(block) ? (size_t)rest : sizeof(block),
			(off_t)have_bytes);

		if (n <= 0)
			break;
		have_bytes += (uint64_t)n;
	}
	return have_bytes;
}

static void *use_cache(void *argument)
{
	static char block[64 << 10];
	uint64_t have_bytes = 0;
	int fd = -1;

	(void)argument;
	for (;;) {
		uint64_t at_msec;
		unsigned generation;
		struct instruction instruction = current(&at_msec, &generation);

		if (fd < 0 && instruction.cache_bytes > 0)
			fd = open(load.cache_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (fd >= 0 && instruction.cache_bytes < have_bytes) {
			have_bytes = ftruncate(fd, (off_t)instruction.cache_bytes) == 0
					     ? instruction.cache_bytes
					     : have_bytes;
		} else if (fd >= 0) {
			have_bytes = grow_cache(fd, have_bytes, instruction.cache_bytes);
			for (uint64_t at = 0; at < have_bytes; at += sizeof(block))
				if (pread(fd, block, sizeof(block), (off_t)at) <= 0)
					break;
		}
		atomic_store(&load.cached_bytes, have_bytes);
		if (have_bytes == 0 && instruction.cache_bytes == 0)
			wait_for_change(generation);
		else
			sleep_msec(CACHE_ROUND_MSEC);
	}
	return NULL;
}

int load_start(const char *directory)
{
	static void *(*const others[])(void *) = {use_memory, use_cache};
	pthread_t thread;
	int r;

	load.began_msec = now_msec(CLOCK_MONOTONIC);
	load.instruction.exit_status = -1;
	r = snprintf(load.cache_path, sizeof(load.cache_path), "%s/workload-cache-%d", directory,
		(int)getpid());
	if (r < 0 || (size_t)r >= sizeof(load.cache_path))
		return -ENAMETOOLONG;
	for (uintptr_t i = 0; i < CPU_THREADS_MAX; i++) {
		r = pthread_create(&thread, NULL, use_cpu, (void *)i);
		if (r != 0)
			return -r;
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		r = pthread_create(&thread, NULL, others[i], NULL);
		if (r != 0)
			return -r;
	}
	return 0;
}

void load_follow(const struct instruction *instruction)
{
	if (instruction->exit_status >= 0)
		_exit(instruction->exit_status);
	pthread_mutex_lock(&load.lock);
	load.instruction = *instruction;
	load.began_msec = now_msec(CLOCK_MONOTONIC);
	load.generation++;
	pthread_cond_broadcast(&load.changed);
	pthread_mutex_unlock(&load.lock);
}

static pid_t start_child(const struct instruction *instruction)
{
	char told[128];
	char *argv[] = {"workload", NULL};
	char *env[] = {told, "WORKLOAD_PORT=0", NULL};
	pid_t parent = getpid(), child;

	snprintf(told, sizeof(told), "WORKLOAD=cpu=%" PRIu64 "m memory=%" PRIu64,
		instruction->child_cpu_millicores, instruction->child_memory_bytes);
	child = fork();
	if (child != 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	execve("/proc/self/exe", argv, env);
	_exit(127);
}

void load_keep_children(void)
{
	uint64_t at_msec;
	unsigned generation;
	struct instruction instruction = current(&at_msec, &generation);
	pid_t ended;

	if (generation != load.child_generation) {
		for (size_t i = 0; i < INSTRUCTION_CHILDREN_MAX; i++)
			if (load.child[i] > 0)
				kill(load.child[i], SIGKILL);
		load.child_generation = generation;
	}
	while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
		for (size_t i = 0; i < INSTRUCTION_CHILDREN_MAX; i++)
			if (load.child[i] == ended)
				load.child[i] = 0;
	for (uint64_t i = 0; i < instruction.children; i++)
		if (load.child[i] <= 0)
			load.child[i] = start_child(&instruction);
}

struct load_status load_look(void)
{
	struct load_status status = {
		.held_bytes = atomic_load(&load.held_bytes),
		.cached_bytes = atomic_load(&load.cached_bytes),
	};

	for (size_t i = 0; i < INSTRUCTION_CHILDREN_MAX; i++)
		status.children += load.child[i] > 0;
	return status;
}
