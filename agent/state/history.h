/* SPDX-License-Identifier: Apache-2.0 */
/* The last day of a workload, to be looked at: usage, request, target, throttling, OOM kills over
 * time. Nothing is decided by it and it is not saved. Two rings: minutes for the last two hours
 * (what just happened), ten minutes for the last day (a page is a few hundred pixels wide). Amounts
 * are kept as 16-bit floats, exact to 1/2048: a curve cannot show more, and a workload's day
 * costs 4.8 KB, so 30 of them 140 KB where plain numbers would take half a megabyte. What was not
 * measured is a gap, never a zero. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "rules/amount.h"

#define HISTORY_MINUTES 120U /* points of one minute */
#define HISTORY_TENS 144U    /* points of ten minutes */

/* 6 bits of exponent, 10 of fraction: 0, then 2^-12 to 2^51 with 11 significant bits. */
typedef uint16_t amount16;
#define AMOUNT16_NONE UINT16_MAX
amount16 amount16_of(double amount); /* below 0, NaN: AMOUNT16_NONE; rounded to nearest */
double amount16_value(amount16 a);   /* AMOUNT16_NONE: NAN */

struct history_point {
	amount16 mean[RESOURCES], max[RESOURCES]; /* millicores, bytes (working set) */
	amount16 request[RESOURCES], target[RESOURCES];
	uint8_t throttled; /* highest share of throttled periods, in 1/200; UINT8_MAX: no quota */
	uint8_t oom_kills; /* stops at 255 */
};

/* A point that is still being made. */
struct history_open {
	double sum[RESOURCES], max[RESOURCES];
	uint32_t n[RESOURCES];
	double throttled; /* NAN: none */
	uint32_t oom_kills;
};

struct history_ring {
	int64_t slot;  /* of the open point: wall time divided by the ring's step */
	uint16_t head; /* where the open point will be stored */
	uint16_t n;    /* stored; older slots were never lived through, or are forgotten */
	struct history_open open;
};

struct history {
	bool started;
	amount16 request[RESOURCES], target[RESOURCES]; /* as last told */
	struct history_ring ring[2];                    /* minutes, tens */
	struct history_point minutes[HISTORY_MINUTES];
	struct history_point tens[HISTORY_TENS];
};

struct history_sample {
	double millicores;        /* NAN: not measured */
	double working_set_bytes; /* NAN: not measured */
	double throttled_share;   /* of the last closed window's periods; NAN: no quota */
};

void history_init(struct history *h);
/* One round's readings, at wall time. Several containers of one workload each add theirs. A time
 * before the last one is the clock having been set back: points that lie in the future by it are
 * dropped. */
void history_add(struct history *h, int64_t now_ns, const struct history_sample *s);
/* What is requested and what would be the target from now on. */
void history_levels(struct history *h, const struct amounts *request, const struct amounts *target);
void history_oom(struct history *h, int64_t now_ns);
/* The wall clock was set by that much: what is kept moves along, so that it stays as long ago as it
 * was. */
void history_shift(struct history *h, int64_t by_ns);

/* One point as read back. NAN: not known. */
struct history_row {
	int64_t at_ns; /* its beginning */
	uint32_t step_seconds;
	double mean[RESOURCES], max[RESOURCES], request[RESOURCES], target[RESOURCES];
	double throttled_share;
	uint32_t oom_kills;
};
/* Rows from wall time `from_ns` on, oldest first: tens as far as minutes do not reach, then
 * minutes, then the open one. Gaps between are rows of NAN. Start with *cursor = 0; false: no more.
 */
bool history_next(
	const struct history *h, int64_t from_ns, unsigned int *cursor, struct history_row *ret);
