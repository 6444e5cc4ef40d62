/* SPDX-License-Identifier: Apache-2.0 */
#include "helper_alloc.h"

#include <stddef.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static struct {
	bool on, only, refused;
	long left;
} fail;

void alloc_fail_from(long n)
{
	fail.on = true;
	fail.only = false;
	fail.refused = false;
	fail.left = n;
}

void alloc_fail_only(long n)
{
	alloc_fail_from(n);
	fail.only = true;
}

bool alloc_fail_never(void)
{
	fail.on = false;
	return fail.refused;
}

static bool refuses(void)
{
	if (!fail.on)
		return false;
	if (fail.left-- > 0)
		return false;
	fail.on = !fail.only;
	fail.refused = true;
	return true;
}

void *__wrap_malloc(size_t n)
{
	return refuses() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refuses() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return refuses() ? NULL : __real_realloc(p, n);
}
