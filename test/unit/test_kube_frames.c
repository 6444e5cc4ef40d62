/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/buf.h"
#include "base/macros.h"
#include "net/kube/frames.h"
#include "net/kube/status.h"
#include "unit.h"

/* What comes out of a stream, as text: "ADDED ns/name@version <bytes>;" */
struct seen {
	struct buf text;
	struct buf object;
};

static void on_start(void *arg)
{
	buf_clear(&((struct seen *)arg)->object);
}

static void on_data(void *arg, struct str piece)
{
	assert_true(piece.n > 0);
	(void)buf_add(&((struct seen *)arg)->object, piece);
}

static int on_frame(void *arg, const struct kube_frame *f)
{
	struct seen *s = arg;

	(void)buf_printf(&s->text, "%s%s %s/%s@%s%s%s <", f->broken ? "BROKEN " : "", f->type,
		f->namespace, f->name, f->version, f->initial_events_end[0] ? " end=" : "",
		f->initial_events_end);
	if (f->has_object)
		(void)buf_add(&s->text, buf_str(&s->object));
	(void)buf_puts(&s->text, ">;");
	buf_clear(&s->object);
	return 0;
}

/* Feeds text cut at the given places (0: nowhere). Returns what feed or end said. */
static int run(struct seen *s, struct kube_frames *f, enum kube_stream stream, struct str text,
	size_t cut1, size_t cut2)
{
	const struct kube_frames_ops ops = {on_start, on_data, on_frame, s};
	size_t at = 0, ends[] = {cut1, cut2, text.n};
	int r = 0;

	*s = (struct seen){BUF_INIT(1 << 20), BUF_INIT(1 << 20)};
	kube_frames_init(f, stream, &ops);
	for (size_t i = 0; i < ARRAY_SIZE(ends) && r == 0; i++) {
		if (ends[i] <= at)
			continue;
		r = kube_frames_feed(f, (struct str){text.p + at, ends[i] - at});
		at = ends[i];
	}
	return r < 0 ? r : kube_frames_end(f);
}

static void finish(struct seen *s)
{
	buf_finish(&s->text);
	buf_finish(&s->object);
}

#define POD(ns, name, version)                                     \
	"{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"" ns \
	"\",\"resourceVersion\":\"" version "\"}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"

static const struct {
	const char *name;
	enum kube_stream stream;
	const char *text;
	int result;
	const char *seen;
} cases[] = {
	{"two events", KUBE_STREAM_WATCH,
		EVENT("ADDED", POD("a", "b", "1")) EVENT("DELETED", POD("a", "c", "2")), 0,
		"ADDED a/b@1 <" POD("a", "b", "1") ">;DELETED a/c@2 <" POD("a", "c", "2") ">;"},
	{"nothing", KUBE_STREAM_WATCH, "", 0, ""},
	{"blank lines", KUBE_STREAM_WATCH, "\n\r\n \t", 0, ""},
	{"no line breaks between", KUBE_STREAM_WATCH,
		"{\"type\":\"A\",\"object\":{}}{\"type\":\"B\",\"object\":{ }}", 0,
		"A /@ <{}>;B /@ <{ }>;"},
	{"object before type", KUBE_STREAM_WATCH,
		"{\"object\":{\"kind\":\"x\"},\"type\":\"ADDED\"}", 0,
		"ADDED /@ <{\"kind\":\"x\"}>;"},
	{"bookmark with the end mark", KUBE_STREAM_WATCH,
		EVENT("BOOKMARK", "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"77\","
				  "\"annotations\":{\"k8s.io/"
				  "initial-events-end\":\"true\"}}}"),
		0,
		"BOOKMARK /@77 end=true "
		"<{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"77\",\"annotations\":{"
		"\"k8s.io/"
		"initial-events-end\":\"true\"}}}>;"},
	{"braces and quotes in strings", KUBE_STREAM_WATCH,
		EVENT("ADDED", "{\"a\":\"}]\\\"{\",\"\\\\\":[\"\\u007d\",\"\\\\\"],\"metadata\":{"
			       "\"name\":\"n\"}}"),
		0,
		"ADDED /n@ "
		"<{\"a\":\"}]\\\"{\",\"\\\\\":[\"\\u007d\",\"\\\\\"],\"metadata\":{\"name\":\"n\"}}"
		">;"},
	{"members of the same names elsewhere", KUBE_STREAM_WATCH,
		EVENT("ADDED", "{\"spec\":{\"metadata\":{\"name\":\"wrong\"}},\"metadata\":{"
			       "\"labels\":{\"name\":\"wrong\"},\"ownerReferences\":"
			       "[{\"name\":\"wrong\"}],\"name\":\"right\"}}"),
		0,
		"ADDED /right@ "
		"<{\"spec\":{\"metadata\":{\"name\":\"wrong\"}},\"metadata\":{\"labels\":{\"name\":"
		"\"wrong\"},"
		"\"ownerReferences\":[{\"name\":\"wrong\"}],\"name\":\"right\"}}>;"},
	{"no object", KUBE_STREAM_WATCH, "{\"type\":\"ADDED\",\"object\":null}\n{}\n", 0,
		"ADDED /@ <>; /@ <>;"},
	{"an array for an object", KUBE_STREAM_WATCH,
		"{\"type\":\"ADDED\",\"object\":[{\"metadata\":{\"name\":\"x\"}}]}", 0,
		"BROKEN ADDED /@ <>;"},
	{"two objects", KUBE_STREAM_WATCH,
		"{\"type\":\"ADDED\",\"object\":{},\"object\":{\"a\":1}}", 0,
		"BROKEN ADDED /@ <{}>;"},
	{"cut in a string, then another", KUBE_STREAM_WATCH,
		"{\"type\":\"ADDED\",\"object\":{\"a\":\"b\n" EVENT("ADDED", "{}"), 0,
		"BROKEN ADDED /@ <{\"a\":\"b>;ADDED /@ <{}>;"},
	{"cut", KUBE_STREAM_WATCH, EVENT("ADDED", "{}") "{\"type\":\"ADDED\",\"obj", -ENODATA,
		"ADDED /@ <{}>;"},
	{"HTML", KUBE_STREAM_WATCH, "<html>", -EBADMSG, ""},
	{"an array", KUBE_STREAM_WATCH, "[{\"type\":\"ADDED\"}]", -EBADMSG, ""},
	{"closed too often", KUBE_STREAM_WATCH, EVENT("ADDED", "{}") "}", -EBADMSG,
		"ADDED /@ <{}>;"},
	{"a version too long to keep", KUBE_STREAM_WATCH,
		EVENT("ADDED", "{\"metadata\":{\"name\":\"n\",\"resourceVersion\":"
			       "\"01234567890123456789012345678901234567890123456789"
			       "0123456789012345678901234567890123456789012345678901234567890123456"
			       "789012345678901234567890123456789\"}}"),
		0,
		"ADDED /n@ <{\"metadata\":{\"name\":\"n\",\"resourceVersion\":"
		"\"01234567890123456789012345678901234567890123456789"
		"0123456789012345678901234567890123456789012345678901234567890123456789012345678901"
		"234567890123456789\"}}>;"},
	{"list", KUBE_STREAM_LIST,
		"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"9\",\"continue\":"
		"\"tok\"},\"items\":[" POD("a", "b", "1") ", " POD("a", "c", "2") "]}\n",
		0, " a/b@1 <" POD("a", "b", "1") ">; a/c@2 <" POD("a", "c", "2") ">;"},
	{"list with items first", KUBE_STREAM_LIST,
		"{\"items\":[{}],\"metadata\":{\"resourceVersion\":\"9\"}}", 0, " /@ <{}>;"},
	{"list of none", KUBE_STREAM_LIST,
		"{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":null}", 0, ""},
	{"list of no objects", KUBE_STREAM_LIST, "{\"items\":[1,null,[{}],\"x\"]}", 0, ""},
	{"list cut", KUBE_STREAM_LIST, "{\"items\":[{},{", -ENODATA, " /@ <{}>;"},
	{"two lists", KUBE_STREAM_LIST, "{\"items\":[]}{\"items\":[]}", -EBADMSG, ""},
	{"line break in a string of a list", KUBE_STREAM_LIST, "{\"items\":[{\"a\":\"\n\"}]}",
		-EBADMSG, ""},
};

static void each_stream_gives_its_objects_however_it_is_cut(void **state)
{
	struct seen s;
	struct kube_frames f;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct str text = str_of(cases[i].text);

		for (size_t cut1 = 0; cut1 <= text.n; cut1++)
			for (size_t cut2 = cut1; cut2 <= text.n; cut2 += text.n > 200 ? 37 : 1) {
				int r = run(&s, &f, cases[i].stream, text, cut1, cut2);
				const char *got = s.text.p ? s.text.p : "";

				if (r != cases[i].result || strcmp(got, cases[i].seen) != 0)
					fail_msg("%s, cut at %zu and %zu: %d %s", cases[i].name,
						cut1, cut2, r, got);
				finish(&s);
			}
	}
}

static void every_prefix_of_an_event_is_cut_or_whole(void **state)
{
	static const char text[] = EVENT("ADDED", POD("a", "b", "1"));
	struct seen s;
	struct kube_frames f;

	for (size_t n = 1; n < sizeof(text) - 1; n++) {
		int r = run(&s, &f, KUBE_STREAM_WATCH, (struct str){text, n}, 0, 0);

		assert_int_equal(r, n == sizeof(text) - 2 ? 0 : -ENODATA);
		finish(&s);
	}
}

static void a_list_tells_its_version_and_token(void **state)
{
	struct seen s;
	struct kube_frames f;

	assert_int_equal(run(&s, &f, KUBE_STREAM_LIST,
				 STR("{\"metadata\":{\"continue\":\"eyJ2Ijoi\\/"
				     "x=\",\"resourceVersion\":\"12\",\"x\":{\"continue\":"
				     "\"no\"}},\"items\":[]}"),
				 0, 0),
		0);
	assert_string_equal(f.list_continue, "eyJ2Ijoi/x=");
	assert_string_equal(f.list_version, "12");
	assert_true(f.has_items);
	finish(&s);
}

static void a_token_too_long_to_keep_is_an_error(void **state)
{
	struct buf b = BUF_INIT(1 << 16);
	struct seen s;
	struct kube_frames f;

	(void)buf_puts(&b, "{\"metadata\":{\"continue\":\"");
	for (int i = 0; i < 5000; i++)
		(void)buf_putc(&b, 'x');
	(void)buf_puts(&b, "\"}}");
	assert_int_equal(run(&s, &f, KUBE_STREAM_LIST, buf_str(&b), 0, 0), -EMSGSIZE);
	finish(&s);
	buf_finish(&b);
}

static void a_million_levels_cost_nothing(void **state)
{
	static const char open[] = "[[[[[[[[[[[[[[[[", close[] = "]]]]]]]]]]]]]]]]";
	const struct kube_frames_ops ops = {on_start, on_data, on_frame, NULL};
	struct seen s = {BUF_INIT(1000), BUF_INIT(1)};
	struct kube_frames f;
	struct kube_frames_ops with = ops;

	with.arg = &s;
	kube_frames_init(&f, KUBE_STREAM_WATCH, &with);
	assert_int_equal(kube_frames_feed(&f, STR("{\"type\":\"ADDED\",\"object\":{\"a\":")), 0);
	for (int i = 0; i < 65536; i++)
		assert_int_equal(kube_frames_feed(&f, (struct str){open, 16}), 0);
	for (int i = 0; i < 65536; i++)
		assert_int_equal(kube_frames_feed(&f, (struct str){close, 16}), 0);
	assert_int_equal(kube_frames_feed(&f, STR(",\"metadata\":{\"name\":\"deep\"}}}")), 0);
	assert_int_equal(kube_frames_end(&f), 0);
	assert_non_null(strstr(s.text.p, "/deep@"));
	finish(&s);
}

static int stop(void *arg, const struct kube_frame *f)
{
	++*(int *)arg;
	return -ECANCELED;
}

static void ignore_start(void *arg)
{
}

static void ignore_data(void *arg, struct str piece)
{
}

static void a_frame_that_says_stop_ends_the_stream(void **state)
{
	int frames = 0;
	const struct kube_frames_ops ops = {ignore_start, ignore_data, stop, &frames};
	struct kube_frames f;

	kube_frames_init(&f, KUBE_STREAM_WATCH, &ops);
	assert_int_equal(kube_frames_feed(&f, STR(EVENT("A", "{}") EVENT("B", "{}"))), -ECANCELED);
	assert_int_equal(frames, 1);
}

static void a_status_is_read_and_nothing_else_is_taken_for_one(void **state)
{
	struct kube_status s;

	assert_true(kube_status_parse(STR("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":"
					  "{},\"status\":\"Failure\",\"message\":\"nodes "
					  "\\\"n\\\" "
					  "is\\nforbidden\",\"reason\":\"Forbidden\",\"details\":{"
					  "\"kind\":\"nodes\"},\"code\":403}\n"),
		&s));
	assert_int_equal(s.code, 403);
	assert_string_equal(s.reason, "Forbidden");
	assert_string_equal(s.message, "nodes \"n\" is?forbidden");
	static const char *const others[] = {"", "{}", "<html>403</html>",
		"{\"kind\":\"Pod\",\"code\":403}", "{\"kind\":\"Status\",\"code\":403", "[]",
		"null", "{\"kind\":\"Status\"}x"};
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_false(kube_status_parse(str_of(others[i]), &s));
		assert_int_equal(s.code, 0);
		assert_string_equal(s.reason, "");
	}
	assert_true(
		kube_status_parse(STR("{\"kind\":\"Status\",\"code\":99999999999999999999}"), &s));
	assert_int_equal(s.code, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_stream_gives_its_objects_however_it_is_cut),
		cmocka_unit_test(every_prefix_of_an_event_is_cut_or_whole),
		cmocka_unit_test(a_list_tells_its_version_and_token),
		cmocka_unit_test(a_token_too_long_to_keep_is_an_error),
		cmocka_unit_test(a_million_levels_cost_nothing),
		cmocka_unit_test(a_frame_that_says_stop_ends_the_stream),
		cmocka_unit_test(a_status_is_read_and_nothing_else_is_taken_for_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
