/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the verb observe: the cgroups it watches (observe_table.c), how it shows them
 * (observe_print.c), and the verb itself (observe.c). */
#pragma once

#include "agent/cgroup/cgroot.h"
#include "agent/sample/container.h"
#include "agent/sample/oomwatch.h"
#include "agent/sample/sampler.h"
#include "base/buf.h"
#include "rules/estimator.h"

#define OBSERVE_EVENTS_MAX 32U                /* kept per cgroup, the newest */
#define OBSERVED_MAX SIZE_OR_TINY(4096U, 16U) /* cgroups at once, gone ones included */

enum observed_event_kind { OBSERVED_OOM, OBSERVED_AHEAD, OBSERVED_GONE };

struct observed_event {
	int64_t t_ns;
	enum observed_event_kind kind;
	enum oom_class class; /* of OBSERVED_OOM */
};

/* The parent directory of watched cgroups stands for their pod, the one above it for the node. */
struct observed_pod {
	struct oomwatch_pod watch;
	struct observed_pod *next;
	char *path;
	int dirfd, node_dirfd; /* O_PATH; node -1 at the top */
	unsigned int users;
};

/* One cgroup. It stays when its directory goes, and goes on when that comes back. */
struct observed {
	struct container container;
	struct oomwatch_child watch;
	struct usage_history usage;
	struct observed *next;    /* in order of path */
	char *path;               /* "/kubepods/…" */
	struct observed_pod *pod; /* NULL while gone */
	bool here;
	struct observed_event events[OBSERVE_EVENTS_MAX]; /* a ring */
	uint64_t n_events;                                /* ever */
};

struct observe_table {
	const struct cgroot *root;
	const struct clock *clock;
	const struct knobs *knobs;
	const struct model *model;
	char *const *patterns; /* NULL-terminated; none: all leaves */
	struct sampler *sampler;
	struct oomwatch *oomwatch;
	struct observed *first;
	struct observed_pod *pods;
	unsigned int n;
	uint64_t refused; /* over OBSERVED_MAX, or no memory */
	bool scanned;     /* what appears from now on is new */
	bool cut;         /* the tree is larger than one walk */
};

/* All pointers must outlive t. */
void observe_table_finish(struct observe_table *t);
/* Joins cgroups that appeared, lets go of those that went. */
int observe_table_scan(struct observe_table *t, struct err *e);
/* Pure: is this cgroup to be watched? A pattern is matched against the whole path (a `*` takes
 * slashes too); without a slash in front it matches from any component on. A cgroup with children
 * is only taken when it is named exactly. */
bool observe_wants(char *const *patterns, const char *path, bool leaf);

void observed_event(struct observed *o, const struct clock *clock, enum observed_event_kind kind,
	enum oom_class class);

/* {"containers":[…]} and a newline, appended to b. */
void observe_print_json(const struct observe_table *t, struct buf *b);
/* A table for people. rows and columns: of the terminal, 0 when it is none (then nothing is cut).
 */
void observe_print_table(const struct observe_table *t, unsigned int rows, unsigned int columns,
	bool colour, struct buf *b);
