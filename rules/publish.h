/* SPDX-License-Identifier: Apache-2.0 */
/* What is written to the Node, and when. Every write of a Node is sent to everyone who watches
 * Nodes, so a node has a budget: one ordinary patch per interval, and a token bucket for what
 * cannot wait (a first value, an OOM, a warning ahead of one). A patch carries every key that is
 * due and every key that has moved. Pure: no clock, no I/O, chance comes in as a number. Times of a
 * node's pace are monotonic microseconds, times of an item are wall time in ns. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "rules/estimator.h"
#include "rules/instant.h"

/* A target that differs by as much is due. */
#define PUBLISH_DUE_PERCENT 10
/* A value that differs by as much goes with a patch that goes anyway. */
#define PUBLISH_RIDE_PERCENT 5
/* A request that lies at the very edge of a bound would change sides for ever, and somebody who
 * undoes our writes would be answered for ever: a key that was published for one of these alone is,
 * so long after, published for one of these alone at the slow pace only. */
#define PUBLISH_TREMBLES_NS (6 * INSTANT_HOUR)

enum publish_reason {
	PUBLISH_FIRST,
	PUBLISH_USAGE,
	PUBLISH_THROTTLED,
	PUBLISH_OOM,
	PUBLISH_AHEAD_OF_OOM,
	PUBLISH_REASONS,
};
/* "first", "usage", "throttled", "oom", "ahead-of-oom". */
const char *publish_reason_name(enum publish_reason reason);

/* One key of the Node. Plain data, no pointers. */
struct publish_item {
	/* What is on the Node, as far as we know. at: TIME_NONE when nothing is. */
	struct recommendation published;
	int64_t at;
	int64_t oom_kills;
	int64_t samples;
	int64_t throttled_minutes; /* of the history, when it was published */
	int64_t trembled_at; /* published for PUBLISH_TREMBLES_NS's reasons alone; TIME_NONE */
	uint64_t hash;       /* of the value's text; 0: not known */
	enum publish_reason reason;

	/* What cannot wait and has not been told: PUBLISH_OOM or PUBLISH_AHEAD_OF_OOM. */
	bool urgent;
	enum publish_reason urgent_reason;
	bool lost;    /* the Node does not hold what we wrote */
	bool refused; /* no room for it, or the server does not take it; not saved */

	/* A patch with it is under way. */
	bool in_flight;
	bool sent_withdrawn; /* that patch takes the key away */
	bool sent_urgent;
	bool sent_trembles;
	struct recommendation sent;
	int64_t sent_oom_kills, sent_samples, sent_throttled_minutes;
	uint64_t sent_hash;
	enum publish_reason sent_reason;
};

/* Nothing published, nothing waits. */
void publish_item_init(struct publish_item *i);
/* An OOM or a warning ahead of one. */
void publish_item_urgent(struct publish_item *i, enum publish_reason reason);

/* What is known of the workload now. */
struct publish_facts {
	struct recommendation today; /* rounded: publish_round */
	struct amounts request;      /* the pod's real request; unknown where there is none */
	int64_t oom_kills;
	int64_t samples;
	int64_t throttled_minutes;
	bool ready; /* there is something to tell */
	bool gone;  /* not here for longer than the retention of keys */
};

/* How much it matters, in ascending order. */
enum publish_need {
	PUBLISH_NOT,
	PUBLISH_RIDES, /* moved: goes if a patch goes */
	PUBLISH_SLOW,  /* trembles: goes if nothing went for two hours */
	PUBLISH_DUE,   /* once per interval */
	PUBLISH_NEW,   /* a first value: out of turn for a token, spread over some time */
	PUBLISH_NOW,   /* OOM, ahead of one: out of turn for a token, at once */
};

/* Judges one key. *ret_reason (may be NULL) is set unless PUBLISH_NOT. Unknown on one side only
 * counts as different. An urgent item whose values do not say more than what is published is not
 * urgent. */
enum publish_need publish_judge(const struct publish_item *i, const struct publish_facts *f,
	int64_t now_ns, enum publish_reason *ret_reason);

/* Keeps noise out of what is told: up to the next multiple of the largest power of two that is at
 * most a 32nd of the value (so by less than 1/32), the same for target and bounds so that their
 * order stays. */
int64_t publish_round_amount(int64_t amount);
void publish_round(struct recommendation *r);

/* Below, inside or above [lower, upper]; a bound that is not known holds nothing back. */
enum publish_side { PUBLISH_BELOW, PUBLISH_INSIDE, PUBLISH_ABOVE };
enum publish_side publish_side_of(
	int64_t request, const struct recommendation *r, enum resource resource);

/* The item goes into a patch, with the value's hash (0: it is taken away). */
void publish_item_sent(struct publish_item *i, const struct publish_facts *f,
	enum publish_reason reason, uint64_t hash, int64_t now_ns);
/* The server took it, at the time told in the value. No-op without in_flight. */
void publish_item_done(struct publish_item *i, int64_t at_ns);
/* It did not; what was urgent is so again. No-op without in_flight. */
void publish_item_failed(struct publish_item *i);
/* The Node holds something else, or nothing, under this key: to be written again. */
void publish_item_lost(struct publish_item *i);

/* For the checkpoint. At most PUBLISH_SAVED_MAX bytes are appended to b. */
#define PUBLISH_SAVED_MAX 256U
int publish_item_save(const struct publish_item *i, struct buf *b);
/* -EINVAL: damaged, with the reason in e; i is then as after publish_item_init. */
int publish_item_load(struct publish_item *i, struct str saved, struct err *e);

/* The budget of one node. Defaults: publish_pace_default. */
struct publish_pace {
	uint64_t interval_usec;     /* between ordinary patches; ± a tenth */
	uint64_t slow_usec;         /* since any patch, for what trembles */
	uint64_t first_wait_usec;   /* the first patch waits so long for all containers */
	uint64_t first_spread_usec; /* and first values up to so long more, at random */
	unsigned int tokens;        /* of the bucket, full at the start; at least 1 */
	uint64_t refill_usec;       /* one token per */
	uint64_t readback_usec;     /* between looks at the own Node; ± a tenth */
};
extern const struct publish_pace
	publish_pace_default; /* 15 min, 2 h, 2 min, 60 s, 6, 10 min, 1 h */

struct publish_node {
	struct publish_pace pace;
	uint64_t start_usec;
	uint64_t ordinary_usec; /* no ordinary patch before */
	uint64_t slow_usec;     /* and none for what trembles */
	uint64_t first_usec;    /* first values that wait go then; 0: none wait */
	uint64_t hello_usec;    /* who writes here is told then; 0: not drawn yet */
	uint64_t full_usec;     /* the bucket is full again at */
	uint64_t hold_usec;     /* after a failure: nothing before */
	uint64_t readback_usec;
	uint64_t ceiling_usec; /* of the last wait; 0: the last request went well */
	bool first_done;       /* the first patch was taken */
	bool in_flight;
	bool unsettled; /* it is not known whether the last patch was taken */
	bool sent_token;
	bool sent_hello; /* the patch under way is no first patch */
};

/* pace NULL: the defaults. Below, random is uniform over all 64 bits. */
void publish_node_init(struct publish_node *n, const struct publish_pace *pace, uint64_t now_usec);
/* How long until a patch may go whose most pressing key has this need: 0 now, UINT64_MAX never (no
 * need, or one is under way). all_ready: no container that is here is still learning (only the
 * first patch waits for that). */
uint64_t publish_node_wait(struct publish_node *n, uint64_t now_usec, enum publish_need need,
	bool all_ready, uint64_t random);
/* A patch goes out. */
void publish_node_sent(struct publish_node *n, uint64_t now_usec, enum publish_need need);
/* At a start, when the Node does not tell who writes here: a patch that says that alone, since the
 * first one may have to wait for containers. How long until it may go: at random within the spread
 * of first values, for a token; UINT64_MAX once the first patch was taken, or while one is under
 * way. It costs the first patch nothing of its wait or its company. */
uint64_t publish_node_hello_wait(struct publish_node *n, uint64_t now_usec, uint64_t random);
void publish_node_hello_sent(struct publish_node *n, uint64_t now_usec);
/* The server took it. Its answer is as good as a look at the Node. */
void publish_node_done(struct publish_node *n, uint64_t now_usec, uint64_t random);
/* It did not, or a look failed: nothing more before a wait between half a ceiling and the ceiling,
 * which is twice the one before, from first_usec to last_usec, whatever failed before; or before
 * retry_after_usec and up to a fifth more, when that is longer. */
void publish_node_failed(struct publish_node *n, uint64_t now_usec, uint64_t first_usec,
	uint64_t last_usec, uint64_t retry_after_usec, uint64_t random);
/* Its answer was lost, so it may have taken it or not. Waits as after a failure; then comes a look
 * at the Node, and no patch before publish_node_settled. */
void publish_node_unsettled(struct publish_node *n, uint64_t now_usec, uint64_t first_usec,
	uint64_t last_usec, uint64_t retry_after_usec, uint64_t random);
/* What the look told: taken costs what any patch costs; not taken is a failure, and the next wait
 * goes on to double. No-op unless unsettled. */
void publish_node_settled(struct publish_node *n, uint64_t now_usec, bool taken, uint64_t random);
/* How long until the next look at the own Node; UINT64_MAX while a patch is under way. */
uint64_t publish_node_readback_wait(const struct publish_node *n, uint64_t now_usec);
/* A look succeeded. */
void publish_node_readback_done(struct publish_node *n, uint64_t now_usec, uint64_t random);
