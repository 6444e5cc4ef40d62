/* SPDX-License-Identifier: Apache-2.0 */
/* What a reflector does next, given how its last request ended. Pure: outcomes in, plans out; the
 * clock and chance are the caller's. The rules in short:
 *   - a full picture comes by a watch with initial events where the server has that, else by a list
 * in pages;
 *   - after it, watches go on from the last resource version, until the server says that version is
 * gone (410), has not come as far itself, or keeps silent about it;
 *   - every failure waits, longer each time; only a watch that lived and delivered shortens the
 * wait again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "net/kube/backoff.h"

enum kube_phase {
	KUBE_WATCH_LIST, /* watch with sendInitialEvents: the picture, then what changes */
	KUBE_LIST,       /* first page */
	KUBE_LIST_MORE,  /* a further page */
	KUBE_WATCH,      /* from a resource version */
};

/* Fixed list: metrics label and log word. */
enum kube_trouble {
	KUBE_TROUBLE_NONE,
	KUBE_TROUBLE_UNREACHABLE, /* no connection, or it was cut */
	KUBE_TROUBLE_TIMEOUT,     /* silence, or the deadline */
	KUBE_TROUBLE_TLS,
	KUBE_TROUBLE_PROTOCOL,     /* not HTTP, not JSON: a proxy's page, garbage */
	KUBE_TROUBLE_UNAUTHORIZED, /* 401 */
	KUBE_TROUBLE_FORBIDDEN,    /* 403 */
	KUBE_TROUBLE_NOT_FOUND,    /* 404 */
	KUBE_TROUBLE_EXPIRED,      /* 410 */
	KUBE_TROUBLE_THROTTLED,    /* 429, 503 */
	KUBE_TROUBLE_SERVER,       /* other 5xx */
	KUBE_TROUBLE_REFUSED,      /* other 4xx */
	KUBE_TROUBLE_SHORT_WATCH,  /* ended in order, but at once and with nothing in it */
	KUBE_TROUBLE_LOCAL,        /* memory, descriptors */
	KUBE_TROUBLE_COUNT,
};
/* "unreachable", "timeout", "tls"…; never NULL. */
const char *kube_trouble_name(enum kube_trouble t);
/* What an answer means: error as in struct kube_answer, status as HTTP's. */
enum kube_trouble kube_trouble_of(int error, unsigned int status);

struct kube_outcome {
	enum kube_phase phase;
	int error; /* as in struct kube_answer */
	unsigned int
		status; /* HTTP, or the code of an ERROR event in the stream, which comes first */
	uint64_t retry_after_usec;
	uint64_t lasted_usec;   /* from the request to its end */
	uint64_t events;        /* objects and bookmarks that came after the picture was complete */
	bool synced;            /* KUBE_WATCH_LIST: the picture was completed */
	bool has_continue;      /* KUBE_LIST, KUBE_LIST_MORE: there is a further page */
	bool no_initial_events; /* KUBE_WATCH_LIST: the server ignored what was asked (an old one)
				 */
	bool version_unknown;   /* the server has not come as far as the resource version: it was
				   restored from a backup */
	uint64_t ended_usec;    /* when it ended, monotonic */
};

struct kube_plan {
	enum kube_phase phase; /* of the next request */
	uint64_t delay_usec; /* before it; 0 only where the last one succeeded, or where another way
				is tried once */
	bool forget_version; /* the resource version is of no use any more */
	bool larger_pages;   /* the continue token expired: pages were fetched too slowly */
	enum kube_trouble trouble;
};

struct kube_retry {
	struct backoff backoff;
	uint64_t lived_usec;      /* a watch that delivered something and lasted this long has shown
				     progress… */
	uint64_t stable_usec;     /* …and so has a silent one that lasted this long */
	uint64_t watch_list_usec; /* the server is believed to serve initial events from then on;
				     UINT64_MAX: never */
	unsigned int silent;      /* watches in a row that were answered and then brought nothing */
	unsigned int failures;    /* in a row, without progress */
};

#define KUBE_BACKOFF_FIRST_USEC (1 * USEC_PER_SEC)
#define KUBE_BACKOFF_LAST_USEC (60 * USEC_PER_SEC)
#define KUBE_RETRY_AFTER_MAX_USEC (5 * USEC_PER_MINUTE)
#define KUBE_WATCH_LIVED_USEC (10 * USEC_PER_SEC)
#define KUBE_WATCH_STABLE_USEC (60 * USEC_PER_SEC)
/* A server that refused initial events is asked for them again with the first picture after this:
 * it may have been upgraded. */
#define KUBE_WATCH_LIST_AGAIN_USEC USEC_PER_HOUR

/* With the values above; a test sets its own. */
void kube_retry_init(struct kube_retry *r);
/* The phase in which a full picture starts now. */
enum kube_phase kube_retry_picture(const struct kube_retry *r, uint64_t now_usec);
struct kube_plan kube_retry_next(
	struct kube_retry *r, const struct kube_outcome *o, uint64_t random);
