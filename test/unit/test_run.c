// SPDX-License-Identifier: Apache-2.0
/* The verb run, as far as its command line goes. */
#include "agent/verbs.h"
#include "base/macros.h"
#include "test/unit/unit.h"

static void wrong_settings_are_refused_before_anything_is_started(void **state)
{
	static const char *const wrong[] = {"--listen=abc", "--listen=:65536",
		"--listen=", "--node-name=a/b", "--node-name=..", "--node-name=a,b",
		"--node-name=a\nb", "--node-name=", "--pod-source=files", "--publish=nowhere",
		"--interval=0s", "--no-such-flag", "--metrics=all"};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		char verb[] = "run", name[] = "--node-name=n", argument[64];
		char *argv[] = {verb, name, argument, NULL};

		(void)snprintf(argument, sizeof(argument), "%s", wrong[i]);
		assert_int_equal(verb_run(3, argv), 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_settings_are_refused_before_anything_is_started),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
