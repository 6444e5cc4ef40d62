/* SPDX-License-Identifier: Apache-2.0 */
/* Our half of the conformance test: reads streams of commands, keeps histories in profile vpa, and
 * answers in the words of the other half (main.go), which gives the same commands to the upstream
 * packages. One command a line:
 *
 *     N containers percentiles(6) margin confidence(2) pod-minimum(2) interval count half-life(2)
 * ratio bump a new stream; doubles as decimals, durations in ns; pairs are CPU, memory C i t amount
 * a CPU sample of container i       → C 1 (taken) or C 0 M i t amount   a memory sample → M 1 or M
 * 0 O i t amount   an OOM kill                       → O 1 or O 0 E              estimate over all
 * containers      → E and the six amounts H              state                             → H,
 * counts and both histograms R now          save and load, as after a restart → R and what was
 * saved
 *
 * With --bench N it feeds N pairs of samples to one history and prints nanoseconds of CPU per pair.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/macros.h"
#include "base/num.h"
#include "rules/estimator.h"
#include "rules/instant.h"

#define CONTAINERS_MAX 4U
#define LINE_LENGTH_MAX 1024

struct stream {
	struct knobs knobs;
	struct model model;
	unsigned int n;
	struct usage_history live[CONTAINERS_MAX];
	struct usage_history initial; /* what a checkpoint held */
	bool has_initial;
};

static int bad(const char *what)
{
	(void)fprintf(stderr, "driver: unusable %s\n", what);
	return -EINVAL;
}

static int64_t take_integer(struct str *rest, int *error)
{
	int64_t v = 0;

	if (parse_i64(str_cut(rest, ' '), &v) < 0)
		*error = -EINVAL;
	return v;
}

static double take_double(struct str *rest, int *error)
{
	double v = 0;

	if (parse_double(str_cut(rest, ' '), &v) < 0)
		*error = -EINVAL;
	return v;
}

static int start(struct stream *s, struct str rest)
{
	struct knobs *k = &s->knobs;
	int error = 0;

	knobs_defaults(k, PROFILE_VPA);
	s->n = (unsigned int)take_integer(&rest, &error);
	for (int r = 0; r < RESOURCES; r++)
		for (int b = 0; b < BOUNDS; b++)
			k->percentile[b][r] = take_double(&rest, &error);
	k->margin_fraction = take_double(&rest, &error);
	for (int r = 0; r < RESOURCES; r++)
		k->confidence_interval_ns[r] = take_integer(&rest, &error);
	k->pod_min_cpu_millicores = take_double(&rest, &error);
	k->pod_min_memory_mb = take_double(&rest, &error);
	k->memory_aggregation_interval_ns = take_integer(&rest, &error);
	k->memory_aggregation_interval_count = take_integer(&rest, &error);
	for (int r = 0; r < RESOURCES; r++)
		k->half_life_ns[r] = take_integer(&rest, &error);
	k->oom_bump_up_ratio = take_double(&rest, &error);
	k->oom_min_bump_up_bytes = take_double(&rest, &error);
	if (error < 0 || s->n == 0 || s->n > CONTAINERS_MAX || rest.n > 0)
		return bad("N");
	model_init(&s->model, k);
	for (unsigned int i = 0; i < s->n; i++)
		usage_init(&s->live[i], &s->model);
	s->has_initial = false;
	return 0;
}

static int sample(struct stream *s, char kind, struct str rest)
{
	int error = 0, r;
	int64_t i = take_integer(&rest, &error), t = take_integer(&rest, &error);
	int64_t amount = take_integer(&rest, &error);

	if (error < 0 || i < 0 || i >= s->n || rest.n > 0)
		return bad("sample");
	if (kind == 'C')
		r = usage_add_cpu(&s->live[i], t, (double)amount, 1);
	else if (kind == 'M')
		r = usage_add_memory(&s->live[i], t, amount);
	else
		r = usage_record_oom(&s->live[i], &s->knobs, t, amount);
	printf("%c %d\n", kind, r == 0);
	return 0;
}

static int merge(struct stream *s, struct usage_history *ret)
{
	int r = 0;

	usage_init(ret, &s->model);
	for (unsigned int i = 0; i < s->n && r == 0; i++)
		r = usage_merge(ret, &s->live[i]);
	if (r == 0 && s->has_initial)
		r = usage_merge(ret, &s->initial);
	return r;
}

static int print_estimate(struct stream *s)
{
	struct usage_history all;
	struct recommendation r;
	int error = merge(s, &all);

	if (error < 0)
		return error;
	estimate(&all, &s->knobs, 1, 0, &r, NULL);
	printf("E");
	for (int b = 0; b < BOUNDS; b++)
		for (int i = 0; i < RESOURCES; i++)
			printf(" %" PRId64, r.amounts[b].value[i]);
	printf("\n");
	return 0;
}

static void print_instant(int64_t t)
{
	if (t == TIME_NONE)
		printf(" never");
	else
		printf(" %" PRId64, t);
}

static void print_state(char kind, const struct usage_quantised *q)
{
	printf("%c %" PRId64, kind, q->samples);
	print_instant(q->first);
	print_instant(q->last);
	for (int r = 0; r < RESOURCES; r++) {
		const struct histogram_quantised *h = &q->histogram[r];
		union {
			double d;
			uint64_t u;
		} total = {.d = h->total};

		printf(" |");
		print_instant(h->reference);
		printf(" %016" PRIx64, total.u);
		for (unsigned int i = 0; i < BUCKETS_MAX; i++)
			if (h->weight[i] > 0)
				printf(" %u:%" PRIu32, i, h->weight[i]);
	}
	printf("\n");
}

static int state(struct stream *s)
{
	struct usage_history all;
	struct usage_quantised q;
	int r = merge(s, &all);

	if (r < 0)
		return r;
	usage_quantise(&all, false, 0, &q);
	print_state('H', &q);
	return 0;
}

static int restart(struct stream *s, struct str rest)
{
	struct usage_history all;
	struct usage_quantised q;
	int error = 0, r;
	int64_t now = take_integer(&rest, &error);

	if (error < 0)
		return bad("R");
	r = merge(s, &all);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < s->n; i++) {
		int64_t end = s->live[i].window.end;

		if (end != TIME_NONE && now < end)
			histogram_subtract(&all.histogram[RESOURCE_MEMORY],
				(double)usage_recent_peak(&s->live[i]), 1.0, end);
	}
	usage_quantise(&all, false, 0, &q);
	print_state('R', &q);
	for (unsigned int i = 0; i < s->n; i++)
		usage_init(&s->live[i], &s->model);
	usage_init(&s->initial, &s->model);
	s->has_initial = true;
	return usage_unquantise(&s->initial, &q, NULL);
}

static int command(struct stream *s, struct str line)
{
	struct str word = str_cut(&line, ' ');

	if (word.n != 1)
		return bad("command");
	switch (word.p[0]) {
	case 'N':
		return start(s, line);
	case 'C':
	case 'M':
	case 'O':
		return sample(s, word.p[0], line);
	case 'E':
		return print_estimate(s);
	case 'H':
		return state(s);
	case 'R':
		return restart(s, line);
	default:
		return bad("command");
	}
}

static double cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void bench(int64_t n)
{
	static struct usage_history u;
	static struct model model;
	struct recommendation r;
	struct knobs k;
	uint32_t x = 42;
	double began;

	knobs_defaults(&k, PROFILE_VPA);
	model_init(&model, &k);
	usage_init(&u, &model);
	began = cpu_ns();
	for (int64_t i = 0; i < n; i++) {
		int64_t t = (1767225600 + i * 60) * INSTANT_SECOND;

		x = (x * 1103515245U + 12345U) & 0x7fffffffU;
		(void)usage_add_cpu(&u, t, (x >> 8) % 2000, 1);
		x = (x * 1103515245U + 12345U) & 0x7fffffffU;
		(void)usage_add_memory(&u, t, 500000000 + (x >> 8) % 300000);
		if (i % 60 == 59)
			estimate(&u, &k, 1, 0, &r, NULL);
	}
	printf("%.2f %.17g %" PRId64 "\n", (cpu_ns() - began) / (double)n,
		u.histogram[RESOURCE_CPU].total, r.amounts[BOUND_TARGET].value[RESOURCE_CPU]);
}

int main(int argc, char **argv)
{
	static struct stream s;
	char line[LINE_LENGTH_MAX];
	int64_t n;

	if (argc == 3 && str_is(str_of(argv[1]), "--bench") &&
		parse_i64(str_of(argv[2]), &n) == 0 && n > 0) {
		bench(n);
		return 0;
	}
	while (fgets(line, sizeof(line), stdin))
		if (command(&s, str_trim(str_of(line))) < 0)
			return 1;
	return fflush(stdout) == 0 ? 0 : 1;
}
