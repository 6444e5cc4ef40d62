/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macros.h"
#include "rules/oomclass.h"

static void each_row_of_the_truth_table(void **state)
{
	static const struct {
		const char *what;
		struct oom_evidence e;
		enum oom_class class;
	} rows[] = {
		{"container limit", {.container_oom = true, .pod_oom = true}, OOM_LIMIT},
		{"pod limit", {.pod_oom = true, .pod_local_oom = true}, OOM_POD},
		{"all pods", {.node_local_oom = true}, OOM_NODE_ALLOCATABLE},
		{"machine", {0}, OOM_GLOBAL},
		{"container limit, container gone", {.pod_oom = true, .container_vanished = true},
			OOM_LIMIT},
		{"pod limit, container gone",
			{.pod_oom = true, .pod_local_oom = true, .container_vanished = true},
			OOM_POD},
		{"all pods, container gone", {.node_local_oom = true, .container_vanished = true},
			OOM_NODE_ALLOCATABLE},
		{"machine, container gone", {.container_vanished = true}, OOM_GLOBAL},
		{"a sibling's limit at the same time", {.pod_oom = true}, OOM_GLOBAL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (oom_classify(&rows[i].e) != rows[i].class)
			fail_msg("%s: %s", rows[i].what, oom_class_name(oom_classify(&rows[i].e)));
}

static void only_a_kill_at_its_own_limits_says_that_it_needs_more(void **state)
{
	assert_true(oom_class_is_own(OOM_LIMIT));
	assert_true(oom_class_is_own(OOM_POD));
	assert_false(oom_class_is_own(OOM_NODE_ALLOCATABLE));
	assert_false(oom_class_is_own(OOM_GLOBAL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_of_the_truth_table),
		cmocka_unit_test(only_a_kill_at_its_own_limits_says_that_it_needs_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
