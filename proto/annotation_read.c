// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>

#include "base/num.h"
#include "proto/annotation.h"
#include "proto/json_read.h"
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

static int wrong(
	struct err *e, const char *member, const struct json_value *v, const char *expected)
{
	return err_set(e, EINVAL, "%s is %s%.*s, expected %s", member,
		v->type == JSON_STRING || v->type == JSON_NUMBER ? "" : "of another type",
		v->text.n > 40 ? 40 : (int)v->text.n, v->text.p ? v->text.p : "", expected);
}

static int64_t *amount_of(struct annotation_value *v, unsigned int id)
{
	switch (id) {
	case TARGET_CPU:
		return &v->target.cpu_millicores;
	case TARGET_MEMORY:
		return &v->target.memory_bytes;
	case LOWER_CPU:
		return &v->lower.cpu_millicores;
	case LOWER_MEMORY:
		return &v->lower.memory_bytes;
	case UPPER_CPU:
		return &v->upper.cpu_millicores;
	default:
		return &v->upper.memory_bytes;
	}
}

static bool read_amount(struct annotation_value *v, unsigned int id, const struct json_value *j)
{
	bool is_cpu = id == TARGET_CPU || id == LOWER_CPU || id == UPPER_CPU;
	int64_t *target = amount_of(v, id);

	if (j->type != JSON_STRING)
		return false;
	return (is_cpu ? quantity_parse_millicores(j->text, target)
		       : quantity_parse_bytes(j->text, target)) == 0;
}

static bool read_time(const struct json_value *j, int64_t *ret)
{
	return j->type == JSON_STRING && rfc3339_parse(j->text, ret) == 0;
}

static bool read_share(const struct json_value *j, double *ret)
{
	double share;

	if (j->type != JSON_NUMBER || parse_double(j->text, &share) < 0 ||
		!(share >= 0 && share <= 1))
		return false;
	*ret = share;
	return true;
}

static bool read_reason(const struct json_value *j, enum annotation_reason *ret)
{
	if (j->type != JSON_STRING)
		return false;
	*ret = ANNOTATION_REASON_UNKNOWN;
	for (enum annotation_reason r = ANNOTATION_REASON_FIRST;
		r <= ANNOTATION_REASON_AHEAD_OF_OOM; r++)
		if (str_is(j->text, annotation_reason_name(r)))
			*ret = r;
	return true;
}

static bool read_string(const struct json_value *j, char *out, size_t size)
{
	return j->type == JSON_STRING && str_copy(out, size, j->text) == 0;
}

static int on_value_member(void *arg, unsigned int id, const struct json_value *j)
{
	struct value_reading *r = arg;
	struct annotation_value *v = &r->v;
	const char *expected;
	bool ok;

	switch (id) {
	case DOCUMENT:
		ok = j->type == JSON_OBJECT || j->type == JSON_OBJECT_END;
		expected = "a JSON object";
		break;
	case SAMPLES:
	case OOM_KILLS:
		ok = j->type == JSON_NUMBER &&
		     parse_u64(j->text, id == SAMPLES ? &v->samples : &v->oom_kills) == 0;
		expected = "a whole number";
		break;
	case SINCE:
	case AT:
		ok = read_time(j, id == SINCE ? &v->since_ns : &v->at_ns);
		expected = "an RFC 3339 time";
		break;
	case REASON:
		ok = read_reason(j, &v->reason);
		expected = "a string";
		break;
	case COVERAGE_CPU:
	case COVERAGE_MEMORY:
		ok = read_share(j, id == COVERAGE_CPU ? &v->coverage_cpu : &v->coverage_memory);
		expected = "a number from 0 to 1";
		break;
	case REVISION:
		ok = read_string(j, v->revision, sizeof v->revision);
		expected = "a string of at most 63 bytes";
		break;
	default:
		ok = read_amount(v, id, j);
		expected = "a quantity, not negative";
		break;
	}
	return ok ? 0 : wrong(r->e, path_of(value_paths, ARRAY_SIZE(value_paths), id), j, expected);
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
	char *const strings[] = {[VERSION] = r->a.version,
		[NODE_UID] = r->a.node_uid,
		[MACHINE] = r->a.machine,
		[BOOT_ID] = r->a.boot_id,
		[STATE] = r->a.state,
		[STATE_REASON] = r->a.reason};
	bool ok;

	if (id == AGENT_DOCUMENT)
		ok = j->type == JSON_OBJECT || j->type == JSON_OBJECT_END;
	else if (id == STARTED_AT)
		ok = read_time(j, &r->a.started_at_ns);
	else
		ok = read_string(j, strings[id], ANNOTATION_AGENT_STR_MAX);
	return ok ? 0
		  : wrong(r->e, path_of(agent_paths, ARRAY_SIZE(agent_paths), id), j,
			    id == AGENT_DOCUMENT ? "a JSON object"
			    : id == STARTED_AT   ? "an RFC 3339 time"
						 : "a string of at most 127 bytes");
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
