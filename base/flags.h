/* SPDX-License-Identifier: Apache-2.0 */
/* The command line and the environment, declared once. A verb has a table of flags; each can also
 * be given by the environment as PERNODE_LONG_NAME (a flag beats the environment, an empty variable
 * is unset, an unknown PERNODE_* variable is nobody's business). Each value is checked by its kind
 * and range. An error names the flag (or variable), the value and what is accepted, and for an
 * unknown flag the nearest known one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum flag_kind {
	FLAG_BOOL,     /* bool; --x, --x=true, --x=false */
	FLAG_STRING,   /* const char * */
	FLAG_CHOICE,   /* int: index into choices */
	FLAG_INT,      /* int64_t in [min, max] */
	FLAG_DOUBLE,   /* double in [min_double, max_double] */
	FLAG_DURATION, /* int64_t ns in [min, max] */
	FLAG_CUSTOM,   /* parse() into target: quantities and the like, which base does not know */
};

enum flag_source { FLAG_FROM_DEFAULT, FLAG_FROM_ENVIRONMENT, FLAG_FROM_COMMAND_LINE };

struct flag {
	const char *name; /* without the dashes */
	enum flag_kind kind;
	size_t offset; /* of the value in the settings struct */
	const char
		*default_text;  /* parsed like any other value; NULL: the target is left as it is */
	const char *value_name; /* for help: "DURATION", "PATH"… */
	const char *help;       /* one line, with the unit */
	const char *const *choices; /* FLAG_CHOICE: NULL-terminated */
	int64_t min, max;
	double min_double, max_double;
	int (*parse)(struct str value, void *target,
		struct err *e); /* FLAG_CUSTOM; e says what is accepted */
};

#define FLAGS_MAX 128 /* flags of one verb */

struct flag_set {
	const char *program;   /* "pernode-agent" */
	const char *verb;      /* "run" or NULL */
	const char *summary;   /* one line */
	const char *arguments; /* "FILE…", "[PATTERN…]" or NULL when none are taken */
	const char *example;   /* one full command line */
	const struct flag *const
		*tables; /* NULL-terminated list of tables, each ended by a flag with name NULL */
	void *settings;
	enum flag_source sources[FLAGS_MAX]; /* in table order: where each value came from */
	char *const *environment;            /* environ, or a test's own */
};

/* Parses argv[1…] (argv[0] is skipped). Sets *ret_first to the index of the first argument that is
 * no flag ("--" ends flags; flags and arguments may mix: arguments are moved to the end of argv).
 * --help is not handled here: flags_wants_help. -EINVAL with the message in e: exit 2. Strings
 * point into argv or the environment. */
int flags_parse(struct flag_set *set, int argc, char **argv, int *ret_first, struct err *e);
/* One value for one flag, checked like any other: for values that come by another way. value must
 * end in a NUL where the flag is a FLAG_STRING. -EINVAL: e says what is accepted. */
int flag_value_set(const struct flag *f, struct str value, void *settings, struct err *e);
/* True if --help or -h is among the arguments before "--". */
bool flags_wants_help(int argc, char **argv);
/* The help page: usage, every flag with unit and default, its environment name, the example. */
void flags_help(const struct flag_set *set, struct buf *out);
/* The nearest of the names (Levenshtein ≤ 3 and less than half its length), or NULL. */
const char *nearest_name(const char *word, const char *const *names, size_t n);
