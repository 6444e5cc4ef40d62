/* SPDX-License-Identifier: Apache-2.0 */
/* What every verb's command line has in common. A verb's settings struct starts with a struct
 * common_settings and its list of flag tables contains common_flags. */
#pragma once

#include "base/flags.h"

struct common_settings {
	int log_level;  /* enum log_level */
	int log_format; /* enum log_format */
};

extern const struct flag common_flags[];

/* Parses the verb's flags, answers --help on stdout, complains on stderr, sets the log up. True: go
 * on, and *ret_first is the first argument that is no flag. False: leave with *ret_exit.
 * set->program and set->environment are filled in here. */
bool options_read(struct flag_set *set, int argc, char **argv, int *ret_first, int *ret_exit);
