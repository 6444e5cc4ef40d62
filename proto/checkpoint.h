/* SPDX-License-Identifier: Apache-2.0 */
/* The container that saved state lives in: bytes to bytes, no file access. It says what it is,
 * whose it is, and whether it is whole; its content is chunks, each with a tag and a length, and
 * chunks may hold chunks.
 *
 *     8  magic "pernode\x1a"         all integers little endian
 *     4  format version
 *     4  lowest version whose reader understands it
 *     8  length of the whole file
 *     8  time of saving, ns since the epoch
 *     2+n  node UID        2+n  machine
 *     …  chunks: 4 tag, 4 length, content
 *     4  CRC-32 (zlib's) of everything before
 *
 * A reader skips chunks whose tag it does not know and the end of chunks that are longer than it
 * expects: so a later version may add, and a roll-back loses nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define CHECKPOINT_VERSION 1U
#define CHECKPOINT_STR_MAX 4096U /* bytes of one string */

/* Whose state it is. An empty string is "not known", on either side, and is not compared. */
struct checkpoint_identity {
	struct str node_uid;
	struct str machine; /* hash of the machine ID: a reinstalled machine keeps its Node's UID */
};

/* A chunk's tag from its four letters. */
#define CHECKPOINT_TAG(a, b, c, d) \
	((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

/* Writing. Errors (too long, no memory) stay in the buffer; checkpoint_finish tells. The buffer may
 * hold nothing else. */
void checkpoint_begin(struct buf *b, const struct checkpoint_identity *id, int64_t saved_at_ns);
/* Opens a chunk, inside of the one that is open if any. The result goes to checkpoint_close_chunk,
 * innermost first. */
size_t checkpoint_open_chunk(struct buf *b, uint32_t tag);
void checkpoint_close_chunk(struct buf *b, size_t chunk);
void checkpoint_put_u8(struct buf *b, uint8_t v);
void checkpoint_put_u32(struct buf *b, uint32_t v);
void checkpoint_put_u64(struct buf *b, uint64_t v);
void checkpoint_put_i64(struct buf *b, int64_t v);
void checkpoint_put_double(struct buf *b, double v);  /* its bits: NaN and -0 survive */
void checkpoint_put_str(struct buf *b, struct str s); /* cut at CHECKPOINT_STR_MAX */
/* Completes the file: 0, -EMSGSIZE (longer than the buffer's maximum) or -ENOMEM. */
int checkpoint_finish(struct buf *b);

/* What a file turned out to be. */
enum checkpoint_verdict {
	CHECKPOINT_OK,
	CHECKPOINT_EMPTY,     /* no byte */
	CHECKPOINT_NOT_ONE,   /* something else's file */
	CHECKPOINT_TRUNCATED, /* begins right, ends too early */
	CHECKPOINT_TORN,      /* the checksum or the length does not fit */
	CHECKPOINT_FOREIGN,   /* whole, but of another node or another machine */
	CHECKPOINT_TOO_NEW,   /* of a version that says this one cannot read it */
};

/* One word for logs and metrics: "ok", "empty", "not-a-checkpoint", "truncated", "torn", "foreign",
 * "too-new". */
const char *checkpoint_verdict_name(enum checkpoint_verdict v);

/* A place in a chunk's content. Reading past its end returns zeros and sets failed, which stays:
 * check once, after. */
struct checkpoint_cursor {
	const unsigned char *p;
	size_t n;
	bool failed;
};

struct checkpoint {
	uint32_t version; /* may be above CHECKPOINT_VERSION */
	int64_t saved_at_ns;
	struct checkpoint_identity identity; /* points into the file */
	struct checkpoint_cursor chunks;
};

/* Judges the whole file. Only with CHECKPOINT_OK is *ret set; it points into file. Otherwise e says
 * what was found and what was expected. */
enum checkpoint_verdict checkpoint_read(struct str file, const struct checkpoint_identity *expected,
	struct checkpoint *ret, struct err *e);

/* The next chunk of c. False at the end; also, with c->failed, when what is left is no chunk. */
bool checkpoint_next_chunk(
	struct checkpoint_cursor *c, uint32_t *ret_tag, struct checkpoint_cursor *ret_chunk);
uint8_t checkpoint_get_u8(struct checkpoint_cursor *c);
uint32_t checkpoint_get_u32(struct checkpoint_cursor *c);
uint64_t checkpoint_get_u64(struct checkpoint_cursor *c);
int64_t checkpoint_get_i64(struct checkpoint_cursor *c);
double checkpoint_get_double(struct checkpoint_cursor *c);
struct str checkpoint_get_str(struct checkpoint_cursor *c);
