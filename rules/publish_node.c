/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of one node: when a patch may go. */
#include "base/clock.h"
#include "base/macros.h"
#include "base/num.h"
#include "rules/publish.h"

#define RETRY_AFTER_MAX_USEC (15 * USEC_PER_MINUTE)

const struct publish_pace publish_pace_default = {
	.interval_usec = 15 * USEC_PER_MINUTE,
	.slow_usec = 2 * USEC_PER_HOUR,
	.first_wait_usec = 2 * USEC_PER_MINUTE,
	.first_spread_usec = USEC_PER_MINUTE,
	.tokens = 6,
	.refill_usec = 10 * USEC_PER_MINUTE,
	.readback_usec = USEC_PER_HOUR,
};

/* usec ± a tenth. */
static uint64_t jitter(uint64_t usec, uint64_t random)
{
	return usec - usec / 10 + random % (usec / 5 + 1);
}

static uint64_t until(uint64_t at_usec, uint64_t now_usec)
{
	return at_usec > now_usec ? at_usec - now_usec : 0;
}

void publish_node_init(struct publish_node *n, const struct publish_pace *pace, uint64_t now_usec)
{
	*n = (struct publish_node){
		.pace = pace ? *pace : publish_pace_default,
		.start_usec = now_usec,
		.ordinary_usec = now_usec,
		.full_usec = now_usec,
		.readback_usec = now_usec,
	};
	if (n->pace.tokens == 0)
		n->pace.tokens = 1;
}

/* A bucket of k tokens holds one at least while it is full again within k - 1 refills. */
static uint64_t token_usec(const struct publish_node *n)
{
	uint64_t span = (n->pace.tokens - 1) * n->pace.refill_usec;

	return n->full_usec > span ? n->full_usec - span : 0;
}

/* A moment within the spread from now on; never 0. */
static uint64_t in_spread(const struct publish_node *n, uint64_t now_usec, uint64_t random)
{
	return MAX(u64_add_sat(now_usec, random % u64_add_sat(n->pace.first_spread_usec, 1)),
		UINT64_C(1));
}

/* When waiting first values go; drawn once for all that come together. */
static uint64_t first_usec(
	struct publish_node *n, uint64_t now_usec, bool all_ready, uint64_t random)
{
	uint64_t patience = u64_add_sat(n->start_usec, n->pace.first_wait_usec);

	if (n->first_usec)
		return n->first_usec;
	if (!n->first_done && !all_ready && now_usec < patience)
		return patience;
	n->first_usec = in_spread(n, now_usec, random);
	return n->first_usec;
}

uint64_t publish_node_wait(struct publish_node *n, uint64_t now_usec, enum publish_need need,
	bool all_ready, uint64_t random)
{
	uint64_t at = n->hold_usec;

	if (n->in_flight || n->unsettled || need <= PUBLISH_RIDES)
		return UINT64_MAX;
	/* What is due when the agent starts waits like a first value: agents start together. */
	if (need == PUBLISH_NEW || (need <= PUBLISH_DUE && !n->first_done))
		at = MAX(at, first_usec(n, now_usec, all_ready, random));
	/* What cannot wait takes the ordinary turn when that is free, and a token when it is not.
	 */
	if (need == PUBLISH_SLOW)
		at = MAX(at, n->slow_usec);
	at = MAX(at, need <= PUBLISH_DUE ? n->ordinary_usec : MIN(n->ordinary_usec, token_usec(n)));
	return until(at, now_usec);
}

static void take_token(struct publish_node *n, uint64_t now_usec)
{
	n->full_usec = u64_add_sat(MAX(n->full_usec, now_usec), n->pace.refill_usec);
}

void publish_node_sent(struct publish_node *n, uint64_t now_usec, enum publish_need need)
{
	n->in_flight = true;
	n->sent_hello = false;
	n->sent_token = need > PUBLISH_DUE && now_usec < n->ordinary_usec;
	if (n->sent_token)
		take_token(n, now_usec);
}

uint64_t publish_node_hello_wait(struct publish_node *n, uint64_t now_usec, uint64_t random)
{
	if (n->in_flight || n->unsettled || n->first_done)
		return UINT64_MAX;
	if (!n->hello_usec)
		n->hello_usec = in_spread(n, now_usec, random);
	return until(MAX(MAX(n->hello_usec, n->hold_usec), token_usec(n)), now_usec);
}

void publish_node_hello_sent(struct publish_node *n, uint64_t now_usec)
{
	n->in_flight = true;
	n->sent_hello = true;
	n->sent_token = true;
	take_token(n, now_usec);
}

void publish_node_done(struct publish_node *n, uint64_t now_usec, uint64_t random)
{
	n->in_flight = false;
	publish_node_readback_done(n, now_usec, random);
	if (n->sent_hello)
		return;
	n->first_done = true;
	n->first_usec = 0;
	n->ordinary_usec = u64_add_sat(now_usec, jitter(n->pace.interval_usec, random));
	n->slow_usec = u64_add_sat(now_usec, jitter(n->pace.slow_usec, random));
}

static void hold(struct publish_node *n, uint64_t now_usec, uint64_t first, uint64_t last,
	uint64_t retry_after_usec, uint64_t random)
{
	uint64_t ceiling = MAX(
		MIN(MAX(u64_add_sat(n->ceiling_usec, n->ceiling_usec), first), last), UINT64_C(1));
	uint64_t wait = ceiling - ceiling / 2 + random % (ceiling / 2 + 1);

	if (retry_after_usec) {
		uint64_t asked = MIN(retry_after_usec, RETRY_AFTER_MAX_USEC);

		wait = MAX(wait, asked + random % (asked / 5 + 1));
	}
	n->ceiling_usec = ceiling;
	n->hold_usec = u64_add_sat(now_usec, wait);
}

/* What was not written was not spent: the wait is what holds back a storm. */
static void give_back(struct publish_node *n)
{
	if (n->sent_token)
		n->full_usec -= MIN(n->full_usec, n->pace.refill_usec);
	n->sent_token = false;
}

void publish_node_failed(struct publish_node *n, uint64_t now_usec, uint64_t first, uint64_t last,
	uint64_t retry_after_usec, uint64_t random)
{
	if (n->in_flight)
		give_back(n);
	n->in_flight = false;
	hold(n, now_usec, first, last, retry_after_usec, random);
}

void publish_node_unsettled(struct publish_node *n, uint64_t now_usec, uint64_t first,
	uint64_t last, uint64_t retry_after_usec, uint64_t random)
{
	n->in_flight = false;
	n->unsettled = true;
	hold(n, now_usec, first, last, retry_after_usec, random);
}

void publish_node_settled(struct publish_node *n, uint64_t now_usec, bool taken, uint64_t random)
{
	uint64_t ceiling = n->ceiling_usec;

	if (!n->unsettled)
		return;
	n->unsettled = false;
	if (taken) {
		publish_node_done(n, now_usec, random);
		return;
	}
	give_back(n);
	publish_node_readback_done(n, now_usec, random);
	n->ceiling_usec = ceiling;
}

uint64_t publish_node_readback_wait(const struct publish_node *n, uint64_t now_usec)
{
	if (n->in_flight)
		return UINT64_MAX;
	if (n->unsettled)
		return until(n->hold_usec, now_usec);
	return until(MAX(n->readback_usec, n->hold_usec), now_usec);
}

void publish_node_readback_done(struct publish_node *n, uint64_t now_usec, uint64_t random)
{
	n->ceiling_usec = 0;
	n->hold_usec = 0;
	n->readback_usec = u64_add_sat(now_usec, jitter(n->pace.readback_usec, random));
}
