// SPDX-License-Identifier: Apache-2.0
/* Recordings as CSV: columns by name, in any order. */
#include <errno.h>
#include <math.h>

#include "agent/replay/replay.h"
#include "proto/csv.h"
#include "proto/decimal.h"
#include "proto/rfc3339.h"

enum column { COLUMN_TIME, COLUMN_SERIES, COLUMN_CPU, COLUMN_MEMORY, COLUMN_EVENT, COLUMNS };

#define NO_COLUMN SIZE_MAX

struct csv_input {
	struct replay *replay;
	struct replay_source from;
	struct csv_reader csv;
	size_t n_header; /* cells of the header; 0: it has not come */
	size_t column[COLUMNS];
	const char *column_name[COLUMNS]; /* as it stands in this file */
	bool cpu_is_cores;
	bool looked;    /* at the first byte that is no blank */
	struct err why; /* what ended the reading */
};

/* Of names of one meaning the first in this list that is there counts. */
static const struct column_name {
	const char *name;
	enum column column;
	bool cores;
} column_names[] = {
	{"time", COLUMN_TIME, false},
	{"unix_seconds", COLUMN_TIME, false},
	{"series", COLUMN_SERIES, false},
	{"series_id", COLUMN_SERIES, false},
	{"cpu_millicores", COLUMN_CPU, false},
	{"cpu_cores", COLUMN_CPU, true},
	{"memory_bytes", COLUMN_MEMORY, false},
	{"event", COLUMN_EVENT, false},
};

static int not_usable(struct csv_input *in)
{
	return err_set(&in->why, EBADMSG, "not CSV, Prometheus JSON or gzip of these");
}

/* Which of two columns of one name is meant cannot be told: -EBADMSG. */
static int no_name_twice(struct csv_input *in, const struct csv_row *row)
{
	for (size_t i = 0; i < ARRAY_SIZE(column_names); i++) {
		unsigned int found = 0;

		for (size_t c = 0; c < row->n; c++)
			found += str_is(str_trim(row->cell[c]), column_names[i].name);
		if (found > 1)
			return err_set(&in->why, EBADMSG,
				"the header has %u columns %s, expected one: remove or rename the "
				"others",
				found, column_names[i].name);
	}
	return 0;
}

static int on_header(struct csv_input *in, const struct csv_row *row)
{
	bool any = false;

	for (size_t c = 0; c < COLUMNS; c++)
		in->column[c] = NO_COLUMN;
	for (size_t i = ARRAY_SIZE(column_names); i-- > 0;)
		for (size_t c = 0; c < row->n; c++)
			if (str_is(str_trim(row->cell[c]), column_names[i].name)) {
				in->column[column_names[i].column] = c;
				in->column_name[column_names[i].column] = column_names[i].name;
				if (column_names[i].column == COLUMN_CPU)
					in->cpu_is_cores = column_names[i].cores;
				any = true;
			}
	if (!any)
		return not_usable(in);
	if (in->column[COLUMN_TIME] == NO_COLUMN)
		return err_set(
			&in->why, EBADMSG, "the header has no column time (or unix_seconds)");
	if (in->column[COLUMN_CPU] == NO_COLUMN && in->column[COLUMN_MEMORY] == NO_COLUMN)
		return err_set(&in->why, EBADMSG,
			"the header has no column cpu_millicores (or cpu_cores) and none "
			"memory_bytes");
	in->n_header = row->n;
	return no_name_twice(in, row);
}

static struct str cell(const struct csv_input *in, const struct csv_row *row, enum column c)
{
	size_t i = in->column[c];
	return i == NO_COLUMN ? (struct str){NULL, 0} : str_trim(row->cell[i]);
}

static int bad_cell(const struct csv_input *in, enum column c, struct str text,
	const char *expected, struct err *e)
{
	size_t n = MIN(text.n, (size_t)60);

	return err_set(e, EINVAL, "%s is \"%.*s%s\", expected %s", in->column_name[c], (int)n,
		n ? text.p : "", n < text.n ? "…" : "", expected);
}

static int read_time(const struct csv_input *in, struct str s, int64_t *ret, struct err *e)
{
	bool calendar = s.n > 4 && s.p[4] == '-';
	int r = calendar ? rfc3339_parse(s, ret) : decimal_parse_unix(s, ret);

	if (r == -ERANGE)
		return bad_cell(in, COLUMN_TIME, s, "a time between the years 1678 and 2262", e);
	return r < 0 ? bad_cell(in, COLUMN_TIME, s, "RFC 3339 or Unix seconds", e) : 0;
}

static int read_amount(
	const struct csv_input *in, enum column c, struct str s, double *ret, struct err *e)
{
	*ret = NAN;
	if (s.n == 0)
		return 0;
	if (decimal_parse(s, ret) < 0 || *ret < 0) {
		*ret = NAN;
		return bad_cell(in, c, s, "a number, not negative", e);
	}
	return 0;
}

static int read_row(const struct csv_input *in, const struct csv_row *row, struct replay_row *ret,
	struct err *e)
{
	struct str event = cell(in, row, COLUMN_EVENT);
	int r = read_time(in, cell(in, row, COLUMN_TIME), &ret->t, e);

	if (r == 0)
		r = read_amount(in, COLUMN_CPU, cell(in, row, COLUMN_CPU), &ret->cpu_millicores, e);
	if (r == 0)
		r = read_amount(
			in, COLUMN_MEMORY, cell(in, row, COLUMN_MEMORY), &ret->memory_bytes, e);
	if (in->cpu_is_cores)
		ret->cpu_millicores *= 1000.0;
	ret->oom = str_is(event, "oom");
	if (r == 0 && event.n && !ret->oom)
		r = bad_cell(in, COLUMN_EVENT, event, "oom or nothing", e);
	return r;
}

/* A line that tells no series is counted for the one of a file that has no such column. */
static int refuse(
	struct csv_input *in, uint64_t line, const struct str *series, const struct err *e)
{
	const struct str unnamed = {NULL, 0};
	struct replay_series *s = NULL;
	struct err ignored;
	char place[24];

	if (!series && in->column[COLUMN_SERIES] == NO_COLUMN)
		series = &unnamed;
	if (series)
		(void)replay_series_get(in->replay, *series, &s, &ignored);
	(void)snprintf(place, sizeof(place), "%llu", (unsigned long long)line);
	return replay_bad(in->replay, &in->from, place, s, e);
}

static int on_bad(void *arg, uint64_t line, const struct err *e)
{
	struct csv_input *in = arg;

	return in->n_header == 0 ? not_usable(in) : refuse(in, line, NULL, e);
}

static int on_row(void *arg, const struct csv_row *row)
{
	struct csv_input *in = arg;
	struct replay_series *s;
	struct replay_row values;
	struct err e;

	if (in->n_header == 0)
		return on_header(in, row);
	if (row->n != in->n_header) {
		(void)err_set(&e, EINVAL, "%zu cells, expected %zu as in the header", row->n,
			in->n_header);
		return refuse(in, row->line, NULL, &e);
	}
	struct str name = cell(in, row, COLUMN_SERIES);
	int r = read_row(in, row, &values, &e);
	/* A row in which nothing was recorded is none. */
	if (r == 0 && isnan(values.cpu_millicores) && isnan(values.memory_bytes) && !values.oom)
		return 0;
	if (r == 0)
		r = replay_series_get(in->replay, name, &s, &e);
	if (r == -ENOMEM) {
		in->why = e;
		return r;
	}
	if (r == 0)
		r = replay_take(in->replay, s, &values, &e);
	if (r < 0)
		return refuse(in, row->line, &name, &e);
	in->from.rows++;
	return 0;
}

/* A Prometheus answer is one endless line: tell what to do with it. */
static int look(struct csv_input *in, struct str piece)
{
	struct str s = str_trim(piece);

	if (s.n == 0)
		return 0;
	in->looked = true;
	if (s.p[0] != '{' && s.p[0] != '[')
		return 0;
	return err_set(&in->why, EBADMSG,
		"JSON; a Prometheus answer is given as --cpu=FILE or --memory=FILE");
}

static int sink(void *arg, struct str piece)
{
	struct csv_input *in = arg;
	int r = in->looked ? 0 : look(in, piece);

	if (r == 0)
		r = csv_reader_feed(&in->csv, piece);

	if (r == -ENOMEM && !in->why.text[0])
		(void)err_set(&in->why, ENOMEM, "no memory left");
	return r;
}

int replay_csv(struct replay *r, const char *file, struct err *e)
{
	static const struct csv_ops ops = {.row = on_row, .bad = on_bad};
	struct csv_input *in = calloc(1, sizeof *in);

	if (!in)
		return err_set(e, ENOMEM, "%s: no memory left", file);
	in->replay = r;
	in->from.file = str_is(str_of(file), "-") ? "stdin" : file;
	csv_reader_init(&in->csv, &ops, in);
	int result = replay_read(file, sink, in, &in->why);
	if (result == 0)
		result = csv_reader_end(&in->csv);
	if (result == 0 && in->n_header == 0)
		result = not_usable(in);
	if (result == 0 && in->from.rows == 0)
		result = err_set(&in->why, ENODATA, "no usable row");
	replay_source_end(&in->from);
	if (result < 0)
		(void)err_set(e, -result, "%s: %s", in->from.file,
			result == -ECANCELED ? "stopped at the first bad line (--strict)"
					     : err_text(&in->why, result));
	csv_reader_finish(&in->csv);
	free(in);
	return result;
}
