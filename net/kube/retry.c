/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kube/retry.h"

#include <errno.h>

#include "base/macros.h"
#include "base/num.h"

/* A version that only ever fails is given up after this many tries: a server that was restored from
 * a backup does not know it and does not say so. */
#define FAILURES_BEFORE_NEW_PICTURE 5U
/* A server sends a bookmark about once a minute. One that has not come as far as the version takes
 * it all the same and says nothing until it has, which may be never: the second watch in a row that
 * brings not even a bookmark is the last from that version. (One alone is a dead connection.) */
#define SILENT_BEFORE_NEW_PICTURE 2U

const char *kube_trouble_name(enum kube_trouble t)
{
	static const char *const names[] = {
		[KUBE_TROUBLE_NONE] = "none",
		[KUBE_TROUBLE_UNREACHABLE] = "unreachable",
		[KUBE_TROUBLE_TIMEOUT] = "timeout",
		[KUBE_TROUBLE_TLS] = "tls",
		[KUBE_TROUBLE_PROTOCOL] = "protocol",
		[KUBE_TROUBLE_UNAUTHORIZED] = "unauthorized",
		[KUBE_TROUBLE_FORBIDDEN] = "forbidden",
		[KUBE_TROUBLE_NOT_FOUND] = "not-found",
		[KUBE_TROUBLE_EXPIRED] = "expired",
		[KUBE_TROUBLE_THROTTLED] = "throttled",
		[KUBE_TROUBLE_SERVER] = "server",
		[KUBE_TROUBLE_REFUSED] = "refused",
		[KUBE_TROUBLE_SHORT_WATCH] = "short-watch",
		[KUBE_TROUBLE_LOCAL] = "local",
	};

	return (unsigned int)t < ARRAY_SIZE(names) ? names[t] : "unknown";
}

enum kube_trouble kube_trouble_of(int error, unsigned int status)
{
	switch (-error) {
	case 0:
		break;
	case ETIMEDOUT:
		return KUBE_TROUBLE_TIMEOUT;
	case EKEYREJECTED:
		return KUBE_TROUBLE_TLS;
	case EPROTO:
	case EBADMSG:
	case EMSGSIZE:
	case ENODATA:
		return KUBE_TROUBLE_PROTOCOL;
	case ENOMEM:
	case EMFILE:
	case ENFILE:
	case EINVAL:
		return KUBE_TROUBLE_LOCAL;
	default:
		return KUBE_TROUBLE_UNREACHABLE;
	}
	switch (status) {
	case 401:
		return KUBE_TROUBLE_UNAUTHORIZED;
	case 403:
		return KUBE_TROUBLE_FORBIDDEN;
	case 404:
		return KUBE_TROUBLE_NOT_FOUND;
	case 410:
		return KUBE_TROUBLE_EXPIRED;
	case 429:
	case 503:
		return KUBE_TROUBLE_THROTTLED;
	default:
		break;
	}
	if (status >= 500)
		return KUBE_TROUBLE_SERVER;
	if (status >= 200 && status < 300)
		return KUBE_TROUBLE_NONE;
	/* A redirection is not followed: it would carry the token elsewhere. */
	return status >= 400 ? KUBE_TROUBLE_REFUSED : KUBE_TROUBLE_PROTOCOL;
}

void kube_retry_init(struct kube_retry *r)
{
	*r = (struct kube_retry){
		.lived_usec = KUBE_WATCH_LIVED_USEC,
		.stable_usec = KUBE_WATCH_STABLE_USEC,
	};
	backoff_init(&r->backoff, KUBE_BACKOFF_FIRST_USEC, KUBE_BACKOFF_LAST_USEC);
}

enum kube_phase kube_retry_picture(const struct kube_retry *r, uint64_t now_usec)
{
	return now_usec >= r->watch_list_usec ? KUBE_WATCH_LIST : KUBE_LIST;
}

/* A completed picture alone is no progress: a server that serves lists and fails every watch would
 * be listed for ever at the shortest interval, and lists are what costs it most. */
static bool progressed(const struct kube_retry *r, const struct kube_outcome *o)
{
	if (o->phase != KUBE_WATCH && !o->synced)
		return false;
	return o->lasted_usec >= r->stable_usec ||
	       (o->events > 0 && o->lasted_usec >= r->lived_usec);
}

/* A server without it refuses the parameter, or ignores it and sends no end mark. */
static bool watch_list_not_served(const struct kube_outcome *o)
{
	return o->no_initial_events || (o->error == 0 && (o->status == 400 || o->status == 422));
}

/* It answered and then said nothing: an old one without any object, or a dead connection. */
static bool watch_list_silent(const struct kube_outcome *o)
{
	return o->error == -ETIMEDOUT && o->status == 200;
}

static struct kube_plan wait_for(struct kube_retry *r, const struct kube_outcome *o,
	enum kube_trouble trouble, uint64_t random)
{
	struct kube_plan p = {.trouble = trouble, .delay_usec = backoff_next(&r->backoff, random)};

	if (r->failures < UINT32_MAX)
		r->failures++;
	if (o->retry_after_usec > 0) {
		uint64_t asked =
			backoff_spread(MIN(o->retry_after_usec, KUBE_RETRY_AFTER_MAX_USEC), random);

		p.delay_usec = MAX(p.delay_usec, asked);
	}
	return p;
}

/* After a watch, or after a watch that also brought the picture. */
static struct kube_plan after_watch(struct kube_retry *r, const struct kube_outcome *o,
	enum kube_trouble trouble, uint64_t random)
{
	bool progress = progressed(r, o);
	bool gone = o->version_unknown ||
		    (o->error == 0 && (o->status == 410 || o->status == 400 || o->status == 422));
	bool answered = o->status >= 200 && o->status < 300;

	if (progress) {
		backoff_reset(&r->backoff);
		r->failures = 0;
	}
	if (o->version_unknown)
		trouble = KUBE_TROUBLE_EXPIRED;
	else if (trouble == KUBE_TROUBLE_NONE && !progress)
		trouble = KUBE_TROUBLE_SHORT_WATCH;
	struct kube_plan p = wait_for(r, o, trouble, random);
	if (progress && trouble == KUBE_TROUBLE_NONE)
		r->failures = 0;
	if (o->events > 0)
		r->silent = 0;
	else if (answered && o->error == -ETIMEDOUT)
		r->silent++;
	gone = gone || r->silent >= SILENT_BEFORE_NEW_PICTURE;
	if (gone)
		r->silent = 0;
	p.forget_version = gone || (r->failures >= FAILURES_BEFORE_NEW_PICTURE && o->error == 0 &&
					   o->status >= 400);
	p.phase = p.forget_version ? kube_retry_picture(r, o->ended_usec) : KUBE_WATCH;
	return p;
}

static struct kube_plan after_page(struct kube_retry *r, const struct kube_outcome *o,
	enum kube_trouble trouble, uint64_t random)
{
	struct kube_plan p = {.phase = o->has_continue ? KUBE_LIST_MORE : KUBE_WATCH};

	if (trouble == KUBE_TROUBLE_NONE)
		return p;
	p = wait_for(r, o, trouble, random);
	p.phase = o->phase;
	/* 400: what a token that is no longer understood gets, after an upgrade for instance. */
	if (o->phase == KUBE_LIST_MORE &&
		(trouble == KUBE_TROUBLE_EXPIRED || trouble == KUBE_TROUBLE_REFUSED)) {
		p.phase = KUBE_LIST;
		p.larger_pages = trouble == KUBE_TROUBLE_EXPIRED;
	}
	return p;
}

/* After a watch with initial events that ended before it had brought them all. */
static struct kube_plan after_half_picture(struct kube_retry *r, const struct kube_outcome *o,
	enum kube_trouble trouble, uint64_t random)
{
	if (watch_list_not_served(o))
		r->watch_list_usec =
			r->watch_list_usec == UINT64_MAX
				? UINT64_MAX
				: u64_add_sat(o->ended_usec, KUBE_WATCH_LIST_AGAIN_USEC);
	/* Once and at once: if the list fails too, that one waits. */
	if (watch_list_not_served(o) || watch_list_silent(o))
		return (struct kube_plan){.phase = KUBE_LIST, .forget_version = true};
	if (trouble == KUBE_TROUBLE_NONE)
		trouble = KUBE_TROUBLE_SHORT_WATCH;
	struct kube_plan p = wait_for(r, o, trouble, random);
	p.phase = KUBE_WATCH_LIST;
	p.forget_version = true;
	return p;
}

struct kube_plan kube_retry_next(
	struct kube_retry *r, const struct kube_outcome *o, uint64_t random)
{
	enum kube_trouble trouble = kube_trouble_of(o->error, o->status);

	if (o->phase == KUBE_LIST || o->phase == KUBE_LIST_MORE)
		return after_page(r, o, trouble, random);
	if (o->phase == KUBE_WATCH_LIST && !o->synced)
		return after_half_picture(r, o, trouble, random);
	return after_watch(r, o, trouble, random);
}
