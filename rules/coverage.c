/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/coverage.h"

#include <errno.h>
#include <math.h>

#include "base/macros.h"
#include "base/num.h"
#include "proto/checkpoint.h"

#define COVERAGE_SAVED_VERSION 1U

void coverage_init(struct coverage *c)
{
	*c = (struct coverage){0};
}

static void add(struct coverage_sum *s, uint64_t duration_usec, bool above)
{
	s->counted_usec = u64_add_sat(s->counted_usec, duration_usec);
	if (above)
		s->above_usec = u64_add_sat(s->above_usec, duration_usec);
}

void coverage_add(struct coverage *c, enum resource resource, uint64_t duration_usec, double usage,
	const struct amounts *published_target, const struct amounts *request)
{
	const struct amounts *lines[COVERAGE_LINES] = {
		[COVERAGE_TARGET] = published_target,
		[COVERAGE_REQUEST] = request,
	};

	if (!(usage >= 0))
		return;
	for (int l = 0; l < COVERAGE_LINES; l++)
		if (lines[l] && lines[l]->known[resource])
			add(&c->sum[l][resource], MIN(duration_usec, COVERAGE_GAP_MAX_USEC),
				usage > (double)lines[l]->value[resource]);
}

double coverage_share(const struct coverage *c, enum coverage_line line, enum resource resource)
{
	const struct coverage_sum *s = &c->sum[line][resource];

	if (s->counted_usec == 0)
		return NAN;
	return (double)(s->counted_usec - s->above_usec) / (double)s->counted_usec;
}

double coverage_share_rounded(
	const struct coverage *c, enum coverage_line line, enum resource resource)
{
	const struct coverage_sum *s = &c->sum[line][resource];
	unsigned __int128 within = s->counted_usec - s->above_usec;

	if (s->counted_usec == 0)
		return NAN;
	return (double)(uint64_t)(within * 1000 / s->counted_usec) / 1000;
}

double coverage_above_seconds(
	const struct coverage *c, enum coverage_line line, enum resource resource)
{
	return (double)c->sum[line][resource].above_usec / 1e6;
}

int coverage_save(const struct coverage *c, struct buf *b)
{
	checkpoint_put_u8(b, COVERAGE_SAVED_VERSION);
	for (int l = 0; l < COVERAGE_LINES; l++)
		for (int r = 0; r < RESOURCES; r++) {
			checkpoint_put_u64(b, c->sum[l][r].counted_usec);
			checkpoint_put_u64(b, c->sum[l][r].above_usec);
		}
	return b->error;
}

int coverage_load(struct coverage *c, struct str saved, struct err *e)
{
	struct checkpoint_cursor cursor = {.p = (const unsigned char *)saved.p, .n = saved.n};
	struct coverage loaded = {0};

	coverage_init(c);
	if (checkpoint_get_u8(&cursor) != COVERAGE_SAVED_VERSION)
		return err_set(e, EINVAL, "the coverage is in a form not known here");
	for (int l = 0; l < COVERAGE_LINES; l++)
		for (int r = 0; r < RESOURCES; r++) {
			struct coverage_sum *s = &loaded.sum[l][r];

			s->counted_usec = checkpoint_get_u64(&cursor);
			s->above_usec = checkpoint_get_u64(&cursor);
			if (s->above_usec > s->counted_usec)
				return err_set(e, EINVAL,
					"the coverage holds more time above a line than time");
		}
	if (cursor.failed)
		return err_set(e, EINVAL, "the coverage ends too early (%zu bytes)", saved.n);
	*c = loaded;
	return 0;
}
