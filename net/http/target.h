/* SPDX-License-Identifier: Apache-2.0 */
/* What a request asks for: path and query of the request line, taken apart and matched with route
 * patterns. Pure; every byte comes from outside. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define HTTP_TARGET_MAX_BYTES 1024U
#define HTTP_SEGMENTS_MAX 16U
#define HTTP_QUERIES_MAX 16U
#define HTTP_PARAMS_MAX 4U

struct http_target {
	/* Decoded, each part with a NUL; everything below points into it. */
	char bytes[HTTP_TARGET_MAX_BYTES + HTTP_SEGMENTS_MAX + 2 * HTTP_QUERIES_MAX];
	size_t segments_n;
	struct str segments[HTTP_SEGMENTS_MAX];
	size_t queries_n;
	struct {
		struct str name;
		struct str value;
	} queries[HTTP_QUERIES_MAX];
};

/* raw: "/v1/x?window=24h", percent-encoded, as in the request line. '+' stands for a space in the
 * query. -ENAMETOOLONG: over HTTP_TARGET_MAX_BYTES, too many segments or parameters; -EINVAL: no
 * leading '/', a bad %xx, or a NUL byte. */
int http_target_parse(struct str raw, struct http_target *ret);
/* The value of a query parameter (the first of that name); p NULL when absent, empty when without a
 * value. */
struct str http_target_query(const struct http_target *t, const char *name);
/* True when the pattern takes the whole path; params get what stands at its {…}. */
bool http_target_match(
	const struct http_target *t, const char *pattern, struct str params[HTTP_PARAMS_MAX]);
