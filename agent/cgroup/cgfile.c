/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cgroup/cgfile.h"

#include <errno.h>

#include "base/macros.h"
#include "base/num.h"

struct key {
	const char *name;
	size_t n;
	unsigned int bit;
	size_t offset; /* of the uint64_t */
};

#define KEY(type, member, name, bit)                                \
	{                                                           \
		name, sizeof(name) - 1, bit, offsetof(type, member) \
	}

/* Digits only, nothing else: what the kernel's %llu prints. Inlined since a round reads dozens of
 * them per cgroup. */
static inline int digits(const char *p, const char *end, uint64_t *ret)
{
	uint64_t v = 0;

	if (p == end)
		return -EBADMSG;
	for (; p < end; p++) {
		unsigned int d = (unsigned int)(unsigned char)*p - '0';

		if (d > 9 || __builtin_mul_overflow(v, 10U, &v) || __builtin_add_overflow(v, d, &v))
			return -EBADMSG;
	}
	*ret = v;
	return 0;
}

/* "key value" lines. Keys stand in the order in which kernels print them, so that the next one
 * wanted is tried first; another order works as well. The first line of a key counts. */
static int keyed(struct str text, const struct key *keys, size_t n_keys, void *values,
	unsigned int *ret_seen)
{
	const char *p = text.p, *end = text.p + text.n;
	unsigned int seen = 0, left = (unsigned int)n_keys;
	size_t next = 0;

	if (text.n == 0)
		return -ENODATA;
	while (p < end && left > 0) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		size_t n;

		if (!eol)
			eol = end;
		n = (size_t)(eol - p);
		for (size_t i = 0; i < n_keys; i++) {
			const struct key *k = &keys[(next + i) % n_keys];

			if (n <= k->n || p[k->n] != ' ' || (seen & k->bit) ||
				memcmp(p, k->name, k->n) != 0)
				continue;
			if (digits(p + k->n + 1, eol,
				    (uint64_t *)(void *)((char *)values + k->offset)) < 0)
				return -EBADMSG;
			seen |= k->bit;
			left--;
			next = (size_t)(k - keys) + 1;
			break;
		}
		p = eol + 1;
	}
	*ret_seen = seen;
	return 0;
}

int cgfile_cpu_stat(struct str text, struct cpu_stat *ret)
{
	static const struct key keys[] = {
		KEY(struct cpu_stat, usage_usec, "usage_usec", CPU_USAGE_USEC),
		KEY(struct cpu_stat, nr_periods, "nr_periods", CPU_NR_PERIODS),
		KEY(struct cpu_stat, nr_throttled, "nr_throttled", CPU_NR_THROTTLED),
		KEY(struct cpu_stat, throttled_usec, "throttled_usec", CPU_THROTTLED_USEC),
	};
	struct cpu_stat s = {0};
	int r = keyed(text, keys, ARRAY_SIZE(keys), &s, &s.seen);

	if (r == 0)
		*ret = s;
	return r;
}

int cgfile_memory_stat(struct str text, struct memory_stat *ret)
{
	static const struct key keys[] = {
		KEY(struct memory_stat, anon_bytes, "anon", MEMORY_ANON),
		KEY(struct memory_stat, kernel_bytes, "kernel", MEMORY_KERNEL),
		KEY(struct memory_stat, shmem_bytes, "shmem", MEMORY_SHMEM),
		KEY(struct memory_stat, inactive_file_bytes, "inactive_file", MEMORY_INACTIVE_FILE),
		KEY(struct memory_stat, slab_reclaimable_bytes, "slab_reclaimable",
			MEMORY_SLAB_RECLAIMABLE),
	};
	struct memory_stat s = {0};
	int r = keyed(text, keys, ARRAY_SIZE(keys), &s, &s.seen);

	if (r == 0)
		*ret = s;
	return r;
}

bool memory_stat_unreclaimable(
	const struct memory_stat *s, uint64_t swap_free_bytes, uint64_t *ret_bytes)
{
	uint64_t bytes = 0;

	if (!(s->seen & MEMORY_ANON))
		return false;
	if (s->anon_bytes > swap_free_bytes)
		bytes = s->anon_bytes - swap_free_bytes;
	if (s->seen & MEMORY_SHMEM)
		bytes = u64_add_sat(bytes, s->shmem_bytes);
	if ((s->seen & MEMORY_KERNEL) && s->kernel_bytes > s->slab_reclaimable_bytes)
		bytes = u64_add_sat(bytes, s->kernel_bytes - s->slab_reclaimable_bytes);
	*ret_bytes = bytes;
	return true;
}

int cgfile_memory_events(struct str text, struct memory_events *ret)
{
	static const struct key keys[] = {
		KEY(struct memory_events, high, "high", EVENT_HIGH),
		KEY(struct memory_events, max, "max", EVENT_MAX),
		KEY(struct memory_events, oom, "oom", EVENT_OOM),
		KEY(struct memory_events, oom_kill, "oom_kill", EVENT_OOM_KILL),
		KEY(struct memory_events, oom_group_kill, "oom_group_kill", EVENT_OOM_GROUP_KILL),
	};
	struct memory_events s = {0};
	int r = keyed(text, keys, ARRAY_SIZE(keys), &s, &s.seen);

	if (r == 0)
		*ret = s;
	return r;
}

/* One word: digits or "max". */
static int number(struct str word, uint64_t *ret)
{
	if (str_is(word, "max")) {
		*ret = CG_MAX;
		return 0;
	}
	return digits(word.p, word.p + word.n, ret);
}

/* Without the newline that ends every kernel file. -ENODATA when nothing is left. */
static int one_line(struct str *text)
{
	if (text->n > 0 && text->p[text->n - 1] == '\n')
		text->n--;
	return text->n > 0 ? 0 : -ENODATA;
}

int cgfile_number(struct str text, uint64_t *ret)
{
	int r = one_line(&text);

	return r < 0 ? r : number(text, ret);
}

int cgfile_cpu_max(struct str text, struct cpu_max *ret)
{
	struct cpu_max m;
	struct str quota;
	int r = one_line(&text);

	if (r < 0)
		return r;
	quota = str_cut(&text, ' ');
	if (!text.p || number(quota, &m.quota_usec) < 0 ||
		digits(text.p, text.p + text.n, &m.period_usec) < 0 || m.period_usec == 0)
		return -EBADMSG;
	*ret = m;
	return 0;
}

uint64_t cpu_max_millicores(const struct cpu_max *m)
{
	uint64_t scaled;

	if (m->quota_usec == CG_MAX ||
		__builtin_mul_overflow(m->quota_usec, UINT64_C(1000), &scaled))
		return CG_MAX;
	return scaled / m->period_usec;
}

/* "12.34" → 1234; the kernel always prints two decimals. */
static int centipercent(struct str s, uint32_t *ret)
{
	struct str whole = str_cut(&s, '.');
	uint64_t units, cents;

	if (!s.p || s.n != 2 || digits(whole.p, whole.p + whole.n, &units) < 0 ||
		digits(s.p, s.p + s.n, &cents) < 0 || units > 100)
		return -EBADMSG;
	*ret = (uint32_t)(units * 100 + cents);
	return 0;
}

/* "avg10=0.00 avg60=0.00 avg300=0.00 total=0" */
static int psi_line(struct str rest, struct psi_line *ret)
{
	struct psi_line line = {.seen = true};
	bool total = false;

	while (rest.p) {
		struct str value = str_cut(&rest, ' ');
		struct str name = str_cut(&value, '=');
		int r = 0;

		if (!value.p)
			return -EBADMSG;
		if (str_is(name, "avg10"))
			r = centipercent(value, &line.avg10_centipercent);
		else if (str_is(name, "avg60"))
			r = centipercent(value, &line.avg60_centipercent);
		else if (str_is(name, "total")) {
			r = digits(value.p, value.p + value.n, &line.total_usec);
			total = true;
		}
		if (r < 0)
			return r;
	}
	if (!total)
		return -EBADMSG;
	*ret = line;
	return 0;
}

int cgfile_psi(struct str text, struct psi *ret)
{
	struct psi psi = {0};
	int r;

	if (text.n == 0)
		return -ENODATA;
	while (text.n > 0) {
		struct str line = str_cut(&text, '\n');
		struct str kind = str_cut(&line, ' ');

		r = 0;
		if (str_is(kind, "some"))
			r = psi_line(line, &psi.some);
		else if (str_is(kind, "full"))
			r = psi_line(line, &psi.full);
		if (r < 0)
			return r;
	}
	if (!psi.some.seen)
		return -EBADMSG;
	*ret = psi;
	return 0;
}

int cgfile_populated(struct str text, bool *ret)
{
	static const struct key keys[] = {{"populated", sizeof("populated") - 1, 1, 0}};
	uint64_t value = 0;
	unsigned int seen;
	int r = keyed(text, keys, ARRAY_SIZE(keys), &value, &seen);

	if (r < 0)
		return r;
	if (!seen)
		return -ENOENT;
	*ret = value != 0;
	return 0;
}

bool cgfile_has_controller(struct str text, const char *controller)
{
	text = str_trim(text);
	while (text.n > 0)
		if (str_is(str_cut(&text, ' '), controller))
			return true;
	return false;
}
