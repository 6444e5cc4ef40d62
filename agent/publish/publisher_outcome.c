/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer means, and how patient it makes. */
#include <errno.h>

#include "agent/publish/publisher_inner.h"

static const char *const names[PUBLISHER_OUTCOMES] = {
	[PUBLISHER_OK] = "ok",
	[PUBLISHER_UNREACHABLE] = "unreachable",
	[PUBLISHER_TIMEOUT] = "timeout",
	[PUBLISHER_TLS] = "tls",
	[PUBLISHER_PROTOCOL] = "protocol",
	[PUBLISHER_UNAUTHORIZED] = "unauthorized",
	[PUBLISHER_FORBIDDEN] = "forbidden",
	[PUBLISHER_NOT_FOUND] = "not-found",
	[PUBLISHER_CONFLICT] = "conflict",
	[PUBLISHER_TOO_LARGE] = "too-large",
	[PUBLISHER_INVALID] = "invalid",
	[PUBLISHER_THROTTLED] = "throttled",
	[PUBLISHER_SERVER] = "server",
	[PUBLISHER_REFUSED] = "refused",
	[PUBLISHER_LOCAL] = "local",
};

const char *publisher_outcome_name(enum publisher_outcome o)
{
	return (unsigned int)o < PUBLISHER_OUTCOMES ? names[o] : "unknown";
}

/* What passes by itself is tried again soon; what somebody has to mend, less and less often.
 * LOCAL: memory may have run out while the answer was read. */
const struct publisher_patience publisher_patience[PUBLISHER_OUTCOMES] = {
	[PUBLISHER_UNREACHABLE] = {USEC_PER_SEC, USEC_PER_MINUTE, true},
	[PUBLISHER_TIMEOUT] = {USEC_PER_SEC, USEC_PER_MINUTE, true},
	[PUBLISHER_TLS] = {5 * USEC_PER_SEC, 5 * USEC_PER_MINUTE, false},
	[PUBLISHER_PROTOCOL] = {5 * USEC_PER_SEC, 5 * USEC_PER_MINUTE, true},
	[PUBLISHER_UNAUTHORIZED] = {2 * USEC_PER_SEC, 2 * USEC_PER_MINUTE, false},
	[PUBLISHER_FORBIDDEN] = {10 * USEC_PER_SEC, 10 * USEC_PER_MINUTE, false},
	[PUBLISHER_NOT_FOUND] = {5 * USEC_PER_SEC, USEC_PER_MINUTE, false},
	[PUBLISHER_CONFLICT] = {USEC_PER_SEC, USEC_PER_MINUTE, false},
	[PUBLISHER_TOO_LARGE] = {USEC_PER_SEC, 10 * USEC_PER_MINUTE, false},
	[PUBLISHER_INVALID] = {USEC_PER_SEC, 10 * USEC_PER_MINUTE, false},
	[PUBLISHER_THROTTLED] = {USEC_PER_SEC, 2 * USEC_PER_MINUTE, false},
	[PUBLISHER_SERVER] = {USEC_PER_SEC, 2 * USEC_PER_MINUTE, true},
	[PUBLISHER_REFUSED] = {10 * USEC_PER_SEC, 10 * USEC_PER_MINUTE, false},
	[PUBLISHER_LOCAL] = {USEC_PER_SEC, USEC_PER_MINUTE, true},
};

static enum publisher_outcome of_error(int error)
{
	switch (error) {
	case -ETIMEDOUT:
		return PUBLISHER_TIMEOUT;
	case -EKEYREJECTED:
		return PUBLISHER_TLS;
	case -EPROTO:
	case -EBADMSG:
	case -EMSGSIZE:
	case -EINVAL:
		return PUBLISHER_PROTOCOL;
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
		return PUBLISHER_LOCAL;
	default:
		return PUBLISHER_UNREACHABLE;
	}
}

/* "metadata.annotations: Too long: must have at most 262144 bytes" (262144 characters before 1.31)
 */
static bool says_too_long(const struct kube_status *s)
{
	return strcasestr(s->message, "annotations") &&
	       (strcasestr(s->message, "too long") || strcasestr(s->message, "262144"));
}

enum publisher_outcome publisher_outcome_of(const struct kube_answer *a)
{
	if (a->error)
		return of_error(a->error);
	if (a->status >= 200 && a->status < 300)
		return PUBLISHER_OK;
	switch (a->status) {
	case 401:
		return PUBLISHER_UNAUTHORIZED;
	case 403:
		return PUBLISHER_FORBIDDEN;
	case 404:
		return PUBLISHER_NOT_FOUND;
	case 409:
		return PUBLISHER_CONFLICT;
	case 413:
		return PUBLISHER_TOO_LARGE;
	case 400:
	case 422:
		return says_too_long(&a->kube_status) ? PUBLISHER_TOO_LARGE : PUBLISHER_INVALID;
	case 408:
		return PUBLISHER_TIMEOUT;
	case 429:
		return PUBLISHER_THROTTLED;
	default:
		return a->status >= 500 ? PUBLISHER_SERVER : PUBLISHER_REFUSED;
	}
}
