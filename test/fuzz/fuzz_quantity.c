// SPDX-License-Identifier: Apache-2.0
/* A quantity that parses has a canonical text, which parses back to the same value; so has a time.
 */
#include <stdint.h>
#include <stdlib.h>

#include "proto/quantity.h"
#include "proto/rfc3339.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_quantity(struct str s)
{
	struct quantity q, again;
	char text[QUANTITY_TEXT_MAX];

	if (quantity_parse(s, &q) < 0)
		return;
	size_t n = quantity_format(&q, text);
	if (quantity_parse((struct str){text, n}, &again) < 0 || again.nano != q.nano)
		abort();
	int64_t milli = quantity_milli(&q), units = quantity_units(&q);
	if (q.nano > 0 && (milli < units || units < 1))
		abort();
}

static void check_time(struct str s)
{
	int64_t ns, again;
	char text[RFC3339_TEXT_MAX];

	if (rfc3339_parse(s, &ns) < 0)
		return;
	size_t n = rfc3339_format_usec(ns, text);
	if (rfc3339_parse((struct str){text, n}, &again) < 0 || ns - again < 0 || ns - again > 999)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str s = {(const char *)data, size};

	check_quantity(s);
	check_time(s);
	struct quantity_pair pair;
	struct err e;
	(void)flag_parse_quantity_pair(s, &pair, &e);
	return 0;
}
