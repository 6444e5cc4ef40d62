/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of the API server: any cutting gives the same events, and what is passed on lies in the
 * input. The first byte chooses the kind of stream and where it is cut. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/kube/frames.h"
#include "net/kube/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	uint64_t hash;
	size_t object_bytes, frames;
	bool open;
};

static void mix(struct seen *s, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		s->hash = (s->hash ^ ((const uint8_t *)p)[i]) * UINT64_C(1099511628211);
}

static void on_start(void *arg)
{
	((struct seen *)arg)->open = true;
	mix(arg, "s", 1);
}

static void on_data(void *arg, struct str piece)
{
	struct seen *s = arg;

	if (!s->open || piece.n == 0)
		abort();
	s->object_bytes += piece.n;
	mix(s, piece.p, piece.n);
}

static int on_frame(void *arg, const struct kube_frame *f)
{
	struct seen *s = arg;

	if (s->open && !f->has_object)
		abort();
	s->open = false;
	s->frames++;
	mix(s, f->type, strlen(f->type) + 1);
	mix(s, f->name, strlen(f->name) + 1);
	mix(s, f->namespace, strlen(f->namespace) + 1);
	mix(s, f->version, strlen(f->version) + 1);
	mix(s, f->broken ? "b" : "w", 1);
	return 0;
}

static int run(enum kube_stream stream, struct str text, size_t step, struct seen *s)
{
	const struct kube_frames_ops ops = {on_start, on_data, on_frame, s};
	struct kube_frames f;
	int r = 0;

	*s = (struct seen){.hash = UINT64_C(14695981039346656037)};
	kube_frames_init(&f, stream, &ops);
	for (size_t at = 0; at < text.n && r == 0; at += step)
		r = kube_frames_feed(
			&f, (struct str){text.p + at, text.n - at < step ? text.n - at : step});
	return r < 0 ? r : kube_frames_end(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kube_status status;
	struct seen whole, cut;
	struct str text;
	enum kube_stream stream;
	int r;

	if (size == 0)
		return 0;
	text = (struct str){(const char *)data + 1, size - 1};
	stream = data[0] & 1 ? KUBE_STREAM_LIST : KUBE_STREAM_WATCH;
	r = run(stream, text, text.n + 1, &whole);
	if (run(stream, text, 1 + (data[0] >> 1) % 31, &cut) != r || whole.frames != cut.frames)
		abort();
	/* After an error the last piece may have been passed on in part. */
	if (r == 0 && (whole.hash != cut.hash || whole.object_bytes > text.n))
		abort();
	(void)kube_status_parse(text, &status);
	return 0;
}
