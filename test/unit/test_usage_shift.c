/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rules/estimator.h"
#include "rules/instant.h"
#include "rules/usage.h"

#define START (INT64_C(1800000000) * INSTANT_SECOND)

static void feed(struct usage_history *u, const struct knobs *k, int64_t from, int minutes)
{
	for (int i = 0; i < minutes; i++) {
		int64_t t = from + i * INSTANT_MINUTE;

		assert_int_equal(usage_add_cpu(u, t, 100 + i % 50, 1), 0);
		assert_int_equal(usage_add_memory(u, t, (40 + i % 7) << 20), 0);
	}
	assert_int_equal(usage_record_oom(u, k, from + minutes * INSTANT_MINUTE, 64 << 20), 0);
}

/* A clock that is set by any amount changes no recommendation, then or later. */
static void a_clock_that_is_set_changes_nothing_but_the_dates(void **state)
{
	static const int64_t jumps[] = {
		INSTANT_SECOND, -INSTANT_HOUR, 400 * INSTANT_DAY, -400 * INSTANT_DAY};
	struct knobs k;
	struct model m;

	knobs_defaults(&k, PROFILE_FINE);
	model_init(&m, &k);
	for (size_t i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
		struct recommendation moved, still;
		struct usage_history u, v;
		int64_t end = START + 400 * INSTANT_MINUTE;

		usage_init(&u, &m);
		usage_init(&v, &m);
		feed(&u, &k, START, 200);
		usage_shift(&u, jumps[i]);
		feed(&u, &k, START + 201 * INSTANT_MINUTE + jumps[i], 150);
		feed(&v, &k, START, 200);
		feed(&v, &k, START + 201 * INSTANT_MINUTE, 150);
		estimate(&u, &k, 1, end + jumps[i], &moved, NULL);
		estimate(&v, &k, 1, end, &still, NULL);
		assert_memory_equal(&moved, &still, sizeof(moved));
		assert_int_equal(u.oom_kills, v.oom_kills);
		assert_true(instant_since(u.cpu_first, v.cpu_first) == jumps[i]);
	}
}

static void an_empty_history_stays_empty(void **state)
{
	struct knobs k;
	struct model m;
	struct usage_history u;

	knobs_defaults(&k, PROFILE_FINE);
	model_init(&m, &k);
	usage_init(&u, &m);
	usage_shift(&u, INSTANT_DAY);
	assert_false(usage_any(&u));
	assert_true(u.cpu_first == TIME_NONE && u.memory_last == TIME_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_that_is_set_changes_nothing_but_the_dates),
		cmocka_unit_test(an_empty_history_stays_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
