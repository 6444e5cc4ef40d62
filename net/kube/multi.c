/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kube/multi.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/macros.h"

/* Sockets that one transfer may have at the same time: IPv4 and IPv6 tried together, and the
 * resolver's. */
#define SOCKETS_PER_TRANSFER 3U

struct watched {
	struct loop_fd fd;
	struct kube_multi *multi;
	curl_socket_t socket;
	unsigned int events;  /* that curl waits for */
	struct watched *next; /* among the spare ones */
};

struct kube_multi {
	struct kube_multi_ops ops;
	struct loop *loop;
	CURLM *curl;
	struct loop_timer timer;
	/* A socket callback cannot fail without killing the whole multi, so what it needs is set
	 * aside when a transfer is added. */
	struct watched *spare;
	unsigned int spares, transfers;
	unsigned int handles; /* of the loop, not yet closed */
	bool in_curl, busy, destroyed;
};

static void free_when_closed(struct kube_multi *m)
{
	if (!m->destroyed || m->handles > 0)
		return;
	while (m->spare) {
		struct watched *w = m->spare;

		m->spare = w->next;
		free(w);
	}
	free(m);
}

static void on_timer_closed(void *arg)
{
	struct kube_multi *m = arg;

	m->handles--;
	free_when_closed(m);
}

static void keep_spare(struct kube_multi *m, struct watched *w)
{
	w->next = m->spare;
	m->spare = w;
	m->spares++;
}

static void on_socket_closed(void *arg)
{
	struct watched *w = arg;

	w->multi->handles--;
	keep_spare(w->multi, w);
	free_when_closed(w->multi);
}

static int set_spares_aside(struct kube_multi *m)
{
	while (m->spares < SOCKETS_PER_TRANSFER * (m->transfers + 1)) {
		struct watched *w = calloc(1, sizeof(*w));

		if (!w)
			return -ENOMEM;
		keep_spare(m, w);
	}
	return 0;
}

/* Tells what happened to curl, then hands out the transfers that ended by it. */
static void act(struct kube_multi *m, curl_socket_t socket, int events)
{
	CURLMsg *message;
	int running, left;

	m->busy = m->in_curl = true;
	(void)curl_multi_socket_action(m->curl, socket, events, &running);
	m->in_curl = false;
	while ((message = curl_multi_info_read(m->curl, &left))) {
		CURL *easy = message->easy_handle;
		CURLcode result = message->data.result;

		if (message->msg != CURLMSG_DONE)
			continue;
		kube_multi_remove(m, easy);
		m->ops.finished(m->ops.arg, easy, result);
	}
	m->busy = false;
	m->ops.settled(m->ops.arg);
}

static void on_timer(void *arg)
{
	act(arg, CURL_SOCKET_TIMEOUT, 0);
}

static void on_ready(void *arg, int status, unsigned int events)
{
	struct watched *w = arg;
	int flags = 0;

	flags |= events & LOOP_READ ? CURL_CSELECT_IN : 0;
	flags |= events & LOOP_WRITE ? CURL_CSELECT_OUT : 0;
	flags |= status < 0 ? CURL_CSELECT_ERR : 0;
	/* libuv stops at an error; what came before it may still be unread, and curl does not ask
	 * again. */
	if (status < 0)
		(void)loop_fd_set(&w->fd, w->events);
	act(w->multi, w->socket, flags);
}

static struct watched *watch_socket(struct kube_multi *m, curl_socket_t socket)
{
	struct watched *w = m->spare;

	if (w) {
		m->spare = w->next;
		m->spares--;
	} else {
		w = calloc(1, sizeof(*w));
		if (!w)
			return NULL;
	}
	if (loop_fd_init(m->loop, &w->fd, socket, on_ready, w) < 0) {
		keep_spare(m, w);
		return NULL;
	}
	w->multi = m;
	w->socket = socket;
	m->handles++;
	return w;
}

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *arg, void *socket_arg)
{
	struct kube_multi *m = arg;
	struct watched *w = socket_arg;
	unsigned int events = 0;

	if (what == CURL_POLL_REMOVE) {
		if (w)
			loop_fd_close(&w->fd, on_socket_closed);
		(void)curl_multi_assign(m->curl, socket, NULL);
		return 0;
	}
	if (!w) {
		w = watch_socket(m, socket);
		if (!w)
			return -1;
		(void)curl_multi_assign(m->curl, socket, w);
	}
	events |= what & CURL_POLL_IN ? LOOP_READ : 0;
	events |= what & CURL_POLL_OUT ? LOOP_WRITE : 0;
	w->events = events;
	return loop_fd_set(&w->fd, events) < 0 ? -1 : 0;
}

static int on_timeout(CURLM *curl, long msec, void *arg)
{
	struct kube_multi *m = arg;

	if (msec < 0)
		loop_timer_stop(&m->timer);
	else
		loop_timer_set(&m->timer, (uint64_t)msec * USEC_PER_MSEC);
	return 0;
}

int kube_multi_create(struct kube_multi **ret_m, struct loop *l, unsigned int connections_max,
	const struct kube_multi_ops *ops)
{
	struct kube_multi *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->ops = *ops;
	m->loop = l;
	m->curl = curl_multi_init();
	if (!m->curl || loop_timer_init(l, &m->timer, on_timer, m) < 0) {
		(void)curl_multi_cleanup(m->curl);
		free(m);
		return -ENOMEM;
	}
	m->handles = 1;
	(void)curl_multi_setopt(m->curl, CURLMOPT_SOCKETFUNCTION, on_socket);
	(void)curl_multi_setopt(m->curl, CURLMOPT_SOCKETDATA, m);
	(void)curl_multi_setopt(m->curl, CURLMOPT_TIMERFUNCTION, on_timeout);
	(void)curl_multi_setopt(m->curl, CURLMOPT_TIMERDATA, m);
	(void)curl_multi_setopt(m->curl, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
	(void)curl_multi_setopt(m->curl, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)connections_max);
	(void)curl_multi_setopt(m->curl, CURLMOPT_MAXCONNECTS, (long)connections_max);
	*ret_m = m;
	return 0;
}

void kube_multi_destroy(struct kube_multi *m)
{
	if (!m)
		return;
	m->destroyed = true;
	(void)curl_multi_cleanup(m->curl);
	loop_timer_close(&m->timer, on_timer_closed);
}

int kube_multi_add(struct kube_multi *m, CURL *easy)
{
	int r = set_spares_aside(m);

	if (r < 0)
		return r;
	if (curl_multi_add_handle(m->curl, easy) != CURLM_OK)
		return -ENOMEM;
	m->transfers++;
	return 0;
}

void kube_multi_remove(struct kube_multi *m, CURL *easy)
{
	if (curl_multi_remove_handle(m->curl, easy) == CURLM_OK)
		m->transfers--;
}

bool kube_multi_in_curl(const struct kube_multi *m)
{
	return m->in_curl;
}

bool kube_multi_busy(const struct kube_multi *m)
{
	return m->busy;
}
