/* SPDX-License-Identifier: Apache-2.0 */
#include "base/loop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/macros.h"
#include "base/num.h"

static uint64_t windows_since(const struct loop_lag *lag, uint64_t now_usec)
{
	return now_usec > lag->since_usec ? (now_usec - lag->since_usec) / LOOP_LAG_WINDOW_USEC : 0;
}

void loop_lag_note(struct loop_lag *lag, uint64_t due_usec, uint64_t now_usec)
{
	uint64_t late = now_usec > due_usec ? now_usec - due_usec : 0;
	uint64_t windows = windows_since(lag, now_usec);

	if (windows > 0) {
		lag->max_usec[1] = windows == 1 ? lag->max_usec[0] : 0;
		lag->max_usec[0] = 0;
		lag->since_usec += windows * LOOP_LAG_WINDOW_USEC;
	}
	lag->max_usec[0] = MAX(lag->max_usec[0], late);
	lag->late += late > LOOP_LATE_USEC;
}

uint64_t loop_lag_max_usec(const struct loop_lag *lag, uint64_t now_usec)
{
	switch (windows_since(lag, now_usec)) {
	case 0:
		return MAX(lag->max_usec[0], lag->max_usec[1]);
	case 1:
		return lag->max_usec[0];
	default:
		return 0;
	}
}

static void on_signal(uv_signal_t *handle, int signum)
{
	struct loop *l = handle->data;

	l->signal = signum;
	loop_stop(l);
}

static int signal_start(struct loop *l, uv_signal_t *handle, int signum)
{
	int r = uv_signal_init(&l->uv, handle);

	if (r < 0)
		return r;
	handle->data = l;
	r = uv_signal_start(handle, on_signal, signum);
	/* Waiting for a signal alone is no reason to keep running. */
	uv_unref((uv_handle_t *)handle);
	return r;
}

static bool ignored(int signum)
{
	struct sigaction action;

	return sigaction(signum, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int loop_init(struct loop *l)
{
	*l = (struct loop){.signal = 0};
	int r = uv_loop_init(&l->uv);
	if (r < 0)
		return r;
	(void)signal(SIGPIPE, SIG_IGN);
	r = signal_start(l, &l->sigterm, SIGTERM);
	if (r == 0)
		r = signal_start(l, &l->sigint, SIGINT);
	if (r == 0 && !ignored(SIGHUP))
		r = signal_start(l, &l->sighup, SIGHUP);
	if (r < 0)
		loop_finish(l);
	return r;
}

int loop_run(struct loop *l)
{
	if (!l->stopping)
		(void)uv_run(&l->uv, UV_RUN_DEFAULT);
	l->stopping = false;
	return 0;
}

void loop_stop(struct loop *l)
{
	l->stopping = true;
	uv_stop(&l->uv);
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void loop_finish(struct loop *l)
{
	/* A close callback may close further handles (a curl transfer's socket), so this goes on
	 * until none is left. */
	do {
		uv_walk(&l->uv, close_handle, NULL);
		(void)uv_run(&l->uv, UV_RUN_DEFAULT);
	} while (uv_loop_close(&l->uv) == UV_EBUSY);
}

static void on_timer(uv_timer_t *handle)
{
	struct loop_timer *t = handle->data;

	loop_lag_note(&t->loop->lag, t->due_usec, clock_mono_usec(&clock_system));
	t->fire(t->arg);
}

int loop_timer_init(struct loop *l, struct loop_timer *t, void (*fire)(void *arg), void *arg)
{
	*t = (struct loop_timer){.loop = l, .fire = fire, .arg = arg};
	int r = uv_timer_init(&l->uv, &t->uv);
	if (r < 0)
		return r;
	t->uv.data = t;
	t->open = true;
	return 0;
}

void loop_timer_set(struct loop_timer *t, uint64_t usec)
{
	/* libuv counts from the start of this turn of the loop; a long turn would shorten the wait.
	 */
	uv_update_time(t->uv.loop);
	uint64_t msec = usec / USEC_PER_MSEC + (usec % USEC_PER_MSEC ? 1 : 0);
	msec = MAX(msec, (uint64_t)1);
	t->due_usec = u64_add_sat(clock_mono_usec(&clock_system),
		msec > UINT64_MAX / USEC_PER_MSEC ? UINT64_MAX : msec * USEC_PER_MSEC);
	(void)uv_timer_start(&t->uv, on_timer, msec, 0);
}

void loop_timer_stop(struct loop_timer *t)
{
	(void)uv_timer_stop(&t->uv);
}

bool loop_timer_armed(const struct loop_timer *t)
{
	return t->open && uv_is_active((const uv_handle_t *)&t->uv);
}

void loop_timer_unref(struct loop_timer *t)
{
	uv_unref((uv_handle_t *)&t->uv);
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct loop_timer *t = handle->data;

	t->closed(t->arg);
}

void loop_timer_close(struct loop_timer *t, void (*closed)(void *arg))
{
	if (!t->open)
		return;
	t->open = false;
	t->closed = closed;
	if (!uv_is_closing((uv_handle_t *)&t->uv))
		uv_close((uv_handle_t *)&t->uv, closed ? on_timer_closed : NULL);
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
	struct loop_fd *f = handle->data;
	unsigned int seen = 0;

	/* libuv turns a POLLERR that comes without data into UV_EBADF; a real bad descriptor cannot
	 * be in an epoll set. */
	if (status == UV_EBADF)
		status = -EIO;
	seen |= events & UV_READABLE ? LOOP_READ : 0;
	seen |= events & UV_WRITABLE ? LOOP_WRITE : 0;
	seen |= events & UV_PRIORITIZED ? LOOP_PRIO : 0;
	f->ready(f->arg, status, seen);
}

int loop_fd_init(struct loop *l, struct loop_fd *f, int fd,
	void (*ready)(void *, int, unsigned int), void *arg)
{
	*f = (struct loop_fd){.ready = ready, .arg = arg};
	int r = uv_poll_init(&l->uv, &f->uv, fd);
	if (r < 0)
		return r;
	f->uv.data = f;
	f->open = true;
	return 0;
}

int loop_fd_set(struct loop_fd *f, unsigned int events)
{
	int wanted = 0;

	if (events == 0)
		return uv_poll_stop(&f->uv);
	wanted |= events & LOOP_READ ? UV_READABLE : 0;
	wanted |= events & LOOP_WRITE ? UV_WRITABLE : 0;
	wanted |= events & LOOP_PRIO ? UV_PRIORITIZED : 0;
	return uv_poll_start(&f->uv, wanted, on_poll);
}

static void on_fd_closed(uv_handle_t *handle)
{
	struct loop_fd *f = handle->data;

	f->closed(f->arg);
}

void loop_fd_close(struct loop_fd *f, void (*closed)(void *arg))
{
	if (!f->open)
		return;
	f->open = false;
	f->closed = closed;
	if (!uv_is_closing((uv_handle_t *)&f->uv))
		uv_close((uv_handle_t *)&f->uv, closed ? on_fd_closed : NULL);
}
