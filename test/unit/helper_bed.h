/* SPDX-License-Identifier: Apache-2.0 */
/* A tracker with plain directories for cgroups and a clock whose hands are set by the test. */
#pragma once

#include <ftw.h>

#include "agent/pods/tracker.h"
#include "agent/saved.h"

#define UID_A "aaaaaaaa-0c1e-4b57-9a63-2f8f0f6d1b11"
#define UID_B "bbbbbbbb-0c1e-4b57-9a63-2f8f0f6d1b11"
#define ID_1 "1111111111111111111111111111111111111111111111111111111111111111"
#define ID_2 "2222222222222222222222222222222222222222222222222222222222222222"
#define ID_3 "3333333333333333333333333333333333333333333333333333333333333333"
#define SANDBOX "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
#define T0_USEC (INT64_C(1800000000) * 1000000)

struct bed {
	char path[64];
	int fd;
	struct loop loop;
	struct clock_manual clock;
	struct workloads workloads;
	struct events events;
	struct tracker tracker;
	int urgent, synced;
	uint64_t cpu_usec; /* of the cgroup that is written next */
};
#define IDS(...) ((const char *const[]){__VA_ARGS__})

int bed_setup(void **state);
int bed_teardown(void **state);
/* A tracker on the bed's tree: setup does it; again after tracker_finish. */
void bed_start(struct bed *bed);
/* A cgroup with numbers in it. */
void bed_make(struct bed *bed, const char *path);
/* The numbers of one cgroup: CPU used so far, memory in use. */
void bed_numbers(struct bed *bed, const char *directory, uint64_t usage_usec, uint64_t bytes);
void bed_put(struct bed *bed, const char *directory, const char *name, const char *text);
/* A running pod of the DaemonSet shipper with containers main and side; static memory. */
struct pod *bed_pod(const char *uid, const char *name, unsigned int n, const char *const ids[]);
struct live_container *bed_live(struct bed *bed, const char *uid, const char *name);
struct workload *bed_workload(struct bed *bed, const char *container);
/* Lets the loop do what is due now, and nothing that waits for later. */
void bed_turn(struct bed *bed);
/* For nftw: removes a tree. */
int bed_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw);
