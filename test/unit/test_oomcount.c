/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/sample/oomcount.h"

#define ALL (EVENT_OOM | EVENT_OOM_KILL | EVENT_OOM_GROUP_KILL)

static struct memory_events events(uint64_t kills, uint64_t groups)
{
	return (struct memory_events){.seen = ALL, .oom_kill = kills, .oom_group_kill = groups};
}

static void a_group_kill_of_five_is_one_incident(void **state)
{
	struct memory_events e = events(5, 1);
	struct oom_count c = {0};
	uint64_t kills;

	assert_int_equal(oom_count_take(&c, &e, &kills), 1);
	assert_int_equal(kills, 5);
	assert_int_equal(oom_count_take(&c, &e, &kills), 0);
	assert_int_equal(kills, 0);
}

static void two_group_kills_between_two_looks_are_two(void **state)
{
	struct memory_events e = events(8, 2);
	struct oom_count c = {0};
	uint64_t kills;

	assert_int_equal(oom_count_take(&c, &e, &kills), 2);
}

static void without_the_group_key_one_increase_is_one_incident(void **state)
{
	struct memory_events e = {.seen = EVENT_OOM_KILL, .oom_kill = 4};
	struct oom_count c = {0};
	uint64_t kills;

	assert_int_equal(oom_count_take(&c, &e, &kills), 1);
	assert_int_equal(kills, 4);
}

static void a_reading_without_the_key_changes_nothing(void **state)
{
	struct memory_events e = {.seen = EVENT_OOM};
	struct oom_count c = {.kills = 7};
	uint64_t kills;

	assert_int_equal(oom_count_take(&c, &e, &kills), 0);
	assert_int_equal(c.kills, 7);
}

static void a_counter_that_went_backwards_starts_anew(void **state)
{
	struct memory_events e = events(1, 1);
	struct oom_count c = {.kills = 7, .group_kills = 3};
	uint64_t kills;

	assert_int_equal(oom_count_take(&c, &e, &kills), 0);
	e = events(3, 2);
	assert_int_equal(oom_count_take(&c, &e, &kills), 1);
}

static void an_absurd_counter_is_bounded(void **state)
{
	struct memory_events e = events(UINT64_MAX, UINT64_MAX);
	struct oom_count c = {0};
	uint64_t kills;

	assert_int_equal(oom_count_take(&c, &e, &kills), OOM_INCIDENTS_MAX);
}

static void at_first_sight_only_the_fresh_kills_are_news(void **state)
{
	struct memory_events e = events(6, 3);
	struct oom_count c;
	uint64_t kills;

	oom_count_start(&c, &e, 0);
	assert_int_equal(oom_count_take(&c, &e, &kills), 0);
	oom_count_start(&c, &e, 2);
	assert_int_equal(oom_count_take(&c, &e, &kills), 1);
	assert_int_equal(kills, 2);
	oom_count_start(&c, &e, 6);
	assert_int_equal(oom_count_take(&c, &e, &kills), 3);
	oom_count_start(&c, &e, 99);
	assert_int_equal(oom_count_take(&c, &e, &kills), 3);
}

static void a_rise_is_evidence_for_a_while(void **state)
{
	struct memory_events e = {.seen = EVENT_OOM, .oom = 5};
	struct oom_rise r = {0};

	oom_rise_take(&r, &e, 1000000);
	assert_false(oom_rise_is_recent(&r, 1000000)); /* at first sight it is old */
	e.oom = 6;
	oom_rise_take(&r, &e, 2000000);
	assert_true(oom_rise_is_recent(&r, 2000000));
	assert_true(oom_rise_is_recent(&r, 1900000)); /* counted just after the kill was seen */
	oom_rise_take(&r, &e, 3000000);
	assert_true(oom_rise_is_recent(&r, 4000000));
	assert_false(oom_rise_is_recent(&r, 4000001));
	/* Unless it goes with kills that are news. */
	r = (struct oom_rise){0};
	oom_rise_is_news(&r, 1000000); /* not read yet */
	assert_false(oom_rise_is_recent(&r, 1000000));
	oom_rise_take(&r, &e, 1000000);
	oom_rise_is_news(&r, 1000000);
	assert_true(oom_rise_is_recent(&r, 1000000));
	e.oom = 0;
	r = (struct oom_rise){0};
	oom_rise_take(&r, &e, 1000000);
	oom_rise_is_news(&r, 1000000);
	assert_false(oom_rise_is_recent(&r, 1000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_group_kill_of_five_is_one_incident),
		cmocka_unit_test(two_group_kills_between_two_looks_are_two),
		cmocka_unit_test(without_the_group_key_one_increase_is_one_incident),
		cmocka_unit_test(a_reading_without_the_key_changes_nothing),
		cmocka_unit_test(a_counter_that_went_backwards_starts_anew),
		cmocka_unit_test(an_absurd_counter_is_bounded),
		cmocka_unit_test(at_first_sight_only_the_fresh_kills_are_news),
		cmocka_unit_test(a_rise_is_evidence_for_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
