/* SPDX-License-Identifier: Apache-2.0 */
/* base/: numbers, strings, buffers, durations, errors, clocks. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/err.h"
#include "base/num.h"

static void test_whole_numbers_are_checked(void **state)
{
	static const struct {
		const char *text;
		int r;
		uint64_t value;
	} rows[] = {
		{"0", 0, 0},
		{"18446744073709551615", 0, UINT64_MAX},
		{"18446744073709551616", -ERANGE, 0},
		{"99999999999999999999999999", -ERANGE, 0},
		{"", -EINVAL, 0},
		{" 1", -EINVAL, 0},
		{"1 ", -EINVAL, 0},
		{"+1", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
		{"1e3", -EINVAL, 0},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t v = 7;
		assert_int_equal(parse_u64(str_of(rows[i].text), &v), rows[i].r);
		assert_int_equal(v, rows[i].r ? 7 : rows[i].value);
	}
}

static void test_signed_numbers_reach_both_ends(void **state)
{
	int64_t v = 0;

	assert_int_equal(parse_i64(STR("-9223372036854775808"), &v), 0);
	assert_true(v == INT64_MIN);
	assert_int_equal(parse_i64(STR("9223372036854775807"), &v), 0);
	assert_true(v == INT64_MAX);
	assert_int_equal(parse_i64(STR("9223372036854775808"), &v), -ERANGE);
	assert_int_equal(parse_i64(STR("--1"), &v), -EINVAL);
	assert_int_equal(parse_i64(STR("-"), &v), -EINVAL);
}

static void test_doubles_are_decimal_and_finite(void **state)
{
	static const struct {
		const char *text;
		int r;
		double value;
	} rows[] = {
		{"0.1", 0, 0.1},
		{"-2.5e-3", 0, -0.0025},
		{".5", 0, 0.5},
		{"5.", 0, 5},
		{"1e400", -ERANGE, 0},
		{"1e-400", 0, 0},
		{"inf", -EINVAL, 0},
		{"nan", -EINVAL, 0},
		{"0x1p3", -EINVAL, 0},
		{"1e", -EINVAL, 0},
		{".", -EINVAL, 0},
		{"", -EINVAL, 0},
		{"1 ", -EINVAL, 0},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		double v = 0;
		assert_int_equal(parse_double(str_of(rows[i].text), &v), rows[i].r);
		assert_true(v == rows[i].value);
	}
}

static void test_a_double_is_written_shortest_and_reads_back(void **state)
{
	static const double values[] = {
		0, 0.1, 1.0 / 3, 207.69808989927873, 1e300, 5e-324, -1.5, 123456789012345680.0};
	char text[32];

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		double back;
		size_t n = format_double(values[i], text);
		assert_int_equal(parse_double((struct str){text, n}, &back), 0);
		assert_true(back == values[i]);
	}
	(void)format_double(0.1, text);
	assert_string_equal(text, "0.1");
	(void)format_double(NAN, text);
	assert_string_equal(text, "null");
}

static void test_sums_and_products_saturate(void **state)
{
	assert_true(u64_add_sat(UINT64_MAX, 1) == UINT64_MAX);
	assert_true(i64_add_sat(INT64_MAX, 1) == INT64_MAX);
	assert_true(i64_add_sat(INT64_MIN, -1) == INT64_MIN);
	assert_true(i64_mul_sat(INT64_MAX, -2) == INT64_MIN);
	assert_true(i64_mul_sat(INT64_MIN, -2) == INT64_MAX);
	assert_true(i64_mul_sat(3, -4) == -12);
}

static void test_strings_are_cut_trimmed_and_copied_with_bounds(void **state)
{
	struct str rest = STR("a,b,");
	char small[4];

	assert_true(str_is(str_cut(&rest, ','), "a"));
	assert_true(str_is(str_cut(&rest, ','), "b"));
	assert_true(rest.p != NULL && rest.n == 0);
	assert_true(str_is(str_cut(&rest, ','), ""));
	assert_null(rest.p);
	assert_true(str_is(str_trim(STR(" \t x y\r\n")), "x y"));
	assert_true(str_is(str_trim(STR("  ")), ""));
	assert_int_equal(str_copy(small, sizeof(small), STR("abc")), 0);
	assert_string_equal(small, "abc");
	assert_int_equal(str_copy(small, sizeof(small), STR("abcd")), -ENAMETOOLONG);
	assert_int_equal(str_copy(small, sizeof(small), STR("a\0c")), -ENAMETOOLONG);
	assert_string_equal(small, "abc");
	assert_true(str_starts(STR("abc"), STR("ab")) && !str_starts(STR("a"), STR("ab")));
	assert_true(str_ends(STR("abc"), STR("bc")) && !str_ends(STR("c"), STR("bc")));
}

static void test_a_buffer_never_passes_its_maximum_and_keeps_what_it_has(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8);

	assert_int_equal(buf_puts(&b, "1234"), 0);
	assert_int_equal(buf_printf(&b, "%d", 5678), 0);
	assert_int_equal(b.n, 8);
	assert_int_equal(buf_putc(&b, '9'), -EMSGSIZE);
	assert_int_equal(buf_puts(&b, ""), -EMSGSIZE);
	assert_string_equal(b.p, "12345678");
	buf_clear(&b);
	assert_int_equal(buf_printf(&b, "%s", "123456789"), -EMSGSIZE);
	assert_int_equal(b.n, 0);
	buf_clear(&b);
	assert_int_equal(buf_printf(&b, "%s", "12345678"), 0);
	buf_consume(&b, 3);
	assert_string_equal(b.p, "45678");
	buf_consume(&b, 99);
	assert_int_equal(b.n, 0);
}

static void test_an_empty_buffer_can_be_taken_as_text(void **state)
{
	struct buf b = BUF_INIT(8);
	_cleanup_free_ char *p = buf_take(&b);

	assert_string_equal(p, "");
	buf_finish(&b);
}

static void test_durations_follow_gos_grammar_and_days(void **state)
{
	static const struct {
		const char *text;
		int r;
		int64_t ns;
		const char *shown;
	} rows[] = {
		{"0", 0, 0, "0s"},
		{"10s", 0, 10 * NSEC_PER_SEC, "10s"},
		{"1h30m", 0, 5400 * NSEC_PER_SEC, "1h30m0s"},
		{"1.5h", 0, 5400 * NSEC_PER_SEC, "1h30m0s"},
		{"250ms", 0, 250000000, "250ms"},
		{"0.3s", 0, 300000000, "300ms"},
		{"1.5s", 0, 1500000000, "1.5s"},
		{"2d", 0, 172800 * NSEC_PER_SEC, "48h0m0s"},
		{"3us", 0, 3000, "3us"},
		{"3µs", 0, 3000, "3us"},
		{"7ns", 0, 7, "7ns"},
		{"1m1ms", 0, 60001000000, "1m0.001s"},
		{"+5s", 0, 5 * NSEC_PER_SEC, "5s"},
		{"-5s", -EINVAL, 0, NULL},
		{"5", -EINVAL, 0, NULL},
		{"", -EINVAL, 0, NULL},
		{"s", -EINVAL, 0, NULL},
		{".s", -EINVAL, 0, NULL},
		{"1s ", -EINVAL, 0, NULL},
		{"1w", -EINVAL, 0, NULL},
		{"9999999h", -ERANGE, 0, NULL},
		{"99999999999999999999999s", -ERANGE, 0, NULL},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int64_t ns = -1;
		char shown[32];
		assert_int_equal(duration_parse(str_of(rows[i].text), &ns), rows[i].r);
		assert_true(ns == (rows[i].r ? -1 : rows[i].ns));
		if (rows[i].r)
			continue;
		(void)duration_format(ns, shown);
		assert_string_equal(shown, rows[i].shown);
		assert_int_equal(duration_parse(str_of(shown), &ns), 0);
		assert_true(ns == rows[i].ns);
	}
}

static void test_an_error_keeps_its_cause_and_never_overruns(void **state)
{
	struct err e = {""};
	char longest[1000];

	assert_string_equal(err_text(&e, -ENOENT), "No such file or directory");
	assert_int_equal(err_set(&e, EINVAL, "line %d", 3), -EINVAL);
	assert_int_equal(err_wrap(&e, -EINVAL, "file %s", "x"), -EINVAL);
	assert_string_equal(e.text, "file x: line 3");
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	(void)err_wrap(&e, -EINVAL, "%s", longest);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	assert_int_equal(err_set(NULL, EIO, "nobody listens"), -EIO);
}

static void test_an_error_is_one_line_and_steers_no_terminal(void **state)
{
	struct err e = {""};

	(void)err_set(&e, EINVAL, "\033[31m%s\x7f", "ä\r\n");
	assert_string_equal(e.text, "?[31mä???");
	(void)err_wrap(&e, -EINVAL, "file %s", "a\nb");
	assert_string_equal(e.text, "file a?b: ?[31mä???");
}

static void test_a_set_wall_clock_is_noticed_both_ways(void **state)
{
	struct clock_manual m;
	struct clock_watch w = {0};

	clock_manual_init(&m, 1000000000);
	assert_int_equal(clock_watch_look(&w, &m.clock, USEC_PER_SEC), 0);
	clock_manual_advance(&m, 10 * USEC_PER_SEC);
	assert_int_equal(clock_watch_look(&w, &m.clock, USEC_PER_SEC), 0);
	m.wall_usec += 3600 * (int64_t)USEC_PER_SEC;
	assert_int_equal(
		clock_watch_look(&w, &m.clock, USEC_PER_SEC), 3600 * (int64_t)USEC_PER_SEC);
	assert_int_equal(clock_watch_look(&w, &m.clock, USEC_PER_SEC), 0);
	m.wall_usec -= 7200 * (int64_t)USEC_PER_SEC;
	assert_int_equal(
		clock_watch_look(&w, &m.clock, USEC_PER_SEC), -7200 * (int64_t)USEC_PER_SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_numbers_are_checked),
		cmocka_unit_test(test_signed_numbers_reach_both_ends),
		cmocka_unit_test(test_doubles_are_decimal_and_finite),
		cmocka_unit_test(test_a_double_is_written_shortest_and_reads_back),
		cmocka_unit_test(test_sums_and_products_saturate),
		cmocka_unit_test(test_strings_are_cut_trimmed_and_copied_with_bounds),
		cmocka_unit_test(test_a_buffer_never_passes_its_maximum_and_keeps_what_it_has),
		cmocka_unit_test(test_an_empty_buffer_can_be_taken_as_text),
		cmocka_unit_test(test_durations_follow_gos_grammar_and_days),
		cmocka_unit_test(test_an_error_keeps_its_cause_and_never_overruns),
		cmocka_unit_test(test_an_error_is_one_line_and_steers_no_terminal),
		cmocka_unit_test(test_a_set_wall_clock_is_noticed_both_ways),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
