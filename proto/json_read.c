// SPDX-License-Identifier: Apache-2.0
/* The only file that knows yajl. What yajl does not do is done here: it asks for memory without
 * looking at the answer, keeps as much of a token as there is, has no limit of depth, and is of no
 * use after an error. */
#include "proto/json_read.h"

#include <errno.h>
#include <setjmp.h>
#include <yajl/yajl_parse.h>

#include "proto/json_cut.h"
#include "proto/json_path.h"

#define STRING_MAX_DEFAULT 65536U
#define DEPTH_MAX_DEFAULT 128U
/* What the parser may hold beside two copies of the longest string: its own state, a byte for each
 * level. */
#define MEMORY_BESIDE 262144U

/* Every block the parser holds, so that they can be freed after it was left in the middle. */
struct link {
	struct link *next, *previous;
};

struct block {
	struct link link;
	size_t size;
	max_align_t data[];
};

struct level {
	uint16_t node;
	bool array;
};

struct json_reader {
	const struct json_spec *spec;
	void *arg;
	yajl_handle yajl;
	yajl_alloc_funcs alloc_funcs;
	struct link blocks; /* ring of struct block */
	size_t memory, memory_max;
	jmp_buf out_of_memory;
	int alloc_error;

	struct json_cut cut;
	bool next_is_cut;
	size_t string_max;
	unsigned int depth_max;

	unsigned int depth;
	unsigned int skip; /* levels of an unwanted subtree that are open */
	unsigned int n_levels;
	struct level level[2 * JSON_PATH_DEPTH + 1]; /* prefix and path */
	uint16_t pending;                            /* node of the value that follows a key */
	bool too_deep;
	uint64_t documents;
	uint64_t position;       /* bytes of the text before this piece */
	uint64_t document_bytes; /* of the current document */
	bool skip_line;
	int error;       /* what ended the reading */
	int value_error; /* what value() returned */
	size_t key_n;
	char key[JSON_KEY_MAX];
	struct json_path_tree tree;
};

static void *refuse_memory(struct json_reader *r, int error)
{
	r->alloc_error = error;
	longjmp(r->out_of_memory, 1);
}

static void *reader_realloc(void *ctx, void *p, size_t n)
{
	struct json_reader *r = ctx;
	struct block *old = p ? CONTAINER_OF(p, struct block, data) : NULL;
	size_t old_size = old ? old->size : 0;

	if (n > r->memory_max || r->memory - old_size > r->memory_max - n)
		return refuse_memory(r, -EMSGSIZE);
	struct block *b = realloc(old, sizeof *b + n);
	if (!b)
		return refuse_memory(r, -ENOMEM);
	if (!old) {
		b->link.next = &r->blocks;
		b->link.previous = r->blocks.previous;
	}
	b->link.next->previous = b->link.previous->next = &b->link;
	b->size = n;
	r->memory += n - old_size;
	return b->data;
}

static void *reader_malloc(void *ctx, size_t n)
{
	return reader_realloc(ctx, NULL, n);
}

static void reader_free(void *ctx, void *p)
{
	struct json_reader *r = ctx;
	if (!p)
		return;
	struct block *b = CONTAINER_OF(p, struct block, data);
	b->link.next->previous = b->link.previous;
	b->link.previous->next = b->link.next;
	r->memory -= b->size;
	free(b);
}

static void free_parser(struct json_reader *r)
{
	struct link *next;

	for (struct link *l = r->blocks.next; l != &r->blocks; l = next) {
		next = l->next;
		free(CONTAINER_OF(l, struct block, link));
	}
	r->blocks.next = r->blocks.previous = &r->blocks;
	r->memory = 0;
	r->yajl = NULL;
}

static int deliver(struct json_reader *r, uint16_t node, struct json_value *v)
{
	v->key = (struct str){r->key, r->tree.node[node].has_key ? r->key_n : 0};
	int result = r->spec->value(r->arg, r->tree.node[node].id, v);
	if (result < 0)
		r->value_error = result;
	return result;
}

/* The node of the value that begins now; false when nobody wants it or anything in it. */
static bool node_of_value(const struct json_reader *r, uint16_t *ret)
{
	*ret = 0;
	if (r->n_levels == 0)
		return true;
	const struct level *top = &r->level[r->n_levels - 1];
	*ret = top->array ? json_path_element(&r->tree, top->node) : r->pending;
	return *ret != 0;
}

static void end_of_value(struct json_reader *r)
{
	if (r->depth > 0)
		return;
	r->documents++;
	r->document_bytes = 0;
}

static int on_scalar(struct json_reader *r, struct json_value *v)
{
	uint16_t node;
	int result = 0;

	if (r->skip == 0 && node_of_value(r, &node) && r->tree.node[node].wanted)
		result = deliver(r, node, v);
	end_of_value(r);
	return result >= 0;
}

static int on_null(void *ctx)
{
	return on_scalar(ctx, &(struct json_value){.type = JSON_NULL});
}

static int on_bool(void *ctx, int v)
{
	return on_scalar(ctx, &(struct json_value){.type = JSON_BOOL, .boolean = v != 0});
}

static int on_number(void *ctx, const char *p, size_t n)
{
	return on_scalar(ctx, &(struct json_value){.type = JSON_NUMBER, .text = {p, n}});
}

static bool take_cut(struct json_reader *r)
{
	bool cut = r->next_is_cut;
	r->next_is_cut = false;
	return cut;
}

static int on_string(void *ctx, const unsigned char *p, size_t n)
{
	bool cut = take_cut(ctx);
	return on_scalar(
		ctx, &(struct json_value){
			     .type = JSON_STRING, .cut = cut, .text = {(const char *)p, n}});
}

static int on_key(void *ctx, const unsigned char *p, size_t n)
{
	struct json_reader *r = ctx;
	bool cut = take_cut(r);

	if (r->skip > 0)
		return 1;
	r->pending = 0;
	if (cut || n > JSON_KEY_MAX)
		return 1;
	r->pending = json_path_key(
		&r->tree, r->level[r->n_levels - 1].node, (struct str){(const char *)p, n});
	if (r->pending && r->tree.node[r->pending].step == JSON_STEP_ANY_KEY) {
		memcpy(r->key, p, n);
		r->key_n = n;
	}
	return 1;
}

static int on_start(struct json_reader *r, bool array)
{
	uint16_t node;

	r->depth++;
	if (r->depth > r->depth_max)
		r->too_deep = true;
	if (r->skip > 0) {
		r->skip++;
		return 1;
	}
	if (r->depth > r->depth_max || !node_of_value(r, &node)) {
		r->skip = 1;
		return 1;
	}
	if (r->tree.node[node].wanted) {
		int result = deliver(
			r, node, &(struct json_value){.type = array ? JSON_ARRAY : JSON_OBJECT});
		if (result == JSON_SKIP)
			r->skip = 1;
		if (result != 0)
			return result > 0;
	}
	r->level[r->n_levels++] = (struct level){node, array};
	return 1;
}

static int on_end(struct json_reader *r, bool array)
{
	int result = 0;

	r->depth--;
	if (r->skip > 0) {
		r->skip--;
	} else {
		uint16_t node = r->level[--r->n_levels].node;
		if (r->tree.node[node].wanted)
			result = deliver(r, node,
				&(struct json_value){
					.type = array ? JSON_ARRAY_END : JSON_OBJECT_END});
	}
	end_of_value(r);
	return result >= 0;
}

static int on_start_object(void *ctx)
{
	return on_start(ctx, false);
}

static int on_end_object(void *ctx)
{
	return on_end(ctx, false);
}

static int on_start_array(void *ctx)
{
	return on_start(ctx, true);
}

static int on_end_array(void *ctx)
{
	return on_end(ctx, true);
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_bool,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_start_map = on_start_object,
	.yajl_map_key = on_key,
	.yajl_end_map = on_end_object,
	.yajl_start_array = on_start_array,
	.yajl_end_array = on_end_array,
};

struct json_reader *json_reader_create(const struct json_spec *spec, void *arg)
{
	struct json_reader *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->spec = spec;
	r->arg = arg;
	r->string_max = spec->string_max ? spec->string_max : STRING_MAX_DEFAULT;
	r->depth_max = spec->depth_max ? spec->depth_max : DEPTH_MAX_DEFAULT;
	r->memory_max = 4 * r->string_max + MEMORY_BESIDE;
	r->blocks.next = r->blocks.previous = &r->blocks;
	r->alloc_funcs = (yajl_alloc_funcs){reader_malloc, reader_realloc, reader_free, r};
	json_path_tree_init(&r->tree);
	if (json_path_tree_add(&r->tree, spec->prefix, spec->paths, spec->n_paths) < 0 ||
		json_path_tree_add(&r->tree, NULL, spec->outer, spec->n_outer) < 0)
		abort(); /* a mistake in the program's own table */
	json_reader_reset(r);
	return r;
}

void json_reader_destroy(struct json_reader *r)
{
	if (!r)
		return;
	free_parser(r);
	free(r);
}

/* Leaves the document in whose middle we are. */
static void restart(struct json_reader *r)
{
	free_parser(r);
	r->cut = (struct json_cut){.string_max = r->string_max};
	r->next_is_cut = r->skip_line = false;
	r->depth = r->skip = r->n_levels = 0;
	r->pending = 0;
	r->document_bytes = 0;
	r->value_error = 0;
}

void json_reader_reset(struct json_reader *r)
{
	restart(r);
	r->error = 0;
	r->too_deep = false;
	r->documents = 0;
	r->position = 0;
}

uint64_t json_reader_documents(const struct json_reader *r)
{
	return r->documents;
}

bool json_reader_take_too_deep(struct json_reader *r)
{
	bool too_deep = r->too_deep;
	r->too_deep = false;
	return too_deep;
}

/* yajl's words for it, without the newline at their end. */
static int syntax_error(struct json_reader *r, struct err *e)
{
	uint64_t at = r->position + yajl_get_bytes_consumed(r->yajl);
	unsigned char *text = yajl_get_error(r->yajl, 0, NULL, 0);
	struct str s = str_trim(str_of((const char *)text));
	int result = err_set(
		e, EBADMSG, "byte %llu: not JSON: %.*s", (unsigned long long)at, STR_ARG(s));
	yajl_free_error(r->yajl, text);
	return result;
}

static int judge(struct json_reader *r, yajl_status status, struct err *e)
{
	if (status == yajl_status_ok)
		return 0;
	if (status == yajl_status_client_canceled)
		return r->value_error;
	return syntax_error(r, e);
}

static int parse(struct json_reader *r, const char *p, size_t n, struct err *e)
{
	if (_setjmp(r->out_of_memory)) {
		free_parser(r);
		if (r->alloc_error == -EMSGSIZE)
			return err_set(e, EMSGSIZE, "byte %llu: nested too deep to be read",
				(unsigned long long)r->position);
		return err_set(e, ENOMEM, "no memory left to read JSON");
	}
	if (!r->yajl) {
		r->yajl = yajl_alloc(&callbacks, &r->alloc_funcs, r);
		(void)yajl_config(
			r->yajl, yajl_allow_multiple_values, r->spec->one_document ? 0 : 1);
	}
	return judge(r, yajl_parse(r->yajl, (const unsigned char *)p, n), e);
}

static bool in_document(const struct json_reader *r)
{
	return r->depth > 0 || r->cut.in_string;
}

/* The next part of the piece, up to where something is cut out. */
static int feed_part(
	struct json_reader *r, const char *p, size_t n, size_t *ret_used, struct err *e)
{
	size_t drop;
	ssize_t keep = json_cut_next(&r->cut, p, n, &drop);
	if (keep < 0)
		return err_set(e, EMSGSIZE,
			"byte %llu: a number or word of more than %u characters",
			(unsigned long long)r->position, JSON_NUMBER_MAX);
	if (keep > 0) {
		int result = parse(r, p, (size_t)keep, e);
		if (result < 0)
			return result;
	}
	if (drop > 0)
		r->next_is_cut = true;
	*ret_used = (size_t)keep + drop;
	r->position += *ret_used;
	if (in_document(r))
		r->document_bytes += *ret_used;
	if (r->spec->document_max && r->document_bytes > r->spec->document_max)
		return err_set(
			e, EMSGSIZE, "a document of more than %zu bytes", r->spec->document_max);
	return 0;
}

static int feed_all(struct json_reader *r, const char *p, size_t n, struct err *e)
{
	while (n > 0) {
		size_t used = 0;
		int result = feed_part(r, p, n, &used, e);
		if (result < 0)
			return result;
		p += used;
		n -= used;
	}
	return 0;
}

static void bad_line(struct json_reader *r, int error, const struct err *e)
{
	r->spec->bad_document(r->arg, error, e);
	restart(r);
}

/* A line or a part of one; a document that is not over with its line is a bad one. */
static void feed_line(struct json_reader *r, const char *p, size_t n, bool ends)
{
	uint64_t end = r->position + n;
	struct err e = {0};

	if (!r->skip_line) {
		int result = feed_all(r, p, n, &e);
		if (result == 0 && ends && in_document(r))
			result = err_set(&e, EBADMSG,
				"byte %llu: the line ends in the middle of a document",
				(unsigned long long)r->position);
		if (result < 0) {
			bad_line(r, result, &e);
			r->skip_line = true;
		}
	}
	if (ends)
		r->skip_line = false;
	r->position = end;
}

int json_reader_feed(struct json_reader *r, const char *p, size_t n, struct err *e)
{
	if (!r->spec->bad_document) {
		if (r->error == 0)
			r->error = feed_all(r, p, n, e);
		return r->error;
	}
	while (n > 0) {
		const char *newline = memchr(p, '\n', n);
		size_t part = newline ? (size_t)(newline - p) + 1 : n;

		feed_line(r, p, part, newline != NULL);
		p += part;
		n -= part;
	}
	return 0;
}

int json_reader_end(struct json_reader *r, struct err *e)
{
	/* A number is only known to be over by what follows it. */
	if (r->error == 0 && !in_document(r) && !r->skip_line && r->yajl)
		r->error = parse(r, " ", 1, e);
	if (r->error == 0 && in_document(r))
		r->error =
			err_set(e, EBADMSG, "byte %llu: the text ends in the middle of a document",
				(unsigned long long)r->position);
	return r->error;
}

int json_read(const struct json_spec *spec, void *arg, struct str text, struct err *e)
{
	struct json_reader *r = json_reader_create(spec, arg);
	if (!r)
		return err_set(e, ENOMEM, "no memory left to read JSON");
	int result = json_reader_feed(r, text.p, text.n, e);
	if (result == 0)
		result = json_reader_end(r, e);
	if (result == 0 && json_reader_documents(r) == 0)
		result = err_set(e, ENODATA, "there is no JSON document");
	json_reader_destroy(r);
	return result;
}
