/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/options.h"

#include <stdio.h>

#include "agent/verbs.h"
#include "base/file.h"
#include "base/log.h"

#define HELP_MAX (64U << 10)

const char *const log_level_names[] = {"error", "warn", "info", "debug", NULL};
const char *const log_format_names[] = {"text", "json", NULL};

static int help(const struct flag_set *set)
{
	_cleanup_buf_ struct buf page = BUF_INIT(HELP_MAX);

	flags_help(set, &page);
	return page.error || write_full(STDOUT_FILENO, page.p, page.n) < 0 ? EXIT_FAILURE
									   : EXIT_SUCCESS;
}

bool options_read(struct flag_set *set, const struct common_settings *common, int argc, char **argv,
	int *ret_first, int *ret_exit)
{
	struct err e;

	set->program = "pernode-agent";
	set->environment = environ;
	if (flags_wants_help(argc, argv)) {
		*ret_exit = help(set);
		return false;
	}
	if (flags_parse(set, argc, argv, ret_first, &e) < 0) {
		fprintf(stderr, "pernode-agent %s: %s\n", set->verb, e.text);
		*ret_exit = EXIT_USAGE;
		return false;
	}
	log_setup((enum log_level)common->log_level, (enum log_format)common->log_format);
	return true;
}
