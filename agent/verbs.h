/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of pernode-agent, each in the file of its name. argv[0] is the verb. They return the
 * exit code: 0 done, 1 ran and failed or the answer is no, 2 usage. */
#pragma once

#define EXIT_USAGE 2

int verb_observe(int argc, char **argv);
int verb_preflight(int argc, char **argv);
int verb_prepare_state(int argc, char **argv);
int verb_replay(int argc, char **argv);
int verb_run(int argc, char **argv);
int verb_remove_annotations(int argc, char **argv);
