// SPDX-License-Identifier: Apache-2.0
/* What is read does not depend on how the text was cut into pieces; what is written can be read. */
#include <stdint.h>
#include <stdlib.h>

#include "proto/json_read.h"
#include "proto/json_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes what arrives as a JSON array, one element for each call. */
static int copy(void *arg, unsigned int id, const struct json_value *v)
{
	struct json_writer *w = arg;

	json_begin_object(w);
	json_key(w, "id");
	json_u64(w, id);
	json_key_str(w, v->key);
	json_u64(w, v->type);
	json_key(w, "text");
	json_str(w, v->text);
	json_key(w, "cut");
	json_bool(w, v->cut || v->boolean);
	json_end_object(w);
	return 0;
}

static void ignore(void *arg, int r, const struct err *e)
{
}

static int accept(void *arg, unsigned int id, const struct json_value *v)
{
	return 0;
}

static const struct json_path paths[] = {
	{"", 1},
	{"a", 2},
	{"*", 3},
	{"a[]", 4},
	{"a[].b", 5},
	{"[]", 6},
	{"[].*", 7},
	{"*.*['a.b']", 8},
};

static int read_all(const struct json_spec *spec, const uint8_t *data, size_t size, size_t piece,
	struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);
	struct json_reader *r = json_reader_create(spec, &w);
	int result = 0;

	if (!r)
		abort();
	json_begin_array(&w);
	for (size_t i = 0; i < size && result == 0; i += piece)
		result = json_reader_feed(r, (const char *)data + i, MIN(piece, size - i), NULL);
	if (result == 0)
		result = json_reader_end(r, NULL);
	json_end_array(&w);
	json_reader_destroy(r);
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct json_spec spec = {.paths = paths,
		.n_paths = ARRAY_SIZE(paths),
		.value = copy,
		.string_max = 24,
		.depth_max = 6};
	static const struct json_spec lines = {.paths = paths,
		.n_paths = ARRAY_SIZE(paths),
		.value = copy,
		.bad_document = ignore,
		.document_max = 512,
		.string_max = 24};
	static const struct json_spec any = {
		.paths = paths, .n_paths = 1, .value = accept, .depth_max = 1000};
	_cleanup_buf_ struct buf whole = BUF_INIT(64U << 20), pieces = BUF_INIT(64U << 20);

	if (size > 65536)
		return 0;
	int r1 = read_all(&spec, data, size, size ? size : 1, &whole);
	int r2 = read_all(&spec, data, size, size ? 1U + data[0] % 7U : 1, &pieces);
	if (r1 == 0 && (r2 != 0 || !str_eq(buf_str(&whole), buf_str(&pieces))))
		abort();
	if (r1 != 0 && r2 == 0)
		abort();
	if (json_read(&any, NULL, buf_str(&whole), NULL) != 0)
		abort();
	buf_clear(&whole);
	(void)read_all(&lines, data, size, 5, &whole);
	return 0;
}
