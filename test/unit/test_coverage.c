// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "rules/coverage.h"
#include "test/unit/unit.h"

#define SECOND UINT64_C(1000000)

static const struct amounts target = {.value = {100, 1000}, .known = {true, true}};
static const struct amounts request = {.value = {200, 0}, .known = {true, false}};

static void time_is_what_counts_not_readings(void **state)
{
	struct coverage c;

	coverage_init(&c);
	coverage_add(&c, RESOURCE_CPU, 90 * SECOND, 50, &target, &request);
	coverage_add(&c, RESOURCE_CPU, 5 * SECOND, 150, &target, &request);
	coverage_add(&c, RESOURCE_CPU, 5 * SECOND, 250, &target, &request);
	assert_true(coverage_share(&c, COVERAGE_TARGET, RESOURCE_CPU) == 0.9);
	assert_true(coverage_share(&c, COVERAGE_REQUEST, RESOURCE_CPU) == 0.95);
	assert_true(coverage_above_seconds(&c, COVERAGE_TARGET, RESOURCE_CPU) == 10);
	/* Memory has a line of its own and was not measured. */
	assert_true(isnan(coverage_share(&c, COVERAGE_TARGET, RESOURCE_MEMORY)));
}

static void usage_at_the_line_is_within_it(void **state)
{
	struct coverage c;

	coverage_init(&c);
	coverage_add(&c, RESOURCE_MEMORY, SECOND, 1000, &target, &request);
	assert_true(coverage_share(&c, COVERAGE_TARGET, RESOURCE_MEMORY) == 1);
	coverage_add(&c, RESOURCE_MEMORY, SECOND, 1000.5, &target, &request);
	assert_true(coverage_share(&c, COVERAGE_TARGET, RESOURCE_MEMORY) == 0.5);
}

static void nothing_counts_while_the_line_or_the_usage_is_not_known(void **state)
{
	struct amounts unknown = {.known = {false, false}};
	struct coverage c;

	coverage_init(&c);
	coverage_add(&c, RESOURCE_CPU, SECOND, 50, &unknown, &unknown);
	coverage_add(&c, RESOURCE_CPU, SECOND, 50, NULL, NULL);
	coverage_add(&c, RESOURCE_CPU, SECOND, NAN, &target, &request);
	coverage_add(&c, RESOURCE_CPU, SECOND, -1, &target, &request);
	coverage_add(&c, RESOURCE_MEMORY, SECOND, 10, &unknown, &request);
	for (int l = 0; l < COVERAGE_LINES; l++)
		for (int r = 0; r < RESOURCES; r++) {
			assert_true(
				isnan(coverage_share(&c, (enum coverage_line)l, (enum resource)r)));
			assert_true(isnan(coverage_share_rounded(
				&c, (enum coverage_line)l, (enum resource)r)));
		}
}

static void a_gap_counts_for_five_minutes_at_most(void **state)
{
	struct coverage c;

	coverage_init(&c);
	coverage_add(&c, RESOURCE_CPU, UINT64_MAX, 150, &target, NULL);
	assert_true(coverage_above_seconds(&c, COVERAGE_TARGET, RESOURCE_CPU) == 300);
}

static void one_means_always(void **state)
{
	struct coverage c;

	coverage_init(&c);
	for (int i = 0; i < 100000; i++)
		coverage_add(&c, RESOURCE_CPU, 10 * SECOND, 50, &target, NULL);
	assert_true(coverage_share_rounded(&c, COVERAGE_TARGET, RESOURCE_CPU) == 1);
	coverage_add(&c, RESOURCE_CPU, SECOND, 150, &target, NULL);
	assert_true(coverage_share_rounded(&c, COVERAGE_TARGET, RESOURCE_CPU) == 0.999);
}

static void sums_stop_at_their_end(void **state)
{
	struct coverage c;

	coverage_init(&c);
	c.sum[COVERAGE_TARGET][RESOURCE_CPU] =
		(struct coverage_sum){.counted_usec = UINT64_MAX - 1, .above_usec = 1};
	coverage_add(&c, RESOURCE_CPU, SECOND, 50, &target, NULL);
	assert_true(c.sum[COVERAGE_TARGET][RESOURCE_CPU].counted_usec == UINT64_MAX);
	assert_true(coverage_share_rounded(&c, COVERAGE_TARGET, RESOURCE_CPU) == 0.999);
}

static void what_is_saved_is_what_is_loaded(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(COVERAGE_SAVED_MAX);
	struct coverage c, loaded;
	struct err e = {0};

	coverage_init(&c);
	coverage_add(&c, RESOURCE_CPU, 90 * SECOND, 150, &target, &request);
	coverage_add(&c, RESOURCE_MEMORY, 91 * SECOND, 150, &target, &request);
	assert_int_equal(coverage_save(&c, &b), 0);
	assert_int_equal(coverage_load(&loaded, buf_str(&b), &e), 0);
	assert_memory_equal(&loaded, &c, sizeof c);
	for (size_t n = 0; n < b.n; n++) {
		assert_int_equal(coverage_load(&loaded, (struct str){b.p, n}, &e), -EINVAL);
		assert_true(loaded.sum[0][0].counted_usec == 0);
	}
	b.p[1 + 15] = (char)0x7f; /* more above than counted */
	assert_int_equal(coverage_load(&loaded, buf_str(&b), &e), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_is_what_counts_not_readings),
		cmocka_unit_test(usage_at_the_line_is_within_it),
		cmocka_unit_test(nothing_counts_while_the_line_or_the_usage_is_not_known),
		cmocka_unit_test(a_gap_counts_for_five_minutes_at_most),
		cmocka_unit_test(one_means_always),
		cmocka_unit_test(sums_stop_at_their_end),
		cmocka_unit_test(what_is_saved_is_what_is_loaded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
