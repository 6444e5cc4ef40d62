// SPDX-License-Identifier: Apache-2.0
/* Rows do not depend on the pieces; a number reads as the slow way reads it; gzip never breaks. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/num.h"
#include "proto/csv.h"
#include "proto/decimal.h"
#include "proto/inflate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_number(struct str s)
{
	double a = 0, b = 0;
	int64_t ns;

	if (decimal_parse(s, &a) != parse_double(s, &b) || memcmp(&a, &b, sizeof a) != 0)
		abort();
	(void)decimal_parse_unix(s, &ns);
}

static int copy_row(void *arg, const struct csv_row *row)
{
	(void)buf_printf(arg, "%llu", (unsigned long long)row->line);
	for (size_t i = 0; i < row->n; i++) {
		check_number(row->cell[i]);
		(void)buf_putc(arg, '|');
		(void)buf_add(arg, row->cell[i]);
	}
	return 0;
}

static int copy_bad(void *arg, uint64_t line, const struct err *e)
{
	return buf_printf(arg, "%llu!%s", (unsigned long long)line, e->text) < 0 ? -EIO : 0;
}

static void read_all(struct str text, size_t piece, struct buf *out)
{
	static const struct csv_ops ops = {.row = copy_row, .bad = copy_bad};
	struct csv_reader r;

	csv_reader_init(&r, &ops, out);
	for (size_t i = 0; i < text.n; i += piece)
		if (csv_reader_feed(&r, (struct str){text.p + i, MIN(piece, text.n - i)}) < 0)
			abort();
	if (csv_reader_end(&r) < 0)
		abort();
	csv_reader_finish(&r);
}

static int drop(void *arg, struct str piece)
{
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size};
	_cleanup_buf_ struct buf whole = BUF_INIT(64U << 20), pieces = BUF_INIT(64U << 20);
	struct inflate *z = inflate_create(drop, NULL);

	if (!z)
		abort();
	read_all(text, size ? size : 1, &whole);
	read_all(text, size ? 1U + data[size - 1] % 9U : 1, &pieces);
	if (!str_eq(buf_str(&whole), buf_str(&pieces)))
		abort();
	if (inflate_feed(z, text, NULL) == 0)
		(void)inflate_end(z, NULL);
	inflate_destroy(z);
	return 0;
}
