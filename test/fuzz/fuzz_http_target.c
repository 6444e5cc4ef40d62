/* SPDX-License-Identifier: Apache-2.0 */
/* Request targets and listen addresses: whatever is accepted is bounded and free of NUL bytes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/http/listen.h"
#include "net/http/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct http_target *t, struct str s)
{
	if (s.p < t->bytes || s.p + s.n >= t->bytes + sizeof(t->bytes) || strlen(s.p) != s.n)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size};
	struct str params[HTTP_PARAMS_MAX];
	struct listen_address address;
	struct http_target t;

	if (http_target_parse(text, &t) == 0) {
		for (size_t i = 0; i < t.segments_n; i++)
			check(&t, t.segments[i]);
		for (size_t i = 0; i < t.queries_n; i++) {
			check(&t, t.queries[i].name);
			check(&t, t.queries[i].value);
		}
		if (http_target_match(&t, "/v1/{a}/{b}/{c}", params))
			for (size_t i = 0; i < 3; i++)
				check(&t, params[i]);
		(void)http_target_query(&t, "w");
	}
	(void)listen_address_parse(text, &address, NULL);
	return 0;
}
