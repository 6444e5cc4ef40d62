// SPDX-License-Identifier: Apache-2.0
/* The table of series, and what taking a row means. */
#include <errno.h>
#include <math.h>

#include "agent/replay/replay.h"
#include "proto/rfc3339.h"

int replay_init(struct replay *r, const struct replay_settings *s, struct err *e)
{
	const struct amounts request = {
		.value = {[RESOURCE_CPU] = s->request.cpu_millicores,
			[RESOURCE_MEMORY] = s->request.memory_bytes},
		.known = {[RESOURCE_CPU] = s->request.cpu_millicores >= 0,
			[RESOURCE_MEMORY] = s->request.memory_bytes >= 0},
	};

	*r = (struct replay){.settings = s};
	model_init(&r->model, &s->knobs);
	if (whatif_create(&s->knobs, &request, &r->whatif) < 0)
		return err_set(e, ENOMEM, "no memory left");
	return 0;
}

void replay_finish(struct replay *r)
{
	whatif_destroy(r->whatif);
	for (size_t i = 0; i < r->n_series; i++) {
		free(r->series[i]->name);
		free(r->series[i]);
	}
	free(r->series);
	free(r->table);
}

/* FNV-1a */
static uint64_t hash_of(struct str s)
{
	uint64_t h = UINT64_C(14695981039346656037);
	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.p[i]) * UINT64_C(1099511628211);
	return h;
}

/* The place of the name, or the free one where it belongs. */
static uint32_t *slot_of(const struct replay *r, struct str name, uint64_t hash)
{
	for (size_t i = hash & (r->table_size - 1);; i = (i + 1) & (r->table_size - 1)) {
		uint32_t *slot = &r->table[i];
		if (*slot == 0)
			return slot;
		const struct replay_series *s = r->series[*slot - 1];
		if (s->hash == hash && str_is(name, s->name))
			return slot;
	}
}

/* Room for one more, at most half full. */
static int grow(struct replay *r)
{
	if (2 * (r->n_series + 1) <= r->table_size)
		return 0;
	size_t size = r->table_size ? 2 * r->table_size : 64;
	struct replay_series **series = reallocarray(r->series, size / 2, sizeof(void *));
	if (!series)
		return -ENOMEM;
	r->series = series;
	uint32_t *table = calloc(size, sizeof *table);
	if (!table)
		return -ENOMEM;
	free(r->table);
	r->table = table;
	r->table_size = size;
	for (size_t i = 0; i < r->n_series; i++)
		*slot_of(r, str_of(series[i]->name), series[i]->hash) = (uint32_t)i + 1;
	return 0;
}

static int make_series(struct replay *r, struct str name, uint64_t hash, struct replay_series **ret)
{
	if (grow(r) < 0)
		return -ENOMEM;
	struct replay_series *s = calloc(1, sizeof *s);
	if (!s)
		return -ENOMEM;
	s->name = str_dup(name);
	if (!s->name || whatif_series_add(r->whatif, name, &s->whatif) < 0) {
		free(s->name);
		free(s);
		return -ENOMEM;
	}
	s->hash = hash;
	s->since = s->last = TIME_NONE;
	usage_init(&s->usage, &r->model);
	*slot_of(r, name, hash) = (uint32_t)r->n_series + 1;
	r->series[r->n_series++] = s;
	*ret = s;
	return 0;
}

int replay_series_get(struct replay *r, struct str name, struct replay_series **ret, struct err *e)
{
	if (r->latest && str_is(name, r->latest->name)) {
		*ret = r->latest;
		return 0;
	}
	if (name.n > REPLAY_NAME_MAX || (name.n && memchr(name.p, '\0', name.n)))
		return err_set(e, EINVAL,
			"a series' name of %zu bytes, expected at most %u and no NUL", name.n,
			REPLAY_NAME_MAX);
	uint64_t hash = hash_of(name);
	const uint32_t *slot = r->table_size ? slot_of(r, name, hash) : NULL;
	if (slot && *slot) {
		*ret = r->latest = r->series[*slot - 1];
		return 0;
	}
	if (r->n_series == REPLAY_SERIES_MAX)
		return err_set(
			e, ENOSPC, "more than %u series: this one is left out", REPLAY_SERIES_MAX);
	if (make_series(r, name, hash, ret) < 0)
		return err_set(e, ENOMEM, "no memory left for another series");
	r->latest = *ret;
	return 0;
}

static int stale(struct err *e, const char *what, int64_t t, int64_t last)
{
	char a[RFC3339_TEXT_MAX], b[RFC3339_TEXT_MAX];

	(void)rfc3339_format(t, a);
	(void)rfc3339_format(last, b);
	return err_set(e, ESTALE, "a %s value of %s, expected none older than the last one, %s",
		what, a, b);
}

static int too_old(struct err *e, int64_t t, int64_t last)
{
	char a[RFC3339_TEXT_MAX], b[RFC3339_TEXT_MAX];

	(void)rfc3339_format(t, a);
	(void)rfc3339_format(last, b);
	return err_set(e, ESTALE,
		"an OOM kill of %s, expected none older by more than --memory-aggregation-interval "
		"than the last memory "
		"value, %s",
		a, b);
}

/* Order is judged before anything is taken in. */
static int check_row(const struct usage_history *u, const struct replay_row *row, struct err *e)
{
	if (row->cpu_millicores < 0)
		return err_set(e, EINVAL, "a negative CPU usage");
	if (row->memory_bytes < 0)
		return err_set(e, EINVAL, "a negative memory usage");
	if (!isnan(row->cpu_millicores) && u->cpu_container_last != TIME_NONE &&
		row->t < u->cpu_container_last)
		return stale(e, "CPU", row->t, u->cpu_container_last);
	if (!isnan(row->memory_bytes) && !row->oom && u->window.last != TIME_NONE &&
		row->t < u->window.last)
		return stale(e, "memory", row->t, u->window.last);
	return 0;
}

int replay_take(
	struct replay *r, struct replay_series *s, const struct replay_row *row, struct err *e)
{
	struct usage_history *u = &s->usage;
	int64_t memory = isnan(row->memory_bytes) ? 0 : amount_from_double(row->memory_bytes);
	int result = check_row(u, row, e);

	if (result < 0)
		return result;
	whatif_advance(s->whatif, u, row->t);
	if (row->oom && usage_record_oom(u, &r->settings->knobs, row->t, memory) < 0)
		return too_old(e, row->t, u->window.last);
	/* A second CPU value of the same time is no mistake, and not used. */
	if (!isnan(row->cpu_millicores))
		(void)usage_add_cpu(u, row->t, row->cpu_millicores, 1);
	if (!isnan(row->memory_bytes) && !row->oom)
		(void)usage_add_memory(u, row->t, memory);
	if (s->since == TIME_NONE || row->t < s->since)
		s->since = row->t;
	if (row->t > s->last)
		s->last = row->t;
	whatif_row(s->whatif, u, row->t, row->cpu_millicores, row->memory_bytes, row->oom);
	return 0;
}

int replay_bad(struct replay *r, struct replay_source *from, const char *place,
	struct replay_series *s, const struct err *e)
{
	if (from->bad++ < REPLAY_BAD_SHOWN) {
		char shown[REPLAY_NAME_MAX + 1]; /* place may be a series' name */
		(void)snprintf(shown, sizeof(shown), "%s", place);
		fprintf(stderr, "%s:%s%s %s\n", from->file, str_printable(shown), *place ? ":" : "",
			e->text);
	}
	r->bad++;
	if (s)
		s->bad_rows++;
	return r->settings->strict ? -ECANCELED : 0;
}

void replay_source_end(const struct replay_source *from)
{
	if (from->bad > REPLAY_BAD_SHOWN)
		fprintf(stderr, "%s: %llu more bad lines\n", from->file,
			(unsigned long long)(from->bad - REPLAY_BAD_SHOWN));
}

/* A series of which nothing could be used is none. */
static void drop_empty(struct replay *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_series; i++) {
		struct replay_series *s = r->series[i];
		if (s->since != TIME_NONE) {
			r->series[n++] = s;
			continue;
		}
		free(s->name);
		free(s);
	}
	r->n_series = n;
	r->latest = NULL;
	/* The table's indexes are no longer right; nothing is looked up any more. */
	free(r->table);
	r->table = NULL;
	r->table_size = 0;
}

void replay_conclude(struct replay *r)
{
	drop_empty(r);
	for (size_t i = 0; i < r->n_series; i++)
		whatif_end(r->series[i]->whatif);
	for (size_t i = 0; i < r->n_series; i++) {
		struct replay_series *s = r->series[i];
		estimate(&s->usage, &r->settings->knobs, 1, s->last, &s->recommendation, NULL);
		whatif_report(r->whatif, s->whatif, &s->report);
	}
	whatif_report_all(r->whatif, &r->all);
}
