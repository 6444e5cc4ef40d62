/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define FIRST_CAP SIZE_OR_TINY(256U, 1U)

void buf_init(struct buf *b, size_t max)
{
	*b = BUF_INIT(max);
}

void buf_finish(struct buf *b)
{
	free(b->p);
	*b = BUF_INIT(b->max);
}

void buf_clear(struct buf *b)
{
	b->n = 0;
	b->error = 0;
	if (b->p)
		b->p[0] = '\0';
}

/* Room for n more bytes and a NUL. */
static int grow(struct buf *b, size_t n)
{
	if (b->error)
		return b->error;
	if (n > b->max || b->n > b->max - n)
		return b->error = -EMSGSIZE;

	size_t need = b->n + n + 1;
	if (need <= b->cap)
		return 0;
	size_t cap = b->cap ? b->cap : FIRST_CAP;
	while (cap < need)
		cap += cap / 2 + 1;
	cap = MIN(cap, b->max + 1);
	char *p = realloc(b->p, cap);
	if (!p)
		return b->error = -ENOMEM;
	b->p = p;
	b->cap = cap;
	return 0;
}

int buf_append(struct buf *b, const void *p, size_t n)
{
	int r = grow(b, n);

	if (r < 0)
		return r;
	if (n)
		memcpy(b->p + b->n, p, n);
	b->n += n;
	b->p[b->n] = '\0';
	return 0;
}

int buf_add(struct buf *b, struct str s)
{
	return buf_append(b, s.p, s.n);
}

int buf_puts(struct buf *b, const char *z)
{
	return buf_append(b, z, strlen(z));
}

int buf_putc(struct buf *b, char c)
{
	return buf_append(b, &c, 1);
}

int buf_printf(struct buf *b, const char *format, ...)
{
	va_list ap, again;

	if (b->error)
		return b->error;
	va_start(ap, format);
	va_copy(again, ap);
	size_t room = b->cap > b->n ? b->cap - b->n : 0;
	int n = vsnprintf(room ? b->p + b->n : NULL, room, format, ap);
	va_end(ap);
	int r = n < 0 ? (b->error = -EINVAL) : 0;
	if (r == 0 && (size_t)n >= room) {
		if (room)
			b->p[b->n] = '\0'; /* what did not fit is not left half-written */
		r = grow(b, (size_t)n);
		if (r == 0)
			(void)vsnprintf(b->p + b->n, (size_t)n + 1, format, again);
	} else if (r == 0 && (size_t)n > b->max - b->n) {
		b->p[b->n] = '\0';
		r = b->error = -EMSGSIZE;
	}
	va_end(again);
	if (r == 0)
		b->n += (size_t)n;
	return r;
}

void buf_consume(struct buf *b, size_t n)
{
	n = MIN(n, b->n);
	if (n == 0)
		return;
	memmove(b->p, b->p + n, b->n - n);
	b->n -= n;
	b->p[b->n] = '\0';
}

char *buf_reserve(struct buf *b, size_t n)
{
	return grow(b, n) < 0 ? NULL : b->p + b->n;
}

void buf_grew(struct buf *b, size_t n)
{
	b->n += n;
	b->p[b->n] = '\0';
}

char *buf_take(struct buf *b)
{
	if (grow(b, 0) < 0)
		return NULL;
	b->p[b->n] = '\0';
	char *p = TAKE_PTR(b->p);
	*b = BUF_INIT(b->max);
	return p;
}

struct str buf_str(const struct buf *b)
{
	return (struct str){b->p ? b->p : "", b->n};
}
