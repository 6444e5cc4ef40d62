/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macros.h"
#include "rules/instant.h"
#include "rules/update.h"
#include "test/unit/unit.h"

#define NOW (INT64_C(1767225600) * INSTANT_SECOND)
#define MIB INT64_C(1048576)

/* Everything known: 100 millicores within 50…200, 100 MiB within 80…150, set two days ago. */
static struct update_facts usual(int64_t millicores, int64_t mib)
{
	return (struct update_facts){
		.request = {{millicores, mib * MIB}, {true, true}},
		.published = {{[BOUND_TARGET] = {{100, 100 * MIB}, {true, true}},
			[BOUND_LOWER] = {{50, 80 * MIB}, {true, true}},
			[BOUND_UPPER] = {{200, 150 * MIB}, {true, true}}}},
		.now = NOW,
		.changed_at = NOW - 2 * INSTANT_DAY,
		.since = NOW - 2 * INSTANT_DAY,
	};
}

static void bounds_and_drift(void **state)
{
	static const struct {
		int64_t millicores, mib, changed_ago;
		int64_t to_millicores, to_mib;
		enum update_reason cpu, memory;
	} t[] = {
		{100, 100, 2 * INSTANT_DAY, 100, 100, UPDATE_NOT, UPDATE_NOT},
		{49, 100, 0, 100, 100, UPDATE_BELOW, UPDATE_NOT},
		{50, 79, 0, 100, 100, UPDATE_DRIFT, UPDATE_BELOW},
		{95, 85, 0, 95, 100, UPDATE_NOT, UPDATE_DRIFT},
		{201, 151, 2 * INSTANT_HOUR, 101, 100, UPDATE_ABOVE, UPDATE_ABOVE},
		{201, 151, INSTANT_HOUR / 2, 201, 151, UPDATE_NOT, UPDATE_NOT},
		{120, 100, 13 * INSTANT_HOUR, 100, 100, UPDATE_DRIFT, UPDATE_NOT},
		{120, 100, 11 * INSTANT_HOUR, 120, 100, UPDATE_NOT, UPDATE_NOT},
		{109, 109, 13 * INSTANT_HOUR, 109, 109, UPDATE_NOT, UPDATE_NOT},
		{90, 90, 13 * INSTANT_HOUR, 100, 100, UPDATE_DRIFT, UPDATE_DRIFT},
		{0, 100, 0, 100, 100, UPDATE_BELOW, UPDATE_NOT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct update_facts f = usual(t[i].millicores, t[i].mib);
		struct update_verdict v;

		f.changed_at = NOW - t[i].changed_ago;
		update_judge(&f, &v);
		assert_int_equal(v.request.value[RESOURCE_CPU], t[i].to_millicores);
		assert_int_equal(v.request.value[RESOURCE_MEMORY], t[i].to_mib * MIB);
		assert_int_equal(v.reason[RESOURCE_CPU], t[i].cpu);
		assert_int_equal(v.reason[RESOURCE_MEMORY], t[i].memory);
		assert_int_equal(v.needed, t[i].cpu != UPDATE_NOT || t[i].memory != UPDATE_NOT);
	}
}

static void shrinking_is_careful(void **state)
{
	struct update_facts f = usual(1000, 1000);
	struct update_verdict v;

	/* Half at a time. */
	update_judge(&f, &v);
	assert_int_equal(v.request.value[RESOURCE_CPU], 500);
	assert_int_equal(v.request.value[RESOURCE_MEMORY], 500 * MIB);
	/* Not below a recent peak. */
	f.recent_peak_bytes = 700 * MIB;
	update_judge(&f, &v);
	assert_int_equal(v.request.value[RESOURCE_MEMORY], 700 * MIB);
	f.recent_peak_bytes = 2000 * MIB;
	update_judge(&f, &v);
	assert_int_equal(v.reason[RESOURCE_MEMORY], UPDATE_NOT);
	assert_int_equal(v.request.value[RESOURCE_MEMORY], 1000 * MIB);
	/* Not before a day of history. */
	f.since = NOW - INSTANT_DAY + 1;
	update_judge(&f, &v);
	assert_false(v.needed);
	f.since = TIME_NONE;
	update_judge(&f, &v);
	assert_false(v.needed);
}

static void what_is_not_known_changes_nothing(void **state)
{
	struct update_facts f = usual(1, 1);
	struct update_verdict v;

	f.request.known[RESOURCE_CPU] = false;
	f.published.amounts[BOUND_TARGET].known[RESOURCE_MEMORY] = false;
	update_judge(&f, &v);
	assert_false(v.needed);
	assert_false(v.request.known[RESOURCE_CPU]);
	f = usual(5000, 5000);
	f.published.amounts[BOUND_UPPER] = (struct amounts){0};
	f.changed_at = NOW - INSTANT_HOUR;
	update_judge(&f, &v);
	assert_false(v.needed);
}

static void what_is_too_small_is_left(void **state)
{
	struct update_facts f = usual(9, 100);
	struct update_verdict v;

	f.published.amounts[BOUND_TARGET].value[RESOURCE_CPU] = 10;
	f.published.amounts[BOUND_LOWER].value[RESOURCE_CPU] = 5;
	update_judge(&f, &v);
	assert_false(v.needed);
	/* But not below the lower bound. */
	f.published.amounts[BOUND_LOWER].value[RESOURCE_CPU] = 10;
	update_judge(&f, &v);
	assert_true(v.needed);
	assert_int_equal(v.request.value[RESOURCE_CPU], 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_and_drift),
		cmocka_unit_test(shrinking_is_careful),
		cmocka_unit_test(what_is_not_known_changes_nothing),
		cmocka_unit_test(what_is_too_small_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
