// SPDX-License-Identifier: Apache-2.0
#include "proto/inflate.h"

#include <errno.h>
#include <stdint.h>
#include <zlib.h>

#include "base/macros.h"

#define OUT_SIZE SIZE_OR_TINY(131072U, 3U)
#define MAGIC "\x1f\x8b"

struct inflate {
	int (*sink)(void *arg, struct str piece);
	void *arg;
	z_stream z;
	enum { UNDECIDED, PLAIN, GZIP, BETWEEN_MEMBERS } state;
	bool z_ready;
	char head[2]; /* of the text, or of what follows a member, until there are two bytes */
	size_t n_head;
	char out[OUT_SIZE];
};

struct inflate *inflate_create(int (*sink)(void *arg, struct str piece), void *arg)
{
	struct inflate *z = calloc(1, sizeof *z);
	if (!z)
		return NULL;
	z->sink = sink;
	z->arg = arg;
	return z;
}

void inflate_destroy(struct inflate *z)
{
	if (!z)
		return;
	if (z->z_ready)
		(void)inflateEnd(&z->z);
	free(z);
}

static int begin_member(struct inflate *z, struct err *e)
{
	/* 15 bits of window, +16: a gzip header is expected */
	if (z->z_ready ? inflateReset(&z->z) != Z_OK : inflateInit2(&z->z, 15 + 16) != Z_OK)
		return err_set(e, ENOMEM, "no memory left to read gzip");
	z->z_ready = true;
	z->state = GZIP;
	return 0;
}

static int inflate_some(struct inflate *z, struct str *piece, struct err *e)
{
	z->z.next_in = (Bytef *)(uintptr_t)piece->p;
	z->z.avail_in = (uInt)MIN(piece->n, (size_t)UINT32_MAX / 2);
	size_t given = z->z.avail_in;
	z->z.next_out = (Bytef *)z->out;
	z->z.avail_out = OUT_SIZE;
	int r = inflate(&z->z, Z_NO_FLUSH);

	size_t used = given - z->z.avail_in;
	*piece = (struct str){piece->p + used, piece->n - used};
	if (r == Z_MEM_ERROR)
		return err_set(e, ENOMEM, "no memory left to read gzip");
	if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
		return err_set(e, EBADMSG, "damaged gzip: %s", z->z.msg ? z->z.msg : "data error");
	if (r == Z_STREAM_END) {
		z->state = BETWEEN_MEMBERS;
		z->n_head = 0;
	}
	size_t n = OUT_SIZE - z->z.avail_out;
	return n ? z->sink(z->arg, (struct str){z->out, n}) : 0;
}

/* All of a piece through inflate(); it holds output back while there is room for none. */
static int inflate_all(struct inflate *z, struct str *piece, struct err *e)
{
	int r = 0;

	do
		r = inflate_some(z, piece, e);
	while (r == 0 && z->state == GZIP && (piece->n > 0 || z->z.avail_out == 0));
	return r;
}

/* Two bytes decide what the text is, and whether another member follows. */
static int decide(struct inflate *z, struct err *e)
{
	struct str head = {z->head, z->n_head};

	if (z->n_head == sizeof z->head && memcmp(z->head, MAGIC, sizeof z->head) == 0) {
		int r = begin_member(z, e);
		return r < 0 ? r : inflate_all(z, &head, e);
	}
	if (z->state == BETWEEN_MEMBERS)
		return err_set(e, EBADMSG, "something that is no gzip follows the gzip");
	z->state = PLAIN;
	return head.n ? z->sink(z->arg, head) : 0;
}

int inflate_feed(struct inflate *z, struct str piece, struct err *e)
{
	int r = 0;

	while (piece.n > 0 && r == 0) {
		switch (z->state) {
		case PLAIN:
			return z->sink(z->arg, piece);
		case GZIP:
			r = inflate_all(z, &piece, e);
			break;
		default:
			z->head[z->n_head++] = *piece.p;
			piece = (struct str){piece.p + 1, piece.n - 1};
			if (z->n_head == sizeof z->head || z->head[0] != MAGIC[0])
				r = decide(z, e);
			break;
		}
	}
	return r;
}

int inflate_end(struct inflate *z, struct err *e)
{
	if (z->state == UNDECIDED && z->n_head > 0)
		return decide(z, e);
	if (z->state == GZIP || (z->state == BETWEEN_MEMBERS && z->n_head > 0))
		return err_set(e, EBADMSG, "gzip ends in the middle: the file is cut short");
	return 0;
}
