/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/macros.h"
#include "rules/instant.h"
#include "rules/levels.h"
#include "rules/steps.h"
#include "rules/whatif.h"
#include "test/unit/helper_alloc.h"
#include "test/unit/unit.h"

#define T0 (INT64_C(1767225600) * INSTANT_SECOND)
#define MIB 1048576.0
#define GIB (1024 * MIB)

static struct knobs fine;
static struct model model;

static int set_up(void **state)
{
	knobs_defaults(&fine, PROFILE_FINE);
	model_init(&model, &fine);
	return 0;
}

struct run {
	struct whatif *w;
	struct whatif_series *s;
	struct usage_history u;
};

static void begin(struct run *r, const struct amounts *request, const char *name)
{
	static const struct amounts none;

	assert_int_equal(whatif_create(&fine, request ? request : &none, &r->w), 0);
	assert_int_equal(whatif_series_add(r->w, str_of(name), &r->s), 0);
	usage_init(&r->u, &model);
}

static void row(struct run *r, int64_t t, double cpu, double memory)
{
	whatif_advance(r->s, &r->u, t);
	if (!isnan(cpu))
		(void)usage_add_cpu(&r->u, t, cpu, 1);
	if (!isnan(memory))
		(void)usage_add_memory(&r->u, t, (int64_t)memory);
	whatif_row(r->s, &r->u, t, cpu, memory, false);
}

static void oom(struct run *r, int64_t t, double memory)
{
	whatif_advance(r->s, &r->u, t);
	assert_int_equal(usage_record_oom(&r->u, &fine, t, (int64_t)memory), 0);
	whatif_row(r->s, &r->u, t, NAN, memory, true);
}

static void end(struct run *r, struct whatif_report *report)
{
	whatif_end(r->s);
	whatif_report(r->w, r->s, report);
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-6 * (1 + fabs(b));
}

static void a_given_request_is_what_is_counted(void **state)
{
	const struct amounts request = {{1000, (int64_t)GIB}, {true, true}};
	struct whatif_report report;
	struct run r;

	/* One hour with half of it above. */
	begin(&r, &request, "a@n");
	for (int i = 0; i < 60; i++)
		row(&r, T0 + i * INSTANT_MINUTE, i < 30 ? 1500 : 500, i < 15 ? 2 * GIB : GIB / 2);
	end(&r, &report);
	assert_true(near(report.used.cpu_core_hours, 1));
	assert_true(near(report.used.memory_gib_hours, 0.25 * 2 + 0.75 * 0.5));
	assert_true(near(report.fixed.cpu_core_hours, 1));
	assert_true(near(report.fixed.memory_gib_hours, 1));
	assert_true(near(report.fixed.cpu_shortage_minutes, 30));
	assert_true(near(report.fixed.memory_shortage_minutes, 15));
	assert_int_equal(report.fixed_request.value[RESOURCE_CPU], 1000);
	assert_int_equal(report.fixed.resizes, 0);
	assert_true(report.pernode.cpu_shortage_minutes < 30);
	whatif_destroy(r.w);
}

static void a_row_stands_for_five_median_steps_at_most(void **state)
{
	static const struct {
		int gap_after; /* row */
		double minutes;
	} t[] = {{2, 20 + 4}, {0, 20 + 4}, {18, 20 + 4}, {-1, 20}};
	const struct amounts request = {{1, 1}, {true, true}};

	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		struct whatif_report report;
		int64_t at = T0 + 7 * INSTANT_SECOND;
		struct run r;

		begin(&r, &request, "a");
		for (int i = 0; i < 20; i++) {
			row(&r, at, 1000, GIB);
			at += i == t[k].gap_after ? 10 * INSTANT_DAY : INSTANT_MINUTE;
		}
		end(&r, &report);
		assert_true(near(report.used.cpu_core_hours * 60, t[k].minutes));
		assert_true(near(report.used.memory_gib_hours * 60, t[k].minutes));
		assert_true(near(report.fixed.cpu_shortage_minutes, t[k].minutes));
		whatif_destroy(r.w);
	}
}

/* One row with a wrong date among good ones: neither hours of its usage nor a look a minute for
 * years. */
static void a_gap_of_years_counts_a_day(void **state)
{
	const struct amounts request = {{100, (int64_t)GIB}, {true, true}};
	struct whatif_report report;
	struct run r;

	begin(&r, &request, "a");
	row(&r, 400 * INSTANT_DAY, 1000, GIB);
	row(&r, 4000 * INSTANT_DAY, 1000, GIB);
	row(&r, 4000 * INSTANT_DAY + INSTANT_MINUTE, NAN, GIB);
	end(&r, &report);
	assert_true(report.used.cpu_core_hours <= 48);
	assert_true(report.used.memory_gib_hours <= 49);
	assert_true(report.pernode.node_writes < 100);
	whatif_destroy(r.w);
}

static void it_is_the_same_when_it_is_long(void **state)
{
	struct whatif_report report;
	struct run r;

	begin(&r, NULL, "a");
	for (int i = 0; i < 5000; i++)
		row(&r, T0 + i * 15 * INSTANT_MINUTE + (i >= 3000 ? INSTANT_DAY : 0), 100,
			50 * MIB);
	end(&r, &report);
	/* Nothing is counted before the first recommendation, at the second row. */
	assert_true(near(report.used.cpu_core_hours * 10, 4999 * 0.25 + 1.0));
	assert_true(report.pernode.node_writes >= 1 && report.pernode.node_writes < 30);
	whatif_destroy(r.w);
}

static void growth_is_followed_and_shrinking_is_slow(void **state)
{
	struct whatif_report report;
	struct run r;

	begin(&r, NULL, "a");
	for (int i = 0; i < 7 * 1440; i++)
		row(&r, T0 + i * INSTANT_MINUTE, i < 1440 ? 50 : i < 2 * 1440 ? 400 : 50, 60 * MIB);
	end(&r, &report);
	assert_true(report.pernode.resizes >= 2);
	/* Short while it learns that the load has risen, which takes a tenth of a day's weight. */
	assert_true(report.pernode.cpu_shortage_minutes > 0);
	assert_true(report.pernode.cpu_shortage_minutes < 400);
	assert_true(report.pernode.cpu_core_hours > report.used.cpu_core_hours);
	assert_true(report.pernode.memory_shortage_minutes == 0);
	whatif_destroy(r.w);
}

static void an_oom_is_answered_at_once(void **state)
{
	const struct amounts request = {{100, (int64_t)(64 * MIB)}, {true, true}};
	struct whatif_report report;
	struct run r;

	begin(&r, &request, "a");
	for (int i = 0; i < 30; i++)
		row(&r, T0 + i * INSTANT_MINUTE, 50, 50 * MIB);
	oom(&r, T0 + 30 * INSTANT_MINUTE, 64 * MIB);
	for (int i = 31; i < 60; i++)
		row(&r, T0 + i * INSTANT_MINUTE, 50, 75 * MIB);
	end(&r, &report);
	assert_true(report.pernode.memory_shortage_minutes == 0);
	assert_true(near(report.fixed.memory_shortage_minutes, 29));
	assert_true(report.pernode.resizes >= 1);
	whatif_destroy(r.w);
}

static void one_fixed_request_serves_all_of_a_name(void **state)
{
	static const double usage[] = {20, 40, 400};
	static const struct amounts none;
	struct whatif_series *s[3];
	struct usage_history u[3];
	struct whatif_report report, all;
	double used = 0, fixed_short = 0, pernode_short = 0, fixed_hours = 0;
	struct whatif *w;

	assert_int_equal(whatif_create(&fine, &none, &w), 0);
	assert_int_equal(whatif_series_add(w, STR("a@1"), &s[0]), 0);
	assert_int_equal(whatif_series_add(w, STR("a@2"), &s[1]), 0);
	assert_int_equal(whatif_series_add(w, STR("a@3"), &s[2]), 0);
	for (size_t k = 0; k < 3; k++) {
		struct run r = {.w = w, .s = s[k]};

		usage_init(&r.u, &model);
		for (int i = 0; i < 2880; i++)
			row(&r, T0 + i * INSTANT_MINUTE, usage[k], 30 * MIB);
		whatif_end(s[k]);
		u[k] = r.u;
	}
	for (size_t k = 0; k < 3; k++) {
		whatif_report(w, s[k], &report);
		assert_true(report.fixed_request.known[RESOURCE_CPU]);
		assert_in_range(report.fixed_request.value[RESOURCE_CPU], 400, 408);
		used += report.used.cpu_core_hours;
		fixed_short += report.fixed.cpu_shortage_minutes;
		pernode_short += report.pernode.cpu_shortage_minutes;
		fixed_hours += report.fixed.cpu_core_hours;
	}
	assert_true(fixed_short <= pernode_short + 1e-2);
	whatif_report_all(w, &all);
	assert_true(near(all.used.cpu_core_hours, used));
	assert_true(near(all.fixed.cpu_core_hours, fixed_hours));
	/* The reason for all this. */
	assert_true(all.pernode.cpu_core_hours < 0.6 * all.fixed.cpu_core_hours);
	assert_false(all.fixed_request.known[RESOURCE_CPU]);
	(void)u;
	whatif_destroy(w);
}

static void memory_alone_is_enough(void **state)
{
	struct whatif_report report;
	struct run r;

	begin(&r, NULL, "a");
	for (int i = 0; i < 600; i++)
		row(&r, T0 + i * INSTANT_MINUTE, NAN, 100 * MIB);
	end(&r, &report);
	assert_true(report.pernode.memory_gib_hours > report.used.memory_gib_hours);
	assert_true(report.used.cpu_core_hours == 0 && !report.fixed_request.known[RESOURCE_CPU]);
	assert_in_range(report.fixed_request.value[RESOURCE_MEMORY], (int64_t)(100 * MIB),
		(int64_t)(102 * MIB));
	whatif_destroy(r.w);
}

static void nothing_and_one_row_count_nothing(void **state)
{
	struct whatif_report report;
	struct run r;

	begin(&r, NULL, "a");
	end(&r, &report);
	assert_true(report.used.cpu_core_hours == 0);
	whatif_destroy(r.w);
	begin(&r, NULL, "a");
	row(&r, T0, 100, 100 * MIB);
	end(&r, &report);
	assert_true(report.used.cpu_core_hours == 0);
	whatif_destroy(r.w);
	whatif_destroy(NULL);
}

static void times_may_repeat_and_go_back(void **state)
{
	const struct amounts request = {{100, (int64_t)GIB}, {true, true}};
	struct whatif_report report;
	struct run r;

	begin(&r, &request, "a");
	for (int i = 0; i < 100; i++) {
		row(&r, T0 + i * INSTANT_MINUTE, 50, 50 * MIB);
		row(&r, T0 + i * INSTANT_MINUTE, 50, 50 * MIB);
		row(&r, T0 + (i - 5) * INSTANT_MINUTE, 50, 50 * MIB);
	}
	end(&r, &report);
	assert_true(near(report.used.cpu_core_hours, 0.05 * 100 / 60));
	whatif_destroy(r.w);
}

static void short_of_memory(void **state)
{
	ALLOC_FAIL_EACH
	{
		static const struct amounts none;
		struct whatif_series *s;
		struct whatif *w = NULL;

		if (whatif_create(&fine, &none, &w) == 0) {
			int r = whatif_series_add(w, STR("a@b"), &s);

			assert_true(r == 0 || r == -ENOMEM);
			r = whatif_series_add(w, STR("a@c"), &s);
			assert_true(r == 0 || r == -ENOMEM);
		}
		whatif_destroy(w);
	}
}

static void the_median_of_steps(void **state)
{
	struct steps s = {0};

	assert_int_equal(steps_median(&s), 0);
	for (int i = 0; i < 10; i++)
		steps_add(&s, 60);
	for (int i = 0; i < 5; i++)
		steps_add(&s, 100000 + i);
	assert_int_equal(steps_median(&s), 60);
	for (int i = 0; i < 3000; i++)
		steps_add(&s, 1000 + i % 100);
	assert_true(s.n <= STEPS_MAX);
	assert_in_range(steps_median(&s), 1000, 1100);
}

static void levels_cover_what_is_in_them(void **state)
{
	static const double usage[] = {0, 0.5, 1, 17, 1000, 123456, 1e9, 1e13, 1e14};
	struct levels l;

	for (int r = 0; r < RESOURCES; r++)
		for (size_t i = 0; i < ARRAY_SIZE(usage); i++) {
			unsigned int k = 0;

			levels_init(&l, (enum resource)r);
			levels_add(&l, usage[i], 1);
			while (!(l.minutes[k] > 0))
				k++;
			assert_true((double)levels_covering(&l, k) >= usage[i]);
			assert_true((double)levels_covering(&l, k) <= usage[i] + 1);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_given_request_is_what_is_counted),
		cmocka_unit_test(a_row_stands_for_five_median_steps_at_most),
		cmocka_unit_test(a_gap_of_years_counts_a_day),
		cmocka_unit_test(it_is_the_same_when_it_is_long),
		cmocka_unit_test(growth_is_followed_and_shrinking_is_slow),
		cmocka_unit_test(an_oom_is_answered_at_once),
		cmocka_unit_test(one_fixed_request_serves_all_of_a_name),
		cmocka_unit_test(memory_alone_is_enough),
		cmocka_unit_test(nothing_and_one_row_count_nothing),
		cmocka_unit_test(times_may_repeat_and_go_back),
		cmocka_unit_test(short_of_memory),
		cmocka_unit_test(the_median_of_steps),
		cmocka_unit_test(levels_cover_what_is_in_them),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
