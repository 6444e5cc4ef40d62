/* SPDX-License-Identifier: Apache-2.0 */
/* The few words the language lacks: scope-bound cleanup, hand-over of ownership, array length. */
#pragma once

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h> /* has its own MIN and MAX: taken in first, so that ours are the ones that stay */
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _unused_ __attribute__((unused))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Each argument is evaluated once. The counter gives every use names of its own, so that uses nest.
 */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define PICK_(a, b, less, x, y)        \
	({                             \
		__typeof__(a) x = (a); \
		__typeof__(b) y = (b); \
		x less y ? x : y;      \
	})
#undef MIN
#undef MAX
#define MIN(a, b) PICK_(a, b, <, JOIN(min_a_, __COUNTER__), JOIN(min_b_, __COUNTER__))
#define MAX(a, b) PICK_(a, b, >, JOIN(max_a_, __COUNTER__), JOIN(max_b_, __COUNTER__))

/* The struct that embeds a member: for callbacks that are given only the member. */
#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Hands a pointer or a descriptor over, so that the cleanup of this scope leaves it alone. */
#define TAKE_PTR(p)                         \
	({                                  \
		__typeof__(p) _taken = (p); \
		(p) = NULL;                 \
		_taken;                     \
	})
#define TAKE_FD(fd)                \
	({                         \
		int _taken = (fd); \
		(fd) = -1;         \
		_taken;            \
	})

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void closep(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline void fclosep(FILE **f)
{
	if (*f)
		(void)fclose(*f);
}

static inline void closedirp(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_close_ _cleanup_(closep)
#define _cleanup_fclose_ _cleanup_(fclosep)
#define _cleanup_closedir_ _cleanup_(closedirp)

/* The smallest legal size in a "tiny" build, the ordinary one elsewhere: a build with tiny buffers
 * makes the rare path (grow, refill, refuse) the common one. Both sizes must be correct, only the
 * speed may differ. */
#ifdef PERNODE_TINY
#define SIZE_OR_TINY(ordinary, tiny) (tiny)
#else
#define SIZE_OR_TINY(ordinary, tiny) (ordinary)
#endif
