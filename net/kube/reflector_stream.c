/* SPDX-License-Identifier: Apache-2.0 */
/* What the API server streams, told to the consumer: objects piece by piece, bookmarks, errors. */
#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "base/num.h"
#include "net/kube/reflector_private.h"

/* An object that is skipped for its size still has to go by; one that never ends is not waited for.
 */
#define UNFRAMED_MAX_FACTOR 32U

const char *kube_skip_name(enum kube_skip s)
{
	static const char *const names[] = {
		[KUBE_SKIP_TOO_LARGE] = "too-large",
		[KUBE_SKIP_REFUSED] = "refused",
		[KUBE_SKIP_MALFORMED] = "malformed",
	};

	return (unsigned int)s < ARRAY_SIZE(names) ? names[s] : "unknown";
}

static void skip(
	struct kube_reflector *r, enum kube_skip why, const struct kube_frame *f, const char *text)
{
	const struct kube_meta meta = {f->namespace, f->name, f->version};
	struct err message;

	r->stats.skipped[why]++;
	if (!r->consumer.skipped)
		return;
	(void)err_set(&message, EINVAL, "%s: %s%s%s is left out: %s", r->path, f->namespace,
		f->namespace[0] ? "/" : "",
		f->name[0] ? f->name : "an object whose name did not come", text);
	r->consumer.skipped(r->consumer.arg, why, &meta, message.text);
}

void reflector_stream_abort(struct kube_reflector *r)
{
	if (r->object_open)
		r->consumer.object_abort(r->consumer.arg);
	r->object_open = false;
}

/* Bookmarks and errors carry objects too, and a picture's bookmarks may come early: the type says,
 * and it comes first in all that the API server writes. Where it does not, the consumer is told by
 * abort. */
static bool is_for_consumer(const struct kube_reflector *r)
{
	const char *type = r->frames.frame.type;

	return r->frames.stream == KUBE_STREAM_LIST ||
	       (strcmp(type, "BOOKMARK") != 0 && strcmp(type, "ERROR") != 0);
}

static void on_object_start(void *arg)
{
	struct kube_reflector *r = arg;

	r->object_bytes = 0;
	r->object_error = 0;
	r->object_text.text[0] = '\0';
	r->object_open = is_for_consumer(r) && !r->destroyed;
	if (r->object_open)
		r->consumer.object_start(r->consumer.arg);
}

static void on_object_data(void *arg, struct str piece)
{
	struct kube_reflector *r = arg;

	r->object_bytes += piece.n;
	if (!r->object_open)
		return;
	if (r->object_bytes > r->o.object_max_bytes)
		r->object_error = -EMSGSIZE;
	else
		r->object_error = r->consumer.object_data(r->consumer.arg, piece, &r->object_text);
	if (r->object_error < 0)
		reflector_stream_abort(r);
}

void reflector_remember_version(struct kube_reflector *r, const char *version)
{
	if (version[0])
		(void)str_copy(r->version, sizeof(r->version), str_of(version));
}

/* 504 Timeout, with words that clients go by: the API's machine-readable cause came later. */
bool reflector_version_unknown(unsigned int status, const char *message)
{
	return status == 504 && strcasestr(message, "too large resource version");
}

/* Versions of one kind of object are decimal numbers that only grow. What was not a number is not
 * compared. The initial events of a picture come in any order. */
static int check_version(struct kube_reflector *r, const char *version)
{
	uint64_t was, is;

	if (r->in_picture || r->frames.stream != KUBE_STREAM_WATCH ||
		parse_u64(str_of(r->version), &was) < 0 || parse_u64(str_of(version), &is) < 0 ||
		is >= was)
		return 0;
	r->outcome.version_unknown = true;
	return err_set(&r->stream_error, ECANCELED,
		"watch of %s%s: the resource version went back from %s to %s: the server was "
		"restored from a backup, so all is read anew",
		kube_client_server(r->client), r->path, r->version, version);
}

void reflector_picture_complete(struct kube_reflector *r)
{
	r->in_picture = false;
	r->stats.synced = true;
	r->stats.syncs++;
	r->outcome.synced = true;
	if (r->call)
		kube_call_set_idle_timeout(r->call, r->o.watch_idle_usec);
	r->consumer.synced(r->consumer.arg);
}

static int on_bookmark(struct kube_reflector *r, const struct kube_frame *f)
{
	int error = check_version(r, f->version);

	if (error < 0)
		return error;
	r->stats.bookmarks++;
	reflector_remember_version(r, f->version);
	if (!r->in_picture)
		r->outcome.events++;
	else if (strcmp(f->initial_events_end, "true") == 0)
		reflector_picture_complete(r);
	else
		r->outcome.no_initial_events = true;
	return 0;
}

/* The server ends the watch, in a 200 answer. */
static int on_error_event(struct kube_reflector *r, const struct kube_frame *f)
{
	struct kube_status status;

	kube_status_from_frame(f, &status);
	r->outcome.status = status.code >= 400 ? status.code : 500;
	r->outcome.version_unknown = reflector_version_unknown(r->outcome.status, status.message);
	return err_set(&r->stream_error, ECANCELED, "watch of %s%s: the server ended it: %u %s: %s",
		kube_client_server(r->client), r->path, r->outcome.status, status.reason,
		status.message);
}

static bool event_of(const struct kube_frame *f, enum kube_event *ret)
{
	static const char *const names[] = {
		[KUBE_ADDED] = "ADDED", [KUBE_MODIFIED] = "MODIFIED", [KUBE_DELETED] = "DELETED"};

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(f->type, names[i]) == 0) {
			*ret = (enum kube_event)i;
			return true;
		}
	return false;
}

static void on_object(struct kube_reflector *r, enum kube_event event, const struct kube_frame *f)
{
	const struct kube_meta meta = {f->namespace, f->name, f->version};
	int error = r->object_error;

	if (r->object_open) {
		r->object_open = false;
		error = r->consumer.object_end(r->consumer.arg, event, &meta, &r->object_text);
	}
	if (error == -EMSGSIZE && r->object_bytes > r->o.object_max_bytes)
		skip(r, KUBE_SKIP_TOO_LARGE, f, "it is larger than what is taken here");
	else if (error < 0)
		skip(r, KUBE_SKIP_REFUSED, f, err_text(&r->object_text, error));
	else
		r->stats.events++;
	if (!r->in_picture)
		r->outcome.events++;
	if (r->frames.stream == KUBE_STREAM_WATCH)
		reflector_remember_version(r, f->version);
}

static int on_frame(void *arg, const struct kube_frame *f)
{
	struct kube_reflector *r = arg;
	enum kube_event event = KUBE_ADDED;
	bool known = r->frames.stream == KUBE_STREAM_LIST || event_of(f, &event);
	int error = 0;

	if (known && f->has_object && !f->broken && (error = check_version(r, f->version)) < 0) {
		reflector_stream_abort(r);
	} else if (known && f->has_object && !f->broken) {
		on_object(r, event, f);
	} else {
		reflector_stream_abort(r);
		if (!f->broken && strcmp(f->type, "BOOKMARK") == 0)
			error = on_bookmark(r, f);
		else if (!f->broken && strcmp(f->type, "ERROR") == 0)
			error = on_error_event(r, f);
		else
			skip(r, KUBE_SKIP_MALFORMED, f,
				f->broken ? "the event is cut" : "not an event of a watch");
	}
	r->object_bytes = 0;
	r->unframed_bytes = 0;
	r->framed = true;
	/* An old server that takes the parameter for nothing shows itself by its first ordinary
	 * bookmark. */
	if (error == 0 && r->outcome.no_initial_events)
		error = err_set(&r->stream_error, ECANCELED,
			"watch of %s%s: the server has no initial events",
			kube_client_server(r->client), r->path);
	return r->destroyed ? -ECANCELED : error;
}

void reflector_stream_init(struct kube_reflector *r)
{
	r->frames_ops = (struct kube_frames_ops){.object_start = on_object_start,
		.object_data = on_object_data,
		.frame = on_frame,
		.arg = r};
}

void reflector_stream_start(struct kube_reflector *r, bool list)
{
	kube_frames_init(&r->frames, list ? KUBE_STREAM_LIST : KUBE_STREAM_WATCH, &r->frames_ops);
	r->outcome = (struct kube_outcome){.phase = r->phase};
	r->stream_error.text[0] = '\0';
	r->object_bytes = 0;
	r->unframed_bytes = 0;
}

int reflector_stream_feed(struct kube_reflector *r, struct str piece)
{
	const char *why = "the answer is not what the API server sends";
	int error;

	r->stats.heard_mono_usec = clock_mono_usec(r->clock);
	r->framed = false;
	r->unframed_bytes += piece.n;
	error = kube_frames_feed(&r->frames, piece);
	if (error == -EMSGSIZE)
		why = "the continue token is too long";
	if (error == 0 && r->unframed_bytes / UNFRAMED_MAX_FACTOR > r->o.object_max_bytes) {
		error = -EMSGSIZE;
		why = "an object has no end";
	}
	if (error < 0 && !r->stream_error.text[0])
		(void)err_set(&r->stream_error, -error, "%s%s: %s", kube_client_server(r->client),
			r->path, why);
	return error < 0 ? error : r->framed;
}
