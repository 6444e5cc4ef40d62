/* SPDX-License-Identifier: Apache-2.0 */
/* pernode-agent: finds the verb and hands over. */
#include <stdio.h>
#include <string.h>

#include "agent/verbs.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/macros.h"
#include "version.h"

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
} verbs[] = {
	{"run", verb_run, "measure the DaemonSet pods of this node, and publish what they need"},
	{"observe", verb_observe, "watch cgroups of this machine and say what each needs"},
	{"replay", verb_replay, "what recorded containers need, and what would have happened"},
	{"preflight", verb_preflight, "check what this machine offers, and say what is missing"},
	{"prepare-state", verb_prepare_state,
		"hand the state directory over to the agent's group (init container)"},
	{"remove-annotations", verb_remove_annotations,
		"take away what the agents published, when they are gone"},
};

static void usage(FILE *to)
{
	fprintf(to, "Sizes each DaemonSet container for its own node.\n\n"
		    "usage: pernode-agent VERB [--flag=value…] [ARGUMENT…]\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		fprintf(to, "  %-20s%s\n", verbs[i].name, verbs[i].summary);
	fprintf(to, "\n"
		    "  --help     this page; after a verb, its flags\n"
		    "  --version  version, commit and libraries\n\n"
		    "example: pernode-agent preflight\n");
}

static int version(void)
{
	printf("pernode-agent %s (commit %s)\n%s\n", PERNODE_VERSION, PERNODE_COMMIT,
		PERNODE_LIBRARIES);
	return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int unknown_verb(const char *word)
{
	const char *names[ARRAY_SIZE(verbs)];
	const char *nearest;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		names[i] = verbs[i].name;
	nearest = nearest_name(word, names, ARRAY_SIZE(names));
	fprintf(stderr, "pernode-agent: %.80s: no such verb", word);
	if (nearest)
		fprintf(stderr, "; did you mean %s?", nearest);
	fprintf(stderr, " (--help lists all)\n");
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	if (file_keep_standard() < 0)
		return EXIT_FAILURE;
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		usage(stdout);
		return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	if (!strcmp(argv[1], "--version"))
		return version();
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(argv[1], verbs[i].name))
			return verbs[i].run(argc - 1, argv + 1);
	return unknown_verb(argv[1]);
}
