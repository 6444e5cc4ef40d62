/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's memory on disk: one checkpoint (proto/checkpoint.h) in two generations. A save moves
 * the last one aside and then puts the new one in place whole, so that whenever the power goes, one
 * of the two is good. A file that is damaged or not ours is set aside under a name that says why,
 * and never stops anything. A disk that is full or read-only costs the save, not the agent: it is
 * tried again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "proto/checkpoint.h"

#define STORE_NAME "checkpoint"
#define STORE_OLDER_NAME "checkpoint.1"
#define STORE_MAX_BYTES                                                           \
	(16U * 1024U * 1024U) /* WORKLOADS_MAX of the largest histories, and room \
			       */

struct store {
	int dirfd; /* -1: no usable directory */
	char path[256];
	struct err trouble;  /* why the last attempt to use it failed; empty: it did not */
	int64_t saved_at_ns; /* wall time of the newest good save, by us or before us; INT64_MIN:
				none */
	uint64_t saved_bytes;
	uint64_t saves, failures;
	uint64_t set_aside[CHECKPOINT_TOO_NEW + 1]; /* files, by verdict */
	char loaded[16]; /* name of the generation that was loaded, or "" */
};

/* Opens the directory and locks it against a second agent. A failure is kept in trouble and
 * returned; s stays usable, and store_save tries to open again. path is copied. */
int store_open(struct store *s, const char *path);
void store_finish(struct store *s);

/* Reads the newest good generation. load gets it and takes from it what it can use; an error of
 * load (only -ENOMEM is expected) ends it. Returns 1 when something was loaded, 0 when there is
 * nothing usable; told, when not NULL, is called with a sentence for each file that was set aside.
 */
int store_load(struct store *s, const struct checkpoint_identity *identity,
	int (*load)(void *arg, const struct checkpoint *c), void *arg,
	void (*told)(void *arg, const char *text));

/* Writes a new generation; save appends the chunks. 0, or -errno, with the sentence in trouble. */
int store_save(struct store *s, const struct checkpoint_identity *identity, int64_t now_ns,
	int (*save)(void *arg, struct buf *b), void *arg);
