// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <zlib.h>

#include "base/num.h"
#include "helper_alloc.h"
#include "proto/csv.h"
#include "proto/decimal.h"
#include "proto/inflate.h"
#include "test/unit/unit.h"

/* Writes rows down as "line[cell|cell]" and bad lines as "line!reason!". */
static int note_row(void *arg, const struct csv_row *row)
{
	struct buf *b = arg;

	(void)buf_printf(b, "%llu[", (unsigned long long)row->line);
	for (size_t i = 0; i < row->n; i++) {
		(void)buf_puts(b, i ? "|" : "");
		(void)buf_add(b, row->cell[i]);
	}
	(void)buf_putc(b, ']');
	return row->n > 0 && str_is(row->cell[0], "stop") ? -ECANCELED : 0;
}

static int note_bad(void *arg, uint64_t line, const struct err *e)
{
	(void)buf_printf(arg, "%llu!%s!", (unsigned long long)line, e->text);
	return 0;
}

static const struct csv_ops ops = {.row = note_row, .bad = note_bad};

static int read_in_pieces(struct str text, size_t piece, struct buf *seen)
{
	struct csv_reader r;
	int result = 0;

	csv_reader_init(&r, &ops, seen);
	for (size_t i = 0; i < text.n && result == 0; i += piece) {
		size_t n = MIN(piece, text.n - i);
		char *copy = malloc(n);
		if (!copy) {
			csv_reader_finish(&r);
			return -ENOMEM;
		}
		memcpy(copy, text.p + i, n);
		result = csv_reader_feed(&r, (struct str){copy, n});
		free(copy);
	}
	if (result == 0)
		result = csv_reader_end(&r);
	csv_reader_finish(&r);
	return result;
}

static void rows_are_the_same_in_any_pieces(void **state)
{
	static const struct {
		struct str text;
		const char *seen;
	} t[] = {
		{STR(""), ""},
		{STR("a"), "1[a]"},
		{STR("a,b\nc,d\n"), "1[a|b]2[c|d]"},
		{STR("a,b\r\nc,d\r\n"), "1[a|b]2[c|d]"},
		{STR("a,b\nc,d"), "1[a|b]2[c|d]"},
		{STR("\xef\xbb\xbf\x61,b\n1,2\n"), "1[a|b]2[1|2]"},
		{STR("\n\r\n\na\n"), "4[a]"},
		{STR(",,\n,\n"), "1[||]2[|]"},
		{STR("\"a\",b\n"), "1[a|b]"},
		{STR("\"a,b\",\"c\"\"d\",\"\",\"\"\"\"\n\"e\"\"f\"\n"), "1[a,b|c\"d||\"]2[e\"f]"},
		{STR(" a ,\tb\n"), "1[ a |\tb]"},
		{STR("a\"b,c\nd\n"), "1!a quote within a cell that does not begin with one!2[d]"},
		{STR("\"a\nb\",c\nd\n"), "1!a quote is not closed on its line!2!a quote within a "
					 "cell that does not begin with one!3[d]"},
		{STR("\"a\"b,c\nd\n"), "1!something follows a closing quote!2[d]"},
		{STR("\"a\"\"\nd\n"), "1!a quote is not closed on its line!2[d]"},
		{STR("a\0b\nd\n"), "1!a NUL byte!2[d]"},
		{STR("\"a\0b\"\nd\n"), "1!a NUL byte!2[d]"},
		{STR("a\rb,c\n"), "1[a\rb|c]"},
		{STR("a,\xff\n"), "1[a|\xff]"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		for (size_t piece = 1; piece < 40; piece++) {
			_cleanup_buf_ struct buf seen = BUF_INIT(65536);

			assert_int_equal(read_in_pieces(t[i].text, piece, &seen), 0);
			assert_string_equal(seen.p ? seen.p : "", t[i].seen);
		}
}

static void a_long_line_is_one_bad_line(void **state)
{
	static char x[CSV_LINE_MAX + 1];
	_cleanup_buf_ struct buf text = BUF_INIT(1U << 20);

	/* exactly as long as may be, one more, and on with the next line */
	memset(x, 'x', sizeof x);
	(void)buf_append(&text, x, CSV_LINE_MAX);
	(void)buf_puts(&text, "\n");
	(void)buf_append(&text, x, CSV_LINE_MAX + 1);
	(void)buf_puts(&text, "\nnext\n");
	(void)buf_append(&text, x, CSV_LINE_MAX + 1);
	for (size_t piece = SIZE_OR_TINY(1000U, 7U); piece < 400000; piece *= 7) {
		_cleanup_buf_ struct buf seen = BUF_INIT(1U << 20);
		char tail[256];

		assert_int_equal(read_in_pieces(buf_str(&text), piece, &seen), 0);
		(void)snprintf(tail, sizeof tail,
			"]2!the line is longer than %u bytes!3[next]4!the line is longer than %u "
			"bytes!",
			CSV_LINE_MAX, CSV_LINE_MAX);
		assert_int_equal(seen.n, 2 + CSV_LINE_MAX + strlen(tail));
		assert_string_equal(seen.p + 2 + CSV_LINE_MAX, tail);
	}
}

static void an_endless_line_takes_no_memory(void **state)
{
	static char x[65536];
	_cleanup_buf_ struct buf seen = BUF_INIT(65536);
	struct csv_reader r;

	csv_reader_init(&r, &ops, &seen);
	memset(x, ',', sizeof x);
	for (int i = 0; i < 4096; i++)
		assert_int_equal(csv_reader_feed(&r, (struct str){x, sizeof x}), 0);
	assert_true(r.partial.cap <= CSV_LINE_MAX + 1);
	assert_int_equal(csv_reader_feed(&r, STR("\na\n")), 0);
	assert_int_equal(csv_reader_end(&r), 0);
	assert_non_null(strstr(seen.p, "bytes!2[a]"));
	csv_reader_finish(&r);
}

static void too_many_cells_are_a_bad_line(void **state)
{
	if (CSV_LINE_MAX <= CSV_CELLS_MAX)
		skip();
	char line[CSV_CELLS_MAX + 2];
	_cleanup_buf_ struct buf seen = BUF_INIT(65536);

	memset(line, ',', sizeof line);
	line[CSV_CELLS_MAX - 1] = '\n';
	line[sizeof line - 1] = '\n';
	assert_int_equal(read_in_pieces((struct str){line, CSV_CELLS_MAX}, 4096, &seen), 0);
	assert_null(strchr(seen.p, '!'));
	line[CSV_CELLS_MAX - 1] = ',';
	assert_int_equal(read_in_pieces((struct str){line, sizeof line}, 4096, &seen), 0);
	assert_non_null(strstr(seen.p, "1!too many cells"));
}

static void a_callback_may_stop(void **state)
{
	_cleanup_buf_ struct buf seen = BUF_INIT(65536);

	assert_int_equal(read_in_pieces(STR("a\nstop\nb\n"), 4, &seen), -ECANCELED);
	assert_string_equal(seen.p, "1[a]2[stop]");
}

static void a_failed_allocation_is_an_error_and_nothing_more(void **state)
{
	ALLOC_FAIL_EACH
	{
		_cleanup_buf_ struct buf seen = BUF_INIT(65536);
		int r = read_in_pieces(STR("a,\"b\"\"c\"\nlonger,line\n"), 5, &seen);
		assert_true(r == 0 || r == -ENOMEM);
	}
}

static void numbers_are_read_as_parse_double_does(void **state)
{
	static const char *const t[] = {"0", "-0", "1", "0.1", "-12.75", "123456789.123456789",
		"9007199254740992", "9007199254740993", "0.30000000000000004", "1e5", "1.5E-3",
		"+1", ".5", "5.", "", "-", ".", "1.2.3", "x", "1x", "0x10", "nan", "inf", "1e400",
		"00012", "12345678901234567890", "1234567890.1234567890", " 1",
		"0.0000000000000000001", "4.35", "0.000001", "2.2250738585072014e-308"};
	uint64_t x = 7;

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		double a = 42, b = 42;
		int ra = decimal_parse(str_of(t[i]), &a), rb = parse_double(str_of(t[i]), &b);

		assert_int_equal(ra, rb);
		assert_memory_equal(&a, &b, sizeof a);
	}
	for (int i = 0; i < 200000; i++) {
		char text[64];
		double a, b;

		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		int n = snprintf(text, sizeof text, "%.*f", (int)(x >> 60),
			(double)(int64_t)(x >> 8) / (double)(1U << (x & 31)));
		assert_int_equal(decimal_parse((struct str){text, (size_t)n}, &a), 0);
		assert_int_equal(parse_double((struct str){text, (size_t)n}, &b), 0);
		assert_memory_equal(&a, &b, sizeof a);
	}
}

static void unix_seconds_are_exact(void **state)
{
	static const struct {
		const char *text;
		int r;
		int64_t ns;
	} t[] = {
		{"0", 0, 0},
		{"1767225600", 0, 1767225600000000000},
		{"1767225600.25", 0, 1767225600250000000},
		{"1767225600.1234567891", 0, 1767225600123456789},
		{"-1.5", 0, -1500000000},
		{"9223372035.999999999", 0, 9223372035999999999},
		{"9223372036", -ERANGE, 1},
		{"99999999999999999999999", -ERANGE, 1},
		{"", -EINVAL, 1},
		{"-", -EINVAL, 1},
		{"1.", -EINVAL, 1},
		{".5", -EINVAL, 1},
		{"1e9", -EINVAL, 1},
		{" 1", -EINVAL, 1},
		{"99999999999999999999999x", -EINVAL, 1},
	};
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		int64_t ns = 1;
		assert_int_equal(decimal_parse_unix(str_of(t[i].text), &ns), t[i].r);
		assert_true(ns == t[i].ns);
	}
}

static int collect(void *arg, struct str piece)
{
	return buf_add(arg, piece);
}

static int inflate_in_pieces(struct str text, size_t piece, struct buf *out, struct err *e)
{
	struct inflate *z = inflate_create(collect, out);
	int r = z ? 0 : -ENOMEM;

	for (size_t i = 0; i < text.n && r == 0; i += piece)
		r = inflate_feed(z, (struct str){text.p + i, MIN(piece, text.n - i)}, e);
	if (r == 0)
		r = inflate_end(z, e);
	inflate_destroy(z);
	return r;
}

static void append_gzip(struct buf *b, struct str plain)
{
	z_stream z = {0};
	char *room = buf_reserve(b, plain.n + 1024);

	assert_non_null(room);
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (Bytef *)(uintptr_t)plain.p;
	z.avail_in = (uInt)plain.n;
	z.next_out = (Bytef *)room;
	z.avail_out = (uInt)(plain.n + 1024);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	buf_grew(b, plain.n + 1024 - z.avail_out);
	(void)deflateEnd(&z);
}

static void gzip_and_plain_come_out_the_same(void **state)
{
	_cleanup_buf_ struct buf plain = BUF_INIT(1U << 20), packed = BUF_INIT(1U << 20);
	struct err e;

	for (int i = 0; i < 2000; i++)
		(void)buf_printf(&plain, "%d,%d\n", i, i * 7919 % 1000);
	append_gzip(&packed, (struct str){plain.p, 1000});
	append_gzip(&packed, (struct str){plain.p + 1000, 0});
	append_gzip(&packed, (struct str){plain.p + 1000, plain.n - 1000});
	for (size_t piece = 1; piece < 100000; piece *= 2) {
		_cleanup_buf_ struct buf a = BUF_INIT(1U << 20), b = BUF_INIT(1U << 20);

		assert_int_equal(inflate_in_pieces(buf_str(&plain), piece, &a, &e), 0);
		assert_true(str_eq(buf_str(&a), buf_str(&plain)));
		assert_int_equal(inflate_in_pieces(buf_str(&packed), piece, &b, &e), 0);
		assert_true(str_eq(buf_str(&b), buf_str(&plain)));
	}
	static const char *const short_ones[] = {"", "x", "\x1f", "xy"};
	for (size_t i = 0; i < ARRAY_SIZE(short_ones); i++) {
		_cleanup_buf_ struct buf a = BUF_INIT(64);
		assert_int_equal(inflate_in_pieces(str_of(short_ones[i]), 1, &a, &e), 0);
		assert_true(str_is(buf_str(&a), short_ones[i]));
	}
}

static void damaged_gzip_is_an_error(void **state)
{
	_cleanup_buf_ struct buf packed = BUF_INIT(1U << 20);
	struct err e;

	append_gzip(&packed, STR("time,cpu_millicores\n1,2\n3,4\n"));
	for (size_t n = 2; n < packed.n; n++) {
		_cleanup_buf_ struct buf out = BUF_INIT(65536);
		assert_int_equal(
			inflate_in_pieces((struct str){packed.p, n}, 3, &out, &e), -EBADMSG);
		assert_non_null(strstr(e.text, "cut short"));
	}
	_cleanup_buf_ struct buf out = BUF_INIT(65536);
	packed.p[packed.n - 6] ^= 1; /* the checksum */
	assert_int_equal(inflate_in_pieces(buf_str(&packed), 7, &out, &e), -EBADMSG);
	packed.p[packed.n - 6] ^= 1;
	(void)buf_puts(&packed, "rubbish");
	assert_int_equal(inflate_in_pieces(buf_str(&packed), 7, &out, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "follows the gzip"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_the_same_in_any_pieces),
		cmocka_unit_test(a_long_line_is_one_bad_line),
		cmocka_unit_test(an_endless_line_takes_no_memory),
		cmocka_unit_test(too_many_cells_are_a_bad_line),
		cmocka_unit_test(a_callback_may_stop),
		cmocka_unit_test(a_failed_allocation_is_an_error_and_nothing_more),
		cmocka_unit_test(numbers_are_read_as_parse_double_does),
		cmocka_unit_test(unix_seconds_are_exact),
		cmocka_unit_test(gzip_and_plain_come_out_the_same),
		cmocka_unit_test(damaged_gzip_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
