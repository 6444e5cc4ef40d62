/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "agent/state/events.h"
#include "helper_alloc.h"
#include "unit.h"

static struct events events;

static void the_newest_comes_first_and_the_ring_forgets(void **state)
{
	char text[32];

	events_init(&events);
	assert_null(events_get(&events, 0));
	for (int i = 0; i < (int)EVENTS_MAX * 2 + 3; i++) {
		struct event e = EVENT(EVENT_KIND_OOM, i);

		(void)snprintf(text, sizeof(text), "number %d", i);
		e.detail = "limit";
		e.namespace = STR("default");
		e.text = str_of(text);
		e.limit_bytes = i;
		events_add(&events, &e);
	}
	assert_int_equal(events_n(&events), EVENTS_MAX);
	assert_int_equal(events.added, EVENTS_MAX * 2 + 3);
	assert_int_equal(events.of_kind[EVENT_KIND_OOM], EVENTS_MAX * 2 + 3);
	for (unsigned int i = 0; i < EVENTS_MAX; i++) {
		const struct event *e = events_get(&events, i);
		int want = (int)EVENTS_MAX * 2 + 2 - (int)i;

		(void)snprintf(text, sizeof(text), "number %d", want);
		assert_int_equal(e->at_ns, want);
		assert_true(str_is(e->text, text) && str_is(e->namespace, "default"));
		assert_int_equal(e->daemonset.n, 0);
	}
	assert_null(events_get(&events, EVENTS_MAX));
	events_finish(&events);
}

static void texts_are_copied_and_cut_at_characters(void **state)
{
	char text[EVENT_TEXT_MAX_BYTES + 2];
	struct event e = EVENT(EVENT_KIND_NODE, 1);
	const struct event *got;

	memset(text, 'x', sizeof(text));
	memcpy(text + EVENT_TEXT_MAX_BYTES - 1, "\xc3\xa9", 2); /* é across the border */
	e.text = (struct str){text, sizeof(text)};
	events_init(&events);
	events_add(&events, &e);
	memset(text, 'y', sizeof(text));
	got = events_get(&events, 0);
	assert_int_equal(got->text.n, EVENT_TEXT_MAX_BYTES - 1);
	assert_int_equal(got->text.p[0], 'x');
	assert_int_equal(got->limit_bytes, -1);
	events_finish(&events);
}

static void without_memory_an_event_is_counted_and_left_out(void **state)
{
	struct event e = EVENT(EVENT_KIND_AHEAD, 5);

	events_init(&events);
	events_add(&events, &e);
	alloc_fail_only(0);
	e.at_ns = 6;
	events_add(&events, &e);
	assert_true(alloc_fail_never());
	assert_int_equal(events.lost, 1);
	assert_int_equal(events.of_kind[EVENT_KIND_AHEAD], 2);
	assert_int_equal(events_n(&events), 1);
	assert_int_equal(events_get(&events, 0)->at_ns, 5);
	events_finish(&events);
}

static void every_kind_has_a_name(void **state)
{
	for (int i = 0; i < EVENT_KINDS; i++)
		assert_string_not_equal(event_kind_name((enum event_kind)i), "unknown");
	assert_string_equal(event_kind_name(EVENT_KINDS), "unknown");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_newest_comes_first_and_the_ring_forgets),
		cmocka_unit_test(texts_are_copied_and_cut_at_characters),
		cmocka_unit_test(without_memory_an_event_is_counted_and_left_out),
		cmocka_unit_test(every_kind_has_a_name),
	};

	return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
