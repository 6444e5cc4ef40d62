/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel writes into the files of a cgroup (v2), read by key name. Pure: text in, values
 * out. A key that is not there is never a zero: each struct says which of its members were seen.
 * Unknown keys and lines are skipped, since every kernel adds some. Format:
 * Documentation/admin-guide/cgroup-v2.rst of the kernel. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define CG_MAX UINT64_MAX /* the word "max": no limit */

/* All functions: -ENODATA for an empty text, -EBADMSG for a text that is not of this form (a wanted
 * key without a number, a number that does not fit in 64 bits). Outputs are untouched on failure.
 */

enum cpu_stat_key {
	CPU_USAGE_USEC = 1 << 0,
	CPU_NR_PERIODS = 1 << 1, /* these three only where the cgroup has a quota of its own */
	CPU_NR_THROTTLED = 1 << 2,
	CPU_THROTTLED_USEC = 1 << 3,
};
#define CPU_THROTTLE_KEYS (CPU_NR_PERIODS | CPU_NR_THROTTLED | CPU_THROTTLED_USEC)

struct cpu_stat {
	unsigned int seen; /* enum cpu_stat_key */
	uint64_t usage_usec, nr_periods, nr_throttled, throttled_usec;
};
int cgfile_cpu_stat(struct str text, struct cpu_stat *ret);

enum memory_stat_key {
	MEMORY_ANON = 1 << 0,
	MEMORY_KERNEL = 1 << 1, /* since Linux 5.18 */
	MEMORY_SHMEM = 1 << 2,
	MEMORY_INACTIVE_FILE = 1 << 3,
	MEMORY_SLAB_RECLAIMABLE = 1 << 4,
};

struct memory_stat {
	unsigned int seen; /* enum memory_stat_key */
	uint64_t anon_bytes, kernel_bytes, shmem_bytes, inactive_file_bytes, slab_reclaimable_bytes;
};
/* Stops reading at the last key wanted. */
int cgfile_memory_stat(struct str text, struct memory_stat *ret);

/* What no reclaim can give back: anon + shmem + kernel - slab_reclaimable; anon does not count as
 * far as swap_free_bytes reaches. Without the key "kernel" its share is unknown and counts nothing:
 * an early warning is then later, not wrong. False when anon was not seen. */
bool memory_stat_unreclaimable(
	const struct memory_stat *s, uint64_t swap_free_bytes, uint64_t *ret_bytes);

enum memory_events_key {
	EVENT_MAX = 1 << 0,
	EVENT_OOM = 1 << 1,
	EVENT_OOM_KILL = 1 << 2,
	EVENT_OOM_GROUP_KILL = 1 << 3, /* since Linux 5.17 */
	EVENT_HIGH = 1 << 4,
};

struct memory_events {
	unsigned int seen; /* enum memory_events_key */
	uint64_t max, oom, oom_kill, oom_group_kill, high;
};
/* memory.events and memory.events.local */
int cgfile_memory_events(struct str text, struct memory_events *ret);

/* One number, or "max" (CG_MAX), and a newline: memory.current, memory.max, memory.peak,
 * memory.swap.current… */
int cgfile_number(struct str text, uint64_t *ret);

struct cpu_max {
	uint64_t quota_usec; /* CG_MAX: none */
	uint64_t period_usec;
};
int cgfile_cpu_max(struct str text, struct cpu_max *ret);
/* CPUs × 1000 that the quota gives, rounded down; CG_MAX without one. */
uint64_t cpu_max_millicores(const struct cpu_max *m);

struct psi_line {
	bool seen;
	uint32_t avg10_centipercent, avg60_centipercent; /* 12.34 % is 1234 */
	uint64_t total_usec;
};
struct psi {
	struct psi_line some, full; /* cpu.pressure of old kernels has no "full" */
};
int cgfile_psi(struct str text, struct psi *ret);

/* cgroup.events: -ENOENT when the key is missing. */
int cgfile_populated(struct str text, bool *ret);

/* True if the blank-separated list of cgroup.controllers names this controller. */
bool cgfile_has_controller(struct str text, const char *controller);
