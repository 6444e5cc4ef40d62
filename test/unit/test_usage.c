/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "rules/instant.h"
#include "rules/usage.h"
#include "test/unit/unit.h"

#define T0 (INT64_C(1492536905) * INSTANT_SECOND) /* 2017-04-18T17:35:05Z */
#define MB INT64_C(1048576)

static struct knobs vpa, fine, vpa_hourly;
static struct model vpa_model, fine_model, vpa_hourly_model;

static int set_up(void **state)
{
	knobs_defaults(&vpa, PROFILE_VPA);
	knobs_defaults(&fine, PROFILE_FINE);
	vpa_hourly = vpa;
	vpa_hourly.memory_aggregation_interval_ns = INSTANT_HOUR;
	model_init(&vpa_model, &vpa);
	model_init(&fine_model, &fine);
	model_init(&vpa_hourly_model, &vpa_hourly);
	return 0;
}

static void cpu_order_and_sign(void **state)
{
	static const struct {
		int64_t after;
		double millicores;
		int result;
	} t[] = {
		{0, 3140, 0},
		{12 * INSTANT_HOUR, 6280, 0},
		{24 * INSTANT_HOUR, 1570, 0},
		{24 * INSTANT_HOUR, 1000, -EEXIST},
		{23 * INSTANT_HOUR, 1000, -ESTALE},
		{25 * INSTANT_HOUR, -1, -EINVAL},
		{25 * INSTANT_HOUR, NAN, -EINVAL},
	};
	struct usage_history u;

	usage_init(&u, &vpa_model);
	assert_false(usage_any(&u));
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(
			usage_add_cpu(&u, T0 + t[i].after, t[i].millicores, 1), t[i].result);
	assert_int_equal(u.cpu_samples, 3);
	assert_int_equal(u.cpu_first, T0);
	assert_int_equal(u.cpu_last, T0 + 24 * INSTANT_HOUR);
	assert_true(usage_any(&u));
}

static void fractions_of_a_millicore(void **state)
{
	struct usage_history u;

	usage_init(&u, &vpa_model);
	assert_int_equal(usage_add_cpu(&u, T0, 9.999, 1), 0);
	assert_int_equal(usage_add_cpu(&u, T0 + 1, 20.9, 1), 0);
	assert_int_equal(histogram_percentile(&u.histogram[RESOURCE_CPU], 0), 10);
	assert_int_equal(histogram_percentile(&u.histogram[RESOURCE_CPU], 1), 20);
	usage_init(&u, &fine_model);
	assert_int_equal(usage_add_cpu(&u, T0, 0.25, 1), 0);
	assert_int_equal(usage_add_cpu(&u, T0 + 1, 1.5, 1), 0);
	assert_int_equal(histogram_percentile(&u.histogram[RESOURCE_CPU], 0), 1);
	assert_int_equal(histogram_percentile(&u.histogram[RESOURCE_CPU], 1), 3);
}

/* One reading or OOM, and the peak that the running interval then has. */
struct memory_step {
	bool oom;
	int64_t after; /* ns */
	int64_t mb;
	int result;
	int64_t peak_mb; /* of the running interval */
};

static void run_memory_steps(const struct knobs *k, const struct model *m,
	const struct memory_step *steps, size_t n, struct usage_history *u)
{
	usage_init(u, m);
	for (size_t i = 0; i < n; i++) {
		int r = steps[i].oom ? usage_record_oom(u, k, T0 + steps[i].after, steps[i].mb * MB)
				     : usage_add_memory(u, T0 + steps[i].after, steps[i].mb * MB);

		assert_int_equal(r, steps[i].result);
		assert_int_equal(usage_recent_peak(u), steps[i].peak_mb * MB);
	}
}

#define RUN_MEMORY_STEPS(k, m, steps, u) run_memory_steps(k, m, steps, ARRAY_SIZE(steps), u)

static void memory_keeps_one_peak_per_interval(void **state)
{
	static const struct memory_step day[] = {
		{false, 0, 50, 0, 50},
		{false, 12 * INSTANT_HOUR, 100, 0, 100},
		{false, 13 * INSTANT_HOUR, 70, 0, 100},
		{false, 13 * INSTANT_HOUR, 80, 0, 100}, /* an equal time is taken */
		{false, 12 * INSTANT_HOUR, 500, -ESTALE, 100},
		{false, 24 * INSTANT_HOUR, 20, 0, 20},
	};
	static const struct memory_step hour[] = {
		{false, 0, 50, 0, 50},
		{false, INSTANT_HOUR / 2, 100, 0, 100},
		{false, 2 * INSTANT_HOUR, 100, 0, 100},
	};
	struct usage_history u;

	RUN_MEMORY_STEPS(&vpa, &vpa_model, day, &u);
	assert_int_equal(u.window.end, T0 + 48 * INSTANT_HOUR);
	assert_int_equal(histogram_nonzero(&u.histogram[RESOURCE_MEMORY]), 2);
	RUN_MEMORY_STEPS(&fine, &fine_model, day, &u);
	assert_int_equal(u.window.end, T0 + 48 * INSTANT_HOUR);
	assert_int_equal(u.memory_samples, 5);
	assert_int_equal(u.memory_minutes, 4);
	RUN_MEMORY_STEPS(&vpa_hourly, &vpa_hourly_model, hour, &u);
	assert_int_equal(u.window.end, T0 + 3 * INSTANT_HOUR);
	assert_int_equal(usage_add_memory(&u, T0 + 3 * INSTANT_HOUR, -1), -EINVAL);
}

static void oom_bumps(void **state)
{
	static const struct memory_step by_ratio[] = {{true, 0, 1000, 0, 1200}};
	static const struct memory_step by_bytes[] = {{true, 0, 1, 0, 101}};
	static const struct memory_step no_runaway[] = {
		{true, 0, 1000, 0, 1200},
		{true, 0, 999, 0, 1200},
		{true, 0, 999, 0, 1200},
		{true, 0, 2000, 0, 2400},
	};
	static const struct memory_step above_known[] = {
		{false, 0, 3000, 0, 3000},
		{true, 0, 1000, 0, 3600},
	};
	static const struct memory_step too_old[] = {
		{false, 0, 1000, 0, 1000},
		{true, -30 * INSTANT_HOUR, 1000, -ESTALE, 1000},
		{true, -24 * INSTANT_HOUR, 1000, 0, 1200},
	};
	static const struct memory_step next_interval[] = {
		{false, 0, 2000, 0, 2000},
		{true, 48 * INSTANT_HOUR, 1000, 0, 2400},
	};
	static const struct memory_step near_the_boundary[] = {
		{false, 0, 100, 0, 100},
		{false, 24 * INSTANT_HOUR, 2000, 0, 2000},
		{true, 24 * INSTANT_HOUR - INSTANT_SECOND, 1000, 0, 2400},
	};
	struct usage_history u;

	RUN_MEMORY_STEPS(&vpa, &vpa_model, by_ratio, &u);
	RUN_MEMORY_STEPS(&vpa, &vpa_model, by_bytes, &u);
	RUN_MEMORY_STEPS(&vpa, &vpa_model, no_runaway, &u);
	assert_int_equal(u.oom_kills, 4);
	RUN_MEMORY_STEPS(&vpa, &vpa_model, above_known, &u);
	RUN_MEMORY_STEPS(&vpa, &vpa_model, too_old, &u);
	assert_int_equal(u.oom_kills, 1);
	RUN_MEMORY_STEPS(&vpa, &vpa_model, next_interval, &u);
	assert_int_equal(u.window.end, T0 + 72 * INSTANT_HOUR);
	RUN_MEMORY_STEPS(&vpa, &vpa_model, near_the_boundary, &u);
}

static void fine_zero_reading_blocks_nothing(void **state)
{
	static const struct memory_step steps[] = {
		{false, 0, 0, 0, 0},
		{false, INSTANT_MINUTE, 50, 0, 50},
		{true, 2 * INSTANT_MINUTE, 64, 0, 80},
		{true, 3 * INSTANT_MINUTE, 10, 0, 80},
	};
	struct usage_history u;

	RUN_MEMORY_STEPS(&fine, &fine_model, steps, &u);
	assert_int_equal(histogram_nonzero(&u.histogram[RESOURCE_MEMORY]), 1);
}

static void early_warning_raises_without_counting(void **state)
{
	struct usage_history u;

	usage_init(&u, &fine_model);
	assert_int_equal(usage_add_memory(&u, T0, 100 * MB), 0);
	assert_int_equal(usage_record_ahead(&u, &fine, T0 + INSTANT_SECOND, 128 * MB), 0);
	assert_int_equal(u.oom_kills, 0);
	assert_int_equal(u.ahead_last, T0 + INSTANT_SECOND);
	assert_int_equal(usage_recent_peak(&u), 160 * MB);
	assert_int_equal(u.floor.used, 128 * MB);
}

static void a_new_pod_renews_the_window_only_upstream(void **state)
{
	struct usage_history u;

	usage_init(&u, &vpa_model);
	(void)usage_add_memory(&u, T0, 100 * MB);
	usage_restart(&u, T0 + INSTANT_HOUR);
	(void)usage_add_memory(&u, T0 + INSTANT_HOUR, 100 * MB);
	assert_true(u.histogram[RESOURCE_MEMORY].total < 1.5);
	usage_pod_gone(&u);
	(void)usage_add_memory(&u, T0 + INSTANT_HOUR, 100 * MB);
	assert_true(u.histogram[RESOURCE_MEMORY].total > 1.5);
	usage_init(&u, &fine_model);
	(void)usage_add_memory(&u, T0, 100 * MB);
	usage_pod_gone(&u);
	(void)usage_add_memory(&u, T0 + INSTANT_HOUR, 100 * MB);
	assert_true(u.histogram[RESOURCE_MEMORY].total < 1.5);
}

static void steady_hours(struct usage_history *u, int hours, double millicores)
{
	usage_init(u, &fine_model);
	for (int i = 0; i < hours * 60; i++)
		assert_int_equal(usage_add_cpu(u, T0 + i * INSTANT_MINUTE, millicores, 1), 0);
}

static void catching_up_after_a_restart_is_kept_apart(void **state)
{
	static const double minutes[] = {400, 300, 180, 52, 50, 51};
	struct usage_history u;
	int64_t t = T0 + 2 * INSTANT_HOUR;

	steady_hours(&u, 2, 50);
	usage_restart(&u, t - 1);
	for (size_t i = 0; i < ARRAY_SIZE(minutes); i++)
		assert_int_equal(
			usage_add_cpu(&u, t + (int64_t)i * INSTANT_MINUTE, minutes[i], 1), 0);
	/* The three that were close together count after all, in their own time. */
	assert_int_equal(u.cpu_samples, 123);
	assert_int_equal(u.cpu_last, t + 5 * INSTANT_MINUTE);
	assert_true(histogram_percentile(&u.histogram[RESOURCE_CPU], 1) < 60);
	assert_true(startup_peak(&u.startup) == 400);
	assert_false(startup_running(&u.startup));
	assert_int_equal(usage_add_cpu(&u, t + 6 * INSTANT_MINUTE, 400, 1), 0);
	assert_int_equal(u.cpu_samples, 124);
}

static void catching_up_at_a_steady_pace_has_not_settled(void **state)
{
	struct usage_history u;
	int64_t t = T0 + 2 * INSTANT_HOUR;

	steady_hours(&u, 2, 50);
	usage_restart(&u, t - 1);
	for (int i = 0; i < 8; i++)
		(void)usage_add_cpu(&u, t + i * INSTANT_MINUTE, 400, 1);
	assert_int_equal(u.cpu_samples, 120);
	for (int i = 8; i < 11; i++)
		(void)usage_add_cpu(&u, t + i * INSTANT_MINUTE, 50, 1);
	assert_true(histogram_percentile(&u.histogram[RESOURCE_CPU], 1) < 60);
	assert_false(startup_running(&u.startup));
	/* What lasts is a need. */
	usage_restart(&u, t + INSTANT_HOUR - 1);
	for (int i = 0; i < 20; i++)
		(void)usage_add_cpu(&u, t + INSTANT_HOUR + i * INSTANT_MINUTE, 400, 1);
	assert_true(histogram_percentile(&u.histogram[RESOURCE_CPU], 1) > 400);
}

static void start_up_ends_after_ten_minutes(void **state)
{
	struct usage_history u;
	int64_t t = T0 + 2 * INSTANT_HOUR;

	steady_hours(&u, 2, 50);
	usage_restart(&u, t);
	for (int i = 0; i < 15; i++)
		assert_int_equal(
			usage_add_cpu(&u, t + i * INSTANT_MINUTE, i % 2 ? 900 : 100, 1), 0);
	assert_int_equal(u.cpu_samples, 120 + 5);
}

static void a_first_start_counts(void **state)
{
	struct usage_history u;

	usage_init(&u, &fine_model);
	usage_restart(&u, T0);
	for (int i = 0; i < 3; i++)
		(void)usage_add_cpu(&u, T0 + i * INSTANT_MINUTE, 100 * (1 + i), 1);
	assert_int_equal(u.cpu_samples, 3);
}

static void fill(struct usage_history *u, const struct knobs *k, const struct model *m)
{
	usage_init(u, m);
	for (int i = 0; i < 3000; i++) {
		int64_t t = T0 + i * INSTANT_MINUTE + i;

		(void)usage_add_cpu(u, t, 3 + i * 37 % 211 + 0.37, 1);
		(void)usage_add_memory(u, t, (20 + i * 13 % 47) * MB + i);
	}
	(void)usage_record_oom(u, k, T0 + 3000 * INSTANT_MINUTE, 90 * MB);
	usage_restart(u, T0 + 3001 * INSTANT_MINUTE);
	(void)usage_add_cpu(u, T0 + 3002 * INSTANT_MINUTE, 500, 1);
}

static int load_all(struct usage_history *u, struct buf *b, bool *ret_converted, struct err *e)
{
	struct checkpoint_cursor c = {.p = (const unsigned char *)b->p, .n = b->n};

	return usage_load(u, &c, ret_converted, e);
}

static void saved_and_loaded_is_the_same(void **state)
{
	const struct {
		const struct knobs *k;
		const struct model *m;
	} t[] = {{&vpa, &vpa_model}, {&fine, &fine_model}};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(USAGE_SAVED_MAX);
		_cleanup_buf_ struct buf again = BUF_INIT(USAGE_SAVED_MAX);
		struct usage_history u, loaded;
		bool converted = true;

		fill(&u, t[i].k, t[i].m);
		usage_save(&u, &b);
		assert_int_equal(b.error, 0);
		usage_init(&loaded, t[i].m);
		assert_int_equal(load_all(&loaded, &b, &converted, NULL), 0);
		assert_false(converted);
		assert_memory_equal(&u, &loaded, sizeof(u));
		usage_save(&loaded, &again);
		assert_int_equal(again.n, b.n);
		assert_memory_equal(again.p, b.p, b.n);
	}
}

static void every_cut_is_refused_and_leaves_nothing(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(USAGE_SAVED_MAX);
	struct usage_history u, empty;
	struct err e;

	fill(&u, &fine, &fine_model);
	usage_save(&u, &b);
	usage_init(&empty, &fine_model);
	for (size_t n = 0; n < b.n; n++) {
		struct checkpoint_cursor c = {.p = (const unsigned char *)b.p, .n = n};

		usage_init(&u, &fine_model);
		assert_int_equal(usage_load(&u, &c, NULL, &e), -EINVAL);
		assert_memory_equal(&u, &empty, sizeof(u));
	}
}

static void every_flipped_bit_loads_or_is_refused(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(USAGE_SAVED_MAX);
	struct usage_history u;
	unsigned int refused = 0;

	fill(&u, &fine, &fine_model);
	usage_save(&u, &b);
	for (size_t i = 0; i < b.n * 8; i++) {
		b.p[i / 8] = (char)(b.p[i / 8] ^ 1 << i % 8);
		usage_init(&u, &fine_model);
		if (load_all(&u, &b, NULL, NULL) < 0)
			refused++;
		/* Whatever it says now: it can be used. */
		(void)usage_add_cpu(&u, T0 + 90 * INSTANT_DAY, 7, 1);
		(void)usage_add_memory(&u, T0 + 90 * INSTANT_DAY, MB);
		assert_true(histogram_percentile(&u.histogram[RESOURCE_CPU], 0.9) >= 0);
		assert_true(histogram_percentile(&u.histogram[RESOURCE_MEMORY], 0.9) >= 0);
		b.p[i / 8] = (char)(b.p[i / 8] ^ 1 << i % 8);
	}
	assert_true(refused > 0);
}

static void changed_settings_convert(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(USAGE_SAVED_MAX);
	struct usage_history u, loaded;
	struct model slow;
	struct knobs k = fine;
	bool converted = false;

	fill(&u, &vpa, &vpa_model);
	usage_save(&u, &b);
	k.half_life_ns[RESOURCE_CPU] = 48 * INSTANT_HOUR;
	k.memory_aggregation_interval_ns = 12 * INSTANT_HOUR;
	model_init(&slow, &k);
	usage_init(&loaded, &slow);
	assert_int_equal(load_all(&loaded, &b, &converted, NULL), 0);
	assert_true(converted);
	assert_int_equal(loaded.cpu_samples, u.cpu_samples);
	assert_int_equal(loaded.histogram[RESOURCE_CPU].half_life_ns, 48 * INSTANT_HOUR);
	assert_int_equal(loaded.window.end, TIME_NONE);
	for (int r = 0; r < RESOURCES; r++) {
		double a = (double)histogram_percentile(&u.histogram[r], 0.9);
		double c = (double)histogram_percentile(&loaded.histogram[r], 0.9);

		assert_true(c > a * 0.99 && c < a * 1.1);
	}
}

static void merging_is_having_seen_both(void **state)
{
	struct usage_history a, b, both;

	usage_init(&a, &fine_model);
	usage_init(&b, &fine_model);
	usage_init(&both, &fine_model);
	for (int i = 0; i < 200; i++) {
		struct usage_history *one = i % 3 ? &a : &b;
		int64_t t = T0 + i * INSTANT_MINUTE;

		(void)usage_add_cpu(one, t, i % 41, 1);
		(void)usage_add_cpu(&both, t, i % 41, 1);
	}
	(void)usage_record_oom(&b, &fine, T0, 64 * MB);
	assert_int_equal(usage_merge(&a, &b), 0);
	assert_int_equal(a.cpu_samples, 200);
	assert_int_equal(a.cpu_first, both.cpu_first);
	assert_int_equal(a.cpu_last, both.cpu_last);
	assert_int_equal(a.oom_kills, 1);
	assert_int_equal(a.floor.used, 64 * MB);
	assert_int_equal(histogram_percentile(&a.histogram[RESOURCE_CPU], 0.5),
		histogram_percentile(&both.histogram[RESOURCE_CPU], 0.5));
	usage_init(&b, &vpa_model);
	assert_int_equal(usage_merge(&a, &b), -EINVAL);
}

static void quantised_without_the_running_peak(void **state)
{
	struct usage_quantised q;
	struct usage_history u;

	usage_init(&u, &vpa_model);
	(void)usage_add_memory(&u, INSTANT_SECOND, 1024 * MB);
	usage_quantise(&u, true, INSTANT_SECOND, &q);
	assert_true(q.histogram[RESOURCE_MEMORY].total == 0);
	usage_quantise(&u, true, INSTANT_DAY + INSTANT_SECOND, &q);
	assert_true(q.histogram[RESOURCE_MEMORY].total > 0);
	assert_int_equal(q.first, TIME_NONE);
	(void)usage_add_cpu(&u, T0 + 123456789, 10, 1);
	usage_quantise(&u, false, 0, &q);
	assert_int_equal(q.first, T0);
	q.samples = -1;
	assert_int_equal(usage_unquantise(&u, &q, NULL), -EINVAL);
	assert_int_equal(u.cpu_samples, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_order_and_sign),
		cmocka_unit_test(fractions_of_a_millicore),
		cmocka_unit_test(memory_keeps_one_peak_per_interval),
		cmocka_unit_test(oom_bumps),
		cmocka_unit_test(fine_zero_reading_blocks_nothing),
		cmocka_unit_test(early_warning_raises_without_counting),
		cmocka_unit_test(a_new_pod_renews_the_window_only_upstream),
		cmocka_unit_test(catching_up_after_a_restart_is_kept_apart),
		cmocka_unit_test(catching_up_at_a_steady_pace_has_not_settled),
		cmocka_unit_test(start_up_ends_after_ten_minutes),
		cmocka_unit_test(a_first_start_counts),
		cmocka_unit_test(saved_and_loaded_is_the_same),
		cmocka_unit_test(every_cut_is_refused_and_leaves_nothing),
		cmocka_unit_test(every_flipped_bit_loads_or_is_refused),
		cmocka_unit_test(changed_settings_convert),
		cmocka_unit_test(merging_is_having_seen_both),
		cmocka_unit_test(quantised_without_the_running_peak),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
