/* SPDX-License-Identifier: Apache-2.0 */
/* Errors. Functions return 0 (or a useful non-negative number), or -errno. Where the number alone
 * would leave a person guessing, the caller may pass a struct err, which gets one sentence: what,
 * where, why, and what to do. Library code never logs: the one who can do something about it does,
 * once. A sentence may quote bytes from outside: control characters in it become '?', so that it
 * stays one line and steers no terminal. */
#pragma once

#include "base/macros.h"

struct err {
	char text[320];
};

/* Writes the sentence (cut, never overrun) and returns -code, so that `return err_set(e, EINVAL,
 * "…")` reads as one step. code is a positive errno. e may be NULL. */
int err_set(struct err *e, int code, const char *format, ...) _printf_(3, 4);

/* Puts "prefix: " before the sentence that is there (or before strerror of r when there is none)
 * and returns r unchanged. r is what the failed function returned (-errno). e may be NULL. */
int err_wrap(struct err *e, int r, const char *format, ...) _printf_(3, 4);

/* The sentence, or the text of errno r where nobody wrote one. Never NULL; valid as long as e. */
const char *err_text(const struct err *e, int r);
