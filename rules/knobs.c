/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/knobs.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stddef.h>

#include "proto/quantity.h"
#include "rules/instant.h"

#define UNSET INT64_MIN
#define LONGEST (INT64_C(3650) * INSTANT_DAY)

static const char *const profile_names[] = {"fine", "vpa", NULL};

/* The defaults are filled in by knobs_resolve, since they depend on another flag. */
#define KNOB_SHARE(flag_name, b, r, text)                                                  \
	{                                                                                  \
		.name = (flag_name), .kind = FLAG_DOUBLE,                                  \
		.offset = offsetof(struct knobs, percentile[b][r]), .value_name = "SHARE", \
		.help = text, .min_double = 0, .max_double = 1                             \
	}
#define KNOB_DOUBLE(flag_name, member, low, high, unit, text)                                 \
	{                                                                                     \
		.name = (flag_name), .kind = FLAG_DOUBLE,                                     \
		.offset = offsetof(struct knobs, member), .value_name = (unit), .help = text, \
		.min_double = (low), .max_double = (high)                                     \
	}
#define KNOB_DURATION(flag_name, member, text)                                                    \
	{                                                                                         \
		.name = (flag_name), .kind = FLAG_DURATION,                                       \
		.offset = offsetof(struct knobs, member), .value_name = "DURATION", .help = text, \
		.min = INSTANT_SECOND, .max = LONGEST                                             \
	}
#define KNOB_INT(flag_name, member, low, high, unit, text)                                       \
	{                                                                                        \
		.name = (flag_name), .kind = FLAG_INT, .offset = offsetof(struct knobs, member), \
		.value_name = (unit), .help = text, .min = (low), .max = (high)                  \
	}
#define KNOB_BOOL(flag_name, member, text, otherwise)                                             \
	{                                                                                         \
		.name = (flag_name), .kind = FLAG_BOOL, .offset = offsetof(struct knobs, member), \
		.default_text = (otherwise), .help = text                                         \
	}
#define KNOB_QUANTITY(flag_name, member, parser, text)                                            \
	{                                                                                         \
		.name = (flag_name), .kind = FLAG_CUSTOM,                                         \
		.offset = offsetof(struct knobs, member), .value_name = "QUANTITY", .help = text, \
		.parse = (parser)                                                                 \
	}

const struct flag knobs_flags[] = {
	{.name = "profile",
		.kind = FLAG_CHOICE,
		.offset = offsetof(struct knobs, profile),
		.default_text = "fine",
		.value_name = "PROFILE",
		.choices = profile_names,
		.help = "fine: made for small daemons; vpa: equal to the upstream recommender"},
	KNOB_SHARE("target-cpu-percentile", BOUND_TARGET, RESOURCE_CPU,
		"CPU usage percentile of the target (default 0.9)"),
	KNOB_SHARE("recommendation-lower-bound-cpu-percentile", BOUND_LOWER, RESOURCE_CPU,
		"CPU usage percentile of the lower bound (default 0.5)"),
	KNOB_SHARE("recommendation-upper-bound-cpu-percentile", BOUND_UPPER, RESOURCE_CPU,
		"CPU usage percentile of the upper bound (default 0.95)"),
	KNOB_SHARE("target-memory-percentile", BOUND_TARGET, RESOURCE_MEMORY,
		"memory peak percentile of the target (default 0.9)"),
	KNOB_SHARE("recommendation-lower-bound-memory-percentile", BOUND_LOWER, RESOURCE_MEMORY,
		"memory peak percentile of the lower bound (default 0.5)"),
	KNOB_SHARE("recommendation-upper-bound-memory-percentile", BOUND_UPPER, RESOURCE_MEMORY,
		"memory peak percentile of the upper bound (default 0.95)"),
	KNOB_DOUBLE("recommendation-margin-fraction", margin_fraction, 0, 1000, "FRACTION",
		"added to every percentile as a safety margin (default 0.15)"),
	KNOB_DURATION("confidence-interval-cpu", confidence_interval_ns[RESOURCE_CPU],
		"CPU history that gives a confidence of 1 (default 24h)"),
	KNOB_DURATION("confidence-interval-memory", confidence_interval_ns[RESOURCE_MEMORY],
		"memory history that gives a confidence of 1 (default 24h)"),
	KNOB_DOUBLE("pod-recommendation-min-cpu-millicores", pod_min_cpu_millicores, 0, 1e9,
		"MILLICORES",
		"least CPU of a pod, split over its containers (default vpa 25, fine 0)"),
	KNOB_DOUBLE("pod-recommendation-min-memory-mb", pod_min_memory_mb, 0, 1e8, "MIB",
		"least memory of a pod, split over its containers (default vpa 250, fine 0)"),
	KNOB_QUANTITY("container-min-cpu", container_min[RESOURCE_CPU], flag_parse_millicores,
		"least CPU of a container (default fine 5m, vpa 0)"),
	KNOB_QUANTITY("container-min-memory", container_min[RESOURCE_MEMORY], flag_parse_bytes,
		"least memory of a container (default fine 10Mi, vpa 0)"),
	KNOB_DOUBLE("oom-bump-up-ratio", oom_bump_up_ratio, 1, 1000, "RATIO",
		"memory after an OOM kill, relative to before (default fine 1.25, vpa 1.2)"),
	KNOB_DOUBLE("oom-min-bump-up-bytes", oom_min_bump_up_bytes, 0, 1e14, "BYTES",
		"least growth of memory after an OOM kill (default fine 16777216, vpa 104857600)"),
	KNOB_DURATION("memory-aggregation-interval", memory_aggregation_interval_ns,
		"one memory peak is kept per interval (default 24h)"),
	KNOB_INT("memory-aggregation-interval-count", memory_aggregation_interval_count, 1, 100000,
		"N", "intervals after which a history without samples is forgotten (default 8)"),
	KNOB_DURATION("memory-histogram-decay-half-life", half_life_ns[RESOURCE_MEMORY],
		"after this time a memory peak weighs half (default 24h)"),
	KNOB_DURATION("cpu-histogram-decay-half-life", half_life_ns[RESOURCE_CPU],
		"after this time a CPU sample weighs half (default 24h)"),
	KNOB_INT("round-cpu-millicores", round_cpu_millicores, 1, 1000000000, "MILLICORES",
		"CPU is rounded up to a multiple of this (default 1)"),
	KNOB_INT("round-memory-bytes", round_memory_bytes, 1, AMOUNT_MAX, "BYTES",
		"memory is rounded up to a multiple of this (default 1)"),
	KNOB_BOOL("humanize-memory", humanize_memory,
		"memory is rounded to two decimals of the largest binary unit (deprecated "
		"upstream)",
		"false"),
	KNOB_BOOL("cpu-integer-post-processor-enabled", integer_cpu,
		"CPU is rounded up to whole cores", "false"),
	KNOB_QUANTITY("container-recommendation-max-allowed-cpu", max_allowed[RESOURCE_CPU],
		flag_parse_millicores,
		"most CPU that is recommended for a container (default: no cap)"),
	KNOB_QUANTITY("container-recommendation-max-allowed-memory", max_allowed[RESOURCE_MEMORY],
		flag_parse_bytes,
		"most memory that is recommended for a container (default: no cap)"),
	KNOB_BOOL("throttling-demand", throttling_demand,
		"a throttled minute counts as more than its usage (profile fine)", "true"),
	KNOB_BOOL("ahead-of-oom", ahead_of_oom,
		"raise the memory target before a container runs into its limit (profile fine)",
		"true"),
	{.name = NULL},
};

void knobs_unset(struct knobs *k)
{
	*k = (struct knobs){
		.profile = PROFILE_FINE,
		.margin_fraction = NAN,
		.pod_min_cpu_millicores = NAN,
		.pod_min_memory_mb = NAN,
		.oom_bump_up_ratio = NAN,
		.oom_min_bump_up_bytes = NAN,
		.memory_aggregation_interval_ns = UNSET,
		.memory_aggregation_interval_count = UNSET,
		.round_cpu_millicores = UNSET,
		.round_memory_bytes = UNSET,
		.throttling_demand = true,
		.ahead_of_oom = true,
	};
	for (int r = 0; r < RESOURCES; r++) {
		for (int b = 0; b < BOUNDS; b++)
			k->percentile[b][r] = NAN;
		k->confidence_interval_ns[r] = UNSET;
		k->half_life_ns[r] = UNSET;
		k->container_min[r] = UNSET;
		k->max_allowed[r] = -1;
	}
}

static void fill_double(double *value, double otherwise)
{
	if (isnan(*value))
		*value = otherwise;
}

static void fill(int64_t *value, int64_t otherwise)
{
	if (*value == UNSET)
		*value = otherwise;
}

static void fill_defaults(struct knobs *k)
{
	static const double percentiles[BOUNDS] = {
		[BOUND_TARGET] = 0.9, [BOUND_LOWER] = 0.5, [BOUND_UPPER] = 0.95};
	bool vpa = k->profile == PROFILE_VPA;

	for (int r = 0; r < RESOURCES; r++) {
		for (int b = 0; b < BOUNDS; b++)
			fill_double(&k->percentile[b][r], percentiles[b]);
		fill(&k->confidence_interval_ns[r], INSTANT_DAY);
		fill(&k->half_life_ns[r], INSTANT_DAY);
	}
	fill_double(&k->margin_fraction, 0.15);
	fill_double(&k->pod_min_cpu_millicores, vpa ? 25 : 0);
	fill_double(&k->pod_min_memory_mb, vpa ? 250 : 0);
	fill(&k->container_min[RESOURCE_CPU], vpa ? 0 : 5);
	fill(&k->container_min[RESOURCE_MEMORY], vpa ? 0 : INT64_C(10) << 20);
	fill_double(&k->oom_bump_up_ratio, vpa ? 1.2 : 1.25);
	fill_double(&k->oom_min_bump_up_bytes, vpa ? 100.0 * 1024 * 1024 : 16.0 * 1024 * 1024);
	fill(&k->memory_aggregation_interval_ns, INSTANT_DAY);
	fill(&k->memory_aggregation_interval_count, 8);
	fill(&k->round_cpu_millicores, 1);
	fill(&k->round_memory_bytes, 1);
}

static int check(const struct knobs *k, struct err *e)
{
	static const char *const names[RESOURCES] = {"cpu", "memory"};

	if (k->profile == PROFILE_VPA)
		return 0;
	for (int r = 0; r < RESOURCES; r++) {
		double lower = k->percentile[BOUND_LOWER][r];
		double target = k->percentile[BOUND_TARGET][r];
		double upper = k->percentile[BOUND_UPPER][r];

		if (lower > target || target > upper)
			return err_set(e, EINVAL,
				"%s percentiles %g, %g, %g: expected lower bound ≤ target ≤ upper "
				"bound "
				"(--recommendation-lower-bound-%s-percentile, "
				"--target-%s-percentile, "
				"--recommendation-upper-bound-%s-percentile)",
				names[r], lower, target, upper, names[r], names[r], names[r]);
	}
	return 0;
}

int knobs_resolve(struct knobs *k, struct err *e)
{
	fill_defaults(k);
	return check(k, e);
}

void knobs_defaults(struct knobs *k, enum profile profile)
{
	knobs_unset(k);
	k->profile = (int)profile;
	fill_defaults(k);
}
