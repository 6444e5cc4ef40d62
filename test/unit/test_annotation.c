// SPDX-License-Identifier: Apache-2.0
#include "helper_alloc.h"
#include "proto/annotation.h"
#include "proto/rfc3339.h"
#include "test/unit/unit.h"

#define X50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static void keys_are_built_and_parsed_back(void **state)
{
	static const struct {
		const char *namespace, *daemonset, *container, *key;
	} t[] = {
		{"default", "shipper", "main", "shipper.default.pernode.io/main"},
		{"kube-system", "a.b-c.d", "x-1", "a.b-c.d.kube-system.pernode.io/x-1"},
		{"n", "d", "agent", "d.n.pernode.io/agent"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		char key[ANNOTATION_KEY_MAX];
		struct annotation_names names;

		assert_int_equal(annotation_key(key, str_of(t[i].namespace), str_of(t[i].daemonset),
					 str_of(t[i].container)),
			0);
		assert_string_equal(key, t[i].key);
		assert_int_equal(
			annotation_key_parse(str_of(key), &names), ANNOTATION_IS_RECOMMENDATION);
		assert_true(str_is(names.namespace, t[i].namespace));
		assert_true(str_is(names.daemonset, t[i].daemonset));
		assert_true(str_is(names.container, t[i].container));
	}
}

static void long_names_have_a_stable_short_form(void **state)
{
	/* 253 bytes of DaemonSet: the hash is of the whole name, so the last letter counts. */
	char name[254], key[ANNOTATION_KEY_MAX], other[ANNOTATION_KEY_MAX];
	struct annotation_names names;

	memset(name, 'x', 253);
	name[253] = '\0';
	name[216] = '.'; /* would be the last one left: cut too */
	assert_int_equal(annotation_key(key, STR("default"), str_of(name), STR("main")), 0);
	assert_int_equal(strchr(key, '/') - key, 252);
	assert_int_equal(annotation_key_parse(str_of(key), &names), ANNOTATION_IS_RECOMMENDATION);
	assert_true(str_is(names.namespace, "default"));
	assert_true(str_is(names.container, "main"));
	assert_int_equal(names.daemonset.n, 216 + 1 + 16);
	assert_memory_equal(names.daemonset.p, name, 216);
	name[252] = 'y';
	assert_int_equal(annotation_key(other, STR("default"), str_of(name), STR("main")), 0);
	assert_string_not_equal(key, other);

	/* the longest name that still fits, and one more; this text is part of the contract */
	char ds[240];
	memset(ds, 'a', sizeof ds);
	assert_int_equal(annotation_key(key, STR("ns"), (struct str){ds, 239}, STR("c")), 0);
	assert_int_equal(strchr(key, '/') - key, 253);
	assert_null(strchr(key, '-'));
	assert_int_equal(annotation_key(key, STR("ns"), (struct str){ds, 240}, STR("c")), 0);
	assert_int_equal(strchr(key, '/') - key, 253);
	assert_memory_equal(key + 222, "-8ebc3ca2aa94ae15.ns.pernode.io/c", 34);

	assert_int_equal(annotation_key(key, STR("ns"), STR("d"), STR(X50 X50)), 0);
	assert_string_equal(key,
		"d.ns.pernode.io/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-052c9e7cec411035");
}

static void names_that_are_none_have_no_key(void **state)
{
	static const struct {
		const char *namespace, *daemonset, *container;
	} t[] = {
		{"", "d", "c"},
		{"n", "", "c"},
		{"n", "d", ""},
		{"n.m", "d", "c"},
		{"N", "d", "c"},
		{"n", "d/e", "c"},
		{"n", "-d", "c"},
		{"n", "d-", "c"},
		{"n", "d..e", "c"},
		{"n", "d.-e", "c"},
		{"n", ".d", "c"},
		{"n", "d", "c.d"},
		{"n", "d", "c_d"},
		{"n", "d", "\xc3\xa9"},
		{"n", "d", "a b"},
		{X50 X50, "d", "c"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		char key[ANNOTATION_KEY_MAX] = "untouched";

		assert_int_equal(annotation_key(key, str_of(t[i].namespace), str_of(t[i].daemonset),
					 str_of(t[i].container)),
			-EINVAL);
		assert_string_equal(key, "untouched");
	}
}

static void other_peoples_keys_are_told_apart(void **state)
{
	static const struct {
		const char *key;
		enum annotation_kind kind;
	} t[] = {
		{"pernode.io/agent", ANNOTATION_IS_AGENT},
		{"pernode.io/recommender", ANNOTATION_OTHER},
		{"pernode.io/", ANNOTATION_OTHER},
		{"x.pernode.io/c", ANNOTATION_OTHER},
		{".pernode.io/c", ANNOTATION_OTHER},
		{"..pernode.io/c", ANNOTATION_OTHER},
		{".n.pernode.io/c", ANNOTATION_OTHER},
		{"d..pernode.io/c", ANNOTATION_OTHER},
		{"d.n.pernode.io/", ANNOTATION_OTHER},
		{"d.n.pernode.io/a/b", ANNOTATION_OTHER},
		{X50 X50 X50 X50 X50 ".n.pernode.io/a", ANNOTATION_OTHER},
		{"d.N.pernode.io/a", ANNOTATION_OTHER},
		{"d.n.pernode.io", ANNOTATION_FOREIGN},
		{"d.n.xpernode.io/c", ANNOTATION_FOREIGN},
		{"pernode.io.example/c", ANNOTATION_FOREIGN},
		{"agent", ANNOTATION_FOREIGN},
		{"", ANNOTATION_FOREIGN},
		{"/", ANNOTATION_FOREIGN},
	};
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct annotation_names names;
		print_message("%s\n", t[i].key);
		assert_int_equal(annotation_key_parse(str_of(t[i].key), &names), t[i].kind);
	}
}

#define FULL                                                                                    \
	"{\"target\":{\"cpu\":\"63m\",\"memory\":\"49566436\"},"                                \
	"\"lowerBound\":{\"cpu\":\"1\",\"memory\":\"1\"},\"upperBound\":{\"cpu\":\"1500m\","    \
	"\"memory\":\"2\"},"                                                                    \
	"\"samples\":10080,\"since\":\"2026-01-01T00:00:00Z\",\"at\":\"2026-01-08T00:00:00Z\"," \
	"\"reason\":\"usage\",\"oomKills\":0,\"coverage\":{\"cpu\":0.998,\"memory\":1},"        \
	"\"revision\":\"6d9c7b5f4\"}"

static void a_value_is_written_in_fixed_order_and_read_back(void **state)
{
	struct annotation_value v, again;
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct err e;

	assert_int_equal(annotation_value_read(STR(FULL), &v, &e), 0);
	assert_true(v.target.cpu_millicores == 63 && v.target.memory_bytes == 49566436);
	assert_true(v.lower.cpu_millicores == 1000 && v.upper.cpu_millicores == 1500 &&
		    v.upper.memory_bytes == 2);
	assert_true(v.samples == 10080 && v.oom_kills == 0 && v.reason == ANNOTATION_REASON_USAGE);
	assert_true(v.since_ns == 1767225600 * INT64_C(1000000000));
	assert_true(v.coverage_cpu == 0.998 && v.coverage_memory == 1);
	assert_string_equal(v.revision, "6d9c7b5f4");
	annotation_value_write(&b, &v);
	assert_string_equal(b.p, FULL);

	/* what is not known is left out */
	v = (struct annotation_value){.target = {-1, 5},
		.lower = {-1, -1},
		.upper = {7, -1},
		.samples = 1,
		.since_ns = TIME_NONE,
		.at_ns = 0,
		.reason = ANNOTATION_REASON_AHEAD_OF_OOM,
		.oom_kills = 2,
		.coverage_cpu = -1,
		.coverage_memory = 0.5};
	buf_clear(&b);
	annotation_value_write(&b, &v);
	assert_string_equal(b.p,
		"{\"target\":{\"memory\":\"5\"},\"upperBound\":{\"cpu\":\"7m\"},\"samples\":1,"
		"\"at\":\"1970-01-01T00:00:00Z\",\"reason\":\"ahead-of-oom\",\"oomKills\":2,"
		"\"coverage\":{\"memory\":0.5}}");
	assert_int_equal(annotation_value_read(buf_str(&b), &again, &e), 0);
	assert_true(again.target.cpu_millicores == -1 && again.lower.memory_bytes == -1 &&
		    again.since_ns == TIME_NONE);
	assert_true(again.coverage_cpu < 0);
}

static void a_value_that_is_none_says_why(void **state)
{
	static const struct {
		const char *text, *says;
	} t[] = {
		{"", "no JSON"},
		{"{}", "neither cpu nor memory"},
		{"{\"target\":{}}", "neither"},
		{"[]", "the value"},
		{"7", "the value"},
		{"{\"target\":{\"cpu\":\"63m\"}", "middle"},
		{"{\"target\":{\"cpu\":\"63m\"}} x", "JSON"},
		{"{\"target\":{\"cpu\":\"63m\"}}{}", "JSON"},
		{"{\"target\":{\"cpu\":63}}", "target.cpu is 63"},
		{"{\"target\":{\"cpu\":\"lots\"}}", "target.cpu is \"lots\""},
		{"{\"target\":{\"memory\":\"-1\"}}", "target.memory is \"-1\""},
		{"{\"target\":{\"cpu\":\"1\"},\"samples\":-1}", "samples is -1"},
		{"{\"target\":{\"cpu\":\"1\"},\"samples\":1.5}", "samples"},
		{"{\"target\":{\"cpu\":\"1\"},\"samples\":{}}", "samples is an object"},
		{"{\"target\":{\"cpu\":\"1\"},\"at\":\"today\"}", "at is \"today\""},
		{"{\"target\":{\"cpu\":\"1\"},\"coverage\":{\"cpu\":1.5}}", "from 0 to 1"},
		{"{\"target\":{\"cpu\":\"1\"},\"reason\":1}", "reason"},
		{"{\"target\":{\"cpu\":\"1\"},\"revision\":\"" X50 X50 "\"}", "at most 63 bytes"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct annotation_value v = {.samples = 42};
		struct err e = {0};

		assert_int_equal(annotation_value_read(str_of(t[i].text), &v, &e), -EINVAL);
		if (!strstr(e.text, t[i].says))
			fail_msg("%s: '%s' does not say '%s'", t[i].text, e.text, t[i].says);
		assert_true(v.samples == 42);
	}
	char huge[ANNOTATION_VALUE_MAX + 1];
	struct annotation_value v;
	memset(huge, ' ', sizeof huge);
	assert_int_equal(annotation_value_read((struct str){huge, sizeof huge}, &v, NULL), -EINVAL);
}

static void members_of_later_versions_are_ignored(void **state)
{
	struct annotation_value v;

	assert_int_equal(
		annotation_value_read(
			STR("{\"new\":{\"target\":[1]},\"target\":{\"cpu\":\"1\",\"gpu\":\"2\"},"
			    "\"reason\":\"full-moon\"}"),
			&v, NULL),
		0);
	assert_true(v.target.cpu_millicores == 1000 && v.reason == ANNOTATION_REASON_UNKNOWN);
}

static void the_agents_own_value_goes_round(void **state)
{
	struct annotation_agent a = {.version = "0.1.0",
		.node_uid = "u",
		.machine = "m",
		.boot_id = "b",
		.started_at_ns = 1767225600 * INT64_C(1000000000),
		.state = "ok"};
	struct annotation_agent again;
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	annotation_agent_write(&b, &a);
	assert_string_equal(b.p,
		"{\"version\":\"0.1.0\",\"nodeUID\":\"u\",\"machine\":\"m\",\"bootID\":\"b\","
		"\"startedAt\":\"2026-01-01T00:00:00Z\",\"state\":\"ok\"}");
	assert_int_equal(annotation_agent_read(buf_str(&b), &again, NULL), 0);
	assert_memory_equal(&a, &again, sizeof a);
	assert_int_equal(annotation_agent_read(STR("{\"startedAt\":1}"), &again, NULL), -EINVAL);
	assert_int_equal(annotation_agent_read(STR("\"x\""), &again, NULL), -EINVAL);

	char hash[17], other[17];
	annotation_machine_hash(hash, STR("4c4c4544"));
	annotation_machine_hash(other, STR("4c4c4545"));
	assert_int_equal(strlen(hash), 16);
	assert_string_not_equal(hash, other);
	annotation_machine_hash(hash, STR(""));
	assert_string_equal(hash, "");
}

static void a_failed_allocation_is_not_a_bad_value(void **state)
{
	ALLOC_FAIL_EACH
	{
		struct annotation_value v;
		int r = annotation_value_read(STR(FULL), &v, NULL);
		assert_true(r == 0 || r == -ENOMEM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_built_and_parsed_back),
		cmocka_unit_test(long_names_have_a_stable_short_form),
		cmocka_unit_test(names_that_are_none_have_no_key),
		cmocka_unit_test(other_peoples_keys_are_told_apart),
		cmocka_unit_test(a_value_is_written_in_fixed_order_and_read_back),
		cmocka_unit_test(a_value_that_is_none_says_why),
		cmocka_unit_test(members_of_later_versions_are_ignored),
		cmocka_unit_test(the_agents_own_value_goes_round),
		cmocka_unit_test(a_failed_allocation_is_not_a_bad_value),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
