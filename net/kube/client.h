/* SPDX-License-Identifier: Apache-2.0 */
/* The one client of the Kubernetes API: HTTP/1.1 over a small pool of connections, libcurl driven
 * by the loop, no threads. Every call has a deadline, every answer a maximum. Nothing here retries:
 * the caller knows what a retry means; net/kube/retry.h and net/kube/backoff.h help it decide. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/str.h"
#include "net/kube/config.h"
#include "net/kube/status.h"

#define KUBE_CALL_TIMEOUT_USEC (30 * USEC_PER_SEC)
#define KUBE_CONNECT_TIMEOUT_USEC (10 * USEC_PER_SEC)
#define KUBE_ANSWER_MAX_BYTES (64U * 1024U)
#define KUBE_PATH_MAX_BYTES 4096U

struct kube_client;
struct kube_call;

struct kube_client_options {
	const char *user_agent;        /* "pernode-agent/1.2.3 (abcdef)"; copied */
	const struct clock *clock;     /* NULL: clock_system */
	uint64_t connect_timeout_usec; /* TCP and TLS; 0: KUBE_CONNECT_TIMEOUT_USEC */
	unsigned int connections_max; /* at once; a further call waits, within its deadline. 0: 8 */
};

enum kube_method { KUBE_GET, KUBE_POST, KUBE_PATCH, KUBE_DELETE };

#define KUBE_MERGE_PATCH "application/merge-patch+json"
#define KUBE_JSON "application/json"

/* What came of a call. Valid during the callback. */
struct kube_answer {
	/* 0: the server answered (status says what). Otherwise -errno and no answer is to be
	 * trusted: -ECONNREFUSED, -EHOSTUNREACH (no such host), -ETIMEDOUT (deadline or silence),
	 * -ECONNRESET (cut), -EKEYREJECTED (the server's certificate), -EPROTO (not HTTP, not JSON:
	 * a proxy's page), -EMSGSIZE (over the maximum), -ENOMEM, -EIO, or what the data callback
	 * returned. */
	int error;
	unsigned int status;            /* HTTP */
	uint64_t retry_after_usec;      /* 0: the server did not ask to wait */
	struct kube_status kube_status; /* of an answer >= 400: reason "" when it was not a
					   Kubernetes Status */
	struct str body;                /* of an answer that was not streamed */
	/* One sentence when error or status >= 400: method, path, server, what happened and why. */
	const char *text;
};

struct kube_request {
	enum kube_method method;
	const char *path;         /* "/api/v1/nodes/n?fieldManager=x", percent-encoded; copied */
	const char *accept;       /* NULL: application/json */
	bool any_content_type;    /* take a 2xx answer that is not JSON (/healthz) */
	bool compressed;          /* offer gzip where curl can inflate it; for large answers */
	const char *content_type; /* of body; NULL: KUBE_JSON */
	struct str body;          /* copied; p NULL: none */
	uint64_t timeout_usec;    /* of the whole call; 0: KUBE_CALL_TIMEOUT_USEC; UINT64_MAX: none
				     (then give an idle one) */
	uint64_t idle_timeout_usec; /* silence of the server that ends the call with -ETIMEDOUT; 0:
				       none */
	size_t answer_max_bytes; /* of a body that is kept; 0: KUBE_ANSWER_MAX_BYTES. A streamed one
				    is not limited here */

	/* The header of a 2xx answer is complete. May be NULL. */
	void (*answered)(void *arg);
	/* Streaming: the 2xx answer's body, piece by piece as it comes; nothing is kept. 1:
	 * something whole has come, which is what idle_timeout_usec counts from; 0: go on;
	 * negative: ends the call with that error. NULL: the body is collected and handed to done.
	 */
	int (*data)(void *arg, struct str piece);
	/* Called once, from the loop, never from within kube_client_start. The call is over and
	 * freed afterwards. May start and cancel calls, and destroy the client. */
	void (*done)(void *arg, const struct kube_answer *answer);
	void *arg;
};

/* Takes the content of config over (on success only; config is then empty). Destroy it before
 * loop_finish. */
int kube_client_create(struct kube_client **ret_c, struct loop *l, struct kube_config *config,
	const struct kube_client_options *options, struct err *e);
/* Cancels what is under way (done is not called). Takes NULL. Memory is freed as the loop closes
 * the handles. */
void kube_client_destroy(struct kube_client *c);

/* May be called from any callback. ret_call is valid until done is called or the call is cancelled;
 * may be NULL. -errno: not started, done will not be called. */
int kube_client_start(struct kube_client *c, const struct kube_request *request,
	struct kube_call **ret_call, struct err *e);
/* Ends the call; neither data nor done is called any more. */
void kube_call_cancel(struct kube_call *call);

/* From now on: for a stream whose silence means something else after a while. Cancels nothing by
 * itself. */
void kube_call_set_idle_timeout(struct kube_call *call, uint64_t usec);

const struct clock *kube_client_clock(const struct kube_client *c);
/* "https://10.96.0.1:443": for messages. */
const char *kube_client_server(const struct kube_client *c);

struct kube_client_stats {
	uint64_t calls;
	uint64_t errors; /* ended without an answer */
	uint64_t token_reads_failed;
	uint64_t received_bytes;
};
const struct kube_client_stats *kube_client_stats(const struct kube_client *c);

/* Appends s percent-encoded for a path segment or a query value. */
struct buf;
void kube_path_escape(struct buf *out, struct str s);
