// SPDX-License-Identifier: Apache-2.0
#include "proto/quantity.h"

#include <errno.h>
#include <stdbool.h>

#define NANO ((__int128)1000000000)
#define NANO_MAX ((__int128)INT64_MAX * NANO)
/* Digits that are computed with exactly; further ones only tell that the value is not exact. */
#define DIGITS_MAX 96
#define LIMBS 16 /* 512 bits: DIGITS_MAX digits (319 bits) times 1024^6 and 10^9 */

/* A natural number, little endian, just large enough for what a quantity's text can ask for. */
struct natural {
	uint32_t limb[LIMBS];
};

static void natural_multiply_add(struct natural *a, uint32_t factor, uint32_t add)
{
	uint64_t carry = add;
	for (size_t i = 0; i < LIMBS; i++) {
		carry += (uint64_t)a->limb[i] * factor;
		a->limb[i] = (uint32_t)carry;
		carry >>= 32;
	}
}

/* Returns the remainder. */
static uint32_t natural_divide(struct natural *a, uint32_t divisor)
{
	uint64_t rest = 0;
	for (size_t i = LIMBS; i-- > 0;) {
		rest = rest << 32 | a->limb[i];
		a->limb[i] = (uint32_t)(rest / divisor);
		rest %= divisor;
	}
	return (uint32_t)rest;
}

/* The value, or limit when it is larger. limit < 2^96. */
static __int128 natural_value(const struct natural *a, __int128 limit)
{
	for (size_t i = 3; i < LIMBS; i++)
		if (a->limb[i])
			return limit;
	__int128 v = (__int128)a->limb[2] << 64 | (__int128)a->limb[1] << 32 | a->limb[0];
	return v > limit ? limit : v;
}

/* A text taken apart: 0.DIGITS… as an integer of n_digits digits times 10^exponent times
 * 1024^binary. */
struct parts {
	struct natural mantissa;
	int n_digits; /* of the mantissa, without leading zeros */
	int64_t exponent;
	unsigned int binary;
	bool negative;
	bool inexact; /* non-zero digits beyond DIGITS_MAX */
	enum quantity_format format;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static void parts_add_digit(struct parts *p, char c, bool fraction)
{
	if (p->n_digits == 0 && c == '0') {
		p->exponent -= fraction;
	} else if (p->n_digits < DIGITS_MAX) {
		natural_multiply_add(&p->mantissa, 10, (uint32_t)(c - '0'));
		p->n_digits++;
		p->exponent -= fraction;
	} else {
		p->inexact |= c != '0';
		p->exponent += !fraction;
	}
}

/* [sign] digits [. digits]; at least one digit. Returns what is left: the suffix. */
static int parse_number(struct str s, struct parts *p, struct str *ret_suffix)
{
	size_t i = 0, n_digits = 0;

	if (i < s.n && (s.p[i] == '+' || s.p[i] == '-'))
		p->negative = s.p[i++] == '-';
	for (; i < s.n && is_digit(s.p[i]); i++, n_digits++)
		parts_add_digit(p, s.p[i], false);
	if (i < s.n && s.p[i] == '.')
		for (i++; i < s.n && is_digit(s.p[i]); i++, n_digits++)
			parts_add_digit(p, s.p[i], true);
	if (n_digits == 0)
		return -EINVAL;
	*ret_suffix = (struct str){s.p + i, s.n - i};
	return 0;
}

/* e or E, and an integer. A huge exponent is as good as a large one: it is cut, not wrapped. */
static int parse_exponent(struct str s, struct parts *p)
{
	const int64_t enough = 1000000;
	int64_t v = 0;
	size_t i = 1;

	bool negative = s.p[i] == '-';
	if (s.p[i] == '+' || s.p[i] == '-')
		i++;
	if (i == s.n)
		return -EINVAL;
	for (; i < s.n; i++) {
		if (!is_digit(s.p[i]))
			return -EINVAL;
		v = v * 10 + (s.p[i] - '0');
		v = v > enough ? enough : v;
	}
	p->exponent += negative ? -v : v;
	p->format = QUANTITY_DECIMAL_EXPONENT;
	return 0;
}

static int parse_suffix(struct str s, struct parts *p)
{
	static const struct {
		char suffix[3];
		int8_t exponent;
		uint8_t binary;
	} suffixes[] = {
		{"n", -9, 0},
		{"u", -6, 0},
		{"m", -3, 0},
		{"k", 3, 0},
		{"M", 6, 0},
		{"G", 9, 0},
		{"T", 12, 0},
		{"P", 15, 0},
		{"E", 18, 0},
		{"Ki", 0, 1},
		{"Mi", 0, 2},
		{"Gi", 0, 3},
		{"Ti", 0, 4},
		{"Pi", 0, 5},
		{"Ei", 0, 6},
	};

	p->format = QUANTITY_DECIMAL_SI;
	if (s.n == 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (str_is(s, suffixes[i].suffix)) {
			p->exponent += suffixes[i].exponent;
			p->binary = suffixes[i].binary;
			if (p->binary)
				p->format = QUANTITY_BINARY_SI;
			return 0;
		}
	if (s.n > 1 && (s.p[0] == 'e' || s.p[0] == 'E'))
		return parse_exponent(s, p);
	return -EINVAL;
}

/* |value| in nano-units, rounded up, at most NANO_MAX. */
static __int128 parts_nano(struct parts *p)
{
	int64_t exponent = p->exponent + 9;

	if (p->n_digits == 0)
		return 0;
	/* 10^(n_digits-1+exponent) or more: beyond 10^30 there is nothing to compute, nor below
	 * 10^-60 (1024^6 < 10^19). */
	if (p->n_digits + exponent > 30)
		return NANO_MAX;
	if (p->n_digits + exponent < -60)
		return 1;
	for (unsigned int i = 0; i < p->binary; i++)
		natural_multiply_add(&p->mantissa, 1024, 0);
	for (; exponent > 0; exponent--)
		natural_multiply_add(&p->mantissa, 10, 0);
	bool inexact = p->inexact;
	for (; exponent <= -9; exponent += 9)
		inexact |= natural_divide(&p->mantissa, 1000000000) != 0;
	for (; exponent < 0; exponent++)
		inexact |= natural_divide(&p->mantissa, 10) != 0;
	__int128 nano = natural_value(&p->mantissa, NANO_MAX);
	return inexact && nano < NANO_MAX ? nano + 1 : nano;
}

int quantity_parse(struct str s, struct quantity *ret)
{
	struct parts p = {0};
	struct str suffix;

	if (s.n > QUANTITY_INPUT_MAX)
		return -EINVAL;
	int r = parse_number(s, &p, &suffix);
	if (r < 0)
		return r;
	r = parse_suffix(suffix, &p);
	if (r < 0)
		return r;
	__int128 nano = parts_nano(&p);
	*ret = (struct quantity){.nano = p.negative ? -nano : nano, .format = p.format};
	return 0;
}

/* Away from zero. */
static int64_t round_up(__int128 nano, __int128 unit)
{
	__int128 v = nano / unit;
	if (nano % unit)
		v += nano < 0 ? -1 : 1;
	if (v > INT64_MAX)
		return INT64_MAX;
	return v < -(__int128)INT64_MAX ? -INT64_MAX : (int64_t)v;
}

int64_t quantity_milli(const struct quantity *q)
{
	return round_up(q->nano, NANO / 1000);
}

int64_t quantity_units(const struct quantity *q)
{
	return round_up(q->nano, NANO);
}

static size_t write_number(
	bool negative, unsigned __int128 v, const char *suffix, char out[QUANTITY_TEXT_MAX])
{
	char digits[40];
	size_t n = 0, length = 0;

	do {
		digits[n++] = (char)('0' + (int)(v % 10));
		v /= 10;
	} while (v);
	if (negative)
		out[length++] = '-';
	while (n > 0)
		out[length++] = digits[--n];
	n = strlen(suffix);
	memcpy(out + length, suffix, n + 1);
	return length + n;
}

size_t quantity_format(const struct quantity *q, char out[QUANTITY_TEXT_MAX])
{
	static const char si[][2] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
	static const char exponents[][4] = {
		"e-9", "e-6", "e-3", "", "e3", "e6", "e9", "e12", "e15", "e18"};
	static const char binary[][3] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
	bool negative = q->nano < 0;
	unsigned __int128 v = negative ? (unsigned __int128)-q->nano : (unsigned __int128)q->nano;
	size_t step = 0;

	if (v == 0)
		return write_number(false, 0, "", out);
	if (q->format == QUANTITY_BINARY_SI && v % NANO == 0 && v / NANO >= 1024) {
		for (v /= NANO; v % 1024 == 0 && step + 1 < ARRAY_SIZE(binary); step++)
			v /= 1024;
		return write_number(negative, v, binary[step], out);
	}
	for (; v % 1000 == 0 && step + 1 < ARRAY_SIZE(si); step++)
		v /= 1000;
	return write_number(negative, v,
		q->format == QUANTITY_DECIMAL_EXPONENT ? exponents[step] : si[step], out);
}

size_t quantity_format_millicores(int64_t millicores, char out[QUANTITY_TEXT_MAX])
{
	bool negative = millicores < 0;
	uint64_t v = negative ? 0 - (uint64_t)millicores : (uint64_t)millicores;

	return v % 1000 ? write_number(negative, v, "m", out)
			: write_number(negative, v / 1000, "", out);
}

size_t quantity_format_bytes(int64_t bytes, char out[QUANTITY_TEXT_MAX])
{
	return write_number(bytes < 0, bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes, "", out);
}

size_t quantity_format_bytes_binary(int64_t bytes, char out[QUANTITY_TEXT_MAX])
{
	struct quantity q = {.nano = bytes * NANO, .format = QUANTITY_BINARY_SI};

	/* Below 1024 the canonical form is decimal, where 1000 would read "1k". */
	if (bytes > -1024 && bytes < 1024)
		return quantity_format_bytes(bytes, out);
	return quantity_format(&q, out);
}

static int parse_not_negative(struct str s, struct quantity *ret)
{
	struct quantity q;
	int r = quantity_parse(s, &q);
	if (r < 0)
		return r;
	if (q.nano < 0)
		return -ERANGE;
	*ret = q;
	return 0;
}

int quantity_parse_millicores(struct str s, int64_t *ret)
{
	struct quantity q;
	int r = parse_not_negative(s, &q);
	if (r < 0)
		return r;
	*ret = quantity_milli(&q);
	return 0;
}

int quantity_parse_bytes(struct str s, int64_t *ret)
{
	struct quantity q;
	int r = parse_not_negative(s, &q);
	if (r < 0)
		return r;
	*ret = quantity_units(&q);
	return 0;
}

int flag_parse_millicores(struct str value, void *target, struct err *e)
{
	int r = quantity_parse_millicores(value, target);
	return r < 0 ? err_set(e, EINVAL,
			       "a CPU quantity, not negative: 250m (millicores), 0.25 or 1 (cores)")
		     : 0;
}

int flag_parse_bytes(struct str value, void *target, struct err *e)
{
	int r = quantity_parse_bytes(value, target);
	return r < 0 ? err_set(e, EINVAL,
			       "a memory quantity, not negative: 64Mi, 1Gi, 500M or 67108864 "
			       "(bytes)")
		     : 0;
}

int flag_parse_quantity_pair(struct str value, void *target, struct err *e)
{
	struct quantity_pair pair = {-1, -1};

	do {
		struct str part = str_cut(&value, ','), amount = part;
		struct str name = str_cut(&amount, '=');
		int r = -EINVAL;

		if (str_is(name, "cpu") && pair.cpu_millicores < 0)
			r = quantity_parse_millicores(amount, &pair.cpu_millicores);
		else if (str_is(name, "memory") && pair.memory_bytes < 0)
			r = quantity_parse_bytes(amount, &pair.memory_bytes);
		if (r < 0)
			return err_set(e, EINVAL,
				"cpu=QUANTITY, memory=QUANTITY, or both with a comma between: "
				"cpu=100m,memory=64Mi");
	} while (value.p);
	*(struct quantity_pair *)target = pair;
	return 0;
}
