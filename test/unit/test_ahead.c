/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/macros.h"
#include "rules/ahead.h"
#include "test/unit/unit.h"

#define MIB 1048576.0
#define SECOND UINT64_C(1000000)

/* Memory as a function of seconds. */
struct shape {
	double (*bytes)(const struct shape *s, double seconds);
	double a, b, c;
};

static double leak(const struct shape *s, double t)
{
	/* a: from; b: bytes per second; c: when it begins */
	return s->a + (t > s->c ? (t - s->c) * s->b : 0);
}

static double leak_in_lumps(const struct shape *s, double t)
{
	/* b: bytes per second; c: seconds between two lumps */
	return s->a + floor(t / s->c) * s->c * s->b;
}

static double step(const struct shape *s, double t)
{
	return t < s->c ? s->a : s->b;
}

static double quick_ramp_then_flat(const struct shape *s, double t)
{
	/* to b within two seconds */
	return t < s->c ? s->a : fmin(s->b, s->a + (t - s->c) / 2 * (s->b - s->a));
}

static double noisy(const struct shape *s, double t)
{
	uint32_t x = (uint32_t)(t * 10) * 2654435761U;

	return s->a + s->b * ((double)(x >> 8 & 0xffff) / 65536 - 0.5);
}

static double sawtooth(const struct shape *s, double t)
{
	return s->a + (s->b - s->a) * fmod(t, s->c) / s->c;
}

struct outcome {
	double announced; /* seconds; NAN: never */
	double killed;
	unsigned int announcements;
	unsigned int readings;
};

/* Reads every `ordinary` seconds, and once a second while that is asked for, up to the kill or
 * until so many seconds are over. */
static struct outcome run(
	const struct shape *s, double max, double seconds, double ordinary, double first)
{
	struct outcome o = {.announced = NAN, .killed = NAN};
	struct ahead a = {0};
	double t = first;

	while (t < seconds) {
		enum ahead_verdict v = ahead_take(
			&a, (uint64_t)(t * 1e6) + 1, (int64_t)s->bytes(s, t), (int64_t)max);
		double next = t + (v == AHEAD_CALM ? ordinary : 1.003);

		o.readings++;
		if (v == AHEAD_WARN) {
			o.announcements++;
			if (o.announcements == 1)
				o.announced = t;
		}
		for (; t < next; t += 0.01)
			if (s->bytes(s, t) >= max) {
				o.killed = t;
				return o;
			}
	}
	return o;
}

static void leaks_are_announced_in_time(void **state)
{
	static const double limits[] = {12, 16, 24, 32, 48, 64, 96, 128, 200, 256, 512, 2048};
	static const double rates[] = {0.3, 0.7, 1, 1.5, 2};
	static const double ordinary[] = {1, 10};
	unsigned int cases = 0;

	for (size_t l = 0; l < ARRAY_SIZE(limits); l++)
		for (size_t k = 0; k < ARRAY_SIZE(rates); k++)
			for (size_t o = 0; o < ARRAY_SIZE(ordinary); o++)
				for (double first = 0; first < 10; first += 0.7) {
					struct shape s = {
						leak, limits[l] * MIB * 0.49, rates[k] * MIB, 20};
					struct outcome r =
						run(&s, limits[l] * MIB, 1e5, ordinary[o], first);

					cases++;
					if (isnan(r.announced) ||
						r.killed - r.announced <
							(limits[l] >= 128 ? 10 : 0))
						print_error("limit %g MiB, %g MiB/s, every %g s "
							    "from %g: "
							    "announced %g, killed %g\n",
							limits[l], rates[k], ordinary[o], first,
							r.announced, r.killed);
					assert_true(!isnan(r.killed));
					assert_true(!isnan(r.announced));
					assert_int_equal(r.announcements, 1);
					assert_true(r.killed - r.announced >=
						    (limits[l] >= 128 ? 10 : 0));
				}
	assert_true(cases > 1000);
}

static void a_leak_in_lumps_is_seen(void **state)
{
	static const double every[] = {0.2, 1, 2, 3};

	for (size_t i = 0; i < ARRAY_SIZE(every); i++) {
		struct shape s = {leak_in_lumps, 40 * MIB, 1 * MIB, every[i]};
		struct outcome r = run(&s, 128 * MIB, 1000, 10, 0.4);

		assert_true(!isnan(r.announced));
		assert_true(r.killed - r.announced >= 5);
	}
}

static void what_stays_below_the_limit_is_not_announced(void **state)
{
	static const struct {
		const char *what;
		struct shape s;
	} t[] = {
		{"flat at 30 %", {leak, 0.3 * 128 * MIB, 0, 0}},
		{"flat at 90 %", {leak, 0.9 * 128 * MIB, 0, 0}},
		{"flat at 99.9 %", {leak, 0.999 * 128 * MIB, 0, 0}},
		{"noise of 2 % at 90 %", {noisy, 0.9 * 128 * MIB, 0.02 * 128 * MIB, 0}},
		{"noise of 10 % at 90 %", {noisy, 0.9 * 128 * MIB, 0.1 * 128 * MIB, 0}},
		{"step from 20 % to 75 %", {step, 0.2 * 128 * MIB, 0.75 * 128 * MIB, 37}},
		{"step from 65 % to 95 %", {step, 0.65 * 128 * MIB, 0.95 * 128 * MIB, 37}},
		{"two seconds from 20 % to 80 %",
			{quick_ramp_then_flat, 0.2 * 128 * MIB, 0.8 * 128 * MIB, 33}},
		{"two seconds from 30 % to 80 %, after a while",
			{quick_ramp_then_flat, 0.3 * 128 * MIB, 0.8 * 128 * MIB, 133}},
		{"collector between 55 % and 58 %",
			{sawtooth, 0.55 * 128 * MIB, 0.58 * 128 * MIB, 20}},
	};

	for (size_t i = 0; i < 3 * ARRAY_SIZE(t); i++)
		for (double first = 0; first < 3; first += 0.31) {
			struct shape s = t[i / 3].s;
			double times = i % 3 == 0 ? 1 : i % 3 == 1 ? 16 : 0.25;
			struct outcome r;

			/* In a small limit, two seconds are all the time there is. */
			if (s.bytes == quick_ramp_then_flat && times < 1)
				continue;
			s.a *= times;
			s.b *= times;
			r = run(&s, times * 128 * MIB, 600, 10, first);

			if (r.announcements > 0)
				print_error("%s, limit %g MiB: announced after %g s\n",
					t[i / 3].what, times * 128, r.announced);
			assert_true(isnan(r.killed) != 0);
			assert_int_equal(r.announcements, 0);
		}
}

static void a_collector_is_taken_for_a_leak_at_most_once(void **state)
{
	struct shape s = {sawtooth, 0.55 * 128 * MIB, 0.9 * 128 * MIB, 20};

	for (double first = 0; first < 20; first += 1.3)
		assert_true(run(&s, 128 * MIB, 600, 10, first).announcements <= 1);
}

static void without_a_limit_there_is_nothing_to_reach(void **state)
{
	struct ahead a = {0};

	for (uint64_t t = 1; t < 100; t++)
		assert_int_equal(ahead_take(&a, t * SECOND, (int64_t)t << 24, 0), AHEAD_CALM);
}

static void a_raised_limit_is_watched_anew(void **state)
{
	struct ahead a = {0};
	double bytes = 10 * MIB, limit = 128 * MIB;
	int warnings = 0;

	for (uint64_t t = 1; t < 200; t++, bytes += 2 * MIB) {
		assert_true(bytes < limit);
		if (ahead_take(&a, t * SECOND, (int64_t)bytes, (int64_t)limit) != AHEAD_WARN)
			continue;
		warnings++;
		limit = limit * 1.25 + 16 * MIB;
	}
	assert_true(warnings >= 3);
}

static void a_ramp_may_warn_but_only_once(void **state)
{
	struct ahead a = {0};
	int warnings = 0;

	for (uint64_t t = 1; t < 3000; t++)
		warnings += ahead_take(&a, t * SECOND, (int64_t)(fmin(20 + (double)t, 90) * MIB),
				    (int64_t)(128 * MIB)) == AHEAD_WARN;
	assert_true(warnings <= 1);
}

static void it_watches_from_60_percent_until_below_50(void **state)
{
	static const struct {
		double share;
		bool watching;
	} t[] = {{0.55, false}, {0.61, true}, {0.55, true}, {0.51, true}, {0.49, false},
		{0.59, false}, {0.601, true}};
	struct ahead a = {0};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(ahead_take(&a, (i + 1) * 10 * SECOND,
					 (int64_t)(t[i].share * 1000 * MIB), (int64_t)(1000 * MIB)),
			t[i].watching ? AHEAD_WATCH : AHEAD_CALM);
}

static void a_small_limit_is_watched_earlier(void **state)
{
	struct ahead a = {0};

	assert_int_equal(
		ahead_take(&a, 1 * SECOND, (int64_t)(3 * MIB), (int64_t)(32 * MIB)), AHEAD_CALM);
	assert_int_equal(
		ahead_take(&a, 2 * SECOND, (int64_t)(12 * MIB), (int64_t)(32 * MIB)), AHEAD_WATCH);
}

static void time_that_stands_still_changes_nothing(void **state)
{
	struct ahead a = {0};

	for (int i = 0; i < 50; i++)
		assert_int_equal(ahead_take(&a, SECOND, 70 + i, 130), AHEAD_WATCH);
	assert_true(ahead_slope(&a) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaks_are_announced_in_time),
		cmocka_unit_test(a_leak_in_lumps_is_seen),
		cmocka_unit_test(what_stays_below_the_limit_is_not_announced),
		cmocka_unit_test(a_collector_is_taken_for_a_leak_at_most_once),
		cmocka_unit_test(without_a_limit_there_is_nothing_to_reach),
		cmocka_unit_test(a_raised_limit_is_watched_anew),
		cmocka_unit_test(a_ramp_may_warn_but_only_once),
		cmocka_unit_test(it_watches_from_60_percent_until_below_50),
		cmocka_unit_test(a_small_limit_is_watched_earlier),
		cmocka_unit_test(time_that_stands_still_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
