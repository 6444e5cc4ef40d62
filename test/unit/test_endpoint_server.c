/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoint over a real socket on the loopback interface. The one who asks is another thread,
 * since the server lives on the loop of this one. */
#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/loop.h"
#include "helper_view.h"
#include "unit.h"

#define ANSWER_MAX 400000U

struct question {
	const char *method, *target, *headers;
	const char *status;  /* the first line begins with it */
	const char *has;     /* somewhere in the answer; NULL */
	const char *has_not; /* NULL */
	bool no_body;
};

static char long_target[3000];

static const struct question questions[] = {
	{"GET", "/", "", "HTTP/1.1 200 ", "<!doctype html>", NULL, false},
	{"GET", "/healthz", "", "HTTP/1.1 200 ", "\r\n\r\n", NULL, false},
	{"GET", "/readyz?verbose", "", "HTTP/1.1 200 ", "[+]pods ok", NULL, false},
	{"GET", "/metrics", "", "HTTP/1.1 200 ", "version=0.0.4", "# EOF", false},
	{"GET", "/metrics", "Accept: application/openmetrics-text\r\n", "HTTP/1.1 200 ", "# EOF",
		NULL, false},
	{"GET", "/v1/recommendations", "", "HTTP/1.1 200 ", "application/json", NULL, false},
	{"GET", "/v1/containers", "", "HTTP/1.1 200 ", "\"containers\":[", NULL, false},
	{"GET", "/v1/events", "", "HTTP/1.1 200 ", "\"events\":[", NULL, false},
	{"GET", "/v1/config", "", "HTTP/1.1 200 ", "\"settings\":[", NULL, false},
	{"GET", "/v1/explain/default/shipper/main", "", "HTTP/1.1 200 ", "\"steps\":[", NULL,
		false},
	{"GET", "/v1/explain/default/%73hipper/main", "", "HTTP/1.1 200 ", "\"steps\":[", NULL,
		false},
	{"GET", "/v1/history/default/shipper/main", "", "HTTP/1.1 200 ", "\"columns\":{", NULL,
		false},
	{"GET", "/v1/histogram/default/shipper/main?resource=memory", "", "HTTP/1.1 200 ",
		"\"buckets\":[", NULL, false},
	{"HEAD", "/v1/recommendations", "", "HTTP/1.1 200 ", "application/json", "\"node\"", true},
	{"HEAD", "/metrics", "", "HTTP/1.1 200 ", "text/plain", "# HELP", true},
	{"GET", "/v1/histogram/default/shipper/main?resource=x", "", "HTTP/1.1 400 ",
		"{\"error\":\"resource=x: accepted", NULL, false},
	{"GET", "/v1/explain/default/shipper/nobody", "", "HTTP/1.1 404 ", "{\"error\":\"container",
		NULL, false},
	{"GET", "/v1/explain/default/shipper", "", "HTTP/1.1 404 ", "{\"error\":", NULL, false},
	{"GET", "/v2", "", "HTTP/1.1 404 ", "{\"error\":", NULL, false},
	{"GET", "/../../etc/passwd", "", "HTTP/1.1 404 ", "{\"error\":", "root:", false},
	{"POST", "/v1/recommendations", "Content-Length: 0\r\n", "HTTP/1.1 405 ",
		"Allow: GET, HEAD", NULL, false},
	{"DELETE", "/v1/config", "", "HTTP/1.1 405 ", "{\"error\":", NULL, false},
	{"GET", long_target, "", "HTTP/1.1 414 ", NULL, NULL, false},
};

struct asker {
	uint16_t port;
	int done; /* a pipe's end: one byte per question and its answer */
	char *answer;
};

static int ask(struct asker *a, const struct question *q)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(a->port)};
	char request[4096];
	int n = snprintf(request, sizeof(request),
		"%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", q->method, q->target,
		q->headers);
	size_t got = 0;
	ssize_t r;
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
		write(fd, request, (size_t)n) != n)
		return -1;
	while ((r = read(fd, a->answer + got, ANSWER_MAX - got)) > 0)
		got += (size_t)r;
	a->answer[got] = 0;
	return r < 0 ? -1 : 0;
}

static const char *judge(const char *answer, const struct question *q)
{
	const char *body = strstr(answer, "\r\n\r\n");

	if (strncmp(answer, q->status, strlen(q->status)) != 0)
		return "another status";
	if (q->has && !strstr(answer, q->has))
		return "something is missing";
	if (q->has_not && strstr(answer, q->has_not))
		return "something is there that should not be";
	if (q->no_body && body && body[4])
		return "a body";
	return NULL;
}

static void *ask_all(void *arg)
{
	struct asker *a = arg;
	char failed = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(questions); i++) {
		const char *wrong =
			ask(a, &questions[i]) < 0 ? "no answer" : judge(a->answer, &questions[i]);

		if (wrong) {
			failed = 1;
			print_error("%s %.60s: %s: %.300s\n", questions[i].method,
				questions[i].target, wrong, a->answer);
		}
	}
	if (write(a->done, &failed, 1) != 1)
		print_error("cannot tell the other thread\n");
	return NULL;
}

static void answers_came(void *arg, int status, unsigned int events)
{
	loop_stop(arg);
}

static void every_path_over_a_real_socket(void **state)
{
	static struct fixture f;
	struct loop loop;
	struct loop_fd watch;
	struct err e = {""};
	pthread_t thread;
	int ends[2];
	char failed = 1;
	struct asker a = {.answer = malloc(ANSWER_MAX + 1)};

	assert_non_null(a.answer);
	a.answer[0] = 0;
	memset(long_target, 'x', sizeof(long_target) - 1);
	long_target[0] = '/';
	fixture_init(&f);
	fixture_fill(&f);
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(loop_fd_init(&loop, &watch, ends[0], answers_came, &loop), 0);
	assert_int_equal(loop_fd_set(&watch, LOOP_READ), 0);
	if (endpoint_listen(&f.endpoint, &loop, "127.0.0.1:0", &e) < 0)
		fail_msg("%s", e.text);
	f.view.server = f.endpoint.server;
	a.port = http_server_port(f.endpoint.server);
	a.done = ends[1];
	assert_int_equal(pthread_create(&thread, NULL, ask_all, &a), 0);
	assert_int_equal(loop_run(&loop), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(read(ends[0], &failed, 1), 1);
	assert_int_equal(failed, 0);
	assert_true(http_server_stats(f.endpoint.server)->requests >= ARRAY_SIZE(questions) - 1);
	loop_fd_close(&watch, NULL);
	endpoint_finish(&f.endpoint);
	loop_finish(&loop);
	fixture_finish(&f);
	(void)close(ends[0]);
	(void)close(ends[1]);
	free(a.answer);
}

static void an_address_in_use_is_told(void **state)
{
	static struct fixture f;
	struct endpoint second;
	struct loop loop;
	struct err e = {""};
	char address[32];

	fixture_init(&f);
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(endpoint_listen(&f.endpoint, &loop, "127.0.0.1:0", &e), 0);
	endpoint_init(&second, &f.view, METRICS_SUMMARY);
	(void)snprintf(
		address, sizeof(address), "127.0.0.1:%u", http_server_port(f.endpoint.server));
	assert_int_equal(endpoint_listen(&second, &loop, address, &e), -EADDRINUSE);
	assert_non_null(strstr(e.text, "--listen"));
	endpoint_finish(&second);
	endpoint_finish(&f.endpoint);
	loop_finish(&loop);
	fixture_finish(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_path_over_a_real_socket),
		cmocka_unit_test(an_address_in_use_is_told),
	};

	return cmocka_run_group_tests_name("endpoint_server", tests, NULL, NULL);
}
