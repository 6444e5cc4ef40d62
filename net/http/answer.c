/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/answer.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include "base/macros.h"
#include "proto/json_write.h"

#define PIECE_MAX_BYTES (256U * 1024U) /* one piece of a producer; they should be far smaller */
#define BLOCK_BYTES SIZE_OR_TINY(4096U, 16U)

void http_response_error(struct http_response *response, unsigned int status, const char *text)
{
	struct json_writer w = JSON_WRITER(&response->body);

	response->status = status;
	response->content_type = HTTP_TYPE_JSON;
	buf_clear(&response->body);
	json_begin_object(&w);
	json_key(&w, "error");
	json_string(&w, text);
	json_end_object(&w);
	(void)buf_putc(&response->body, '\n');
}

/* A producer on its way: what next() made and libmicrohttpd has not yet taken. */
struct production {
	struct http_producer producer;
	struct buf piece;
	size_t taken;
	bool last;
};

static ssize_t on_more(void *arg, uint64_t position, char *out, size_t max)
{
	struct production *p = arg;
	size_t n;

	while (p->taken == p->piece.n) {
		int r;

		if (p->last)
			return MHD_CONTENT_READER_END_OF_STREAM;
		buf_clear(&p->piece);
		p->taken = 0;
		r = p->producer.next(p->producer.state, &p->piece);
		if (r < 0 || p->piece.error)
			return MHD_CONTENT_READER_END_WITH_ERROR;
		p->last = r == 0;
	}
	n = MIN(max, p->piece.n - p->taken);
	memcpy(out, p->piece.p + p->taken, n);
	p->taken += n;
	return (ssize_t)n;
}

static void production_free(void *arg)
{
	struct production *p = arg;

	if (p->producer.finish)
		p->producer.finish(p->producer.state);
	buf_finish(&p->piece);
	free(p);
}

static struct MHD_Response *produced(const struct http_producer *producer, bool head)
{
	struct production *p = calloc(1, sizeof(*p));
	struct MHD_Response *m;

	if (!p) {
		if (producer->finish)
			producer->finish(producer->state);
		return NULL;
	}
	p->producer = *producer;
	buf_init(&p->piece, PIECE_MAX_BYTES);
	m = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, BLOCK_BYTES, on_more, p, production_free);
	if (!m)
		production_free(p);
	/* libmicrohttpd ends a chunked answer to HEAD with its last chunk, which would be taken for
	 * the next answer's beginning: without chunks there is none. */
	else if (head)
		(void)MHD_set_response_options(m, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
	return m;
}

static struct MHD_Response *whole(struct buf *body)
{
	size_t n = body->n;
	char *p = buf_take(body);
	struct MHD_Response *m;

	if (!p)
		return MHD_create_response_from_buffer(
			0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
	m = MHD_create_response_from_buffer(n, p, MHD_RESPMEM_MUST_FREE);
	if (!m)
		free(p);
	return m;
}

static enum MHD_Result queue(const struct http_server_options *options,
	struct MHD_Connection *connection, struct http_response *r, bool head, const char *header,
	const char *value)
{
	struct MHD_Response *m = r->producer.next ? produced(&r->producer, head) : whole(&r->body);
	enum MHD_Result result = MHD_NO;

	buf_finish(&r->body);
	if (!m)
		return MHD_NO;
	if (MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_TYPE, r->content_type) == MHD_YES &&
		MHD_add_response_header(m, "X-Content-Type-Options", "nosniff") == MHD_YES &&
		(!r->no_store || MHD_add_response_header(m, MHD_HTTP_HEADER_CACHE_CONTROL,
					 "no-store") == MHD_YES) &&
		(!options->server_name || MHD_add_response_header(m, MHD_HTTP_HEADER_SERVER,
						  options->server_name) == MHD_YES) &&
		(!header || MHD_add_response_header(m, header, value) == MHD_YES))
		result = MHD_queue_response(connection, r->status, m);
	MHD_destroy_response(m);
	return result;
}

static void response_init(struct http_response *r)
{
	*r = (struct http_response){
		.status = MHD_HTTP_OK, .content_type = HTTP_TYPE_JSON, .no_store = true};
	buf_init(&r->body, HTTP_ANSWER_MAX_BYTES);
}

enum MHD_Result http_answer_error(const struct http_server_options *options,
	struct MHD_Connection *connection, unsigned int status, const char *text,
	const char *header, const char *value)
{
	struct http_response r;

	response_init(&r);
	http_response_error(&r, status, text);
	return queue(options, connection, &r, false, header, value);
}

static const struct http_route *find_route(const struct http_server_options *options,
	const struct http_target *target, struct str params[HTTP_PARAMS_MAX])
{
	for (size_t i = 0; i < options->routes_n; i++)
		if (http_target_match(target, options->routes[i].pattern, params))
			return &options->routes[i];
	return NULL;
}

static unsigned int status_of(int error)
{
	switch (error) {
	case -ENOENT:
		return MHD_HTTP_NOT_FOUND;
	case -EINVAL:
		return MHD_HTTP_BAD_REQUEST;
	case -EAGAIN:
		return MHD_HTTP_SERVICE_UNAVAILABLE;
	default:
		return MHD_HTTP_INTERNAL_SERVER_ERROR;
	}
}

/* Lets the route answer; what goes wrong becomes an answer too. */
static void handle(
	const struct http_route *route, const struct http_request *request, struct http_response *r)
{
	struct err e = {.text = ""};
	int error = route->handle(route->arg, request, r, &e);

	if (error == 0 && !r->producer.next && r->body.error) {
		error = r->body.error;
		(void)err_set(&e, -error, "the answer could not be made: %s", strerror(-error));
	}
	if (error == 0)
		return;
	if (r->producer.finish)
		r->producer.finish(r->producer.state);
	r->producer = (struct http_producer){.next = NULL};
	http_response_error(r, status_of(error), err_text(&e, error));
}

bool http_is_get(const char *method)
{
	return strcmp(method, MHD_HTTP_METHOD_GET) == 0 ||
	       strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
}

enum MHD_Result http_answer(const struct http_server_options *options,
	struct MHD_Connection *connection, const struct http_asked *asked, const char *path,
	const char *method, unsigned int *ret_status)
{
	const char *accept =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	struct http_request request = {
		.path = path,
		.target = &asked->target,
		.accept = accept ? accept : "",
		.head = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0,
	};
	const struct http_route *route;
	struct http_response r;
	const char *header = NULL, *value = NULL;

	response_init(&r);
	route = asked->error ? NULL : find_route(options, &asked->target, request.params);
	if (asked->error == -ENAMETOOLONG) {
		http_response_error(&r, MHD_HTTP_URI_TOO_LONG,
			"the URL is longer than any that is answered here");
	} else if (asked->error) {
		http_response_error(&r, MHD_HTTP_BAD_REQUEST, "the URL is not well formed");
	} else if (!route) {
		http_response_error(&r, MHD_HTTP_NOT_FOUND, "there is nothing under this path");
	} else if (!http_is_get(method)) {
		http_response_error(
			&r, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are answered here");
		header = MHD_HTTP_HEADER_ALLOW;
		value = "GET, HEAD";
	} else {
		handle(route, &request, &r);
	}
	*ret_status = r.status;
	return queue(options, connection, &r, request.head, header, value);
}
