// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a file, and any bytes as the content of a whole one (which a checksum would hide
 * from the fuzzer). */
#include <stdint.h>

#include "proto/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(struct checkpoint_cursor c, unsigned int depth)
{
	struct checkpoint_cursor chunk;
	uint32_t tag;

	if (depth > 8)
		return;
	while (checkpoint_next_chunk(&c, &tag, &chunk)) {
		walk(chunk, depth + 1);
		while (!chunk.failed && chunk.n > 0) {
			struct str s = checkpoint_get_str(&chunk);
			if (s.n && memchr(s.p, 0, s.n))
				(void)checkpoint_get_double(&chunk);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct checkpoint_identity nobody = {0};
	struct checkpoint c;
	struct err e;

	if (checkpoint_read((struct str){(const char *)data, size}, &nobody, &c, &e) ==
		CHECKPOINT_OK)
		walk(c.chunks, 0);

	_cleanup_buf_ struct buf b = BUF_INIT(1U << 20);
	checkpoint_begin(&b, &nobody, 0);
	(void)buf_append(&b, data, size);
	if (checkpoint_finish(&b) < 0)
		return 0;
	if (checkpoint_read(buf_str(&b), &nobody, &c, &e) != CHECKPOINT_OK)
		abort();
	walk(c.chunks, 0);
	return 0;
}
