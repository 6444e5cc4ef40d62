/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "base/num.h"
#include "rules/exp2.h"
#include "rules/histogram.h"
#include "rules/instant.h"
#include "test/unit/unit.h"

#define T0 (INT64_C(1234567890) * INSTANT_SECOND)

static struct buckets vpa_cpu, vpa_memory, fine_cpu, fine_memory;

static int set_up(void **state)
{
	buckets_init(&vpa_cpu, BUCKETS_VPA, RESOURCE_CPU);
	buckets_init(&vpa_memory, BUCKETS_VPA, RESOURCE_MEMORY);
	buckets_init(&fine_cpu, BUCKETS_FINE, RESOURCE_CPU);
	buckets_init(&fine_memory, BUCKETS_FINE, RESOURCE_MEMORY);
	return 0;
}

static int64_t field(struct str *line)
{
	int64_t v;

	assert_int_equal(parse_i64(str_trim(str_cut(line, ',')), &v), 0);
	return v;
}

static void vpa_buckets_equal_the_table(void **state)
{
	_cleanup_fclose_ FILE *f = fopen(TEST_DATA "/buckets_vpa.csv", "re");
	char text[256];
	unsigned int rows = 0;

	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	while (fgets(text, sizeof(text), f)) {
		struct str line = str_of(text);

		assert_int_equal(field(&line), rows);
		assert_int_equal((int64_t)vpa_cpu.from[rows], field(&line));
		assert_int_equal(vpa_cpu.answer[rows], field(&line));
		assert_int_equal((int64_t)vpa_memory.from[rows], field(&line));
		assert_int_equal(vpa_memory.answer[rows], field(&line));
		rows++;
	}
	assert_int_equal(rows, 176);
	assert_int_equal(vpa_cpu.n, 176);
	assert_int_equal(vpa_memory.n, 176);
}

static unsigned int find_slowly(const struct buckets *b, double usage)
{
	unsigned int i = 0;

	while (i + 1U < b->n && usage >= b->from[i + 1])
		i++;
	return i;
}

static void look_up_agrees_with_a_plain_search(void **state)
{
	const struct buckets *all[] = {&vpa_cpu, &vpa_memory, &fine_cpu, &fine_memory};

	for (size_t k = 0; k < ARRAY_SIZE(all); k++) {
		const struct buckets *b = all[k];

		for (unsigned int i = 0; i < b->n; i++) {
			double edges[] = {b->from[i], nextafter(b->from[i], 0),
				nextafter(b->from[i], INFINITY), b->from[i] * 1.01};

			for (size_t j = 0; j < ARRAY_SIZE(edges); j++)
				assert_int_equal(
					buckets_find(b, edges[j]), find_slowly(b, edges[j]));
		}
		for (double v = 0.01; v < 1e15; v *= 1.0037)
			assert_int_equal(buckets_find(b, v), find_slowly(b, v));
		assert_int_equal(buckets_find(b, 0), 0);
		assert_int_equal(buckets_find(b, -5), 0);
		assert_int_equal(buckets_find(b, NAN), 0);
		assert_int_equal(buckets_find(b, INFINITY), b->n - 1);
	}
}

static void fine_buckets_tell_small_daemons_apart(void **state)
{
	assert_int_equal(fine_cpu.answer[0], 1);
	assert_int_equal(fine_memory.answer[0], 1 << 20);
	assert_true(buckets_find(&fine_cpu, 3) != buckets_find(&fine_cpu, 5));
	assert_true(buckets_find(&fine_memory, 20 << 20) != buckets_find(&fine_memory, 22 << 20));
	assert_true(fine_cpu.n <= BUCKETS_MAX && fine_memory.n <= BUCKETS_MAX);
	for (unsigned int i = 0; i + 1U < fine_cpu.n; i++)
		assert_true((double)fine_cpu.answer[i] >= fine_cpu.from[i + 1]);
}

static void exp2_has_known_bits(void **state)
{
	static const struct {
		double x, y;
	} t[] = {
		{0, 1},
		{1, 2},
		{-1, 0.5},
		{10, 1024},
		{0.5, 0x1.6a09e667f3bccp+0}, /* the C library: …bcdp+0 */
		{-0.25, 0x1.ae89f995ad3aep-1},
		{1.0 / 1440, 0x1.001f8db1a5615p+0},
		{0.3, 0x1.3b2c47bff8329p+0},
		{-7.77, 0x1.2c3ee9468e86ap-8},
		{1023, 0x1p1023},
		{-1022, 0x1p-1022},
		{-1074, 0x1p-1074},
		{-1075, 0},
		{1024, INFINITY},
		{INFINITY, INFINITY},
		{-INFINITY, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		double y = exp2_reference(t[i].x);

		if (y != t[i].y)
			print_error("exp2(%a) = %a, expected %a\n", t[i].x, y, t[i].y);
		assert_true(y == t[i].y);
	}
	assert_true(isnan(exp2_reference(NAN)));
}

static void instants_round_from_year_one(void **state)
{
	int64_t noon = INT64_C(1767225600) * INSTANT_SECOND + 12 * INSTANT_HOUR;

	assert_int_equal(instant_round(noon, INSTANT_DAY), noon + 12 * INSTANT_HOUR);
	assert_int_equal(instant_round(noon - 1, INSTANT_DAY), noon - 12 * INSTANT_HOUR);
	/* 1970-01-01 is a Thursday, 0001-01-01 a Monday: weeks begin on Mondays. */
	assert_int_equal(instant_round(0, 7 * INSTANT_DAY), -3 * INSTANT_DAY);
	assert_int_equal(instant_round(-1, INSTANT_DAY), 0);
	assert_true(instant_round(TIME_NONE, INSTANT_DAY) == TIME_NONE);
	assert_true(instant_round(INT64_MAX, INSTANT_DAY) <= INT64_MAX);
}

static void empty_answers_nothing(void **state)
{
	struct histogram h;

	histogram_init(&h, &vpa_cpu, INSTANT_HOUR);
	assert_true(histogram_empty(&h));
	for (double p = -0.5; p <= 1.5; p += 0.5)
		assert_int_equal(histogram_percentile(&h, p), 0);
}

static void percentile_is_the_upper_edge(void **state)
{
	static const struct {
		double p;
		int64_t answer;
	} t[] = {{-0.1, 20}, {0, 20}, {0.1, 20}, {0.2, 31}, {0.3, 31}, {0.4, 43}, {0.6, 43},
		{0.7, 55}, {0.9, 55}, {1.0, 55}, {1.1, 55}};
	struct histogram h;

	histogram_init(&h, &vpa_cpu, INSTANT_HOUR);
	histogram_add(&h, 10, 1, T0);
	histogram_add(&h, 21, 2, T0);
	histogram_add(&h, 32, 3, T0);
	histogram_add(&h, 44, 4, T0);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(histogram_percentile(&h, t[i].p), t[i].answer);
	histogram_add(&h, 1e9, 100, T0);
	assert_int_equal(histogram_percentile(&h, 1.0), 1021109);
}

static void older_samples_fade(void **state)
{
	struct histogram h;

	histogram_init(&h, &vpa_cpu, INSTANT_HOUR);
	histogram_add(&h, 20, 1000, T0);
	histogram_add(&h, 10, 1, T0 + 20 * INSTANT_HOUR);
	assert_int_equal(histogram_percentile(&h, 0.999), 20);
	assert_int_equal(histogram_percentile(&h, 1.0), 20);
	histogram_init(&h, &vpa_cpu, INSTANT_HOUR);
	histogram_add(&h, 21, 1000, T0);
	histogram_add(&h, 10, 1, T0 + 20 * INSTANT_HOUR);
	assert_int_equal(histogram_percentile(&h, 0.999), 20);
	assert_int_equal(histogram_percentile(&h, 1.0), 31);
	/* Past a hundred half-lives the reference moves and what is left of the old sample is
	 * nothing. */
	histogram_init(&h, &vpa_cpu, INSTANT_HOUR);
	histogram_add(&h, 21, 1, T0);
	histogram_add(&h, 10, 1, T0 + 101 * INSTANT_HOUR);
	assert_int_equal(histogram_percentile(&h, 1.0), 20);
	assert_true(h.reference > T0 + 100 * INSTANT_HOUR);
}

static void below_epsilon_is_empty(void **state)
{
	double e = HISTOGRAM_EPSILON;
	struct histogram h;

	histogram_init(&h, &vpa_cpu, INSTANT_DAY);
	h.reference = T0; /* so that weights are as they stand */
	histogram_add(&h, 10, 2.5 * e, T0);
	assert_false(histogram_empty(&h));
	histogram_subtract(&h, 10, e, T0);
	assert_false(histogram_empty(&h));
	histogram_subtract(&h, 10, e, T0);
	assert_true(histogram_empty(&h));
	assert_true(h.total == 0);
}

static void merge_is_adding_all(void **state)
{
	struct histogram a, b, all;

	histogram_init(&a, &fine_memory, INSTANT_HOUR);
	histogram_init(&b, &fine_memory, INSTANT_HOUR);
	histogram_init(&all, &fine_memory, INSTANT_HOUR);
	for (int i = 0; i < 200; i++) {
		double usage = 1e6 * (1 + i * 7 % 50);
		int64_t t = T0 + i * 24 * INSTANT_MINUTE;

		histogram_add(i % 3 ? &a : &b, usage, 1, t);
		histogram_add(&all, usage, 1, t);
	}
	assert_int_equal(histogram_merge(&a, &b), 0);
	assert_int_equal(a.reference, all.reference);
	for (double p = 0; p <= 1; p += 0.05)
		assert_int_equal(histogram_percentile(&a, p), histogram_percentile(&all, p));
	histogram_init(&b, &fine_memory, INSTANT_DAY);
	assert_int_equal(histogram_merge(&a, &b), -EINVAL);
	histogram_init(&b, &fine_cpu, INSTANT_HOUR);
	assert_int_equal(histogram_merge(&a, &b), -EINVAL);
}

static void quantised_weights_are_relative_to_the_heaviest(void **state)
{
	struct histogram_quantised q;
	struct histogram h;

	histogram_init(&h, &vpa_cpu, INSTANT_HOUR);
	histogram_quantise(&h, &q);
	assert_true(q.total == 0 && q.reference == TIME_NONE);
	h.reference = T0;
	histogram_add(&h, 0, 1, T0);
	histogram_add(&h, 10, 10000, T0);
	histogram_add(&h, 21, 50, T0);
	histogram_add(&h, 32, 0.4, T0);
	histogram_quantise(&h, &q);
	assert_true(q.total == 10051.4);
	assert_int_equal(q.weight[0], 1);
	assert_int_equal(q.weight[1], 10000);
	assert_int_equal(q.weight[2], 50);
	assert_int_equal(q.weight[3], 0);
}

static void loading_checks_before_it_changes(void **state)
{
	struct histogram_quantised q = {.reference = T0 + 12345, .total = 6, .weight = {1, 2}};
	struct histogram h;
	struct err e;

	histogram_init(&h, &vpa_cpu, INSTANT_HOUR);
	q.weight[200] = 1;
	assert_int_equal(histogram_unquantise(&h, &q, &e), -EINVAL);
	assert_non_null(strstr(e.text, "bucket 200"));
	q.weight[200] = 0;
	q.total = -1;
	assert_int_equal(histogram_unquantise(&h, &q, &e), -EINVAL);
	q.total = NAN;
	assert_int_equal(histogram_unquantise(&h, &q, &e), -EINVAL);
	assert_true(histogram_empty(&h) && h.reference == TIME_NONE);
	q.total = 6;
	assert_int_equal(histogram_unquantise(&h, &q, &e), 0);
	assert_true(h.weight[0] == 2 && h.weight[1] == 4 && h.total == 6);
	assert_int_equal(h.reference, T0 + 12345);
}

static void a_loaded_boundary_below_epsilon_is_not_empty(void **state)
{
	struct histogram_quantised q = {.reference = T0, .total = 1, .weight = {1, 10000, 1}};
	struct histogram h;

	histogram_init(&h, &vpa_cpu, INSTANT_HOUR);
	q.total = 0.9;
	assert_int_equal(histogram_unquantise(&h, &q, NULL), 0);
	assert_false(histogram_empty(&h));
	assert_int_equal(h.min, 1);
	assert_int_equal(h.max, 1);
}

static void converting_keeps_percentiles_within_a_bucket(void **state)
{
	struct histogram from, to;

	histogram_init(&from, &vpa_memory, INSTANT_DAY);
	histogram_init(&to, &fine_memory, 2 * INSTANT_DAY);
	for (int i = 0; i < 300; i++)
		histogram_add(&from, 3e7 + 1e6 * (i * 37 % 300), 1, T0 + i * INSTANT_HOUR);
	histogram_convert(&to, &from, T0 + 300 * INSTANT_HOUR);
	for (double p = 0.05; p <= 1; p += 0.05) {
		double a = (double)histogram_percentile(&from, p);
		double b = (double)histogram_percentile(&to, p);

		assert_true(b >= a * 0.999 && b <= a * 1.06);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vpa_buckets_equal_the_table),
		cmocka_unit_test(look_up_agrees_with_a_plain_search),
		cmocka_unit_test(fine_buckets_tell_small_daemons_apart),
		cmocka_unit_test(exp2_has_known_bits),
		cmocka_unit_test(instants_round_from_year_one),
		cmocka_unit_test(empty_answers_nothing),
		cmocka_unit_test(percentile_is_the_upper_edge),
		cmocka_unit_test(older_samples_fade),
		cmocka_unit_test(below_epsilon_is_empty),
		cmocka_unit_test(merge_is_adding_all),
		cmocka_unit_test(quantised_weights_are_relative_to_the_heaviest),
		cmocka_unit_test(loading_checks_before_it_changes),
		cmocka_unit_test(a_loaded_boundary_below_epsilon_is_not_empty),
		cmocka_unit_test(converting_keeps_percentiles_within_a_bucket),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
