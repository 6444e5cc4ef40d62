/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "agent/state/history.h"
#include "base/macros.h"
#include "unit.h"

#define NSEC INT64_C(1000000000)
#define MINUTE (60 * NSEC)
#define START (INT64_C(1767225600) * NSEC) /* 2026-01-01T00:00:00Z */

static struct history h;

static void add(int64_t at_ns, double millicores, double bytes)
{
	const struct history_sample s = {millicores, bytes, (double)NAN};

	history_add(&h, at_ns, &s);
}

static unsigned int rows(int64_t from_ns, struct history_row *out, unsigned int max)
{
	unsigned int cursor = 0, n = 0;

	while (n < max && history_next(&h, from_ns, &cursor, &out[n]))
		n++;
	return n;
}

static void amounts_survive_to_one_part_in_2048(void **state)
{
	static const double exact[] = {0, 1, 5, 63, 250, 1000, 1999, 2047, 0.5, 1048576,
		104857600.0, 256.0 * 1048576, 1e9 * 1.024};

	for (unsigned int i = 0; i < 12; i++)
		assert_true(amount16_value(amount16_of(exact[i])) == exact[i]);
	for (double v = 0.001; v < 1e14; v *= 1.0137)
		assert_true(fabs(amount16_value(amount16_of(v)) - v) <= v / 2048);
	assert_true(amount16_of((double)NAN) == AMOUNT16_NONE);
	assert_true(amount16_of(-1) == AMOUNT16_NONE);
	assert_true(isnan(amount16_value(AMOUNT16_NONE)));
	assert_true(amount16_of((double)INFINITY) == AMOUNT16_NONE - 1);
	assert_true(amount16_of(1e300) == AMOUNT16_NONE - 1);
	assert_true(amount16_of(1e-300) == 0);
	/* Order is kept. */
	for (double v = 0.001; v < 1e14; v *= 1.1)
		assert_true(amount16_of(v) <= amount16_of(v * 1.1));
}

static void nothing_added_is_no_row(void **state)
{
	struct history_row r[1];

	history_init(&h);
	assert_int_equal(rows(0, r, 1), 0);
}

static void a_minute_has_mean_and_maximum(void **state)
{
	const struct amounts request = {{250, 0}, {true, false}},
			     target = {{63, 1048576}, {true, true}};
	struct history_row r[8];

	history_init(&h);
	history_levels(&h, &request, &target);
	for (int i = 0; i < 6; i++)
		add(START + i * 10 * NSEC, 100 + i * 20, 1048576);
	history_oom(&h, START + 55 * NSEC);
	assert_int_equal(rows(0, r, 8), 1); /* the open one */
	add(START + MINUTE, 10, 2097152);
	assert_int_equal(rows(0, r, 8), 2);
	assert_int_equal(r[0].at_ns, START);
	assert_int_equal(r[0].step_seconds, 60);
	assert_true(r[0].mean[RESOURCE_CPU] == 150 && r[0].max[RESOURCE_CPU] == 200);
	assert_true(r[0].mean[RESOURCE_MEMORY] == 1048576);
	assert_true(r[0].request[RESOURCE_CPU] == 250 && isnan(r[0].request[RESOURCE_MEMORY]));
	assert_true(r[0].target[RESOURCE_CPU] == 63 && r[0].target[RESOURCE_MEMORY] == 1048576);
	assert_int_equal(r[0].oom_kills, 1);
	assert_true(isnan(r[0].throttled_share));
	assert_true(r[1].mean[RESOURCE_CPU] == 10 && r[1].oom_kills == 0);
}

static void throttling_is_the_highest_share(void **state)
{
	struct history_row r[2];
	const struct history_sample a = {1, 1, 0.25}, b = {1, 1, (double)NAN}, c = {1, 1, 0.1};

	history_init(&h);
	history_add(&h, START, &a);
	history_add(&h, START + NSEC, &b);
	history_add(&h, START + 2 * NSEC, &c);
	assert_int_equal(rows(0, r, 2), 1);
	assert_true(fabs(r[0].throttled_share - 0.25) < 0.003);
}

static void what_was_not_measured_is_a_gap(void **state)
{
	struct history_row r[16];

	history_init(&h);
	add(START, 5, (double)NAN);
	add(START + 4 * MINUTE, (double)NAN, 7);
	assert_int_equal(rows(0, r, 16), 5);
	assert_true(r[0].mean[RESOURCE_CPU] == 5 && isnan(r[0].mean[RESOURCE_MEMORY]));
	for (int i = 1; i < 4; i++) {
		assert_int_equal(r[i].at_ns, START + i * MINUTE);
		assert_true(isnan(r[i].mean[RESOURCE_CPU]) && isnan(r[i].mean[RESOURCE_MEMORY]));
	}
	assert_true(isnan(r[4].mean[RESOURCE_CPU]) && r[4].mean[RESOURCE_MEMORY] == 7);
}

static void a_day_is_tens_then_minutes_without_overlap(void **state)
{
	struct history_row r[HISTORY_MINUTES + HISTORY_TENS + 4];
	unsigned int n;
	int64_t now = START;

	history_init(&h);
	for (int i = 0; i < 3 * 24 * 60; i++, now += MINUTE)
		add(now, 10, 1048576);
	now -= MINUTE;
	n = rows(now - 24 * 60 * MINUTE, r, ARRAY_SIZE(r));
	assert_true(n > HISTORY_MINUTES && n < ARRAY_SIZE(r));
	for (unsigned int i = 0; i + 1 < n; i++)
		assert_int_equal(r[i].at_ns + r[i].step_seconds * NSEC, r[i + 1].at_ns);
	assert_int_equal(r[n - 1].at_ns, now);
	assert_true(r[0].at_ns <= now - 23 * 60 * MINUTE);
	assert_int_equal(r[0].step_seconds, 600);
	assert_int_equal(r[n - 1].step_seconds, 60);
	for (unsigned int i = 0; i < n; i++)
		assert_true(r[i].mean[RESOURCE_CPU] == 10);
	/* A short window has only minutes. */
	n = rows(now - 30 * MINUTE, r, ARRAY_SIZE(r));
	assert_int_equal(n, 31);
	assert_int_equal(r[0].step_seconds, 60);
}

static void a_young_history_has_every_minute(void **state)
{
	struct history_row r[64];

	history_init(&h);
	for (int i = 3; i < 35; i++) /* began at 00:03 */
		add(START + i * MINUTE, i, 1);
	assert_int_equal(rows(0, r, 64), 32);
	for (int i = 0; i < 32; i++)
		assert_true(r[i].mean[RESOURCE_CPU] == i + 3);
}

static void a_clock_that_was_set_back_drops_the_future(void **state)
{
	struct history_row r[64];
	unsigned int n;

	history_init(&h);
	for (int i = 0; i < 30; i++)
		add(START + i * MINUTE, i, 1);
	add(START + 10 * MINUTE, 500, 1);
	n = rows(0, r, 64);
	assert_int_equal(n, 11);
	assert_true(r[9].mean[RESOURCE_CPU] == 9 && r[10].mean[RESOURCE_CPU] == 500);
	/* Beyond all that is kept: starts anew. */
	add(START - 365 * 24 * 60 * MINUTE, 1, 1);
	assert_int_equal(rows(INT64_MIN, r, 64), 1);
	/* Before 1970. */
	add(-90 * NSEC, 3, 1);
	n = rows(-2 * MINUTE, r, 64);
	assert_true(n >= 1);
	assert_int_equal(r[n - 1].at_ns, -2 * MINUTE);
}

static void a_clock_that_was_set_forward_leaves_a_gap(void **state)
{
	struct history_row r[HISTORY_MINUTES + HISTORY_TENS + 4];
	unsigned int n;

	history_init(&h);
	for (int i = 0; i < 10; i++)
		add(START + i * MINUTE, 7, 1);
	add(START + INT64_C(10) * 365 * 24 * 60 * MINUTE, 8, 1);
	n = rows(INT64_MIN, r, ARRAY_SIZE(r));
	assert_true(n > 1);
	assert_true(r[n - 1].mean[RESOURCE_CPU] == 8);
	for (unsigned int i = 0; i + 1 < n; i++)
		assert_true(isnan(r[i].mean[RESOURCE_CPU]));
}

static void a_declared_jump_moves_what_is_kept(void **state)
{
	static const int64_t jumps[] = {
		3600 * NSEC, -3600 * NSEC, 86400 * INT64_C(400) * NSEC, 29 * NSEC, -31 * NSEC, 0};

	for (unsigned int j = 0; j < ARRAY_SIZE(jumps); j++) {
		struct history_row r[64];
		unsigned int n;

		history_init(&h);
		for (int i = 0; i < 30; i++)
			add(START + i * MINUTE, 1 + i, 1);
		history_shift(&h, jumps[j]);
		add(START + 30 * MINUTE + jumps[j], 31, 1);
		n = rows(INT64_MIN, r, 64);
		assert_in_range(n, 30, 32);
		for (unsigned int i = 0; i < 29; i++)
			assert_true(r[i].mean[RESOURCE_CPU] == 1 + i);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(amounts_survive_to_one_part_in_2048),
		cmocka_unit_test(nothing_added_is_no_row),
		cmocka_unit_test(a_minute_has_mean_and_maximum),
		cmocka_unit_test(throttling_is_the_highest_share),
		cmocka_unit_test(what_was_not_measured_is_a_gap),
		cmocka_unit_test(a_day_is_tens_then_minutes_without_overlap),
		cmocka_unit_test(a_young_history_has_every_minute),
		cmocka_unit_test(a_clock_that_was_set_back_drops_the_future),
		cmocka_unit_test(a_clock_that_was_set_forward_leaves_a_gap),
		cmocka_unit_test(a_declared_jump_moves_what_is_kept),
	};

	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
