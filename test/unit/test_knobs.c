/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/macros.h"
#include "rules/instant.h"
#include "rules/knobs.h"
#include "test/unit/unit.h"

static int parse(struct knobs *k, char **argv, int argc, struct err *e)
{
	const struct flag *const tables[] = {knobs_flags, NULL};
	struct flag_set set = {.program = "test", .tables = tables, .settings = k};
	int first, r;

	knobs_unset(k);
	r = flags_parse(&set, argc, argv, &first, e);
	return r < 0 ? r : knobs_resolve(k, e);
}

#define PARSE(k, e, ...)                                          \
	parse(k, (char *[]){(char[]){"test"}, __VA_ARGS__, NULL}, \
		(int)ARRAY_SIZE(((char *[]){(char[]){"test"}, __VA_ARGS__})), e)
#define ARG(text) ((char[]){text})

static void profiles_differ_in_defaults_only(void **state)
{
	struct knobs fine, vpa, k;
	struct err e;

	knobs_defaults(&fine, PROFILE_FINE);
	knobs_defaults(&vpa, PROFILE_VPA);
	assert_true(vpa.percentile[BOUND_TARGET][RESOURCE_CPU] == 0.9);
	assert_true(vpa.percentile[BOUND_LOWER][RESOURCE_MEMORY] == 0.5);
	assert_true(vpa.percentile[BOUND_UPPER][RESOURCE_MEMORY] == 0.95);
	assert_true(vpa.margin_fraction == 0.15);
	assert_true(vpa.pod_min_cpu_millicores == 25 && vpa.pod_min_memory_mb == 250);
	assert_true(vpa.oom_bump_up_ratio == 1.2 && vpa.oom_min_bump_up_bytes == 104857600);
	assert_int_equal(vpa.container_min[RESOURCE_CPU], 0);
	assert_int_equal(fine.container_min[RESOURCE_CPU], 5);
	assert_int_equal(fine.container_min[RESOURCE_MEMORY], 10 << 20);
	assert_true(fine.oom_bump_up_ratio == 1.25 && fine.oom_min_bump_up_bytes == 16 << 20);
	assert_int_equal(fine.memory_aggregation_interval_count, 8);
	assert_int_equal(fine.half_life_ns[RESOURCE_CPU], INSTANT_DAY);
	assert_int_equal(PARSE(&k, &e, ARG("--profile=vpa"), ARG("--container-min-cpu=7m")), 0);
	vpa.container_min[RESOURCE_CPU] = 7;
	assert_memory_equal(&k, &vpa, sizeof(k));
}

static void every_flag_reaches_its_setting(void **state)
{
	struct knobs k;
	struct err e;

	assert_int_equal(
		PARSE(&k, &e, ARG("--target-cpu-percentile=0.8"), ARG("--target-memory-percentile"),
			ARG("0.7"), ARG("--recommendation-margin-fraction=0.3"),
			ARG("--confidence-interval-memory=7d"),
			ARG("--cpu-histogram-decay-half-life=48h"),
			ARG("--memory-histogram-decay-half-life=36h"),
			ARG("--memory-aggregation-interval=12h"),
			ARG("--oom-min-bump-up-bytes=1e6"),
			ARG("--container-recommendation-max-allowed-memory=1Gi"),
			ARG("--round-cpu-millicores=10"), ARG("--humanize-memory"),
			ARG("--throttling-demand=false"), ARG("--ahead-of-oom=false")),
		0);
	assert_true(k.percentile[BOUND_TARGET][RESOURCE_CPU] == 0.8);
	assert_true(k.percentile[BOUND_TARGET][RESOURCE_MEMORY] == 0.7);
	assert_true(k.margin_fraction == 0.3);
	assert_int_equal(k.confidence_interval_ns[RESOURCE_MEMORY], 7 * INSTANT_DAY);
	assert_int_equal(k.half_life_ns[RESOURCE_CPU], 48 * INSTANT_HOUR);
	assert_int_equal(k.half_life_ns[RESOURCE_MEMORY], 36 * INSTANT_HOUR);
	assert_int_equal(k.memory_aggregation_interval_ns, 12 * INSTANT_HOUR);
	assert_true(k.oom_min_bump_up_bytes == 1e6);
	assert_int_equal(k.max_allowed[RESOURCE_MEMORY], 1 << 30);
	assert_int_equal(k.max_allowed[RESOURCE_CPU], -1);
	assert_int_equal(k.round_cpu_millicores, 10);
	assert_true(k.humanize_memory && !k.throttling_demand && !k.ahead_of_oom);
}

static void what_makes_no_sense_is_refused(void **state)
{
	struct knobs k;
	struct err e;

	assert_int_equal(PARSE(&k, &e, ARG("--target-cpu-percentile=1.5")), -EINVAL);
	assert_non_null(strstr(e.text, "target-cpu-percentile"));
	assert_int_equal(PARSE(&k, &e, ARG("--oom-bump-up-ratio=0.5")), -EINVAL);
	assert_int_equal(PARSE(&k, &e, ARG("--cpu-histogram-decay-half-life=0")), -EINVAL);
	assert_int_equal(PARSE(&k, &e, ARG("--profile=fin")), -EINVAL);
	assert_int_equal(PARSE(&k, &e, ARG("--target-memory-percentile=0.3")), -EINVAL);
	assert_non_null(strstr(e.text, "lower bound ≤ target"));
	/* Upstream takes it. */
	assert_int_equal(
		PARSE(&k, &e, ARG("--profile=vpa"), ARG("--target-memory-percentile=0.3")), 0);
}

static void a_daemonset_may_have_its_own(void **state)
{
	struct knobs fine, k;
	struct err e;

	knobs_defaults(&fine, PROFILE_FINE);
	fine.humanize_memory = true;
	assert_int_equal(knobs_override(&fine,
				 STR("{\"target-cpu-percentile\": 0.95, "
				     "\"oom-bump-up-ratio\": \"1.5\", "
				     "\"container-min-memory\": \"4Mi\", "
				     "\"confidence-interval-cpu\": \"12h\"}"),
				 &k, &e),
		0);
	assert_true(k.percentile[BOUND_TARGET][RESOURCE_CPU] == 0.95);
	assert_true(k.oom_bump_up_ratio == 1.5);
	assert_int_equal(k.container_min[RESOURCE_MEMORY], 4 << 20);
	assert_int_equal(k.confidence_interval_ns[RESOURCE_CPU], 12 * INSTANT_HOUR);
	assert_true(k.humanize_memory);
	assert_int_equal(knobs_override(&fine, STR("{}"), &k, &e), 0);
	assert_memory_equal(&k, &fine, sizeof(k));
}

static void an_unusable_override_changes_nothing(void **state)
{
	static const struct {
		const char *json, *says;
	} t[] = {
		{"", ""},
		{"[]", "object"},
		{"7", "object"},
		{"{\"target-cpu-percentile\": 0.95", ""},
		{"{\"target-cpu-percentile\": 2}", "target-cpu-percentile"},
		{"{\"target-cpu-percentile\": true}", "number or a string"},
		{"{\"target-cpu-percentile\": {}}", "number or a string"},
		{"{\"target-cpu-percentil\": 0.9}", "target-cpu-percentile"},
		{"{\"memory-aggregation-interval\": \"1h\"}", "memory-aggregation-interval"},
		{"{\"profile\": \"vpa\"}", "profile"},
		{"{\"target-cpu-percentile\": 0.1}", "lower bound"},
		{"{\"container-min-cpu\": \"many\"}", "container-min-cpu"},
	};
	struct knobs fine, k, before;

	knobs_defaults(&fine, PROFILE_FINE);
	memset(&k, 0x5a, sizeof(k));
	before = k;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct err e = {0};

		assert_int_equal(knobs_override(&fine, str_of(t[i].json), &k, &e), -EINVAL);
		assert_true(e.text[0] != '\0');
		if (!strstr(e.text, t[i].says))
			fail_msg("%s: \"%s\" does not say \"%s\"", t[i].json, e.text, t[i].says);
		assert_memory_equal(&k, &before, sizeof(k));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profiles_differ_in_defaults_only),
		cmocka_unit_test(every_flag_reaches_its_setting),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(a_daemonset_may_have_its_own),
		cmocka_unit_test(an_unusable_override_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
