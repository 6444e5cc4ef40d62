/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, timers and bytes between a retry plan (net/kube/retry.c) and a consumer. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/macros.h"
#include "net/kube/reflector_private.h"

#define URL_MAX_BYTES KUBE_PATH_MAX_BYTES

static uint64_t kernel_random(void *arg)
{
	uint64_t v = 0;

	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) != (ssize_t)sizeof(v))
		v = clock_mono_usec(&clock_system) *
		    UINT64_C(0x9e3779b97f4a7c15); /* only spreads, keeps no secret */
	return v;
}

static uint64_t chance(const struct kube_reflector *r)
{
	return r->o.random(r->o.random_arg);
}

/* Requests */

static void begin_picture(struct kube_reflector *r)
{
	r->in_picture = true;
	r->stats.synced = false;
	r->stats.pictures++;
	free(TAKE_PTR(r->token));
	r->version[0] = '\0';
	r->consumer.begin(r->consumer.arg);
}

static void request_url(struct kube_reflector *r, struct buf *url)
{
	(void)buf_printf(url, "%s%c", r->path, strchr(r->path, '?') ? '&' : '?');
	switch (r->phase) {
	case KUBE_LIST:
	case KUBE_LIST_MORE:
		(void)buf_printf(url, "limit=%u", r->page);
		if (r->phase == KUBE_LIST_MORE && r->token) {
			(void)buf_puts(url, "&continue=");
			kube_path_escape(url, str_of(r->token));
		}
		break;
	case KUBE_WATCH_LIST:
		(void)buf_puts(
			url, "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
		break;
	case KUBE_WATCH:
		(void)buf_puts(url, "watch=1&resourceVersion=");
		kube_path_escape(url, str_of(r->version));
		break;
	}
	if (r->phase == KUBE_WATCH_LIST || r->phase == KUBE_WATCH)
		(void)buf_printf(url, "&allowWatchBookmarks=true&timeoutSeconds=%u",
			r->o.watch_seconds + (unsigned int)(chance(r) % r->o.watch_seconds));
	(void)buf_puts(url, r->selectors);
}

static bool is_list(const struct kube_reflector *r)
{
	return r->phase == KUBE_LIST || r->phase == KUBE_LIST_MORE;
}

static void on_answered(void *arg)
{
	struct kube_reflector *r = arg;

	if (is_list(r))
		return;
	r->stats.connected = true;
	if (r->consumer.connected)
		r->consumer.connected(r->consumer.arg);
}

/* Only an event or item that came whole is a sign of life, so that a stream that drips is as dead
 * as one that is silent. */
static int on_data(void *arg, struct str piece)
{
	return reflector_stream_feed(arg, piece);
}

/* A page came whole: what it says about the next step. -errno where it was no list. */
static int page_complete(struct kube_reflector *r)
{
	if (kube_frames_end(&r->frames) < 0)
		return err_set(&r->stream_error, ENODATA, "list of %s%s: cut",
			kube_client_server(r->client), r->path);
	if (!r->frames.list_version[0])
		return err_set(&r->stream_error, EBADMSG, "list of %s%s: the answer is no list",
			kube_client_server(r->client), r->path);
	free(TAKE_PTR(r->token));
	if (r->frames.list_continue[0]) {
		r->token = str_dup(str_of(r->frames.list_continue));
		if (!r->token)
			return err_set(&r->stream_error, ENOMEM, "out of memory");
		r->outcome.has_continue = true;
		return 0;
	}
	reflector_remember_version(r, r->frames.list_version);
	reflector_picture_complete(r);
	return 0;
}

/* What ended the request, from the answer and from what the stream itself said. */
static void settle_outcome(struct kube_reflector *r, const struct kube_answer *a)
{
	struct kube_outcome *o = &r->outcome;
	/* Ended by ourselves because of an event: not an error of the connection. */
	bool ours = a->error == -ECANCELED;

	o->phase = r->phase;
	o->ended_usec = clock_mono_usec(r->clock);
	o->lasted_usec = o->ended_usec - r->started_usec;
	o->retry_after_usec = a->retry_after_usec;
	o->error = ours ? 0 : a->error;
	if (o->status == 0)
		o->status = a->status;
	if (reflector_version_unknown(o->status, a->kube_status.message))
		o->version_unknown = true;
	if (o->error != 0 || o->status >= 300 || ours)
		return;
	if (is_list(r))
		o->error = page_complete(r);
	else if (kube_frames_end(&r->frames) < 0)
		o->error = err_set(&r->stream_error, ECONNRESET,
			"watch of %s%s: cut in the middle of an event",
			kube_client_server(r->client), r->path);
}

static void report(struct kube_reflector *r, const struct kube_plan *plan, const char *text)
{
	struct err e;

	r->stats.troubles[plan->trouble]++;
	if (plan->trouble == KUBE_TROUBLE_NONE || !r->consumer.trouble)
		return;
	if (r->stream_error.text[0])
		text = r->stream_error.text;
	else if (plan->trouble == KUBE_TROUBLE_SHORT_WATCH) {
		(void)err_set(&e, EAGAIN, "watch of %s%s: the server ended it at once and in order",
			kube_client_server(r->client), r->path);
		text = e.text;
	}
	r->consumer.trouble(r->consumer.arg, plan->trouble, text, plan->delay_usec);
}

static void reflector_free(struct kube_reflector *r);

static void follow(struct kube_reflector *r, const struct kube_plan *plan)
{
	bool picture = plan->forget_version || (plan->phase == KUBE_WATCH && !r->version[0]);

	r->phase = plan->phase;
	if (picture && plan->phase != KUBE_LIST)
		r->phase = kube_retry_picture(&r->retry, clock_mono_usec(r->clock));
	if (plan->larger_pages)
		r->page = MIN(r->page * 2, KUBE_LIST_PAGE_MAX);
	loop_timer_set(&r->timer, plan->delay_usec);
}

static void on_done(void *arg, const struct kube_answer *a)
{
	struct kube_reflector *r = arg;

	r->call = NULL;
	r->busy = true;
	reflector_stream_abort(r);
	r->stats.connected = false;
	settle_outcome(r, a);
	if (!r->destroyed) {
		struct kube_plan plan = kube_retry_next(&r->retry, &r->outcome, chance(r));

		follow(r, &plan);
		report(r, &plan, a->text);
	}
	r->busy = false;
	if (r->destroyed)
		reflector_free(r);
}

static int start_request(struct kube_reflector *r, struct err *e)
{
	struct buf url = BUF_INIT(URL_MAX_BYTES);
	bool list = is_list(r);
	struct kube_request request = {
		.method = KUBE_GET,
		.accept = r->accept,
		.compressed = list,
		.timeout_usec = list ? r->o.list_timeout_usec : UINT64_MAX,
		.idle_timeout_usec =
			r->phase == KUBE_WATCH ? r->o.watch_idle_usec : r->o.picture_idle_usec,
		.answered = on_answered,
		.data = on_data,
		.done = on_done,
		.arg = r,
	};
	int error;

	reflector_stream_start(r, list);
	r->started_usec = clock_mono_usec(r->clock);
	request_url(r, &url);
	request.path = url.error ? NULL : url.p;
	if (list)
		r->stats.lists++;
	else
		r->stats.watches++;
	error = url.error ? err_set(e, -url.error, "%s: the request is too long", r->path)
			  : kube_client_start(r->client, &request, &r->call, e);
	buf_finish(&url);
	return error;
}

static void start(void *arg)
{
	struct kube_reflector *r = arg;
	struct err e = {.text = ""};
	int error;

	if (r->phase == KUBE_WATCH_LIST || r->phase == KUBE_LIST)
		begin_picture(r);
	if (r->destroyed)
		return;
	error = start_request(r, &e);
	if (error < 0)
		on_done(r, &(struct kube_answer){
				   .error = error == -EMSGSIZE ? -EINVAL : error, .text = e.text});
}

/* Life */

static int escape_selectors(struct kube_reflector *r)
{
	struct buf b = BUF_INIT(URL_MAX_BYTES);
	int error = 0;

	if (r->o.field_selector) {
		(void)buf_puts(&b, "&fieldSelector=");
		kube_path_escape(&b, str_of(r->o.field_selector));
	}
	if (r->o.label_selector) {
		(void)buf_puts(&b, "&labelSelector=");
		kube_path_escape(&b, str_of(r->o.label_selector));
	}
	error = b.error;
	r->selectors = error ? NULL : str_dup(buf_str(&b));
	buf_finish(&b);
	return error ? error : r->selectors ? 0 : -ENOMEM;
}

static void set_defaults(struct kube_reflector *r)
{
	struct kube_reflector_options *o = &r->o;

#define OR(value, ordinary) ((value) ? (value) : (ordinary))
	o->object_max_bytes = OR(o->object_max_bytes, KUBE_OBJECT_MAX_BYTES);
	o->page = OR(o->page, KUBE_LIST_PAGE);
	o->watch_idle_usec = OR(o->watch_idle_usec, KUBE_WATCH_IDLE_USEC);
	o->picture_idle_usec = OR(o->picture_idle_usec, KUBE_PICTURE_IDLE_USEC);
	o->list_timeout_usec = OR(o->list_timeout_usec, KUBE_LIST_TIMEOUT_USEC);
	o->watch_seconds = OR(o->watch_seconds, KUBE_WATCH_SECONDS);
	o->random = OR(o->random, kernel_random);
	kube_retry_init(&r->retry);
	backoff_init(&r->retry.backoff, OR(o->backoff_first_usec, KUBE_BACKOFF_FIRST_USEC),
		OR(o->backoff_last_usec, KUBE_BACKOFF_LAST_USEC));
	r->retry.lived_usec = OR(o->lived_usec, r->retry.lived_usec);
	r->retry.stable_usec = OR(o->stable_usec, r->retry.stable_usec);
#undef OR
	r->retry.watch_list_usec = o->no_watch_list ? UINT64_MAX : 0;
	r->page = o->page;
	r->phase = kube_retry_picture(&r->retry, clock_mono_usec(r->clock));
}

static void on_timer_closed(void *arg)
{
	struct kube_reflector *r = arg;

	free(r->path);
	free(r->accept);
	free(r->selectors);
	free(r->token);
	free(r);
}

static void reflector_free(struct kube_reflector *r)
{
	if (r->timer.open)
		loop_timer_close(&r->timer, on_timer_closed);
	else
		on_timer_closed(r);
}

int kube_reflector_create(struct kube_reflector **ret_r, struct loop *l, struct kube_client *client,
	const struct kube_reflector_options *options, const struct kube_consumer *consumer,
	struct err *e)
{
	struct kube_reflector *r = calloc(1, sizeof(*r));
	int error;

	if (!r)
		return err_set(e, ENOMEM, "out of memory");
	r->client = client;
	r->consumer = *consumer;
	r->o = *options;
	r->clock = kube_client_clock(client);
	reflector_stream_init(r);
	set_defaults(r);
	error = escape_selectors(r);
	r->path = str_dup(str_of(options->path));
	r->accept = options->accept ? str_dup(str_of(options->accept)) : NULL;
	if (error == 0 && (!r->path || (options->accept && !r->accept)))
		error = -ENOMEM;
	if (error == 0)
		error = loop_timer_init(l, &r->timer, start, r);
	if (error < 0) {
		(void)err_set(e, -error, "watch of %s: %s", options->path, strerror(-error));
		reflector_free(r);
		return error;
	}
	loop_timer_set(
		&r->timer, options->start_spread_usec ? chance(r) % options->start_spread_usec : 0);
	*ret_r = r;
	return 0;
}

void kube_reflector_destroy(struct kube_reflector *r)
{
	if (!r || r->destroyed)
		return;
	r->destroyed = true;
	reflector_stream_abort(r);
	if (r->busy)
		return;
	if (r->call)
		kube_call_cancel(TAKE_PTR(r->call));
	reflector_free(r);
}

const struct kube_reflector_stats *kube_reflector_stats(const struct kube_reflector *r)
{
	return &r->stats;
}
