/* SPDX-License-Identifier: Apache-2.0 */
/* Writing compact JSON into a buffer. Commas and quotes come by themselves; members appear in the
 * order written. Errors stay in the buffer, as always there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

#define JSON_WRITE_DEPTH 64U

struct json_writer {
	struct buf *b;
	uint64_t has_items; /* bit per open object or array */
	unsigned int depth;
	bool after_key;
};

#define JSON_WRITER(buf) ((struct json_writer){.b = (buf)})

void json_begin_object(struct json_writer *w);
void json_end_object(struct json_writer *w);
void json_begin_array(struct json_writer *w);
void json_end_array(struct json_writer *w);
/* The value is what is written next. */
void json_key(struct json_writer *w, const char *key);
void json_key_str(struct json_writer *w, struct str key);

/* Bytes that are no UTF-8 become U+FFFD, one for each longest wrong beginning; control characters
 * are escaped. */
void json_str(struct json_writer *w, struct str s);
void json_string(struct json_writer *w, const char *s); /* NULL: null */
void json_i64(struct json_writer *w, int64_t v);
void json_u64(struct json_writer *w, uint64_t v);
void json_double(
	struct json_writer *w, double v); /* shortest that reads back the same; not finite: null */
void json_double17(struct json_writer *w, double v); /* 17 significant digits, as %.17g */
void json_bool(struct json_writer *w, bool v);
void json_null(struct json_writer *w);
/* Text that is JSON already. */
void json_raw(struct json_writer *w, struct str json);
/* RFC 3339 in UTC, whole seconds; TIME_NONE: null. */
void json_time(struct json_writer *w, int64_t ns);

/* A string's characters, escaped, without the quotes: for those who write JSON that is no document
 * (log lines). */
void json_escape(struct buf *b, struct str s);
