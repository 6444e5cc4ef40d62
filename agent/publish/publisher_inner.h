/* SPDX-License-Identifier: Apache-2.0 */
/* What the publisher's own files share; nobody else's. */
#pragma once

#include "agent/publish/publisher.h"
#include "agent/state/workload.h"
#include "base/buf.h"
#include "net/kube/client.h"
#include "proto/node.h"

#define PUBLISHER_PATCH_MAX_BYTES (512U * 1024U)
#define PUBLISHER_SEEN_MAX_BYTES (1024U * 1024U) /* our keys and values on one Node */
#define PUBLISHER_ROOM_BYTES (256U * 1024U)      /* the API server's limit for all annotations */
#define PUBLISHER_VALUE_BYTES 400U               /* of a value, as a rule */
#define PUBLISHER_AGENT_BYTES 1024U              /* of pernode.io/agent, at most as a rule */
#define PUBLISHER_REMOVALS_MAX 256U              /* stray keys taken away by one patch */
#define PUBLISHER_LOOK_USEC USEC_PER_MINUTE      /* between two looks at all workloads */
#define PUBLISHER_LOOK_EARLY_USEC (10 * USEC_PER_SEC) /* before the first patch */

/* One workload as it is judged now. */
struct candidate {
	struct workload *w;
	struct publish_facts facts;
	enum publish_need need;
	enum publish_reason reason;
	size_t size; /* that its key and value take, about */
	bool left_out;
};

struct candidates {
	struct candidate *all; /* kept from look to look */
	size_t n, capacity;
	bool all_ready;         /* none that is here is still learning */
	size_t bytes;           /* of those that are not left out */
	size_t published_bytes; /* thereof, of keys that are on the Node already */
};

enum publisher_request { PUBLISHER_NONE, PUBLISHER_READ, PUBLISHER_PATCH };

struct publisher {
	struct loop *loop;
	struct loop_timer timer;
	struct workloads *workloads;
	const struct clock *clock;
	uint64_t (*random)(void *arg);
	void *random_arg;
	struct publisher_hooks hooks;
	struct publisher_port port;
	struct kube_client *client; /* of our own port */
	struct kube_call *call;
	char *node_name, *path, *patch_path, *file, *version, *boot_id;
	uint64_t stale_after_usec;

	struct publish_node node; /* the budget */
	struct candidates candidates;
	bool synced;
	size_t room_max;  /* for our keys, beside what others have on the Node */
	size_t room;      /* thereof; shrinks when the server says that it is too much */
	size_t left_out;  /* workloads, now */
	size_t batch_max; /* keys of one patch; shrinks while one of them is refused */

	/* pernode.io/agent */
	char *state, *reason;
	int64_t started_at_ns;
	bool agent_due;
	bool agent_lost;     /* because the Node does not hold it any more */
	bool agent_told;     /* the Node tells the same, but for the time of the start */
	bool hello;          /* the patch to be sent, or under way, says nothing else */
	int64_t agent_at_ns; /* when it was last written; TIME_NONE */
	bool agent_sent;     /* with the patch under way */
	uint64_t agent_hash, agent_sent_hash;

	/* The request under way. */
	enum publisher_request request;
	bool sent;          /* to the server, and not to a file or nowhere */
	bool poked;         /* meanwhile, or before it */
	uint64_t wake_usec; /* when the timer was last set to fire, monotonic */
	int64_t sent_at_ns;
	size_t sent_items;
	struct node_reader *reader;
	int reading; /* 0, or what reading the answer failed with */
	struct err reading_error;

	/* Our keys on the Node, as the answer that is being read has them: records of lengths, key,
	 * value. */
	struct buf seen;
	/* Keys under our domain that belong to nobody: each with its NUL. */
	struct buf strays;
	struct buf removals; /* those in the patch under way */

	bool identified;
	char node_uid[NODE_UID_MAX];
	char machine[17];

	enum publisher_outcome trouble;
	struct err trouble_text;
	char aside_text[320]; /* what is left out or set aside, in words; "" for nothing */
	struct publisher_stats stats;
};

/* FNV-1a 64, never 0: tells whether a value on the Node is the one that was written. */
uint64_t publisher_hash(struct str s);

/* publisher_outcome.c. The wait after a failure: from first, doubled, to last. */
struct publisher_patience {
	uint64_t first_usec, last_usec;
	bool open; /* a patch that ends so may have been taken all the same */
};
extern const struct publisher_patience publisher_patience[PUBLISHER_OUTCOMES];
enum publisher_outcome publisher_outcome_of(const struct kube_answer *a);

/* publisher_patch.c: what goes. */
/* Judges every workload; the most pressing need, with the agent's own key and strays. Says in
 * aside_text what there is no room for. */
enum publish_need publisher_look(struct publisher *p, int64_t now_ns);
/* Writes the merge patch of all that moved into b and marks the items as sent. -ENOMEM, -EMSGSIZE:
 * nothing is marked. */
int publisher_write_patch(struct publisher *p, struct buf *b, int64_t now_ns);

/* The server took it; or did not, which may say something of the room or of one of its keys. */
void publisher_patch_done(struct publisher *p);
void publisher_patch_failed(struct publisher *p, enum publisher_outcome o);

/* What pernode.io/agent is to say. */
void publisher_agent(const struct publisher *p, struct annotation_agent *ret);
/* How long until who writes here is told by a patch of its own; UINT64_MAX: it goes with the
 * others, or is told. */
uint64_t publisher_hello_wait(struct publisher *p, uint64_t now_usec, uint64_t random);

/* publisher_node.c: what is there. */
/* The workload whose key this is, or NULL. */
struct workload *publisher_owner(const struct publisher *p, struct str key);
/* For node_reader_create. */
void publisher_on_annotation(void *arg, struct str key, struct str value);
/* Whether the patch whose answer was lost is on the Node that was read. Then the items that it does
 * not hold as sent count as failed; else all do. */
bool publisher_settle(struct publisher *p);
/* The whole Node was read: who it is, and whether our keys are as they should be. */
void publisher_compare(struct publisher *p, const struct node *node);

/* publisher.c. Does what is to be done now and sets the timer. */
void publisher_turn(void *arg);
