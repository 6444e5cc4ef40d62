/* SPDX-License-Identifier: Apache-2.0 */
/* The contract that other tools read: what is published as annotations of the Node, as keys and as
 * values. docs/annotations.md is for those who read it, proto/schema/recommendation.schema.json for
 * their programs.
 *
 *     <daemonset>.<namespace>.pernode.io/<container>    a recommendation
 *     pernode.io/agent                                  who wrote it
 *
 * The namespace is the last label before the domain (it holds no dots), the rest is the DaemonSet.
 * Where that would be longer than a key may be (253 bytes before the slash, 63 after), the name in
 * question is cut and followed by "-" and 16 hex digits of the FNV-1a 64 hash of the whole name:
 * the DaemonSet's, so that the part before the slash has at most 253 bytes, and the container's, so
 * that it has at most 63. A '-' or '.' that the cut leaves at the end is cut too. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "proto/quantity.h"

#define ANNOTATION_DOMAIN "pernode.io"
#define ANNOTATION_AGENT ANNOTATION_DOMAIN "/agent"
#define ANNOTATION_RECOMMENDER ANNOTATION_DOMAIN "/recommender" /* on pods: estimator settings */
#define ANNOTATION_PREFIX_MAX 253U
#define ANNOTATION_NAME_MAX 63U
#define ANNOTATION_KEY_MAX                                                    \
	(ANNOTATION_PREFIX_MAX + 1 + ANNOTATION_NAME_MAX + 1) /* with its NUL \
							       */
#define ANNOTATION_VALUE_MAX 2048U /* bytes; a longer value is none of ours */

/* -EINVAL: a name that Kubernetes would not have given. */
int annotation_key(char out[ANNOTATION_KEY_MAX], struct str namespace, struct str daemonset,
	struct str container);

enum annotation_kind {
	ANNOTATION_FOREIGN, /* not under our domain */
	ANNOTATION_OTHER,   /* under our domain, but neither of: */
	ANNOTATION_IS_AGENT,
	ANNOTATION_IS_RECOMMENDATION,
};

/* Points into the key. A shortened name is not turned back: compare keys, not names, where that
 * matters. */
struct annotation_names {
	struct str namespace, daemonset, container;
};
enum annotation_kind annotation_key_parse(struct str key, struct annotation_names *ret);

enum annotation_reason {
	ANNOTATION_REASON_UNKNOWN, /* one of a later version */
	ANNOTATION_REASON_FIRST,
	ANNOTATION_REASON_USAGE,
	ANNOTATION_REASON_THROTTLED,
	ANNOTATION_REASON_OOM,
	ANNOTATION_REASON_AHEAD_OF_OOM,
};
const char *annotation_reason_name(enum annotation_reason r);

#define ANNOTATION_REVISION_MAX 64U

/* What a container needs on this node. What is not known is -1 and not written, never 0. */
struct annotation_value {
	struct quantity_pair target, lower, upper;
	uint64_t samples; /* CPU samples ever counted */
	int64_t since_ns; /* of the first; TIME_NONE: none */
	int64_t at_ns;    /* when this was published */
	enum annotation_reason reason;
	uint64_t oom_kills;                     /* incidents since then */
	double coverage_cpu, coverage_memory;   /* 0…1; negative: not known */
	char revision[ANNOTATION_REVISION_MAX]; /* controller-revision-hash, "" if not known */
};

/* Compact JSON, members in the order of the struct. Errors stay in the buffer. */
void annotation_value_write(struct buf *b, const struct annotation_value *v);
/* Members that are not known are ignored. -EINVAL: no such value, with the reason in e; it counts
 * as absent. A target without any amount is one of these. */
int annotation_value_read(struct str text, struct annotation_value *ret, struct err *e);

#define ANNOTATION_AGENT_STR_MAX 128U

/* Who writes the recommendations of a Node, written once per start. */
struct annotation_agent {
	char version[ANNOTATION_AGENT_STR_MAX];
	char node_uid[ANNOTATION_AGENT_STR_MAX];
	char machine[ANNOTATION_AGENT_STR_MAX]; /* annotation_machine_hash */
	char boot_id[ANNOTATION_AGENT_STR_MAX];
	int64_t started_at_ns;
	char state[ANNOTATION_AGENT_STR_MAX];  /* "ok", "unsupported", … */
	char reason[ANNOTATION_AGENT_STR_MAX]; /* why it is not ok; "" is not written */
};
void annotation_agent_write(struct buf *b, const struct annotation_agent *a);
int annotation_agent_read(struct str text, struct annotation_agent *ret, struct err *e);

/* 16 hex digits that stand for status.nodeInfo.machineID, which itself need not be told: the
 * FNV-1a 64 hash of "pernode machine " and the ID. "" for an empty ID. */
void annotation_machine_hash(char out[17], struct str machine_id);
