// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include "proto/checkpoint.h"
#include "test/unit/unit.h"

#define TAG_HISTORY CHECKPOINT_TAG('H', 'I', 'S', 'T')
#define TAG_RECORD CHECKPOINT_TAG('R', 'E', 'C', ' ')

static const struct checkpoint_identity ours = {
	.node_uid = {"7d6f", 4},
	.machine = {"m1", 2},
};

static void write_sample(struct buf *b, bool with_unknown)
{
	checkpoint_begin(b, &ours, 1234567890123456789);
	if (with_unknown) {
		size_t unknown = checkpoint_open_chunk(b, CHECKPOINT_TAG('N', 'E', 'X', 'T'));
		checkpoint_put_str(b, STR("from the future"));
		checkpoint_close_chunk(b, unknown);
	}
	size_t history = checkpoint_open_chunk(b, TAG_HISTORY);
	for (uint32_t i = 0; i < 3; i++) {
		size_t record = checkpoint_open_chunk(b, TAG_RECORD);
		checkpoint_put_u32(b, i);
		checkpoint_put_u8(b, 200);
		checkpoint_put_u64(b, UINT64_MAX - i);
		checkpoint_put_i64(b, -5);
		checkpoint_put_double(b, -0.1);
		checkpoint_put_str(b, STR("shipper"));
		checkpoint_put_str(b, (struct str){NULL, 0});
		if (with_unknown)
			checkpoint_put_u64(b, 99);
		checkpoint_close_chunk(b, record);
	}
	checkpoint_close_chunk(b, history);
	assert_int_equal(checkpoint_finish(b), 0);
}

static void assert_sample(struct checkpoint *c)
{
	uint32_t tag;
	struct checkpoint_cursor chunk, record;
	unsigned int histories = 0;

	assert_true(c->saved_at_ns == 1234567890123456789);
	assert_true(str_is(c->identity.node_uid, "7d6f") && str_is(c->identity.machine, "m1"));
	while (checkpoint_next_chunk(&c->chunks, &tag, &chunk)) {
		if (tag != TAG_HISTORY)
			continue;
		histories++;
		for (uint32_t i = 0; i < 3; i++) {
			assert_true(checkpoint_next_chunk(&chunk, &tag, &record));
			assert_int_equal(tag, TAG_RECORD);
			assert_int_equal(checkpoint_get_u32(&record), i);
			assert_int_equal(checkpoint_get_u8(&record), 200);
			assert_true(checkpoint_get_u64(&record) == UINT64_MAX - i);
			assert_true(checkpoint_get_i64(&record) == -5);
			assert_true(checkpoint_get_double(&record) == -0.1);
			assert_true(str_is(checkpoint_get_str(&record), "shipper"));
			assert_int_equal(checkpoint_get_str(&record).n, 0);
			assert_false(record.failed);
		}
		assert_false(checkpoint_next_chunk(&chunk, &tag, &record));
		assert_false(chunk.failed);
	}
	assert_false(c->chunks.failed);
	assert_int_equal(histories, 1);
}

static void what_was_written_is_read(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(65536);
	struct checkpoint c;

	write_sample(&b, false);
	assert_int_equal(checkpoint_read(buf_str(&b), &ours, &c, NULL), CHECKPOINT_OK);
	assert_int_equal(c.version, CHECKPOINT_VERSION);
	assert_sample(&c);
}

/* Puts other versions into a finished file. */
static void set_versions(struct buf *b, unsigned char version, unsigned char readable_by)
{
	b->p[8] = (char)version;
	b->p[12] = (char)readable_by;
	uint32_t crc = (uint32_t)crc32_z(0, (const unsigned char *)b->p, b->n - 4);
	for (unsigned int i = 0; i < 4; i++)
		b->p[b->n - 4 + i] = (char)(crc >> (8 * i));
}

static void the_next_version_is_read_without_its_news(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(65536);
	struct checkpoint c;
	struct err e;

	write_sample(&b, true);
	set_versions(&b, CHECKPOINT_VERSION + 1, CHECKPOINT_VERSION);
	assert_int_equal(checkpoint_read(buf_str(&b), &ours, &c, NULL), CHECKPOINT_OK);
	assert_int_equal(c.version, CHECKPOINT_VERSION + 1);
	assert_sample(&c);
	set_versions(&b, CHECKPOINT_VERSION + 2, CHECKPOINT_VERSION + 1);
	assert_int_equal(checkpoint_read(buf_str(&b), &ours, &c, &e), CHECKPOINT_TOO_NEW);
	assert_non_null(strstr(e.text, "version 3"));
}

static void a_file_cut_anywhere_is_truncated(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(65536);
	struct checkpoint c;
	struct err e;

	write_sample(&b, false);
	assert_int_equal(checkpoint_read((struct str){b.p, 0}, &ours, &c, &e), CHECKPOINT_EMPTY);
	for (size_t n = 1; n < b.n; n++) {
		assert_int_equal(
			checkpoint_read((struct str){b.p, n}, &ours, &c, &e), CHECKPOINT_TRUNCATED);
		assert_non_null(strstr(e.text, "cut short"));
	}
}

static void every_flipped_bit_is_found(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(65536);
	struct checkpoint c;
	struct err e;

	write_sample(&b, false);
	for (size_t i = 0; i < b.n * 8; i++) {
		b.p[i / 8] = (char)(b.p[i / 8] ^ (1 << (i % 8)));
		assert_int_not_equal(checkpoint_read(buf_str(&b), &ours, &c, &e), CHECKPOINT_OK);
		b.p[i / 8] = (char)(b.p[i / 8] ^ (1 << (i % 8)));
	}
	(void)buf_putc(&b, 'x');
	assert_int_equal(checkpoint_read(buf_str(&b), &ours, &c, &e), CHECKPOINT_TORN);
}

static void others_files_are_told_apart(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(65536);
	struct checkpoint c;
	struct err e;
	static const struct {
		struct checkpoint_identity id;
		enum checkpoint_verdict verdict;
		const char *says;
	} t[] = {
		{{{"7d6f", 4}, {"m1", 2}}, CHECKPOINT_OK, NULL},
		{{{"", 0}, {"m1", 2}}, CHECKPOINT_OK, NULL},
		{{{"7d6f", 4}, {"", 0}}, CHECKPOINT_OK, NULL},
		{{{"7d6e", 4}, {"m1", 2}}, CHECKPOINT_FOREIGN, "UID 7d6f; this is 7d6e"},
		{{{"7d6f", 4}, {"m2", 2}}, CHECKPOINT_FOREIGN, "machine m1; this is m2"},
	};

	write_sample(&b, false);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		assert_int_equal(checkpoint_read(buf_str(&b), &t[i].id, &c, &e), t[i].verdict);
		if (t[i].says)
			assert_non_null(strstr(e.text, t[i].says));
	}
	assert_int_equal(checkpoint_read(STR("{\"a\":1}"), &ours, &c, &e), CHECKPOINT_NOT_ONE);
	assert_int_equal(
		checkpoint_read(STR("pernode\n, a text"), &ours, &c, &e), CHECKPOINT_NOT_ONE);
	for (int v = CHECKPOINT_OK; v <= CHECKPOINT_TOO_NEW; v++)
		assert_true(strlen(checkpoint_verdict_name((enum checkpoint_verdict)v)) > 1);
}

static void reading_past_a_chunk_fails_once_and_for_all(void **state)
{
	struct checkpoint_cursor c = {(const unsigned char *)"\x01\x02\x03", 3, false}, chunk;
	uint32_t tag;

	assert_int_equal(checkpoint_get_u8(&c), 1);
	assert_int_equal(checkpoint_get_u32(&c), 0);
	assert_true(c.failed);
	assert_int_equal(checkpoint_get_u8(&c), 0);
	assert_int_equal(checkpoint_get_str(&c).n, 0);
	/* a chunk that claims more than there is */
	c = (struct checkpoint_cursor){(const unsigned char *)"HIST\xff\xff\xff\xff.", 9, false};
	assert_false(checkpoint_next_chunk(&c, &tag, &chunk));
	assert_true(c.failed);
}

static void a_full_buffer_is_an_error(void **state)
{
	_cleanup_buf_ struct buf whole = BUF_INIT(65536);
	write_sample(&whole, false);
	for (size_t max = 1; max < whole.n; max++) {
		_cleanup_buf_ struct buf b = BUF_INIT(max);

		checkpoint_begin(&b, &ours, 0);
		size_t chunk = checkpoint_open_chunk(&b, TAG_HISTORY);
		for (size_t i = 0; i < max; i++)
			checkpoint_put_u8(&b, 1);
		checkpoint_close_chunk(&b, chunk);
		assert_int_equal(checkpoint_finish(&b), -EMSGSIZE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(the_next_version_is_read_without_its_news),
		cmocka_unit_test(a_file_cut_anywhere_is_truncated),
		cmocka_unit_test(every_flipped_bit_is_found),
		cmocka_unit_test(others_files_are_told_apart),
		cmocka_unit_test(reading_past_a_chunk_fails_once_and_for_all),
		cmocka_unit_test(a_full_buffer_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
