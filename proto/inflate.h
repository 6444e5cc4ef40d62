/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that may be gzip: recognised by their content, passed on plain either way, in pieces, in
 * bounded memory. Several gzip members one after the other are one text, as gzip has it. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

struct inflate;

/* sink gets the plain bytes; a negative return ends the reading. NULL: no memory. */
struct inflate *inflate_create(int (*sink)(void *arg, struct str piece), void *arg);
void inflate_destroy(struct inflate *z);
/* 0; -EBADMSG: gzip that is damaged; -ENOMEM; or what the sink returned. */
int inflate_feed(struct inflate *z, struct str piece, struct err *e);
/* -EBADMSG when gzip ends in the middle. */
int inflate_end(struct inflate *z, struct err *e);
