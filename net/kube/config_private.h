/* SPDX-License-Identifier: Apache-2.0 */
/* What config.c and kubeconfig.c share. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

/* 0, or -EINVAL for what cannot be sent as a bearer token. */
int kube_token_check(struct str token);
/* Standard alphabet, with padding; blanks and line breaks between are skipped. -EINVAL: something
 * else. */
int base64_decode(struct str s, struct buf *out);
