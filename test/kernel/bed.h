/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel tests have in common: cgroups made with libcgroup below /sys/fs/cgroup, loads in
 * them, and waiting for a condition. Everything fails the test that called when it does not work.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "base/loop.h"

#define BED_ROOT "/sys/fs/cgroup"
#define MIB (UINT64_C(1) << 20)

/* Paths of cgroups are relative to the root: "pod/ctr". Parents are made as needed, with cpu and
 * memory on. */
void bed_create(const char *cgroup);
void bed_set(const char *cgroup, const char *file, const char *value);
/* Ends what is in it and removes it, as soon as the kernel lets go. Children must be gone. */
void bed_remove(const char *cgroup);
int bed_open(const char *cgroup); /* O_PATH */
/* The number after the key in one of its files; a single-number file with key "". */
uint64_t bed_read(const char *cgroup, const char *file, const char *key);

/* Starts test/kernel/load (its path in $PERNODE_LOAD) in the cgroup with up to four arguments, NULL
 * ends them. */
pid_t bed_load(const char *cgroup, const char *a, const char *b, const char *c, const char *d);
void bed_kill(pid_t pid);
/* Waits until the process ended. */
void bed_wait(pid_t pid);

/* Runs the loop until *condition is at least `value`, or fails after the deadline. tick (may be
 * NULL) is called every 100 ms. */
void bed_run_until(struct loop *loop, const unsigned int *condition, unsigned int value,
	unsigned int seconds, void (*tick)(void *arg), void *arg);
