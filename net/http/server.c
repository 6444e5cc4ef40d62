/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd on the loop, and the bounds on connections. */
#include "net/http/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/macros.h"
#include "net/http/answer.h"
#include "net/http/listen.h"

/* Per connection: the header of a request must fit in it, and so must that of the answer. */
#define CONNECTION_MEMORY_BYTES ((size_t)16384)
/* Connections above the maximum that still get a polite answer; more wait in the kernel's queue. */
#define POLITE_CONNECTIONS 8U
#define PASSES_MAX 16U

struct connection {
	struct connection *prev, *next; /* oldest at the end */
	int fd;
	bool asked;          /* a request is under way */
	bool refused;        /* over the maximum */
	uint64_t until_usec; /* when it is closed unless something is completed */
};

struct http_server {
	struct http_server_options o;
	struct loop *loop;
	const struct clock *clock;
	struct MHD_Daemon *daemon;
	uint16_t port;
	struct loop_fd epoll;
	struct loop_timer wake;  /* when libmicrohttpd wants to be called without an event */
	struct loop_timer sweep; /* the nearest until_usec */
	unsigned int handles;    /* of the loop, not yet closed */
	struct connection *connections;
	struct http_server_stats stats;
};

static void arm_sweep(struct http_server *s)
{
	uint64_t now = clock_mono_usec(s->clock), nearest = UINT64_MAX;

	for (const struct connection *c = s->connections; c; c = c->next)
		nearest = MIN(nearest, c->until_usec);
	if (nearest == UINT64_MAX)
		loop_timer_stop(&s->sweep);
	else
		loop_timer_set(&s->sweep, nearest > now ? nearest - now : 0);
}

/* Lets libmicrohttpd do what there is to do. Its descriptor is edge-triggered: what it leaves
 * undone comes back only by its own time-out. */
static void pump(struct http_server *s)
{
	MHD_UNSIGNED_LONG_LONG msec = 0;
	unsigned int passes = 0;
	enum MHD_Result waits;

	do {
		(void)MHD_run(s->daemon);
		waits = MHD_get_timeout(s->daemon, &msec);
	} while (waits == MHD_YES && msec == 0 && ++passes < PASSES_MAX);
	if (waits == MHD_YES)
		loop_timer_set(&s->wake, (uint64_t)msec * USEC_PER_MSEC);
	else
		loop_timer_stop(&s->wake);
	arm_sweep(s);
}

static void on_epoll(void *arg, int status, unsigned int events)
{
	pump(arg);
}

static void on_wake(void *arg)
{
	pump(arg);
}

/* libmicrohttpd notices a connection that was shut down by itself. */
static void cut(struct connection *c)
{
	(void)shutdown(c->fd, SHUT_RDWR);
}

static void on_sweep(void *arg)
{
	struct http_server *s = arg;
	uint64_t now = clock_mono_usec(s->clock);

	for (struct connection *c = s->connections; c; c = c->next) {
		if (c->until_usec > now)
			continue;
		c->until_usec = UINT64_MAX;
		s->stats.timed_out += c->asked ? 1 : 0;
		cut(c);
	}
	pump(s);
}

/* Makes room for a newcomer: who waits longest without having asked anything goes. Without one, the
 * newcomer is told to come back. */
static bool make_room(struct http_server *s)
{
	struct connection *idle = NULL;

	if (s->stats.connections < s->o.connections_max)
		return true;
	for (struct connection *c = s->connections; c; c = c->next)
		if (!c->asked && c->until_usec != UINT64_MAX &&
			(!idle || c->until_usec <= idle->until_usec))
			idle = c;
	if (!idle)
		return false;
	idle->until_usec = UINT64_MAX;
	cut(idle);
	return true;
}

static void connection_opened(struct http_server *s, struct MHD_Connection *m, void **context)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(m, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct connection *c = calloc(1, sizeof(*c));

	*context = c;
	if (!c || !info) {
		free(c);
		*context = NULL; /* its requests are refused */
		return;
	}
	c->fd = info->connect_fd;
	c->refused = !make_room(s);
	c->until_usec = clock_mono_usec(s->clock) + s->o.request_timeout_usec;
	c->next = s->connections;
	if (c->next)
		c->next->prev = c;
	s->connections = c;
	s->stats.connections++;
	s->stats.refused += c->refused ? 1 : 0;
}

static void connection_closed(struct http_server *s, struct connection *c)
{
	if (!c)
		return;
	if (c->prev)
		c->prev->next = c->next;
	else
		s->connections = c->next;
	if (c->next)
		c->next->prev = c->prev;
	s->stats.connections--;
	free(c);
}

static void on_connection(void *arg, struct MHD_Connection *m, void **context,
	enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		connection_opened(arg, m, context);
	else
		connection_closed(arg, *context);
}

static struct connection *connection_of(struct MHD_Connection *m)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(m, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* The first line of a request is complete. What is returned comes back in on_request and
 * on_completed. */
static void *on_uri(void *arg, const char *uri, struct MHD_Connection *m)
{
	struct http_server *s = arg;
	struct connection *c = connection_of(m);
	struct http_asked *asked = calloc(1, sizeof(*asked));

	if (c) {
		c->asked = true;
		c->until_usec = clock_mono_usec(s->clock) + s->o.request_timeout_usec;
	}
	if (asked)
		asked->error = http_target_parse(str_of(uri), &asked->target);
	return asked;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *m, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_n,
	void **context)
{
	struct http_server *s = arg;
	struct connection *c = connection_of(m);
	struct http_asked *asked = *context;
	unsigned int status = MHD_HTTP_INTERNAL_SERVER_ERROR;
	enum MHD_Result r;

	if (!asked || !c)
		return MHD_NO; /* out of memory */
	/* An answer to GET before the request is over would cost the connection; to others it is
	 * meant to. */
	if (!c->refused && http_is_get(method) && (!asked->seen || *upload_n > 0)) {
		asked->seen = true;
		*upload_n = 0; /* a body that nobody asked for */
		return MHD_YES;
	}
	s->stats.requests++;
	if (c->refused) {
		s->stats.errors++;
		r = http_answer_error(&s->o, m, MHD_HTTP_SERVICE_UNAVAILABLE,
			"too many connections; come back in a moment", MHD_HTTP_HEADER_CONNECTION,
			"close");
		return r;
	}
	r = http_answer(&s->o, m, asked, url, method, &status);
	s->stats.errors += status >= 400 || r == MHD_NO ? 1 : 0;
	return r;
}

static void on_completed(
	void *arg, struct MHD_Connection *m, void **context, enum MHD_RequestTerminationCode code)
{
	struct http_server *s = arg;
	struct connection *c = connection_of(m);

	free(*context);
	*context = NULL;
	if (!c || c->until_usec == UINT64_MAX)
		return;
	c->asked = false;
	/* The pause, and then a next first line that may not take for ever. */
	c->until_usec =
		clock_mono_usec(s->clock) + s->o.idle_timeout_usec + s->o.request_timeout_usec;
}

/* Decoding is ours (net/http/target.h): libmicrohttpd's would let %00 end a string. */
static size_t keep_escapes(void *arg, struct MHD_Connection *m, char *text)
{
	return strlen(text);
}

static void on_handle_closed(void *arg)
{
	struct http_server *s = arg;

	if (--s->handles == 0)
		free(s);
}

static int start_daemon(struct http_server *s, int fd)
{
	uint64_t idle_sec = (s->o.idle_timeout_usec + USEC_PER_SEC - 1) / USEC_PER_SEC;

	s->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, s,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		s->o.connections_max + POLITE_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned int)MIN(idle_sec, UINT64_C(3600)), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		CONNECTION_MEMORY_BYTES, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_URI_LOG_CALLBACK, on_uri,
		s, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, s, MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_END);
	return s->daemon ? 0 : -ENOMEM;
}

static int join_loop(struct http_server *s)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	int r;

	if (!info || info->epoll_fd < 0)
		return -ENOTSUP;
	r = loop_timer_init(s->loop, &s->wake, on_wake, s);
	if (r < 0)
		return r;
	s->handles++;
	r = loop_timer_init(s->loop, &s->sweep, on_sweep, s);
	if (r < 0)
		return r;
	s->handles++;
	r = loop_fd_init(s->loop, &s->epoll, info->epoll_fd, on_epoll, s);
	if (r < 0)
		return r;
	s->handles++;
	return loop_fd_set(&s->epoll, LOOP_READ);
}

static int server_open(struct http_server *s, struct err *e)
{
	struct listen_address address;
	int fd, r = listen_address_parse(str_of(s->o.listen), &address, e);

	if (r < 0)
		return r;
	fd = listen_socket(&address, &s->port, e);
	if (fd < 0)
		return fd;
	r = start_daemon(s, fd);
	if (r < 0)
		(void)close(fd);
	else
		r = join_loop(s);
	return r < 0 ? err_set(e, -r, "HTTP server on %s: %s", s->o.listen, strerror(-r)) : 0;
}

int http_server_create(struct http_server **ret_s, struct loop *l,
	const struct http_server_options *options, struct err *e)
{
	struct http_server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(e, ENOMEM, "out of memory");
	s->loop = l;
	s->o = *options;
	s->clock = options->clock ? options->clock : &clock_system;
	if (s->o.connections_max == 0)
		s->o.connections_max = HTTP_CONNECTIONS_MAX;
	if (s->o.request_timeout_usec == 0)
		s->o.request_timeout_usec = HTTP_REQUEST_TIMEOUT_USEC;
	if (s->o.idle_timeout_usec == 0)
		s->o.idle_timeout_usec = HTTP_IDLE_TIMEOUT_USEC;
	r = server_open(s, e);
	if (r < 0) {
		http_server_destroy(s);
		return r;
	}
	*ret_s = s;
	return 0;
}

void http_server_destroy(struct http_server *s)
{
	if (!s)
		return;
	s->handles++;
	loop_fd_close(&s->epoll, on_handle_closed);
	loop_timer_close(&s->wake, on_handle_closed);
	loop_timer_close(&s->sweep, on_handle_closed);
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	on_handle_closed(s);
}

uint16_t http_server_port(const struct http_server *s)
{
	return s->port;
}

const struct http_server_stats *http_server_stats(const struct http_server *s)
{
	return &s->stats;
}
