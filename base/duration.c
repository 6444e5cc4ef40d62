/* SPDX-License-Identifier: Apache-2.0 */
#include "base/duration.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/macros.h"

static const struct {
	struct str name;
	int64_t ns;
} units[] = {
	/* Longer names first, so that "ms" is not read as "m". */
	{{"ns", 2}, 1},
	{{"us", 2}, 1000},
	{{"\xc2\xb5s", 3}, 1000}, /* µ, the micro sign */
	{{"\xce\xbcs", 3}, 1000}, /* μ, the Greek letter */
	{{"ms", 2}, 1000000},
	{{"s", 1}, NSEC_PER_SEC},
	{{"m", 1}, 60 * NSEC_PER_SEC},
	{{"h", 1}, 3600 * NSEC_PER_SEC},
	{{"d", 1}, 24 * 3600 * NSEC_PER_SEC},
};

#define FRACTION_DIGITS_MAX 18 /* more cannot change a nanosecond and could overflow the sum */

/* One "1.5h": the number at *s and its unit; *s is advanced. */
static int term_parse(struct str *s, int64_t *ret_ns)
{
	int64_t whole = 0;
	double fraction = 0, scale = 0.1;
	size_t digits = 0;
	bool over = false;

	for (; s->n && s->p[0] >= '0' && s->p[0] <= '9'; s->p++, s->n--, digits++)
		over = over || __builtin_mul_overflow(whole, INT64_C(10), &whole) ||
		       __builtin_add_overflow(whole, (int64_t)(s->p[0] - '0'), &whole);
	if (s->n && s->p[0] == '.') {
		size_t seen = 0;
		for (s->p++, s->n--; s->n && s->p[0] >= '0' && s->p[0] <= '9';
			s->p++, s->n--, digits++) {
			if (seen++ < FRACTION_DIGITS_MAX)
				fraction += scale * (s->p[0] - '0');
			scale /= 10;
		}
	}
	if (digits == 0)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!str_starts(*s, units[i].name))
			continue;
		s->p += units[i].name.n;
		s->n -= units[i].name.n;
		if (over || __builtin_mul_overflow(whole, units[i].ns, &whole) ||
			/* Half a unit of the last place, so that 0.3s is 300000000 ns and not one
			   less. */
			__builtin_add_overflow(
				whole, (int64_t)(fraction * (double)units[i].ns + 1e-6), &whole))
			return -ERANGE;
		*ret_ns = whole;
		return 0;
	}
	return -EINVAL;
}

int duration_parse(struct str s, int64_t *ret_ns)
{
	int64_t sum = 0;

	if (str_is(s, "0")) {
		*ret_ns = 0;
		return 0;
	}
	if (s.n && s.p[0] == '+')
		s = (struct str){s.p + 1, s.n - 1};
	if (s.n == 0)
		return -EINVAL;
	while (s.n) {
		int64_t ns;
		int r = term_parse(&s, &ns);
		if (r < 0)
			return r;
		if (__builtin_add_overflow(sum, ns, &sum))
			return -ERANGE;
	}
	*ret_ns = sum;
	return 0;
}

/* v of a unit of `unit` ns with its fraction, without trailing zeros. */
static size_t fraction_format(int64_t ns, int64_t unit, const char *name, char out[32])
{
	char digits[24];
	int width = 0;

	for (int64_t u = unit; u > 1; u /= 10)
		width++;
	int n = snprintf(digits, sizeof(digits), "%0*lld", width, (long long)(ns % unit));
	while (n > 0 && digits[n - 1] == '0')
		n--;
	if (n == 0 || width == 0)
		return (size_t)snprintf(out, 32, "%lld%s", (long long)(ns / unit), name);
	return (size_t)snprintf(out, 32, "%lld.%.*s%s", (long long)(ns / unit), n, digits, name);
}

size_t duration_format(int64_t ns, char out[32])
{
	if (ns <= 0)
		return (size_t)snprintf(out, 32, "0s");
	if (ns < 1000)
		return fraction_format(ns, 1, "ns", out);
	if (ns < 1000000)
		return fraction_format(ns, 1000, "us", out);
	if (ns < NSEC_PER_SEC)
		return fraction_format(ns, 1000000, "ms", out);

	int64_t hours = ns / (3600 * NSEC_PER_SEC);
	int64_t minutes = ns / (60 * NSEC_PER_SEC) % 60;
	char seconds[32];
	(void)fraction_format(ns % (60 * NSEC_PER_SEC), NSEC_PER_SEC, "s", seconds);
	if (hours)
		return (size_t)snprintf(
			out, 32, "%lldh%lldm%.15s", (long long)hours, (long long)minutes, seconds);
	if (minutes)
		return (size_t)snprintf(out, 32, "%lldm%.15s", (long long)minutes, seconds);
	return (size_t)snprintf(out, 32, "%.31s", seconds);
}
