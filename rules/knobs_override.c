/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "proto/json_read.h"
#include "rules/knobs.h"

/* What does not shape stored history, and so may differ per DaemonSet. */
static const char *const overridable[] = {
	"target-cpu-percentile",
	"recommendation-lower-bound-cpu-percentile",
	"recommendation-upper-bound-cpu-percentile",
	"target-memory-percentile",
	"recommendation-lower-bound-memory-percentile",
	"recommendation-upper-bound-memory-percentile",
	"recommendation-margin-fraction",
	"confidence-interval-cpu",
	"confidence-interval-memory",
	"pod-recommendation-min-cpu-millicores",
	"pod-recommendation-min-memory-mb",
	"container-min-cpu",
	"container-min-memory",
	"oom-bump-up-ratio",
	"oom-min-bump-up-bytes",
};

#define MEMBERS_MAX ARRAY_SIZE(overridable)
#define TEXT_MAX 128U /* of one member: the longest name, and any value a flag takes */

enum { DOCUMENT, MEMBER };

/* The members as a command line of their own, for the one parser of settings. */
struct members {
	unsigned int n;
	char text[MEMBERS_MAX][TEXT_MAX];
	char *argv[MEMBERS_MAX + 1];
	struct err *e;
};

static int take(void *arg, unsigned int id, const struct json_value *v)
{
	struct members *m = arg;
	int n;

	if (id == DOCUMENT) {
		if (v->type == JSON_OBJECT || v->type == JSON_OBJECT_END)
			return 0;
		return err_set(m->e, EINVAL, "expected a JSON object of settings");
	}
	if (v->type != JSON_STRING && v->type != JSON_NUMBER)
		return err_set(
			m->e, EINVAL, "%.*s: expected a number or a string", STR_ARG(v->key));
	if (m->n == MEMBERS_MAX)
		return err_set(m->e, EINVAL, "more than the %zu settings there are", MEMBERS_MAX);
	n = snprintf(m->text[m->n], TEXT_MAX, "--%.*s=%.*s", STR_ARG(v->key), STR_ARG(v->text));
	if (n < 0 || (size_t)n >= TEXT_MAX)
		return err_set(m->e, EINVAL, "%.*s: name and value are longer than %u bytes",
			(int)(v->key.n < 64 ? v->key.n : 64), v->key.p, TEXT_MAX);
	m->n++;
	m->argv[m->n] = m->text[m->n - 1];
	return 0;
}

static void select_flags(struct flag selected[MEMBERS_MAX + 1])
{
	size_t n = 0;

	for (const struct flag *f = knobs_flags; f->name; f++)
		for (size_t i = 0; i < MEMBERS_MAX; i++)
			if (str_is(str_of(f->name), overridable[i]))
				selected[n++] = *f;
	selected[n] = (struct flag){0};
}

int knobs_override(const struct knobs *base, struct str json, struct knobs *ret, struct err *e)
{
	static const struct json_path paths[] = {{"", DOCUMENT}, {"*", MEMBER}};
	static const struct json_spec spec = {
		.paths = paths,
		.n_paths = ARRAY_SIZE(paths),
		.value = take,
		.string_max = TEXT_MAX,
		.document_max = 4096,
		.depth_max = 4,
	};
	struct flag selected[MEMBERS_MAX + 1];
	const struct flag *const tables[] = {selected, NULL};
	struct members m = {.e = e};
	struct knobs k = *base;
	struct flag_set set = {
		.program = "pernode.io/recommender", .tables = tables, .settings = &k};
	char program[] = "pernode.io/recommender";
	int r, first;

	r = json_read(&spec, &m, json, e);
	if (r < 0)
		return -EINVAL;
	m.argv[0] = program;
	select_flags(selected);
	r = flags_parse(&set, (int)m.n + 1, m.argv, &first, e);
	if (r < 0)
		return -EINVAL;
	r = knobs_resolve(&k, e);
	if (r < 0)
		return r;
	*ret = k;
	return 0;
}
