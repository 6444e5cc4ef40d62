/* SPDX-License-Identifier: Apache-2.0 */
/* Reading JSON as it arrives, in any pieces, without keeping it. Who reads a kind of object names
 * the paths it wants; only those reach it, everything else is checked for syntax and costs next to
 * nothing.
 *
 *     static const struct json_path paths[] = {
 *             {"items[]", ITEM},                                   start and end of each
 *             {"items[].metadata.name", NAME},
 *             {"items[].metadata.annotations.*", ANNOTATION},      any key: it is in value->key
 *             {"items[].metadata.labels['example.org/x']", LABEL}, a key with dots
 *     };
 *
 * The path "" is the document itself. Text may hold several documents, one after the other.
 *
 * Limits are kept whatever the input: a longer string is cut and says so, a deeper subtree is left
 * out and noted, a longer document or number is an error, and so is memory that cannot be had. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define JSON_KEY_MAX \
	320U /* bytes; longer keys match no path. The longest key of Kubernetes has 317 */
#define JSON_NUMBER_MAX 512U /* characters of a number */

enum json_type {
	JSON_NULL,
	JSON_BOOL,
	JSON_NUMBER, /* text is the number as written */
	JSON_STRING, /* text is the string, escapes resolved, valid UTF-8 */
	JSON_OBJECT, /* the start of one; what is in it follows */
	JSON_OBJECT_END,
	JSON_ARRAY,
	JSON_ARRAY_END,
};

/* Valid during the call that gets it, no longer. */
struct json_value {
	enum json_type type;
	bool boolean;
	bool cut; /* text is only the beginning */
	struct str text;
	struct str
		key; /* what the path's '*' stands for (its last one; at an END, the last seen) */
};

struct json_path {
	const char *path;
	unsigned int id;
};

/* Returned from value() at JSON_OBJECT or JSON_ARRAY: nothing of it is wanted, not even its end. */
#define JSON_SKIP 1

/* What one reader wants: constant, shared by all that read the same kind. */
struct json_spec {
	const struct json_path *paths;
	size_t n_paths;
	/* Called for each value whose path is named. 0, JSON_SKIP, or -errno to give up: that
	 * document, or everything. */
	int (*value)(void *arg, unsigned int id, const struct json_value *v);
	/* For streams of one document per line (a watch). Without it the first error ends the
	 * reading. With it, a bad document (or one that is not over with its line) is reported
	 * here, and reading goes on with the next line. */
	void (*bad_document)(void *arg, int r, const struct err *e);
	/* The paths are below this one ("items[]"), but for those in outer; NULL: the document. */
	const char *prefix;
	const struct json_path *outer;
	size_t n_outer;
	bool one_document;      /* a second one is an error */
	size_t string_max;      /* bytes of a string, 0: 64 KiB */
	size_t document_max;    /* bytes of a document, 0: no limit */
	unsigned int depth_max; /* 0: 128 */
};

struct json_reader;

/* spec must outlive the reader. NULL when memory is short. */
struct json_reader *json_reader_create(const struct json_spec *spec, void *arg);
void json_reader_destroy(struct json_reader *r);
/* Forgets all, ready for another text. */
void json_reader_reset(struct json_reader *r);

/* The next piece, of any size. 0; -EBADMSG: not JSON (e says at which byte); -EMSGSIZE: over a
 * limit; -ENOMEM; or what value() returned. After an error the same is returned until
 * json_reader_reset. Always 0 when the spec has bad_document, which then gets the errors. */
int json_reader_feed(struct json_reader *r, const char *p, size_t n, struct err *e);
/* The text is over. -EBADMSG if that is in the middle of a document. */
int json_reader_end(struct json_reader *r, struct err *e);

/* Whole documents seen since creation or reset. */
uint64_t json_reader_documents(const struct json_reader *r);
/* True if a subtree was left out for its depth since the last call. */
bool json_reader_take_too_deep(struct json_reader *r);

/* One text with one document, at once. -ENODATA: there is none. */
int json_read(const struct json_spec *spec, void *arg, struct str text, struct err *e);
