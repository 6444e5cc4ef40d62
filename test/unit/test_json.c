// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "helper_alloc.h"
#include "proto/json_read.h"
#include "proto/json_write.h"
#include "proto/rfc3339.h"
#include "test/unit/unit.h"

/* A reader that writes down what it was given: "id=value" or "id{" and so on, one after the other.
 */
struct script {
	struct buf seen;
	unsigned int skip_id; /* answer JSON_SKIP to this one */
	unsigned int fail_id; /* answer -ECANCELED to this one */
};

enum { ROOT = 1, ITEM, NAME, NUMBER, LABEL, ANY, LAST_ANY, LIST };

static int note(void *arg, unsigned int id, const struct json_value *v)
{
	struct script *s = arg;

	(void)buf_printf(&s->seen, "%u", id);
	if (v->key.n)
		(void)buf_printf(&s->seen, "(%.*s)", STR_ARG(v->key));
	switch (v->type) {
	case JSON_NULL:
		(void)buf_puts(&s->seen, "=null");
		break;
	case JSON_BOOL:
		(void)buf_puts(&s->seen, v->boolean ? "=true" : "=false");
		break;
	case JSON_NUMBER:
		(void)buf_printf(&s->seen, "=#%.*s", STR_ARG(v->text));
		break;
	case JSON_STRING:
		(void)buf_printf(&s->seen, "='%.*s'%s", STR_ARG(v->text), v->cut ? "…" : "");
		break;
	case JSON_OBJECT:
		(void)buf_puts(&s->seen, "{");
		break;
	case JSON_OBJECT_END:
		(void)buf_puts(&s->seen, "}");
		break;
	case JSON_ARRAY:
		(void)buf_puts(&s->seen, "[");
		break;
	case JSON_ARRAY_END:
		(void)buf_puts(&s->seen, "]");
		break;
	}
	(void)buf_puts(&s->seen, " ");
	if (id == s->fail_id)
		return -ECANCELED;
	return id == s->skip_id && (v->type == JSON_OBJECT || v->type == JSON_ARRAY) ? JSON_SKIP
										     : 0;
}

static void note_bad(void *arg, int r, const struct err *e)
{
	struct script *s = arg;
	(void)buf_printf(&s->seen, "BAD(%d %s) ", r, e->text);
}

static const struct json_path paths[] = {
	{"items[]", ITEM},
	{"items[].name", NAME},
	{"items[].n", NUMBER},
	{"items[].labels['example.org/x']", LABEL},
	{"items[].any.*", ANY},
	{"items[].deep.*.last", LAST_ANY},
	{"items[].list[]", LIST},
};

static const struct json_spec spec = {.paths = paths,
	.n_paths = ARRAY_SIZE(paths),
	.value = note,
	.string_max = 16,
	.depth_max = 10};
static const struct json_spec lines = {.paths = paths,
	.n_paths = ARRAY_SIZE(paths),
	.value = note,
	.bad_document = note_bad,
	.string_max = 16,
	.depth_max = 10,
	.document_max = 200};

/* In pieces of the given size; 0: all at once. */
static int read_in_pieces(
	const struct json_spec *sp, struct script *s, struct str text, size_t piece, struct err *e)
{
	struct json_reader *r = json_reader_create(sp, s);
	int result = 0;

	assert_non_null(r);
	if (piece == 0)
		piece = text.n ? text.n : 1;
	for (size_t i = 0; i < text.n && result == 0; i += piece) {
		/* a copy of the piece's exact size, so that reading past it is seen */
		size_t n = MIN(piece, text.n - i);
		_cleanup_free_ char *copy = malloc(n);
		memcpy(copy, text.p + i, n);
		result = json_reader_feed(r, copy, n, e);
	}
	if (result == 0)
		result = json_reader_end(r, e);
	json_reader_destroy(r);
	return result;
}

struct reading {
	const char *text;
	const char *seen;
	int r;
	const char *says;
};

static void assert_readings(const struct json_spec *sp, const struct reading *t, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		print_message("%s\n", t[i].text);
		for (size_t piece = 0; piece < 9; piece++) {
			struct script s = {.seen = BUF_INIT(65536)};
			struct err e = {0};
			int r = read_in_pieces(sp, &s, str_of(t[i].text), piece, &e);

			assert_int_equal(r, t[i].r);
			assert_string_equal(s.seen.p ? s.seen.p : "", t[i].seen);
			if (t[i].says && !strstr(e.text, t[i].says))
				fail_msg("'%s' does not say '%s'", e.text, t[i].says);
			buf_finish(&s.seen);
		}
	}
}

static void only_named_paths_arrive(void **state)
{
	static const struct reading t[] = {
		{"{}", "", 0, NULL},
		{"{\"items\":[{\"name\":\"a\"},{\"name\":\"b\"}]}", "2{ 3='a' 2} 2{ 3='b' 2} ", 0,
			NULL},
		{"{\"items\":[1,null,\"x\",true]}", "2=#1 2=null 2='x' 2=true ", 0, NULL},
		{"{\"items\":[[{\"name\":\"no\"}],[]]}", "2[ 2] 2[ 2] ", 0, NULL},
		{"{\"items\":{\"name\":\"no\"},\"name\":\"no\",\"other\":[{\"name\":\"no\"}]}", "",
			0, NULL},
		{"{\"items\":[{\"labels\":{\"example.org/y\":\"no\",\"example.org/x\":\"yes\"}}]}",
			"2{ 5='yes' 2} ", 0, NULL},
		{"{\"items\":[{\"any\":{\"k\":1,\"l\":{\"m\":2},\"n\":[3]}}]}",
			"2{ 6(k)=#1 6(l){ 6(l)} 6(n)[ 6(n)] 2} ", 0, NULL},
		{"{\"items\":[{\"deep\":{\"a\":{\"last\":false,\"x\":0},\"b\":{\"last\":2e9}}}]}",
			"2{ 7(a)=false 7(b)=#2e9 2} ", 0, NULL},
		{"{\"items\":[{\"list\":[1,[2],3]}]}", "2{ 8=#1 8[ 8] 8=#3 2} ", 0, NULL},
		{"{\"x\":{\"y\":[{\"z\":[[]]}]},\"items\":[{\"name\":\"\\u00e9\\n\\\"\"}]}",
			"2{ 3='\u00e9\n\"' 2} ", 0, NULL},
		{"  {\"items\" : [ { \"n\" : -0.10E+2 } ] }  ", "2{ 4=#-0.10E+2 2} ", 0, NULL},
		{"{\"items\":[{\"n\":99999999999999999999999999}]}",
			"2{ 4=#99999999999999999999999999 2} ", 0, NULL},
		{"{\"items\":[1]}{\"items\":[2]}\n{\"items\":[3]} 7 \"x\"", "2=#1 2=#2 2=#3 ", 0,
			NULL},
		{"", "", 0, NULL},
	};
	assert_readings(&spec, t, ARRAY_SIZE(t));
}

static void what_is_no_json_is_told_with_its_place(void **state)
{
	static const struct reading t[] = {
		{"{\"items\":[1,}", "2=#1 ", -EBADMSG, "byte "},
		{"<html>", "", -EBADMSG, "not JSON"},
		{"{\"items\":[1", "2=#1 ", -EBADMSG, "ends in the middle"},
		{"\"abc", "", -EBADMSG, "ends in the middle"},
		{"tru", "", -EBADMSG, "byte 3"},
		{"{\"items\":[\"\xff\"]}", "", -EBADMSG, "UTF8"},
		{"{\"items\":[01]}", "2=#0 ", -EBADMSG, "byte "},
		{"[1] x", "", -EBADMSG, "byte "},
	};
	/* The last piece of the first one may hold back the number. */
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct script s = {.seen = BUF_INIT(65536)};
		struct err e = {0};

		print_message("%s\n", t[i].text);
		assert_int_equal(read_in_pieces(&spec, &s, str_of(t[i].text), 0, &e), t[i].r);
		if (!strstr(e.text, t[i].says))
			fail_msg("'%s' does not say '%s'", e.text, t[i].says);
		buf_finish(&s.seen);
		for (size_t piece = 1; piece < 9; piece++) {
			s = (struct script){.seen = BUF_INIT(65536)};
			assert_int_equal(
				read_in_pieces(&spec, &s, str_of(t[i].text), piece, &e), t[i].r);
			buf_finish(&s.seen);
		}
	}
	struct script s = {.seen = BUF_INIT(65536)};
	struct err e;
	assert_int_equal(json_read(&spec, &s, STR(" \n"), &e), -ENODATA);
	assert_int_equal(json_read(&spec, &s, STR("{}"), &e), 0);
	buf_finish(&s.seen);
}

static void long_strings_are_cut_and_say_so(void **state)
{
	static const struct reading t[] = {
		/* 16 bytes are the most */
		{"{\"items\":[\"0123456789abcdef\",\"y\"]}", "2='0123456789abcdef' 2='y' ", 0,
			NULL},
		{"{\"items\":[\"0123456789abcdefg\",\"y\"]}", "2='0123456789abcdef'… 2='y' ", 0,
			NULL},
		{"{\"items\":[\"0123456789abcde\\\"\\\"\\\\\",\"y\"]}",
			"2='0123456789abcde\"'… 2='y' ", 0, NULL},
		{"{\"items\":[\"0123456789abcdef\\\\\",\"y\"]}", "2='0123456789abcdef'… 2='y' ", 0,
			NULL},
		{"{\"items\":[\"0123456789abcd\\u00e9\\u00e9\",\"y\"]}",
			"2='0123456789abcdé'… 2='y' ", 0, NULL},
		{"{\"items\":[\"0123456789abcdeéé\",\"y\"]}", "2='0123456789abcdeé'… 2='y' ", 0,
			NULL},
		{"{\"items\":[{\"0123456789abcdef-and-more\":1,\"name\":\"y\"}]}", "2{ 3='y' 2} ",
			0, NULL},
		{"{\"x\":\"0123456789abcdefghijklmnopq\\\"\",\"items\":[\"y\"]}", "2='y' ", 0,
			NULL},
		{"{\"items\":[\"0123456789abcdefghijklmnop", "", -EBADMSG, "ends in the middle"},
	};
	assert_readings(&spec, t, ARRAY_SIZE(t));
}

static void one_long_token_takes_no_memory(void **state)
{
	static char blob[65536];
	struct script s = {.seen = BUF_INIT(65536)};
	struct json_reader *r = json_reader_create(&spec, &s);
	struct err e;

	/* 64 MiB of one string */
	memset(blob, 'x', sizeof blob);
	assert_int_equal(json_reader_feed(r, "{\"items\":[\"", 11, &e), 0);
	for (int i = 0; i < 1024; i++)
		assert_int_equal(json_reader_feed(r, blob, sizeof blob, &e), 0);
	assert_int_equal(json_reader_feed(r, "\",\"y\"]}", 7, &e), 0);
	assert_int_equal(json_reader_end(r, &e), 0);
	assert_string_equal(s.seen.p, "2='xxxxxxxxxxxxxxxx'… 2='y' ");

	/* and of one number */
	json_reader_reset(r);
	memset(blob, '1', sizeof blob);
	assert_int_equal(json_reader_feed(r, blob, sizeof blob, &e), -EMSGSIZE);
	assert_non_null(strstr(e.text, "more than 512 characters"));
	assert_int_equal(json_reader_feed(r, "1", 1, &e), -EMSGSIZE);
	json_reader_destroy(r);
	buf_finish(&s.seen);
}

static void deep_nesting_is_left_out_and_noted(void **state)
{
	struct script s = {.seen = BUF_INIT(65536)};
	_cleanup_buf_ struct buf text = BUF_INIT(1U << 20);
	struct json_reader *r = json_reader_create(&spec, &s);
	struct err e;

	(void)buf_puts(&text, "{\"items\":[{\"list\":[");
	for (int i = 0; i < 2000; i++)
		(void)buf_putc(&text, '[');
	for (int i = 0; i < 2000; i++)
		(void)buf_putc(&text, ']');
	(void)buf_puts(&text, "],\"name\":\"y\"}]}");
	assert_int_equal(json_reader_feed(r, text.p, text.n, &e), 0);
	assert_int_equal(json_reader_end(r, &e), 0);
	assert_string_equal(s.seen.p, "2{ 8[ 8] 3='y' 2} ");
	assert_true(json_reader_take_too_deep(r));
	assert_false(json_reader_take_too_deep(r));

	/* without end */
	memset(text.p, '[', text.n);
	int result = 0;
	for (int i = 0; i < 10000 && result == 0; i++)
		result = json_reader_feed(r, text.p, text.n, &e);
	assert_int_equal(result, -EMSGSIZE);
	assert_non_null(strstr(e.text, "too deep"));
	json_reader_destroy(r);
	buf_finish(&s.seen);
}

static void a_bad_line_costs_only_itself(void **state)
{
	static const struct reading t[] = {
		{"{\"items\":[1]}\n{\"items\":[2,]}\n{\"items\":[3]}\n",
			"2=#1 2=#2 BAD(-74 byte 27: not JSON: parse error: unallowed token at this "
			"point in JSON text) 2=#3 ",
			0, NULL},
		{"{\"items\":[1\n{\"items\":[3]}\n",
			"2=#1 BAD(-74 byte 12: the line ends in the middle of a document) 2=#3 ", 0,
			NULL},
		{"{\"items\":[\"x\n{\"items\":[3]}\n",
			"BAD(-74 byte 13: not JSON: lexical error: invalid character inside "
			"string.) 2=#3 ",
			0, NULL},
		{"\n\n{\"items\":[3]}", "2=#3 ", 0, NULL},
	};
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		for (size_t piece = 0; piece < 40; piece++) {
			struct script s = {.seen = BUF_INIT(65536)};
			struct err e = {0};

			assert_int_equal(
				read_in_pieces(&lines, &s, str_of(t[i].text), piece, &e), 0);
			/* where exactly the parser notices depends on the piece; what it is given
			 * must not */
			const char *bad = strstr(t[i].seen, "BAD("),
				   *seen_bad = strstr(s.seen.p, "BAD(");
			if (bad) {
				assert_non_null(seen_bad);
				assert_memory_equal(s.seen.p, t[i].seen, (size_t)(bad - t[i].seen));
				assert_string_equal(
					strrchr(s.seen.p, ')'), strrchr(t[i].seen, ')'));
			} else {
				assert_string_equal(s.seen.p, t[i].seen);
			}
			buf_finish(&s.seen);
		}
}

static void a_line_over_the_cap_is_passed_over(void **state)
{
	_cleanup_buf_ struct buf text = BUF_INIT(65536);

	(void)buf_puts(&text, "{\"items\":[{\"name\":\"big\"");
	for (int i = 0; i < 100; i++)
		(void)buf_puts(&text, ",\"x\":\"0123456789\"");
	(void)buf_puts(&text, "}]}\n{\"items\":[{\"name\":\"next\"}]}\n");
	for (size_t piece = 1; piece < 64; piece++) {
		struct script s = {.seen = BUF_INIT(65536)};

		assert_int_equal(read_in_pieces(&lines, &s, buf_str(&text), piece, NULL), 0);
		assert_string_equal(s.seen.p,
			"2{ 3='big' BAD(-90 a document of more than 200 bytes) 2{ 3='next' 2} ");
		buf_finish(&s.seen);
	}
}

static void a_handler_may_skip_or_stop(void **state)
{
	struct script s = {.seen = BUF_INIT(65536), .skip_id = ITEM};
	struct str text = STR("{\"items\":[{\"name\":\"a\"},[1],7]}");

	assert_int_equal(json_read(&spec, &s, text, NULL), 0);
	assert_string_equal(s.seen.p, "2{ 2[ 2=#7 ");
	buf_clear(&s.seen);
	s = (struct script){.seen = s.seen, .fail_id = NAME};
	assert_int_equal(json_read(&spec, &s, text, NULL), -ECANCELED);
	assert_string_equal(s.seen.p, "2{ 3='a' ");
	buf_finish(&s.seen);
}

static void a_failed_allocation_is_an_error_and_nothing_more(void **state)
{
	struct str text = STR(
		"{\"items\":[{\"name\":\"a\\u00e9\",\"deep\":{\"a\":{\"last\":[[[[1]]]]}}}]}\n");
	unsigned int refused = 0;

	ALLOC_FAIL_EACH
	{
		struct script s = {.seen = BUF_INIT(65536)};
		struct json_reader *r = json_reader_create(&spec, &s);
		int result = r ? 0 : -ENOMEM;
		for (size_t i = 0; i < text.n && result == 0; i++)
			result = json_reader_feed(r, text.p + i, 1, NULL);
		assert_true(result == 0 || result == -ENOMEM);
		refused += result == -ENOMEM;
		json_reader_destroy(r);
		buf_finish(&s.seen);
	}
	assert_true(refused > 3);
	/* a stream of lines goes on with the next one */
	for (long nth = 1; nth < 8; nth++) {
		struct script s = {.seen = BUF_INIT(65536)};
		struct json_reader *r = json_reader_create(&lines, &s);
		assert_int_equal(
			buf_puts(&s.seen,
				"room for what follows, so that only the reader allocates......."),
			0);
		buf_reserve(&s.seen, 4096);
		buf_clear(&s.seen);
		alloc_fail_only(nth);
		assert_int_equal(json_reader_feed(r, text.p, text.n, NULL), 0);
		(void)alloc_fail_never();
		assert_int_equal(json_reader_feed(r, "{\"items\":[3]}\n", 14, NULL), 0);
		assert_non_null(strstr(s.seen.p, "2=#3 "));
		json_reader_destroy(r);
		buf_finish(&s.seen);
	}
}

static void writes_members_in_order(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct json_writer w = JSON_WRITER(&b);

	json_begin_object(&w);
	json_key(&w, "a");
	json_i64(&w, INT64_MIN);
	json_key(&w, "b");
	json_begin_array(&w);
	json_u64(&w, UINT64_MAX);
	json_double(&w, 0.1);
	json_double17(&w, 0.1);
	json_double(&w, NAN);
	json_double17(&w, INFINITY);
	json_bool(&w, true);
	json_bool(&w, false);
	json_null(&w);
	json_string(&w, "x");
	json_string(&w, NULL);
	json_begin_object(&w);
	json_end_object(&w);
	json_begin_array(&w);
	json_end_array(&w);
	json_raw(&w, STR("{\"r\":1}"));
	json_time(&w, 1767225600 * INT64_C(1000000000));
	json_time(&w, TIME_NONE);
	json_end_array(&w);
	json_key_str(&w, STR("c\"d"));
	json_begin_object(&w);
	json_key(&w, "e");
	json_bool(&w, true);
	json_end_object(&w);
	json_end_object(&w);
	assert_string_equal(b.p,
		"{\"a\":-9223372036854775808,\"b\":[18446744073709551615,0.1,0.10000000000000001,"
		"null,null,"
		"true,false,null,\"x\",null,{},[],{\"r\":1},\"2026-01-01T00:00:00Z\",null],"
		"\"c\\\"d\":{\"e\":true}}");
	assert_int_equal(w.depth, 0);
}

static void strings_are_escaped_and_always_utf8(void **state)
{
	static const struct {
		struct str in;
		const char *out;
	} t[] = {
		{{"", 0}, ""},
		{{"plain /", 7}, "plain /"},
		{{"\"\\\n\r\t\b\x01\x7f", 8}, "\\\"\\\\\\n\\r\\t\\u0008\\u0001\\u007f"},
		{{"a\0b", 3}, "a\\u0000b"},
		{{"é€😀", 9}, "é€😀"},
		{{"\xff", 1}, "\xef\xbf\xbd"},
		{{"a\xc3", 2}, "a\xef\xbf\xbd"},
		{{"\xc3(", 2}, "\xef\xbf\xbd("},
		{{"\xc0\xaf", 2}, "\xef\xbf\xbd\xef\xbf\xbd"},                 /* overlong */
		{{"\xed\xa0\x80", 3}, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* surrogate */
		{{"\xf4\x90\x80\x80", 4}, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{{"\xf0\x9f\x98x", 4}, "\xef\xbf\xbdx"},
		{{"\xe2\x82", 2}, "\xef\xbf\xbd"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(4096);
		/* at the end of its own memory, so that reading past it is seen */
		_cleanup_free_ char *copy = malloc(t[i].in.n + 1);
		memcpy(copy + 1, t[i].in.p, t[i].in.n);
		json_escape(&b, (struct str){copy + 1, t[i].in.n});
		assert_string_equal(b.p ? b.p : "", t[i].out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_named_paths_arrive),
		cmocka_unit_test(what_is_no_json_is_told_with_its_place),
		cmocka_unit_test(long_strings_are_cut_and_say_so),
		cmocka_unit_test(one_long_token_takes_no_memory),
		cmocka_unit_test(deep_nesting_is_left_out_and_noted),
		cmocka_unit_test(a_bad_line_costs_only_itself),
		cmocka_unit_test(a_line_over_the_cap_is_passed_over),
		cmocka_unit_test(a_handler_may_skip_or_stop),
		cmocka_unit_test(a_failed_allocation_is_an_error_and_nothing_more),
		cmocka_unit_test(writes_members_in_order),
		cmocka_unit_test(strings_are_escaped_and_always_utf8),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
