// SPDX-License-Identifier: Apache-2.0
#include "proto/checkpoint.h"

#include <errno.h>
#include <zlib.h>

/* The last byte is no text: a file that somebody edited, or a listing of this format, is not taken
 * for one. */
static const char magic[8] = {'p', 'e', 'r', 'n', 'o', 'd', 'e', 0x1a};

#define LENGTH_AT 16U /* where the header keeps the length of the file */
#define CRC_SIZE 4U

static void store_le(unsigned char *p, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t load_le(const unsigned char *p, size_t n)
{
	uint64_t v = 0;
	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

static void put_le(struct buf *b, uint64_t v, size_t n)
{
	unsigned char bytes[8];
	store_le(bytes, v, n);
	(void)buf_append(b, bytes, n);
}

static uint32_t crc_of(const char *p, size_t n)
{
	return (uint32_t)crc32_z(0, (const unsigned char *)p, n);
}

void checkpoint_begin(struct buf *b, const struct checkpoint_identity *id, int64_t saved_at_ns)
{
	(void)buf_append(b, magic, sizeof magic);
	put_le(b, CHECKPOINT_VERSION, 4);
	put_le(b, CHECKPOINT_VERSION, 4);
	put_le(b, 0, 8); /* the length, by checkpoint_finish */
	put_le(b, (uint64_t)saved_at_ns, 8);
	checkpoint_put_str(b, id->node_uid);
	checkpoint_put_str(b, id->machine);
}

size_t checkpoint_open_chunk(struct buf *b, uint32_t tag)
{
	put_le(b, tag, 4);
	put_le(b, 0, 4);
	return b->n;
}

void checkpoint_close_chunk(struct buf *b, size_t chunk)
{
	if (b->error)
		return;
	if (b->n - chunk > UINT32_MAX) {
		b->error = -EMSGSIZE;
		return;
	}
	store_le((unsigned char *)b->p + chunk - 4, b->n - chunk, 4);
}

void checkpoint_put_u8(struct buf *b, uint8_t v)
{
	put_le(b, v, 1);
}

void checkpoint_put_u32(struct buf *b, uint32_t v)
{
	put_le(b, v, 4);
}

void checkpoint_put_u64(struct buf *b, uint64_t v)
{
	put_le(b, v, 8);
}

void checkpoint_put_i64(struct buf *b, int64_t v)
{
	put_le(b, (uint64_t)v, 8);
}

void checkpoint_put_double(struct buf *b, double v)
{
	uint64_t bits;
	memcpy(&bits, &v, sizeof bits);
	put_le(b, bits, 8);
}

void checkpoint_put_str(struct buf *b, struct str s)
{
	size_t n = MIN(s.n, (size_t)CHECKPOINT_STR_MAX);
	put_le(b, n, 2);
	(void)buf_append(b, s.p, n);
}

int checkpoint_finish(struct buf *b)
{
	if (b->error)
		return b->error;
	store_le((unsigned char *)b->p + LENGTH_AT, b->n + CRC_SIZE, 8);
	put_le(b, crc_of(b->p, b->n), CRC_SIZE);
	return b->error;
}

const char *checkpoint_verdict_name(enum checkpoint_verdict v)
{
	static const char *const names[] = {
		[CHECKPOINT_OK] = "ok",
		[CHECKPOINT_EMPTY] = "empty",
		[CHECKPOINT_NOT_ONE] = "not-a-checkpoint",
		[CHECKPOINT_TRUNCATED] = "truncated",
		[CHECKPOINT_TORN] = "torn",
		[CHECKPOINT_FOREIGN] = "foreign",
		[CHECKPOINT_TOO_NEW] = "too-new",
	};
	return names[v];
}

static const unsigned char *take(struct checkpoint_cursor *c, size_t n)
{
	if (c->failed || c->n < n) {
		c->failed = true;
		return NULL;
	}
	const unsigned char *p = c->p;
	c->p += n;
	c->n -= n;
	return p;
}

static uint64_t get_le(struct checkpoint_cursor *c, size_t n)
{
	const unsigned char *p = take(c, n);
	return p ? load_le(p, n) : 0;
}

/* Magic, length and checksum: is it one, and all of it? *ret becomes what is between the magic and
 * the checksum. */
static enum checkpoint_verdict read_frame(
	struct str file, struct checkpoint_cursor *ret, struct err *e)
{
	if (file.n == 0) {
		err_set(e, EBADMSG, "the file is empty");
		return CHECKPOINT_EMPTY;
	}
	if (memcmp(file.p, magic, MIN(file.n, sizeof magic)) != 0) {
		err_set(e, EBADMSG, "this is no checkpoint: it does not begin with \"pernode\"");
		return CHECKPOINT_NOT_ONE;
	}
	const unsigned char *p = (const unsigned char *)file.p;
	uint64_t length =
		file.n < LENGTH_AT + 8 ? LENGTH_AT + 8 + CRC_SIZE : load_le(p + LENGTH_AT, 8);
	if (file.n < length) {
		err_set(e, EBADMSG, "the file is cut short: %zu bytes of %llu", file.n,
			(unsigned long long)length);
		return CHECKPOINT_TRUNCATED;
	}
	if (file.n != length || length < LENGTH_AT + 8 + CRC_SIZE) {
		err_set(e, EBADMSG, "the file has %zu bytes where its header says %llu", file.n,
			(unsigned long long)length);
		return CHECKPOINT_TORN;
	}
	uint32_t found = (uint32_t)load_le(p + file.n - CRC_SIZE, CRC_SIZE),
		 right = crc_of(file.p, file.n - CRC_SIZE);
	if (found != right) {
		err_set(e, EBADMSG,
			"the checksum is %08x where the content gives %08x: the file is damaged",
			found, right);
		return CHECKPOINT_TORN;
	}
	*ret = (struct checkpoint_cursor){
		p + sizeof magic, file.n - sizeof magic - CRC_SIZE, false};
	return CHECKPOINT_OK;
}

static bool same_or_unknown(struct str a, struct str b)
{
	return a.n == 0 || b.n == 0 || str_eq(a, b);
}

static enum checkpoint_verdict judge_identity(const struct checkpoint_identity *found,
	const struct checkpoint_identity *expected, struct err *e)
{
	if (!same_or_unknown(found->node_uid, expected->node_uid)) {
		err_set(e, EBADMSG, "it was saved on the node with UID %.*s; this is %.*s",
			STR_ARG(found->node_uid), STR_ARG(expected->node_uid));
		return CHECKPOINT_FOREIGN;
	}
	if (!same_or_unknown(found->machine, expected->machine)) {
		err_set(e, EBADMSG, "it was saved on machine %.*s; this is %.*s",
			STR_ARG(found->machine), STR_ARG(expected->machine));
		return CHECKPOINT_FOREIGN;
	}
	return CHECKPOINT_OK;
}

enum checkpoint_verdict checkpoint_read(struct str file, const struct checkpoint_identity *expected,
	struct checkpoint *ret, struct err *e)
{
	struct checkpoint_cursor c;
	struct checkpoint found;
	enum checkpoint_verdict v = read_frame(file, &c, e);
	if (v != CHECKPOINT_OK)
		return v;

	found.version = (uint32_t)get_le(&c, 4);
	uint32_t readable_by = (uint32_t)get_le(&c, 4);
	if (readable_by > CHECKPOINT_VERSION) {
		err_set(e, EBADMSG,
			"it has format version %u, which needs a reader of version %u; this one is "
			"%u",
			found.version, readable_by, CHECKPOINT_VERSION);
		return CHECKPOINT_TOO_NEW;
	}
	(void)get_le(&c, 8);
	found.saved_at_ns = checkpoint_get_i64(&c);
	found.identity.node_uid = checkpoint_get_str(&c);
	found.identity.machine = checkpoint_get_str(&c);
	if (c.failed) {
		err_set(e, EBADMSG, "the header ends too early");
		return CHECKPOINT_TORN;
	}
	v = judge_identity(&found.identity, expected, e);
	if (v != CHECKPOINT_OK)
		return v;
	found.chunks = c;
	*ret = found;
	return CHECKPOINT_OK;
}

bool checkpoint_next_chunk(
	struct checkpoint_cursor *c, uint32_t *ret_tag, struct checkpoint_cursor *ret_chunk)
{
	if (c->failed || c->n == 0)
		return false;
	uint32_t tag = (uint32_t)get_le(c, 4);
	size_t n = (size_t)get_le(c, 4);
	const unsigned char *p = take(c, n);
	if (!p)
		return false;
	*ret_tag = tag;
	*ret_chunk = (struct checkpoint_cursor){p, n, false};
	return true;
}

uint8_t checkpoint_get_u8(struct checkpoint_cursor *c)
{
	return (uint8_t)get_le(c, 1);
}

uint32_t checkpoint_get_u32(struct checkpoint_cursor *c)
{
	return (uint32_t)get_le(c, 4);
}

uint64_t checkpoint_get_u64(struct checkpoint_cursor *c)
{
	return get_le(c, 8);
}

int64_t checkpoint_get_i64(struct checkpoint_cursor *c)
{
	return (int64_t)get_le(c, 8);
}

double checkpoint_get_double(struct checkpoint_cursor *c)
{
	uint64_t bits = get_le(c, 8);
	double v;
	memcpy(&v, &bits, sizeof v);
	return v;
}

struct str checkpoint_get_str(struct checkpoint_cursor *c)
{
	size_t n = (size_t)get_le(c, 2);
	const unsigned char *p = take(c, n);
	return (struct str){(const char *)p, p ? n : 0};
}
