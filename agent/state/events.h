/* SPDX-License-Identifier: Apache-2.0 */
/* What happened lately, for people: OOM kills and what was done. A ring of the newest EVENTS_MAX;
 * older ones are forgotten, and how many is told. What must survive a restart is in the histories,
 * not here. */
#pragma once

#include <stdint.h>

#include "base/macros.h"
#include "base/str.h"
#include "rules/amount.h"
#include "rules/oomclass.h"

#define EVENTS_MAX SIZE_OR_TINY(256U, 4U)
#define EVENT_TEXT_MAX_BYTES 320U

enum event_kind {
	EVENT_KIND_OOM,   /* detail: oom_class_name; limit_bytes, peak_bytes; target after it */
	EVENT_KIND_AHEAD, /* ahead of an OOM; limit_bytes, peak_bytes: what cannot be reclaimed */
	EVENT_KIND_PUBLISHED, /* detail: reason; target as published */
	EVENT_KIND_REMOVED,   /* a key was taken off the node; detail: why */
	EVENT_KIND_RESTARTED, /* a new container took over */
	EVENT_KIND_SETTINGS,  /* pernode.io/recommender changed; detail: "applied", "removed",
				 "unusable" */
	EVENT_KIND_CLOCK,     /* the wall clock was set; text: by how much */
	EVENT_KIND_NODE,      /* of the agent or the node itself; detail and text say what */
	EVENT_KINDS
};
/* "oom", "ahead-of-oom", "published"… */
const char *event_kind_name(enum event_kind kind);

struct event {
	int64_t at_ns; /* wall time */
	enum event_kind kind;
	const char *detail; /* one word from the list of its owner, a literal that is never freed;
			       "" for none */
	/* Copied by events_add; cut at the lengths Kubernetes allows. Empty where it concerns no
	 * workload. */
	struct str namespace, daemonset, container, pod;
	struct str text; /* one sentence for people, may be empty; cut at EVENT_TEXT_MAX_BYTES */
	int64_t limit_bytes, peak_bytes; /* -1: unknown */
	struct amounts target;           /* known[]: false where none */
};

/* Nothing known but kind and time. */
#define EVENT(kind_, at_ns_)               \
	((struct event){.at_ns = (at_ns_), \
		.kind = (kind_),           \
		.detail = "",              \
		.limit_bytes = -1,         \
		.peak_bytes = -1})

struct events {
	struct event ring[EVENTS_MAX];
	char *strings[EVENTS_MAX]; /* what the ring's views point into, one block each */
	uint64_t added;            /* ever; the newest is ring[(added - 1) % EVENTS_MAX] */
	uint64_t of_kind[EVENT_KINDS];
	uint64_t oom_of_class[OOM_CLASSES];
	uint64_t lost; /* no memory for their texts */
};

void events_init(struct events *e);
void events_finish(struct events *e);
/* Keeps a copy. Without memory for the texts the event is counted and left out. */
void events_add(struct events *e, const struct event *event);
/* How many are kept. */
unsigned int events_n(const struct events *e);
/* The i-th newest, or NULL past the last. Valid until the next events_add. */
const struct event *events_get(const struct events *e, unsigned int i);
