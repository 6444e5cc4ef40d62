/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
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

static void raise_sighup(void *arg)
{
	(void)arg;
	assert_int_equal(raise(SIGHUP), 0);
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

static void test_a_terminal_that_goes_ends_the_run_unless_it_was_told_not_to(void **state)
{
	for (int ignored = 0; ignored < 2; ignored++) {
		struct loop loop;
		struct loop_timer soon, later;

		(void)signal(SIGHUP, ignored ? SIG_IGN : SIG_DFL);
		assert_int_equal(loop_init(&loop), 0);
		assert_int_equal(loop_timer_init(&loop, &soon, raise_sighup, NULL), 0);
		assert_int_equal(loop_timer_init(&loop, &later, raise_sigterm, NULL), 0);
		loop_timer_set(&soon, 1000);
		loop_timer_set(&later, ignored ? 20000 : UINT64_C(3600000000));
		assert_int_equal(loop_run(&loop), 0);
		assert_int_equal(loop.signal, ignored ? SIGTERM : SIGHUP);
		loop_finish(&loop);
	}
	(void)signal(SIGHUP, SIG_DFL);
}

static void block(void *arg)
{
	uint64_t until = clock_mono_usec(&clock_system) + 2 * LOOP_LATE_USEC;

	(void)arg;
	while (clock_mono_usec(&clock_system) < until)
		;
}

static void test_a_timer_that_a_long_turn_holds_up_is_counted_as_late(void **state)
{
	struct seen s = {.fired = 0};
	struct loop_timer first;

	assert_int_equal(pipe(s.pipe), 0);
	assert_int_equal(loop_init(&s.loop), 0);
	assert_int_equal(loop_timer_init(&s.loop, &first, block, NULL), 0);
	assert_int_equal(loop_timer_init(&s.loop, &s.timer, on_fire, &s), 0);
	loop_timer_set(&first, 1);
	loop_timer_set(&s.timer, 2000);
	assert_int_equal(loop_run(&s.loop), 0);
	assert_int_equal(s.fired, 1);
	assert_true(s.loop.lag.late >= 1);
	assert_true(
		loop_lag_max_usec(&s.loop.lag, clock_mono_usec(&clock_system)) > LOOP_LATE_USEC);
	loop_finish(&s.loop);
	(void)close(s.pipe[0]);
	(void)close(s.pipe[1]);
}

static void test_the_largest_lag_is_kept_for_a_while_and_then_forgotten(void **state)
{
	struct loop_lag lag = {.late = 0};
	uint64_t t = 1000 * LOOP_LAG_WINDOW_USEC;

	loop_lag_note(&lag, t, t + 7 * LOOP_LATE_USEC);
	loop_lag_note(&lag, t + USEC_PER_SEC, t + USEC_PER_SEC); /* on time */
	loop_lag_note(&lag, t + 2, t + 1); /* a millisecond's rounding early */
	assert_int_equal(lag.late, 1);
	assert_true(loop_lag_max_usec(&lag, t + USEC_PER_SEC) == 7 * LOOP_LATE_USEC);
	t += LOOP_LAG_WINDOW_USEC;
	loop_lag_note(&lag, t, t + 3);
	assert_true(loop_lag_max_usec(&lag, t) == 7 * LOOP_LATE_USEC);
	t += LOOP_LAG_WINDOW_USEC;
	assert_true(loop_lag_max_usec(&lag, t) == 3); /* also where nothing fired since */
	loop_lag_note(&lag, t, t + 2);
	assert_true(loop_lag_max_usec(&lag, t) == 3);
	t += 5 * LOOP_LAG_WINDOW_USEC;
	assert_true(loop_lag_max_usec(&lag, t) == 0);
	loop_lag_note(&lag, t, t + 1);
	assert_true(loop_lag_max_usec(&lag, t) == 1);
	assert_int_equal(lag.late, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_timer_fires_once_and_a_descriptor_reports),
		cmocka_unit_test(test_sigterm_ends_the_run_in_order),
		cmocka_unit_test(test_a_terminal_that_goes_ends_the_run_unless_it_was_told_not_to),
		cmocka_unit_test(test_a_timer_that_a_long_turn_holds_up_is_counted_as_late),
		cmocka_unit_test(test_the_largest_lag_is_kept_for_a_while_and_then_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
