// SPDX-License-Identifier: Apache-2.0
#pragma once
/* Carries out an instruction with threads and child processes. One per process. */
#include "instruction.h"

/* What the load is doing now, for whoever asks. */
struct load_status {
	uint64_t held_bytes;   /* memory touched and held */
	uint64_t cached_bytes; /* of the cache file, written so far */
	uint64_t children;     /* alive */
};

/* Starts the threads, idle. directory is where the cache file may be made. Returns 0 or -errno. */
int load_start(const char *directory);

/* Replaces what is being done; pulses and the leak begin anew. */
void load_follow(const struct instruction *instruction);

/* Starts and reaps children as instructed; to be called several times a second. */
void load_keep_children(void);

struct load_status load_look(void);
