/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of a Prometheus series: kept in order of their names, as one block of text. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define LABELS_MAX 64U
#define LABELS_TEXT_MAX 16384U

struct labels {
	struct buf text; /* names and values, each ended by NUL, unsorted while they come */
	size_t n;
	struct label {
		size_t name, value; /* offsets */
	} label[LABELS_MAX];
};

void labels_init(struct labels *l);
void labels_finish(struct labels *l);
void labels_clear(struct labels *l);
/* __name__ is left out: it is not what a series is about. -E2BIG: too many, or too long; -EINVAL: a
 * NUL; -ENOMEM. */
int labels_add(struct labels *l, struct str name, struct str value);
/* All of them, sorted, as bytes that are equal for equal labels. */
int labels_canonical(struct labels *l, struct buf *out);
/* Fills "{namespace}/{container}" in; "{{" and "}}" are braces. -EINVAL: a label is missing, or the
 * text is no template; e says which. labels NULL: only checks the template. */
int labels_fill(const struct labels *l, const char *text, struct buf *out, struct err *e);
