/* SPDX-License-Identifier: Apache-2.0 */
/* Tells what was learned: the recommendations of this node's workloads, as annotations of its Node
 * (proto/annotation.h). Decides by rules/publish.h what goes and when, sends one merge patch of our
 * own keys at a time, compares every answer, and once an hour the Node itself, with what should be
 * there, and takes away keys whose DaemonSet has left. Keys that are not ours are never touched. A
 * server that is away, refuses or asks to wait costs a wait that grows; what is sent afterwards is
 * the newest state, once. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/state/health.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/loop.h"
#include "proto/annotation.h"
#include "rules/publish.h"

#define PUBLISHER_STALE_AFTER_USEC USEC_PER_DAY
#define PUBLISHER_FILE_MAX_BYTES (UINT64_C(64) * 1024 * 1024) /* a dry run's file stops there */
#define PUBLISHER_FIELD_MANAGER "pernode-agent"

struct kube_client;
struct kube_request;
struct publisher;
struct workload;
struct workloads;

/* How a read or a patch ended. Fixed list: label of a metric. */
enum publisher_outcome {
	PUBLISHER_OK,
	PUBLISHER_UNREACHABLE,  /* no connection, or it was cut */
	PUBLISHER_TIMEOUT,      /* silence, or the deadline */
	PUBLISHER_TLS,          /* the server's certificate */
	PUBLISHER_PROTOCOL,     /* not the answer of an API server */
	PUBLISHER_UNAUTHORIZED, /* 401: our token */
	PUBLISHER_FORBIDDEN,    /* 403: RBAC, or an admission policy */
	PUBLISHER_NOT_FOUND,    /* 404: there is no such Node */
	PUBLISHER_CONFLICT,     /* 409 */
	PUBLISHER_TOO_LARGE,    /* the Node's annotations are full (256 KiB), or 413 */
	PUBLISHER_INVALID,      /* 400, 422 for another reason */
	PUBLISHER_THROTTLED,    /* 429 */
	PUBLISHER_SERVER,       /* 5xx */
	PUBLISHER_REFUSED,      /* any other status */
	PUBLISHER_LOCAL,        /* memory, descriptors; the file of a dry run */
	PUBLISHER_OUTCOMES
};
/* "ok", "unreachable", "timeout", … */
const char *publisher_outcome_name(enum publisher_outcome o);

struct publisher_stats {
	uint64_t patches[PUBLISHER_OUTCOMES]; /* asked, by how it ended */
	uint64_t reads[PUBLISHER_OUTCOMES];
	uint64_t published[PUBLISH_REASONS]; /* values that the server took */
	uint64_t removed;                    /* keys taken away */
	uint64_t lost;       /* values found missing or changed, to be written again */
	uint64_t unreadable; /* values under our keys that are no values */
	uint64_t refused;    /* keys the server does not take, set aside until the next start */
	uint64_t left_out;   /* now: workloads for which there is no room */
	int64_t last_ok_wall_usec;    /* of a patch or read; INT64_MIN: none yet */
	int64_t last_patch_wall_usec; /* that was taken; INT64_MIN: none yet */
};

/* Called from the loop. Each may be NULL. */
struct publisher_hooks {
	/* The own Node was read for the first time, or was found to have another UID or machine.
	 * machine: annotation_machine_hash, "" if the Node does not tell. */
	void (*identified)(void *arg, const char *node_uid, const char *machine);
	/* After the first of these: a value on the Node, written by an agent of this very node and
	 * machine, of which we do not remember that it was published. Returns its workload, which
	 * may have been made of it (its item is then filled in here); or NULL: the key is not
	 * wanted and is taken away, unless a pod here has that name. */
	struct workload *(*found)(void *arg, const struct annotation_names *names,
		const struct annotation_value *value);
	/* The server took a value of w; it is in w->publish. */
	void (*published)(void *arg, const struct workload *w);
	/* It took a key away. */
	void (*removed)(void *arg, struct str key);
	void *arg;
};

/* What carries requests: the client, or a test. As kube_client_start and kube_call_cancel; one
 * request at a time. */
struct publisher_port {
	int (*start)(void *arg, const struct kube_request *request, struct err *e);
	void (*cancel)(void *arg);
	void *arg;
};

struct publisher_options {
	const char *node_name; /* copied, as all strings here */
	const char *file;      /* a dry run: one JSON line per patch; NULL: to the API server */
	const char *version;   /* of the agent */
	const char *boot_id;
	const struct clock *clock;     /* NULL: clock_system */
	uint64_t (*random)(void *arg); /* uniform over 64 bits; NULL: getrandom */
	void *random_arg;
	const struct publish_pace *pace; /* NULL: publish_pace_default */
	uint64_t stale_after_usec;       /* keys of what left are removed; 0: the default */
	/* The first look at the Node waits a random time up to this: a fleet that starts together.
	 * What cannot wait is not held up by it. 0: none. */
	uint64_t start_spread_usec;
	struct publisher_hooks hooks;
	const struct publisher_port *port; /* NULL: client */
};

/* client may be NULL in a dry run. workloads must outlive the publisher. Work begins when the loop
 * runs: with a look at the own Node. -EINVAL, -ENOMEM. */
int publisher_create(struct publisher **ret, struct loop *l, struct kube_client *client,
	struct workloads *workloads, const struct publisher_options *options, struct err *e);
/* Cancels what is under way. Takes NULL. Before loop_finish and before kube_client_destroy. */
void publisher_destroy(struct publisher *p);

/* Something urgent changed (publish_item_urgent), or a first value came: look at the next turn of
 * the loop. Cheap, may be called often. */
void publisher_poke(struct publisher *p);
/* The pods of this node are all known: from now on what is not here is known to be gone. */
void publisher_synced(struct publisher *p);
/* What pernode.io/agent says: "ok", "unsupported"… and why. "ok" before. */
void publisher_set_state(struct publisher *p, const char *state, const char *reason);

/* How it goes, with one sentence ("" for a plain ok) that is valid until the next turn. */
enum health publisher_health(const struct publisher *p, const char **ret_text);
const struct publisher_stats *publisher_stats(const struct publisher *p);
/* What stands in the way now; PUBLISHER_OK: nothing. */
enum publisher_outcome publisher_trouble(const struct publisher *p);
/* "" until the own Node was read. */
const char *publisher_node_uid(const struct publisher *p);
const char *publisher_machine(const struct publisher *p);

/* The values that would be told of w now: rounded as they are published. */
void publisher_facts(const struct workloads *workloads, const struct workload *w, int64_t now_ns,
	uint64_t stale_after_usec, struct publish_facts *ret);
