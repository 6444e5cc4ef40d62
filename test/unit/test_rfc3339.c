// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "proto/rfc3339.h"
#include "test/unit/unit.h"

#define S NSEC_PER_SEC

static void parses_times_with_offsets_and_fractions(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} t[] = {
		{"1970-01-01T00:00:00Z", 0},
		{"2026-01-01T00:00:00Z", 1767225600 * S},
		{"2026-01-01t00:00:00z", 1767225600 * S},
		{"2026-01-01 00:00:00Z", 1767225600 * S},
		{"2026-01-01T01:30:00+01:30", 1767225600 * S},
		{"2025-12-31T16:00:00-08:00", 1767225600 * S},
		{"2026-01-01T00:00:00.5Z", 1767225600 * S + S / 2},
		{"2026-01-01T00:00:00.123456789999Z", 1767225600 * S + 123456789},
		{"1969-12-31T23:59:59.75Z", -S / 4},
		{"2024-02-29T12:00:00Z", 1709208000 * S},
		{"2000-02-29T00:00:00Z", 951782400 * S},
		{"1677-09-21T00:12:44Z", -9223372036 * S},
		{"2262-04-11T23:47:15.999999999Z", 9223372035 * S + 999999999},
		/* leap seconds are the instant after them, whatever the offset */
		{"2016-12-31T23:59:60Z", 1483228800 * S},
		{"2016-12-31T23:59:60.7Z", 1483228800 * S},
		{"2017-01-01T08:59:60+09:00", 1483228800 * S},
	};
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		int64_t ns = 1;

		print_message("%s\n", t[i].text);
		assert_int_equal(rfc3339_parse(str_of(t[i].text), &ns), 0);
		assert_true(ns == t[i].ns);
	}
}

static void refuses_what_is_no_time(void **state)
{
	static const struct {
		const char *text;
		int r;
	} t[] = {
		{"", -EINVAL},
		{"2026-01-01", -EINVAL},
		{"2026-01-01T00:00:00", -EINVAL},
		{"2026-1-01T00:00:00Z", -EINVAL},
		{"2026-13-01T00:00:00Z", -EINVAL},
		{"2026-00-01T00:00:00Z", -EINVAL},
		{"2026-02-29T00:00:00Z", -EINVAL},
		{"1900-02-29T00:00:00Z", -EINVAL},
		{"2026-01-00T00:00:00Z", -EINVAL},
		{"2026-01-01T24:00:00Z", -EINVAL},
		{"2026-01-01T00:60:00Z", -EINVAL},
		{"2026-01-01T00:00:61Z", -EINVAL},
		{"2026-01-01T00:00:00.Z", -EINVAL},
		{"2026-01-01T00:00:00+1:00", -EINVAL},
		{"2026-01-01T00:00:00+0100", -EINVAL},
		{"2026-01-01T00:00:00+24:00", -EINVAL},
		{"2026-01-01T00:00:00ZZ", -EINVAL},
		{"2026-01-01X00:00:00Z", -EINVAL},
		{"2026-01-01T00:00:00Z ", -EINVAL},
		{"-2026-01-01T00:00:00Z", -EINVAL},
		{"2026-01-01T12:00:60Z", -EINVAL},
		{"2026-01-15T23:59:60Z", -EINVAL},
		{"2016-12-31T23:59:60+01:00", -EINVAL},
		{"0001-01-01T00:00:00Z", -ERANGE},
		{"0000-01-01T00:00:00Z", -ERANGE},
		{"9999-12-31T23:59:59Z", -ERANGE},
		{"1677-09-21T00:12:43Z", -ERANGE},
		{"2262-04-11T23:47:16Z", -ERANGE},
	};
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		int64_t ns = 1;

		print_message("'%s'\n", t[i].text);
		assert_int_equal(rfc3339_parse(str_of(t[i].text), &ns), t[i].r);
		assert_true(ns == 1);
	}
}

static void formats_in_utc(void **state)
{
	char out[RFC3339_TEXT_MAX];

	assert_int_equal(rfc3339_format(1767225600 * S + 999999999, out), 20);
	assert_string_equal(out, "2026-01-01T00:00:00Z");
	assert_int_equal(rfc3339_format_usec(1767225600 * S + 999999999, out), 27);
	assert_string_equal(out, "2026-01-01T00:00:00.999999Z");
	rfc3339_format_usec(-1, out);
	assert_string_equal(out, "1969-12-31T23:59:59.999999Z");
	rfc3339_format(INT64_MIN + 1, out);
	assert_string_equal(out, "1677-09-21T00:12:43Z");
	rfc3339_format(INT64_MAX, out);
	assert_string_equal(out, "2262-04-11T23:47:16Z");
	assert_int_equal(rfc3339_format(TIME_NONE, out), 0);
	assert_string_equal(out, "");
}

static void every_day_survives_its_text(void **state)
{
	/* all days that int64 holds, at an odd second */
	for (int64_t day = -106751; day < 106751; day++) {
		char out[RFC3339_TEXT_MAX];
		int64_t ns = (day * 86400 + 12345) * S + 678000, again;
		size_t n = rfc3339_format_usec(ns, out);

		assert_int_equal(rfc3339_parse((struct str){out, n}, &again), 0);
		assert_true(again == ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_times_with_offsets_and_fractions),
		cmocka_unit_test(refuses_what_is_no_time),
		cmocka_unit_test(formats_in_utc),
		cmocka_unit_test(every_day_survives_its_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
