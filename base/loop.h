/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop: libuv behind the few words the programs need. Single-threaded; nothing here
 * touches libuv's thread pool. Handles are embedded in their owner and must stay where they are
 * until their close callback has run: loop_finish runs the loop until everything is closed, so an
 * owner that closes its handles and is freed after loop_finish is right, and one that is freed
 * earlier uses *_close with a callback. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* How late timers fire: what one long turn of the loop, or a busy machine, costs all the others.
 * Monotonic microseconds. */
#define LOOP_LATE_USEC UINT64_C(100000)          /* a timer that is later is counted */
#define LOOP_LAG_WINDOW_USEC UINT64_C(300000000) /* the largest is kept for one to two of these */
struct loop_lag {
	uint64_t late; /* timers that fired later than LOOP_LATE_USEC, ever */
	uint64_t since_usec;
	uint64_t max_usec[2]; /* of the window that began at since_usec, and of the one before */
};
/* A timer that was due at due_usec fires now. */
void loop_lag_note(struct loop_lag *lag, uint64_t due_usec, uint64_t now_usec);
/* The largest lateness of the last five to ten minutes. */
uint64_t loop_lag_max_usec(const struct loop_lag *lag, uint64_t now_usec);

struct loop {
	uv_loop_t uv;
	uv_signal_t sigterm;
	uv_signal_t sigint;
	uv_signal_t sighup;
	bool stopping;
	int signal; /* which one ended the run, or 0 */
	struct loop_lag lag;
};

/* Also ignores SIGPIPE. SIGTERM, SIGINT and SIGHUP stop the loop; a SIGHUP that was ignored from
 * the start (nohup) stays so. */
int loop_init(struct loop *l);
/* Runs until loop_stop, a signal, or until nothing is left to wait for. Returns 0. */
int loop_run(struct loop *l);
void loop_stop(struct loop *l);
/* Closes every handle left, lets the close callbacks run, and closes the loop. */
void loop_finish(struct loop *l);

struct loop_timer {
	uv_timer_t uv;
	struct loop *loop;
	uint64_t due_usec;
	void (*fire)(void *arg);
	void *arg;
	void (*closed)(void *arg);
	bool open;
};
int loop_timer_init(struct loop *l, struct loop_timer *t, void (*fire)(void *arg), void *arg);
/* (Re)arms once after usec (rounded up to 1 ms). */
void loop_timer_set(struct loop_timer *t, uint64_t usec);
void loop_timer_stop(struct loop_timer *t);
bool loop_timer_armed(const struct loop_timer *t);
/* An unref'ed timer does not keep the loop running. */
void loop_timer_unref(struct loop_timer *t);
/* closed may be NULL; otherwise it is called when libuv is done with the memory of t. */
void loop_timer_close(struct loop_timer *t, void (*closed)(void *arg));

enum loop_events {
	LOOP_READ = 1,
	LOOP_WRITE = 2,
	LOOP_PRIO = 4 /* POLLPRI: kernfs notifications */
};

struct loop_fd {
	uv_poll_t uv;
	/* status: 0, or -errno from the poll itself. kernfs reports POLLERR together with POLLPRI
	 * on every change: with LOOP_PRIO that is passed as events = LOOP_PRIO and status 0. */
	void (*ready)(void *arg, int status, unsigned int events);
	void *arg;
	void (*closed)(void *arg);
	bool open;
};
/* Does not own fd: close it after loop_fd_close's callback, or after loop_fd_close when closed is
 * NULL (libuv is done with the descriptor as soon as uv_close returns). */
int loop_fd_init(struct loop *l, struct loop_fd *f, int fd,
	void (*ready)(void *, int, unsigned int), void *arg);
int loop_fd_set(struct loop_fd *f, unsigned int events); /* 0 stops */
void loop_fd_close(struct loop_fd *f, void (*closed)(void *arg));
