/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoint where there is much to tell, where it changes while it is told, and where memory is
 * short. */
#include "helper_alloc.h"
#include "helper_view.h"
#include "unit.h"

static struct fixture f;

static void many_workloads(struct fixture *x, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "ds-%04u", i);
		(void)fixture_workload(x, "default", name, "main");
	}
}

static void a_thousand_workloads_come_in_small_pieces(void **state)
{
	static const char *const paths[] = {"/v1/recommendations", "/", "/metrics"};

	fixture_init(&f);
	many_workloads(&f, 1000);
	for (unsigned int i = 0; i < ARRAY_SIZE(paths); i++) {
		struct reply r = fixture_get(&f, paths[i], "", NULL);

		assert_int_equal(r.error, 0);
		assert_true(r.longest_piece < 16384);
		if (i < 2)
			assert_int_equal(
				count(&r.body, i ? "<tr><td>default/ds-" : "\"daemonset\":\"ds-"),
				1000);
		if (i == 0)
			assert_json(&r.body);
		buf_finish(&r.body);
	}
	fixture_finish(&f);
}

/* Each time the first workload goes, which may be the one just shown, and one comes that sorts
 * last. */
static void change_table(struct fixture *x)
{
	static unsigned int n;
	char name[32];

	if (x->workloads.n > 2)
		workloads_remove(&x->workloads, x->workloads.first);
	(void)snprintf(name, sizeof(name), "zz-%05u", n++);
	if (n % 4 == 0 && n < 400)
		(void)fixture_workload(x, "zz", name, "main");
}

static void a_table_that_changes_between_pieces_does_no_harm(void **state)
{
	static const char *const paths[] = {
		"/v1/recommendations", "/", "/metrics", "/v1/containers"};

	for (unsigned int i = 0; i < ARRAY_SIZE(paths); i++) {
		struct reply r;

		fixture_init(&f);
		fixture_fill(&f);
		many_workloads(&f, 200);
		r = fixture_get(&f, paths[i], "", change_table);
		assert_int_equal(r.error, 0);
		if (i == 0 || i == 3)
			assert_json(&r.body);
		if (i ==
			0) /* those that were not removed ahead of the reader are all there, once */
			assert_int_equal(count(&r.body, "\"daemonset\":\"ds-0199\""), 1);
		buf_finish(&r.body);
		fixture_finish(&f);
	}
}

static void no_memory_is_an_error_and_no_leak(void **state)
{
	static const char *const paths[] = {"/", "/metrics", "/readyz?verbose",
		"/v1/recommendations", "/v1/containers", "/v1/histogram/default/shipper/main",
		"/v1/explain/default/shipper/main", "/v1/history/default/shipper/main?window=1h",
		"/v1/events", "/v1/config"};

	fixture_init(&f);
	fixture_fill(&f);
	for (unsigned int i = 0; i < ARRAY_SIZE(paths); i++) {
		unsigned int good = 0;

		ALLOC_FAIL_EACH
		{
			struct reply r = fixture_get(&f, paths[i], "", NULL);

			good += r.error == 0;
			assert_true(r.error == 0 || r.error == -ENOMEM);
			buf_finish(&r.body);
		}
		assert_true(good >= 1);
	}
	fixture_finish(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thousand_workloads_come_in_small_pieces),
		cmocka_unit_test(a_table_that_changes_between_pieces_does_no_harm),
		cmocka_unit_test(no_memory_is_an_error_and_no_leak),
	};

	return cmocka_run_group_tests_name("bounds_members", tests, NULL, NULL);
}
