// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "base/num.h"
#include "proto/annotation.h"
#include "proto/field.h"
#include "proto/rfc3339.h"

enum {
	DOCUMENT,
	TARGET_CPU,
	TARGET_MEMORY,
	LOWER_CPU,
	LOWER_MEMORY,
	UPPER_CPU,
	UPPER_MEMORY,
	SAMPLES,
	SINCE,
	AT,
	REASON,
	OOM_KILLS,
	COVERAGE_CPU,
	COVERAGE_MEMORY,
	REVISION,
};

static const struct json_path value_paths[] = {
	{"", DOCUMENT},
	{"target.cpu", TARGET_CPU},
	{"target.memory", TARGET_MEMORY},
	{"lowerBound.cpu", LOWER_CPU},
	{"lowerBound.memory", LOWER_MEMORY},
	{"upperBound.cpu", UPPER_CPU},
	{"upperBound.memory", UPPER_MEMORY},
	{"samples", SAMPLES},
	{"since", SINCE},
	{"at", AT},
	{"reason", REASON},
	{"oomKills", OOM_KILLS},
	{"coverage.cpu", COVERAGE_CPU},
	{"coverage.memory", COVERAGE_MEMORY},
	{"revision", REVISION},
};

struct value_reading {
	struct annotation_value v;
	struct err *e;
};

static const char *path_of(const struct json_path *paths, size_t n, unsigned int id)
{
	for (size_t i = 0; i < n; i++)
		if (paths[i].id == id)
			return *paths[i].path ? paths[i].path : "the value";
	return "?";
}

/* Strings only: in an annotation, 63 without quotes would be 63 cores where 63m was meant. */
static int read_amount(const struct json_value *j, const char *what,
	int (*read)(const struct json_value *, const char *, int64_t *, struct err *), int64_t *ret,
	struct err *e)
{
	if (j->type == JSON_NUMBER)
		return field_wrong(j, what, "a quantity as a string", e);
	return read(j, what, ret, e);
}

static int read_count(const struct json_value *j, const char *what, uint64_t *ret, struct err *e)
{
	int64_t v = 0;
	int r = field_i64(j, what, &v, e);

	if (r == 0 && v < 0)
		r = field_wrong(j, what, "a whole number, not negative", e);
	if (r == 0)
		*ret = (uint64_t)v;
	return r;
}

static int read_share(const struct json_value *j, const char *what, double *ret, struct err *e)
{
	double share;

	if (j->type == JSON_NULL)
		return 0;
	if (j->type != JSON_NUMBER || parse_double(j->text, &share) < 0 ||
		!(share >= 0 && share <= 1))
		return field_wrong(j, what, "a number from 0 to 1", e);
	*ret = share;
	return 0;
}

static int read_reason(const struct json_value *j, enum annotation_reason *ret, struct err *e)
{
	if (j->type != JSON_STRING)
		return field_wrong(j, "reason", "a string", e);
	*ret = ANNOTATION_REASON_UNKNOWN;
	for (enum annotation_reason r = ANNOTATION_REASON_FIRST;
		r <= ANNOTATION_REASON_AHEAD_OF_OOM; r++)
		if (str_is(j->text, annotation_reason_name(r)))
			*ret = r;
	return 0;
}

static int on_value_member(void *arg, unsigned int id, const struct json_value *j)
{
	struct value_reading *r = arg;
	struct annotation_value *v = &r->v;
	const char *what = path_of(value_paths, ARRAY_SIZE(value_paths), id);

	switch (id) {
	case DOCUMENT:
		return j->type == JSON_NULL ? field_wrong(j, what, "an object", r->e)
					    : field_object(j, what, r->e);
	case TARGET_CPU:
		return read_amount(j, what, field_millicores, &v->target.cpu_millicores, r->e);
	case TARGET_MEMORY:
		return read_amount(j, what, field_bytes, &v->target.memory_bytes, r->e);
	case LOWER_CPU:
		return read_amount(j, what, field_millicores, &v->lower.cpu_millicores, r->e);
	case LOWER_MEMORY:
		return read_amount(j, what, field_bytes, &v->lower.memory_bytes, r->e);
	case UPPER_CPU:
		return read_amount(j, what, field_millicores, &v->upper.cpu_millicores, r->e);
	case UPPER_MEMORY:
		return read_amount(j, what, field_bytes, &v->upper.memory_bytes, r->e);
	case SAMPLES:
		return read_count(j, what, &v->samples, r->e);
	case OOM_KILLS:
		return read_count(j, what, &v->oom_kills, r->e);
	case SINCE:
		return field_time(j, what, &v->since_ns, r->e);
	case AT:
		return field_time(j, what, &v->at_ns, r->e);
	case REASON:
		return read_reason(j, &v->reason, r->e);
	case COVERAGE_CPU:
		return read_share(j, what, &v->coverage_cpu, r->e);
	case COVERAGE_MEMORY:
		return read_share(j, what, &v->coverage_memory, r->e);
	default:
		return field_string(j, what, v->revision, sizeof v->revision, FIELD_NAME, r->e);
	}
}

/* json_read, and one document only; every failure is -EINVAL but a lack of memory. */
static int read_one(const struct json_spec *spec, void *arg, struct str text, struct err *e)
{
	if (text.n > ANNOTATION_VALUE_MAX)
		return err_set(e, EINVAL, "%zu bytes, at most %u are expected", text.n,
			ANNOTATION_VALUE_MAX);
	int r = json_read(spec, arg, text, e);
	return r == -EBADMSG || r == -EMSGSIZE || r == -ENODATA ? -EINVAL : r;
}

int annotation_value_read(struct str text, struct annotation_value *ret, struct err *e)
{
	static const struct json_spec spec = {.paths = value_paths,
		.n_paths = ARRAY_SIZE(value_paths),
		.value = on_value_member,
		.one_document = true};
	const struct quantity_pair none = {-1, -1};
	struct value_reading reading = {
		.v = {.target = none,
			.lower = none,
			.upper = none,
			.since_ns = TIME_NONE,
			.at_ns = TIME_NONE,
			.coverage_cpu = -1,
			.coverage_memory = -1},
		.e = e,
	};
	int r = read_one(&spec, &reading, text, e);
	if (r < 0)
		return r;
	if (reading.v.target.cpu_millicores < 0 && reading.v.target.memory_bytes < 0)
		return err_set(e, EINVAL, "target has neither cpu nor memory");
	*ret = reading.v;
	return 0;
}

enum { AGENT_DOCUMENT, VERSION, NODE_UID, MACHINE, BOOT_ID, STARTED_AT, STATE, STATE_REASON };

static const struct json_path agent_paths[] = {
	{"", AGENT_DOCUMENT},
	{"version", VERSION},
	{"nodeUID", NODE_UID},
	{"machine", MACHINE},
	{"bootID", BOOT_ID},
	{"startedAt", STARTED_AT},
	{"state", STATE},
	{"reason", STATE_REASON},
};

struct agent_reading {
	struct annotation_agent a;
	struct err *e;
};

static int on_agent_member(void *arg, unsigned int id, const struct json_value *j)
{
	struct agent_reading *r = arg;
	const char *what = path_of(agent_paths, ARRAY_SIZE(agent_paths), id);
	char *const strings[] = {[VERSION] = r->a.version,
		[NODE_UID] = r->a.node_uid,
		[MACHINE] = r->a.machine,
		[BOOT_ID] = r->a.boot_id,
		[STATE] = r->a.state,
		[STATE_REASON] = r->a.reason};

	if (id == AGENT_DOCUMENT)
		return j->type == JSON_NULL ? field_wrong(j, what, "an object", r->e)
					    : field_object(j, what, r->e);
	if (id == STARTED_AT)
		return field_time(j, what, &r->a.started_at_ns, r->e);
	return field_string(j, what, strings[id], ANNOTATION_AGENT_STR_MAX, FIELD_LINE, r->e);
}

int annotation_agent_read(struct str text, struct annotation_agent *ret, struct err *e)
{
	static const struct json_spec spec = {.paths = agent_paths,
		.n_paths = ARRAY_SIZE(agent_paths),
		.value = on_agent_member,
		.one_document = true};
	struct agent_reading reading = {.a = {.started_at_ns = TIME_NONE}, .e = e};
	int r = read_one(&spec, &reading, text, e);
	if (r == 0)
		*ret = reading.a;
	return r;
}
