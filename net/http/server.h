/* SPDX-License-Identifier: Apache-2.0 */
/* The one HTTP server: GET and HEAD of a few paths, on the loop, no threads. libmicrohttpd speaks
 * the protocol; what is asked for is read by net/http/target.h. Everything is bounded: connections,
 * time for a request, its size. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/str.h"
#include "net/http/target.h"

#define HTTP_CONNECTIONS_MAX 32U
#define HTTP_URL_MAX_BYTES 1024U
#define HTTP_REQUEST_TIMEOUT_USEC (30 * USEC_PER_SEC)
#define HTTP_IDLE_TIMEOUT_USEC (15 * USEC_PER_SEC)
#define HTTP_ANSWER_MAX_BYTES (4U * 1024U * 1024U)

#define HTTP_TYPE_JSON "application/json"
#define HTTP_TYPE_TEXT "text/plain; charset=utf-8"
#define HTTP_TYPE_HTML "text/html; charset=utf-8"

struct http_request {
	const char *path;                   /* as the route matched it, decoded */
	const struct http_target *target;   /* query: http_target_query */
	struct str params[HTTP_PARAMS_MAX]; /* of the route's {…}, in order, decoded */
	const char *accept;                 /* header Accept; "" when absent */
	bool head;
};

/* An answer whose body is made while it is sent, so that a large one needs no large buffer. */
struct http_producer {
	/* Appends the next piece (some KiB at most) to out. 1: there is more, 0: that was the last,
	 * -errno: breaks the connection off, so that the reader does not take what came for the
	 * whole. */
	int (*next)(void *state, struct buf *out);
	/* Called once, also when the reader went away. */
	void (*finish)(void *state);
	void *state;
};

/* Filled in by a handler. */
struct http_response {
	unsigned int status;      /* 200 unless set */
	const char *content_type; /* static; HTTP_TYPE_JSON unless set */
	struct buf
		body; /* taken over: maximum HTTP_ANSWER_MAX_BYTES; an error in it becomes a 500 */
	struct http_producer producer; /* used in place of body when next is set */
	bool no_store;                 /* Cache-Control: no-store; true unless cleared */
};

struct http_route {
	/* "/v1/explain/{namespace}/{daemonset}/{container}": a {…} takes one segment, not empty. */
	const char *pattern;
	/* 0, or -errno: answered by 404 for -ENOENT, 400 for -EINVAL, 503 for -EAGAIN, else 500,
	 * with e's text. */
	int (*handle)(void *arg, const struct http_request *request, struct http_response *response,
		struct err *e);
	void *arg;
};

struct http_server;

struct http_server_options {
	const char *listen;              /* ":9870", "127.0.0.1:9870", "[::1]:9870"; port 0: any */
	const struct http_route *routes; /* must outlive the server */
	size_t routes_n;
	const char *server_name; /* header Server, "pernode-agent/1.2.3"; NULL: none */
	unsigned int
		connections_max; /* 0: HTTP_CONNECTIONS_MAX; those over it get 503 and are closed */
	uint64_t request_timeout_usec; /* from the first byte waited for to the end of the answer;
					  0: as above */
	uint64_t idle_timeout_usec; /* of a connection between requests, rounded up to seconds; 0:
				       as above */
	const struct clock *clock;  /* NULL: clock_system */
};

/* Binds and listens. -EADDRINUSE, -EACCES, -EADDRNOTAVAIL, -EINVAL…: e says what to do. Destroy it
 * before loop_finish. */
int http_server_create(struct http_server **ret_s, struct loop *l,
	const struct http_server_options *options, struct err *e);
/* Takes NULL. Breaks off what is being answered. */
void http_server_destroy(struct http_server *s);
/* The port that is listened on: the one asked for, or the one the kernel chose. */
uint16_t http_server_port(const struct http_server *s);

struct http_server_stats {
	uint64_t requests;
	uint64_t errors;    /* answered with 4xx or 5xx */
	uint64_t refused;   /* connections over the maximum */
	uint64_t timed_out; /* connections closed for slowness */
	unsigned int connections;
};
const struct http_server_stats *http_server_stats(const struct http_server *s);

/* Puts {"error": text} into the response, with the status. */
void http_response_error(struct http_response *response, unsigned int status, const char *text);
