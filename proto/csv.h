/* SPDX-License-Identifier: Apache-2.0 */
/* CSV as it arrives, in any pieces: lines ended by LF or CRLF, cells between commas, a cell in
 * quotes may hold commas and doubled quotes. A record is one line: a quote that is open at its end
 * makes that line a bad one, and never swallows the next. Lines that lie whole in a piece are not
 * copied. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define CSV_LINE_MAX SIZE_OR_TINY(65536U, 96U) /* bytes */
#define CSV_CELLS_MAX 512U

/* Valid in the call that gets it. */
struct csv_row {
	uint64_t line; /* of the file, from 1 */
	size_t n;
	struct str cell[CSV_CELLS_MAX];
};

struct csv_ops {
	/* Blank lines are not rows. A negative return ends the reading. */
	int (*row)(void *arg, const struct csv_row *row);
	/* A line that is none: too long, a NUL byte, a quote in the wrong place. Likewise. */
	int (*bad)(void *arg, uint64_t line, const struct err *e);
};

struct csv_reader {
	const struct csv_ops *ops;
	void *arg;
	struct buf partial;  /* the beginning of a line whose rest has not come yet */
	struct buf unquoted; /* cells with doubled quotes, made plain */
	bool skipping;       /* the rest of a line that was too long */
	bool started;
	int error;
	struct csv_row row;
};

void csv_reader_init(struct csv_reader *r, const struct csv_ops *ops, void *arg);
void csv_reader_finish(struct csv_reader *r);
/* 0, what a callback returned, or -ENOMEM; after that the same for ever. */
int csv_reader_feed(struct csv_reader *r, struct str piece);
/* The text is over: the last line may have no newline. */
int csv_reader_end(struct csv_reader *r);
