/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macros.h"
#include "rules/throttle.h"

#define MINUTE 60000000

static void a_windows_demand(void **state)
{
	static const struct {
		const char *what;
		struct throttle_window w;
		double demand;
		bool throttled;
	} cases[] = {
		{"a busy loop at its quota counts double", {100, 100, MINUTE, 600, 600, 540000000},
			200, true},
		{"half of the periods, at its quota", {100, 100, MINUTE, 600, 300, 540000000}, 150,
			true},
		{"bursts that caught up count half as much again at most",
			{60, 100, MINUTE, 420, 350, 300000000}, 90, true},
		{"one period in twenty is throttling", {100, 100, MINUTE, 600, 30, 540000000}, 105,
			true},
		{"less is not", {100, 100, MINUTE, 600, 29, 540000000}, 100, false},
		{"never more than it waited for", {100, 100, MINUTE, 600, 600, 600000}, 110, true},
		{"no periods", {100, 100, MINUTE, 0, 0, 0}, 100, false},
		{"counters that do not fit together", {100, 100, MINUTE, 10, 20, 540000000}, 200,
			true},
		{"no time", {100, 100, 0, 10, 10, 10}, 100, false},
		{"idle", {0, 100, MINUTE, 600, 600, 0}, 0, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bool throttled;
		double demand = throttle_demand(&cases[i].w, &throttled);

		if (fabs(demand - cases[i].demand) > 1e-9 || throttled != cases[i].throttled)
			fail_msg("%s: %g, %d", cases[i].what, demand, throttled);
	}
}

/* Window by window the limit follows the demand, as an operator (or pernode) would set it. */
static void the_climb_ends_at_what_is_needed(void **state)
{
	double quota = 100, need = 730;

	for (int i = 0; i < 10; i++) {
		double usage = fmin(need, quota);
		bool short_of = need > quota;
		struct throttle_window w = {
			usage, quota, MINUTE, 600, short_of ? 600 : 0, short_of ? 500000000 : 0};
		double demand = throttle_demand(&w, NULL);

		assert_true(demand <= 2 * need);
		quota = demand * 1.15;
	}
	assert_true(quota >= need && quota <= need * 1.2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_windows_demand),
		cmocka_unit_test(the_climb_ends_at_what_is_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
