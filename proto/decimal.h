/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as recordings hold them, read fast where that is exact and by base/num otherwise. */
#pragma once

#include <stdint.h>

#include "base/str.h"

/* As parse_double (base/num.h): the same value to the last bit, the same errors. */
int decimal_parse(struct str s, double *ret);

/* Unix seconds with an optional fraction, to ns; what is finer is cut. -EINVAL: not such a number;
 * -ERANGE: int64 nanoseconds cannot hold it. */
int decimal_parse_unix(struct str s, int64_t *ret_ns);
