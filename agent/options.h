/* SPDX-License-Identifier: Apache-2.0 */
/* What every verb's command line has in common. */
#pragma once

#include "base/flags.h"

struct common_settings {
	int log_level;  /* enum log_level */
	int log_format; /* enum log_format */
};

extern const char *const log_level_names[];
extern const char *const log_format_names[];

/* The first entries of a verb's flag table, whose settings struct `type` has a struct
 * common_settings `member`. */
#define COMMON_FLAGS(type, member)                                                               \
	{.name = "log-level",                                                                    \
		.kind = FLAG_CHOICE,                                                             \
		.offset = offsetof(type, member) + offsetof(struct common_settings, log_level),  \
		.default_text = "info",                                                          \
		.value_name = "LEVEL",                                                           \
		.help = "how much is logged to stderr",                                          \
		.choices = log_level_names},                                                     \
	{                                                                                        \
		.name = "log-format", .kind = FLAG_CHOICE,                                       \
		.offset = offsetof(type, member) + offsetof(struct common_settings, log_format), \
		.default_text = "text", .value_name = "FORMAT",                                  \
		.help = "text for people, json for log collectors", .choices = log_format_names  \
	}

/* Parses the verb's flags, answers --help on stdout, complains on stderr, sets the log up by common
 * (a part of set->settings). True: go on, and *ret_first is the first argument that is no flag.
 * False: leave with *ret_exit. set->program and set->environment are filled in here. */
bool options_read(struct flag_set *set, const struct common_settings *common, int argc, char **argv,
	int *ret_first, int *ret_exit);
