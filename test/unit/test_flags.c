/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/flags.h"

struct settings {
	bool strict;
	const char *path;
	int output;
	int64_t count;
	double ratio;
	int64_t interval_ns;
	size_t length;
};

static int length_parse(struct str value, void *target, struct err *e)
{
	if (value.n > 5)
		return err_set(e, EINVAL, "accepted: at most five letters");
	*(size_t *)target = value.n;
	return 0;
}

static const char *const outputs[] = {"text", "json", NULL};
static const struct flag first_table[] = {
	{.name = "strict",
		.kind = FLAG_BOOL,
		.offset = offsetof(struct settings, strict),
		.default_text = "false",
		.help = "Stop at the first bad line"},
	{.name = "cgroup-root",
		.kind = FLAG_STRING,
		.offset = offsetof(struct settings, path),
		.default_text = "/sys/fs/cgroup",
		.value_name = "PATH",
		.help = "Where"},
	{.name = "output",
		.kind = FLAG_CHOICE,
		.offset = offsetof(struct settings, output),
		.default_text = "text",
		.choices = outputs,
		.help = "How"},
	{.name = NULL},
};
static const struct flag second_table[] = {
	{.name = "count",
		.kind = FLAG_INT,
		.offset = offsetof(struct settings, count),
		.default_text = "3",
		.min = 1,
		.max = 10,
		.help = "How many"},
	{.name = "ratio",
		.kind = FLAG_DOUBLE,
		.offset = offsetof(struct settings, ratio),
		.default_text = "0.9",
		.min_double = 0,
		.max_double = 1,
		.help = "Share"},
	{.name = "interval",
		.kind = FLAG_DURATION,
		.offset = offsetof(struct settings, interval_ns),
		.default_text = "10s",
		.min = NSEC_PER_SEC,
		.max = 3600 * NSEC_PER_SEC,
		.value_name = "DURATION",
		.help = "Between rounds"},
	{.name = "word",
		.kind = FLAG_CUSTOM,
		.offset = offsetof(struct settings, length),
		.parse = length_parse,
		.help = "A word"},
	{.name = NULL},
};
static const struct flag *const tables[] = {first_table, second_table, NULL};

static int parse(struct settings *s, const char *arguments, char *const *environment,
	int *ret_first, char ***ret_argv, int *ret_argc, struct err *e, struct flag_set *set)
{
	static char text[512];
	static char *argv[32];
	int argc = 0, first = 0;

	(void)snprintf(text, sizeof(text), "verb %s", arguments);
	struct str rest = str_of(text);
	while (rest.p && argc < 31) {
		struct str word = str_cut(&rest, ' ');
		((char *)word.p)[word.n] = '\0';
		if (word.n)
			argv[argc++] = (char *)word.p;
	}
	*s = (struct settings){0};
	*e = (struct err){""};
	*set = (struct flag_set){.program = "p",
		.verb = "v",
		.summary = "Does it.",
		.arguments = "[PATTERN…]",
		.example = "p v --strict",
		.tables = tables,
		.settings = s,
		.environment = environment};
	int r = flags_parse(set, argc, argv, &first, e);
	if (ret_first) {
		*ret_first = first;
		*ret_argv = argv;
		*ret_argc = argc;
	}
	return r;
}

static void test_defaults_hold_until_environment_and_flags_speak(void **state)
{
	char *environment[] = {"PERNODE_COUNT=7", "PERNODE_RATIO=", "PERNODE_INTERVAL=1m",
		"PERNODE_AGENT_PORT=tcp://1.2.3.4", NULL};
	struct settings s;
	struct flag_set set;
	struct err e;

	assert_int_equal(parse(&s, "", NULL, NULL, NULL, NULL, &e, &set), 0);
	assert_false(s.strict);
	assert_string_equal(s.path, "/sys/fs/cgroup");
	assert_int_equal(s.count, 3);
	assert_true(s.ratio == 0.9);
	assert_true(s.interval_ns == 10 * NSEC_PER_SEC);

	assert_int_equal(parse(&s, "--interval=2s --strict --output json", environment, NULL, NULL,
				 NULL, &e, &set),
		0);
	assert_true(s.strict);
	assert_int_equal(s.output, 1);
	assert_int_equal(s.count, 7);
	assert_true(s.ratio == 0.9);
	assert_true(s.interval_ns == 2 * NSEC_PER_SEC);
	assert_int_equal(set.sources[0], FLAG_FROM_COMMAND_LINE);
	assert_int_equal(set.sources[1], FLAG_FROM_DEFAULT);
	assert_int_equal(set.sources[3], FLAG_FROM_ENVIRONMENT);
	assert_int_equal(set.sources[5], FLAG_FROM_COMMAND_LINE);
}

static void test_arguments_mix_with_flags_and_keep_their_order(void **state)
{
	struct settings s;
	struct flag_set set;
	struct err e;
	char **argv;
	int first, argc;

	assert_int_equal(
		parse(&s, "one --count 4 two - -- --strict", NULL, &first, &argv, &argc, &e, &set),
		0);
	assert_int_equal(argc - first, 4);
	assert_string_equal(argv[first], "one");
	assert_string_equal(argv[first + 1], "two");
	assert_string_equal(argv[first + 2], "-");
	assert_string_equal(argv[first + 3], "--strict");
	assert_false(s.strict);
	assert_int_equal(s.count, 4);
}

static void test_a_wrong_value_names_flag_value_and_what_is_accepted(void **state)
{
	static const struct {
		const char *arguments, *says;
	} rows[] = {
		{"--cuont=3", "--cuont: no such flag; did you mean --count? (--help lists all)"},
		{"--quite-something-else",
			"--quite-something-else: no such flag; --help lists all"},
		{"-c", "-c: no such flag; flags are --long-name=value (--help lists all)"},
		{"--count=0", "--count=0: accepted: a whole number from 1 to 10"},
		{"--count=x", "--count=x: accepted: a whole number from 1 to 10"},
		{"--count", "--count: needs a value (VALUE)"},
		{"--ratio=1.5", "--ratio=1.5: accepted: a number from 0 to 1"},
		{"--interval=10", "--interval=10: accepted: a duration from 1s to 1h0m0s, such as "
				  "90s, 1h30m or 2d"},
		{"--output=yaml", "--output=yaml: accepted: text, json"},
		{"--strict=maybe", "--strict=maybe: accepted: false, true"},
		{"--word=toolong", "--word=toolong: accepted: at most five letters"},
	};
	struct settings s;
	struct flag_set set;
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(
			parse(&s, rows[i].arguments, NULL, NULL, NULL, NULL, &e, &set), -EINVAL);
		assert_string_equal(e.text, rows[i].says);
	}
	char *environment[] = {"PERNODE_COUNT=many", NULL};
	assert_int_equal(parse(&s, "", environment, NULL, NULL, NULL, &e, &set), -EINVAL);
	assert_string_equal(e.text, "PERNODE_COUNT=many: accepted: a whole number from 1 to 10");
}

static void test_help_lists_every_flag_with_default_environment_and_example(void **state)
{
	struct settings s;
	struct flag_set set;
	struct err e;
	_cleanup_buf_ struct buf out = BUF_INIT(1 << 16);

	assert_int_equal(parse(&s, "", NULL, NULL, NULL, NULL, &e, &set), 0);
	flags_help(&set, &out);
	assert_non_null(strstr(out.p, "Usage: p v [flags] [PATTERN…]"));
	assert_non_null(strstr(out.p, "--output=text|json"));
	assert_non_null(strstr(out.p,
		"--interval=DURATION\n        Between rounds (default 10s) [PERNODE_INTERVAL]"));
	assert_non_null(strstr(out.p, "PERNODE_CGROUP_ROOT"));
	assert_non_null(strstr(out.p, "p v --strict"));

	char *asks[] = {"v", "--strict", "-h"}, *asks_not[] = {"v", "--", "--help"};
	assert_true(flags_wants_help(3, asks));
	assert_false(flags_wants_help(3, asks_not));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults_hold_until_environment_and_flags_speak),
		cmocka_unit_test(test_arguments_mix_with_flags_and_keep_their_order),
		cmocka_unit_test(test_a_wrong_value_names_flag_value_and_what_is_accepted),
		cmocka_unit_test(test_help_lists_every_flag_with_default_environment_and_example),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
