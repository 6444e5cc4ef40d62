/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macros.h"
#include "rules/ahead.h"

#define MIB INT64_C(1048576)
#define SECOND UINT64_C(1000000)

/* Memory as a function of time, looked at every `interval` seconds, or every second while that is
 * asked for. Returns the second of the first warning, -1 for none. */
static double first_warning(double (*bytes)(double t), int64_t limit, double interval, double until)
{
	struct ahead a = {0};
	double t = 0, next = 0;

	for (; t < until && bytes(t) < (double)limit; t += 1) {
		enum ahead_verdict v;

		if (t < next && !a.watching)
			continue;
		v = ahead_take(&a, (uint64_t)(t * 1e6) + 1, (int64_t)bytes(t), limit);
		if (v == AHEAD_WARN)
			return t;
		if (t >= next)
			next = t + interval;
	}
	return -1;
}

static double leak_2_per_second(double t)
{
	return (10 + 2 * t) * MIB;
}

static double leak_slow(double t)
{
	return (40 + 0.5 * t) * MIB;
}

static double ramp_to_70_percent(double t)
{
	return fmin(20 + t, 90) * MIB;
}

static double saw_teeth(double t)
{
	return (70 + fmod(t, 20) * 2) * MIB;
}

static double flat(double t)
{
	return 120 * MIB + (fmod(t, 2) < 1 ? 0 : MIB / 2);
}

static void a_leak_is_seen_ten_seconds_before_its_kill(void **state)
{
	static const int64_t limits[] = {128, 200, 256, 512};
	static const double intervals[] = {1, 10};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(intervals); j++) {
			double kill = ((double)limits[i] - 10) / 2;
			double at = first_warning(
				leak_2_per_second, limits[i] * MIB, intervals[j], 1000);

			if (at < 0 || at > kill - 10)
				fail_msg("limit %d MiB, every %g s: warned at %g, kill at %g",
					(int)limits[i], intervals[j], at, kill);
		}
	}
}

static void a_leak_in_a_small_limit_is_seen_before_its_kill(void **state)
{
	for (int64_t limit = 20; limit < 128; limit += 4)
		assert_true(first_warning(leak_2_per_second, limit * MIB, 1, 1000) >= 0);
}

static void a_slow_leak_is_seen_within_its_last_minute_only(void **state)
{
	double at = first_warning(leak_slow, 128 * MIB, 10, 1000), kill = 176;

	assert_true(at >= kill - 61 && at <= kill - 10);
}

static void what_does_not_rise_is_never_announced(void **state)
{
	assert_true(first_warning(flat, 128 * MIB, 1, 10000) < 0);
}

/* The first tooth may be taken for a leak, since nobody can know; the others not. */
static void saw_teeth_are_learned(void **state)
{
	struct ahead a = {0};
	int warnings = 0;

	for (int t = 0; t < 4000; t++)
		warnings += ahead_take(&a, (uint64_t)(t + 1) * SECOND, (int64_t)saw_teeth(t),
				    128 * MIB) == AHEAD_WARN;
	assert_true(warnings <= 1);
}

static void a_ramp_may_warn_but_only_once(void **state)
{
	struct ahead a = {0};
	int warnings = 0;

	for (int t = 0; t < 3000; t++)
		warnings += ahead_take(&a, (uint64_t)(t + 1) * SECOND,
				    (int64_t)ramp_to_70_percent(t), 128 * MIB) == AHEAD_WARN;
	assert_int_equal(warnings, 1);
}

static void a_raised_limit_is_watched_anew(void **state)
{
	struct ahead a = {0};
	int64_t limit = 128 * MIB;
	int warnings = 0;

	for (int t = 0; t < 200; t++) {
		if (ahead_take(&a, (uint64_t)(t + 1) * SECOND, (int64_t)leak_2_per_second(t),
			    limit) == AHEAD_WARN) {
			warnings++;
			limit = limit * 5 / 4 + 16 * MIB;
		}
		assert_true(leak_2_per_second(t) < (double)limit);
	}
	assert_true(warnings >= 3);
}

static void it_watches_from_60_percent_until_below_50(void **state)
{
	struct ahead a = {0};

	assert_int_equal(ahead_take(&a, 1 * SECOND, 59, 100), AHEAD_CALM);
	assert_int_equal(ahead_take(&a, 2 * SECOND, 61, 100), AHEAD_WATCH);
	assert_int_equal(ahead_take(&a, 3 * SECOND, 55, 100), AHEAD_WATCH);
	assert_int_equal(ahead_take(&a, 4 * SECOND, 49, 100), AHEAD_CALM);
	assert_int_equal(ahead_take(&a, 5 * SECOND, 55, 100), AHEAD_CALM);
}

static void without_a_limit_there_is_nothing_to_reach(void **state)
{
	struct ahead a = {0};

	for (uint64_t t = 1; t < 100; t++)
		assert_int_equal(ahead_take(&a, t * SECOND, (int64_t)t * MIB, 0), AHEAD_CALM);
}

static void time_that_stands_still_changes_nothing(void **state)
{
	struct ahead a = {0};

	for (int i = 0; i < 50; i++)
		assert_int_not_equal(ahead_take(&a, SECOND, 70 + i, 130), AHEAD_WARN);
	assert_true(ahead_slope(&a) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_leak_is_seen_ten_seconds_before_its_kill),
		cmocka_unit_test(a_leak_in_a_small_limit_is_seen_before_its_kill),
		cmocka_unit_test(a_slow_leak_is_seen_within_its_last_minute_only),
		cmocka_unit_test(what_does_not_rise_is_never_announced),
		cmocka_unit_test(saw_teeth_are_learned),
		cmocka_unit_test(a_ramp_may_warn_but_only_once),
		cmocka_unit_test(a_raised_limit_is_watched_anew),
		cmocka_unit_test(it_watches_from_60_percent_until_below_50),
		cmocka_unit_test(without_a_limit_there_is_nothing_to_reach),
		cmocka_unit_test(time_that_stands_still_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
