/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of the reflector share: reflector.c asks, reflector_stream.c hears. */
#pragma once

#include "net/kube/frames.h"
#include "net/kube/reflector.h"

struct kube_reflector {
	struct kube_client *client;
	struct kube_consumer consumer;
	struct kube_reflector_options o;
	char *path, *accept;
	char *selectors; /* "&fieldSelector=…&labelSelector=…", encoded */
	struct loop_timer timer;
	const struct clock *clock;
	struct kube_retry retry;
	struct kube_reflector_stats stats;

	/* the request under way, or the one that the timer will start */
	enum kube_phase phase;
	struct kube_call *call;
	struct kube_frames frames;
	struct kube_frames_ops frames_ops;
	struct kube_outcome outcome;
	uint64_t started_usec;
	struct err stream_error; /* what an ERROR event said, or why we gave the stream up */

	/* the object under way */
	size_t object_bytes;
	bool object_open; /* start was called, neither end nor abort */
	int object_error; /* why it is skipped, with the consumer's words */
	struct err object_text;
	uint64_t unframed_bytes; /* since the last event or item was complete */
	bool framed;             /* one was, in the piece that is being read */

	char version[128]; /* of the last event; "": none that can be used */
	char *token;       /* to the next page */
	unsigned int page;
	bool in_picture; /* begin was called, synced was not */
	bool destroyed, busy;
};

/* The callbacks of the stream that is being read. */
void reflector_stream_init(struct kube_reflector *r);
/* Before each request: what is kept of a stream is forgotten. */
void reflector_stream_start(struct kube_reflector *r, bool list);
/* The next bytes: 1 when an event or item was completed by them, 0, or -errno with stream_error
 * set. */
int reflector_stream_feed(struct kube_reflector *r, struct str piece);
/* An object that is under way will not be completed. */
void reflector_stream_abort(struct kube_reflector *r);
/* All that there is has been told. */
void reflector_picture_complete(struct kube_reflector *r);
void reflector_remember_version(struct kube_reflector *r, const char *version);
/* Whether an answer to a watch says that the server has not come as far as the version. */
bool reflector_version_unknown(unsigned int status, const char *message);
