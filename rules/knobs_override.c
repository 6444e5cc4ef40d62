/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of one DaemonSet, on top of the agent's. */
#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "proto/json_read.h"
#include "rules/knobs.h"

/* What may differ between the DaemonSets of one node: all that does not shape what is stored. */
static const char *const allowed[] = {
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

enum { DOCUMENT, MEMBER };
static const struct json_path paths[] = {{"", DOCUMENT}, {"*", MEMBER}};

struct reading {
	struct knobs knobs;
	struct err *e;
	unsigned int documents;
};

static const struct flag *flag_named(struct str name)
{
	for (const struct flag *f = knobs_flags; f->name; f++) {
		if (str_is(name, f->name))
			return f;
	}
	return NULL;
}

static bool is_allowed(struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++) {
		if (str_is(name, allowed[i]))
			return true;
	}
	return false;
}

static int take_member(struct reading *r, const struct json_value *v)
{
	const struct flag *f = flag_named(v->key);
	struct err why = {""};

	if (!f)
		return err_set(r->e, EINVAL, "%.*s: no such setting",
			(int)MIN(v->key.n, (size_t)64), v->key.p);
	if (!is_allowed(v->key))
		return err_set(r->e, EINVAL,
			"%s: is the same for the whole node; set it as a flag of the agent",
			f->name);
	if ((v->type != JSON_NUMBER && v->type != JSON_STRING) || v->cut)
		return err_set(r->e, EINVAL, "%s: accepted is a number or a string", f->name);
	if (flag_value_set(f, v->text, &r->knobs, &why) < 0)
		return err_set(r->e, EINVAL, "%s=%.*s: %s", f->name,
			(int)MIN(v->text.n, (size_t)64), v->text.p, why.text);
	return 0;
}

static int take(void *arg, unsigned int id, const struct json_value *v)
{
	struct reading *r = arg;

	if (id == MEMBER)
		return take_member(r, v);
	if (v->type == JSON_OBJECT)
		r->documents++;
	if (v->type != JSON_OBJECT && v->type != JSON_OBJECT_END)
		return err_set(r->e, EINVAL,
			"accepted is a JSON object with the names of flags, such as "
			"{\"target-cpu-percentile\": 0.95}");
	return 0;
}

int knobs_override(const struct knobs *base, struct str json, struct knobs *ret, struct err *e)
{
	static const struct json_spec spec = {.paths = paths,
		.n_paths = ARRAY_SIZE(paths),
		.value = take,
		.string_max = 256,
		.depth_max = 4};
	struct err why = {""}, check = {""};
	struct reading r = {.knobs = *base, .e = &why};

	int result = json_read(&spec, &r, json, &check);
	if (result == -ENOMEM)
		return result;
	if (result < 0)
		return err_set(e, EINVAL, "%s", why.text[0] ? why.text : err_text(&check, result));
	if (r.documents != 1)
		return err_set(e, EINVAL, "accepted is one JSON object");
	/* The bounds of one resource have to stay in order, whichever of them was set. */
	result = knobs_resolve(&r.knobs, e);
	if (result < 0)
		return result;
	*ret = r.knobs;
	return 0;
}
