/* SPDX-License-Identifier: Apache-2.0 */
/* Kubernetes quantities: "100m", "1.5Gi", "2e6", "0.5". Values are held exactly, to the nano-unit;
 * what is finer is rounded away from zero, what is larger than 2^63-1 units saturates, both as the
 * API server does. Grammar:
 * https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/ */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum quantity_format {
	QUANTITY_DECIMAL_SI,       /* n u m "" k M G T P E */
	QUANTITY_BINARY_SI,        /* Ki Mi Gi Ti Pi Ei */
	QUANTITY_DECIMAL_EXPONENT, /* e3, E-6 */
};

struct quantity {
	__int128 nano; /* units × 10^9, in ±(2^63-1)·10^9 */
	enum quantity_format format;
};

#define QUANTITY_TEXT_MAX 48U    /* of any canonical text, with its NUL */
#define QUANTITY_INPUT_MAX 1024U /* longer texts are refused unread */

/* The whole text must be one quantity. -EINVAL otherwise; *ret is then untouched. The time taken is
 * bounded by the input's maximal length, whatever the exponent. */
int quantity_parse(struct str s, struct quantity *ret);

/* The canonical text: no fraction, the largest suffix that leaves an integer, no sign but '-'. It
 * parses back to the same value. A binary quantity that is no whole number of units, or below 1024,
 * is written in decimal. Returns the length. */
size_t quantity_format(const struct quantity *q, char out[QUANTITY_TEXT_MAX]);

/* Rounded away from zero (up, for what is asked or allowed), saturating. */
int64_t quantity_milli(const struct quantity *q);
int64_t quantity_units(const struct quantity *q);

/* How pernode writes: CPU "63m", "1", "1500m"; memory whole bytes, no suffix ("49566436"). */
size_t quantity_format_millicores(int64_t millicores, char out[QUANTITY_TEXT_MAX]);
size_t quantity_format_bytes(int64_t bytes, char out[QUANTITY_TEXT_MAX]);
/* For people: "250Mi" where that is exact, else whole bytes. */
size_t quantity_format_bytes_binary(int64_t bytes, char out[QUANTITY_TEXT_MAX]);

/* A CPU in millicores, a memory in bytes, as found in pods and annotations. -EINVAL: not a
 * quantity; -ERANGE: negative. */
int quantity_parse_millicores(struct str s, int64_t *ret);
int quantity_parse_bytes(struct str s, int64_t *ret);

/* A pair as given by "cpu=100m,memory=64Mi"; a resource that was not named is -1. */
struct quantity_pair {
	int64_t cpu_millicores;
	int64_t memory_bytes;
};

/* FLAG_CUSTOM parsers of base/flags.h. Targets: int64_t millicores, int64_t bytes, struct
 * quantity_pair. e says what is accepted. */
int flag_parse_millicores(struct str value, void *target, struct err *e);
int flag_parse_bytes(struct str value, void *target, struct err *e);
int flag_parse_quantity_pair(struct str value, void *target, struct err *e);
