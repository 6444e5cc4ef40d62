/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/loop.h"
#include "base/macros.h"

struct seen {
	struct loop loop;
	struct loop_timer timer;
	struct loop_fd reader;
	int pipe[2];
	int fired, readable, closed;
};

static void on_fire(void *arg)
{
	struct seen *s = arg;

	s->fired++;
	assert_int_equal(write(s->pipe[1], "x", 1), 1);
}

static void on_closed(void *arg)
{
	((struct seen *)arg)->closed++;
}

static void on_readable(void *arg, int status, unsigned int events)
{
	struct seen *s = arg;

	assert_int_equal(status, 0);
	assert_int_equal(events, LOOP_READ);
	s->readable++;
	loop_fd_close(&s->reader, on_closed);
}

static void test_a_timer_fires_once_and_a_descriptor_reports(void **state)
{
	struct seen s = {.fired = 0};

	assert_int_equal(pipe(s.pipe), 0);
	assert_int_equal(loop_init(&s.loop), 0);
	assert_int_equal(loop_timer_init(&s.loop, &s.timer, on_fire, &s), 0);
	assert_int_equal(loop_fd_init(&s.loop, &s.reader, s.pipe[0], on_readable, &s), 0);
	assert_int_equal(loop_fd_set(&s.reader, LOOP_READ), 0);
	loop_timer_set(&s.timer, 1);
	assert_true(loop_timer_armed(&s.timer));
	assert_int_equal(loop_run(&s.loop), 0); /* ends by itself: nothing is left to wait for */
	assert_false(loop_timer_armed(&s.timer));
	loop_finish(&s.loop);
	assert_int_equal(s.fired, 1);
	assert_int_equal(s.readable, 1);
	assert_int_equal(s.closed, 1);
	(void)close(s.pipe[0]);
	(void)close(s.pipe[1]);
}

static void raise_sigterm(void *arg)
{
	(void)arg;
	assert_int_equal(raise(SIGTERM), 0);
}

static void test_sigterm_ends_the_run_in_order(void **state)
{
	struct loop loop;
	struct loop_timer soon, never;

	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(loop_timer_init(&loop, &soon, raise_sigterm, NULL), 0);
	assert_int_equal(loop_timer_init(&loop, &never, raise_sigterm, NULL), 0);
	loop_timer_set(&soon, 1000);
	loop_timer_set(&never, UINT64_C(3600000000));
	assert_int_equal(loop_run(&loop), 0);
	assert_int_equal(loop.signal, SIGTERM);
	loop_finish(&loop); /* hangs, and the test with it, when a handle is left */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_timer_fires_once_and_a_descriptor_reports),
		cmocka_unit_test(test_sigterm_ends_the_run_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
