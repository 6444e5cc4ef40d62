// SPDX-License-Identifier: Apache-2.0
/* Answers of Prometheus, and what both kinds of input share when memory runs out. */
#include "agent/replay/replay.h"
#include "helper_alloc.h"
#include "helper_replay.h"
#include "test/unit/unit.h"

#define RANGE(results) \
	"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[" results "]}}"
#define LABELS(pod)                                     \
	"\"metric\":{\"__name__\":\"x\",\"pod\":\"" pod \
	"\",\"namespace\":\"n\",\"container\":\"c\",\"node\":\"a\"}"

static void prometheus_answers_are_joined_by_their_labels(void **state)
{
	_cleanup_outcome_ struct outcome o, csv;

	/* Two pods of one container, the later one first; label order and names differ between the
	 * files. */
	put_file("cpu.json",
		STR(RANGE("{" LABELS("p2") ",\"values\":[[400,\"0.25\"],[460.5,\"0.25\"]]},"
					   "{" LABELS("p1") ",\"values\":[[100,\"0.1\"],[160,\"0."
							    "1\"],[220,\"0.1\"]]}")));
	put_file("memory.json", STR(RANGE("{\"metric\":{\"node\":\"a\",\"pod\":\"p1\","
					  "\"container\":\"c\",\"namespace\":\"n\"},"
					  "\"values\":[[100,\"1000000\"],[220,\"2000000\"]]},"
					  "{" LABELS("p2") ",\"values\":[[400,\"3000000\"]]}")));
	put_file("same.csv",
		STR("time,series,cpu_cores,memory_bytes\n100,n/c@a,0.1,1000000\n160,n/c@a,0.1,\n"
		    "220,n/c@a,0.1,2000000\n400,n/c@a,0.25,3000000\n460.5,n/c@a,0.25,\n"));
	REPLAY(&o, "--output=json", "--cpu=cpu.json", "--memory=memory.json");
	assert_string_equal(o.err.p, "");
	assert_int_equal(o.exit_code, 0);
	REPLAY(&csv, "--output=json", "same.csv");
	assert_string_equal(o.out.p, csv.out.p);
	assert_says(&o.out, "\"series\":\"n/c@a\",\"samples\":5,");
}

static void prometheus_names_come_from_the_template(void **state)
{
	_cleanup_outcome_ struct outcome o, missing;

	put_file("cpu.json", STR(RANGE("{" LABELS("p2") ",\"values\":[[400,\"0.25\"]]}")));
	REPLAY(&o, "--output=csv", "--cpu=cpu.json", "--series-name={pod} on {node} {{x}}");
	assert_int_equal(o.exit_code, 0);
	assert_says(&o.out, "\np2 on a {x},1,");
	REPLAY(&missing, "--cpu=cpu.json", "--series-name={pod}@{instance}");
	assert_int_equal(missing.exit_code, 1);
	assert_says(&missing.err, "cpu.json: a series has no label \"instance\", which "
				  "--series-name asks for; it has: pod, "
				  "namespace, container, node");
}

static void prometheus_answers_that_are_none_are_named(void **state)
{
	static const struct {
		const char *text, *says;
		int exit_code;
	} t[] = {
		{"", "x: no answer to a Prometheus range query", 1},
		{"time,cpu\n", "x: not CSV, Prometheus JSON or gzip of these", 1},
		{"{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse error\"}",
			"x: Prometheus answered with an error: parse error", 1},
		{"{\"status\":\"error\",\"error\":\"parse\\u001b[31m\\nerror\"}",
			"x: Prometheus answered with an error: parse?[31m?error", 1},
		{"{\"data\":{\"resultType\":\"vector\",\"result\":[]}}",
			"x: resultType is vector, expected matrix", 1},
		{RANGE(""), "x: no usable value", 1},
		{RANGE("7"), "x: an element of data.result is no object", 1},
		{"{\"data\":{\"resultType\":\"matrix\",\"result\":[", "x: byte ", 1},
		{RANGE("{" LABELS("p") ",\"values\":[[1,\"1\"],[2,\"NaN\"],[3,\"+Inf\"],[4,\"-1\"],"
				       "[\"5\",\"1\"],[6],7,[8,\"1\"]]}"),
			"x:series 1, value 2: the value is \"NaN\", expected a number in quotes, "
			"not negative",
			0},
		{RANGE("{\"metric\":{\"a\":1},\"values\":[[1,\"1\"]]}"),
			"x: series 1: its labels cannot be read", 1},
	};
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		_cleanup_outcome_ struct outcome o;

		put_file("x", str_of(t[i].text));
		REPLAY(&o, "--output=json", "--cpu=x");
		assert_says(&o.err, t[i].says);
		assert_int_equal(o.exit_code, t[i].exit_code);
		if (t[i].exit_code == 0)
			assert_says(&o.out, "\"samples\":2,\"badLines\":6,");
	}
}

static void a_failed_allocation_is_an_error_and_nothing_more(void **state)
{
	put_file("few.csv",
		STR("time,series,cpu_cores,memory_bytes\n100,\"a\"\"\",1,5\n160,b,1,5\n"));
	put_file("few.json", STR(RANGE("{" LABELS("p") ",\"values\":[[1,\"1\"]]}")));
	ALLOC_FAIL_EACH
	{
		struct replay_settings s = {.request = {-1, -1}, .series_name = "{pod}"};
		struct replay r;
		struct err e;
		struct buf out = BUF_INIT(1U << 20);
		char path[256];

		knobs_defaults(&s.knobs, PROFILE_FINE);
		if (replay_init(&r, &s, &e) < 0)
			continue;
		(void)snprintf(path, sizeof path, "%s/few.csv", replay_dir);
		int a = replay_csv(&r, path, &e);
		(void)snprintf(path, sizeof path, "%s/few.json", replay_dir);
		int b = a < 0 ? a : replay_prometheus(&r, path, NULL, &e);
		assert_true(a == 0 || a == -ENOMEM);
		assert_true(b == 0 || b == -ENOMEM);
		replay_conclude(&r);
		replay_print_json(&r, &out);
		buf_finish(&out);
		replay_finish(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prometheus_answers_are_joined_by_their_labels),
		cmocka_unit_test(prometheus_names_come_from_the_template),
		cmocka_unit_test(prometheus_answers_that_are_none_are_named),
		cmocka_unit_test(a_failed_allocation_is_an_error_and_nothing_more),
	};
	return cmocka_run_group_tests(tests, replay_make_dir, replay_remove_dir);
}
