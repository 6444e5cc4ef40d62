/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macros.h"
#include "net/kube/backoff.h"
#include "net/kube/retry.h"
#include "unit.h"

static void a_backoff_doubles_up_to_its_ceiling_and_is_never_zero(void **state)
{
	static const uint64_t ceilings[] = {100, 200, 400, 800, 1000, 1000};
	static const uint64_t randoms[] = {0, 1, 49, 50, UINT64_MAX / 3, UINT64_MAX};

	for (size_t k = 0; k < ARRAY_SIZE(randoms); k++) {
		struct backoff b;

		backoff_init(&b, 100, 1000);
		for (size_t i = 0; i < ARRAY_SIZE(ceilings); i++) {
			uint64_t wait = backoff_next(&b, randoms[k]);

			assert_in_range(wait, ceilings[i] / 2, ceilings[i]);
		}
		backoff_reset(&b);
		assert_in_range(backoff_next(&b, randoms[k]), 50, 100);
	}
}

static void a_backoff_of_nothing_still_waits(void **state)
{
	struct backoff b;

	backoff_init(&b, 0, 0);
	for (uint64_t i = 0; i < 10; i++)
		assert_in_range(backoff_next(&b, i), 1, 2);
	backoff_init(&b, UINT64_MAX, UINT64_MAX);
	assert_in_range(backoff_next(&b, 7), UINT64_MAX / 2, UINT64_MAX);
	assert_in_range(backoff_next(&b, 7), UINT64_MAX / 2, UINT64_MAX);
}

static void a_wait_that_was_asked_for_is_only_made_longer(void **state)
{
	for (uint64_t random = 0; random < 1000; random += 13)
		assert_in_range(backoff_spread(100, random), 100, 120);
	assert_int_equal(backoff_spread(UINT64_MAX, 3), UINT64_MAX);
}

#define SEC USEC_PER_SEC

static const struct {
	const char *name;
	struct kube_outcome o;
	enum kube_phase next;
	bool forgets, at_once;
	enum kube_trouble trouble;
	uint64_t waits_at_least;
} cases[] = {
	{.name = "first page with a second",
		.o = {.phase = KUBE_LIST, .status = 200, .has_continue = true},
		.next = KUBE_LIST_MORE,
		.at_once = true},
	{.name = "last page",
		.o = {.phase = KUBE_LIST_MORE, .status = 200},
		.next = KUBE_WATCH,
		.at_once = true},
	{.name = "continue token expired",
		.o = {.phase = KUBE_LIST_MORE, .status = 410},
		.next = KUBE_LIST,
		.trouble = KUBE_TROUBLE_EXPIRED},
	{.name = "continue token not understood",
		.o = {.phase = KUBE_LIST_MORE, .status = 400},
		.next = KUBE_LIST,
		.trouble = KUBE_TROUBLE_REFUSED},
	{.name = "page cut",
		.o = {.phase = KUBE_LIST_MORE, .error = -ENODATA, .status = 200},
		.next = KUBE_LIST_MORE,
		.trouble = KUBE_TROUBLE_PROTOCOL},
	{.name = "list forbidden",
		.o = {.phase = KUBE_LIST, .status = 403},
		.next = KUBE_LIST,
		.trouble = KUBE_TROUBLE_FORBIDDEN},
	{.name = "list throttled",
		.o = {.phase = KUBE_LIST, .status = 429, .retry_after_usec = 7 * SEC},
		.next = KUBE_LIST,
		.trouble = KUBE_TROUBLE_THROTTLED,
		.waits_at_least = 7 * SEC},
	{.name = "no watch list: 400",
		.o = {.phase = KUBE_WATCH_LIST, .status = 400},
		.next = KUBE_LIST,
		.forgets = true,
		.at_once = true},
	{.name = "no watch list: 422",
		.o = {.phase = KUBE_WATCH_LIST, .status = 422},
		.next = KUBE_LIST,
		.forgets = true,
		.at_once = true},
	{.name = "no watch list: ignored",
		.o = {.phase = KUBE_WATCH_LIST, .status = 200, .no_initial_events = true},
		.next = KUBE_LIST,
		.forgets = true,
		.at_once = true},
	{.name = "watch list answered and silent",
		.o = {.phase = KUBE_WATCH_LIST, .error = -ETIMEDOUT, .status = 200},
		.next = KUBE_LIST,
		.forgets = true,
		.at_once = true},
	{.name = "watch list not answered",
		.o = {.phase = KUBE_WATCH_LIST, .error = -ETIMEDOUT},
		.next = KUBE_WATCH_LIST,
		.forgets = true,
		.trouble = KUBE_TROUBLE_TIMEOUT},
	{.name = "watch list cut in the picture",
		.o = {.phase = KUBE_WATCH_LIST, .error = -ECONNRESET, .status = 200},
		.next = KUBE_WATCH_LIST,
		.forgets = true,
		.trouble = KUBE_TROUBLE_UNREACHABLE},
	{.name = "watch list ended in the picture",
		.o = {.phase = KUBE_WATCH_LIST, .status = 200},
		.next = KUBE_WATCH_LIST,
		.forgets = true,
		.trouble = KUBE_TROUBLE_SHORT_WATCH},
	{.name = "watch list cut after the picture",
		.o = {.phase = KUBE_WATCH_LIST,
			.error = -ECONNRESET,
			.status = 200,
			.synced = true},
		.next = KUBE_WATCH,
		.trouble = KUBE_TROUBLE_UNREACHABLE},
	{.name = "watch ended after its time",
		.o = {.phase = KUBE_WATCH, .status = 200, .lasted_usec = 900 * SEC, .events = 3},
		.next = KUBE_WATCH},
	{.name = "watch ended at once",
		.o = {.phase = KUBE_WATCH, .status = 200},
		.next = KUBE_WATCH,
		.trouble = KUBE_TROUBLE_SHORT_WATCH},
	{.name = "version gone: HTTP",
		.o = {.phase = KUBE_WATCH, .status = 410},
		.next = KUBE_WATCH_LIST,
		.forgets = true,
		.trouble = KUBE_TROUBLE_EXPIRED},
	{.name = "version gone: event after the picture",
		.o = {.phase = KUBE_WATCH_LIST, .status = 410, .synced = true},
		.next = KUBE_WATCH_LIST,
		.forgets = true,
		.trouble = KUBE_TROUBLE_EXPIRED},
	{.name = "version not understood",
		.o = {.phase = KUBE_WATCH, .status = 400},
		.next = KUBE_WATCH_LIST,
		.forgets = true,
		.trouble = KUBE_TROUBLE_REFUSED},
	{.name = "version not reached yet",
		.o = {.phase = KUBE_WATCH, .status = 504, .version_unknown = true},
		.next = KUBE_WATCH_LIST,
		.forgets = true,
		.trouble = KUBE_TROUBLE_EXPIRED},
	{.name = "version went back in the stream",
		.o = {.phase = KUBE_WATCH,
			.status = 200,
			.version_unknown = true,
			.events = 5,
			.lasted_usec = 900 * SEC},
		.next = KUBE_WATCH_LIST,
		.forgets = true,
		.trouble = KUBE_TROUBLE_EXPIRED},
	{.name = "token refused",
		.o = {.phase = KUBE_WATCH, .status = 401},
		.next = KUBE_WATCH,
		.trouble = KUBE_TROUBLE_UNAUTHORIZED},
	{.name = "server overloaded",
		.o = {.phase = KUBE_WATCH, .status = 503, .retry_after_usec = 30 * SEC},
		.next = KUBE_WATCH,
		.trouble = KUBE_TROUBLE_THROTTLED,
		.waits_at_least = 30 * SEC},
	{.name = "a wait of a day is not waited",
		.o = {.phase = KUBE_WATCH, .status = 503, .retry_after_usec = 86400 * SEC},
		.next = KUBE_WATCH,
		.trouble = KUBE_TROUBLE_THROTTLED,
		.waits_at_least = KUBE_RETRY_AFTER_MAX_USEC},
	{.name = "server error",
		.o = {.phase = KUBE_WATCH, .status = 500},
		.next = KUBE_WATCH,
		.trouble = KUBE_TROUBLE_SERVER},
	{.name = "redirection",
		.o = {.phase = KUBE_WATCH, .status = 302},
		.next = KUBE_WATCH,
		.trouble = KUBE_TROUBLE_PROTOCOL},
	{.name = "HTML",
		.o = {.phase = KUBE_WATCH, .error = -EPROTO, .status = 200},
		.next = KUBE_WATCH,
		.trouble = KUBE_TROUBLE_PROTOCOL},
	{.name = "certificate",
		.o = {.phase = KUBE_WATCH, .error = -EKEYREJECTED},
		.next = KUBE_WATCH,
		.trouble = KUBE_TROUBLE_TLS},
	{.name = "no memory",
		.o = {.phase = KUBE_WATCH, .error = -ENOMEM},
		.next = KUBE_WATCH,
		.trouble = KUBE_TROUBLE_LOCAL},
};

static void each_outcome_has_its_plan(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct kube_retry r;
		struct kube_plan p;

		kube_retry_init(&r);
		p = kube_retry_next(&r, &cases[i].o, UINT64_C(12345678901234567));
		if (p.phase != cases[i].next || p.forget_version != cases[i].forgets ||
			p.trouble != cases[i].trouble || (p.delay_usec == 0) != cases[i].at_once ||
			p.delay_usec < cases[i].waits_at_least ||
			p.delay_usec > KUBE_RETRY_AFTER_MAX_USEC * 6 / 5)
			fail_msg("%s: phase %d, forgets %d, trouble %s, waits %lu", cases[i].name,
				(int)p.phase, p.forget_version, kube_trouble_name(p.trouble),
				(unsigned long)p.delay_usec);
	}
}

static void a_server_without_watch_list_is_asked_once(void **state)
{
	struct kube_retry r;

	kube_retry_init(&r);
	assert_int_equal(kube_retry_picture(&r, 5 * SEC), KUBE_WATCH_LIST);
	(void)kube_retry_next(&r,
		&(struct kube_outcome){
			.phase = KUBE_WATCH_LIST, .status = 422, .ended_usec = 5 * SEC},
		1);
	assert_int_equal(kube_retry_picture(&r, 6 * SEC), KUBE_LIST);
	struct kube_outcome gone = {.phase = KUBE_WATCH, .status = 410, .ended_usec = 3600 * SEC};
	assert_int_equal(kube_retry_next(&r, &gone, 1).phase, KUBE_LIST);
	/* An hour later it may have been upgraded. */
	gone.ended_usec = 3605 * SEC;
	assert_int_equal(kube_retry_next(&r, &gone, 1).phase, KUBE_WATCH_LIST);
	/* Who was told never to ask for it does not. */
	r.watch_list_usec = UINT64_MAX;
	assert_int_equal(kube_retry_next(&r, &gone, 1).phase, KUBE_LIST);
}

static void a_second_silent_watch_in_a_row_gives_the_version_up(void **state)
{
	const struct kube_outcome silent = {
		.phase = KUBE_WATCH, .status = 200, .error = -ETIMEDOUT, .lasted_usec = 150 * SEC};
	const struct kube_outcome unanswered = {.phase = KUBE_WATCH, .error = -ETIMEDOUT};
	const struct kube_outcome heard = {.phase = KUBE_WATCH,
		.status = 200,
		.error = -ETIMEDOUT,
		.events = 1,
		.lasted_usec = 300 * SEC};
	struct kube_retry r;
	struct kube_plan p;

	kube_retry_init(&r);
	for (int i = 0; i < 10; i++) {
		assert_false(kube_retry_next(&r, &silent, 1).forget_version);
		assert_false(kube_retry_next(&r, &unanswered, 1).forget_version);
		p = kube_retry_next(&r, i % 2 ? &silent : &heard, 1);
		assert_int_equal(p.forget_version, i % 2);
		assert_int_equal(p.phase, i % 2 ? KUBE_WATCH_LIST : KUBE_WATCH);
		assert_true(p.delay_usec > 0);
	}
}

static void silence_does_not_disprove_watch_list(void **state)
{
	struct kube_retry r;

	kube_retry_init(&r);
	(void)kube_retry_next(&r,
		&(struct kube_outcome){
			.phase = KUBE_WATCH_LIST, .status = 200, .error = -ETIMEDOUT},
		1);
	assert_int_equal(kube_retry_picture(&r, 0), KUBE_WATCH_LIST);
}

static void waits_grow_until_a_watch_has_lived(void **state)
{
	const struct kube_outcome fails = {.phase = KUBE_WATCH, .error = -ECONNREFUSED};
	const struct kube_outcome lists = {.phase = KUBE_LIST, .status = 200};
	const struct kube_outcome one_event = {
		.phase = KUBE_WATCH, .error = -ECONNRESET, .events = 1, .lasted_usec = SEC};
	const struct kube_outcome lived = {
		.phase = KUBE_WATCH, .error = -ECONNRESET, .events = 1, .lasted_usec = 11 * SEC};
	struct kube_retry r;
	uint64_t total = 0;

	kube_retry_init(&r);
	for (int i = 0; i < 10; i++)
		total += kube_retry_next(&r, &fails, UINT64_MAX).delay_usec;
	/* 1 + 2 + 4 + 8 + 16 + 32 + 4 × 60 s at most, half of it at least */
	assert_in_range(total, 151 * SEC, 303 * SEC);
	/* A list that succeeds, or an event at once before the cut, is no reason to hurry. */
	(void)kube_retry_next(&r, &lists, 0);
	assert_in_range(kube_retry_next(&r, &one_event, 0).delay_usec, 30 * SEC, 60 * SEC);
	assert_in_range(kube_retry_next(&r, &lived, 0).delay_usec, SEC / 2, SEC);
}

static void a_version_that_only_fails_is_given_up(void **state)
{
	const struct kube_outcome fails = {.phase = KUBE_WATCH, .status = 500};
	const struct kube_outcome unreachable = {.phase = KUBE_WATCH, .error = -ECONNREFUSED};
	struct kube_retry r;
	bool forgot = false;

	kube_retry_init(&r);
	for (int i = 0; i < 100; i++)
		assert_false(kube_retry_next(&r, &unreachable, 1).forget_version);
	kube_retry_init(&r);
	for (int i = 0; i < 5; i++)
		forgot = kube_retry_next(&r, &fails, 1).forget_version;
	assert_true(forgot);
}

/* Whatever a server does, over a long time there are few requests: no sequence of outcomes is a
 * tight loop. */
static void no_sequence_of_outcomes_is_a_tight_loop(void **state)
{
	uint64_t seed = 1;

	for (int run = 0; run < 200; run++) {
		struct kube_retry r;
		struct kube_plan p = {.phase = KUBE_WATCH_LIST};
		uint64_t elapsed = 0;
		unsigned int requests = 0, pages = 0;

		kube_retry_init(&r);
		for (int i = 0; i < 500; i++) {
			struct kube_outcome o;

			do {
				seed = seed * UINT64_C(6364136223846793005) +
				       UINT64_C(1442695040888963407);
				o = cases[(seed >> 33) % ARRAY_SIZE(cases)].o;
			} while (o.phase != p.phase);
			pages += o.has_continue ? 1 : 0;
			p = kube_retry_next(&r, &o, seed);
			elapsed += p.delay_usec + o.lasted_usec;
			requests++;
		}
		/* A picture costs a few requests at once; each failure costs at least half a
		 * second. */
		assert_true(elapsed >= (requests - pages) / 4 * (SEC / 2));
	}
}

static void names_are_words(void **state)
{
	for (unsigned int t = 0; t < KUBE_TROUBLE_COUNT; t++)
		assert_non_null(kube_trouble_name((enum kube_trouble)t));
	assert_string_equal(kube_trouble_name(KUBE_TROUBLE_COUNT), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_backoff_doubles_up_to_its_ceiling_and_is_never_zero),
		cmocka_unit_test(a_backoff_of_nothing_still_waits),
		cmocka_unit_test(a_wait_that_was_asked_for_is_only_made_longer),
		cmocka_unit_test(each_outcome_has_its_plan),
		cmocka_unit_test(a_server_without_watch_list_is_asked_once),
		cmocka_unit_test(silence_does_not_disprove_watch_list),
		cmocka_unit_test(a_second_silent_watch_in_a_row_gives_the_version_up),
		cmocka_unit_test(waits_grow_until_a_watch_has_lived),
		cmocka_unit_test(a_version_that_only_fails_is_given_up),
		cmocka_unit_test(no_sequence_of_outcomes_is_a_tight_loop),
		cmocka_unit_test(names_are_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
