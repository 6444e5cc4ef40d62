/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/steps.h"

#include <string.h>

/* Many steps do not move the median much: after so many it is looked up now and then. */
#define ALWAYS_UNTIL 1024U
#define THEN_EVERY 64U

static void look_up_median(struct steps *s)
{
	uint64_t below = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		below += s->step[i].count;
		if (below * 2 >= s->count) {
			s->median = s->step[i].step;
			return;
		}
	}
}

/* The index of the step, or of the nearest one when there is no room for another. */
static uint32_t place(struct steps *s, int64_t step)
{
	uint32_t i = 0;

	while (i < s->n && s->step[i].step < step)
		i++;
	if (i < s->n && s->step[i].step == step)
		return i;
	if (s->n < STEPS_MAX) {
		memmove(&s->step[i + 1], &s->step[i], (s->n - i) * sizeof(s->step[0]));
		s->step[i].step = step;
		s->step[i].count = 0;
		s->n++;
		return i;
	}
	if (i == s->n || (i > 0 && step - s->step[i - 1].step < s->step[i].step - step))
		i--;
	return i;
}

void steps_add(struct steps *s, int64_t step)
{
	if (s->n == 0 || s->step[s->latest].step != step)
		s->latest = place(s, step);
	s->step[s->latest].count++;
	s->count++;
	if (s->count <= ALWAYS_UNTIL || s->count % THEN_EVERY == 0)
		look_up_median(s);
}
