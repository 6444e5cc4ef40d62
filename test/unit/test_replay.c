// SPDX-License-Identifier: Apache-2.0
/* The verb from outside: files in, exit code, stdout and stderr out. */
#include <unistd.h>
#include <zlib.h>

#include "base/buf.h"
#include "helper_replay.h"
#include "proto/json_read.h"
#include "test/unit/unit.h"

#define T0 1767225600LL /* 2026-01-01T00:00:00Z */

static void put_scenario_3(struct buf *b, const char *newline)
{
	(void)buf_printf(b, "time,series,cpu_millicores,memory_bytes%s", newline);
	for (int i = 0; i < 1440; i++)
		(void)buf_printf(b, "%lld,shipper@node-a,%d,%d%s", T0 + 60 * i, 50 + i * 37 % 500,
			100000000 + 100000 * i, newline);
}

#define SCENARIO_3                                                                               \
	"\"target\":{\"cpu_millicores\":587,\"memory_bytes\":297164212},"                        \
	"\"lowerBound\":{\"cpu_millicores\":349,\"memory_bytes\":296570362},"                    \
	"\"upperBound\":{\"cpu_millicores\":1254,\"memory_bytes\":594534931},"                   \
	"\"histogram\":{\"cpu\":{\"referenceTime\":1767225600,\"total\":207.69808989927873,"     \
	"\"minBucket\":4,"                                                                       \
	"\"maxBucket\":27,\"nonZero\":24},\"memory\":{\"referenceTime\":1767312000,\"total\":1," \
	"\"minBucket\":16,"                                                                      \
	"\"maxBucket\":16,\"nonZero\":1}}"

static void a_day_of_samples_equals_the_reference(void **state)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1U << 20);
	_cleanup_outcome_ struct outcome o;

	put_scenario_3(&text, "\n");
	put_file("s3.csv", buf_str(&text));
	REPLAY(&o, "--profile=vpa", "--output=json", "s3.csv");
	assert_int_equal(o.exit_code, 0);
	assert_string_equal(o.err.p, "");
	assert_says(&o.out, "{\"profile\":\"vpa\",\"series\":[{\"series\":\"shipper@node-a\","
			    "\"samples\":1440,\"badLines\":0,"
			    "\"oomKills\":0,\"since\":\"2026-01-01T00:00:00Z\",\"last\":\"2026-01-"
			    "01T23:59:00Z\"," SCENARIO_3);
}

static void eight_days_with_oom_kills_equal_the_reference(void **state)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1U << 20);
	_cleanup_outcome_ struct outcome o;
	uint32_t x = 42;

	(void)buf_puts(&text, "event,memory_bytes,cpu_millicores,unix_seconds\n");
	for (int i = 0; i < 11520; i++) {
		long long t = T0 + 60LL * i;
		x = (x * 1103515245U + 12345U) & 0x7fffffffU;
		unsigned int cpu = (x >> 8) % 2000;
		x = (x * 1103515245U + 12345U) & 0x7fffffffU;
		(void)buf_printf(&text, ",%u,%u,%lld\n", 500000000U + (x >> 8) % 300000, cpu, t);
		if (i == 5000)
			(void)buf_printf(&text, "oom,600000000,,%lld\n", t + 30);
		if (i == 7000)
			(void)buf_printf(&text, "oom,900000000,,%lld\n", t - 25 * 3600);
		if (i == 9000)
			(void)buf_printf(&text, "oom,50000000,,%lld\n", t - 2 * 3600);
	}
	put_file("s4.csv", buf_str(&text));
	REPLAY(&o, "--profile=vpa", "--output=json", "s4.csv");
	assert_int_equal(o.exit_code, 0);
	assert_says(
		&o.err, "s4.csv:7004: an OOM kill of 2026-01-04T19:40:00Z, expected none older");
	assert_says(&o.out, "\"samples\":11520,\"badLines\":1,\"oomKills\":2,");
	assert_says(&o.out, "\"target\":{\"cpu_millicores\":2162,\"memory_bytes\":716711186},"
			    "\"lowerBound\":{\"cpu_millicores\":1167,\"memory_bytes\":587657780},"
			    "\"upperBound\":{\"cpu_millicores\":2566,\"memory_bytes\":806307861}");
	assert_says(&o.out,
		"\"total\":52963.012924315932,\"minBucket\":0,\"maxBucket\":49,\"nonZero\":50}");
	assert_says(&o.out, "\"memory\":{\"referenceTime\":1767312000,\"total\":255,\"minBucket\":"
			    "25,\"maxBucket\":31,\"nonZero\":3}");
}

static void small_scenarios_equal_the_reference(void **state)
{
	static const struct {
		const char *text, *says;
	} t[] = {
		{"time,cpu_millicores,memory_bytes\n1767225600,100,209715200\n",
			"\"target\":{\"cpu_millicores\":126,\"memory_bytes\":262144000},"
			"\"lowerBound\":{\"cpu_millicores\":25,\"memory_bytes\":262144000},"
			"\"upperBound\":{\"cpu_millicores\":100000000000000,\"memory_bytes\":"
			"100000000000000}"},
		/* only memory: the reference's minimum for CPU, and its empty histogram */
		{"time,memory_bytes\n1767225600,209715200\n",
			"\"cpu\":{\"referenceTime\":null,\"total\":0,\"minBucket\":175,"
			"\"maxBucket\":0,\"nonZero\":0}"},
		/* a first sample of nothing blocks its window; what comes late is judged by the
		   last value */
		{"time,cpu_millicores,memory_bytes,event\n1767225600,5,0,\n1767225660,,500000000,"
		 "\n1767225720,,700000000,oom\n"
		 "1767312000,,500000000,\n1767311999,,700000000,oom\n1767311999,,1,\n1767311998,,1,"
		 "\n",
			"\"badLines\":1,\"oomKills\":2,"},
		{"time,cpu_millicores,memory_bytes,event\n1767225600,5,0,\n1767225660,,500000000,"
		 "\n1767225720,,700000000,oom\n"
		 "1767312000,,500000000,\n1767311999,,700000000,oom\n1767311999,,1,\n",
			"\"target\":{\"cpu_millicores\":25,\"memory_bytes\":978270031}"},
		/* fractions of a millicore are cut */
		{"time,cpu_cores\n1767225600,0.0309999\n",
			"\"cpu\":{\"referenceTime\":1767225600,\"total\":0.10000000000000001,"
			"\"minBucket\":2,"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		_cleanup_outcome_ struct outcome o;

		put_file("s.csv", str_of(t[i].text));
		REPLAY(&o, "--profile", "vpa", "--output", "json", "s.csv");
		assert_int_equal(o.exit_code, 0);
		assert_says(&o.out, t[i].says);
	}
}

/* The same recording in every dress. */
static void columns_newlines_quotes_and_gzip_do_not_matter(void **state)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1U << 20);
	_cleanup_outcome_ struct outcome plain, other;
	char path[256];

	put_scenario_3(&text, "\n");
	put_file("plain.csv", buf_str(&text));
	REPLAY(&plain, "--output=json", "plain.csv");
	assert_int_equal(plain.exit_code, 0);

	buf_clear(&text);
	put_scenario_3(&text, "\r\n");
	put_file("crlf.csv", buf_str(&text));
	REPLAY(&other, "--output=json", "crlf.csv");
	assert_string_equal(other.out.p, plain.out.p);
	outcome_finish(&other);

	(void)snprintf(path, sizeof path, "%s/packed", replay_dir);
	gzFile z = gzopen(path, "wb");
	assert_int_equal(gzwrite(z, text.p, (unsigned int)text.n), (int)text.n);
	gzclose(z);
	REPLAY(&other, "--output=json", "packed");
	assert_string_equal(other.out.p, plain.out.p);
	outcome_finish(&other);

	int saved = redirect(STDIN_FILENO, "packed");
	REPLAY(&other, "--output=json", "-");
	restore(STDIN_FILENO, saved);
	assert_string_equal(other.out.p, plain.out.p);
	outcome_finish(&other);

	buf_clear(&text);
	(void)buf_puts(
		&text, "\xef\xbb\xbf\"note\",\"memory_bytes\", cpu_cores ,\"series_id\",time\n");
	for (int i = 0; i < 1440; i++)
		(void)buf_printf(&text,
			"\"a, "
			"\"\"b\"\"\",%d.0,0.%03d,\"shipper@node-a\",2026-01-01T%02d:%02d:00Z\n",
			100000000 + 100000 * i, 50 + i * 37 % 500, i / 60, i % 60);
	put_file("dressed.csv", buf_str(&text));
	REPLAY(&other, "--output=json", "dressed.csv");
	assert_string_equal(other.out.p, plain.out.p);
}

static void series_are_kept_apart_and_go_on_in_the_next_file(void **state)
{
	_cleanup_outcome_ struct outcome o;

	put_file("1.csv", STR("time,series,cpu_millicores\n100,a,10\n100,b,20\n160,a,10\n"));
	put_file("2.csv",
		STR("time,series,cpu_millicores\n220,b,20\n220,\"a\",10\n100,a,10\n220,a,10\n"));
	REPLAY(&o, "--output=csv", "1.csv", "2.csv");
	assert_int_equal(o.exit_code, 0);
	assert_string_equal(o.err.p, "2.csv:4: a CPU value of 1970-01-01T00:01:40Z, expected none "
				     "older than the last one, "
				     "1970-01-01T00:03:40Z\n");
	assert_says(&o.out, "series,samples,bad_lines,oom_kills,since,last,target_cpu_millicores,");
	assert_says(&o.out, "\na,3,1,0,1970-01-01T00:01:40Z,1970-01-01T00:03:40Z,");
	assert_says(&o.out, "\nb,2,0,0,");
}

static void each_bad_line_is_told_and_costs_only_itself(void **state)
{
	static const struct {
		const char *line, *says;
	} t[] = {
		{"x,a,1,1,", "3: time is \"x\", expected RFC 3339 or Unix seconds"},
		{"2026-13-01T00:00:00Z,a,1,1,",
			"3: time is \"2026-13-01T00:00:00Z\", expected RFC 3339"},
		{"99999999999,a,1,1,", "3: time is \"99999999999\", expected a time between the "
				       "years 1678 and 2262"},
		{"200,a,1m,1,", "3: cpu_millicores is \"1m\", expected a number, not negative"},
		{"200,a,-1,1,", "3: cpu_millicores is \"-1\", expected a number, not negative"},
		{"200,a,nan,1,", "3: cpu_millicores is \"nan\""},
		{"200,a,1,1e999,", "3: memory_bytes is \"1e999\""},
		{"200,a,1,1,kill", "3: event is \"kill\", expected oom or nothing"},
		{"200,a,1,1", "3: 4 cells, expected 5 as in the header"},
		{"200,a,1,1,,", "3: 6 cells, expected 5 as in the header"},
		{"200,\"a,1,1,", "3: a quote is not closed on its line"},
		{"50,a,1,1,", "3: a CPU value of 1970-01-01T00:00:50Z, expected none older"},
		{"50,a,,1,", "3: a memory value of 1970-01-01T00:00:50Z, expected none older"},
		{",a,1,1,", "3: time is \"\""},
		{"200,a,\x1b[31m,1,", "3: cpu_millicores is \"?[31m\""},
	};
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		_cleanup_buf_ struct buf text = BUF_INIT(4096);
		_cleanup_outcome_ struct outcome o, strict;

		(void)buf_printf(&text,
			"time,series,cpu_millicores,memory_bytes,event\n100,a,1,1,\n%s\n300,a,1,1,"
			"\n",
			t[i].line);
		put_file("bad.csv", buf_str(&text));
		REPLAY(&o, "--output=json", "bad.csv");
		assert_int_equal(o.exit_code, 0);
		assert_says(&o.err, t[i].says);
		assert_memory_equal(o.err.p, "bad.csv:3: ", 11);
		assert_says(&o.out, "\"samples\":2,");
		assert_says(&o.out, "\"all\":{\"samples\":2,\"badLines\":1,");
		REPLAY(&strict, "--strict", "--output=json", "bad.csv");
		assert_int_equal(strict.exit_code, 1);
		assert_says(&strict.err, t[i].says);
		assert_string_equal(strict.out.p, "");
	}
}

static void equal_times_are_no_mistake(void **state)
{
	_cleanup_outcome_ struct outcome o;

	put_file("equal.csv", STR("time,cpu_millicores,memory_bytes\n100,10,5\n100,90,9\n,,\n160,"
				  "10,\n\n160,,7\n"));
	REPLAY(&o, "--output=json", "equal.csv");
	assert_int_equal(o.exit_code, 0);
	assert_string_equal(
		o.err.p, "equal.csv:4: time is \"\", expected RFC 3339 or Unix seconds\n");
	assert_says(&o.out, "\"samples\":2,");
}

static void bad_lines_are_counted_for_their_series(void **state)
{
	_cleanup_outcome_ struct outcome o, unnamed;

	put_file("bad.csv", STR("time,series,cpu_cores\nx,a,1\n1,a,1\nx,b,1\n2,a\n3,c,\n"));
	REPLAY(&o, "--output=csv", "bad.csv");
	assert_int_equal(o.exit_code, 0);
	assert_says(&o.out, "\na,1,1,0,");
	/* nothing of b could be used, nothing of c was recorded */
	assert_null(strstr(o.out.p, "\nb,"));
	assert_null(strstr(o.out.p, "\nc,"));
	put_file("bad.csv", STR("time,cpu_cores\nx,1\n1,1\n2\n3,\"\n"));
	REPLAY(&unnamed, "--output=csv", "bad.csv");
	assert_says(&unnamed.out, "\n,1,3,0,");
}

static void many_bad_lines_are_counted(void **state)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1U << 20);
	_cleanup_outcome_ struct outcome o;

	(void)buf_puts(&text, "time,cpu_millicores\n1,1\n");
	for (int i = 0; i < 1000; i++)
		(void)buf_puts(&text, "rubbish,1\n");
	put_file("many.csv", buf_str(&text));
	REPLAY(&o, "--output=json", "many.csv");
	assert_int_equal(o.exit_code, 0);
	assert_says(&o.err, "many.csv:22: ");
	assert_null(strstr(o.err.p, "many.csv:23: "));
	assert_says(&o.err, "many.csv: 980 more bad lines\n");
	assert_says(&o.out, "\"badLines\":1000,");
}

static void files_that_are_none_are_named(void **state)
{
	static const struct {
		const char *text, *says;
	} t[] = {
		{"", "x: not CSV, Prometheus JSON or gzip of these"},
		{"hello world\n", "x: not CSV, Prometheus JSON or gzip of these"},
		{"a\x01\x02\x03", "x: not CSV, Prometheus JSON or gzip of these"},
		{"\"unclosed\n", "x: not CSV, Prometheus JSON or gzip of these"},
		{"a,b,c\n1,2,3\n", "x: not CSV, Prometheus JSON or gzip of these"},
		{"time,what\n1,2\n", "x: the header has no column cpu_millicores (or cpu_cores) "
				     "and none memory_bytes"},
		{"cpu_cores\n1\n", "x: the header has no column time (or unix_seconds)"},
		{"time,cpu_cores, cpu_cores\n1,2,3\n",
			"x: the header has 2 columns cpu_cores, expected one"},
		{"time,cpu_cores\n", "x: no usable row"},
		{"time,cpu_cores\nx,1\n", "x: no usable row"},
		{"{\"status\":\"success\"}",
			"x: JSON; a Prometheus answer is given as --cpu=FILE or --memory=FILE"},
		{"\x1f\x8b\x08\x00rubbish-rubbish", "x: damaged gzip"},
		{"\x1f\x8b", "x: gzip ends in the middle"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		_cleanup_outcome_ struct outcome o;

		put_file("x", (struct str){t[i].text, i == 11 ? 20 : strlen(t[i].text)});
		REPLAY(&o, "x");
		assert_int_equal(o.exit_code, 1);
		assert_says(&o.err, t[i].says);
		assert_string_equal(o.out.p, "");
	}
	_cleanup_outcome_ struct outcome o;
	put_file("good.csv", STR("time,cpu_cores\n1,2\n"));
	/* what could be read is reported all the same */
	REPLAY(&o, "--output=csv", "no-such-file", ".", "good.csv");
	assert_int_equal(o.exit_code, 1);
	assert_says(&o.err, "no-such-file: cannot be opened: No such file or directory");
	assert_says(&o.err, ".: cannot be read: Is a directory");
	assert_says(&o.out, "\n,1,0,0,");
}

static void wrong_flags_are_usage_errors(void **state)
{
	static const struct {
		const char *argument, *says;
	} t[] = {
		{"--request=cpu=lots", "--request"},
		{"--request=disk=1", "cpu=100m,memory=64Mi"},
		{"--output=xml", "--output"},
		{"--series-name={a", "expected text with label names in braces"},
		{"--series-name=a}", "expected text with label names in braces"},
		{"--profile=best", "--profile"},
		{"--target-cpu-percentile=2", "--target-cpu-percentile"},
		{"--sttrict", "--strict"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		_cleanup_outcome_ struct outcome o;
		REPLAY(&o, t[i].argument, "x");
		assert_int_equal(o.exit_code, 2);
		assert_says(&o.err, t[i].says);
	}
	_cleanup_outcome_ struct outcome o;
	REPLAY(&o, "--strict");
	assert_int_equal(o.exit_code, 2);
	assert_says(&o.err, "no recording is named");
}

static void the_report_reads_as_text(void **state)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1U << 20);
	_cleanup_outcome_ struct outcome o, fixed;

	put_scenario_3(&text, "\n");
	put_file("s3.csv", buf_str(&text));
	put_file("odd.csv",
		STR("time,series,cpu_cores\n1767225600,\x1b[31mred\xc3\xa9,1\n1767225660,"
		    "a-name-that-is-much-too-long-to-be-shown-in-one-column@node-a,1\n"));
	REPLAY(&o, "s3.csv", "odd.csv");
	assert_int_equal(o.exit_code, 0);
	assert_says(&o.out, "3 series, 1442 samples, 2026-01-01T00:00:00Z to 2026-01-01T23:59:00Z, "
			    "profile fine\n");
	assert_says(&o.out, "What each container needs");
	assert_says(&o.out, "What would have happened");
	assert_says(&o.out, "shipper@node-a ");
	assert_says(&o.out, "?[31mred??");
	assert_says(&o.out, "…h-too-long-to-be-shown-in-one-column@node-a");
	assert_null(strchr(o.out.p, '\x1b'));
	assert_says(&o.out, "chosen with");
	assert_says(&o.out, "In short: ");
	REPLAY(&fixed, "--request=cpu=1,memory=1Gi", "s3.csv");
	assert_says(&fixed.out, "every series keeps the request given with --request");
}

static void what_was_not_measured_is_left_out(void **state)
{
	_cleanup_outcome_ struct outcome o, vpa;

	put_file("cpu.csv", STR("time,cpu_cores\n100,1\n160,1\n220,1\n"));
	REPLAY(&o, "--output=json", "cpu.csv");
	assert_null(strstr(o.out.p, "memory_bytes"));
	assert_null(strstr(o.out.p, "memory_gib_hours"));
	assert_says(&o.out, "\"cpu_core_hours\":");
	REPLAY(&vpa, "--output=json", "--profile=vpa", "cpu.csv");
	assert_says(&vpa.out, "\"memory_bytes\":262144000");
}

static int ignore(void *arg, unsigned int id, const struct json_value *v)
{
	return 0;
}

static void names_survive_json_and_csv(void **state)
{
	static const struct json_path paths[] = {{"", 1}};
	static const struct json_spec spec = {
		.paths = paths, .n_paths = 1, .value = ignore, .one_document = true};
	_cleanup_outcome_ struct outcome json, csv;

	put_file("names.csv", STR("time,series,cpu_cores\n1,\"a\"\"b, c\",1\n1,\xff\xfe,1\n"));
	REPLAY(&json, "--output=json", "names.csv");
	assert_says(&json.out, "\"series\":\"a\\\"b, c\"");
	assert_int_equal(json_read(&spec, NULL, buf_str(&json.out), NULL), 0);
	REPLAY(&csv, "--output=csv", "names.csv");
	assert_says(&csv.out, "\n\"a\"\"b, c\",1,");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_day_of_samples_equals_the_reference),
		cmocka_unit_test(eight_days_with_oom_kills_equal_the_reference),
		cmocka_unit_test(small_scenarios_equal_the_reference),
		cmocka_unit_test(columns_newlines_quotes_and_gzip_do_not_matter),
		cmocka_unit_test(series_are_kept_apart_and_go_on_in_the_next_file),
		cmocka_unit_test(each_bad_line_is_told_and_costs_only_itself),
		cmocka_unit_test(equal_times_are_no_mistake),
		cmocka_unit_test(bad_lines_are_counted_for_their_series),
		cmocka_unit_test(many_bad_lines_are_counted),
		cmocka_unit_test(files_that_are_none_are_named),
		cmocka_unit_test(wrong_flags_are_usage_errors),
		cmocka_unit_test(the_report_reads_as_text),
		cmocka_unit_test(what_was_not_measured_is_left_out),
		cmocka_unit_test(names_survive_json_and_csv),
	};
	return cmocka_run_group_tests(tests, replay_make_dir, replay_remove_dir);
}
