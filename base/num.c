/* SPDX-License-Identifier: Apache-2.0 */
#include "base/num.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

int parse_u64(struct str s, uint64_t *ret)
{
	uint64_t v = 0;
	bool over = false;

	if (s.n == 0)
		return -EINVAL;
	for (size_t i = 0; i < s.n; i++) {
		unsigned int d = (unsigned int)(unsigned char)s.p[i] - '0';
		if (d > 9)
			return -EINVAL;
		over = over || __builtin_mul_overflow(v, UINT64_C(10), &v) ||
		       __builtin_add_overflow(v, (uint64_t)d, &v);
	}
	if (over)
		return -ERANGE;
	*ret = v;
	return 0;
}

int parse_i64(struct str s, int64_t *ret)
{
	uint64_t v;
	bool negative = s.n && s.p[0] == '-';

	if (s.n && (s.p[0] == '-' || s.p[0] == '+'))
		s = (struct str){s.p + 1, s.n - 1};
	int r = parse_u64(s, &v);
	if (r < 0)
		return r;
	if (v > (uint64_t)INT64_MAX + (negative ? 1 : 0))
		return -ERANGE;
	*ret = negative ? (int64_t)(0 - v) : (int64_t)v;
	return 0;
}

static size_t digits_at(struct str s, size_t i)
{
	size_t from = i;

	while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9')
		i++;
	return i - from;
}

/* [+-] digits [. digits] [e [+-] digits], with at least one digit before the exponent. */
static bool is_decimal(struct str s)
{
	size_t i = s.n && (s.p[0] == '+' || s.p[0] == '-') ? 1 : 0;
	size_t whole = digits_at(s, i);
	size_t part = 0;

	i += whole;
	if (i < s.n && s.p[i] == '.') {
		i++;
		part = digits_at(s, i);
		i += part;
	}
	if (whole + part == 0)
		return false;
	if (i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
		i++;
		if (i < s.n && (s.p[i] == '+' || s.p[i] == '-'))
			i++;
		size_t exponent = digits_at(s, i);
		if (exponent == 0)
			return false;
		i += exponent;
	}
	return i == s.n;
}

#define DOUBLE_TEXT_MAX 512

int parse_double(struct str s, double *ret)
{
	char text[DOUBLE_TEXT_MAX + 1];

	/* strtod would take blanks, hexadecimal and "inf", so the shape is checked first. The
	 * programs never call setlocale, so its decimal point is '.'. */
	if (s.n > DOUBLE_TEXT_MAX || !is_decimal(s))
		return -EINVAL;
	memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	double v = strtod(text, NULL);
	if (!isfinite(v))
		return -ERANGE;
	*ret = v;
	return 0;
}

uint64_t u64_add_sat(uint64_t a, uint64_t b)
{
	uint64_t v;

	return __builtin_add_overflow(a, b, &v) ? UINT64_MAX : v;
}

int64_t i64_add_sat(int64_t a, int64_t b)
{
	int64_t v;

	if (!__builtin_add_overflow(a, b, &v))
		return v;
	return a < 0 ? INT64_MIN : INT64_MAX;
}

int64_t i64_mul_sat(int64_t a, int64_t b)
{
	int64_t v;

	if (!__builtin_mul_overflow(a, b, &v))
		return v;
	return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

size_t format_double(double v, char out[32])
{
	int n = 0;

	if (!isfinite(v))
		return (size_t)snprintf(out, 32, "null");
	for (int precision = 15; precision <= 17; precision++) {
		n = snprintf(out, 32, "%.*g", precision, v);
		if (strtod(out, NULL) == v)
			break;
	}
	return (size_t)n;
}
