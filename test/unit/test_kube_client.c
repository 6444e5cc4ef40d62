/* SPDX-License-Identifier: Apache-2.0 */
/* The client against our own HTTP server on the same loop: what a caller may do in a callback, and
 * memory that runs out. What a server may do to it is in test/fault. */
#include <errno.h>
#include <stdio.h>

#include "base/macros.h"
#include "helper_alloc.h"
#include "net/http/server.h"
#include "net/kube/client.h"
#include "net/kube/reflector.h"
#include "unit.h"

static struct {
	struct loop loop;
	struct http_server *server;
	struct kube_client *client;
	struct kube_call *calls[4];
	int done, data, error;
	unsigned int status;
	int (*in_data)(void);
	void (*in_done)(void);
} t;

static int on_ok(void *arg, const struct http_request *q, struct http_response *r, struct err *e)
{
	return buf_puts(&r->body, "{\"ok\":true}");
}

static int endless(void *state, struct buf *out)
{
	(void)buf_puts(out, "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":"
			    "\"7\",\"annotations\":{\"k8s.io/"
			    "initial-events-end\":\"true\"}}}}\n");
	return 1;
}

static int on_endless(
	void *arg, const struct http_request *q, struct http_response *r, struct err *e)
{
	r->producer = (struct http_producer){.next = endless};
	return 0;
}

static const struct http_route routes[] = {{"/ok", on_ok, NULL}, {"/endless", on_endless, NULL}};

static int client_open(struct err *e)
{
	_cleanup_(kube_config_finish)
	struct kube_config config;
	char text[512];
	int r;

	(void)snprintf(text, sizeof(text),
		"{kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k}}], "
		"clusters: [{name: k, cluster: "
		"{server: 'http://127.0.0.1:%u'}}]}",
		http_server_port(t.server));
	kube_config_init(&config);
	r = kube_config_parse(&config, str_of(text), "/", e);
	return r < 0 ? r
		     : kube_client_create(&t.client, &t.loop, &config,
			       &(struct kube_client_options){.user_agent = "t/1"}, e);
}

static int start(void **state)
{
	struct err e;

	memset(&t, 0, sizeof(t));
	assert_int_equal(loop_init(&t.loop), 0);
	assert_int_equal(http_server_create(&t.server, &t.loop,
				 &(struct http_server_options){.listen = "127.0.0.1:0",
					 .routes = routes,
					 .routes_n = ARRAY_SIZE(routes)},
				 &e),
		0);
	assert_int_equal(client_open(&e), 0);
	return 0;
}

static int stop(void **state)
{
	kube_client_destroy(t.client);
	http_server_destroy(t.server);
	loop_finish(&t.loop);
	return 0;
}

static int on_data(void *arg, struct str piece)
{
	t.data++;
	return t.in_data ? t.in_data() : 1;
}

static void on_done(void *arg, const struct kube_answer *a)
{
	t.done++;
	t.error = a->error;
	t.status = a->status;
	if (t.in_done)
		t.in_done();
	else
		loop_stop(&t.loop);
}

static int begin(const char *path, bool streamed, struct kube_call **ret)
{
	struct err e;

	return kube_client_start(t.client,
		&(struct kube_request){
			.path = path, .data = streamed ? on_data : NULL, .done = on_done},
		ret, &e);
}

static void a_call_is_answered_once_and_never_at_once(void **state)
{
	assert_int_equal(begin("/ok", false, NULL), 0);
	assert_int_equal(t.done, 0);
	(void)loop_run(&t.loop);
	assert_int_equal(t.done, 1);
	assert_int_equal(t.error, 0);
	assert_int_equal(t.status, 200);
	assert_int_equal(kube_client_stats(t.client)->calls, 1);
}

static void stop_loop(void *arg)
{
	loop_stop(&t.loop);
}

/* Lets the loop turn until what is due at once has happened. */
static void turn(void)
{
	struct loop_timer timer;

	assert_int_equal(loop_timer_init(&t.loop, &timer, stop_loop, NULL), 0);
	loop_timer_set(&timer, 20 * USEC_PER_MSEC);
	(void)loop_run(&t.loop);
	loop_timer_close(&timer, stop_loop);
	(void)loop_run(&t.loop);
}

static void a_cancelled_call_says_nothing(void **state)
{
	assert_int_equal(begin("/ok", false, &t.calls[0]), 0);
	kube_call_cancel(t.calls[0]);
	assert_int_equal(begin("/endless", true, &t.calls[0]), 0);
	turn();
	assert_true(t.data > 0);
	kube_call_cancel(t.calls[0]);
	t.data = 0;
	turn();
	assert_int_equal(t.data, 0);
	assert_int_equal(t.done, 0);
}

static int cancel_both(void)
{
	kube_call_cancel(t.calls[0]);
	kube_call_cancel(t.calls[1]);
	loop_stop(&t.loop);
	return 1;
}

static void calls_may_be_cancelled_where_data_comes(void **state)
{
	t.in_data = cancel_both;
	assert_int_equal(begin("/endless", true, &t.calls[0]), 0);
	assert_int_equal(begin("/endless", true, &t.calls[1]), 0);
	(void)loop_run(&t.loop);
	turn();
	assert_int_equal(t.data, 1);
	assert_int_equal(t.done, 0);
}

static int refuse(void)
{
	return -EDOM;
}

static void what_data_returns_is_the_error_of_the_call(void **state)
{
	t.in_data = refuse;
	assert_int_equal(begin("/endless", true, NULL), 0);
	(void)loop_run(&t.loop);
	assert_int_equal(t.error, -EDOM);
	assert_int_equal(t.data, 1);
}

static void start_another(void)
{
	if (t.done < 3)
		assert_int_equal(begin("/ok", false, NULL), 0);
	else
		loop_stop(&t.loop);
}

static void a_call_may_be_started_where_another_ends(void **state)
{
	t.in_done = start_another;
	assert_int_equal(begin("/ok", false, NULL), 0);
	(void)loop_run(&t.loop);
	assert_int_equal(t.done, 3);
}

/* The stream goes on; what ends is the other call. */
static int start_in_data(void)
{
	t.in_data = NULL;
	assert_int_equal(begin("/ok", false, &t.calls[1]), 0);
	return 1;
}

static void a_call_may_be_started_where_data_comes(void **state)
{
	t.in_data = start_in_data;
	assert_int_equal(begin("/endless", true, &t.calls[0]), 0);
	(void)loop_run(&t.loop);
	assert_int_equal(t.done, 1);
	assert_int_equal(t.error, 0);
	assert_int_equal(t.status, 200);
	kube_call_cancel(t.calls[0]);
	turn();
}

static int start_and_cancel_in_data(void)
{
	t.in_data = NULL;
	assert_int_equal(begin("/ok", false, &t.calls[1]), 0);
	kube_call_cancel(t.calls[1]);
	assert_int_equal(begin("/ok", false, &t.calls[1]), 0);
	kube_call_cancel(t.calls[0]);
	return 1;
}

static int start_and_destroy_in_data(void)
{
	assert_int_equal(begin("/ok", false, NULL), 0);
	kube_client_destroy(TAKE_PTR(t.client));
	loop_stop(&t.loop);
	return 1;
}

static void what_was_started_there_may_be_cancelled_there(void **state)
{
	t.in_data = start_and_cancel_in_data;
	assert_int_equal(begin("/endless", true, &t.calls[0]), 0);
	(void)loop_run(&t.loop);
	assert_int_equal(t.done, 1); /* the second */
	assert_int_equal(t.status, 200);
	turn();
	assert_int_equal(t.done, 1);

	t.in_data = start_and_destroy_in_data;
	assert_int_equal(begin("/endless", true, NULL), 0);
	(void)loop_run(&t.loop);
	turn();
	assert_int_equal(t.done, 1);
}

static struct {
	int started;
	bool over;
} stream;

static void on_stream_done(void *arg, const struct kube_answer *a)
{
	stream.over = true;
	loop_stop(&t.loop);
}

static int try_to_start_in_data(void)
{
	t.in_data = NULL;
	stream.started = begin("/ok", false, NULL);
	if (stream.started < 0)
		loop_stop(&t.loop);
	return 1;
}

static void memory_may_run_out_where_a_call_is_started_in_a_callback(void **state)
{
	const struct kube_request request = {
		.path = "/endless", .data = on_data, .done = on_stream_done};
	int answered = 0;

	ALLOC_FAIL_EACH
	{
		struct kube_call *call;
		struct err e;

		stream.started = -ENOENT;
		stream.over = false;
		t.done = 0;
		t.in_data = try_to_start_in_data;
		if (kube_client_start(t.client, &request, &call, &e) < 0)
			continue;
		(void)loop_run(&t.loop);
		assert_true(stream.over || stream.started != -ENOENT);
		if (!stream.over)
			kube_call_cancel(call);
		turn();
		/* What was started is answered once, whatever became of it. */
		assert_int_equal(t.done, stream.started == 0);
		answered += t.done == 1 && t.error == 0 && t.status == 200;
	}
	assert_true(answered >= 1);
}

static void destroy(void)
{
	kube_client_destroy(TAKE_PTR(t.client));
	loop_stop(&t.loop);
}

static int destroy_in_data(void)
{
	destroy();
	return 1;
}

static void the_client_may_be_destroyed_in_a_callback(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct err e;

		t.in_done = i == 0 ? destroy : NULL;
		t.in_data = i == 1 ? destroy_in_data : NULL;
		if (!t.client)
			assert_int_equal(client_open(&e), 0);
		assert_int_equal(begin("/endless", true, NULL), 0);
		assert_int_equal(begin(i == 0 ? "/ok" : "/endless", i == 1, NULL), 0);
		(void)loop_run(&t.loop);
		turn();
		assert_null(t.client);
	}
	assert_int_equal(t.done, 1);
}

static void memory_may_run_out_at_any_allocation_of_a_call(void **state)
{
	int answered = 0;

	ALLOC_FAIL_EACH
	{
		int before = t.done;
		int r = begin("/ok", false, NULL);

		if (r == 0) {
			(void)loop_run(&t.loop);
			assert_int_equal(t.done, before + 1);
			answered += t.error == 0 && t.status == 200;
		} else {
			assert_int_equal(r, -ENOMEM);
			assert_int_equal(t.done, before);
		}
	}
	assert_true(answered >= 1);
}

static void memory_may_run_out_while_a_client_is_made(void **state)
{
	kube_client_destroy(TAKE_PTR(t.client));
	ALLOC_FAIL_EACH
	{
		struct err e;

		t.client = NULL;
		if (client_open(&e) < 0)
			assert_null(t.client);
		kube_client_destroy(TAKE_PTR(t.client));
	}
}

/* A consumer that destroys its reflector where it is told to. */
static struct {
	struct kube_reflector *r;
	const char *where;
	int calls;
} w;

static void here(const char *place)
{
	w.calls++;
	if (w.where && strcmp(w.where, place) == 0) {
		kube_reflector_destroy(TAKE_PTR(w.r));
		w.calls = 0;
		loop_stop(&t.loop);
	}
}

static void w_begin(void *arg)
{
	here("begin");
}

static void w_start(void *arg)
{
	here("start");
}

static int w_data(void *arg, struct str piece, struct err *e)
{
	here("data");
	return 0;
}

static int w_end(void *arg, enum kube_event event, const struct kube_meta *meta, struct err *e)
{
	here("end");
	return 0;
}

static void w_abort(void *arg)
{
}

static void w_synced(void *arg)
{
	here("synced");
}

static void w_trouble(void *arg, enum kube_trouble why, const char *text, uint64_t retry_in_usec)
{
	here("trouble");
}

static void w_connected(void *arg)
{
	here("connected");
}

static const struct kube_consumer consumer = {
	.begin = w_begin,
	.object_start = w_start,
	.object_data = w_data,
	.object_end = w_end,
	.object_abort = w_abort,
	.synced = w_synced,
	.trouble = w_trouble,
	.connected = w_connected,
};

static void a_reflector_may_be_destroyed_in_any_callback(void **state)
{
	static const struct {
		const char *where, *path;
	} cases[] = {{"begin", "/endless"}, {"connected", "/endless"}, {"synced", "/endless"},
		{"trouble", "/nothing"}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct kube_reflector_options o = {
			.path = cases[i].path, .backoff_first_usec = 1000};
		struct err e;

		w.where = cases[i].where;
		w.calls = 0;
		assert_int_equal(
			kube_reflector_create(&w.r, &t.loop, t.client, &o, &consumer, &e), 0);
		(void)loop_run(&t.loop);
		assert_null(w.r);
		turn();
		assert_int_equal(w.calls, 0);
	}
}

static void memory_may_run_out_while_a_reflector_starts(void **state)
{
	w.where = "synced";
	ALLOC_FAIL_EACH
	{
		const struct kube_reflector_options o = {.path = "/endless",
			.field_selector = "a=b",
			.backoff_first_usec = 1000,
			.backoff_last_usec = 2000};
		struct err e;
		int r = kube_reflector_create(&w.r, &t.loop, t.client, &o, &consumer, &e);

		if (r == 0) {
			(void)loop_run(&t.loop); /* gets over a failed allocation, and is synced in
						    the end */
			assert_null(w.r);
		} else {
			assert_int_equal(r, -ENOMEM);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_call_is_answered_once_and_never_at_once, start, stop),
		cmocka_unit_test_setup_teardown(a_cancelled_call_says_nothing, start, stop),
		cmocka_unit_test_setup_teardown(
			calls_may_be_cancelled_where_data_comes, start, stop),
		cmocka_unit_test_setup_teardown(
			what_data_returns_is_the_error_of_the_call, start, stop),
		cmocka_unit_test_setup_teardown(
			a_call_may_be_started_where_another_ends, start, stop),
		cmocka_unit_test_setup_teardown(
			a_call_may_be_started_where_data_comes, start, stop),
		cmocka_unit_test_setup_teardown(
			what_was_started_there_may_be_cancelled_there, start, stop),
		cmocka_unit_test_setup_teardown(
			memory_may_run_out_where_a_call_is_started_in_a_callback, start, stop),
		cmocka_unit_test_setup_teardown(
			the_client_may_be_destroyed_in_a_callback, start, stop),
		cmocka_unit_test_setup_teardown(
			memory_may_run_out_at_any_allocation_of_a_call, start, stop),
		cmocka_unit_test_setup_teardown(
			memory_may_run_out_while_a_client_is_made, start, stop),
		cmocka_unit_test_setup_teardown(
			a_reflector_may_be_destroyed_in_any_callback, start, stop),
		cmocka_unit_test_setup_teardown(
			memory_may_run_out_while_a_reflector_starts, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
