/* SPDX-License-Identifier: Apache-2.0 */
/* The client and the life of its calls. */
#include "net/kube/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/macros.h"
#include "net/kube/call.h"

#define CONNECTIONS 8U

static void call_free(struct kube_call *call)
{
	for (struct curl_slist *h = call->headers; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data)); /* the token is in one of them */
	curl_slist_free_all(call->headers);
	if (call->easy)
		curl_easy_cleanup(call->easy);
	buf_finish(&call->body);
	free(call->path);
	free(call);
}

static void call_link(struct kube_client *c, struct kube_call *call)
{
	call->next = c->calls;
	if (c->calls)
		c->calls->prev = call;
	c->calls = call;
}

static void call_unlink(struct kube_client *c, struct kube_call *call)
{
	if (call->prev)
		call->prev->next = call->next;
	else
		c->calls = call->next;
	if (call->next)
		call->next->prev = call->prev;
}

/* Its transfer is out of the multi. */
static void call_end(struct kube_client *c, struct kube_call *call, CURLcode result)
{
	struct kube_answer answer;
	struct err text;

	call_unlink(c, call);
	if (!call->cancelled) {
		kube_call_answer(call, result, &answer, &text);
		if (answer.error < 0)
			c->stats.errors++;
		if (answer.error == 0 && answer.status == 401)
			kube_config_token_refused(&c->config);
		call->on_done(call->arg, &answer);
	}
	call_free(call);
}

static void on_finished(void *arg, CURL *easy, CURLcode result)
{
	char *private = NULL;

	(void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
	call_end(arg, (struct kube_call *)(void *)private, result);
}

static void on_idle_closed(void *arg)
{
	free(arg);
}

static void call_drop(struct kube_client *c, struct kube_call *call)
{
	if (!call->queued)
		kube_multi_remove(c->multi, call->easy);
	call_unlink(c, call);
	call_free(call);
}

static void client_free(struct kube_client *c)
{
	while (c->calls)
		call_drop(c, c->calls);
	kube_multi_destroy(c->multi);
	kube_config_finish(&c->config);
	curl_slist_free_all(c->connect);
	free(c->base_url);
	free(c->user_agent);
	if (c->idle.open)
		loop_timer_close(&c->idle, on_idle_closed);
	else
		free(c);
}

static void sweep(struct kube_client *c)
{
	struct kube_call *next;

	if (!c->sweep)
		return;
	c->sweep = false;
	for (struct kube_call *call = c->calls; call; call = next) {
		next = call->next;
		if (call->cancelled)
			call_drop(c, call);
	}
}

/* The oldest: calls are linked newest first. */
static struct kube_call *find_queued(struct kube_client *c)
{
	struct kube_call *found = NULL;

	for (struct kube_call *call = c->calls; call; call = call->next)
		if (call->queued)
			found = call;
	return found;
}

static void start_queued(struct kube_client *c)
{
	struct kube_call *call;

	if (!c->queued)
		return;
	c->queued = false;
	while (!c->destroyed && (call = find_queued(c))) {
		call->queued = false;
		call->aborted = kube_multi_add(c->multi, call->easy);
		if (call->aborted == 0)
			continue;
		c->ending = true;
		call_end(c, call, CURLE_OK);
		c->ending = false;
	}
	if (c->destroyed)
		client_free(c);
}

static void on_settled(void *arg)
{
	struct kube_client *c = arg;

	if (c->destroyed) {
		client_free(c);
		return;
	}
	sweep(c);
	start_queued(c);
}

/* A watch may be silent for minutes: one timer for all calls, not a look every second. */
static void arm_idle(struct kube_client *c)
{
	uint64_t now = clock_mono_usec(c->clock), nearest = UINT64_MAX;

	for (struct kube_call *call = c->calls; call; call = call->next)
		if (call->idle_timeout_usec > 0)
			nearest = MIN(nearest, call->heard_usec + call->idle_timeout_usec);
	if (nearest == UINT64_MAX)
		loop_timer_stop(&c->idle);
	else
		loop_timer_set(&c->idle, nearest > now ? nearest - now : 0);
}

static struct kube_call *find_silent(struct kube_client *c, uint64_t now)
{
	for (struct kube_call *call = c->calls; call; call = call->next)
		if (call->idle_timeout_usec > 0 &&
			call->heard_usec + call->idle_timeout_usec <= now)
			return call;
	return NULL;
}

static void on_idle(void *arg)
{
	struct kube_client *c = arg;
	struct kube_call *call;
	uint64_t now = clock_mono_usec(c->clock);

	while (!c->destroyed && (call = find_silent(c, now))) {
		kube_multi_remove(c->multi, call->easy);
		call->aborted = -ETIMEDOUT;
		c->ending = true;
		call_end(c, call, CURLE_OK);
		c->ending = false;
	}
	if (c->destroyed)
		client_free(c);
	else
		arm_idle(c);
}

/* "https://name:port/prefix" for the URL, and where that is, when the certificate has another name
 * than the server. */
static int base_url(struct kube_client *c)
{
	CURLU *u = curl_url();
	char *host = NULL, *port = NULL, *url = NULL;
	char to[600];
	int r = -ENOMEM;

	if (!u)
		return -ENOMEM;
	if (curl_url_set(u, CURLUPART_URL, c->config.server, 0) ||
		curl_url_get(u, CURLUPART_HOST, &host, 0) ||
		curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT)) {
		r = -EINVAL;
		goto out;
	}
	if (c->config.tls_server_name) {
		(void)snprintf(to, sizeof(to), "::%s:%s", host, port);
		c->connect = curl_slist_append(NULL, to);
		if (!c->connect || curl_url_set(u, CURLUPART_HOST, c->config.tls_server_name, 0))
			goto out;
	}
	if (curl_url_get(u, CURLUPART_URL, &url, 0))
		goto out;
	c->base_url = str_dup(str_of(url));
	for (size_t n = c->base_url ? strlen(c->base_url) : 0; n > 0 && c->base_url[n - 1] == '/';
		n--)
		c->base_url[n - 1] = '\0';
	r = c->base_url ? 0 : -ENOMEM;
out:
	curl_free(host);
	curl_free(port);
	curl_free(url);
	curl_url_cleanup(u);
	return r;
}

static int client_set_up(struct kube_client *c, const struct kube_client_options *options)
{
	const struct kube_multi_ops ops = {
		.finished = on_finished, .settled = on_settled, .arg = c};
	int r = base_url(c);

	if (r == 0)
		r = loop_timer_init(c->loop, &c->idle, on_idle, c);
	if (r == 0)
		r = kube_multi_create(&c->multi, c->loop,
			options->connections_max ? options->connections_max : CONNECTIONS, &ops);
	if (r == 0 && !(c->user_agent = str_dup(
				str_of(options->user_agent ? options->user_agent : "pernode"))))
		r = -ENOMEM;
	return r;
}

int kube_client_create(struct kube_client **ret_c, struct loop *l, struct kube_config *config,
	const struct kube_client_options *options, struct err *e)
{
	struct kube_client *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_set(e, ENOMEM, "out of memory");
	c->loop = l;
	c->clock = options->clock ? options->clock : &clock_system;
	c->connect_timeout_usec = options->connect_timeout_usec ? options->connect_timeout_usec
								: KUBE_CONNECT_TIMEOUT_USEC;
	c->config = *config;
	kube_config_init(config);
	r = client_set_up(c, options);
	if (r < 0) {
		(void)err_set(
			e, -r, "Kubernetes client for %s: %s", c->config.server, strerror(-r));
		*config = c->config;
		kube_config_init(&c->config);
		client_free(c);
		return r;
	}
	*ret_c = c;
	return 0;
}

void kube_client_destroy(struct kube_client *c)
{
	if (!c || c->destroyed)
		return;
	c->destroyed = true;
	for (struct kube_call *call = c->calls; call; call = call->next)
		call->cancelled = true;
	if (!kube_multi_busy(c->multi) && !c->ending)
		client_free(c);
}

static int check(const struct kube_request *request, struct err *e)
{
	if (!request->path || request->path[0] != '/' ||
		strlen(request->path) > KUBE_PATH_MAX_BYTES)
		return err_set(e, EINVAL,
			"request path \"%.60s\": must begin with / and have at most %u bytes",
			request->path ? request->path : "", KUBE_PATH_MAX_BYTES);
	for (const char *p = request->path; *p; p++)
		if (*p <= ' ' || *p > '~' || *p == '#')
			return err_set(e, EINVAL, "request path \"%.60s\" is not percent-encoded",
				request->path);
	return 0;
}

int kube_client_start(struct kube_client *c, const struct kube_request *request,
	struct kube_call **ret_call, struct err *e)
{
	struct kube_call *call;
	int r = check(request, e);

	if (r < 0)
		return r;
	if (c->destroyed)
		return err_set(e, ESHUTDOWN, "the client is being shut down");
	call = calloc(1, sizeof(*call));
	if (!call)
		return err_set(e, ENOMEM, "out of memory");
	call->client = c;
	call->method = request->method;
	call->idle_timeout_usec = request->idle_timeout_usec;
	call->heard_usec = clock_mono_usec(c->clock);
	call->any_content_type = request->any_content_type;
	call->on_answered = request->answered;
	call->on_data = request->data;
	call->on_done = request->done;
	call->arg = request->arg;
	buf_init(&call->body,
		request->answer_max_bytes ? request->answer_max_bytes : KUBE_ANSWER_MAX_BYTES);
	call->path = str_dup(str_of(request->path));
	r = call->path ? kube_call_prepare(call, request, e) : err_set(e, ENOMEM, "out of memory");
	call->queued = kube_multi_in_curl(c->multi);
	if (r == 0 && !call->queued && (r = kube_multi_add(c->multi, call->easy)) < 0)
		(void)err_set(e, -r, "out of memory");
	if (r < 0) {
		call_free(call);
		return r;
	}
	call_link(c, call);
	c->queued = c->queued || call->queued;
	c->stats.calls++;
	if (call->idle_timeout_usec > 0)
		arm_idle(c);
	if (ret_call)
		*ret_call = call;
	return 0;
}

void kube_call_cancel(struct kube_call *call)
{
	struct kube_client *c = call->client;

	call->cancelled = true;
	if (kube_multi_in_curl(c->multi)) {
		c->sweep = true;
		return;
	}
	call_drop(c, call);
}

void kube_call_set_idle_timeout(struct kube_call *call, uint64_t usec)
{
	call->idle_timeout_usec = usec;
	arm_idle(call->client);
}

const struct clock *kube_client_clock(const struct kube_client *c)
{
	return c->clock;
}

const char *kube_client_server(const struct kube_client *c)
{
	return c->config.server;
}

const struct kube_client_stats *kube_client_stats(const struct kube_client *c)
{
	return &c->stats;
}

void kube_path_escape(struct buf *out, struct str s)
{
	static const char plain[] = {'-', '.', '_', '~'};

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			memchr(plain, c, sizeof(plain)))
			(void)buf_putc(out, c);
		else
			(void)buf_printf(out, "%%%02X", (unsigned int)(unsigned char)c);
	}
}
