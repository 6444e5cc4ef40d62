/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cgroup/cgpath.h"

#include "base/macros.h"

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool all_hex(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_hex(s.p[i]))
			return false;
	return true;
}

static bool is_uid_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '-' || c == '_';
}

static bool cut_suffix(struct str *s, struct str suffix)
{
	if (!str_ends(*s, suffix))
		return false;
	s->n -= suffix.n;
	return true;
}

/* The 64 hexadecimal digits at the end of s, when what is before them is nothing or ends in one of
 * "-:". */
static struct str trailing_id(struct str s)
{
	struct str id;

	if (s.n < CONTAINER_ID_LENGTH)
		return (struct str){0};
	id = (struct str){s.p + s.n - CONTAINER_ID_LENGTH, CONTAINER_ID_LENGTH};
	if (!all_hex(id))
		return (struct str){0};
	if (id.p > s.p && id.p[-1] != '-' && id.p[-1] != ':')
		return (struct str){0};
	return id;
}

/* The whole of s as a UID; empty when it is none. */
static struct str uid_of(struct str s)
{
	if (s.n == 0 || s.n > POD_UID_LENGTH_MAX)
		return (struct str){0};
	for (size_t i = 0; i < s.n; i++)
		if (!is_uid_char(s.p[i]))
			return (struct str){0};
	return s;
}

/* The UID in "…-pod<uid>", a systemd name without its suffix: the last "pod" that starts a word
 * counts. A UID's dashes are underscores there. */
static struct str uid_after_pod(struct str s)
{
	for (size_t i = s.n; i-- > 0;)
		if (s.n - i > 3 && memcmp(s.p + i, "pod", 3) == 0 && (i == 0 || s.p[i - 1] == '-'))
			return uid_of((struct str){s.p + i + 3, s.n - i - 3});
	return (struct str){0};
}

static bool is_last_word(struct str s, struct str word)
{
	return str_eq(s, word) ||
	       (s.p && s.n > word.n && str_ends(s, word) && s.p[s.n - word.n - 1] == '-');
}

/* "<slice>:<prefix>:<id>", the argument of systemd, made into a directory. */
static bool parse_misplaced(struct str name, struct cgname *c)
{
	struct str slice = str_cut(&name, ':');

	if (!name.p || !cut_suffix(&slice, STR(".slice")))
		return false;
	c->uid = uid_after_pod(slice);
	c->id = trailing_id(name);
	if (!c->uid.p || !c->id.p)
		return false;
	c->kind = CGNAME_POD_CONTAINER;
	return true;
}

static enum cgname_kind parse_level(struct str name, bool slice, struct cgname *c)
{
	if (is_last_word(name, STR("kubepods")) && (slice || str_is(name, "kubepods")))
		return CGNAME_KUBEPODS;
	if (is_last_word(name, STR("burstable")) || is_last_word(name, STR("besteffort")))
		return slice || str_is(name, "burstable") || str_is(name, "besteffort")
			       ? CGNAME_QOS
			       : CGNAME_OTHER;
	if (slice)
		c->uid = uid_after_pod(name);
	else if (name.p && str_starts(name, STR("pod")))
		c->uid = uid_of((struct str){name.p + 3, name.n - 3});
	return c->uid.p ? CGNAME_POD : CGNAME_OTHER;
}

struct cgname cgname_parse(struct str name)
{
	struct cgname c = {0};
	bool slice;

	if (parse_misplaced(name, &c))
		return c;
	c = (struct cgname){0};
	slice = cut_suffix(&name, STR(".slice"));
	if (!slice) {
		(void)cut_suffix(&name, STR(".scope"));
		c.id = trailing_id(name);
		if (c.id.p) {
			c.kind = str_starts(name, STR("crio-conmon-")) ? CGNAME_MONITOR
								       : CGNAME_CONTAINER;
			return c;
		}
		if (str_starts(name, STR("kata_")) && name.n > 5) {
			c.kind = CGNAME_KATA;
			return c;
		}
	}
	c.kind = parse_level(name, slice, &c);
	return c;
}

bool pod_uid_same(struct str a, struct str b)
{
	if (a.n != b.n || a.n == 0)
		return false;
	for (size_t i = 0; i < a.n; i++) {
		char x = a.p[i] == '_' ? '-' : a.p[i], y = b.p[i] == '_' ? '-' : b.p[i];

		if (x != y)
			return false;
	}
	return true;
}

bool pod_uid_is_static(struct str uid)
{
	return uid.n == 32 && all_hex(uid);
}

bool pod_uid_plausible(struct str uid)
{
	static const size_t dashes[] = {8, 13, 18, 23};
	size_t next = 0;

	if (pod_uid_is_static(uid))
		return true;
	if (uid.n != 36)
		return false;
	for (size_t i = 0; i < uid.n; i++) {
		if (next < ARRAY_SIZE(dashes) && i == dashes[next]) {
			if (uid.p[i] != '-' && uid.p[i] != '_')
				return false;
			next++;
		} else if (!is_hex(uid.p[i])) {
			return false;
		}
	}
	return true;
}

struct str container_id_of_status(struct str container_id)
{
	struct str separator = STR("://"), id = {0};

	for (size_t i = 0; i + separator.n <= container_id.n; i++) {
		if (memcmp(container_id.p + i, separator.p, separator.n) != 0)
			continue;
		id = (struct str){
			container_id.p + i + separator.n, container_id.n - i - separator.n};
		break;
	}
	return id.n == CONTAINER_ID_LENGTH && all_hex(id) ? id : (struct str){0};
}
