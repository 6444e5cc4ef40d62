/* SPDX-License-Identifier: Apache-2.0 */
/* Makes allocations of the code under test fail, one after the other. The test programs are linked
 * so that malloc, calloc and realloc of our own code come through here; those inside shared
 * libraries do not. */
#pragma once

#include <stdbool.h>

/* The nth allocation from now (0 = the next) and all after it return NULL, until alloc_fail_never.
 */
void alloc_fail_from(long n);
/* Only the nth does. */
void alloc_fail_only(long n);
/* Back to normal. True if an allocation was refused since it was set. */
bool alloc_fail_never(void);

/* Runs the block once for every allocation that it makes, each time with that one failing, and once
 * with none failing: ALLOC_FAIL_EACH { …code that must survive… } The block must leave with nothing
 * held. */
#define ALLOC_FAIL_EACH                                                     \
	for (long _nth = 0, _more = 1; _more && (alloc_fail_only(_nth), 1); \
		_more = alloc_fail_never() ? 1 : 0, _nth++)
