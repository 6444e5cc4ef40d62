// SPDX-License-Identifier: Apache-2.0
#include "proto/quantity.h"
#include "test/unit/unit.h"

#define P63 ((__int128)INT64_MAX * 1000000000)
#define N(units) ((__int128)(units)*1000000000)

static void parses_every_form(void **state)
{
	static const struct {
		const char *text;
		__int128 nano;
		const char *canonical;
	} t[] = {
		{"0", 0, "0"},
		{"-0", 0, "0"},
		{"0Ki", 0, "0"},
		{"0e9", 0, "0"},
		{"00.00m", 0, "0"},
		{"1", N(1), "1"},
		{"+1", N(1), "1"},
		{"-1", N(-1), "-1"},
		{"001", N(1), "1"},
		{"1.", N(1), "1"},
		{".5", N(1) / 2, "500m"},
		{"0.063", N(63) / 1000, "63m"},
		{"63m", N(63) / 1000, "63m"},
		{"1500m", N(3) / 2, "1500m"},
		{"1000m", N(1), "1"},
		{"1000", N(1000), "1k"},
		{"1k", N(1000), "1k"},
		{"1M", N(1000000), "1M"},
		{"1G", N(1000000000), "1G"},
		{"3T", N(3000000000000), "3T"},
		{"4P", N(4000000000000000), "4P"},
		{"9E", N(9000000000000000000), "9E"},
		{"1Ki", N(1024), "1Ki"},
		{"1.5Gi", N(1610612736), "1536Mi"},
		{"250Mi", N(262144000), "250Mi"},
		{"1Ti", N(1099511627776), "1Ti"},
		{"1Pi", N(1125899906842624), "1Pi"},
		{"7Ei", N(8070450532247928832), "7Ei"},
		{"0.5Ki", N(512), "512"},
		{"1.1Ki", (__int128)1126400000000, "1126400m"},
		{"100n", 100, "100n"},
		{"7u", 7000, "7u"},
		{"1e3", N(1000), "1e3"},
		{"1E3", N(1000), "1e3"},
		{"1E", N(1000000000000000000), "1E"},
		{"1e+3", N(1000), "1e3"},
		{"12e-1", N(12) / 10, "1200e-3"},
		{"5e0", N(5), "5"},
		{"5e-9", 5, "5e-9"},
		{"1.25e1", N(125) / 10, "12500e-3"},
		/* finer than nano: away from zero */
		{"0.1n", 1, "1n"},
		{"-0.1n", -1, "-1n"},
		{"1e-30", 1, "1e-9"},
		{"1e-99999999999999999999", 1, "1e-9"},
		{"0.0000000010000000000000000000000000000000000000001", 2, "2n"},
		{"0.000000001", 1, "1n"},
		{"0.0000000000000000001Ei", 115292151, "115292151n"},
		/* saturates */
		{"9223372036854775807", P63, "9223372036854775807"},
		{"9223372036854775808", P63, "9223372036854775807"},
		{"8Ei", P63, "9223372036854775807"},
		{"-8Ei", -P63, "-9223372036854775807"},
		{"10E", P63, "9223372036854775807"},
		{"1e99999999999999999999", P63, "9223372036854775807"},
		{"0e99999999999999999999", 0, "0"},
		{"1e2147483648", P63, "9223372036854775807"},
		{"1e-2147483649", 1, "1e-9"},
		{"9223372036854775806.9999999999", P63, "9223372036854775807"},
	};
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		struct quantity q, again;
		char text[QUANTITY_TEXT_MAX];

		print_message("%s\n", t[i].text);
		assert_int_equal(quantity_parse(str_of(t[i].text), &q), 0);
		assert_true(q.nano == t[i].nano);
		size_t n = quantity_format(&q, text);
		assert_int_equal(n, strlen(text));
		assert_string_equal(text, t[i].canonical);
		assert_int_equal(quantity_parse(str_of(text), &again), 0);
		assert_true(again.nano == q.nano);
	}
}

static void refuses_what_is_no_quantity(void **state)
{
	static const char *const t[] = {
		"",
		" ",
		"1 ",
		" 1",
		"+",
		"-",
		".",
		"+.",
		"m",
		"Ki",
		"e3",
		"1e",
		"1e+",
		"1e3.5",
		"1e3e3",
		"1K",
		"1ki",
		"1KI",
		"1mi",
		"1Mm",
		"1mM",
		"1.2.3",
		"1,5",
		"--1",
		"+-1",
		"1i",
		"0x10",
		"1e3Ki",
		"nan",
		"inf",
		"1\xc2\xb5",
		"1m\n",
		"1Eii",
		"1d",
		"1_000",
	};
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		struct quantity q = {.nano = 42};

		print_message("'%s'\n", t[i]);
		assert_int_equal(quantity_parse(str_of(t[i]), &q), -EINVAL);
		assert_true(q.nano == 42);
	}
	struct quantity q;
	assert_int_equal(quantity_parse((struct str){"1\0", 2}, &q), -EINVAL);
	assert_int_equal(quantity_parse((struct str){NULL, 0}, &q), -EINVAL);
}

static void long_texts_are_exact_or_refused(void **state)
{
	char text[QUANTITY_INPUT_MAX + 1];
	struct quantity q;

	memset(text, '9', sizeof text);
	assert_int_equal(quantity_parse((struct str){text, sizeof text}, &q), -EINVAL);
	assert_int_equal(quantity_parse((struct str){text, QUANTITY_INPUT_MAX}, &q), 0);
	assert_true(q.nano == P63);
	memset(text, '0', sizeof text);
	text[1] = '.';
	text[QUANTITY_INPUT_MAX - 1] = '1';
	assert_int_equal(quantity_parse((struct str){text, QUANTITY_INPUT_MAX}, &q), 0);
	assert_true(q.nano == 1);
	text[0] = '5';
	assert_int_equal(quantity_parse((struct str){text, QUANTITY_INPUT_MAX}, &q), 0);
	assert_true(q.nano == N(5) + 1);
	text[QUANTITY_INPUT_MAX - 1] = '0';
	assert_int_equal(quantity_parse((struct str){text, QUANTITY_INPUT_MAX}, &q), 0);
	assert_true(q.nano == N(5));
}

static void every_value_survives_its_text(void **state)
{
	uint64_t x = 42;

	for (int i = 0; i < 200000; i++) {
		struct quantity q, again;
		char text[QUANTITY_TEXT_MAX];

		x = x * UINT64_C(6364136223846793005) + 1;
		unsigned int shift = (unsigned int)(x >> 58);
		q.nano = (__int128)(int64_t)(x >> 20 << 20 ^ x >> 31) >> shift;
		q.nano *= (x & 1) ? 1 : 1000000000;
		q.format = (enum quantity_format)(x % 3);
		size_t n = quantity_format(&q, text);
		assert_int_equal(quantity_parse((struct str){text, n}, &again), 0);
		assert_true(again.nano == q.nano);
	}
}

static void amounts_round_up(void **state)
{
	static const struct {
		const char *text;
		int64_t milli, units;
	} t[] = {
		{"1n", 1, 1},
		{"1m", 1, 1},
		{"1001u", 2, 1},
		{"1500m", 1500, 2},
		{"-1n", -1, -1},
		{"2", 2000, 2},
		{"9E", INT64_MAX, 9000000000000000000},
		{"-9E", -INT64_MAX, -9000000000000000000},
		{"8Ei", INT64_MAX, INT64_MAX},
		{"9223372036854775807", INT64_MAX, INT64_MAX},
	};
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		struct quantity q;

		assert_int_equal(quantity_parse(str_of(t[i].text), &q), 0);
		assert_true(quantity_milli(&q) == t[i].milli);
		assert_true(quantity_units(&q) == t[i].units);
	}
}

static void writes_as_annotations_do(void **state)
{
	char out[QUANTITY_TEXT_MAX];

	quantity_format_millicores(63, out);
	assert_string_equal(out, "63m");
	quantity_format_millicores(1000, out);
	assert_string_equal(out, "1");
	quantity_format_millicores(1500, out);
	assert_string_equal(out, "1500m");
	quantity_format_millicores(0, out);
	assert_string_equal(out, "0");
	quantity_format_millicores(INT64_MIN, out);
	assert_string_equal(out, "-9223372036854775808m");
	quantity_format_bytes(49566436, out);
	assert_string_equal(out, "49566436");
	quantity_format_bytes_binary(262144000, out);
	assert_string_equal(out, "250Mi");
	quantity_format_bytes_binary(1000, out);
	assert_string_equal(out, "1000");
	quantity_format_bytes_binary(49566436, out);
	assert_string_equal(out, "49566436");
	quantity_format_bytes_binary(INT64_MAX, out);
	assert_string_equal(out, "9223372036854775807");
}

static void flags_take_quantities(void **state)
{
	int64_t v = 7;
	struct err e;
	struct quantity_pair pair = {5, 5};

	assert_int_equal(flag_parse_millicores(STR("0.25"), &v, &e), 0);
	assert_true(v == 250);
	assert_int_equal(flag_parse_bytes(STR("10Mi"), &v, &e), 0);
	assert_true(v == 10485760);
	assert_int_equal(flag_parse_bytes(STR("-1"), &v, &e), -EINVAL);
	assert_int_equal(flag_parse_millicores(STR("lots"), &v, &e), -EINVAL);
	assert_true(v == 10485760);
	assert_non_null(strstr(e.text, "250m"));

	assert_int_equal(flag_parse_quantity_pair(STR("cpu=100m,memory=64Mi"), &pair, &e), 0);
	assert_true(pair.cpu_millicores == 100 && pair.memory_bytes == 67108864);
	assert_int_equal(flag_parse_quantity_pair(STR("memory=1"), &pair, &e), 0);
	assert_true(pair.cpu_millicores == -1 && pair.memory_bytes == 1);
	static const char *const bad[] = {"", "cpu", "cpu=", "cpu=1,", ",cpu=1", "cpu=1,cpu=2",
		"disk=1", "cpu=1;memory=1", "cpu=-1", "memory=x", "cpu= 1"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_equal(flag_parse_quantity_pair(str_of(bad[i]), &pair, &e), -EINVAL);
		assert_non_null(strstr(e.text, "cpu=100m,memory=64Mi"));
	}
	assert_true(pair.cpu_millicores == -1 && pair.memory_bytes == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_every_form),
		cmocka_unit_test(refuses_what_is_no_quantity),
		cmocka_unit_test(long_texts_are_exact_or_refused),
		cmocka_unit_test(every_value_survives_its_text),
		cmocka_unit_test(amounts_round_up),
		cmocka_unit_test(writes_as_annotations_do),
		cmocka_unit_test(flags_take_quantities),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
