/* SPDX-License-Identifier: Apache-2.0 */
/* One cgroup that is measured, held by its directory. The descriptor pins its identity: when the
 * directory is removed and another of the same name is made, reads here say "gone" and never the
 * newcomer's numbers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/cgroup/cgfile.h"
#include "base/macros.h"

/* How reading one file went. Each is something different to the one who reads; none of them is a
 * zero. */
enum cg_outcome {
	CG_OK,
	CG_NOT_READ,  /* nobody tried yet */
	CG_NO_FILE,   /* the cgroup is there, the file is not: controller off, or an older kernel */
	CG_NO_KEY,    /* the file is there, the key is not */
	CG_EMPTY,     /* nothing in it */
	CG_MALFORMED, /* not the form the kernel writes, or longer than the buffer */
	CG_GONE,      /* the cgroup was removed */
	CG_REPLACED,  /* removed, and another one has its name (cgleaf_look) */
	CG_UNSUPPORTED, /* the kernel has the file but not the figures (PSI switched off) */
	CG_DENIED,      /* not readable with these rights */
	CG_FAILED,      /* anything else: descriptors used up, input/output error */
};
#define CG_OUTCOMES (CG_FAILED + 1)
/* "ok", "no file", "gone"… */
const char *cg_outcome_name(enum cg_outcome outcome);

/* The longest file read, memory.stat, has 1.5 KB on Linux 6.18. A file that fills the buffer counts
 * as malformed: a second read of a kernel file may give new content. */
#define CGIO_SIZE SIZE_OR_TINY(16384U, 2560U)

/* What all reads share: one buffer, and the account of held descriptors. One per program. */
struct cgio {
	char buffer[CGIO_SIZE];
	unsigned int held_max; /* files that may be held open for sampling */
	unsigned int held;
	uint64_t reopened; /* reads that had to open their file, since it was not held */
};
/* Raises RLIMIT_NOFILE to its hard limit; what is not kept free for others (reserve) may be held.
 */
void cgio_init(struct cgio *io, unsigned int reserve);

/* Reads dirfd/name whole. *ret points into the buffer until the next read. */
enum cg_outcome cgio_read_at(struct cgio *io, int dirfd, const char *name, struct str *ret);
enum cg_outcome cgio_read_fd(struct cgio *io, int fd, struct str *ret);
/* dirfd/name as one number. */
enum cg_outcome cgio_read_number(struct cgio *io, int dirfd, const char *name, uint64_t *ret);

/* Where a limit stands: the container's directory; a child named "container" (crun under CRI-O puts
 * the limits there, usage stays readable above); the pod. */
enum cgleaf_level { LEVEL_SELF, LEVEL_CHILD, LEVEL_POD, LEVELS };

enum cgleaf_file { LEAF_CPU_STAT, LEAF_MEMORY_CURRENT, LEAF_MEMORY_STAT, LEAF_FILES };

struct cgleaf {
	int dirfd;           /* O_PATH */
	int levels[LEVELS];  /* O_PATH of each level; SELF is dirfd; CHILD owned, POD not owned; -1:
				none */
	int fds[LEAF_FILES]; /* held files, -1: opened for each read */
	bool held;           /* fds are counted in cgio.held */
	dev_t device;
	ino_t inode;
};

/* Opens path below dirfd (one component or several, no "..", no symbolic links). pod_dirfd (or -1)
 * must outlive the leaf. CG_OK, CG_NO_FILE (no such directory), CG_DENIED, CG_FAILED. */
enum cg_outcome cgleaf_open(struct cgleaf *l, int dirfd, const char *path, int pod_dirfd);
void cgleaf_finish(struct cgleaf *l, struct cgio *io);

/* Holds the files that are read every round. False when there are no descriptors left for that;
 * reading works all the same. */
bool cgleaf_hold(struct cgleaf *l, struct cgio *io);
void cgleaf_release(struct cgleaf *l, struct cgio *io);

/* Is what stands at dirfd/path this leaf? CG_OK, CG_GONE, CG_REPLACED. */
enum cg_outcome cgleaf_look(const struct cgleaf *l, int dirfd, const char *path);

struct cgleaf_sample {
	enum cg_outcome cpu_outcome, current_outcome, stat_outcome;
	struct cpu_stat cpu;
	uint64_t current_bytes;
	struct memory_stat memory;
};
/* CPU and memory. When CG_GONE is among the outcomes, the cgroup is. */
void cgleaf_read(struct cgleaf *l, struct cgio *io, struct cgleaf_sample *ret);
/* Memory only (the CPU members of *ret are CG_NOT_READ): for looking every second. */
void cgleaf_read_memory(struct cgleaf *l, struct cgio *io, struct cgleaf_sample *ret);
static inline bool cgleaf_sample_gone(const struct cgleaf_sample *s)
{
	return s->cpu_outcome == CG_GONE || s->current_outcome == CG_GONE ||
	       s->stat_outcome == CG_GONE;
}
/* current - inactive_file, not below 0. The outcome says why there is none. */
enum cg_outcome cgleaf_working_set(const struct cgleaf_sample *s, uint64_t *ret_bytes);

/* What changes rarely: read at first sight and once a minute. */
struct cgleaf_limits {
	enum cg_outcome memory_max_outcome, cpu_max_outcome, peak_outcome, swap_outcome;
	enum cg_outcome cpu_psi_outcome, memory_psi_outcome;
	uint64_t memory_max_bytes; /* the least over all levels; CG_MAX: none */
	uint64_t cpu_max_millicores;
	enum cgleaf_level quota_level; /* whose quota that is: its cpu.stat counts the throttling */
	uint64_t peak_bytes;           /* with page cache */
	uint64_t swap_current_bytes, swap_max_bytes;
	struct psi cpu_psi, memory_psi;
};
void cgleaf_read_limits(const struct cgleaf *l, struct cgio *io, struct cgleaf_limits *ret);
/* The cpu.stat of the level that holds the quota. */
enum cg_outcome cgleaf_read_throttling(
	const struct cgleaf *l, struct cgio *io, enum cgleaf_level level, struct cpu_stat *ret);
