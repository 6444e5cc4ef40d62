/* SPDX-License-Identifier: Apache-2.0 */
/* How amounts are called and written in JSON, the same in every verb and at the endpoint. */
#pragma once

#include "proto/json_write.h"
#include "rules/amount.h"
#include "rules/estimator.h"

const char *resource_name(enum resource r); /* "cpu", "memory" */
const char *amount_key(enum resource r);    /* "cpu_millicores", "memory_bytes" */
const char *bound_name(enum bound b);       /* "target", "lowerBound", "upperBound" */

/* The members cpu_millicores and memory_bytes; what is not known is left out. */
void amounts_members(struct json_writer *w, const struct amounts *a);
/* An object with these members. */
void amounts_object(struct json_writer *w, const struct amounts *a);
/* Members target, lowerBound, upperBound: an object each. */
void bounds_members(struct json_writer *w, const struct recommendation *r);
