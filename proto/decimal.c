// SPDX-License-Identifier: Apache-2.0
#include "proto/decimal.h"

#include <errno.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/macros.h"
#include "base/num.h"

/* Clinger, "How to read floating point numbers accurately" (1990): a significand below 2^53 and a
 * power of ten up to 10^22 are both exact doubles, so one multiplication or division rounds once,
 * as it should. */
int decimal_parse(struct str s, double *ret)
{
	static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10,
		1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	const char *p = s.p, *end = p + s.n, *digits;
	bool negative = false;
	uint64_t significand = 0;
	size_t n_fraction = 0;

	if (s.n == 0 || s.n > 20)
		return parse_double(s, ret);
	if (*p == '-') {
		negative = true;
		p++;
	}
	/* At most 19 digits: no overflow. */
	for (digits = p; p < end && *p >= '0' && *p <= '9'; p++)
		significand = significand * 10 + (uint64_t)(*p - '0');
	if (p == digits)
		return parse_double(s, ret);
	if (p < end && *p == '.') {
		const char *fraction = ++p;
		for (; p < end && *p >= '0' && *p <= '9'; p++)
			significand = significand * 10 + (uint64_t)(*p - '0');
		n_fraction = (size_t)(p - fraction);
		if (n_fraction == 0)
			return parse_double(s, ret);
	}
	if (p != end || significand > UINT64_C(1) << 53 || n_fraction >= ARRAY_SIZE(powers) ||
		s.n - negative > 19)
		return parse_double(s, ret);
	double v = (double)significand / powers[n_fraction];
	*ret = negative ? -v : v;
	return 0;
}

int decimal_parse_unix(struct str s, int64_t *ret_ns)
{
	const char *p = s.p, *end = p + s.n;
	bool negative = s.n > 0 && *p == '-';
	int64_t seconds = 0, ns = 0, unit = NSEC_PER_SEC;

	p += negative;
	const char *digits = p;
	for (; p < end && *p >= '0' && *p <= '9'; p++) {
		if (seconds > INT64_MAX / NSEC_PER_SEC)
			seconds = INT64_MAX / NSEC_PER_SEC; /* out of range for good; goes on to see
							       whether it is a number */
		else
			seconds = seconds * 10 + (*p - '0');
	}
	if (p == digits)
		return -EINVAL;
	if (p < end && *p == '.') {
		const char *fraction = ++p;
		for (; p < end && *p >= '0' && *p <= '9'; p++) {
			unit /= 10;
			ns += unit * (*p - '0');
		}
		if (p == fraction)
			return -EINVAL;
	}
	if (p != end)
		return -EINVAL;
	if (seconds >= INT64_MAX / NSEC_PER_SEC)
		return -ERANGE;
	ns += seconds * NSEC_PER_SEC;
	*ret_ns = negative ? -ns : ns;
	return 0;
}
