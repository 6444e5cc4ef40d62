/* SPDX-License-Identifier: Apache-2.0 */
/* Four short stories told to the estimator, as CSV (panel,series,hours,value): what
 * docs/estimator.svg is drawn from. Loads are made up, targets are the estimator's. */
#include <math.h>
#include <stdio.h>

#include "base/macros.h"
#include "rules/estimator.h"
#include "rules/instant.h"
#include "rules/throttle.h"

#define T0 (INT64_C(1767225600) * INSTANT_SECOND)
#define MIB 1048576.0

struct teller {
	struct knobs knobs;
	struct model model;
	struct usage_history u;
};

static void begin(struct teller *t, enum profile profile)
{
	knobs_defaults(&t->knobs, profile);
	model_init(&t->model, &t->knobs);
	usage_init(&t->u, &t->model);
}

static void tell(const char *panel, const char *series, int minute, double value)
{
	printf("%s,%s,%.3f,%.4g\n", panel, series, minute / 60.0, value);
}

static double target(const struct teller *t, int minute, enum resource resource)
{
	struct recommendation r;

	estimate(&t->u, &t->knobs, 1, T0 + minute * INSTANT_MINUTE, &r, NULL);
	return (double)r.amounts[BOUND_TARGET].value[resource];
}

static uint32_t x = 42;

static double chance(void)
{
	x = x * 1103515245U + 12345U;
	return (double)(x >> 8) / (double)(1U << 24);
}

/* A week of a small daemon: busier by day, and one OOM kill under a limit of 32 MiB. */
static void small_daemon(void)
{
	static struct teller t[2];
	static const char *const names[] = {"fine", "vpa"};

	begin(&t[0], PROFILE_FINE);
	begin(&t[1], PROFILE_VPA);
	for (int i = 0; i < 7 * 1440; i++) {
		double day = 0.5 - 0.5 * cos(i * 2 * M_PI / 1440);
		double cpu = 3 + 4 * day + 2 * chance(), memory = (18 + 4 * day + chance()) * MIB;
		int64_t at = T0 + i * INSTANT_MINUTE;

		for (int k = 0; k < 2; k++) {
			(void)usage_add_cpu(&t[k].u, at, cpu, 1);
			(void)usage_add_memory(&t[k].u, at, (int64_t)memory);
			if (i == 2 * 1440 + 700)
				(void)usage_record_oom(
					&t[k].u, &t[k].knobs, at, (int64_t)(32 * MIB));
			if (i % 60 == 30) {
				tell("cpu", names[k], i, target(&t[k], i, RESOURCE_CPU));
				tell("memory", names[k], i,
					target(&t[k], i, RESOURCE_MEMORY) / MIB);
			}
		}
		if (i % 20 == 0) {
			tell("cpu", "usage", i, cpu);
			tell("memory", "usage", i, memory / MIB);
		}
	}
}

/* A busy loop under a quota that follows the target every ten minutes, with and without counting
 * throttling. */
static void throttled(void)
{
	static const char *const names[] = {"fine", "usage only"};
	static struct teller t[2];
	double quota[2] = {100, 100};

	begin(&t[0], PROFILE_FINE);
	begin(&t[1], PROFILE_FINE);
	for (int i = 0; i < 120; i++)
		for (int k = 0; k < 2; k++) {
			struct throttle_window w = {
				.usage_millicores = fmin(730, quota[k]),
				.quota_millicores = quota[k],
				.elapsed_usec = 60000000,
				.nr_periods = 600,
				.nr_throttled = quota[k] < 730 ? 600 : 0,
				.throttled_usec =
					quota[k] < 730 ? (uint64_t)(60e6 - quota[k] * 6e4) : 0,
			};
			double sample = k ? w.usage_millicores : throttle_demand(&w, NULL);

			(void)usage_add_cpu(&t[k].u, T0 + i * INSTANT_MINUTE, sample, 1);
			tell("throttled", names[k], i, target(&t[k], i, RESOURCE_CPU));
			if (k == 0)
				tell("throttled", "usage", i, w.usage_millicores);
			if (i % 10 == 9)
				quota[k] = target(&t[k], i, RESOURCE_CPU) * (k ? 0.87 : 1);
		}
}

/* 50 millicores, but for half an hour of catching up in all after each of a day's many restarts. */
static void restarted(void)
{
	static const char *const names[] = {"fine", "starts counted"};
	static struct teller t[2];

	begin(&t[0], PROFILE_FINE);
	begin(&t[1], PROFILE_FINE);
	for (int i = 0; i < 3 * 1440; i++) {
		int since = i < 1440 ? 1000 : i % 60;
		double cpu = since < 8 ? 400 - 20 * since + 40 * chance() : 48 + 4 * chance();

		if (since == 0)
			usage_restart(&t[0].u, T0 + i * INSTANT_MINUTE);
		for (int k = 0; k < 2; k++) {
			(void)usage_add_cpu(&t[k].u, T0 + i * INSTANT_MINUTE, cpu, 1);
			if (i % 30 == 15)
				tell("restarted", names[k], i, target(&t[k], i, RESOURCE_CPU));
		}
		if (i % 3 == 0)
			tell("restarted", "usage", i, cpu);
	}
}

int main(void)
{
	printf("panel,series,hours,value\n");
	small_daemon();
	throttled();
	restarted();
	return 0;
}
