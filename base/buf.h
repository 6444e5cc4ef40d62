/* SPDX-License-Identifier: Apache-2.0 */
/* A growable buffer that is born with its maximum. Appending past the maximum, or a failed
 * allocation, sets the buffer's error and leaves what is there; further appends are no-ops, so a
 * writer checks once, at its end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "base/str.h"

struct buf {
	char *p; /* always NUL-terminated when not NULL */
	size_t n;
	size_t cap;
	size_t max; /* bytes without the NUL */
	int error;  /* 0, or -EMSGSIZE, or -ENOMEM */
};

#define BUF_INIT(maximum) ((struct buf){.max = (maximum)})

void buf_init(struct buf *b, size_t max);
void buf_finish(struct buf *b); /* frees; usable again after buf_init */
void buf_clear(struct buf *b);  /* keeps the memory, forgets content and error */
int buf_append(struct buf *b, const void *p, size_t n);
int buf_add(struct buf *b, struct str s);
int buf_puts(struct buf *b, const char *z);
int buf_putc(struct buf *b, char c);
int buf_printf(struct buf *b, const char *format, ...) _printf_(2, 3);
/* Drops the first n bytes (a parser's consumed part). */
void buf_consume(struct buf *b, size_t n);
/* Makes room for n more bytes and returns where to write them, or NULL with the error set; buf_grew
 * tells how many were written. */
char *buf_reserve(struct buf *b, size_t n);
void buf_grew(struct buf *b, size_t n);
/* Takes the NUL-terminated content over (free it); the buffer is empty afterwards. NULL after an
 * error. */
char *buf_take(struct buf *b);
struct str buf_str(const struct buf *b);

#define _cleanup_buf_ _cleanup_(buf_finish)
