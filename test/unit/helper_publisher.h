/* SPDX-License-Identifier: Apache-2.0 */
/* A publisher with its workloads, a clock whose hands are set, and a Node that does as it is told.
 */
#pragma once

#include "agent/publish/publisher_inner.h"
#include "test/unit/helper_node.h"

#define MIB INT64_C(1048576)
#define MINUTE USEC_PER_MINUTE
#define HOUR USEC_PER_HOUR

struct bench {
	struct loop loop;
	struct clock_manual clock;
	struct knobs knobs;
	struct workloads workloads;
	struct fake_node node;
	struct publisher *p;
	uint64_t random;
	bool adopting;
	uint64_t start_spread_usec;
	unsigned int identified, found, published, removed;
};

/* For cmocka: *state is a struct bench. */
int publisher_setup(void **state);
int publisher_teardown(void **state);

uint64_t bench_random(void *arg);
int64_t bench_now_ns(const struct bench *b);
/* file: a dry run's, or NULL. */
int bench_create(struct bench *b, const char *file);
/* Six hours of steady usage up to now: something to tell, with confidence. */
struct workload *bench_work(struct bench *b, const char *daemonset, double cpu, int64_t memory);
/* Uses so much from now on. */
void bench_use(struct bench *b, struct workload *w, double cpu, int64_t memory);
/* Lets time pass, as a loop would: turns when the publisher asked to, answers at once. */
void bench_pass(struct bench *b, uint64_t usec);
/* Creates it, with all pods known, and lets the first patch go. */
void bench_begin(struct bench *b);
/* The value on the Node, which must be there and readable. */
void bench_read_value(const struct bench *b, const char *key, struct annotation_value *v);

#define A "a.logging.pernode.io/main"
#define B "b.logging.pernode.io/main"
#define C "c.logging.pernode.io/main"
