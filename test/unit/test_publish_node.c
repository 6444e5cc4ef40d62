// SPDX-License-Identifier: Apache-2.0
/* The budget of a node: when a patch may go. */
#include "base/clock.h"
#include "base/macros.h"
#include "rules/publish.h"
#include "test/unit/unit.h"

#define HOUR USEC_PER_HOUR
#define MINUTE USEC_PER_MINUTE

/* xorshift64*: the same run every time. */
static uint64_t chance(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static void the_first_patch_waits_for_all_containers_or_two_minutes(void **state)
{
	struct publish_node n;
	uint64_t start = 1000 * MINUTE;

	publish_node_init(&n, NULL, start);
	assert_true(publish_node_wait(&n, start, PUBLISH_NOT, true, 1) == UINT64_MAX);
	assert_true(publish_node_wait(&n, start, PUBLISH_RIDES, true, 1) == UINT64_MAX);
	/* One is still learning. */
	assert_true(publish_node_wait(&n, start, PUBLISH_NEW, false, 1) == 2 * MINUTE);
	/* An OOM does not wait for that. */
	assert_true(publish_node_wait(&n, start, PUBLISH_NOW, false, 1) == 0);
	/* All are there: the draw is made once, within the spread. */
	assert_true(publish_node_wait(&n, start + MINUTE, PUBLISH_NEW, true, 30 * USEC_PER_SEC) ==
		    30 * USEC_PER_SEC);
	assert_true(publish_node_wait(&n, start + MINUTE + 20 * USEC_PER_SEC, PUBLISH_NEW, false,
			    59 * USEC_PER_SEC) == 10 * USEC_PER_SEC);

	/* Two minutes are over. */
	publish_node_init(&n, NULL, start);
	assert_true(publish_node_wait(&n, start + 2 * MINUTE, PUBLISH_NEW, false, 0) == 0);
	/* What is due after a restart waits with the others. */
	publish_node_init(&n, NULL, start);
	assert_true(publish_node_wait(&n, start, PUBLISH_DUE, false, 0) == 2 * MINUTE);
}

static void a_hello_goes_within_the_spread_and_is_no_first_patch(void **state)
{
	struct publish_node n;
	uint64_t start = 1000 * MINUTE, t = start + 7 * USEC_PER_SEC;

	publish_node_init(&n, NULL, start);
	assert_true(publish_node_hello_wait(&n, start, 7 * USEC_PER_SEC) == 7 * USEC_PER_SEC);
	/* Drawn once. */
	assert_true(publish_node_hello_wait(&n, start, 9 * USEC_PER_SEC) == 7 * USEC_PER_SEC);
	publish_node_hello_sent(&n, t);
	assert_true(publish_node_hello_wait(&n, t, 0) == UINT64_MAX);
	assert_true(publish_node_wait(&n, t, PUBLISH_NOW, true, 0) == UINT64_MAX);
	publish_node_failed(&n, t, USEC_PER_SEC, MINUTE, 0, 0);
	assert_true(publish_node_hello_wait(&n, t, 0) == USEC_PER_SEC / 2);
	t += USEC_PER_SEC;
	publish_node_hello_sent(&n, t);
	publish_node_done(&n, t, 0);
	assert_false(n.first_done);
	/* What is due waits for the containers, and not for an interval. */
	assert_true(publish_node_wait(&n, t, PUBLISH_DUE, false, 0) == start + 2 * MINUTE - t);
	/* It cost a token: as many are left as a bucket has, less one. */
	for (unsigned int k = 1; k < publish_pace_default.tokens; k++) {
		assert_true(publish_node_hello_wait(&n, t, 0) == 0);
		publish_node_hello_sent(&n, t);
		publish_node_done(&n, t, 0);
	}
	assert_true(publish_node_hello_wait(&n, t, 0) > MINUTE);
	publish_node_sent(&n, t, PUBLISH_NEW);
	publish_node_done(&n, t, 0);
	assert_true(n.first_done);
	assert_true(publish_node_hello_wait(&n, t + HOUR, 0) == UINT64_MAX);
}

static void ordinary_patches_keep_the_interval_and_urgent_ones_take_tokens(void **state)
{
	struct publish_node n;
	uint64_t t = 5 * HOUR;

	publish_node_init(&n, NULL, t);
	publish_node_sent(&n, t, PUBLISH_DUE);
	assert_true(
		publish_node_wait(&n, t, PUBLISH_NOW, true, 0) == UINT64_MAX); /* one at a time */
	publish_node_done(&n, t, 0);
	assert_true(publish_node_wait(&n, t, PUBLISH_DUE, true, 0) == 15 * MINUTE * 9 / 10);
	for (unsigned int k = 0; k < publish_pace_default.tokens; k++) {
		assert_true(publish_node_wait(&n, t, PUBLISH_NOW, true, 0) == 0);
		publish_node_sent(&n, t, PUBLISH_NOW);
		publish_node_done(&n, t, 0);
	}
	assert_true(publish_node_wait(&n, t, PUBLISH_NOW, true, 0) == 10 * MINUTE);
	t += 10 * MINUTE;
	assert_true(publish_node_wait(&n, t, PUBLISH_NOW, true, 0) == 0);
	publish_node_sent(&n, t, PUBLISH_NOW);
	publish_node_done(&n, t, 0);
	assert_true(publish_node_wait(&n, t, PUBLISH_NOW, true, 0) == 10 * MINUTE);
}

static void failures_wait_longer_each_time_and_spend_no_token(void **state)
{
	struct publish_node n;
	uint64_t t = 5 * HOUR, longest = 0;

	publish_node_init(&n, NULL, t);
	publish_node_sent(&n, t, PUBLISH_NOW);
	publish_node_done(&n, t, 0);
	for (int k = 0; k < 200; k++) {
		uint64_t wait, ceiling = USEC_PER_SEC << (k < 7 ? k : 7);

		assert_true(publish_node_wait(&n, t, PUBLISH_NOW, true, 0) == 0);
		publish_node_sent(&n, t, PUBLISH_NOW);
		publish_node_failed(&n, t, USEC_PER_SEC, 2 * MINUTE, 0,
			UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)k);
		wait = publish_node_wait(&n, t, PUBLISH_NOW, true, 0);
		ceiling = MIN(ceiling, 2 * MINUTE);
		assert_true(wait >= ceiling / 2 && wait <= ceiling);
		assert_true(publish_node_readback_wait(&n, t) >= wait);
		longest = MAX(longest, wait);
		t += wait;
	}
	assert_true(longest > MINUTE);
	publish_node_sent(&n, t, PUBLISH_NOW);
	publish_node_done(&n, t, 0);
	assert_int_equal(n.ceiling_usec, 0);
	assert_true(publish_node_wait(&n, t, PUBLISH_NOW, true, 0) == 0); /* tokens are left */
}

/* The waits of patches whose answers are lost grow like those of any failure, though the looks
 * between them are answered. */
static void a_patch_that_a_look_does_not_find_was_a_failure(void **state)
{
	struct publish_node n;
	uint64_t t = 5 * HOUR, longest = 0;

	publish_node_init(&n, NULL, t);
	publish_node_settled(&n, t, true, 0); /* nothing to settle */
	assert_false(n.first_done);
	publish_node_sent(&n, t, PUBLISH_NOW);
	publish_node_done(&n, t, 0);
	for (int k = 0; k < 20; k++) {
		uint64_t wait;

		assert_true(publish_node_wait(&n, t, PUBLISH_NOW, true, 0) == 0);
		publish_node_sent(&n, t, PUBLISH_NOW);
		publish_node_unsettled(&n, t, USEC_PER_SEC, 2 * MINUTE, 0, 0);
		wait = publish_node_readback_wait(&n, t);
		longest = MAX(longest, wait);
		t += wait;
		publish_node_settled(&n, t, false, 0);
	}
	assert_true(longest >= MINUTE);
	publish_node_sent(&n, t, PUBLISH_NOW);
	publish_node_unsettled(&n, t, USEC_PER_SEC, 2 * MINUTE, 0, 0);
	publish_node_settled(&n, t, true, 0);
	assert_int_equal(n.ceiling_usec, 0);
	assert_true(publish_node_wait(&n, t, PUBLISH_DUE, true, 0) > 10 * MINUTE);
}

/* A server that was away for a while and comes back may not know our rights at once: its refusal,
 * of which the waits begin long and may become longer, is no more than one more failure. */
static void another_kind_of_failure_goes_on_from_the_last_wait(void **state)
{
	struct publish_node n;
	uint64_t wait;

	publish_node_init(&n, NULL, 0);
	for (int k = 0; k < 5; k++) /* 1, 2, 4, 8, 16 s */
		publish_node_failed(&n, 0, USEC_PER_SEC, MINUTE, 0, UINT64_MAX);
	publish_node_failed(&n, 0, 10 * USEC_PER_SEC, 10 * MINUTE, 0, UINT64_MAX);
	wait = publish_node_readback_wait(&n, 0);
	assert_true(wait >= 16 * USEC_PER_SEC && wait <= 32 * USEC_PER_SEC);
	publish_node_failed(&n, 0, USEC_PER_SEC, 20 * USEC_PER_SEC, 0, UINT64_MAX);
	assert_true(publish_node_readback_wait(&n, 0) <= 20 * USEC_PER_SEC);
}

static void a_server_that_asks_to_wait_is_obeyed_within_reason(void **state)
{
	struct publish_node n;
	uint64_t wait;

	publish_node_init(&n, NULL, 0);
	publish_node_failed(&n, 0, USEC_PER_SEC, MINUTE, 30 * USEC_PER_SEC, 12345678901);
	wait = publish_node_wait(&n, 0, PUBLISH_NOW, true, 0);
	assert_true(wait >= 30 * USEC_PER_SEC && wait <= 36 * USEC_PER_SEC);
	publish_node_failed(&n, 0, USEC_PER_SEC, MINUTE, UINT64_MAX, UINT64_MAX);
	assert_true(publish_node_wait(&n, 0, PUBLISH_NOW, true, 0) <= 18 * MINUTE);
}

static void the_node_is_looked_at_at_the_start_and_every_hour(void **state)
{
	struct publish_node n;

	publish_node_init(&n, NULL, HOUR);
	assert_true(publish_node_readback_wait(&n, HOUR) == 0);
	publish_node_readback_done(&n, HOUR, 0);
	assert_true(publish_node_readback_wait(&n, HOUR) == HOUR * 9 / 10);
	/* The answer of a patch is a look. */
	publish_node_sent(&n, HOUR + 30 * MINUTE, PUBLISH_DUE);
	assert_true(publish_node_readback_wait(&n, HOUR + 30 * MINUTE) == UINT64_MAX);
	publish_node_done(&n, HOUR + 30 * MINUTE, HOUR / 10);
	assert_true(publish_node_readback_wait(&n, HOUR + 30 * MINUTE) == HOUR);
}

static void no_input_makes_it_write_more_than_its_budget(void **state)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct publish_node n;
		struct publish_pace pace = publish_pace_default;
		uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15),
			 start = chance(&random) >> 20;
		uint64_t t = start, writes = 0;
		uint64_t least = pace.interval_usec * 9 / 10;

		publish_node_init(&n, &pace, t);
		while (t < start + 48 * HOUR) {
			enum publish_need need = (enum publish_need)(chance(&random) % 6);
			uint64_t wait = publish_node_wait(
				&n, t, need, chance(&random) % 2, chance(&random));

			if (wait == 0) {
				publish_node_sent(&n, t, need);
				t += chance(&random) % (5 * USEC_PER_SEC);
				switch (chance(&random) % 6) {
				default:
					publish_node_done(&n, t, chance(&random));
					writes++;
					break;
				case 0: { /* the answer is lost; it was taken, or not */
					bool taken = chance(&random) % 2;

					publish_node_unsettled(
						&n, t, USEC_PER_SEC, MINUTE, 0, chance(&random));
					assert_true(publish_node_wait(&n, t, PUBLISH_NOW, true,
							    0) == UINT64_MAX);
					t += publish_node_readback_wait(&n, t);
					publish_node_settled(&n, t, taken, chance(&random));
					writes += taken;
					break;
				}
				case 1:
					publish_node_failed(
						&n, t, USEC_PER_SEC, MINUTE, 0, chance(&random));
					break;
				}
			}
			t += chance(&random) % (20 * USEC_PER_SEC);
			assert_true(writes <= 1 + (t - start) / least + pace.tokens +
						      (t - start) / pace.refill_usec);
		}
		assert_true(writes > 48);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_patch_waits_for_all_containers_or_two_minutes),
		cmocka_unit_test(a_hello_goes_within_the_spread_and_is_no_first_patch),
		cmocka_unit_test(ordinary_patches_keep_the_interval_and_urgent_ones_take_tokens),
		cmocka_unit_test(failures_wait_longer_each_time_and_spend_no_token),
		cmocka_unit_test(a_patch_that_a_look_does_not_find_was_a_failure),
		cmocka_unit_test(another_kind_of_failure_goes_on_from_the_last_wait),
		cmocka_unit_test(a_server_that_asks_to_wait_is_obeyed_within_reason),
		cmocka_unit_test(the_node_is_looked_at_at_the_start_and_every_hour),
		cmocka_unit_test(no_input_makes_it_write_more_than_its_budget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
