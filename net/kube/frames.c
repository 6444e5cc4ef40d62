/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kube/frames.h"

#include <errno.h>

#include "base/macros.h"

/* The places of interest: a small tree of member names. */
enum node {
	NOTHING,
	WATCH,
	LIST,
	OBJECT,
	ITEMS,
	LIST_META,
	META,
	ANNOTATIONS,
	/* scalars that are kept */
	TYPE,
	LIST_VERSION,
	LIST_CONTINUE,
	KIND,
	CODE,
	REASON,
	MESSAGE,
	NAME,
	NAMESPACE,
	VERSION,
	INITIAL_EVENTS_END,
};

static const struct {
	struct str key;
	enum node parent, child;
} edges[] = {
	{{"type", 4}, WATCH, TYPE},
	{{"object", 6}, WATCH, OBJECT},
	{{"metadata", 8}, LIST, LIST_META},
	{{"items", 5}, LIST, ITEMS},
	{{"resourceVersion", 15}, LIST_META, LIST_VERSION},
	{{"continue", 8}, LIST_META, LIST_CONTINUE},
	{{"kind", 4}, OBJECT, KIND},
	{{"code", 4}, OBJECT, CODE},
	{{"reason", 6}, OBJECT, REASON},
	{{"message", 7}, OBJECT, MESSAGE},
	{{"metadata", 8}, OBJECT, META},
	{{"name", 4}, META, NAME},
	{{"namespace", 9}, META, NAMESPACE},
	{{"resourceVersion", 15}, META, VERSION},
	{{"annotations", 11}, META, ANNOTATIONS},
	{{"k8s.io/initial-events-end", 25}, ANNOTATIONS, INITIAL_EVENTS_END},
};

static const enum node roots[] = {
	[KUBE_STREAM_WATCH] = WATCH,
	[KUBE_STREAM_LIST] = LIST,
	[KUBE_STREAM_OBJECT] = OBJECT,
};

void kube_frames_init(
	struct kube_frames *f, enum kube_stream stream, const struct kube_frames_ops *ops)
{
	*f = (struct kube_frames){.stream = stream, .ops = ops};
}

static uint8_t child_of(uint8_t parent, struct str key)
{
	for (size_t i = 0; i < ARRAY_SIZE(edges); i++)
		if (edges[i].parent == parent && str_eq(edges[i].key, key))
			return (uint8_t)edges[i].child;
	return NOTHING;
}

/* Where the scalar at a node is kept, if anywhere. */
#define PLACE(member)                                                                           \
	{                                                                                       \
		offsetof(struct kube_frames, member), sizeof(((struct kube_frames *)0)->member) \
	}
static const struct {
	size_t offset, size;
} places[] = {
	[TYPE] = PLACE(frame.type),
	[LIST_VERSION] = PLACE(list_version),
	[LIST_CONTINUE] = PLACE(list_continue),
	[KIND] = PLACE(frame.kind),
	[CODE] = PLACE(frame.code),
	[REASON] = PLACE(frame.reason),
	[MESSAGE] = PLACE(frame.message),
	[NAME] = PLACE(frame.name),
	[NAMESPACE] = PLACE(frame.namespace),
	[VERSION] = PLACE(frame.version),
	[INITIAL_EVENTS_END] = PLACE(frame.initial_events_end),
};

static void capture_start(struct kube_frames *f, uint8_t node)
{
	f->capture = NULL;
	if (places[node].size == 0)
		return;
	f->capture = (char *)f + places[node].offset;
	f->capture[0] = '\0';
	f->capture_n = 0;
	f->capture_max = places[node].size - 1;
	/* Part of a name or a message still tells something, part of a version or a token does not.
	 */
	f->capture_whole = node != MESSAGE && node != NAME;
}

static int capture_char(struct kube_frames *f, char c)
{
	if (!f->capture)
		return 0;
	if (c < ' ' || c > '~')
		c = '?';
	if (f->capture_n < f->capture_max) {
		f->capture[f->capture_n++] = c;
		f->capture[f->capture_n] = '\0';
	} else if (f->capture_whole) {
		bool token = f->capture == f->list_continue;

		f->capture[0] = '\0';
		f->capture = NULL;
		return token ? -EMSGSIZE : 0;
	}
	return 0;
}

static bool shallow(const struct kube_frames *f)
{
	return f->depth > 0 && f->depth <= KUBE_FRAMES_LEVELS;
}

static void open_level(struct kube_frames *f, bool array, size_t *span, size_t at)
{
	uint8_t node = NOTHING;

	if (f->depth == 0)
		node = (uint8_t)roots[f->stream];
	else if (shallow(f))
		node = f->levels[f->depth - 1].value;
	if (f->depth == 0 || (f->stream == KUBE_STREAM_LIST && node == OBJECT))
		f->frame = (struct kube_frame){.has_object = false};
	f->depth++;
	f->capture = NULL;
	if (node == OBJECT && f->stream != KUBE_STREAM_OBJECT && (array || f->frame.has_object)) {
		f->frame.broken = true;
		node = NOTHING;
	} else if (node == OBJECT && f->stream != KUBE_STREAM_OBJECT) {
		f->frame.has_object = true;
		f->object_depth = f->depth;
		*span = at;
		f->ops->object_start(f->ops->arg);
	}
	if (node == ITEMS && array)
		f->has_items = true;
	if (!shallow(f))
		return;
	f->levels[f->depth - 1].node = node;
	f->levels[f->depth - 1].value = node == ITEMS && array ? OBJECT : NOTHING;
	f->levels[f->depth - 1].array = array;
	f->levels[f->depth - 1].wants_key = !array;
}

static void pass_on(const struct kube_frames *f, struct str piece, size_t from, size_t to)
{
	if (f->object_depth > 0 && to > from)
		f->ops->object_data(f->ops->arg, (struct str){piece.p + from, to - from});
}

static int frame_complete(struct kube_frames *f)
{
	return f->ops ? f->ops->frame(f->ops->arg, &f->frame) : 0;
}

static int close_level(struct kube_frames *f, struct str piece, size_t span, size_t at)
{
	bool object_ends = f->depth == f->object_depth;

	if (f->depth == 0)
		return -EBADMSG;
	if (object_ends) {
		pass_on(f, piece, span, at + 1);
		f->object_depth = 0;
	}
	f->depth--;
	f->capture = NULL;
	if (f->depth == 0 && f->stream != KUBE_STREAM_WATCH)
		f->done = true;
	if (f->stream == KUBE_STREAM_LIST ? object_ends : f->depth == 0)
		return frame_complete(f);
	return 0;
}

/* A line break cannot be inside a string: the event was cut and another one follows. Gives this one
 * up and starts anew behind the break. */
static int give_up(struct kube_frames *f, struct str piece, size_t span, size_t at)
{
	if (f->stream != KUBE_STREAM_WATCH)
		return -EBADMSG;
	pass_on(f, piece, span, at);
	f->frame.broken = true;
	f->in_string = f->escaped = false;
	f->unicode_left = 0;
	f->capture = NULL;
	f->object_depth = 0;
	f->depth = 0;
	return frame_complete(f);
}

/* The bytes in which nobody is interested, up to the next that could end the string. */
static size_t skip_plain(const struct kube_frames *f, struct str piece, size_t i)
{
	if (f->in_key || f->capture || f->escaped || f->unicode_left > 0)
		return i;
	while (i < piece.n && piece.p[i] != '"' && piece.p[i] != '\\' && piece.p[i] != '\n')
		i++;
	return i;
}

static int string_char(struct kube_frames *f, char c)
{
	if (f->unicode_left > 0) {
		f->unicode_left--;
		return 0;
	}
	if (f->escaped) {
		f->escaped = false;
		f->unicode_left = c == 'u' ? 4 : 0;
		if (c != '"' && c != '\\' && c != '/')
			c = '?';
	} else if (c == '\\') {
		f->escaped = true;
		return 0;
	} else if (c == '"') {
		f->in_string = false;
		f->capture = NULL;
		return 0;
	}
	if (!f->in_key)
		return capture_char(f, c);
	if (f->key_n < sizeof(f->key))
		f->key[f->key_n++] = c;
	return 0;
}

static void string_starts(struct kube_frames *f)
{
	f->in_string = true;
	f->in_key = false;
	f->capture = NULL;
	if (!shallow(f))
		return;
	if (!f->levels[f->depth - 1].array && f->levels[f->depth - 1].wants_key) {
		f->in_key = true;
		f->key_n = 0;
	} else {
		capture_start(f, f->levels[f->depth - 1].value);
	}
}

/* ',' and ':' */
static void separator(struct kube_frames *f, char c)
{
	f->capture = NULL;
	if (!shallow(f) || f->levels[f->depth - 1].array)
		return;
	f->levels[f->depth - 1].wants_key = c == ',';
	f->levels[f->depth - 1].value =
		c == ',' ? NOTHING
			 : child_of(f->levels[f->depth - 1].node, (struct str){f->key, f->key_n});
}

static int outside_string(struct kube_frames *f, struct str piece, size_t *span, size_t at)
{
	char c = piece.p[at];

	switch (c) {
	case ' ':
	case '\t':
	case '\r':
	case '\n':
		f->capture = NULL; /* ends a number */
		return 0;
	case '{':
	case '[':
		if (f->done || (f->depth == 0 && c == '['))
			return -EBADMSG;
		open_level(f, c == '[', span, at);
		return 0;
	case '}':
	case ']':
		return close_level(f, piece, *span, at);
	default:
		break;
	}
	if (f->depth == 0)
		return -EBADMSG;
	if (c == '"') {
		string_starts(f);
	} else if (c == ',' || c == ':') {
		separator(f, c);
	} else if (shallow(f) && !f->levels[f->depth - 1].wants_key) {
		if (!f->capture)
			capture_start(f, f->levels[f->depth - 1].value);
		return capture_char(f, c);
	}
	return 0;
}

int kube_frames_feed(struct kube_frames *f, struct str piece)
{
	size_t span = 0; /* where the part of this piece that belongs to the object begins */
	int r = 0;

	for (size_t i = 0; i < piece.n && r == 0; i++) {
		if (!f->in_string) {
			r = outside_string(f, piece, &span, i);
			continue;
		}
		i = skip_plain(f, piece, i);
		if (i < piece.n)
			r = piece.p[i] == '\n' ? give_up(f, piece, span, i)
					       : string_char(f, piece.p[i]);
	}
	if (r == 0)
		pass_on(f, piece, span, piece.n);
	return r;
}

int kube_frames_end(const struct kube_frames *f)
{
	if (f->stream == KUBE_STREAM_WATCH)
		return f->depth == 0 ? 0 : -ENODATA;
	return f->done ? 0 : -ENODATA;
}
