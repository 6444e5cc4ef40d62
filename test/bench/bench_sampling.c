/* SPDX-License-Identifier: Apache-2.0 */
/* How much a sampling round costs above the bare reads that it cannot do without: the same held
 * files of the same cgroups, read by a loop of pread and by the sampler, in turns. bench_sampling
 * DIR…      cgroups, or directories with copies of their files Prints both in ns per container, and
 * their ratio. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agent/sample/sampler.h"

#define CONTAINERS_MAX 256U
#define TURNS 60U /* each way, alternating; the fastest counts: the others were disturbed */
#define ROUNDS 20U

struct bench {
	struct sampler sampler;
	struct knobs knobs;
	struct model model;
	struct container container[CONTAINERS_MAX];
	struct usage_history usage[CONTAINERS_MAX];
	unsigned int n;
	char buffer[CGIO_SIZE];
};

static uint64_t bare_round(struct bench *b)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < b->n; i++) {
		for (size_t f = 0; f < LEAF_FILES; f++) {
			ssize_t n =
				pread(b->container[i].leaf.fds[f], b->buffer, sizeof(b->buffer), 0);

			sum += n > 0 ? (uint64_t)n : 0;
		}
	}
	return sum;
}

static uint64_t per_container_ns(struct bench *b, uint64_t started_usec)
{
	uint64_t usec = clock_mono_usec(&clock_system) - started_usec;

	return usec * 1000 / ROUNDS / b->n;
}

static int add(struct bench *b, const char *path)
{
	struct container *c = &b->container[b->n];
	struct cgleaf leaf;

	if (cgleaf_open(&leaf, AT_FDCWD, path, -1) != CG_OK) {
		fprintf(stderr, "bench_sampling: %s: no such directory\n", path);
		return -1;
	}
	usage_init(&b->usage[b->n], &b->model);
	container_init(c, &leaf, &b->usage[b->n], &b->knobs);
	sampler_add(&b->sampler, c);
	for (size_t f = 0; f < LEAF_FILES; f++) {
		if (c->leaf.fds[f] < 0) {
			fprintf(stderr, "bench_sampling: %s: a file is missing\n", path);
			return -1;
		}
	}
	b->n++;
	return 0;
}

int main(int argc, char **argv)
{
	_cleanup_free_ struct bench *b = calloc(1, sizeof(*b));
	uint64_t bare = UINT64_MAX, round = UINT64_MAX, sum = 0;

	if (!b || argc < 2 || argc - 1 > (int)CONTAINERS_MAX)
		return 2;
	knobs_defaults(&b->knobs, PROFILE_FINE);
	model_init(&b->model, &b->knobs);
	sampler_init(&b->sampler, &clock_system, 10 * USEC_PER_SEC, USEC_PER_MINUTE, 32, NULL);
	for (int i = 1; i < argc; i++)
		if (add(b, argv[i]) < 0)
			return 1;
	for (unsigned int turn = 0; turn < TURNS; turn++) {
		uint64_t started = clock_mono_usec(&clock_system);

		for (unsigned int i = 0; i < ROUNDS; i++)
			sum += bare_round(b);
		bare = MIN(bare, per_container_ns(b, started));
		started = clock_mono_usec(&clock_system);
		for (unsigned int i = 0; i < ROUNDS; i++)
			sampler_round(&b->sampler);
		round = MIN(round, per_container_ns(b, started));
	}
	printf("%u containers, %llu bytes a round: bare reads %llu ns, round %llu ns per "
	       "container; "
	       "ratio %.2f\n",
		b->n, (unsigned long long)(sum / TURNS / ROUNDS), (unsigned long long)bare,
		(unsigned long long)round, (double)round / (double)bare);
	return 0;
}
