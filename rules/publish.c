/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/publish.h"

#include <errno.h>

#include "base/macros.h"
#include "proto/checkpoint.h"

#define PUBLISH_SAVED_VERSION 1U

static const char *const reason_names[PUBLISH_REASONS] = {
	[PUBLISH_FIRST] = "first",
	[PUBLISH_USAGE] = "usage",
	[PUBLISH_THROTTLED] = "throttled",
	[PUBLISH_OOM] = "oom",
	[PUBLISH_AHEAD_OF_OOM] = "ahead-of-oom",
};

const char *publish_reason_name(enum publish_reason reason)
{
	return (unsigned int)reason < PUBLISH_REASONS ? reason_names[reason] : "unknown";
}

void publish_item_init(struct publish_item *i)
{
	*i = (struct publish_item){.at = TIME_NONE, .trembled_at = TIME_NONE};
}

void publish_item_urgent(struct publish_item *i, enum publish_reason reason)
{
	/* A kill says more than a warning. */
	if (i->urgent && i->urgent_reason == PUBLISH_OOM)
		return;
	i->urgent = true;
	i->urgent_reason = reason;
}

/* At least fraction (in per cent of published) apart. */
static bool differs(
	const struct amounts *today, const struct amounts *published, int r, int64_t percent)
{
	int64_t a = today->value[r], b = published->value[r];

	if (today->known[r] != published->known[r])
		return true;
	if (!today->known[r] || a == b)
		return false;
	return (a > b ? a - b : b - a) * 100 >= b * percent;
}

static bool target_differs(const struct publish_item *i, const struct publish_facts *f)
{
	for (int r = 0; r < RESOURCES; r++)
		if (differs(&f->today.amounts[BOUND_TARGET], &i->published.amounts[BOUND_TARGET], r,
			    PUBLISH_DUE_PERCENT))
			return true;
	return false;
}

static bool anything_moved(const struct publish_item *i, const struct publish_facts *f)
{
	if (f->oom_kills != i->oom_kills)
		return true;
	for (int b = 0; b < BOUNDS; b++)
		for (int r = 0; r < RESOURCES; r++)
			if (differs(&f->today.amounts[b], &i->published.amounts[b], r,
				    PUBLISH_RIDE_PERCENT))
				return true;
	return false;
}

enum publish_side publish_side_of(
	int64_t request, const struct recommendation *r, enum resource resource)
{
	const struct amounts *lower = &r->amounts[BOUND_LOWER], *upper = &r->amounts[BOUND_UPPER];

	if (lower->known[resource] && request < lower->value[resource])
		return PUBLISH_BELOW;
	if (upper->known[resource] && request > upper->value[resource])
		return PUBLISH_ABOVE;
	return PUBLISH_INSIDE;
}

static bool side_differs(const struct publish_item *i, const struct publish_facts *f)
{
	for (int r = 0; r < RESOURCES; r++)
		if (f->request.known[r] &&
			publish_side_of(f->request.value[r], &f->today, (enum resource)r) !=
				publish_side_of(
					f->request.value[r], &i->published, (enum resource)r))
			return true;
	return false;
}

/* What an OOM taught is told by a higher target or lower bound of memory. */
static bool says_more(const struct publish_item *i, const struct publish_facts *f)
{
	static const enum bound bounds[] = {BOUND_TARGET, BOUND_LOWER};

	for (size_t b = 0; b < ARRAY_SIZE(bounds); b++) {
		const struct amounts *today = &f->today.amounts[bounds[b]];
		const struct amounts *published = &i->published.amounts[bounds[b]];

		if (today->known[RESOURCE_MEMORY] &&
			(!published->known[RESOURCE_MEMORY] ||
				today->value[RESOURCE_MEMORY] > published->value[RESOURCE_MEMORY]))
			return true;
	}
	return false;
}

static enum publish_reason why(const struct publish_item *i, const struct publish_facts *f)
{
	const struct amounts *today = &f->today.amounts[BOUND_TARGET];
	const struct amounts *published = &i->published.amounts[BOUND_TARGET];

	if (f->throttled_minutes > i->throttled_minutes && today->known[RESOURCE_CPU] &&
		today->value[RESOURCE_CPU] >
			(published->known[RESOURCE_CPU] ? published->value[RESOURCE_CPU] : 0))
		return PUBLISH_THROTTLED;
	return PUBLISH_USAGE;
}

/* A time that lies in the future comes from a clock that was set back: it is over. */
static bool trembles(const struct publish_item *i, int64_t now_ns)
{
	int64_t since = instant_since(now_ns, i->trembled_at);

	return i->trembled_at != TIME_NONE && since >= 0 && since < PUBLISH_TREMBLES_NS;
}

static enum publish_need judge_first(
	const struct publish_item *i, const struct publish_facts *f, enum publish_reason *reason)
{
	if (f->gone || !f->ready)
		return PUBLISH_NOT;
	*reason = i->urgent ? i->urgent_reason : PUBLISH_FIRST;
	return i->urgent ? PUBLISH_NOW : PUBLISH_NEW;
}

enum publish_need publish_judge(const struct publish_item *i, const struct publish_facts *f,
	int64_t now_ns, enum publish_reason *ret_reason)
{
	enum publish_reason unused = PUBLISH_USAGE, *reason = ret_reason ? ret_reason : &unused;

	if (i->in_flight || i->refused)
		return PUBLISH_NOT;
	if (i->at == TIME_NONE)
		return judge_first(i, f, reason);
	if (f->gone) {
		*reason = i->reason;
		return PUBLISH_DUE;
	}
	if (!f->ready)
		return PUBLISH_NOT;
	if (i->urgent && says_more(i, f)) {
		*reason = i->urgent_reason;
		return PUBLISH_NOW;
	}
	*reason = why(i, f);
	if (target_differs(i, f))
		return PUBLISH_DUE;
	if (side_differs(i, f))
		return trembles(i, now_ns) ? PUBLISH_SLOW : PUBLISH_DUE;
	if (i->lost) {
		*reason = i->reason;
		return trembles(i, now_ns) ? PUBLISH_SLOW : PUBLISH_DUE;
	}
	return anything_moved(i, f) ? PUBLISH_RIDES : PUBLISH_NOT;
}

int64_t publish_round_amount(int64_t amount)
{
	int64_t step = 1;

	if (amount <= 0)
		return 0;
	if (amount >= AMOUNT_MAX)
		return AMOUNT_MAX;
	while (step * 2 <= amount / 32)
		step *= 2;
	return MIN((amount + step - 1) / step * step, AMOUNT_MAX);
}

void publish_round(struct recommendation *r)
{
	for (int b = 0; b < BOUNDS; b++)
		for (int k = 0; k < RESOURCES; k++)
			r->amounts[b].value[k] = publish_round_amount(r->amounts[b].value[k]);
}

void publish_item_sent(struct publish_item *i, const struct publish_facts *f,
	enum publish_reason reason, uint64_t hash, int64_t now_ns)
{
	i->in_flight = true;
	i->sent_withdrawn = hash == 0;
	i->sent_urgent = i->urgent;
	i->sent_trembles =
		i->at != TIME_NONE && !target_differs(i, f) && (i->lost || side_differs(i, f));
	i->sent = f->today;
	i->sent_oom_kills = f->oom_kills;
	i->sent_samples = f->samples;
	i->sent_throttled_minutes = f->throttled_minutes;
	i->sent_hash = hash;
	i->sent_reason = reason;
	i->urgent = false;
}

void publish_item_done(struct publish_item *i, int64_t at_ns)
{
	if (!i->in_flight)
		return;
	i->in_flight = false;
	i->lost = false;
	if (i->sent_withdrawn) {
		bool urgent = i->urgent;
		enum publish_reason reason = i->urgent_reason;

		publish_item_init(i);
		i->urgent = urgent;
		i->urgent_reason = reason;
		return;
	}
	i->published = i->sent;
	i->at = at_ns;
	i->oom_kills = i->sent_oom_kills;
	i->samples = i->sent_samples;
	i->throttled_minutes = i->sent_throttled_minutes;
	i->hash = i->sent_hash;
	i->reason = i->sent_reason;
	i->trembled_at = i->sent_trembles ? at_ns : TIME_NONE;
}

void publish_item_failed(struct publish_item *i)
{
	if (!i->in_flight)
		return;
	i->in_flight = false;
	/* sent_reason is what was urgent, or the lesser one when that said no more. */
	if (i->sent_urgent &&
		(i->sent_reason == PUBLISH_OOM || i->sent_reason == PUBLISH_AHEAD_OF_OOM))
		publish_item_urgent(i, i->sent_reason);
}

void publish_item_lost(struct publish_item *i)
{
	if (i->at != TIME_NONE)
		i->lost = true;
}

int publish_item_save(const struct publish_item *i, struct buf *b)
{
	bool urgent = i->urgent || (i->in_flight && i->sent_urgent);

	checkpoint_put_u8(b, PUBLISH_SAVED_VERSION);
	for (int n = 0; n < BOUNDS; n++)
		for (int r = 0; r < RESOURCES; r++) {
			checkpoint_put_u8(b, i->published.amounts[n].known[r]);
			checkpoint_put_i64(b, i->published.amounts[n].value[r]);
		}
	checkpoint_put_i64(b, i->at);
	checkpoint_put_i64(b, i->oom_kills);
	checkpoint_put_i64(b, i->samples);
	checkpoint_put_i64(b, i->throttled_minutes);
	checkpoint_put_i64(b, i->trembled_at);
	checkpoint_put_u64(b, i->hash);
	checkpoint_put_u8(b, (uint8_t)i->reason);
	checkpoint_put_u8(b, urgent);
	checkpoint_put_u8(b, (uint8_t)(i->urgent ? i->urgent_reason : i->sent_reason));
	checkpoint_put_u8(b, i->lost);
	return b->error;
}

static bool amounts_load(struct recommendation *r, struct checkpoint_cursor *c)
{
	for (int n = 0; n < BOUNDS; n++)
		for (int k = 0; k < RESOURCES; k++) {
			struct amounts *a = &r->amounts[n];

			a->known[k] = checkpoint_get_u8(c) != 0;
			a->value[k] = checkpoint_get_i64(c);
			if (a->value[k] < 0 || a->value[k] > AMOUNT_MAX)
				return false;
		}
	return true;
}

int publish_item_load(struct publish_item *i, struct str saved, struct err *e)
{
	struct checkpoint_cursor c = {.p = (const unsigned char *)saved.p, .n = saved.n};
	struct publish_item item;
	unsigned int reason, urgent_reason;

	publish_item_init(i);
	publish_item_init(&item);
	if (checkpoint_get_u8(&c) != PUBLISH_SAVED_VERSION)
		return err_set(e, EINVAL, "what was published is in a form not known here");
	if (!amounts_load(&item.published, &c))
		return err_set(e, EINVAL, "what was published holds an impossible amount");
	item.at = checkpoint_get_i64(&c);
	item.oom_kills = checkpoint_get_i64(&c);
	item.samples = checkpoint_get_i64(&c);
	item.throttled_minutes = checkpoint_get_i64(&c);
	item.trembled_at = checkpoint_get_i64(&c);
	item.hash = checkpoint_get_u64(&c);
	reason = checkpoint_get_u8(&c);
	item.urgent = checkpoint_get_u8(&c) != 0;
	urgent_reason = checkpoint_get_u8(&c);
	item.lost = checkpoint_get_u8(&c) != 0;
	if (c.failed)
		return err_set(e, EINVAL, "what was published ends too early (%zu bytes)", saved.n);
	if (reason >= PUBLISH_REASONS || urgent_reason >= PUBLISH_REASONS || item.oom_kills < 0 ||
		item.samples < 0 || item.throttled_minutes < 0)
		return err_set(e, EINVAL, "what was published holds an impossible value");
	item.reason = (enum publish_reason)reason;
	item.urgent_reason = (enum publish_reason)urgent_reason;
	*i = item;
	return 0;
}
