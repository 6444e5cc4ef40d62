/* SPDX-License-Identifier: Apache-2.0 */
/* Checked numbers: the whole text must be the number. No locale, no errno, no surprise. */
#pragma once

#include <stdint.h>

#include "base/str.h"

/* Decimal digits only. -EINVAL: not a number; -ERANGE: does not fit. */
int parse_u64(struct str s, uint64_t *ret);
int parse_i64(struct str s, int64_t *ret); /* an optional '-' or '+' before */
/* Decimal with optional fraction and exponent (as in JSON, a leading '+' or '.' also taken). Not
 * finite → -ERANGE. NaN, Inf and hexadecimal are -EINVAL. Correctly rounded. At most 512
 * characters. */
int parse_double(struct str s, double *ret);

/* Saturating: never wraps. */
uint64_t u64_add_sat(uint64_t a, uint64_t b);
int64_t i64_add_sat(int64_t a, int64_t b);
int64_t i64_mul_sat(int64_t a, int64_t b);

/* Shortest decimal text that reads back as the same double ("0.1", not "0.10000000000000001");
 * out[32]. Not finite writes "null", since every reader of it is JSON. Returns the length. */
size_t format_double(double v, char out[32]);
