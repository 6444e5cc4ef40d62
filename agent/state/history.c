/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

#define NSEC INT64_C(1000000000)
#define BIAS 12 /* the smallest exponent is -BIAS */
#define FRACTION_BITS 10
#define THROTTLED_STEPS 200.0

/* What differs between the two rings. */
struct shape {
	int64_t step_ns;
	uint16_t size;
};
static const struct shape shapes[] = {
	{60 * NSEC, HISTORY_MINUTES},
	{600 * NSEC, HISTORY_TENS},
};
#define RINGS ARRAY_SIZE(shapes)
#define MINUTES 0
#define TENS 1

amount16 amount16_of(double amount)
{
	int exponent;
	double mantissa, fraction;
	long code;

	if (!(amount >= 0))
		return AMOUNT16_NONE;
	mantissa = frexp(amount, &exponent); /* in [0.5, 1) */
	if (!isfinite(amount) || exponent > 52)
		return AMOUNT16_NONE - 1;
	if (amount == 0 || exponent - 1 < -BIAS)
		return 0;
	fraction = rint((mantissa * 2 - 1) * (1 << FRACTION_BITS));
	/* A fraction rounded up to 1 carries into the exponent by itself. */
	code = ((long)(exponent - 1 + BIAS) << FRACTION_BITS) + (long)fraction;
	return (amount16)MIN(code, (long)AMOUNT16_NONE - 1);
}

double amount16_value(amount16 a)
{
	int exponent = a >> FRACTION_BITS;
	int fraction = a & ((1 << FRACTION_BITS) - 1);

	if (a == AMOUNT16_NONE)
		return NAN;
	if (a == 0)
		return 0;
	return ldexp(1 + (double)fraction / (1 << FRACTION_BITS), exponent - BIAS);
}

static struct history_point *points(const struct history *h, unsigned int ring)
{
	return (struct history_point *)(ring == MINUTES ? h->minutes : h->tens);
}

static void open_clear(struct history_open *o)
{
	*o = (struct history_open){.throttled = NAN};
}

void history_init(struct history *h)
{
	memset(h, 0, sizeof(*h));
	for (unsigned int i = 0; i < RINGS; i++)
		open_clear(&h->ring[i].open);
	for (unsigned int r = 0; r < RESOURCES; r++)
		h->request[r] = h->target[r] = AMOUNT16_NONE;
}

static struct history_point point_of(const struct history *h, const struct history_open *o)
{
	struct history_point p = {.throttled = UINT8_MAX};

	for (unsigned int r = 0; r < RESOURCES; r++) {
		p.mean[r] = o->n[r] ? amount16_of(o->sum[r] / o->n[r]) : AMOUNT16_NONE;
		p.max[r] = o->n[r] ? amount16_of(o->max[r]) : AMOUNT16_NONE;
		p.request[r] = h->request[r];
		p.target[r] = h->target[r];
	}
	if (!isnan(o->throttled))
		p.throttled = (uint8_t)rint(MIN(MAX(o->throttled, 0.0), 1.0) * THROTTLED_STEPS);
	p.oom_kills = (uint8_t)MIN(o->oom_kills, (uint32_t)UINT8_MAX);
	return p;
}

static const struct history_point gap = {
	.mean = {AMOUNT16_NONE, AMOUNT16_NONE},
	.max = {AMOUNT16_NONE, AMOUNT16_NONE},
	.request = {AMOUNT16_NONE, AMOUNT16_NONE},
	.target = {AMOUNT16_NONE, AMOUNT16_NONE},
	.throttled = UINT8_MAX,
};

static void push(struct history *h, unsigned int ring, const struct history_point *p)
{
	struct history_ring *g = &h->ring[ring];

	points(h, ring)[g->head] = *p;
	g->head = (uint16_t)((g->head + 1U) % shapes[ring].size);
	if (g->n < shapes[ring].size)
		g->n++;
}

/* Makes the slot of now the open one. */
static void advance(struct history *h, unsigned int ring, int64_t slot)
{
	struct history_ring *g = &h->ring[ring];
	int64_t size = shapes[ring].size;
	int64_t back = g->slot - slot;

	if (back > 0) {
		/* One slot may be rounding of a shift: then it still counts for the open point. */
		if (back == 1)
			return;
		back = MIN(back, (int64_t)g->n);
		g->n = (uint16_t)(g->n - back);
		g->head = (uint16_t)((g->head + size - back) % size);
	} else if (back < 0) {
		struct history_point p = point_of(h, &g->open);

		push(h, ring, &p);
		for (int64_t missed = MIN(-back - 1, size); missed > 0; missed--)
			push(h, ring, &gap);
	} else {
		return;
	}
	open_clear(&g->open);
	g->slot = slot;
}

static void advance_all(struct history *h, int64_t now_ns)
{
	for (unsigned int i = 0; i < RINGS; i++) {
		int64_t step = shapes[i].step_ns;
		int64_t slot = now_ns / step - (now_ns % step < 0);

		if (!h->started)
			h->ring[i].slot = slot;
		else
			advance(h, i, slot);
	}
	h->started = true;
}

static void open_add(struct history_open *o, enum resource r, double value)
{
	if (!(value >= 0))
		return;
	o->max[r] = o->n[r] ? MAX(o->max[r], value) : value;
	o->sum[r] += value;
	o->n[r]++;
}

void history_add(struct history *h, int64_t now_ns, const struct history_sample *s)
{
	advance_all(h, now_ns);
	for (unsigned int i = 0; i < RINGS; i++) {
		struct history_open *o = &h->ring[i].open;

		open_add(o, RESOURCE_CPU, s->millicores);
		open_add(o, RESOURCE_MEMORY, s->working_set_bytes);
		if (s->throttled_share >= 0)
			o->throttled =
				fmax(o->throttled, s->throttled_share); /* of NAN: the other */
	}
}

void history_levels(struct history *h, const struct amounts *request, const struct amounts *target)
{
	for (unsigned int r = 0; r < RESOURCES; r++) {
		h->request[r] =
			request->known[r] ? amount16_of((double)request->value[r]) : AMOUNT16_NONE;
		h->target[r] =
			target->known[r] ? amount16_of((double)target->value[r]) : AMOUNT16_NONE;
	}
}

void history_oom(struct history *h, int64_t now_ns)
{
	advance_all(h, now_ns);
	for (unsigned int i = 0; i < RINGS; i++)
		h->ring[i].open.oom_kills++;
}

void history_shift(struct history *h, int64_t by_ns)
{
	for (unsigned int i = 0; i < RINGS && h->started; i++) {
		int64_t step = shapes[i].step_ns;
		int64_t steps = by_ns / step;

		if (llabs(by_ns % step) * 2 >= step)
			steps += by_ns < 0 ? -1 : 1;
		h->ring[i].slot += steps;
	}
}

static void row_of(const struct history_point *p, struct history_row *ret)
{
	for (unsigned int r = 0; r < RESOURCES; r++) {
		ret->mean[r] = amount16_value(p->mean[r]);
		ret->max[r] = amount16_value(p->max[r]);
		ret->request[r] = amount16_value(p->request[r]);
		ret->target[r] = amount16_value(p->target[r]);
	}
	ret->throttled_share =
		p->throttled == UINT8_MAX ? (double)NAN : p->throttled / THROTTLED_STEPS;
	ret->oom_kills = p->oom_kills;
}

/* The i-th oldest of a ring's points; the open one is the last. */
static void ring_row(
	const struct history *h, unsigned int ring, unsigned int i, struct history_row *ret)
{
	const struct history_ring *g = &h->ring[ring];
	unsigned int size = shapes[ring].size;

	ret->at_ns = (g->slot - (int64_t)(g->n - i)) * shapes[ring].step_ns;
	ret->step_seconds = (uint32_t)(shapes[ring].step_ns / NSEC);
	if (i == g->n) {
		struct history_point p = point_of(h, &g->open);
		row_of(&p, ret);
	} else {
		row_of(&points(h, ring)[(g->head + size - g->n + i) % size], ret);
	}
}

/* Before this instant the tens are shown, from it on the minutes. */
static int64_t seam_of(const struct history *h)
{
	const struct history_ring *tens = &h->ring[TENS], *minutes = &h->ring[MINUTES];
	int64_t ten = shapes[TENS].step_ns;
	int64_t minutes_from = (minutes->slot - minutes->n) * shapes[MINUTES].step_ns;
	int64_t slot = minutes_from / ten + (minutes_from % ten > 0);

	/* As long as nothing was forgotten, the minutes have it all. */
	if ((tens->slot - tens->n + 1) * ten > minutes_from)
		return INT64_MIN;
	return slot * ten;
}

bool history_next(
	const struct history *h, int64_t from_ns, unsigned int *cursor, struct history_row *ret)
{
	unsigned int tens = h->ring[TENS].n + 1U, minutes = h->ring[MINUTES].n + 1U;
	int64_t seam = seam_of(h);

	if (!h->started)
		return false;
	while (*cursor < tens + minutes) {
		unsigned int i = (*cursor)++;
		struct history_row row;

		if (i < tens)
			ring_row(h, TENS, i, &row);
		else
			ring_row(h, MINUTES, i - tens, &row);
		if ((i < tens) == (row.at_ns < seam) &&
			row.at_ns + row.step_seconds * NSEC > from_ns) {
			*ret = row;
			return true;
		}
	}
	return false;
}
