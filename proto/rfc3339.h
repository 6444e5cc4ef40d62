/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 3339 times. An instant is int64 nanoseconds since the Unix epoch (years 1677 to 2262);
 * TIME_NONE stands for "no time". */
#pragma once

#include <stdint.h>

#include "base/str.h"

#define TIME_NONE INT64_MIN
#define RFC3339_TEXT_MAX 32U

/* A date and time with an offset: "2026-01-01T00:00:00Z", "2026-01-01t01:30:00.25+01:30", a blank
 * in place of the T. Fractions finer than 1 ns are cut. A leap second (23:59:60 UTC, on the last
 * day of a month) is the instant after it, as in POSIX time, with its fraction dropped, so that
 * order is kept. -EINVAL: not such a text, or no such day or hour; -ERANGE: a real time that int64
 * nanoseconds cannot hold (Kubernetes' zero time 0001-01-01T00:00:00Z is one). */
int rfc3339_parse(struct str s, int64_t *ret_ns);

/* In UTC: whole seconds (cut) "2026-01-01T00:00:00Z", or with six decimals. TIME_NONE gives an
 * empty text. Returns the length. */
size_t rfc3339_format(int64_t ns, char out[RFC3339_TEXT_MAX]);
size_t rfc3339_format_usec(int64_t ns, char out[RFC3339_TEXT_MAX]);
