// SPDX-License-Identifier: Apache-2.0
#pragma once
/*
 * What a workload is told to do: words NAME=VALUE, separated by spaces, newlines, commas or '&'.
 *
 *   cpu=200m              millicores to use (also 0.2)
 *   memory=64Mi           bytes to hold, all pages touched
 *   leak=512Ki            bytes to add to that every second
 *   burst=800m/200ms/5s   this much CPU for 200 ms of every 5 s, instead of cpu
 *   spike=96Mi/1s/10s     this much memory for 1 s of every 10 s, instead of memory
 *   cache=32Mi            bytes of a file to write and keep reading: page cache, not memory of ours
 *   children=3            processes started by exec, each with child-cpu and child-memory
 *   exit=1                end with this status
 *
 * Each instruction is whole: what it does not name is off.
 */
#include <stddef.h>
#include <stdint.h>

#define INSTRUCTION_TEXT_MAX 1024
#define INSTRUCTION_CHILDREN_MAX 64

struct pulse {
	uint64_t height; /* millicores, or bytes; 0: no pulse */
	uint64_t on_msec;
	uint64_t every_msec;
};

struct instruction {
	uint64_t cpu_millicores;
	uint64_t memory_bytes;
	uint64_t leak_bytes_per_sec;
	struct pulse burst;
	struct pulse spike;
	uint64_t cache_bytes;
	uint64_t children;
	uint64_t child_cpu_millicores;
	uint64_t child_memory_bytes;
	int exit_status; /* -1: go on */
};

/*
 * Reads an instruction of length bytes. Returns 0; or -1 with what is wrong in why (why_size
 * bytes), and *ret_instruction untouched.
 */
int instruction_parse(const char *text, size_t length, struct instruction *ret_instruction,
	char *why, size_t why_size);

/* The height that holds at_msec after the beginning: the pulse's, or base. */
uint64_t pulse_height(const struct pulse *pulse, uint64_t base, uint64_t at_msec);
