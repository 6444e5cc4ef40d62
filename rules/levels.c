/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/levels.h"

#include <math.h>

#define RATIO 1.01

/* Widths of the first level: millicores, bytes. */
static const double first_width[RESOURCES] = {1, 65536};

void levels_init(struct levels *l, enum resource resource)
{
	*l = (struct levels){.resource = resource};
}

void levels_add(struct levels *l, double usage, double minutes)
{
	double level = log1p(usage * (RATIO - 1) / first_width[l->resource]) / log(RATIO);

	l->highest = fmax(l->highest, usage);
	l->minutes[level < LEVELS_MAX - 1 ? (unsigned int)level : LEVELS_MAX - 1] += (float)minutes;
}

void levels_merge(struct levels *l, const struct levels *o)
{
	l->highest = fmax(l->highest, o->highest);
	for (unsigned int i = 0; i < LEVELS_MAX; i++)
		l->minutes[i] += o->minutes[i];
}

int64_t levels_covering(const struct levels *l, unsigned int i)
{
	double edge = first_width[l->resource] * (pow(RATIO, i + 1) - 1) / (RATIO - 1);

	return amount_from_double(ceil(i < LEVELS_MAX - 1 ? fmin(edge, l->highest) : l->highest));
}
