// SPDX-License-Identifier: Apache-2.0
/* pernode-agent replay: what the recorded containers need, and what would have happened. */
#include "agent/replay/replay.h"

#include <errno.h>

#include "agent/verbs.h"
#include "base/file.h"

#define PRINT_MAX (1U << 30)

static const char *const output_names[] = {"text", "json", "csv", NULL};

static const struct flag replay_flags[] = {
	{.name = "request",
		.kind = FLAG_CUSTOM,
		.offset = offsetof(struct replay_settings, request),
		.value_name = "cpu=QUANTITY,memory=QUANTITY",
		.help = "the request to compare with, and to start from; default: the smallest "
			"fixed one that is as good",
		.parse = flag_parse_quantity_pair},
	{.name = "cpu",
		.kind = FLAG_STRING,
		.offset = offsetof(struct replay_settings, cpu_file),
		.value_name = "FILE",
		.help = "answer to a Prometheus range query: CPU usage in cores, a rate()"},
	{.name = "memory",
		.kind = FLAG_STRING,
		.offset = offsetof(struct replay_settings, memory_file),
		.value_name = "FILE",
		.help = "the same of memory: the working set in bytes"},
	{.name = "series-name",
		.kind = FLAG_STRING,
		.offset = offsetof(struct replay_settings, series_name),
		.default_text = "{namespace}/{container}@{node}",
		.value_name = "TEMPLATE",
		.help = "what a Prometheus series is called, from its labels"},
	{.name = "strict",
		.kind = FLAG_BOOL,
		.offset = offsetof(struct replay_settings, strict),
		.default_text = "false",
		.help = "stop at the first bad line"},
	{.name = "output",
		.kind = FLAG_CHOICE,
		.offset = offsetof(struct replay_settings, output),
		.default_text = "text",
		.value_name = "FORMAT",
		.help = "text for people, json or csv for programs",
		.choices = output_names},
	COMMON_FLAGS(struct replay_settings, common),
	{.name = NULL},
};

static int complain(const struct err *e)
{
	fprintf(stderr, "pernode-agent replay: %s\n", e->text);
	return EXIT_FAILURE;
}

static int usage_error(const char *text)
{
	fprintf(stderr, "pernode-agent replay: %s\n", text);
	return EXIT_USAGE;
}

static int print(const struct replay *r)
{
	_cleanup_buf_ struct buf out = BUF_INIT(PRINT_MAX);

	if (r->settings->output == REPLAY_JSON)
		replay_print_json(r, &out);
	else if (r->settings->output == REPLAY_CSV)
		replay_print_csv(r, &out);
	else
		replay_print_text(r, &out);
	if (out.error)
		return complain(&(struct err){"the report cannot be printed: no memory left"});
	int result = write_full(STDOUT_FILENO, out.p, out.n);
	if (result < 0) {
		fprintf(stderr, "pernode-agent replay: stdout: %s\n", err_text(NULL, result));
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

/* Every file is read, also after one that could not be; what could be read is reported. */
static int read_files(struct replay *r, char **files)
{
	const struct replay_settings *s = r->settings;
	int exit_code = EXIT_SUCCESS;
	struct err e;

	for (; *files; files++) {
		int result = replay_csv(r, *files, &e);
		if (result < 0)
			exit_code = complain(&e);
		if (result == -ECANCELED || result == -ENOMEM)
			return EXIT_FAILURE;
	}
	if ((s->cpu_file || s->memory_file) &&
		replay_prometheus(r, s->cpu_file, s->memory_file, &e) < 0)
		exit_code = complain(&e);
	return exit_code;
}

static int run(const struct replay_settings *s, char **files)
{
	struct replay r;
	struct err e;

	if (replay_init(&r, s, &e) < 0)
		return complain(&e);
	int exit_code = read_files(&r, files);
	if (exit_code == EXIT_SUCCESS || !s->strict) {
		replay_conclude(&r);
		if (r.n_series > 0 && print(&r) != EXIT_SUCCESS)
			exit_code = EXIT_FAILURE;
	}
	replay_finish(&r);
	return exit_code;
}

int verb_replay(int argc, char **argv)
{
	static const struct flag *const tables[] = {replay_flags, knobs_flags, NULL};
	struct replay_settings s = {.request = {-1, -1}};
	struct flag_set set = {
		.verb = "replay",
		.summary = "recorded usage through the estimator: what each container needs, and "
			   "what would have happened",
		.arguments = "[FILE…]",
		.example = "pernode-agent replay --request=cpu=100m,memory=64Mi usage.csv",
		.tables = tables,
		.settings = &s,
	};
	struct err e;
	int first, exit_code;

	knobs_unset(&s.knobs);
	if (!options_read(&set, &s.common, argc, argv, &first, &exit_code))
		return exit_code;
	if (knobs_resolve(&s.knobs, &e) < 0 || replay_check_template(s.series_name, &e) < 0)
		return usage_error(e.text);
	if (first == argc && !s.cpu_file && !s.memory_file)
		return usage_error("no recording is named: give a CSV file (\"-\" is stdin), or a "
				   "Prometheus answer as --cpu=FILE "
				   "and --memory=FILE");
	return run(&s, argv + first);
}
