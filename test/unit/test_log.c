/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/log.h"

static void keep(const char *line, size_t n, void *arg)
{
	(void)buf_append(arg, line, n);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *at = text; at && (at = strstr(at, what)); at++)
		n++;
	return n;
}

static void test_a_line_names_time_level_and_message(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	log_to(keep, &b);
	log_setup(LOG_INFO, LOG_TEXT);
	log_warn("node %s is odd", "a");
	log_debug("not shown");
	assert_non_null(strstr(b.p, "Z warn: node a is odd\n"));
	assert_int_equal(count(b.p, "\n"), 1);

	buf_clear(&b);
	log_setup(LOG_DEBUG, LOG_JSON);
	log_debug("a \"quoted\" word");
	assert_non_null(
		strstr(b.p, "\"level\":\"debug\",\"message\":\"a \\\"quoted\\\" word\"}\n"));
	log_to(NULL, NULL);
}

static void test_bytes_from_outside_cannot_make_a_line_of_their_own(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	log_to(keep, &b);
	log_setup(LOG_INFO, LOG_TEXT);
	log_error("%s", "x\n2026-01-01 error: forged\x1b[2J");
	assert_int_equal(count(b.p, "\n"), 1);
	assert_non_null(strstr(b.p, "x\\x0a2026"));
	assert_null(strchr(b.p, '\x1b'));
	buf_clear(&b);
	log_setup(LOG_INFO, LOG_JSON);
	log_error("%s", "x\ny");
	assert_non_null(strstr(b.p, "x\\u000ay"));
	log_to(NULL, NULL);
}

static void test_one_site_is_limited_and_others_are_not(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	log_to(keep, &b);
	log_setup(LOG_INFO, LOG_TEXT);
	for (unsigned int i = 0; i < 5 * LOG_BURST; i++)
		log_info("noise");
	log_info("signal");
	assert_int_equal(count(b.p, "noise"), LOG_BURST);
	assert_int_equal(count(b.p, "signal"), 1);
	log_to(NULL, NULL);
}

static void test_what_was_left_out_is_counted_in_the_next_line(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct log_site site = {0};

	log_to(keep, &b);
	log_setup(LOG_INFO, LOG_TEXT);
	for (unsigned int i = 0; i < LOG_BURST + 3; i++)
		log_at(&site, LOG_INFO, "again");
	site.window_start_usec = 0; /* a minute later */
	log_at(&site, LOG_INFO, "again");
	assert_int_equal(count(b.p, "(3 more like it were not shown)"), 1);
	log_to(NULL, NULL);
}

static void test_a_long_message_is_cut_and_names_of_levels_parse(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	char longest[3000];
	enum log_level level;

	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	log_to(keep, &b);
	log_setup(LOG_INFO, LOG_TEXT);
	log_info("%s", longest);
	assert_true(b.n < LOG_LINE_MAX + 100);
	assert_int_equal(count(b.p, "…\n"), 1);
	assert_int_equal(log_level_parse("warn", &level), 0);
	assert_int_equal(level, LOG_WARN);
	assert_int_equal(log_level_parse("loud", &level), -EINVAL);
	log_to(NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_line_names_time_level_and_message),
		cmocka_unit_test(test_bytes_from_outside_cannot_make_a_line_of_their_own),
		cmocka_unit_test(test_one_site_is_limited_and_others_are_not),
		cmocka_unit_test(test_what_was_left_out_is_counted_in_the_next_line),
		cmocka_unit_test(test_a_long_message_is_cut_and_names_of_levels_parse),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
