/* SPDX-License-Identifier: Apache-2.0 */
/* The `replay` verb: recorded usage through the same code as `run`. Readers (CSV, Prometheus) turn
 * what they find into rows, one table of series takes rows in, printers show what came out. Memory
 * grows with the number of series, not with their length. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/options.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "proto/quantity.h"
#include "rules/estimator.h"
#include "rules/knobs.h"
#include "rules/model.h"
#include "rules/usage.h"
#include "rules/whatif.h"

#define REPLAY_SERIES_MAX 50000U
#define REPLAY_NAME_MAX 1024U
#define REPLAY_BAD_SHOWN 20U /* per file */

struct replay_settings {
	struct knobs knobs; /* first: knobs_flags are relative to it */
	struct common_settings common;
	struct quantity_pair request;
	int output; /* enum replay_output */
	bool strict;
	const char *cpu_file, *memory_file;
	const char *series_name;
};

enum replay_output { REPLAY_TEXT, REPLAY_JSON, REPLAY_CSV };

struct replay_series {
	char *name;
	uint64_t hash;
	struct usage_history usage;
	struct whatif_series *whatif;
	uint64_t bad_rows;
	int64_t since, last; /* of the rows taken; TIME_NONE: none */
	struct recommendation recommendation;
	struct whatif_report report;
};

/* The place that the row being read comes from, for messages. */
struct replay_source {
	const char *file;
	uint64_t bad, rows; /* seen so far: refused, taken */
};

struct replay {
	const struct replay_settings *settings;
	struct model model;
	struct whatif *whatif;
	struct replay_series **series; /* in order of appearance */
	size_t n_series;
	uint32_t *table; /* open addressing: index + 1 */
	size_t table_size;
	struct replay_series *latest; /* of the row before: mostly the next one's too */
	uint64_t bad;                 /* of all files */
	struct whatif_report all;
};

struct replay_row {
	int64_t t;
	double cpu_millicores; /* NAN: not recorded */
	double memory_bytes; /* NAN: not recorded; with oom: what the container was allowed or using
			      */
	bool oom;
};

int replay_init(struct replay *r, const struct replay_settings *s, struct err *e);
void replay_finish(struct replay *r);

/* Finds or makes a series. -ENOSPC: too many; -EINVAL: a name that is none; -ENOMEM. */
int replay_series_get(struct replay *r, struct str name, struct replay_series **ret, struct err *e);
/* Takes a row in, all of it or nothing. -ESTALE, -EINVAL: refused, with the reason in e; that is a
 * bad row. */
int replay_take(
	struct replay *r, struct replay_series *s, const struct replay_row *row, struct err *e);

/* Says on stderr what was wrong at a place of the source ("12", or "" for none), the first times,
 * and counts it, for the series too if it is known. 0, or -ECANCELED with --strict. */
int replay_bad(struct replay *r, struct replay_source *from, const char *place,
	struct replay_series *s, const struct err *e);
/* How many were left out by replay_bad. */
void replay_source_end(const struct replay_source *from);

/* After the last row: recommendations and reports. Series without a usable row are gone then. */
void replay_conclude(struct replay *r);

/* Bytes of a file (plain or gzip, "-" is stdin) to a sink, with progress on a terminal. -errno with
 * the reason in e; a sink's own error is passed on. */
int replay_read(
	const char *file, int (*sink)(void *arg, struct str piece), void *arg, struct err *e);

/* A positional FILE: CSV. */
int replay_csv(struct replay *r, const char *file, struct err *e);
/* --cpu and --memory: either may be NULL. */
int replay_prometheus(
	struct replay *r, const char *cpu_file, const char *memory_file, struct err *e);
/* The template of --series-name is one. -EINVAL with the reason in e. */
int replay_check_template(const char *text, struct err *e);

void replay_print_json(const struct replay *r, struct buf *out);
void replay_print_csv(const struct replay *r, struct buf *out);
void replay_print_text(const struct replay *r, struct buf *out);
