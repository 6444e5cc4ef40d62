/* SPDX-License-Identifier: Apache-2.0 */
/* Members of Kubernetes objects, from JSON values into fields of fixed size: one way to check, one
 * way to say what was wrong. All: null counts as absent (the field is left as it is) and gives 0;
 * -EINVAL with "<what> is …, expected …" in e otherwise. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "proto/json_read.h"

enum field_text {
	FIELD_NAME, /* letters, digits, '-', '.', '_': safe in paths and logs; never "." or ".." */
	FIELD_LINE, /* printable ASCII */
	FIELD_ANY,  /* anything without NUL */
};

/* Whether s is such text. "" is. */
bool field_is_text(struct str s, enum field_text text);
int field_string(const struct json_value *v, const char *what, char *out, size_t size,
	enum field_text text, struct err *e);
int field_bool(const struct json_value *v, const char *what, bool *ret, struct err *e);
int field_i64(const struct json_value *v, const char *what, int64_t *ret, struct err *e);
/* A time out of range (Kubernetes' zero time) is TIME_NONE. */
int field_time(const struct json_value *v, const char *what, int64_t *ret, struct err *e);
/* A quantity: a string, or a number as some write it. */
int field_millicores(const struct json_value *v, const char *what, int64_t *ret, struct err *e);
int field_bytes(const struct json_value *v, const char *what, int64_t *ret, struct err *e);
/* Neither object nor array: -EINVAL. For places where an object is expected. */
int field_object(const struct json_value *v, const char *what, struct err *e);

int field_wrong(const struct json_value *v, const char *what, const char *expected, struct err *e);
