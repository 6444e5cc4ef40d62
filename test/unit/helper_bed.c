/* SPDX-License-Identifier: Apache-2.0 */
#include "helper_bed.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/file.h"

static void on_urgent(void *arg, struct workload *w)
{
	(void)w;
	((struct bed *)arg)->urgent++;
}

static void on_synced(void *arg)
{
	((struct bed *)arg)->synced++;
}

void bed_start(struct bed *bed)
{
	struct tracker_options options = {.interval_usec = 10 * USEC_PER_SEC,
		.since_ns = T0_USEC * NSEC_PER_USEC,
		.urgent = on_urgent,
		.synced = on_synced,
		.arg = bed};
	struct err e = {""};

	assert_int_equal(tracker_init(&bed->tracker, &bed->loop, &bed->clock.clock, bed->fd,
				 &bed->workloads, &bed->events, &options, &e),
		0);
}

int bed_setup(void **state)
{
	static struct bed bed;
	struct knobs knobs;

	bed = (struct bed){.fd = -1};
	(void)snprintf(bed.path, sizeof(bed.path), "/tmp/pernode-tracker-XXXXXX");
	if (!mkdtemp(bed.path))
		return -1;
	bed.fd = open(bed.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	clock_manual_init(&bed.clock, T0_USEC);
	bed.clock.mono_usec = 1000 * USEC_PER_SEC;
	knobs_defaults(&knobs, PROFILE_FINE);
	workloads_init(&bed.workloads, &knobs);
	events_init(&bed.events);
	if (loop_init(&bed.loop) < 0)
		return -1;
	bed_start(&bed);
	*state = &bed;
	return 0;
}

int bed_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int bed_teardown(void **state)
{
	struct bed *bed = *state;

	tracker_finish(&bed->tracker);
	loop_finish(&bed->loop);
	events_finish(&bed->events);
	workloads_finish(&bed->workloads);
	(void)close(bed->fd);
	return nftw(bed->path, bed_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void bed_put(struct bed *bed, const char *directory, const char *name, const char *text)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	int fd = openat(bed->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, text, strlen(text)), 0);
	(void)close(fd);
}

/* The numbers of one cgroup: CPU used so far, memory in use. */
void bed_numbers(struct bed *bed, const char *directory, uint64_t usage_usec, uint64_t bytes)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "usage_usec %llu\nuser_usec 0\nsystem_usec 0\n",
		(unsigned long long)usage_usec);
	bed_put(bed, directory, "cpu.stat", text);
	(void)snprintf(text, sizeof(text), "%llu\n", (unsigned long long)bytes);
	bed_put(bed, directory, "memory.current", text);
	bed_put(bed, directory, "memory.stat",
		"anon 1000\nfile 0\nkernel 0\nshmem 0\ninactive_file 0\nslab_reclaimable 0\n");
	bed_put(bed, directory, "memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n");
	bed_put(bed, directory, "memory.max", "67108864\n");
	bed_put(bed, directory, "cpu.max", "max 100000\n");
	bed_put(bed, directory, "cgroup.events", "populated 1\nfrozen 0\n");
}

void bed_make(struct bed *bed, const char *path)
{
	char partial[512];

	for (const char *at = path;; at++) {
		if (*at != '/' && *at != '\0')
			continue;
		(void)snprintf(partial, sizeof(partial), "%.*s", (int)(at - path), path);
		assert_true(mkdirat(bed->fd, partial, 0755) == 0 || errno == EEXIST);
		if (*at == '\0')
			break;
	}
	bed_numbers(bed, path, 1000, 20 << 20);
}

struct pod *bed_pod(const char *uid, const char *name, unsigned int n, const char *const ids[])
{
	static struct pod pod;
	static const char *const names[] = {"main", "side"};

	pod = (struct pod){.phase = POD_RUNNING, .deletion_ns = TIME_NONE, .n_containers = n};
	(void)snprintf(pod.namespace, sizeof(pod.namespace), "default");
	(void)snprintf(pod.name, sizeof(pod.name), "%s", name);
	(void)snprintf(pod.uid, sizeof(pod.uid), "%s", uid);
	(void)snprintf(pod.daemonset, sizeof(pod.daemonset), "shipper");
	(void)snprintf(pod.revision, sizeof(pod.revision), "r1");
	for (unsigned int i = 0; i < n; i++) {
		struct pod_container *c = &pod.container[i];
		*c = (struct pod_container){.in_spec = true,
			.running = ids[i][0] != '\0',
			.running_since_ns = T0_USEC * NSEC_PER_USEC - 3600 * NSEC_PER_SEC,
			.requests = {100, 32 << 20},
			.limits = {-1, 64 << 20},
			.actual_requests = {-1, -1},
			.actual_limits = {-1, -1}};
		(void)snprintf(c->name, sizeof(c->name), "%s", names[i]);
		(void)snprintf(c->container_id, sizeof(c->container_id), "%s", ids[i]);
	}
	return &pod;
}

struct live_container *bed_live(struct bed *bed, const char *uid, const char *name)
{
	struct pod_entry *pod = podtable_find(&bed->tracker.pods, uid);

	return pod ? live_container_find(pod, name) : NULL;
}

/* Lets the loop do what is due now, and nothing that waits for later. */
void bed_turn(struct bed *bed)
{
	(void)uv_run(&bed->loop.uv, UV_RUN_NOWAIT);
}

struct workload *bed_workload(struct bed *bed, const char *container)
{
	return workloads_find(&bed->workloads, STR("default"), STR("shipper"), str_of(container));
}
