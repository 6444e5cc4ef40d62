/* SPDX-License-Identifier: Apache-2.0 */
#include "base/flags.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/num.h"

#define SHOWN_VALUE_MAX 80 /* characters of a wrong value that an error repeats */

static const char *const bool_names[] = {"false", "true", NULL};

/* ---- the table ---- */

/* The i-th flag over all tables, or NULL after the last. */
static const struct flag *flag_at(const struct flag_set *set, size_t i)
{
	for (const struct flag *const *table = set->tables; *table; table++) {
		for (const struct flag *f = *table; f->name; f++) {
			if (i-- == 0)
				return f;
		}
	}
	return NULL;
}

static const struct flag *flag_find(const struct flag_set *set, struct str name, size_t *ret_index)
{
	const struct flag *f;

	for (size_t i = 0; (f = flag_at(set, i)); i++) {
		if (str_is(name, f->name)) {
			*ret_index = i;
			return f;
		}
	}
	return NULL;
}

static void environment_name(const struct flag *f, char out[96])
{
	size_t n = (size_t)snprintf(out, 96, "PERNODE_%s", f->name);

	for (size_t i = 0; i < n && i < 95; i++)
		out[i] = out[i] == '-' ? '_' : (char)toupper((unsigned char)out[i]);
}

static const char *environment_value(const struct flag_set *set, const char *name)
{
	size_t n = strlen(name);

	for (char *const *e = set->environment; e && *e; e++) {
		if (!strncmp(*e, name, n) && (*e)[n] == '=')
			return *e + n + 1;
	}
	return NULL;
}

/* ---- one value ---- */

static int choice_parse(const char *const *choices, struct str value, int *ret, struct err *e)
{
	struct buf list = BUF_INIT(200);

	for (int i = 0; choices[i]; i++) {
		if (str_is(value, choices[i])) {
			*ret = i;
			buf_finish(&list);
			return 0;
		}
		(void)buf_printf(&list, "%s%s", i ? ", " : "", choices[i]);
	}
	int r = err_set(e, EINVAL, "accepted: %s", list.p ? list.p : "");
	buf_finish(&list);
	return r;
}

static int int_parse(const struct flag *f, struct str value, int64_t *ret, struct err *e)
{
	int64_t v;

	if (parse_i64(value, &v) < 0 || v < f->min || v > f->max)
		return err_set(e, EINVAL, "accepted: a whole number from %lld to %lld",
			(long long)f->min, (long long)f->max);
	*ret = v;
	return 0;
}

static int double_parse(const struct flag *f, struct str value, double *ret, struct err *e)
{
	double v;

	if (parse_double(value, &v) < 0 || v < f->min_double || v > f->max_double)
		return err_set(e, EINVAL, "accepted: a number from %g to %g", f->min_double,
			f->max_double);
	*ret = v;
	return 0;
}

static int duration_flag_parse(const struct flag *f, struct str value, int64_t *ret, struct err *e)
{
	char min[32], max[32];
	int64_t v;

	if (duration_parse(value, &v) < 0 || v < f->min || v > f->max) {
		(void)duration_format(f->min, min);
		(void)duration_format(f->max, max);
		return err_set(e, EINVAL,
			"accepted: a duration from %s to %s, such as 90s, 1h30m or 2d", min, max);
	}
	*ret = v;
	return 0;
}

int flag_value_set(const struct flag *f, struct str value, void *settings, struct err *e)
{
	void *target = (char *)settings + f->offset;
	int choice = 0, r;

	switch (f->kind) {
	case FLAG_BOOL:
		r = choice_parse(bool_names, value, &choice, e);
		if (r == 0)
			*(bool *)target = choice == 1;
		return r;
	case FLAG_STRING:
		/* Values come from argv, the environment or the table: all end in a NUL. */
		*(const char **)target = value.p;
		return 0;
	case FLAG_CHOICE:
		return choice_parse(f->choices, value, target, e);
	case FLAG_INT:
		return int_parse(f, value, target, e);
	case FLAG_DOUBLE:
		return double_parse(f, value, target, e);
	case FLAG_DURATION:
		return duration_flag_parse(f, value, target, e);
	case FLAG_CUSTOM:
		return f->parse(value, target, e);
	}
	return -EINVAL;
}

static int value_set(struct flag_set *set, const struct flag *f, size_t index,
	const char *shown_name, const char *value, enum flag_source source, struct err *e)
{
	struct err why = {""};
	int r = flag_value_set(f, str_of(value), set->settings, &why);

	if (r < 0)
		return err_set(e, EINVAL, "%s=%.*s%s: %s", shown_name, SHOWN_VALUE_MAX, value,
			strlen(value) > SHOWN_VALUE_MAX ? "…" : "", err_text(&why, r));
	if (index < FLAGS_MAX)
		set->sources[index] = source;
	return 0;
}

static int defaults_set(struct flag_set *set, struct err *e)
{
	const struct flag *f;
	char name[96];

	for (size_t i = 0; (f = flag_at(set, i)); i++) {
		if (i >= FLAGS_MAX)
			return err_set(e, E2BIG, "%s has more than %d flags", set->verb, FLAGS_MAX);
		(void)snprintf(name, sizeof(name), "--%s", f->name);
		if (f->default_text) {
			int r = value_set(set, f, i, name, f->default_text, FLAG_FROM_DEFAULT, e);
			if (r < 0)
				return r;
		}
		set->sources[i] = FLAG_FROM_DEFAULT;
		environment_name(f, name);
		const char *value = environment_value(set, name);
		if (value && *value) {
			int r = value_set(set, f, i, name, value, FLAG_FROM_ENVIRONMENT, e);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* ---- the command line ---- */

static size_t distance(const char *a, const char *b)
{
	enum { LONGEST = 64 };
	size_t row[LONGEST + 1];
	size_t na = strlen(a), nb = strlen(b);

	if (na > LONGEST || nb > LONGEST)
		return LONGEST;
	for (size_t j = 0; j <= nb; j++)
		row[j] = j;
	for (size_t i = 1; i <= na; i++) {
		size_t diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
			diagonal = row[j];
			row[j] = MIN(MIN(row[j], row[j - 1]) + 1, replaced);
		}
	}
	return row[nb];
}

const char *nearest_name(const char *word, const char *const *names, size_t n)
{
	const char *best = NULL;
	size_t best_distance = MIN((size_t)4, strlen(word) / 2 + 1);

	for (size_t i = 0; i < n; i++) {
		size_t d = distance(word, names[i]);
		if (d < best_distance) {
			best_distance = d;
			best = names[i];
		}
	}
	return best;
}

static int unknown_flag(const struct flag_set *set, struct str name, struct err *e)
{
	const char *names[FLAGS_MAX];
	const struct flag *f;
	size_t n = 0;
	char word[65];

	for (; n < FLAGS_MAX && (f = flag_at(set, n)); n++)
		names[n] = f->name;
	name.n = MIN(name.n, sizeof(word) - 1);
	if (str_copy(word, sizeof(word), name) < 0)
		word[0] = '\0';
	const char *nearest = nearest_name(word, names, n);
	if (nearest)
		return err_set(e, EINVAL,
			"--%s: no such flag; did you mean --%s? (--help lists all)", word, nearest);
	return err_set(e, EINVAL, "--%s: no such flag; --help lists all", word);
}

/* argv[i] starts with "--". Returns how many arguments it took. */
static int flag_take(struct flag_set *set, int argc, char **argv, int i, struct err *e)
{
	struct str rest = str_of(argv[i] + 2);
	struct str name = str_cut(&rest, '=');
	const char *value = rest.p;
	char shown[96];
	size_t index;
	int took = 1;

	const struct flag *f = flag_find(set, name, &index);
	if (!f)
		return unknown_flag(set, name, e);
	(void)snprintf(shown, sizeof(shown), "--%s", f->name);
	if (!value && f->kind == FLAG_BOOL)
		value = "true";
	if (!value) {
		if (i + 1 >= argc)
			return err_set(e, EINVAL, "--%s: needs a value (%s)", f->name,
				f->value_name ? f->value_name : "VALUE");
		value = argv[i + 1];
		took = 2;
	}
	int r = value_set(set, f, index, shown, value, FLAG_FROM_COMMAND_LINE, e);
	return r < 0 ? r : took;
}

int flags_parse(struct flag_set *set, int argc, char **argv, int *ret_first, struct err *e)
{
	int kept = 1; /* arguments are gathered at the front, then turned to the end */
	int r = defaults_set(set, e);
	int i = 1;

	if (r < 0)
		return r;
	while (i < argc) {
		if (!strcmp(argv[i], "--")) {
			for (i++; i < argc; i++)
				argv[kept++] = argv[i];
			break;
		}
		if (argv[i][0] == '-' && argv[i][1] != '\0' && argv[i][1] != '-')
			return err_set(e, EINVAL,
				"%s: no such flag; flags are --long-name=value (--help lists all)",
				argv[i]);
		if (argv[i][0] != '-' || argv[i][1] == '\0') {
			argv[kept++] = argv[i++];
			continue;
		}
		r = flag_take(set, argc, argv, i, e);
		if (r < 0)
			return r;
		i += r;
	}
	if (kept > 1 && !set->arguments)
		return err_set(e, EINVAL, "%s: takes no arguments, only flags (--help lists them)",
			argv[1]);
	int count = kept - 1;
	memmove(argv + (argc - count), argv + 1, (size_t)count * sizeof(*argv));
	*ret_first = argc - count;
	return 0;
}

bool flags_wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return true;
	}
	return false;
}

static void flag_help(const struct flag *f, struct buf *out)
{
	char name[96];

	environment_name(f, name);
	(void)buf_printf(out, "  --%s", f->name);
	if (f->kind == FLAG_CHOICE) {
		for (int i = 0; f->choices[i]; i++)
			(void)buf_printf(out, "%s%s", i ? "|" : "=", f->choices[i]);
	} else if (f->kind != FLAG_BOOL) {
		(void)buf_printf(out, "=%s", f->value_name ? f->value_name : "VALUE");
	}
	(void)buf_printf(out, "\n        %s", f->help);
	if (f->default_text && *f->default_text)
		(void)buf_printf(out, " (default %s)", f->default_text);
	(void)buf_printf(out, " [%s]\n", name);
}

void flags_help(const struct flag_set *set, struct buf *out)
{
	const struct flag *f;

	(void)buf_printf(out,
		"%s\n\nUsage: %s%s%s [flags]%s%s\n\nFlags (each also by environment, in "
		"brackets):\n",
		set->summary, set->program, set->verb ? " " : "", set->verb ? set->verb : "",
		set->arguments ? " " : "", set->arguments ? set->arguments : "");
	for (size_t i = 0; (f = flag_at(set, i)); i++)
		flag_help(f, out);
	if (set->example)
		(void)buf_printf(out, "\nExample:\n  %s\n", set->example);
}
