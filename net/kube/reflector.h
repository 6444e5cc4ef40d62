/* SPDX-License-Identifier: Apache-2.0 */
/* A reflector keeps a consumer's picture of one kind of object the same as the API server's: list
 * and watch, for as long as it lives, through everything that goes wrong (net/kube/retry.h). It
 * knows nothing of what the objects are: their bytes go to the consumer as they come, in pieces,
 * and are never held. Only what the protocol needs is read here: name, resource version, bookmarks
 * (net/kube/frames.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/kube/client.h"
#include "net/kube/retry.h"

#define KUBE_OBJECT_MAX_BYTES (2U * 1024U * 1024U) /* etcd takes 1.5 MiB */
#define KUBE_LIST_PAGE 500U
#define KUBE_LIST_PAGE_MAX 10000U
/* The server sends a bookmark about once a minute, so this long without a byte is a dead
 * connection. */
#define KUBE_WATCH_IDLE_USEC (150 * USEC_PER_SEC)
/* With initial events asked for, the server has something to say at once. */
#define KUBE_PICTURE_IDLE_USEC (30 * USEC_PER_SEC)
#define KUBE_LIST_TIMEOUT_USEC (2 * USEC_PER_MINUTE)
/* A watch is asked to end after a random time between this and twice this. */
#define KUBE_WATCH_SECONDS 900U

enum kube_event { KUBE_ADDED, KUBE_MODIFIED, KUBE_DELETED };

/* Which object: valid during the callback; "" where the bytes did not say (cluster-scoped, or cut).
 */
struct kube_meta {
	const char *namespace;
	const char *name;
	const char *resource_version;
};

enum kube_skip {
	KUBE_SKIP_TOO_LARGE, /* over object_max_bytes */
	KUBE_SKIP_REFUSED,   /* the consumer could not read it */
	KUBE_SKIP_MALFORMED, /* the event is not of the watch protocol */
	KUBE_SKIP_COUNT,
};
const char *kube_skip_name(enum kube_skip s);

struct kube_reflector;

/* Called from the loop. Each of them may destroy the reflector. */
struct kube_consumer {
	/* A full picture begins: the first, or a new one after the old was lost. Objects that are
	 * not told of again before synced() are gone. May come again before synced(): then the
	 * picture starts anew. */
	void (*begin)(void *arg);
	/* One object at a time: start, data…, then either end or abort. A negative return of data
	 * refuses the object: its other bytes are not passed on, abort is called. */
	void (*object_start)(void *arg);
	int (*object_data)(void *arg, struct str piece, struct err *e);
	/* The object is complete. Negative: it could not be used; e says why; it is skipped and
	 * named by skipped(). */
	int (*object_end)(
		void *arg, enum kube_event event, const struct kube_meta *meta, struct err *e);
	void (*object_abort)(void *arg);
	/* The picture is complete. */
	void (*synced)(void *arg);
	/* An object was left out; text says which and why. The stream goes on. May be NULL. */
	void (*skipped)(
		void *arg, enum kube_skip why, const struct kube_meta *meta, const char *text);
	/* A request ended in a way that makes the reflector wait; it goes on by itself. May be
	 * NULL. */
	void (*trouble)(void *arg, enum kube_trouble why, const char *text, uint64_t retry_in_usec);
	/* A watch is answered by the server after trouble, or for the first time. May be NULL. */
	void (*connected)(void *arg);
	void *arg;
};

struct kube_reflector_options {
	const char *path;           /* "/api/v1/pods"; copied, as all strings here */
	const char *field_selector; /* "spec.nodeName=n", plain; NULL: none */
	const char *label_selector; /* plain; NULL: none */
	const char *accept;         /* NULL: application/json */
	/* 0 in any of these: the constant above */
	size_t object_max_bytes;
	unsigned int page;
	uint64_t watch_idle_usec;
	uint64_t picture_idle_usec;
	uint64_t list_timeout_usec;
	unsigned int watch_seconds;
	uint64_t backoff_first_usec;
	uint64_t backoff_last_usec;
	uint64_t lived_usec;
	uint64_t stable_usec;
	/* The first request waits a random time up to this: a fleet that starts together. 0: none.
	 */
	uint64_t start_spread_usec;
	bool no_watch_list;            /* list in pages even where the server has initial events */
	uint64_t (*random)(void *arg); /* NULL: the kernel's */
	void *random_arg;
};

struct kube_reflector_stats {
	uint64_t pictures; /* begun: by list or by watch */
	uint64_t syncs;    /* completed */
	uint64_t lists;    /* requests */
	uint64_t watches;  /* requests */
	uint64_t events;   /* objects handed to the consumer */
	uint64_t bookmarks;
	uint64_t skipped[KUBE_SKIP_COUNT];
	uint64_t troubles[KUBE_TROUBLE_COUNT];
	bool synced;              /* a picture has been completed, and none is being rebuilt */
	bool connected;           /* a watch is open and was answered */
	uint64_t heard_mono_usec; /* when the last byte came; 0: never */
};

/* Starts at once (or after the spread). The client must outlive it. Destroy it before loop_finish.
 */
int kube_reflector_create(struct kube_reflector **ret_r, struct loop *l, struct kube_client *client,
	const struct kube_reflector_options *options, const struct kube_consumer *consumer,
	struct err *e);
/* Takes NULL. No callback comes afterwards. */
void kube_reflector_destroy(struct kube_reflector *r);
const struct kube_reflector_stats *kube_reflector_stats(const struct kube_reflector *r);
