/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the replay verb in a directory of its own: files in, exit code, stdout and stderr out. */
#pragma once

#include "base/buf.h"
#include "base/macros.h"

/* cmocka's group fixtures. */
int replay_make_dir(void **state);
int replay_remove_dir(void **state);
extern char replay_dir[];

struct outcome {
	int exit_code;
	struct buf out, err;
};
void outcome_finish(struct outcome *o);
#define _cleanup_outcome_ _cleanup_(outcome_finish)

void put_file(const char *name, struct str text);
/* Makes fd read or write a file of the directory; returns what restore() needs. */
int redirect(int fd, const char *name);
void restore(int fd, int saved);

/* A NULL-terminated list of arguments. */
void replay(struct outcome *o, const char *const *arguments);
#define REPLAY(o, ...) replay(o, (const char *const[]){__VA_ARGS__, NULL})

/* The buffer holds the text. */
void assert_says(const struct buf *b, const char *what);
