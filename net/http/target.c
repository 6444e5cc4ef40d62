/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/target.h"

#include <errno.h>

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Decodes s to the end of t->bytes; *used counts the bytes taken there. Decoding comes after
 * cutting at '/', '&' and
 * '=', so that an encoded one is part of the name that it stands in. */
static int decode(
	struct http_target *t, size_t *used, struct str s, bool plus_is_space, struct str *ret)
{
	char *out = t->bytes + *used;
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (c == '%') {
			int high = i + 2 < s.n ? hex_digit(s.p[i + 1]) : -1;
			int low = high >= 0 ? hex_digit(s.p[i + 2]) : -1;

			if (low < 0)
				return -EINVAL;
			c = (char)(high << 4 | low);
			i += 2;
		} else if (c == '+' && plus_is_space) {
			c = ' ';
		}
		if (c == '\0')
			return -EINVAL;
		out[n++] = c;
	}
	out[n] = '\0';
	*used += n + 1;
	*ret = (struct str){out, n};
	return 0;
}

static int parse_path(struct http_target *t, size_t *used, struct str path)
{
	path.p++;
	path.n--;
	if (path.n == 0)
		return 0;
	while (path.p) {
		struct str segment = str_cut(&path, '/');
		int r;

		if (t->segments_n == HTTP_SEGMENTS_MAX)
			return -ENAMETOOLONG;
		r = decode(t, used, segment, false, &t->segments[t->segments_n]);
		if (r < 0)
			return r;
		t->segments_n++;
	}
	return 0;
}

static int parse_query(struct http_target *t, size_t *used, struct str query)
{
	while (query.p) {
		struct str value = str_cut(&query, '&');
		struct str name = str_cut(&value, '=');
		int r;

		if (name.n == 0)
			continue;
		if (t->queries_n == HTTP_QUERIES_MAX)
			return -ENAMETOOLONG;
		r = decode(t, used, name, true, &t->queries[t->queries_n].name);
		if (r == 0)
			r = decode(t, used, value, true, &t->queries[t->queries_n].value);
		if (r < 0)
			return r;
		t->queries_n++;
	}
	return 0;
}

int http_target_parse(struct str raw, struct http_target *ret)
{
	size_t used = 0;
	int r;

	*ret = (struct http_target){.segments_n = 0};
	if (raw.n > HTTP_TARGET_MAX_BYTES)
		return -ENAMETOOLONG;
	if (raw.n == 0 || raw.p[0] != '/')
		return -EINVAL;
	struct str path = str_cut(&raw, '?');
	r = parse_path(ret, &used, path);
	return r < 0 ? r : parse_query(ret, &used, raw);
}

struct str http_target_query(const struct http_target *t, const char *name)
{
	for (size_t i = 0; i < t->queries_n; i++)
		if (str_is(t->queries[i].name, name))
			return t->queries[i].value;
	return (struct str){NULL, 0};
}

bool http_target_match(
	const struct http_target *t, const char *pattern, struct str params[HTTP_PARAMS_MAX])
{
	struct str rest = str_of(pattern + 1);
	size_t segment = 0, param = 0;

	if (rest.n == 0)
		return t->segments_n == 0;
	for (; rest.p; segment++) {
		struct str wanted = str_cut(&rest, '/');

		if (segment == t->segments_n)
			return false;
		if (wanted.n > 0 && wanted.p[0] == '{') {
			if (t->segments[segment].n == 0 || param == HTTP_PARAMS_MAX)
				return false;
			params[param++] = t->segments[segment];
		} else if (!str_eq(wanted, t->segments[segment])) {
			return false;
		}
	}
	return segment == t->segments_n;
}
