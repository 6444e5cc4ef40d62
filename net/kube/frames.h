/* SPDX-License-Identifier: Apache-2.0 */
/* Finds where objects begin and end in what the API server streams (a watch: one event after the
 * other; a list: the elements of "items"), passes their bytes on as they come and reads the few
 * members that the protocol itself needs. It is no JSON reader: it follows strings and nesting, and
 * leaves it to the reader of each object to judge that object. So an object of any size costs no
 * memory here, and one that is malformed spoils nothing but itself. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum kube_stream {
	KUBE_STREAM_WATCH,  /* {"type":…,"object":{…}} again and again */
	KUBE_STREAM_LIST,   /* {"metadata":{…},"items":[{…},…]} once */
	KUBE_STREAM_OBJECT, /* {…} once: only its members below are of interest */
};

/* What was read of one event or list item. Empty where it was absent, not a scalar, or too long. */
struct kube_frame {
	bool has_object; /* an object came (object_start was called) */
	bool broken;     /* the event ended in the middle of a string, or has two objects */
	char type[16];
	char kind[24];
	char name[254];
	char namespace[64];
	char version[128];
	char initial_events_end[8];
	char code[8]; /* of a Status, and so are these: */
	char reason[48];
	char message[256]; /* cut; anything but printable ASCII is replaced */
};

struct kube_frames_ops {
	void (*object_start)(void *arg);
	void (*object_data)(void *arg, struct str piece);
	/* The event or item is complete. A negative return ends the stream with it. */
	int (*frame)(void *arg, const struct kube_frame *f);
	void *arg;
};

#define KUBE_FRAMES_LEVELS 6U /* how deep members of interest lie, and a bit */
#define KUBE_CONTINUE_MAX_BYTES 2048U

struct kube_frames {
	enum kube_stream stream;
	const struct kube_frames_ops *ops;

	/* of a list, complete when kube_frames_end returned 0 */
	char list_version[128];
	char list_continue[KUBE_CONTINUE_MAX_BYTES];
	bool has_items;

	struct kube_frame frame;
	unsigned int depth;
	unsigned int object_depth; /* of the object being passed on; 0: none is */
	bool done;                 /* the one document of a list or object is complete */
	bool in_string, escaped, in_key;
	uint8_t unicode_left; /* digits of \uXXXX still to come */
	struct {
		uint8_t node;  /* what this object or array is */
		uint8_t value; /* what the value that comes next in it is */
		bool array, wants_key;
	} levels[KUBE_FRAMES_LEVELS];
	char key[32];
	size_t key_n;
	char *capture; /* where the current scalar goes; NULL: nowhere */
	size_t capture_n, capture_max;
	bool capture_whole; /* part of it is worse than nothing */
};

/* ops may be NULL with KUBE_STREAM_OBJECT. */
void kube_frames_init(
	struct kube_frames *f, enum kube_stream stream, const struct kube_frames_ops *ops);
/* The next bytes, cut anywhere. -EBADMSG: this is not such a stream (HTML, garbage, something after
 * the end); -EMSGSIZE: a continue token that cannot be kept; or what frame() returned. After an
 * error it is not fed any more. */
int kube_frames_feed(struct kube_frames *f, struct str piece);
/* The stream ended. 0: in order; -ENODATA: in the middle of something. */
int kube_frames_end(const struct kube_frames *f);
