// SPDX-License-Identifier: Apache-2.0
#include "proto/csv.h"

#include <errno.h>

void csv_reader_init(struct csv_reader *r, const struct csv_ops *ops, void *arg)
{
	memset(r, 0, offsetof(struct csv_reader, row));
	r->ops = ops;
	r->arg = arg;
	r->row.line = 0;
	buf_init(&r->partial, CSV_LINE_MAX);
	buf_init(&r->unquoted, CSV_LINE_MAX);
}

void csv_reader_finish(struct csv_reader *r)
{
	buf_finish(&r->partial);
	buf_finish(&r->unquoted);
}

static int bad_line(struct csv_reader *r, const char *why)
{
	struct err e;

	(void)err_set(&e, EINVAL, "%s", why);
	return r->ops->bad(r->arg, r->row.line, &e);
}

/* A cell that begins with a quote, at *p; moves *p behind its closing one. Doubled quotes make a
 * copy necessary. NULL, or what is wrong. */
static const char *take_quoted(
	struct csv_reader *r, const char **p, const char *end, struct str *ret)
{
	const char *from = *p + 1, *quote = memchr(from, '"', (size_t)(end - from));

	if (quote && (quote + 1 == end || quote[1] != '"')) {
		*ret = (struct str){from, (size_t)(quote - from)};
		*p = quote + 1;
		return NULL;
	}
	size_t start = r->unquoted.n;
	for (; quote && quote + 1 < end && quote[1] == '"';
		quote = memchr(from, '"', (size_t)(end - from))) {
		(void)buf_append(&r->unquoted, from, (size_t)(quote + 1 - from));
		from = quote + 2;
	}
	if (!quote)
		return "a quote is not closed on its line";
	if (buf_append(&r->unquoted, from, (size_t)(quote - from)) < 0)
		return r->unquoted.error == -ENOMEM ? "no memory left"
						    : "a quoted cell is too long";
	*ret = (struct str){r->unquoted.p + start, r->unquoted.n - start};
	*p = quote + 1;
	return NULL;
}

static const char *take_plain(const char **p, const char *end, struct str *ret)
{
	const char *from = *p, *q = from;

	/* Nearly all that a cell holds (digits, letters, '.', '-') is above ','. */
	for (; q < end; q++) {
		if ((unsigned char)*q > ',')
			continue;
		if (*q == ',')
			break;
		if (*q == '"')
			return "a quote within a cell that does not begin with one";
		if (*q == '\0')
			return "a NUL byte";
	}
	*ret = (struct str){from, (size_t)(q - from)};
	*p = q;
	return NULL;
}

static const char *split(struct csv_reader *r, const char *p, const char *end)
{
	struct csv_row *row = &r->row;

	row->n = 0;
	for (;;) {
		if (row->n == CSV_CELLS_MAX)
			return "too many cells: at most 512 are read";
		struct str *cell = &row->cell[row->n++];
		bool quoted = p < end && *p == '"';
		const char *wrong =
			quoted ? take_quoted(r, &p, end, cell) : take_plain(&p, end, cell);
		if (wrong)
			return wrong;
		if (quoted && memchr(cell->p, '\0', cell->n))
			return "a NUL byte";
		if (p == end)
			return NULL;
		if (*p++ != ',')
			return "something follows a closing quote";
	}
}

/* A whole line, without its newline. */
static int on_line(struct csv_reader *r, const char *p, size_t n)
{
	r->row.line++;
	if (!r->started) {
		r->started = true;
		if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) {
			p += 3;
			n -= 3;
		}
	}
	if (n > 0 && p[n - 1] == '\r')
		n--;
	if (n == 0)
		return 0;
	/* The cells' places must not move while the line is taken apart. */
	if (r->unquoted.n > 0 || r->unquoted.error)
		buf_clear(&r->unquoted);
	if (memchr(p, '"', n) && (!r->unquoted.p || r->unquoted.cap < CSV_LINE_MAX)) {
		buf_reserve(&r->unquoted, CSV_LINE_MAX);
		if (r->unquoted.error)
			return -ENOMEM;
	}
	const char *wrong = split(r, p, p + n);
	return wrong ? bad_line(r, wrong) : r->ops->row(r->arg, &r->row);
}

static int too_long(struct csv_reader *r)
{
	buf_clear(&r->partial);
	r->skipping = true;
	r->started = true;
	r->row.line++;
	struct err e;
	(void)err_set(&e, EMSGSIZE, "the line is longer than %u bytes", CSV_LINE_MAX);
	return r->ops->bad(r->arg, r->row.line, &e);
}

/* The piece's first line has its beginning in r->partial. */
static int continue_line(struct csv_reader *r, const char *p, size_t n, bool ends)
{
	if (r->partial.n + n > CSV_LINE_MAX)
		return too_long(r);
	if (buf_append(&r->partial, p, n) < 0)
		return -ENOMEM;
	if (!ends)
		return 0;
	int result = on_line(r, r->partial.p, r->partial.n);
	buf_clear(&r->partial);
	return result;
}

static int feed_part(struct csv_reader *r, const char *p, size_t n, bool ends)
{
	int result = 0;

	if (r->skipping)
		r->skipping = !ends;
	else if (r->partial.n > 0 || !ends)
		result = continue_line(r, p, n, ends);
	else
		result = n > CSV_LINE_MAX ? too_long(r) : on_line(r, p, n);
	if (ends)
		r->skipping = false;
	return result;
}

int csv_reader_feed(struct csv_reader *r, struct str piece)
{
	const char *p = piece.p, *end = p + piece.n;

	while (p < end && r->error == 0) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		const char *stop = newline ? newline : end;

		r->error = feed_part(r, p, (size_t)(stop - p), newline != NULL);
		p = newline ? newline + 1 : end;
	}
	return r->error;
}

int csv_reader_end(struct csv_reader *r)
{
	if (r->error == 0 && r->partial.n > 0)
		r->error = feed_part(r, "", 0, true);
	return r->error;
}
