// SPDX-License-Identifier: Apache-2.0
#include "proto/rfc3339.h"

#include <errno.h>
#include <stdbool.h>

#include "base/clock.h"

#define SECONDS_PER_DAY INT64_C(86400)

/* Days since 1970-01-01 of the proleptic Gregorian calendar, counting years from March so that the
 * leap day is the year's last. */
static int64_t days_of_date(int year, int month, int day)
{
	int64_t y = month <= 2 ? year - 1 : year;
	int64_t month_from_march = (month + 9) % 12;
	int64_t day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
	/* 719468 days from 0000-03-01 to 1970-01-01; y is never negative but for January and
	 * February of year 0. */
	int64_t leap_days = y >= 0 ? y / 4 - y / 100 + y / 400 : -1;
	return y * 365 + leap_days + day_of_year - 719468;
}

static void date_of_days(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
	days += 719468;
	int64_t era = days / 146097, rest = days % 146097;
	int64_t year_of_era = (rest - rest / 1460 + rest / 36524 - rest / 146096) / 365;
	int64_t day_of_year = rest - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t month_from_march = (5 * day_of_year + 2) / 153;

	*ret_day = (int)(day_of_year - (153 * month_from_march + 2) / 5 + 1);
	*ret_month = (int)(month_from_march < 10 ? month_from_march + 3 : month_from_march - 9);
	*ret_year = (int)(year_of_era + era * 400 + (*ret_month <= 2));
}

static int days_in_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return days[month - 1] + (month == 2 && leap);
}

/* n digits and the character after them (0: none). Returns -1 when they are not there. */
static int take_number(struct str *s, size_t n, char after)
{
	int v = 0;

	if (s->n < n + (after != 0))
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (s->p[i] < '0' || s->p[i] > '9')
			return -1;
		v = v * 10 + (s->p[i] - '0');
	}
	if (after && s->p[n] != after)
		return -1;
	*s = (struct str){s->p + n + (after != 0), s->n - n - (after != 0)};
	return v;
}

static int take_fraction(struct str *s, int64_t *ret_ns)
{
	int64_t ns = 0, unit = NSEC_PER_SEC;
	size_t i = 1;

	*ret_ns = 0;
	if (s->n == 0 || s->p[0] != '.')
		return 0;
	for (; i < s->n && s->p[i] >= '0' && s->p[i] <= '9'; i++) {
		unit /= 10;
		ns += unit * (s->p[i] - '0');
	}
	if (i == 1)
		return -EINVAL;
	*ret_ns = ns;
	*s = (struct str){s->p + i, s->n - i};
	return 0;
}

/* Z, or ±hh:mm; the whole rest. */
static int take_offset(struct str s, int *ret_seconds)
{
	if (s.n == 1 && (s.p[0] == 'Z' || s.p[0] == 'z')) {
		*ret_seconds = 0;
		return 0;
	}
	if (s.n != 6 || (s.p[0] != '+' && s.p[0] != '-'))
		return -EINVAL;
	struct str rest = {s.p + 1, s.n - 1};
	int hours = take_number(&rest, 2, ':');
	int minutes = hours < 0 ? -1 : take_number(&rest, 2, 0);
	if (minutes < 0 || hours > 23 || minutes > 59)
		return -EINVAL;
	*ret_seconds = (hours * 3600 + minutes * 60) * (s.p[0] == '-' ? -1 : 1);
	return 0;
}

struct civil {
	int year, month, day, hour, minute, second;
};

static int take_civil(struct str *s, struct civil *c)
{
	if ((c->year = take_number(s, 4, '-')) < 0 || (c->month = take_number(s, 2, '-')) < 0 ||
		(c->day = take_number(s, 2, 0)) < 0)
		return -EINVAL;
	if (s->n == 0 || (s->p[0] != 'T' && s->p[0] != 't' && s->p[0] != ' '))
		return -EINVAL;
	*s = (struct str){s->p + 1, s->n - 1};
	if ((c->hour = take_number(s, 2, ':')) < 0 || (c->minute = take_number(s, 2, ':')) < 0 ||
		(c->second = take_number(s, 2, 0)) < 0)
		return -EINVAL;
	if (c->month < 1 || c->month > 12 || c->day < 1 ||
		c->day > days_in_month(c->year, c->month) || c->hour > 23 || c->minute > 59 ||
		c->second > 60)
		return -EINVAL;
	return 0;
}

/* True if the second before this one (a first second of a day, UTC) may be a leap second: the day
 * is a month's first. */
static bool after_end_of_month(int64_t seconds)
{
	int year, month, day;

	if (seconds % SECONDS_PER_DAY != 0)
		return false;
	date_of_days(seconds / SECONDS_PER_DAY, &year, &month, &day);
	return day == 1;
}

int rfc3339_parse(struct str s, int64_t *ret_ns)
{
	struct civil c;
	int64_t fraction_ns, ns;
	int offset;

	if (take_civil(&s, &c) < 0 || take_fraction(&s, &fraction_ns) < 0 ||
		take_offset(s, &offset) < 0)
		return -EINVAL;
	int64_t seconds = days_of_date(c.year, c.month, c.day) * SECONDS_PER_DAY + c.hour * 3600 +
			  c.minute * 60 + c.second - offset;
	if (c.second == 60) {
		if (seconds < 0 || !after_end_of_month(seconds))
			return -EINVAL;
		fraction_ns = 0;
	}
	/* TIME_NONE itself is not a time; one second less at both ends keeps the sum simple. */
	if (seconds < INT64_MIN / NSEC_PER_SEC || seconds >= INT64_MAX / NSEC_PER_SEC)
		return -ERANGE;
	ns = seconds * NSEC_PER_SEC + fraction_ns;
	*ret_ns = ns;
	return 0;
}

static char *put_number(char *p, int v, int digits)
{
	for (int i = digits - 1; i >= 0; i--, v /= 10)
		p[i] = (char)('0' + v % 10);
	return p + digits;
}

static char *put_date_time(char *p, int64_t seconds)
{
	int year, month, day;
	/* Every int64 of nanoseconds is later than 1600-03-01 (day -135080): with that added,
	 * division rounds down. */
	int64_t since_1600 = seconds + 135080 * SECONDS_PER_DAY;
	int second_of_day = (int)(since_1600 % SECONDS_PER_DAY);

	date_of_days(since_1600 / SECONDS_PER_DAY - 135080, &year, &month, &day);
	p = put_number(p, year, 4);
	*p++ = '-';
	p = put_number(p, month, 2);
	*p++ = '-';
	p = put_number(p, day, 2);
	*p++ = 'T';
	p = put_number(p, second_of_day / 3600, 2);
	*p++ = ':';
	p = put_number(p, second_of_day / 60 % 60, 2);
	*p++ = ':';
	return put_number(p, second_of_day % 60, 2);
}

static size_t format(int64_t ns, bool usec, char out[RFC3339_TEXT_MAX])
{
	char *p = out;

	if (ns != TIME_NONE) {
		int64_t rest = ns % NSEC_PER_SEC, seconds = ns / NSEC_PER_SEC;
		if (rest < 0) {
			rest += NSEC_PER_SEC;
			seconds--;
		}
		p = put_date_time(p, seconds);
		if (usec) {
			*p++ = '.';
			p = put_number(p, (int)(rest / NSEC_PER_USEC), 6);
		}
		*p++ = 'Z';
	}
	*p = '\0';
	return (size_t)(p - out);
}

size_t rfc3339_format(int64_t ns, char out[RFC3339_TEXT_MAX])
{
	return format(ns, false, out);
}

size_t rfc3339_format_usec(int64_t ns, char out[RFC3339_TEXT_MAX])
{
	return format(ns, true, out);
}
