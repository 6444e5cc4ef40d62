/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>

bool str_starts(struct str s, struct str prefix)
{
	return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

bool str_ends(struct str s, struct str suffix)
{
	return s.n >= suffix.n &&
	       (suffix.n == 0 || memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct str str_trim(struct str s)
{
	while (s.n && is_blank(s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n && is_blank(s.p[s.n - 1]))
		s.n--;
	return s;
}

struct str str_cut(struct str *rest, char c)
{
	const char *at = rest->n ? memchr(rest->p, c, rest->n) : NULL;
	struct str first = *rest;

	if (!at) {
		*rest = (struct str){NULL, 0};
		return first;
	}
	first.n = (size_t)(at - rest->p);
	rest->n -= first.n + 1;
	rest->p = at + 1;
	return first;
}

int str_copy(char *dst, size_t size, struct str s)
{
	if (s.n >= size || (s.n && memchr(s.p, '\0', s.n)))
		return -ENAMETOOLONG;
	if (s.n)
		memcpy(dst, s.p, s.n);
	dst[s.n] = '\0';
	return 0;
}

char *str_dup(struct str s)
{
	char *p = malloc(s.n + 1);

	if (!p)
		return NULL;
	if (s.n)
		memcpy(p, s.p, s.n);
	p[s.n] = '\0';
	return p;
}

char *str_printable(char *z)
{
	for (char *p = z; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	return z;
}
