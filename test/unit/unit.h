/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test includes first: cmocka wants its headers in this order. */
#pragma once

/* clang-format off */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
/* clang-format on */
