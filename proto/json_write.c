// SPDX-License-Identifier: Apache-2.0
#include "proto/json_write.h"

#include <math.h>

#include "base/num.h"
#include "proto/rfc3339.h"

/* What comes before a value or a key: a comma, unless it is the first, or follows its key. */
static void separate(struct json_writer *w)
{
	uint64_t bit = UINT64_C(1) << (w->depth % JSON_WRITE_DEPTH);

	if (w->after_key) {
		w->after_key = false;
		return;
	}
	if (w->depth > 0 && (w->has_items & bit))
		(void)buf_putc(w->b, ',');
	w->has_items |= bit;
}

static void begin(struct json_writer *w, char c)
{
	separate(w);
	(void)buf_putc(w->b, c);
	w->depth++;
	w->has_items &= ~(UINT64_C(1) << (w->depth % JSON_WRITE_DEPTH));
}

static void end(struct json_writer *w, char c)
{
	w->depth--;
	(void)buf_putc(w->b, c);
}

void json_begin_object(struct json_writer *w)
{
	begin(w, '{');
}

void json_end_object(struct json_writer *w)
{
	end(w, '}');
}

void json_begin_array(struct json_writer *w)
{
	begin(w, '[');
}

void json_end_array(struct json_writer *w)
{
	end(w, ']');
}

/* Length of the well-formed UTF-8 sequence at p, or 0; then *ret_bad is the length of what one
 * U+FFFD stands for: the longest beginning of a sequence (Unicode 15, 3.9, table 3-7). */
static size_t sequence_length(const unsigned char *p, size_t n, size_t *ret_bad)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t length;

	*ret_bad = 1;
	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	length = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0; /* no overlong forms */
	else if (p[0] == 0xed)
		high = 0x9f; /* no surrogates */
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f; /* nothing above U+10FFFF */
	for (size_t i = 1; i < length; i++) {
		if (i == n || p[i] < low || p[i] > high) {
			*ret_bad = i;
			return 0;
		}
		low = 0x80;
		high = 0xbf;
	}
	return length;
}

static void escape_ascii(struct buf *b, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	const char *short_form = c == '"'    ? "\\\""
				 : c == '\\' ? "\\\\"
				 : c == '\n' ? "\\n"
				 : c == '\r' ? "\\r"
				 : c == '\t' ? "\\t"
					     : NULL;
	if (short_form) {
		(void)buf_append(b, short_form, 2);
		return;
	}
	char long_form[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
	(void)buf_append(b, long_form, sizeof long_form);
}

void json_escape(struct buf *b, struct str s)
{
	if (s.n == 0)
		return;
	const unsigned char *p = (const unsigned char *)s.p, *last = p + s.n;

	while (p < last) {
		const unsigned char *plain = p;
		size_t bad, length = 1;

		while (p < last && *p >= 0x20 && *p != '"' && *p != '\\' && *p != 0x7f &&
			(length = sequence_length(p, (size_t)(last - p), &bad)) > 0)
			p += length;
		(void)buf_append(b, plain, (size_t)(p - plain));
		if (p == last)
			break;
		if (length == 0) {
			(void)buf_append(b, "\xef\xbf\xbd", 3);
			p += bad;
		} else {
			escape_ascii(b, *p++);
		}
	}
}

static void put_quoted(struct json_writer *w, struct str s)
{
	(void)buf_putc(w->b, '"');
	json_escape(w->b, s);
	(void)buf_putc(w->b, '"');
}

void json_key_str(struct json_writer *w, struct str key)
{
	separate(w);
	put_quoted(w, key);
	(void)buf_putc(w->b, ':');
	w->after_key = true;
}

void json_key(struct json_writer *w, const char *key)
{
	json_key_str(w, str_of(key));
}

void json_str(struct json_writer *w, struct str s)
{
	separate(w);
	put_quoted(w, s);
}

void json_string(struct json_writer *w, const char *s)
{
	if (s)
		json_str(w, str_of(s));
	else
		json_null(w);
}

void json_raw(struct json_writer *w, struct str json)
{
	separate(w);
	(void)buf_add(w->b, json);
}

void json_i64(struct json_writer *w, int64_t v)
{
	separate(w);
	(void)buf_printf(w->b, "%lld", (long long)v);
}

void json_u64(struct json_writer *w, uint64_t v)
{
	separate(w);
	(void)buf_printf(w->b, "%llu", (unsigned long long)v);
}

void json_double(struct json_writer *w, double v)
{
	char text[32];
	size_t n = format_double(v, text);
	json_raw(w, (struct str){text, n});
}

void json_double17(struct json_writer *w, double v)
{
	if (!isfinite(v)) {
		json_null(w);
		return;
	}
	separate(w);
	(void)buf_printf(w->b, "%.17g", v);
}

void json_bool(struct json_writer *w, bool v)
{
	json_raw(w, v ? STR("true") : STR("false"));
}

void json_null(struct json_writer *w)
{
	json_raw(w, STR("null"));
}

void json_time(struct json_writer *w, int64_t ns)
{
	char text[RFC3339_TEXT_MAX];
	size_t n = rfc3339_format(ns, text);

	if (n == 0)
		json_null(w);
	else
		json_str(w, (struct str){text, n});
}
