/* SPDX-License-Identifier: Apache-2.0 */
/* The estimator against outputs that the upstream recommender gave for the same samples. */
#include <inttypes.h>
#include <math.h>

#include "rules/estimator.h"
#include "rules/instant.h"
#include "test/unit/unit.h"

#define T0 (INT64_C(1767225600) * INSTANT_SECOND) /* 2026-01-01T00:00:00Z */
#define MINUTES INSTANT_MINUTE

static struct knobs vpa, fine;
static struct model vpa_model, fine_model;

static int set_up(void **state)
{
	knobs_defaults(&vpa, PROFILE_VPA);
	knobs_defaults(&fine, PROFILE_FINE);
	model_init(&vpa_model, &vpa);
	model_init(&fine_model, &fine);
	return 0;
}

struct golden {
	int64_t amounts[BOUNDS][RESOURCES]; /* cpu, memory of target, lower, upper */
	uint64_t total_bits[RESOURCES];
	int64_t reference[RESOURCES]; /* Unix seconds; 0: never */
	unsigned int min[RESOURCES], max[RESOURCES], nonzero[RESOURCES];
};

static uint64_t bits_of(double d)
{
	union {
		double d;
		uint64_t u;
	} bits = {.d = d};

	return bits.u;
}

static void check_golden(struct usage_history *u, const struct golden *g)
{
	struct recommendation r;

	estimate(u, &vpa, 1, 0, &r, NULL);
	for (int i = 0; i < RESOURCES; i++) {
		const struct histogram *h = &u->histogram[i];

		for (int b = 0; b < BOUNDS; b++) {
			assert_true(r.amounts[b].known[i]);
			assert_int_equal(r.amounts[b].value[i], g->amounts[b][i]);
		}
		assert_int_equal(bits_of(h->total), g->total_bits[i]);
		assert_true(h->reference ==
			    (g->reference[i] ? g->reference[i] * INSTANT_SECOND : TIME_NONE));
		assert_int_equal(h->min, g->min[i]);
		assert_int_equal(h->max, g->max[i]);
		assert_int_equal(histogram_nonzero(h), g->nonzero[i]);
	}
}

static void vpa_without_samples_gives_the_minimum(void **state)
{
	static const struct golden g = {
		.amounts = {{25, 262144000}, {25, 262144000}, {25, 262144000}}, .min = {175, 175}};
	struct usage_history u;

	usage_init(&u, &vpa_model);
	check_golden(&u, &g);
	assert_false(estimate_ready(&u));
}

static void vpa_one_sample(void **state)
{
	static const struct golden g = {
		.amounts = {{126, 262144000}, {25, 262144000}, {AMOUNT_MAX, AMOUNT_MAX}},
		.total_bits = {0x3fb999999999999a, 0x3ff0000000000000},
		.reference = {1767225600, 1767312000},
		.min = {8, 14},
		.max = {8, 14},
		.nonzero = {1, 1}};
	struct usage_history u;

	usage_init(&u, &vpa_model);
	assert_int_equal(usage_add_cpu(&u, T0, 100, 1), 0);
	assert_int_equal(usage_add_memory(&u, T0, 209715200), 0);
	check_golden(&u, &g);
}

static void vpa_one_hour(void **state)
{
	static const struct golden g = {
		.amounts = {{126, 262144000}, {120, 262144000}, {3201, 6304780788}},
		.total_bits = {0x40185815413a9db1, 0x3ff0000000000000},
		.reference = {1767225600, 1767312000},
		.min = {8, 14},
		.max = {8, 14},
		.nonzero = {1, 1}};
	struct usage_history u;

	usage_init(&u, &vpa_model);
	for (int i = 0; i < 60; i++) {
		assert_int_equal(usage_add_cpu(&u, T0 + i * MINUTES, 100, 1), 0);
		assert_int_equal(usage_add_memory(&u, T0 + i * MINUTES, 209715200), 0);
	}
	check_golden(&u, &g);
}

static void vpa_one_day(void **state)
{
	static const struct golden g = {
		.amounts = {{587, 297164212}, {349, 296570362}, {1254, 594534931}},
		.total_bits = {0x4069f656c0a0e23e, 0x3ff0000000000000},
		.reference = {1767225600, 1767312000},
		.min = {4, 16},
		.max = {27, 16},
		.nonzero = {24, 1}};
	struct usage_history u;

	usage_init(&u, &vpa_model);
	for (int i = 0; i < 1440; i++) {
		assert_int_equal(usage_add_cpu(&u, T0 + i * MINUTES, 50 + i * 37 % 500, 1), 0);
		assert_int_equal(usage_add_memory(&u, T0 + i * MINUTES, 100000000 + 100000 * i), 0);
	}
	check_golden(&u, &g);
}

static const struct golden eight_days[] = {
	{{{2162, 587804717}, {1165, 586630054}, {4563, 1176017915}},
		{0x4069f656c0a0e23e, 0x3ff0000000000000}, {1767225600, 1767312000}, {0, 25},
		{49, 25}, {50, 1}},
	{{{2162, 587804717}, {1236, 587217148}, {3421, 881809160}},
		{0x408378c11078a9ad, 0x4008000000000000}, {1767225600, 1767312000}, {0, 25},
		{49, 25}, {50, 1}},
	{{{2162, 587804717}, {1167, 587412952}, {3041, 783784988}},
		{0x4096b78be88cc5f0, 0x401c000000000000}, {1767225600, 1767312000}, {0, 25},
		{49, 25}, {50, 1}},
	{{{2162, 865936536}, {1167, 865503654}, {2851, 1082458260}},
		{0x40a856f15496d40f, 0x402e000000000000}, {1767225600, 1767312000}, {0, 25},
		{49, 31}, {50, 2}},
	{{{2048, 865936536}, {1167, 587569632}, {2737, 1039147900}},
		{0x40b926a40a9bdb1c, 0x403f000000000000}, {1767225600, 1767312000}, {0, 25},
		{49, 31}, {50, 2}},
	{{{2048, 865936536}, {1167, 587608808}, {2661, 1010275997}},
		{0x40c98e7d659e5ea4, 0x404f800000000000}, {1767225600, 1767312000}, {0, 25},
		{49, 31}, {50, 2}},
	{{{2162, 716711186}, {1167, 716506434}, {2606, 989654028}},
		{0x40d9c26a131fa066, 0x405fc00000000000}, {1767225600, 1767312000}, {0, 25},
		{49, 31}, {50, 3}},
	{{{2162, 716711186}, {1167, 587657780}, {2566, 806307861}},
		{0x40e9dc6069e04148, 0x406fe00000000000}, {1767225600, 1767312000}, {0, 25},
		{49, 31}, {50, 3}},
};

static const uint32_t eight_days_cpu[] = {953, 1383, 1042, 1547, 868, 1412, 1139, 873, 1393, 1126,
	1785, 1871, 1047, 1424, 2293, 1829, 1967, 2135, 1957, 2151, 2397, 2819, 2087, 2747, 3237,
	2729, 2814, 3470, 3394, 3681, 4878, 4133, 4482, 5011, 4454, 5268, 4790, 5701, 5471, 5664,
	5703, 7964, 6377, 7493, 8135, 7667, 8690, 7806, 10000, 1461};

static uint32_t lcg(uint32_t *x)
{
	*x = (*x * 1103515245U + 12345U) & 0x7fffffffU;
	return *x;
}

static void run_eight_days(struct usage_history *u)
{
	uint32_t x = 42;

	for (int i = 0; i < 11520; i++) {
		int64_t t = T0 + i * MINUTES;

		assert_int_equal(usage_add_cpu(u, t, (lcg(&x) >> 8) % 2000, 1), 0);
		assert_int_equal(usage_add_memory(u, t, 500000000 + (lcg(&x) >> 8) % 300000), 0);
		if (i == 5000)
			assert_int_equal(
				usage_record_oom(u, &vpa, t + 30 * INSTANT_SECOND, 600000000), 0);
		if (i == 7000)
			assert_int_equal(
				usage_record_oom(u, &vpa, t - 25 * INSTANT_HOUR, 900000000),
				-ESTALE);
		if (i == 9000)
			assert_int_equal(
				usage_record_oom(u, &vpa, t - 2 * INSTANT_HOUR, 50000000), 0);
		if (i % 1440 == 1439)
			check_golden(u, &eight_days[i / 1440]);
	}
	assert_int_equal(u->window.peak, 500299832);
	assert_int_equal(u->window.end, INT64_C(1767916800) * INSTANT_SECOND);
}

static void check_quantised(const struct usage_quantised *q)
{
	const struct histogram_quantised *memory = &q->histogram[RESOURCE_MEMORY];
	const struct histogram_quantised *cpu = &q->histogram[RESOURCE_CPU];

	assert_int_equal(q->first, T0);
	assert_int_equal(q->last, INT64_C(1767916740) * INSTANT_SECOND);
	assert_int_equal(q->samples, 11520);
	assert_int_equal(memory->reference, INT64_C(1767312000) * INSTANT_SECOND);
	assert_true(memory->total == 255);
	for (unsigned int i = 0; i < BUCKETS_MAX; i++)
		assert_int_equal(memory->weight[i], i == 25   ? 10000
						    : i == 28 ? 3497
						    : i == 31 ? 437
							      : 0);
	assert_int_equal(cpu->reference, T0);
	assert_int_equal(bits_of(cpu->total), 0x40e9dc6069e04148);
	for (unsigned int i = 0; i < BUCKETS_MAX; i++)
		assert_int_equal(
			cpu->weight[i], i < ARRAY_SIZE(eight_days_cpu) ? eight_days_cpu[i] : 0);
}

static void vpa_eight_days_with_ooms_and_a_checkpoint(void **state)
{
	struct usage_history u, loaded;
	struct usage_quantised q;

	usage_init(&u, &vpa_model);
	run_eight_days(&u);
	usage_quantise(&u, false, 0, &q);
	check_quantised(&q);
	usage_init(&loaded, &vpa_model);
	assert_int_equal(usage_unquantise(&loaded, &q, NULL), 0);
	check_golden(&loaded, &eight_days[7]);
	usage_quantise(&loaded, false, 0, &q);
	check_quantised(&q);
}

static void vpa_zero_first_blocks_the_interval(void **state)
{
	static const struct golden first = {
		.amounts = {{25, 262144000}, {25, 262144000}, {AMOUNT_MAX, AMOUNT_MAX}},
		.total_bits = {0x3fb999999999999a, 0x3ff0000000000000},
		.reference = {1767225600, 1767312000},
		.nonzero = {1, 1}};
	static const struct golden second = {
		.amounts = {{25, 978270031}, {25, 262144000}, {AMOUNT_MAX, AMOUNT_MAX}},
		.total_bits = {0x3fb999999999999a, 0x4008000000000000},
		.reference = {1767225600, 1767312000},
		.max = {0, 33},
		.nonzero = {1, 2}};
	struct usage_history u;

	usage_init(&u, &vpa_model);
	assert_int_equal(usage_add_memory(&u, T0, 0), 0);
	assert_int_equal(usage_add_memory(&u, T0 + MINUTES, 500000000), 0);
	assert_int_equal(usage_record_oom(&u, &vpa, T0 + 2 * MINUTES, 700000000), 0);
	assert_int_equal(usage_recent_peak(&u), 0);
	assert_int_equal(usage_add_cpu(&u, T0, 5, 1), 0);
	check_golden(&u, &first);
	assert_int_equal(usage_add_memory(&u, T0 + INSTANT_DAY, 500000000), 0);
	assert_int_equal(
		usage_record_oom(&u, &vpa, T0 + INSTANT_DAY - INSTANT_SECOND, 700000000), 0);
	assert_int_equal(usage_add_memory(&u, T0 + INSTANT_DAY - INSTANT_SECOND, 1), 0);
	assert_int_equal(usage_add_memory(&u, T0 + INSTANT_DAY - 2 * INSTANT_SECOND, 1), -ESTALE);
	assert_int_equal(usage_recent_peak(&u), 840000000);
	check_golden(&u, &second);
}

static void minimum_is_split_over_containers(void **state)
{
	static const struct {
		unsigned int containers;
		int64_t cpu, memory;
	} t[] = {{1, 25, 262144000}, {2, 12, 131072000}, {3, 8, 87381333}, {0, 25, 262144000}};
	struct usage_history u;
	struct recommendation r;

	usage_init(&u, &vpa_model);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		estimate(&u, &vpa, t[i].containers, 0, &r, NULL);
		assert_int_equal(r.amounts[BOUND_TARGET].value[RESOURCE_CPU], t[i].cpu);
		assert_int_equal(r.amounts[BOUND_TARGET].value[RESOURCE_MEMORY], t[i].memory);
	}
}

/* A day of 20 millicores and 30 MiB, then what the test adds. */
static void quiet_day(struct usage_history *u, const struct model *model)
{
	usage_init(u, model);
	for (int i = 0; i < 1440; i++) {
		assert_int_equal(usage_add_cpu(u, T0 + i * MINUTES, 20.5, 1), 0);
		assert_int_equal(usage_add_memory(u, T0 + i * MINUTES, 30 << 20), 0);
	}
}

static void fine_fits_a_small_daemon(void **state)
{
	struct usage_history u;
	struct recommendation r;

	quiet_day(&u, &fine_model);
	estimate(&u, &fine, 1, T0 + INSTANT_DAY, &r, NULL);
	assert_in_range(r.amounts[BOUND_TARGET].value[RESOURCE_CPU], 23, 26);
	assert_in_range(r.amounts[BOUND_TARGET].value[RESOURCE_MEMORY], 34 << 20, 37 << 20);
	for (int i = 0; i < RESOURCES; i++) {
		assert_true(r.amounts[BOUND_LOWER].value[i] <= r.amounts[BOUND_TARGET].value[i]);
		assert_true(r.amounts[BOUND_UPPER].value[i] > r.amounts[BOUND_TARGET].value[i]);
	}
}

static void fine_says_only_what_it_knows(void **state)
{
	struct usage_history u;
	struct recommendation r;

	usage_init(&u, &fine_model);
	estimate(&u, &fine, 1, T0, &r, NULL);
	for (int b = 0; b < BOUNDS; b++)
		assert_false(r.amounts[b].known[0] || r.amounts[b].known[1]);
	assert_int_equal(usage_add_memory(&u, T0, 1 << 20), 0);
	estimate(&u, &fine, 1, T0, &r, NULL);
	assert_false(r.amounts[BOUND_TARGET].known[RESOURCE_CPU]);
	assert_true(r.amounts[BOUND_TARGET].known[RESOURCE_MEMORY]);
	assert_int_equal(r.amounts[BOUND_TARGET].value[RESOURCE_MEMORY], 10 << 20);
	assert_false(r.amounts[BOUND_LOWER].known[RESOURCE_MEMORY]);
	assert_false(r.amounts[BOUND_UPPER].known[RESOURCE_MEMORY]);
	/* Memory gains confidence from memory. An upper bound of hundreds of times the target is
	 * none. */
	for (int i = 1; i < 1440; i++) {
		assert_int_equal(usage_add_memory(&u, T0 + i * MINUTES, 20 << 20), 0);
		estimate(&u, &fine, 1, T0 + i * MINUTES, &r, NULL);
		const struct amounts *upper = &r.amounts[BOUND_UPPER];
		assert_true(upper->known[RESOURCE_MEMORY] == (i >= 160));
		assert_true(!upper->known[RESOURCE_MEMORY] ||
			    upper->value[RESOURCE_MEMORY] <=
				    11 * r.amounts[BOUND_TARGET].value[RESOURCE_MEMORY]);
	}
	estimate(&u, &fine, 1, T0 + INSTANT_DAY, &r, NULL);
	assert_true(r.amounts[BOUND_UPPER].known[RESOURCE_MEMORY]);
	assert_true(r.amounts[BOUND_UPPER].value[RESOURCE_MEMORY] < 60 << 20);
	assert_false(r.amounts[BOUND_TARGET].known[RESOURCE_CPU]);
}

static void fine_holds_what_an_oom_taught(void **state)
{
	const int64_t limit = 40 << 20;
	struct usage_history u;
	struct recommendation r;
	int64_t t = T0 + INSTANT_DAY;

	quiet_day(&u, &fine_model);
	assert_int_equal(usage_record_oom(&u, &fine, t, limit), 0);
	/* At once, and still when the kill has faded from the percentiles; then no more. */
	for (int day = 0; day < 10; day++) {
		int64_t target, lower;

		estimate(&u, &fine, 1, t, &r, NULL);
		target = r.amounts[BOUND_TARGET].value[RESOURCE_MEMORY];
		lower = r.amounts[BOUND_LOWER].value[RESOURCE_MEMORY];
		if (day < 8) {
			assert_true(target >= 56 << 20);
			assert_true(lower > limit);
			if (day > 4)
				assert_true(lower <= limit * 11 / 10);
		} else if (day > 8) {
			assert_true(target < 40 << 20);
			assert_true(lower < limit);
		}
		for (int i = 0; i < 1440; i++)
			assert_int_equal(usage_add_memory(&u, t + i * MINUTES, 30 << 20), 0);
		t += INSTANT_DAY;
	}
	assert_int_equal(u.oom_kills, 1);
}

static void fine_oom_without_any_sample_is_known(void **state)
{
	struct usage_history u;
	struct recommendation r;

	usage_init(&u, &fine_model);
	assert_int_equal(usage_record_oom(&u, &fine, T0, 64 << 20), 0);
	assert_true(estimate_ready(&u));
	estimate(&u, &fine, 1, T0, &r, NULL);
	assert_true(r.amounts[BOUND_TARGET].value[RESOURCE_MEMORY] >= 80 << 20);
	assert_true(r.amounts[BOUND_LOWER].known[RESOURCE_MEMORY]);
	assert_true(r.amounts[BOUND_LOWER].value[RESOURCE_MEMORY] > 64 << 20);
	assert_false(r.amounts[BOUND_UPPER].known[RESOURCE_MEMORY]);
	assert_false(r.amounts[BOUND_TARGET].known[RESOURCE_CPU]);
}

static void output_is_rounded_then_capped(void **state)
{
	static const struct {
		int64_t cpu_step, memory_step;
		bool humanize, integer;
		int64_t max_cpu, max_memory;
		int64_t cpu, memory;
	} t[] = {
		{1, 1, false, false, -1, -1, 587, 297164212},
		{100, 1 << 20, false, false, -1, -1, 600, 284 << 20},
		{1, 1, true, false, -1, -1, 587, 297166439}, /* 283.40Mi */
		{1, 1, false, true, -1, -1, 1000, 297164212},
		{100, 1 << 20, false, true, 450, 100 << 20, 450, 100 << 20},
	};
	struct usage_history u;
	struct recommendation r;

	usage_init(&u, &vpa_model);
	for (int i = 0; i < 1440; i++) {
		(void)usage_add_cpu(&u, T0 + i * MINUTES, 50 + i * 37 % 500, 1);
		(void)usage_add_memory(&u, T0 + i * MINUTES, 100000000 + 100000 * i);
	}
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct knobs k = vpa;

		k.round_cpu_millicores = t[i].cpu_step;
		k.round_memory_bytes = t[i].memory_step;
		k.humanize_memory = t[i].humanize;
		k.integer_cpu = t[i].integer;
		k.max_allowed[RESOURCE_CPU] = t[i].max_cpu;
		k.max_allowed[RESOURCE_MEMORY] = t[i].max_memory;
		estimate(&u, &k, 1, T0, &r, NULL);
		assert_int_equal(r.amounts[BOUND_TARGET].value[RESOURCE_CPU], t[i].cpu);
		assert_int_equal(r.amounts[BOUND_TARGET].value[RESOURCE_MEMORY], t[i].memory);
	}
}

static void explain_leads_to_the_answer(void **state)
{
	struct usage_history u;
	struct recommendation r;
	struct explain x;
	int64_t last[BOUNDS][RESOURCES] = {0};

	quiet_day(&u, &fine_model);
	(void)usage_record_oom(&u, &fine, T0 + INSTANT_DAY, 40 << 20);
	estimate(&u, &fine, 1, T0 + INSTANT_DAY, &r, &x);
	assert_true(x.n > 0 && x.n <= EXPLAIN_STEPS_MAX);
	for (uint32_t i = 0; i < x.n; i++) {
		assert_string_not_equal(explain_stage_name(x.steps[i].stage), "unknown");
		last[x.steps[i].bound][x.steps[i].resource] = x.steps[i].amount;
	}
	for (int b = 0; b < BOUNDS; b++)
		for (int i = 0; i < RESOURCES; i++)
			assert_int_equal(last[b][i], r.amounts[b].value[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vpa_without_samples_gives_the_minimum),
		cmocka_unit_test(vpa_one_sample),
		cmocka_unit_test(vpa_one_hour),
		cmocka_unit_test(vpa_one_day),
		cmocka_unit_test(vpa_eight_days_with_ooms_and_a_checkpoint),
		cmocka_unit_test(vpa_zero_first_blocks_the_interval),
		cmocka_unit_test(minimum_is_split_over_containers),
		cmocka_unit_test(fine_fits_a_small_daemon),
		cmocka_unit_test(fine_says_only_what_it_knows),
		cmocka_unit_test(fine_holds_what_an_oom_taught),
		cmocka_unit_test(fine_oom_without_any_sample_is_known),
		cmocka_unit_test(output_is_rounded_then_capped),
		cmocka_unit_test(explain_leads_to_the_answer),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
