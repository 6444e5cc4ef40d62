// SPDX-License-Identifier: Apache-2.0
/* Recordings as answers of Prometheus to range queries: CPU and memory each in a file of its own,
 * joined on their labels. */
#include <errno.h>
#include <math.h>

#include "agent/replay/replay.h"
#include "agent/replay/replay_labels.h"
#include "agent/replay/replay_spool.h"
#include "proto/decimal.h"
#include "proto/json_read.h"

/* One series of one file, with its samples in the spool. */
struct part {
	char *name;
	char *labels;
	size_t n_labels; /* bytes */
	int64_t start;   /* of the first sample of this label set in either file */
	uint64_t first, n;
	uint64_t bad; /* values that could not be used */
	enum resource resource;
};

struct parts {
	struct part *part;
	size_t n, size;
	struct spool spool;
};

/* A file being read. */
struct prometheus_input {
	struct replay *replay;
	struct parts *parts;
	struct replay_source from;
	struct json_reader *json;
	enum resource resource;
	struct labels labels;
	uint64_t result; /* number of the current series, from 1 */
	uint64_t value;  /* and of its value */
	struct part current;
	unsigned int position; /* in [time, "value"] */
	bool usable;
	struct sample sample;
	bool is_matrix;
	struct err why;
};

enum { STATUS, ERROR, RESULT_TYPE, RESULT, LABEL, VALUE, VALUE_ITEM };

static const struct json_path paths[] = {
	{"status", STATUS},
	{"error", ERROR},
	{"data.resultType", RESULT_TYPE},
	{"data.result[]", RESULT},
	{"data.result[].metric.*", LABEL},
	{"data.result[].values[]", VALUE},
	{"data.result[].values[][]", VALUE_ITEM},
};

static int bad_value(
	struct prometheus_input *in, const char *what, struct str text, const char *expected)
{
	char place[64];
	struct err e;

	(void)snprintf(place, sizeof place, "series %llu, value %llu",
		(unsigned long long)in->result, (unsigned long long)in->value);
	(void)err_set(&e, EINVAL, "%s is \"%.*s\", expected %s", what,
		text.n > 40 ? 40 : (int)text.n, text.p ? text.p : "", expected);
	in->usable = false;
	in->current.bad++;
	return replay_bad(in->replay, &in->from, place, NULL, &e);
}

static int on_value_item(struct prometheus_input *in, const struct json_value *v)
{
	struct sample *s = &in->sample;

	if (in->position++ == 0) {
		if (v->type != JSON_NUMBER || decimal_parse_unix(v->text, &s->t) < 0)
			return bad_value(in, "the time", v->text, "Unix seconds");
		return 0;
	}
	if (in->position > 2 || !in->usable)
		return 0;
	if (v->type != JSON_STRING || decimal_parse(v->text, &s->value) < 0 || s->value < 0)
		return bad_value(in, "the value", v->text, "a number in quotes, not negative");
	if (in->resource == RESOURCE_CPU)
		s->value *= 1000.0;
	return 0;
}

static int on_value(struct prometheus_input *in, const struct json_value *v)
{
	if (v->type == JSON_ARRAY) {
		in->value++;
		in->position = 0;
		in->usable = true;
		return 0;
	}
	if (v->type != JSON_ARRAY_END) {
		in->value++;
		return bad_value(in, "it", v->text, "[time, \"value\"]");
	}
	if (!in->usable)
		return 0;
	if (in->position != 2)
		return bad_value(in, "it", (struct str){NULL, 0}, "[time, \"value\"]");
	if (in->current.n == 0)
		in->current.start = in->sample.t;
	in->current.n++;
	in->from.rows++;
	return spool_add(&in->parts->spool, &in->sample, &in->why);
}

static int keep_part(struct prometheus_input *in)
{
	struct parts *all = in->parts;
	_cleanup_buf_ struct buf name = BUF_INIT(REPLAY_NAME_MAX),
				 canonical = BUF_INIT(LABELS_TEXT_MAX + 1);
	struct part part = in->current;
	int r = labels_fill(&in->labels, in->replay->settings->series_name, &name, &in->why);

	if (r == 0)
		r = labels_canonical(&in->labels, &canonical);
	if (r < 0)
		return in->why.text[0] ? r
				       : err_set(&in->why, -r, "series %llu: its name is too long",
						 (unsigned long long)in->result);
	if (all->n == all->size) {
		size_t size = all->size ? 2 * all->size : 64;
		struct part *grown = reallocarray(all->part, size, sizeof *grown);
		if (!grown)
			return -ENOMEM;
		all->part = grown;
		all->size = size;
	}
	part.n_labels = canonical.n;
	(void)buf_puts(&name, "");
	(void)buf_puts(&canonical, "");
	part.name = name.p ? buf_take(&name) : strdup("");
	part.labels = canonical.p ? buf_take(&canonical) : strdup("");
	if (!part.name || !part.labels) {
		free(part.name);
		free(part.labels);
		return -ENOMEM;
	}
	all->part[all->n++] = part;
	return 0;
}

static int on_result(struct prometheus_input *in, const struct json_value *v)
{
	if (v->type == JSON_OBJECT) {
		in->result++;
		in->value = 0;
		labels_clear(&in->labels);
		in->current = (struct part){.first = in->parts->spool.n, .resource = in->resource};
		return 0;
	}
	if (v->type != JSON_OBJECT_END)
		return err_set(&in->why, EBADMSG, "an element of data.result is no object");
	return in->current.n ? keep_part(in) : 0;
}

static int on_label(struct prometheus_input *in, const struct json_value *v)
{
	int r = -EINVAL;

	if (v->type == JSON_STRING)
		r = v->cut ? -E2BIG : labels_add(&in->labels, v->key, v->text);
	if (r == -ENOMEM || r == 0)
		return r;
	return err_set(&in->why, EBADMSG, "series %llu: its labels cannot be read: %s",
		(unsigned long long)in->result,
		r == -E2BIG ? "too many, or too long" : "expected strings without NUL");
}

static int on_json(void *arg, unsigned int id, const struct json_value *v)
{
	struct prometheus_input *in = arg;

	switch (id) {
	case STATUS:
		return 0;
	case ERROR:
		return err_set(&in->why, EBADMSG, "Prometheus answered with an error: %.*s",
			STR_ARG(v->text));
	case RESULT_TYPE:
		in->is_matrix = v->type == JSON_STRING && str_is(v->text, "matrix");
		if (in->is_matrix)
			return 0;
		return err_set(&in->why, EBADMSG,
			"resultType is %.*s, expected matrix: ask /api/v1/query_range",
			STR_ARG(v->text));
	case RESULT:
		return on_result(in, v);
	case LABEL:
		return on_label(in, v);
	case VALUE:
		return on_value(in, v);
	default:
		return on_value_item(in, v);
	}
}

static int sink(void *arg, struct str piece)
{
	struct prometheus_input *in = arg;
	struct err e = {0};
	int r = json_reader_feed(in->json, piece.p, piece.n, &e);

	if (r < 0 && !in->why.text[0] && e.text[0])
		in->why = e;
	return r;
}

static int read_input(struct prometheus_input *in, const char *file)
{
	int r = replay_read(file, sink, in, &in->why);

	if (r == 0)
		r = json_reader_end(in->json, &in->why);
	if (r == -EBADMSG && in->result == 0 && json_reader_documents(in->json) == 0 &&
		strstr(in->why.text, "not JSON"))
		return err_set(&in->why, EBADMSG, "not CSV, Prometheus JSON or gzip of these");
	if (r == 0 && !in->is_matrix)
		r = err_set(&in->why, EBADMSG,
			"no answer to a Prometheus range query: it has no data.resultType");
	if (r == 0 && in->from.rows == 0)
		r = err_set(&in->why, ENODATA, "no usable value");
	return r;
}

static int read_file(struct replay *replay, struct parts *parts, const char *file,
	enum resource resource, struct err *e)
{
	static const struct json_spec spec = {.paths = paths,
		.n_paths = ARRAY_SIZE(paths),
		.value = on_json,
		.one_document = true};
	struct prometheus_input *in = calloc(1, sizeof *in);

	if (!in)
		return err_set(e, ENOMEM, "%s: no memory left", file);
	in->replay = replay;
	in->parts = parts;
	in->from.file = str_is(str_of(file), "-") ? "stdin" : file;
	in->resource = resource;
	labels_init(&in->labels);
	in->json = json_reader_create(&spec, in);
	int r = in->json ? read_input(in, file) : err_set(&in->why, ENOMEM, "no memory left");
	replay_source_end(&in->from);
	if (r < 0)
		(void)err_set(e, -r, "%s: %s", in->from.file,
			r == -ECANCELED ? "stopped at the first bad value (--strict)"
					: err_text(&in->why, r));
	json_reader_destroy(in->json);
	labels_finish(&in->labels);
	free(in);
	return r;
}

static int compare_labels(const struct part *a, const struct part *b)
{
	if (a->n_labels != b->n_labels)
		return a->n_labels < b->n_labels ? -1 : 1;
	int r = memcmp(a->labels, b->labels, a->n_labels);
	return r ? r : (int)a->resource - (int)b->resource;
}

/* By name, then labels: what is to be joined is side by side. */
static int by_labels(const void *x, const void *y)
{
	const struct part *a = x, *b = y;
	int r = strcmp(a->name, b->name);
	return r ? r : compare_labels(a, b);
}

/* By name, then time, then labels. */
static int by_start(const void *x, const void *y)
{
	const struct part *a = x, *b = y;
	int r = strcmp(a->name, b->name);
	if (r)
		return r;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return compare_labels(a, b);
}

static bool joined(const struct part *a, const struct part *b)
{
	return strcmp(a->name, b->name) == 0 && a->n_labels == b->n_labels &&
	       memcmp(a->labels, b->labels, a->n_labels) == 0;
}

/* Series of one name follow each other in time; CPU and memory of one label set start together. */
static void order(struct parts *all)
{
	if (all->n == 0)
		return;
	qsort(all->part, all->n, sizeof *all->part, by_labels);
	for (size_t i = 0; i + 1 < all->n; i++) {
		struct part *a = &all->part[i], *b = &all->part[i + 1];
		if (joined(a, b))
			a->start = b->start = MIN(a->start, b->start);
	}
	qsort(all->part, all->n, sizeof *all->part, by_start);
}

/* The row of the earliest time in either; false at the end. */
static bool next_row(struct spool_cursor *cpu, struct spool_cursor *memory, struct replay_row *ret,
	int *ret_error)
{
	const struct sample *c = spool_peek(cpu, ret_error), *m = spool_peek(memory, ret_error);

	if (!c && !m)
		return false;
	int64_t t = c ? c->t : INT64_MAX;
	if (m && m->t < t)
		t = m->t;
	*ret = (struct replay_row){.t = t, .cpu_millicores = NAN, .memory_bytes = NAN};
	if (c && c->t == t) {
		ret->cpu_millicores = c->value;
		spool_take(cpu);
	}
	if (m && m->t == t) {
		ret->memory_bytes = m->value;
		spool_take(memory);
	}
	return true;
}

/* One label set: of a in its file, and of b, if it is not NULL, in the memory's. */
static int replay_joined(struct replay *r, const struct spool *spool, const struct part *a,
	const struct part *b, struct replay_source *from, struct err *e)
{
	struct spool_cursor cpu, memory;
	struct replay_series *s;
	struct replay_row row;
	int error = 0;
	int result = replay_series_get(r, str_of(a->name), &s, e);

	if (result == -ENOMEM)
		return result;
	if (result < 0)
		return replay_bad(r, from, a->name, NULL, e);
	s->bad_rows += a->bad + (b ? b->bad : 0);
	spool_cursor_init(&cpu, spool, 0, 0);
	spool_cursor_init(&memory, spool, b ? b->first : 0, b ? b->n : 0);
	spool_cursor_init(a->resource == RESOURCE_CPU ? &cpu : &memory, spool, a->first, a->n);
	while (next_row(&cpu, &memory, &row, &error) && error == 0) {
		struct err why;
		if (replay_take(r, s, &row, &why) < 0 && replay_bad(r, from, s->name, s, &why) < 0)
			return err_set(e, ECANCELED,
				"%s: stopped at the first bad value (--strict)", from->file);
	}
	if (error < 0)
		return err_set(
			e, -error, "the temporary file cannot be read: %s", err_text(NULL, error));
	return 0;
}

static int replay_parts(struct replay *r, struct parts *all, const char *file, struct err *e)
{
	struct replay_source from = {.file = file};
	int result = 0;

	order(all);
	for (size_t i = 0; i < all->n && result == 0; i++) {
		const struct part *a = &all->part[i], *b = i + 1 < all->n ? a + 1 : NULL;

		/* CPU comes first: by_start. */
		if (b && !(joined(a, b) && a->resource == RESOURCE_CPU &&
				 b->resource == RESOURCE_MEMORY))
			b = NULL;
		result = replay_joined(r, &all->spool, a, b, &from, e);
		i += b != NULL;
	}
	replay_source_end(&from);
	return result;
}

int replay_prometheus(
	struct replay *r, const char *cpu_file, const char *memory_file, struct err *e)
{
	struct parts all = {0};
	int result = spool_init(&all.spool, e);

	if (result == 0 && cpu_file)
		result = read_file(r, &all, cpu_file, RESOURCE_CPU, e);
	if (result == 0 && memory_file)
		result = read_file(r, &all, memory_file, RESOURCE_MEMORY, e);
	if (result == 0)
		result = spool_flush(&all.spool, e);
	if (result == 0)
		result = replay_parts(r, &all, cpu_file ? cpu_file : memory_file, e);
	for (size_t i = 0; i < all.n; i++) {
		free(all.part[i].name);
		free(all.part[i].labels);
	}
	free(all.part);
	spool_finish(&all.spool);
	return result;
}

int replay_check_template(const char *text, struct err *e)
{
	_cleanup_buf_ struct buf out = BUF_INIT(REPLAY_NAME_MAX);
	int r = labels_fill(NULL, text, &out, e);

	return r == -EMSGSIZE ? err_set(e, EINVAL, "--series-name is longer than %u characters",
					REPLAY_NAME_MAX)
			      : r;
}
