/* SPDX-License-Identifier: Apache-2.0 */
/* The log: one line per event to stderr, as text or as JSON. Every call site is limited to
 * LOG_BURST lines a minute; the next line that gets through says how many were left out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

#define LOG_BURST 10U
#define LOG_LINE_MAX 1024U /* bytes of one message; a longer one ends in "…" */

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_TEXT, LOG_JSON };

/* Per call site; static storage made by the macros below. */
struct log_site {
	uint64_t window_start_usec;
	unsigned int count;
	unsigned int left_out;
};

/* The process-wide level and format: the only globals of the program. Defaults: info, text. */
void log_setup(enum log_level level, enum log_format format);
bool log_enabled(enum log_level level);
/* "error", "warn", "info", "debug" → level; -EINVAL otherwise. */
int log_level_parse(const char *name, enum log_level *ret_level);

void log_at(struct log_site *site, enum log_level level, const char *format, ...) _printf_(3, 4);

/* Where lines go, for tests; NULL is stderr. */
void log_to(void (*sink)(const char *line, size_t n, void *arg), void *arg);

#define log_(level, ...)                                    \
	do {                                                \
		static struct log_site _site;               \
		if (log_enabled(level))                     \
			log_at(&_site, level, __VA_ARGS__); \
	} while (0)
#define log_error(...) log_(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_(LOG_DEBUG, __VA_ARGS__)
