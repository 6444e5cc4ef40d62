/* SPDX-License-Identifier: Apache-2.0 */
/* Throttling as demand, against a small model of the kernel's bandwidth control: one thread, a
 * quota per period of 100 ms, counters as cpu.stat shows them. */
#include <math.h>

#include "base/macros.h"
#include "rules/estimator.h"
#include "rules/instant.h"
#include "rules/throttle.h"
#include "test/unit/unit.h"

#define PERIOD_MS 100.0

struct load {
	double run_ms,
		sleep_ms; /* CPU time per turn, and the sleep after it; sleep 0: never idle */
	double phase_ms;  /* when it starts within the first period */
};

struct bandwidth {
	struct throttle_window w;
	double left, period_end;
	bool timer, ran, throttled;
};

/* The end of a period: counted while anyone ran in it, or in the one before. */
static void end_period(struct bandwidth *b, double quota_ms)
{
	if (b->timer) {
		b->w.nr_periods++;
		b->w.nr_throttled += b->throttled;
		b->timer = b->ran || b->throttled;
	}
	b->ran = b->throttled = false;
	b->left = quota_ms;
	b->period_end += PERIOD_MS;
}

static struct throttle_window run_load(const struct load *l, double quota_ms, double ms)
{
	struct bandwidth b = {.left = quota_ms, .period_end = PERIOD_MS};
	double t = 0, need = l->run_ms, wake = l->phase_ms, cpu = 0, throttled_ms = 0;

	while (t < ms) {
		double d;

		if (t >= b.period_end - 1e-9) {
			end_period(&b, quota_ms);
		} else if (t < wake - 1e-9) {
			t = fmin(wake, b.period_end);
		} else if (b.left <= 1e-9) {
			b.timer = b.throttled = true;
			throttled_ms += b.period_end - t;
			t = b.period_end;
		} else {
			b.timer = b.ran = true;
			d = fmin(fmin(b.left, b.period_end - t), need);
			t += d;
			cpu += d;
			b.left -= d;
			need -= d;
			if (need <= 1e-9) {
				need = l->run_ms;
				wake = t + l->sleep_ms;
			}
		}
	}
	b.w.elapsed_usec = (uint64_t)(ms * 1000);
	b.w.throttled_usec = (uint64_t)(throttled_ms * 1000);
	b.w.usage_millicores = cpu / ms * 1000;
	b.w.quota_millicores = quota_ms / PERIOD_MS * 1000;
	return b.w;
}

static struct knobs fine;
static struct model model;

static int set_up(void **state)
{
	knobs_defaults(&fine, PROFILE_FINE);
	model_init(&model, &fine);
	return 0;
}

/* The target after some minutes of this load under this quota; 0: no quota. */
static int64_t target(const struct load *l, double quota_ms, bool demand)
{
	struct throttle_window w = run_load(l, quota_ms > 0 ? quota_ms : 1e9, 60000);
	struct recommendation r;
	struct usage_history u;

	usage_init(&u, &model);
	for (int i = 0; i < 5; i++)
		assert_int_equal(
			usage_add_cpu(&u, i * INSTANT_MINUTE,
				demand ? throttle_demand(&w, NULL) : w.usage_millicores, 1),
			0);
	estimate(&u, &fine, 1, 0, &r, NULL);
	return r.amounts[BOUND_TARGET].value[RESOURCE_CPU];
}

static void a_busy_loop_gets_about_twice_its_quota(void **state)
{
	static const double quotas[] = {1, 5, 10, 20, 40};
	const struct load busy = {1000, 0, 0};

	for (size_t i = 0; i < ARRAY_SIZE(quotas); i++) {
		double ratio = (double)target(&busy, quotas[i], true) / (quotas[i] * 10);

		assert_true(ratio >= 1.8 && ratio <= 2.6);
	}
}

static void a_busy_loop_climbs_to_its_need(void **state)
{
	const struct load busy = {1000, 0, 0};
	double quota = 10;
	int rounds = 0;

	while (quota < PERIOD_MS && rounds < 10) {
		quota = (double)target(&busy, quota, true) / 10;
		rounds++;
	}
	assert_in_range(rounds, 3, 5);
	/* And there the climb ends. */
	assert_in_range(target(&busy, 2 * PERIOD_MS, true), 1000, 1300);
}

static void a_bursty_load_is_not_overstated(void **state)
{
	static const struct load loads[] = {{20, 80, 0}, {60, 940, 0}, {5, 95, 0}, {150, 850, 0}};

	for (size_t i = 0; i < ARRAY_SIZE(loads); i++)
		for (double quota = 1; quota < loads[i].run_ms * 1.3; quota += 0.5)
			for (double phase = 0; phase < PERIOD_MS; phase += 23) {
				struct load l = loads[i];
				double ratio;

				l.phase_ms = phase;
				ratio = (double)target(&l, quota, true) /
					(double)target(&l, 0, false);
				if (ratio > 1.5)
					print_error("%g of %g ms, quota %g ms: %g\n", l.run_ms,
						l.run_ms + l.sleep_ms, quota, ratio);
				assert_true(ratio <= 1.5);
			}
}

static void a_bursty_load_climbs_too(void **state)
{
	const struct load bursty = {20, 80, 0};
	int64_t need = target(&bursty, 0, false);
	double quota = 5;
	int rounds = 0;

	while (quota * 10 < (double)need * 0.9 && rounds++ < 10)
		quota = (double)target(&bursty, quota, true) / 10;
	assert_true(rounds < 10);
}

#define MINUTE 60000000

static void a_windows_demand(void **state)
{
	static const struct {
		const char *what;
		struct throttle_window w;
		double demand;
		bool throttled;
	} cases[] = {
		{"a busy loop at its quota counts double", {100, 100, MINUTE, 600, 600, 54000000},
			200, true},
		{"half of the periods, always wanting", {100, 100, MINUTE, 600, 300, 51000000}, 150,
			true},
		{"idle in between", {100, 100, MINUTE, 600, 600, 6000000}, 135, true},
		{"one period in twenty is throttling", {100, 100, MINUTE, 600, 30, 54000000}, 105,
			true},
		{"less is not", {100, 100, MINUTE, 600, 29, 54000000}, 100, false},
		{"never more than it waited for", {100, 100, MINUTE, 600, 600, 600000}, 110, true},
		{"a whole CPU is all that one thread wants", {800, 800, MINUTE, 600, 600, 12000000},
			1000, true},
		{"one throttled thread is not all of a quota of two CPUs",
			{600, 1500, MINUTE, 600, 600, 60000000}, 810, true},
		{"an unknown quota is one CPU's", {100, 0, MINUTE, 600, 600, 54000000}, 200, true},
		{"no periods", {100, 100, MINUTE, 0, 0, 0}, 100, false},
		{"counters that do not fit together", {100, 100, MINUTE, 10, 20, 54000000}, 200,
			true},
		{"no time", {100, 100, 0, 10, 10, 10}, 100, false},
		{"idle", {0, 100, MINUTE, 600, 600, 0}, 0, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bool throttled;
		double demand = throttle_demand(&cases[i].w, &throttled);

		if (fabs(demand - cases[i].demand) > 1e-9 || throttled != cases[i].throttled)
			fail_msg("%s: %g, %d", cases[i].what, demand, throttled);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_busy_loop_gets_about_twice_its_quota),
		cmocka_unit_test(a_busy_loop_climbs_to_its_need),
		cmocka_unit_test(a_bursty_load_is_not_overstated),
		cmocka_unit_test(a_bursty_load_climbs_too),
		cmocka_unit_test(a_windows_demand),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
