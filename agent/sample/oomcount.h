/* SPDX-License-Identifier: Apache-2.0 */
/* The accounts of OOM kills in one pod, apart from how the numbers are read. The kernel's
 * "oom_kill" is hierarchical and counts processes (a group kill of 4 tasks adds 5): one incident is
 * one increase, or the increase of oom_group_kill where that is told. The pod's counter outlives
 * its containers, so that what it has more than all containers together is the share of those that
 * are gone, or were never seen. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/cgroup/cgfile.h"

#define OOM_INCIDENTS_MAX 64U /* told of one reading; no kernel kills more groups between two */

/* The kills of one cgroup that were already dealt with. */
struct oom_count {
	uint64_t kills;       /* oom_kill */
	uint64_t group_kills; /* oom_group_kill; 0 where the kernel does not tell */
};

/* Takes a reading. Returns the number of incidents since the last one and sets *ret_kills to the
 * increase of oom_kill. A counter that went backwards is another cgroup's: taken as the new start,
 * no incident. A reading without the key changes nothing. */
unsigned int oom_count_take(
	struct oom_count *c, const struct memory_events *e, uint64_t *ret_kills);

/* The start of the account of a cgroup seen for the first time: all kills that it shows are old,
 * but for the last `fresh` of them. */
void oom_count_start(struct oom_count *c, const struct memory_events *e, uint64_t fresh);

/* An "oom" counter: did it rise along with a kill? The two are not counted at the same instant, and
 * the kernel may count an oom that kills nobody; so a rise is evidence for a little while. */
#define OOM_EVIDENCE_USEC UINT64_C(2000000)
struct oom_rise {
	bool known, rose;
	uint64_t oom;
	uint64_t rose_usec;
};
/* event: EVENT_OOM was seen in e */
void oom_rise_take(struct oom_rise *r, const struct memory_events *e, uint64_t now_usec);
/* All that it has counted is news: it goes with kills that nobody has dealt with. */
void oom_rise_is_news(struct oom_rise *r, uint64_t now_usec);
/* at_usec: when the kill was seen. */
bool oom_rise_is_recent(const struct oom_rise *r, uint64_t at_usec);
