/* SPDX-License-Identifier: Apache-2.0 */
/* Runs before the JSON parser and keeps tokens short: the parser keeps a token that spans pieces in
 * memory, however long it gets. Knows of JSON only where strings begin and end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct json_cut {
	size_t string_max;
	size_t length; /* of the current string, or of the run of characters outside of strings that
			  is no separator */
	bool in_string;
	bool cutting;        /* the rest of this string is dropped */
	bool closing;        /* all of it was: the next byte is the quote at its end */
	unsigned int escape; /* characters left of an escape sequence */
};

/* How many of the n bytes the parser should have; then *ret_drop bytes are to be left out (which
 * means that the string at that place is cut). Both are 0 only for n = 0. -1: a number or word is
 * too long. */
ssize_t json_cut_next(struct json_cut *c, const char *p, size_t n, size_t *ret_drop);
