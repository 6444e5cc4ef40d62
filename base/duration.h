/* SPDX-License-Identifier: Apache-2.0 */
/* Durations as people write them: Go's grammar ("1h30m", "250ms", "1.5s", "0") plus d for 24 hours.
 */
#pragma once

#include <stdint.h>

#include "base/str.h"

/* Nanoseconds, never negative. Fractions below 1 ns are cut. -EINVAL: not a duration; -ERANGE: more
 * than 292 years. */
int duration_parse(struct str s, int64_t *ret_ns);
/* The shortest text that parses back: "10s", "1h30m0s", "36h0m0s" (as Go prints), out[32]. Returns
 * the length. */
size_t duration_format(int64_t ns, char out[32]);
