// SPDX-License-Identifier: Apache-2.0
#include "proto/annotation.h"

#include <errno.h>

#include "proto/json_write.h"
#include "proto/rfc3339.h"

#define HASH_DIGITS 16U
#define DOMAIN_SUFFIX "." ANNOTATION_DOMAIN

/* http://www.isthe.com/chongo/tech/comp/fnv/ */
static uint64_t fnv1a(uint64_t hash, struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		hash = (hash ^ (unsigned char)s.p[i]) * UINT64_C(1099511628211);
	return hash;
}
#define FNV1A_START UINT64_C(14695981039346656037)

static void hex16(char out[HASH_DIGITS], uint64_t v)
{
	for (size_t i = HASH_DIGITS; i-- > 0; v >>= 4)
		out[i] = "0123456789abcdef"[v & 15];
}

static bool is_lower_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* A DNS label, or with dots a subdomain; as Kubernetes names things. */
static bool is_dns_name(struct str s, bool dots, size_t max)
{
	if (s.n == 0 || s.n > max)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		bool at_edge = i == 0 || i + 1 == s.n;

		if (is_lower_alphanumeric(s.p[i]))
			continue;
		if (at_edge || (s.p[i] != '-' && !(dots && s.p[i] == '.')))
			return false;
		if (s.p[i] == '.' &&
			!(is_lower_alphanumeric(s.p[i - 1]) && is_lower_alphanumeric(s.p[i + 1])))
			return false;
	}
	return true;
}

/* Writes name, or its short form when it has more than max bytes. Returns the length. */
static size_t put_name(char *out, struct str name, size_t max)
{
	if (name.n <= max) {
		memcpy(out, name.p, name.n);
		return name.n;
	}
	size_t n = max - HASH_DIGITS - 1;
	while (n > 0 && !is_lower_alphanumeric(name.p[n - 1]))
		n--;
	memcpy(out, name.p, n);
	out[n++] = '-';
	hex16(out + n, fnv1a(FNV1A_START, name));
	return n + HASH_DIGITS;
}

int annotation_key(char out[ANNOTATION_KEY_MAX], struct str namespace, struct str daemonset,
	struct str container)
{
	size_t n = 0, suffix = sizeof DOMAIN_SUFFIX - 1;

	if (!is_dns_name(namespace, false, 63) || !is_dns_name(daemonset, true, 253) ||
		!is_dns_name(container, false, 253))
		return -EINVAL;
	n += put_name(out, daemonset, ANNOTATION_PREFIX_MAX - suffix - namespace.n - 1);
	out[n++] = '.';
	memcpy(out + n, namespace.p, namespace.n);
	n += namespace.n;
	memcpy(out + n, DOMAIN_SUFFIX, suffix);
	n += suffix;
	out[n++] = '/';
	n += put_name(out + n, container, ANNOTATION_NAME_MAX);
	out[n] = '\0';
	return 0;
}

enum annotation_kind annotation_key_parse(struct str key, struct annotation_names *ret)
{
	struct str name = key, prefix = str_cut(&name, '/');

	if (!name.p ||
		(!str_is(prefix, ANNOTATION_DOMAIN) && !str_ends(prefix, STR(DOMAIN_SUFFIX))))
		return ANNOTATION_FOREIGN;
	if (str_is(key, ANNOTATION_AGENT))
		return ANNOTATION_IS_AGENT;
	if (prefix.n <= sizeof DOMAIN_SUFFIX - 1 || prefix.n > ANNOTATION_PREFIX_MAX)
		return ANNOTATION_OTHER;
	struct str owner = {prefix.p, prefix.n - (sizeof DOMAIN_SUFFIX - 1)};
	const char *dot = memrchr(owner.p, '.', owner.n);
	if (!dot)
		return ANNOTATION_OTHER;
	struct annotation_names names = {
		.daemonset = {owner.p, (size_t)(dot - owner.p)},
		.namespace = {dot + 1, owner.n - (size_t)(dot - owner.p) - 1},
		.container = name,
	};
	if (!is_dns_name(names.daemonset, true, ANNOTATION_PREFIX_MAX) ||
		!is_dns_name(names.namespace, false, 63) ||
		!is_dns_name(names.container, false, ANNOTATION_NAME_MAX))
		return ANNOTATION_OTHER;
	*ret = names;
	return ANNOTATION_IS_RECOMMENDATION;
}

static const char *const reason_names[] = {
	[ANNOTATION_REASON_UNKNOWN] = "unknown",
	[ANNOTATION_REASON_FIRST] = "first",
	[ANNOTATION_REASON_USAGE] = "usage",
	[ANNOTATION_REASON_THROTTLED] = "throttled",
	[ANNOTATION_REASON_OOM] = "oom",
	[ANNOTATION_REASON_AHEAD_OF_OOM] = "ahead-of-oom",
};

const char *annotation_reason_name(enum annotation_reason r)
{
	return reason_names[r];
}

/* {"cpu":"63m","memory":"49566436"}, each only when known. */
static void write_pair(struct json_writer *w, const char *key, const struct quantity_pair *pair)
{
	char text[QUANTITY_TEXT_MAX];

	if (pair->cpu_millicores < 0 && pair->memory_bytes < 0)
		return;
	json_key(w, key);
	json_begin_object(w);
	if (pair->cpu_millicores >= 0) {
		size_t n = quantity_format_millicores(pair->cpu_millicores, text);
		json_key(w, "cpu");
		json_str(w, (struct str){text, n});
	}
	if (pair->memory_bytes >= 0) {
		size_t n = quantity_format_bytes(pair->memory_bytes, text);
		json_key(w, "memory");
		json_str(w, (struct str){text, n});
	}
	json_end_object(w);
}

static void write_coverage(struct json_writer *w, double cpu, double memory)
{
	if (!(cpu >= 0) && !(memory >= 0))
		return;
	json_key(w, "coverage");
	json_begin_object(w);
	if (cpu >= 0) {
		json_key(w, "cpu");
		json_double(w, cpu);
	}
	if (memory >= 0) {
		json_key(w, "memory");
		json_double(w, memory);
	}
	json_end_object(w);
}

static void write_time(struct json_writer *w, const char *key, int64_t ns)
{
	if (ns == TIME_NONE)
		return;
	json_key(w, key);
	json_time(w, ns);
}

static void write_string(struct json_writer *w, const char *key, const char *value)
{
	if (!*value)
		return;
	json_key(w, key);
	json_string(w, value);
}

void annotation_value_write(struct buf *b, const struct annotation_value *v)
{
	struct json_writer w = JSON_WRITER(b);

	json_begin_object(&w);
	write_pair(&w, "target", &v->target);
	write_pair(&w, "lowerBound", &v->lower);
	write_pair(&w, "upperBound", &v->upper);
	json_key(&w, "samples");
	json_u64(&w, v->samples);
	write_time(&w, "since", v->since_ns);
	write_time(&w, "at", v->at_ns);
	if (v->reason != ANNOTATION_REASON_UNKNOWN)
		write_string(&w, "reason", annotation_reason_name(v->reason));
	json_key(&w, "oomKills");
	json_u64(&w, v->oom_kills);
	write_coverage(&w, v->coverage_cpu, v->coverage_memory);
	write_string(&w, "revision", v->revision);
	json_end_object(&w);
}

void annotation_agent_write(struct buf *b, const struct annotation_agent *a)
{
	struct json_writer w = JSON_WRITER(b);

	json_begin_object(&w);
	write_string(&w, "version", a->version);
	write_string(&w, "nodeUID", a->node_uid);
	write_string(&w, "machine", a->machine);
	write_string(&w, "bootID", a->boot_id);
	write_time(&w, "startedAt", a->started_at_ns);
	write_string(&w, "state", a->state);
	write_string(&w, "reason", a->reason);
	json_end_object(&w);
}

void annotation_machine_hash(char out[17], struct str machine_id)
{
	out[0] = '\0';
	if (machine_id.n == 0)
		return;
	hex16(out, fnv1a(fnv1a(FNV1A_START, STR("pernode machine ")), machine_id));
	out[HASH_DIGITS] = '\0';
}
