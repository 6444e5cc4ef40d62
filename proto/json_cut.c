// SPDX-License-Identifier: Apache-2.0
#include "proto/json_cut.h"

#include "proto/json_read.h"

/* What may stand in a number, true, false or null: a run of these is one token. */
static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '-' || c == '+' || c == '.';
}

static void leave_string(struct json_cut *c)
{
	c->in_string = c->cutting = c->closing = false;
	c->length = 0;
}

/* One byte inside a string; true when it is the closing quote. In the part that the parser never
 * sees an escape is only the byte after the backslash: nobody would refuse "\u" before a quote
 * there. */
static inline bool is_end_of_string(struct json_cut *c, char byte)
{
	c->length++;
	if (c->escape > 0) {
		c->escape = c->escape == 1 && byte == 'u' && !c->cutting ? 4 : c->escape - 1;
		return false;
	}
	if (byte == '\\')
		c->escape = 1;
	return byte == '"';
}

static size_t drop(struct json_cut *c, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_end_of_string(c, p[i])) {
			c->closing = true;
			return i;
		}
	return n;
}

/* The end of the string, or of the n bytes, or the first place after string_max bytes where a cut
 * splits neither an escape nor a UTF-8 sequence. */
static size_t keep_string(struct json_cut *c, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (c->length >= c->string_max && p[i] != '"' && c->escape == 0 &&
			(p[i] & 0xc0) != 0x80) {
			c->cutting = true;
			return i;
		}
		if (is_end_of_string(c, p[i])) {
			leave_string(c);
			return i + 1;
		}
	}
	return n;
}

ssize_t json_cut_next(struct json_cut *c, const char *p, size_t n, size_t *ret_drop)
{
	size_t i = 0;

	*ret_drop = 0;
	if (c->cutting && !c->closing && n > 0) {
		*ret_drop = drop(c, p, n);
		if (*ret_drop > 0)
			return 0;
	}
	if (c->closing && n > 0) {
		leave_string(c);
		i = 1;
	}
	while (i < n) {
		if (c->in_string) {
			i += keep_string(c, p + i, n - i);
			if (c->cutting) {
				*ret_drop = drop(c, p + i, n - i);
				break;
			}
		} else if (p[i++] == '"') {
			c->in_string = true;
			c->length = 0;
		} else if (!is_word(p[i - 1])) {
			c->length = 0;
		} else if (++c->length > JSON_NUMBER_MAX) {
			return -1;
		}
	}
	return (ssize_t)i;
}
