/* SPDX-License-Identifier: Apache-2.0 */
/* The Kubernetes Status object: what the API server says when it refuses. Pure. */
#pragma once

#include <stdbool.h>

#include "base/str.h"

struct kube_status {
	unsigned int code; /* 0: not said */
	char reason[48];   /* "Conflict", "Expired"…; "" when it was no Status */
	char message[256]; /* cut, control characters replaced */
};

/* From an ERROR event of a watch, whose object is a Status. */
struct kube_frame;
void kube_status_from_frame(const struct kube_frame *f, struct kube_status *ret);

/* Reads a whole Status document. False, and an empty ret, when it is something else (HTML, cut
 * short, another kind). */
bool kube_status_parse(struct str json, struct kube_status *ret);
