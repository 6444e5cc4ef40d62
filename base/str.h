/* SPDX-License-Identifier: Apache-2.0 */
/* A view of bytes that somebody else owns. Not NUL-terminated. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct str {
	const char *p;
	size_t n;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})
/* For printf's "%.*s" */
#define STR_ARG(s) (int)((s).n > 4096 ? 4096 : (s).n), (s).p

static inline struct str str_of(const char *z)
{
	return (struct str){z, z ? strlen(z) : 0};
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool str_is(struct str a, const char *z)
{
	return str_eq(a, str_of(z));
}

bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
/* Without leading and trailing blanks (space, tab, CR, LF). */
struct str str_trim(struct str s);
/* Cuts *rest at the first c: returns the part before, *rest becomes the part after; without c
 * returns all and *rest becomes empty with p == NULL. */
struct str str_cut(struct str *rest, char c);
/* Copies into dst[size] with a NUL. Returns 0, or -ENAMETOOLONG and dst untouched when it does not
 * fit or s holds a NUL byte. */
int str_copy(char *dst, size_t size, struct str s);
/* Replaces what steers a terminal, or would end a line, by '?': control characters below space, and
 * DEL. For text from outside that is shown to a person. Returns z. */
char *str_printable(char *z);
/* Owned copy with a NUL, or NULL when memory is short. */
char *str_dup(struct str s);
