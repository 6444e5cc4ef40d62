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

struct loop {
	uv_loop_t uv;
	uv_signal_t sigterm;
	uv_signal_t sigint;
	bool stopping;
	int signal; /* which one ended the run, or 0 */
};

int loop_init(struct loop *l); /* also ignores SIGPIPE; SIGTERM and SIGINT stop the loop */
/* Runs until loop_stop, a signal, or until nothing is left to wait for. Returns 0. */
int loop_run(struct loop *l);
void loop_stop(struct loop *l);
/* Closes every handle left, lets the close callbacks run, and closes the loop. */
void loop_finish(struct loop *l);

struct loop_timer {
	uv_timer_t uv;
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
