/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/macros.h"
#include "net/http/server.h"
#include "unit.h"

#define LARGE_PIECES 2000U

struct fixture {
	struct loop loop;
	struct http_server *server;
	unsigned int produced, finished;
};

static int on_hello(void *arg, const struct http_request *q, struct http_response *r, struct err *e)
{
	r->content_type = HTTP_TYPE_TEXT;
	return buf_puts(&r->body, "hello\n");
}

static int on_echo(void *arg, const struct http_request *q, struct http_response *r, struct err *e)
{
	struct str w = http_target_query(q->target, "w");

	return buf_printf(&r->body, "[%.*s][%.*s][%.*s][%s]", STR_ARG(q->params[0]),
		STR_ARG(q->params[1]), STR_ARG(w), q->accept);
}

static int on_fail(void *arg, const struct http_request *q, struct http_response *r, struct err *e)
{
	static const struct {
		const char *name;
		int error;
	} errors[] = {{"ENOENT", ENOENT}, {"EINVAL", EINVAL}, {"EAGAIN", EAGAIN}, {"EIO", EIO}};

	(void)buf_puts(&r->body, "half an answer");
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (str_is(q->params[0], errors[i].name))
			return err_set(e, errors[i].error, "it is \"%s\"", errors[i].name);
	return 0;
}

static int on_overflow(
	void *arg, const struct http_request *q, struct http_response *r, struct err *e)
{
	buf_finish(&r->body);
	buf_init(&r->body, 10);
	(void)buf_puts(&r->body, "more than ten bytes");
	buf_init(&r->body, 1000);
	r->body.error = -EMSGSIZE;
	return 0;
}

static int next_piece(void *state, struct buf *out)
{
	struct fixture *f = state;

	(void)buf_printf(out, "piece %06u\n", f->produced);
	return ++f->produced < LARGE_PIECES ? 1 : 0;
}

static int next_broken(void *state, struct buf *out)
{
	struct fixture *f = state;

	(void)buf_puts(out, "some");
	return f->produced++ < 3 ? 1 : -EIO;
}

static void finish_pieces(void *state)
{
	((struct fixture *)state)->finished++;
}

static int on_large(void *arg, const struct http_request *q, struct http_response *r, struct err *e)
{
	((struct fixture *)arg)->produced = 0;
	r->producer = (struct http_producer){next_piece, finish_pieces, arg};
	return 0;
}

static int on_broken(
	void *arg, const struct http_request *q, struct http_response *r, struct err *e)
{
	((struct fixture *)arg)->produced = 0;
	r->producer = (struct http_producer){next_broken, finish_pieces, arg};
	return 0;
}

static struct fixture fixture;

static const struct http_route routes[] = {
	{"/", on_hello, NULL},
	{"/hello", on_hello, NULL},
	{"/echo/{a}/{b}", on_echo, NULL},
	{"/fail/{how}", on_fail, NULL},
	{"/overflow", on_overflow, NULL},
	{"/large", on_large, &fixture},
	{"/broken", on_broken, &fixture},
};

static void start_with(struct http_server_options o)
{
	struct err e;

	assert_int_equal(loop_init(&fixture.loop), 0);
	o.listen = "127.0.0.1:0";
	o.routes = routes;
	o.routes_n = ARRAY_SIZE(routes);
	o.server_name = "test/1";
	fixture.produced = fixture.finished = 0;
	if (http_server_create(&fixture.server, &fixture.loop, &o, &e) < 0)
		fail_msg("%s", e.text);
}

static int start(void **state)
{
	start_with((struct http_server_options){.listen = NULL});
	return 0;
}

static int stop(void **state)
{
	http_server_destroy(TAKE_PTR(fixture.server));
	loop_finish(&fixture.loop);
	return 0;
}

/* A client on the same loop. */
struct client {
	int fd;
	struct loop_fd poll;
	struct buf got;
	bool closed;
	const char *until; /* the loop stops when this has come, or at the end of the connection */
};

static bool satisfied(const struct client *c)
{
	return c->closed || (c->until && c->got.p && strstr(c->got.p, c->until));
}

static void on_ready(void *arg, int status, unsigned int events)
{
	struct client *c = arg;
	char bytes[4096];
	ssize_t n;

	/* All there is: after an error libuv does not call again. */
	while ((n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		assert_int_equal(buf_append(&c->got, bytes, (size_t)n), 0);
	c->closed = n == 0 || (errno != EAGAIN && errno != EINTR);
	if (c->closed)
		(void)loop_fd_set(&c->poll, 0);
	if (satisfied(c))
		loop_stop(&fixture.loop);
}

static void client_open(struct client *c)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons(http_server_port(fixture.server)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	*c = (struct client){.got = BUF_INIT(1 << 22)};
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(c->fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(loop_fd_init(&fixture.loop, &c->poll, c->fd, on_ready, c), 0);
	assert_int_equal(loop_fd_set(&c->poll, LOOP_READ), 0);
}

static void client_send(struct client *c, const char *text)
{
	size_t n = strlen(text);

	assert_int_equal(send(c->fd, text, n, MSG_NOSIGNAL), n);
}

/* Until the text has come; NULL: until the server closes. */
static void client_wait(struct client *c, const char *until)
{
	c->until = until;
	while (!satisfied(c)) /* another client may stop the loop too */
		(void)loop_run(&fixture.loop);
	if (until && (!c->got.p || !strstr(c->got.p, until)))
		fail_msg("closed before %s: %s", until, c->got.p ? c->got.p : "nothing");
}

static void close_turn(void *arg)
{
	loop_stop(&fixture.loop);
}

static void client_finish(struct client *c)
{
	loop_fd_close(&c->poll, close_turn);
	(void)loop_run(&fixture.loop);
	(void)close(c->fd);
	buf_finish(&c->got);
}

static const char *status_line(const struct client *c)
{
	return c->got.p ? c->got.p : "";
}

/* One request on a connection of its own; what came back. */
static void ask(struct client *c, const char *request)
{
	client_open(c);
	client_send(c, request);
	client_wait(c, NULL);
}

#define REST " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

static void requests_get_the_answer_of_their_route(void **state)
{
	static const struct {
		const char *request, *status, *has, *has_not;
	} cases[] = {
		{"GET /" REST, "HTTP/1.1 200", "\r\n\r\nhello\n", NULL},
		{"GET /hello" REST, "HTTP/1.1 200", "Content-Type: text/plain; charset=utf-8\r\n",
			NULL},
		{"GET /hello" REST, "HTTP/1.1 200", "Content-Length: 6\r\n", NULL},
		{"GET /hello" REST, "HTTP/1.1 200", "Cache-Control: no-store\r\n", NULL},
		{"GET /hello" REST, "HTTP/1.1 200", "X-Content-Type-Options: nosniff\r\n", NULL},
		{"GET /hello" REST, "HTTP/1.1 200", "Server: test/1\r\n", NULL},
		{"HEAD /hello" REST, "HTTP/1.1 200", "Content-Length: 6\r\n", "hello"},
		{"GET /echo/a%2Fb/c%20d?x=1&w=24h+%3C" REST, "HTTP/1.1 200", "[a/b][c d][24h <][]",
			NULL},
		{"GET /echo/a/b HTTP/1.1\r\nHost: x\r\nAccept: "
		 "application/openmetrics-text\r\nConnection: close\r\n\r\n",
			"HTTP/1.1 200", "[application/openmetrics-text]", NULL},
		{"GET /echo/a/b%00c" REST, "HTTP/1.1 400", "{\"error\":", NULL},
		{"GET /hello HTTP/1.0\r\n\r\n", "HTTP/1.1 200", "Connection: close\r\n", NULL},
		{"GET /nothing" REST, "HTTP/1.1 404",
			"{\"error\":\"there is nothing under this path\"}", NULL},
		{"GET /nothing" REST, "HTTP/1.1 404", "Content-Type: application/json\r\n", NULL},
		{"HEAD /nothing" REST, "HTTP/1.1 404", "Content-Length: ", "{"},
		{"GET /hello/" REST, "HTTP/1.1 404", "error", NULL},
		{"GET /../etc/passwd" REST, "HTTP/1.1 404", "error", NULL},
		{"POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: "
		 "close\r\n\r\nabc",
			"HTTP/1.1 405", "Allow: GET, HEAD\r\n", NULL},
		{"DELETE /hello" REST, "HTTP/1.1 405", "Allow: GET, HEAD\r\n", NULL},
		{"OPTIONS /hello" REST, "HTTP/1.1 405", "Allow: GET, HEAD\r\n", NULL},
		{"BREW /hello" REST, "HTTP/1.1 405", "{\"error\":", NULL},
		{"POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: "
		 "close\r\n\r\n",
			"HTTP/1.1 404", "error", NULL},
		{"GET /fail/ENOENT" REST, "HTTP/1.1 404", "{\"error\":\"it is \\\"ENOENT\\\"\"}",
			"half"},
		{"GET /fail/EINVAL" REST, "HTTP/1.1 400", "EINVAL", "half"},
		{"GET /fail/EAGAIN" REST, "HTTP/1.1 503", "EAGAIN", "half"},
		{"GET /fail/EIO" REST, "HTTP/1.1 500", "EIO", "half"},
		{"GET /overflow" REST, "HTTP/1.1 500", "could not be made", NULL},
		{"GET /hello HTTP/1.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 400", "\r\n", NULL},
		{"nonsense\r\n\r\n", "", "", "hello"}, /* closed without a word */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct client c;

		ask(&c, cases[i].request);
		if (strncmp(status_line(&c), cases[i].status, strlen(cases[i].status)) != 0 ||
			!strstr(status_line(&c), cases[i].has) ||
			(cases[i].has_not && strstr(status_line(&c), cases[i].has_not)))
			fail_msg("%s\n→ %s", cases[i].request, status_line(&c));
		client_finish(&c);
	}
}

static void long_urls_get_414(void **state)
{
	static const size_t lengths[] = {HTTP_URL_MAX_BYTES + 1, 3000, 12000, 60000};

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct buf b = BUF_INIT(100000);
		struct client c;

		(void)buf_puts(&b, "GET /");
		for (size_t n = 1; n < lengths[i]; n++)
			(void)buf_putc(&b, 'x');
		(void)buf_puts(&b, REST);
		client_open(&c);
		(void)send(c.fd, b.p, b.n,
			MSG_NOSIGNAL); /* the end of a very long one may be refused */
		client_wait(&c, NULL);
		if (strncmp(status_line(&c), "HTTP/1.1 414", 12) != 0)
			fail_msg("%zu bytes: %.40s", lengths[i], status_line(&c));
		client_finish(&c);
		buf_finish(&b);
	}
}

static void large_answers_are_made_while_they_are_sent(void **state)
{
	struct client c;
	char last[32];

	ask(&c, "GET /large HTTP/1.0\r\n\r\n");
	(void)snprintf(last, sizeof(last), "piece %06u\n", LARGE_PIECES - 1);
	assert_non_null(strstr(status_line(&c), "\r\n\r\npiece 000000\npiece 000001\n"));
	assert_non_null(strstr(status_line(&c), last));
	assert_int_equal(strlen(strstr(status_line(&c), "\r\n\r\n") + 4), LARGE_PIECES * 13);
	assert_int_equal(fixture.finished, 1);
	client_finish(&c);
	ask(&c, "GET /large" REST);
	assert_non_null(strstr(status_line(&c), "Transfer-Encoding: chunked\r\n"));
	assert_non_null(strstr(status_line(&c), "\r\n0\r\n"));
	client_finish(&c);
	ask(&c, "HEAD /large" REST);
	assert_null(strstr(status_line(&c), "piece"));
	client_finish(&c);
	assert_int_equal(fixture.finished, 3);
}

static void a_broken_answer_does_not_look_whole(void **state)
{
	struct client c;

	ask(&c, "GET /broken" REST);
	assert_non_null(strstr(status_line(&c), "some"));
	assert_null(strstr(status_line(&c), "\r\n0\r\n"));
	assert_int_equal(fixture.finished, 1);
	client_finish(&c);
}

static void a_reader_that_leaves_is_forgotten(void **state)
{
	struct client c;

	client_open(&c);
	client_send(&c, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
	client_wait(&c, "piece 000000");
	client_finish(&c);
	ask(&c, "GET /hello" REST);
	client_finish(&c);
	assert_int_equal(fixture.finished, 1);
}

static void one_connection_serves_many_requests_also_byte_by_byte(void **state)
{
	static const char request[] = "GET /echo/1/2 HTTP/1.1\r\nHost: x\r\n\r\n";
	struct client c;

	client_open(&c);
	client_send(&c, request);
	client_wait(&c, "[1][2]");
	buf_clear(&c.got);
	for (const char *p = request; *p; p++)
		assert_int_equal(send(c.fd, p, 1, MSG_NOSIGNAL), 1);
	client_wait(&c, "[1][2]");
	buf_clear(&c.got);
	client_send(&c, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\nGET /echo/a/b" REST);
	client_wait(&c, NULL);
	assert_non_null(strstr(status_line(&c), "hello"));
	assert_non_null(strstr(status_line(&c), "[a][b]"));
	client_finish(&c);
	assert_int_equal(http_server_stats(fixture.server)->requests, 4);
	assert_int_equal(http_server_stats(fixture.server)->connections, 0);
}

static int start_few(void **state)
{
	start_with((struct http_server_options){.connections_max = 3});
	return 0;
}

static void who_only_holds_a_connection_makes_room_for_who_asks(void **state)
{
	struct client idle[12], c;

	for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
		client_open(&idle[i]);
	ask(&c, "GET /hello" REST);
	assert_non_null(strstr(status_line(&c), "hello"));
	client_finish(&c);
	for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
		client_finish(&idle[i]);
}

static int start_hasty(void **state)
{
	start_with((struct http_server_options){.connections_max = 3,
		.request_timeout_usec = 100 * USEC_PER_MSEC,
		.idle_timeout_usec = USEC_PER_SEC});
	return 0;
}

static void a_request_that_does_not_end_is_cut_off(void **state)
{
	static const char *const halves[] = {"", "GE", "GET /hello HTTP/1.1\r\nHost: x\r\n"};

	for (size_t i = 0; i < ARRAY_SIZE(halves); i++) {
		struct client c;

		client_open(&c);
		client_send(&c, halves[i]);
		client_wait(&c, NULL);
		assert_null(strstr(status_line(&c), "200"));
		client_finish(&c);
	}
}

static void a_reader_that_does_not_read_is_cut_off_and_others_are_told_to_come_back(void **state)
{
	static const int small = 2048;
	struct client slow[3], c;

	for (size_t i = 0; i < ARRAY_SIZE(slow); i++) {
		client_open(&slow[i]);
		(void)setsockopt(slow[i].fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
		client_send(&slow[i], "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
		(void)loop_fd_set(&slow[i].poll, 0);
	}
	/* All three are being answered, or have been cut off already where this machine is slow:
	 * either way the next one gets an answer at once. */
	ask(&c, "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	assert_true(strncmp(status_line(&c), "HTTP/1.1 503", 12) == 0 ||
		    strncmp(status_line(&c), "HTTP/1.1 200", 12) == 0);
	client_finish(&c);
	for (size_t i = 0; i < ARRAY_SIZE(slow); i++)
		client_finish(&slow[i]);
}

static void a_stop_in_the_middle_of_everything_leaves_nothing(void **state)
{
	struct client c[3];

	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		client_open(&c[i]);
	client_send(&c[0], "GET /la");
	client_send(&c[1], "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
	client_wait(&c[1], "piece");
	http_server_destroy(TAKE_PTR(fixture.server));
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		client_wait(&c[i], NULL);
		client_finish(&c[i]);
	}
	assert_int_equal(fixture.finished, 1);
}

static void a_bad_address_is_told(void **state)
{
	struct loop l;
	struct http_server *s = NULL;
	struct err e;

	assert_int_equal(loop_init(&l), 0);
	assert_int_equal(
		http_server_create(&s, &l, &(struct http_server_options){.listen = "x"}, &e),
		-EINVAL);
	assert_non_null(strstr(e.text, "accepted"));
	assert_null(s);
	loop_finish(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			requests_get_the_answer_of_their_route, start, stop),
		cmocka_unit_test_setup_teardown(long_urls_get_414, start, stop),
		cmocka_unit_test_setup_teardown(
			large_answers_are_made_while_they_are_sent, start, stop),
		cmocka_unit_test_setup_teardown(a_broken_answer_does_not_look_whole, start, stop),
		cmocka_unit_test_setup_teardown(a_reader_that_leaves_is_forgotten, start, stop),
		cmocka_unit_test_setup_teardown(
			one_connection_serves_many_requests_also_byte_by_byte, start, stop),
		cmocka_unit_test_setup_teardown(
			who_only_holds_a_connection_makes_room_for_who_asks, start_few, stop),
		cmocka_unit_test_setup_teardown(
			a_request_that_does_not_end_is_cut_off, start_hasty, stop),
		cmocka_unit_test_setup_teardown(
			a_reader_that_does_not_read_is_cut_off_and_others_are_told_to_come_back,
			start_hasty, stop),
		cmocka_unit_test_setup_teardown(
			a_stop_in_the_middle_of_everything_leaves_nothing, start, stop),
		cmocka_unit_test(a_bad_address_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
