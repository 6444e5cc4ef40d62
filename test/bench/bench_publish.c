// SPDX-License-Identifier: Apache-2.0
/* How often a node would be written for: recorded usage, all series of a file on one node, through
 * the estimator and the publish rule, minute by minute. Usage: bench_publish FILE…; columns
 * series_id, unix_seconds, cpu_cores, memory_bytes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/macros.h"
#include "base/num.h"
#include "proto/csv.h"
#include "rules/estimator.h"
#include "rules/publish.h"

#define SERIES_MAX 64U
#define ROWS_MAX 200000U
#define HOLD_SECONDS 3600 /* a row stands until the next one, at most so long */
#define FILE_MAX (64U * 1024 * 1024)

struct row {
	int64_t second;
	double millicores, bytes; /* < 0: not recorded */
};

struct series {
	char name[64];
	struct row *row;
	size_t n, at;
	struct usage_history usage;
	struct publish_item item;
	struct amounts request; /* the first target: what a person would have set from it */
	enum publish_need need;
	enum publish_reason reason;
	struct publish_facts facts;
};

struct bench {
	struct series series[SERIES_MAX];
	size_t n;
	struct knobs knobs;
	struct model model;
	uint64_t random;
	bool header;
};

static uint64_t chance(struct bench *b)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 7;
	b->random ^= b->random << 17;
	return b->random;
}

static struct series *series_of(struct bench *b, struct str name)
{
	for (size_t i = 0; i < b->n; i++)
		if (str_is(name, b->series[i].name))
			return &b->series[i];
	if (b->n == SERIES_MAX)
		return NULL;
	struct series *s = &b->series[b->n];
	if (str_copy(s->name, sizeof(s->name), name) < 0)
		return NULL;
	s->row = calloc(ROWS_MAX, sizeof(*s->row));
	if (!s->row)
		return NULL;
	usage_init(&s->usage, &b->model);
	publish_item_init(&s->item);
	b->n++;
	return s;
}

static int on_row(void *arg, const struct csv_row *row)
{
	struct bench *b = arg;
	double second = 0, cores = -1, bytes = -1;

	if (!b->header) {
		b->header = true;
		return 0;
	}
	if (row->n < 4 || str_ends(row->cell[0], STR(":max")))
		return 0;
	struct series *s = series_of(b, row->cell[0]);
	if (!s || s->n == ROWS_MAX || parse_double(row->cell[1], &second) < 0)
		return 0;
	(void)parse_double(row->cell[2], &cores);
	(void)parse_double(row->cell[3], &bytes);
	s->row[s->n++] = (struct row){(int64_t)second, cores < 0 ? -1 : cores * 1000, bytes};
	return 0;
}

static int on_bad(void *arg, uint64_t line, const struct err *e)
{
	return 0;
}

/* False where nothing is recorded. */
static bool feed(struct series *s, int64_t second)
{
	const struct row *r;

	while (s->at + 1 < s->n && s->row[s->at + 1].second <= second)
		s->at++;
	r = &s->row[s->at];
	if (r->second > second || second - r->second > HOLD_SECONDS)
		return false;
	if (r->millicores >= 0)
		(void)usage_add_cpu(&s->usage, second * NSEC_PER_SEC, r->millicores, 1);
	if (r->bytes >= 0)
		(void)usage_add_memory(&s->usage, second * NSEC_PER_SEC, (int64_t)r->bytes);
	return true;
}

static enum publish_need look(struct bench *b, int64_t now_ns)
{
	enum publish_need need = PUBLISH_NOT;

	for (size_t i = 0; i < b->n; i++) {
		struct series *s = &b->series[i];

		s->facts = (struct publish_facts){
			.request = s->request,
			.samples = s->usage.cpu_samples,
			.ready = estimate_ready(&s->usage),
		};
		if (s->facts.ready) {
			estimate(&s->usage, &b->knobs, 1, now_ns, &s->facts.today, NULL);
			publish_round(&s->facts.today);
		}
		s->need = publish_judge(&s->item, &s->facts, now_ns, &s->reason);
		need = MAX(need, s->need);
	}
	return need;
}

static void write_node(
	struct bench *b, struct publish_node *node, uint64_t now, enum publish_need need)
{
	int64_t now_ns = (int64_t)now * NSEC_PER_USEC;

	publish_node_sent(node, now, need);
	for (size_t i = 0; i < b->n; i++) {
		struct series *s = &b->series[i];

		if (s->need == PUBLISH_NOT)
			continue;
		publish_item_sent(&s->item, &s->facts, s->reason, 1, now_ns);
		publish_item_done(&s->item, now_ns);
		if (!s->request.known[RESOURCE_CPU])
			s->request = s->facts.today.amounts[BOUND_TARGET];
	}
	publish_node_done(node, now, chance(b));
}

static void run(struct bench *b, const char *path)
{
	int64_t first = INT64_MAX, last = 0;
	uint64_t writes = 0, first_day = 0, minutes = 0;
	struct publish_node node;

	for (size_t i = 0; i < b->n; i++) {
		first = MIN(first, b->series[i].row[0].second);
		last = MAX(last, b->series[i].row[b->series[i].n - 1].second);
	}
	publish_node_init(&node, NULL, (uint64_t)first * USEC_PER_SEC);
	for (int64_t second = first; second <= last; second += 60) {
		uint64_t now = (uint64_t)second * USEC_PER_SEC;
		bool recorded = false;

		for (size_t i = 0; i < b->n; i++)
			recorded |= feed(&b->series[i], second);
		minutes += recorded;
		enum publish_need need = look(b, second * NSEC_PER_SEC);
		if (publish_node_wait(&node, now, need, true, chance(b)) != 0)
			continue;
		write_node(b, &node, now, need);
		writes++;
		first_day += second - first < 86400;
	}
	double hours = (double)minutes / 60;
	printf("%s: %zu containers, %.0f hours, %llu writes: %.3f per node-hour, %.3f on the first "
	       "day\n",
		path, b->n, hours, (unsigned long long)writes,
		hours > 0 ? (double)writes / hours : 0, (double)first_day / 24);
}

static int bench(const char *path)
{
	static const struct csv_ops ops = {on_row, on_bad};
	_cleanup_buf_ struct buf content = BUF_INIT(FILE_MAX);
	struct bench *b = calloc(1, sizeof(*b));
	struct csv_reader reader;
	struct err e = {""};
	int r = b ? file_read(AT_FDCWD, path, &content, &e) : -ENOMEM;

	if (r < 0) {
		fprintf(stderr, "%s: %s\n", path, err_text(&e, r));
		free(b);
		return 1;
	}
	b->random = 88172645463325252;
	knobs_defaults(&b->knobs, PROFILE_FINE);
	model_init(&b->model, &b->knobs);
	csv_reader_init(&reader, &ops, b);
	(void)csv_reader_feed(&reader, buf_str(&content));
	(void)csv_reader_end(&reader);
	csv_reader_finish(&reader);
	if (b->n == 0)
		fprintf(stderr, "%s: no rows\n", path);
	else
		run(b, path);
	r = b->n == 0;
	for (size_t i = 0; i < b->n; i++)
		free(b->series[i].row);
	free(b);
	return r;
}

int main(int argc, char **argv)
{
	int failed = argc < 2;

	if (argc < 2)
		fprintf(stderr, "usage: bench_publish FILE…\n");
	for (int i = 1; i < argc; i++)
		failed |= bench(argv[i]);
	return failed;
}
