/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a reflector and prints what its consumer is told, a line each; makes single calls that are
 * asked for on stdin. Arguments are name=value: kubeconfig=FILE or pod=DIR (a service account's
 * directory; the server is in the environment), path=…, field=…, and the reflector's limits in
 * milliseconds or bytes. On stdin, a line each: call METHOD PATH [BODY]     prints: answer STATUS
 * ERRNO RETRY_AFTER_MS BODY_BYTES REASON | TEXT stats                       prints: stats … stop
 * destroys the reflector; calls still work End of stdin ends it in order, exit 0. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/loop.h"
#include "base/macros.h"
#include "base/num.h"
#include "net/kube/client.h"
#include "net/kube/reflector.h"
#include "proto/json_read.h"

struct probe {
	struct loop loop;
	struct loop_fd input;
	struct buf line;
	struct kube_client *client;
	struct kube_reflector *reflector;
	struct json_reader *reader;
	size_t object_bytes;
	char name[64];
	const char *kubeconfig, *pod;
	struct kube_reflector_options o;
	uint64_t call_timeout_ms, connect_timeout_ms;
};

enum { NAME };

static int on_value(void *arg, unsigned int id, const struct json_value *v)
{
	struct probe *p = arg;

	if (v->type == JSON_STRING)
		(void)str_copy(p->name, sizeof(p->name), v->text);
	return 0;
}

static const struct json_path paths[] = {{"metadata.name", NAME}};
static const struct json_spec spec = {
	.paths = paths,
	.n_paths = ARRAY_SIZE(paths),
	.value = on_value,
};

static void on_begin(void *arg)
{
	puts("begin");
}

static void on_object_start(void *arg)
{
	struct probe *p = arg;

	json_reader_reset(p->reader);
	p->object_bytes = 0;
	p->name[0] = '\0';
}

static int on_object_data(void *arg, struct str piece, struct err *e)
{
	struct probe *p = arg;

	p->object_bytes += piece.n;
	return json_reader_feed(p->reader, piece.p, piece.n, e);
}

static int on_object_end(
	void *arg, enum kube_event event, const struct kube_meta *meta, struct err *e)
{
	static const char *const names[] = {"ADDED", "MODIFIED", "DELETED"};
	struct probe *p = arg;
	int r = json_reader_end(p->reader, e);

	if (r < 0)
		return r;
	if (strcmp(p->name, meta->name) != 0)
		return err_set(e, EINVAL, "two readers, two names: %s", p->name);
	printf("%s %s/%s@%s %zu\n", names[event], meta->namespace, meta->name,
		meta->resource_version, p->object_bytes);
	return 0;
}

static void on_object_abort(void *arg)
{
	puts("abort");
}

static void on_synced(void *arg)
{
	puts("synced");
}

static void on_skipped(
	void *arg, enum kube_skip why, const struct kube_meta *meta, const char *text)
{
	printf("skipped %s %s/%s | %s\n", kube_skip_name(why), meta->namespace, meta->name, text);
}

static void on_trouble(void *arg, enum kube_trouble why, const char *text, uint64_t retry_in_usec)
{
	printf("trouble %s %llu | %s\n", kube_trouble_name(why),
		(unsigned long long)(retry_in_usec / USEC_PER_MSEC), text);
}

static void on_connected(void *arg)
{
	puts("connected");
}

static void on_answer(void *arg, const struct kube_answer *a)
{
	printf("answer %u %d %llu %zu %s | %s\n", a->status, -a->error,
		(unsigned long long)(a->retry_after_usec / USEC_PER_MSEC), a->body.n,
		a->kube_status.reason[0] ? a->kube_status.reason : "-", a->text);
}

static void call(struct probe *p, struct str rest)
{
	static const char *const methods[] = {"GET", "POST", "PATCH", "DELETE"};
	struct str method = str_cut(&rest, ' ');
	char path[1024];
	struct err e;
	struct kube_request request = {.timeout_usec = p->call_timeout_ms * USEC_PER_MSEC,
		.done = on_answer,
		.arg = p,
		.path = path};

	for (unsigned int i = 0; i < ARRAY_SIZE(methods); i++)
		if (str_is(method, methods[i]))
			request.method = (enum kube_method)i;
	if (request.method == KUBE_PATCH)
		request.content_type = KUBE_MERGE_PATCH;
	if (str_copy(path, sizeof(path), str_cut(&rest, ' ')) < 0)
		return;
	request.body = rest;
	if (kube_client_start(p->client, &request, NULL, &e) < 0)
		printf("not started | %s\n", e.text);
}

static void stats(const struct probe *p)
{
	const struct kube_reflector_stats *s = kube_reflector_stats(p->reflector);
	const struct kube_client_stats *c = kube_client_stats(p->client);

	printf("stats pictures=%llu syncs=%llu lists=%llu watches=%llu events=%llu bookmarks=%llu "
	       "synced=%d connected=%d "
	       "calls=%llu errors=%llu\n",
		(unsigned long long)s->pictures, (unsigned long long)s->syncs,
		(unsigned long long)s->lists, (unsigned long long)s->watches,
		(unsigned long long)s->events, (unsigned long long)s->bookmarks, s->synced,
		s->connected, (unsigned long long)c->calls, (unsigned long long)c->errors);
}

static void command(struct probe *p, struct str line)
{
	struct str word = str_cut(&line, ' ');

	if (str_is(word, "call"))
		call(p, line);
	else if (str_is(word, "stats") && p->reflector)
		stats(p);
	else if (str_is(word, "stop"))
		kube_reflector_destroy(TAKE_PTR(p->reflector));
}

static void on_input(void *arg, int status, unsigned int events)
{
	struct probe *p = arg;
	char *room = buf_reserve(&p->line, 4096);
	ssize_t n = room ? read(STDIN_FILENO, room, 4096) : 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		loop_stop(&p->loop);
		return;
	}
	buf_grew(&p->line, (size_t)n);
	for (char *end; (end = memchr(p->line.p, '\n', p->line.n));) {
		size_t length = (size_t)(end - p->line.p);

		command(p, (struct str){p->line.p, length});
		buf_consume(&p->line, length + 1);
	}
}

static bool number_argument(struct probe *p, struct str name, struct str value)
{
	const struct {
		const char *name;
		uint64_t *to;
		uint64_t unit;
	} numbers[] = {
		{"watch_idle_ms", &p->o.watch_idle_usec, USEC_PER_MSEC},
		{"picture_idle_ms", &p->o.picture_idle_usec, USEC_PER_MSEC},
		{"list_timeout_ms", &p->o.list_timeout_usec, USEC_PER_MSEC},
		{"backoff_first_ms", &p->o.backoff_first_usec, USEC_PER_MSEC},
		{"backoff_last_ms", &p->o.backoff_last_usec, USEC_PER_MSEC},
		{"lived_ms", &p->o.lived_usec, USEC_PER_MSEC},
		{"stable_ms", &p->o.stable_usec, USEC_PER_MSEC},
		{"start_spread_ms", &p->o.start_spread_usec, USEC_PER_MSEC},
		{"call_timeout_ms", &p->call_timeout_ms, 1},
		{"connect_timeout_ms", &p->connect_timeout_ms, 1},
		{"object_max_bytes", &p->o.object_max_bytes, 1},
	};
	uint64_t v;

	if (parse_u64(value, &v) < 0)
		return false;
	if (str_is(name, "page")) {
		p->o.page = (unsigned int)v;
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (str_is(name, numbers[i].name)) {
			*numbers[i].to = v * numbers[i].unit;
			return true;
		}
	return false;
}

static bool argument(struct probe *p, char *text)
{
	struct str value = str_of(text), name = str_cut(&value, '=');

	if (str_is(name, "kubeconfig"))
		p->kubeconfig = value.p;
	else if (str_is(name, "pod"))
		p->pod = value.p;
	else if (str_is(name, "path"))
		p->o.path = value.p;
	else if (str_is(name, "field"))
		p->o.field_selector = value.p;
	else if (str_is(name, "no_watch_list"))
		p->o.no_watch_list = true;
	else
		return number_argument(p, name, value);
	return true;
}

static int open_client(struct probe *p, struct err *e)
{
	_cleanup_(kube_config_finish)
	struct kube_config config;
	const struct kube_client_options options = {.user_agent = "probe/1.0",
		.connect_timeout_usec = p->connect_timeout_ms * USEC_PER_MSEC};
	int r;

	kube_config_init(&config);
	r = p->pod ? kube_config_from_pod(&config, environ, p->pod, e)
		   : kube_config_from_file(&config, p->kubeconfig ? p->kubeconfig : "", e);
	return r < 0 ? r : kube_client_create(&p->client, &p->loop, &config, &options, e);
}

static int run(struct probe *p, struct err *e)
{
	const struct kube_consumer consumer = {.begin = on_begin,
		.object_start = on_object_start,
		.object_data = on_object_data,
		.object_end = on_object_end,
		.object_abort = on_object_abort,
		.synced = on_synced,
		.skipped = on_skipped,
		.trouble = on_trouble,
		.connected = on_connected,
		.arg = p};
	int r = open_client(p, e);

	p->reader = json_reader_create(&spec, p);
	if (r == 0 && !p->reader)
		r = err_set(e, ENOMEM, "out of memory");
	if (r == 0 && p->o.path)
		r = kube_reflector_create(&p->reflector, &p->loop, p->client, &p->o, &consumer, e);
	if (r == 0)
		r = loop_fd_init(&p->loop, &p->input, STDIN_FILENO, on_input, p);
	if (r == 0)
		r = loop_fd_set(&p->input, LOOP_READ);
	if (r == 0)
		r = loop_run(&p->loop);
	kube_reflector_destroy(p->reflector);
	kube_client_destroy(p->client);
	return r;
}

int main(int argc, char **argv)
{
	struct probe p = {.line = BUF_INIT(65536)};
	struct err e = {.text = ""};
	int r;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++)
		if (!argument(&p, argv[i])) {
			fprintf(stderr, "probe: %s?\n", argv[i]);
			return 2;
		}
	r = loop_init(&p.loop);
	if (r < 0)
		return 1;
	r = run(&p, &e);
	loop_finish(&p.loop);
	json_reader_destroy(p.reader);
	buf_finish(&p.line);
	if (r < 0) {
		printf("failed %d | %s\n", -r, err_text(&e, r));
		return 1;
	}
	puts("end");
	return 0;
}
