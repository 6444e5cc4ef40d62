/* SPDX-License-Identifier: Apache-2.0 */
/* Samples put aside in a temporary file: two recordings that are to be joined come one after the
 * other, and neither has to fit into memory. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct sample {
	int64_t t;
	double value;
};

#define SPOOL_BUFFER 4096U /* samples */

struct spool {
	int fd;
	uint64_t n; /* samples ever added; each has its number */
	size_t n_buffered;
	struct sample *buffer;
};

int spool_init(struct spool *s, struct err *e);
void spool_finish(struct spool *s);
int spool_add(struct spool *s, const struct sample *sample, struct err *e);
/* After the last spool_add. */
int spool_flush(struct spool *s, struct err *e);

/* A run of samples, read in order. */
struct spool_cursor {
	const struct spool *spool;
	uint64_t next, end;
	size_t n_buffered, i;
	struct sample buffer[256];
};
void spool_cursor_init(struct spool_cursor *c, const struct spool *s, uint64_t first, uint64_t n);
/* The next sample without taking it, or NULL at the end. -errno in *ret_error. */
const struct sample *spool_peek(struct spool_cursor *c, int *ret_error);
static inline void spool_take(struct spool_cursor *c)
{
	c->i++;
}
