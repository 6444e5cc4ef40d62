/* SPDX-License-Identifier: Apache-2.0 */
/* One call: the curl handle for a request, and what its end means. */
#include "net/kube/call.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/macros.h"

/* Small: every transfer that runs has one. */
#define CURL_BUFFER_BYTES 16384L
#define KEEPALIVE_IDLE_SEC 30L
#define KEEPALIVE_INTERVAL_SEC 10L
/* Sent and not acknowledged for so long: the peer is gone. Keepalive probes count. */
#define TCP_USER_TIMEOUT_MSEC 60000U

static const char *const method_names[] = {
	[KUBE_GET] = "GET",
	[KUBE_POST] = "POST",
	[KUBE_PATCH] = "PATCH",
	[KUBE_DELETE] = "DELETE",
};

static int on_socket_made(void *arg, curl_socket_t socket, curlsocktype purpose)
{
	static const unsigned int msec = TCP_USER_TIMEOUT_MSEC;

	(void)setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &msec, sizeof(msec));
	return CURL_SOCKOPT_OK;
}

static unsigned int status_of(const struct kube_call *call)
{
	long status = 0;

	(void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	return status > 0 && status < 1000 ? (unsigned int)status : 0;
}

static bool succeeded(unsigned int status)
{
	return status >= 200 && status < 300;
}

/* A proxy or a login page in between answers 200 too, in HTML. */
static bool is_json(const struct kube_call *call)
{
	char *type = NULL;

	(void)curl_easy_getinfo(call->easy, CURLINFO_CONTENT_TYPE, &type);
	return type && strncasecmp(type, KUBE_JSON, sizeof(KUBE_JSON) - 1) == 0;
}

static void heard(struct kube_call *call)
{
	call->heard_usec = clock_mono_usec(call->client->clock);
}

static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
	struct kube_call *call = arg;
	unsigned int status = status_of(call);

	heard(call);
	call->client->stats.received_bytes += n;
	if (call->cancelled)
		return 0;
	/* The empty line ends a header; 1xx has another one behind it. */
	if (call->answered || n > 2 || status < 200)
		return n;
	call->answered = true;
	if (succeeded(status) && !call->any_content_type && status != 204 && !is_json(call)) {
		call->aborted = -EPROTO;
		return 0;
	}
	if (succeeded(status) && call->on_answered)
		call->on_answered(call->arg);
	return call->cancelled ? 0 : n;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
	struct kube_call *call = arg;
	bool success = succeeded(status_of(call));
	int r;

	call->client->stats.received_bytes += n;
	if (call->cancelled)
		return 0;
	if (success && call->on_data) {
		r = call->on_data(call->arg, (struct str){p, n});
	} else {
		r = buf_append(&call->body, p, n);
		/* Of a refusal that is longer than anything the API server says, the beginning is
		 * of no use either. */
		if (r >= 0 || (r == -EMSGSIZE && !success))
			r = 1;
	}
	if (r > 0)
		heard(call);
	if (r < 0)
		call->aborted = r;
	return r < 0 || call->cancelled ? 0 : n;
}

static int add_header(struct kube_call *call, const char *name, const char *value)
{
	_cleanup_free_ char *line = NULL;
	struct curl_slist *list;

	if (asprintf(&line, "%s%s", name, value) < 0) {
		line = NULL;
		return -ENOMEM;
	}
	list = curl_slist_append(call->headers, line);
	explicit_bzero(line, strlen(line));
	if (!list)
		return -ENOMEM;
	call->headers = list;
	return 0;
}

static int set_headers(struct kube_call *call, const struct kube_request *request)
{
	struct kube_client *c = call->client;
	const char *token = kube_config_token(&c->config, clock_mono_usec(c->clock));
	int r = add_header(call, "Accept: ", request->accept ? request->accept : KUBE_JSON);

	if (c->config.token_error.text[0])
		c->stats.token_reads_failed++;
	if (r == 0 && token)
		r = add_header(call, "Authorization: Bearer ", token);
	if (r == 0 && request->body.p)
		r = add_header(call, "Content-Type: ",
			request->content_type ? request->content_type : KUBE_JSON);
	if (r == 0 && request->body.p)
		r = add_header(call, "Expect:", ""); /* no 100-continue round trip */
	return r;
}

/* Options that both TLS builds honour, and none that one of them ignores. */
static CURLcode set_tls(CURL *easy, const struct kube_config *config)
{
	CURLcode r = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);

	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	/* A resumed session would outlive a rotated authority. */
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
	/* OpenSSL builds keep a parsed authority file for a day; others have no such cache and say
	 * so. */
	(void)curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
	if (!r && config->ca_file)
		r = curl_easy_setopt(easy, CURLOPT_CAINFO, config->ca_file);
	/* The machine's own directory of authorities is curl's default beside the file: not for
	 * this server. */
	if (!r && config->ca_file)
		r = curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
	if (!r && config->cert_file)
		r = curl_easy_setopt(easy, CURLOPT_SSLCERT, config->cert_file);
	if (!r && config->cert_file)
		r = curl_easy_setopt(easy, CURLOPT_SSLKEY, config->key_file);
	return r;
}

static CURLcode set_connection(CURL *easy, const struct kube_client *c)
{
	CURLcode r = curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);

	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_PROXY, "");
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, CURL_BUFFER_BYTES);
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
			(long)(c->connect_timeout_usec / USEC_PER_MSEC));
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_SEC);
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_INTERVAL_SEC);
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
	if (!r && c->connect)
		r = curl_easy_setopt(easy, CURLOPT_CONNECT_TO, c->connect);
	return r;
}

static CURLcode set_method(CURL *easy, const struct kube_request *request)
{
	CURLcode r = CURLE_OK;

	if (request->body.p) {
		r = curl_easy_setopt(
			easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.n);
		if (!r)
			r = curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, request->body.p);
	} else if (request->method == KUBE_POST) {
		r = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, 0L);
		if (!r)
			r = curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, "");
	}
	if (r || request->method == KUBE_GET)
		return r;
	r = curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method_names[request->method]);
	/* On a connection that was used before, curl by itself sends again what was not answered,
	 * also a write that the server may have taken. On a new one it does not. A write is rare:
	 * its connection is not kept either. */
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
	return r;
}

static CURLcode set_request(
	struct kube_call *call, const struct kube_request *request, const char *url)
{
	uint64_t timeout = request->timeout_usec ? request->timeout_usec : KUBE_CALL_TIMEOUT_USEC;
	CURL *easy = call->easy;
	CURLcode r = curl_easy_setopt(easy, CURLOPT_URL, url);

	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->curl_error);
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_USERAGENT, call->client->user_agent);
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	if (!r)
		r = curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
	if (!r && timeout != UINT64_MAX)
		r = curl_easy_setopt(
			easy, CURLOPT_TIMEOUT_MS, (long)MAX(timeout / USEC_PER_MSEC, UINT64_C(1)));
	/* "": whatever this curl can inflate, and nothing else. */
	if (!r && request->compressed)
		r = curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
	return r;
}

int kube_call_prepare(struct kube_call *call, const struct kube_request *request, struct err *e)
{
	struct kube_client *c = call->client;
	_cleanup_free_ char *url = NULL;
	int r;
	CURLcode code;

	if (asprintf(&url, "%s%s", c->base_url, request->path) < 0) {
		url = NULL;
		return err_set(e, ENOMEM, "out of memory");
	}
	call->easy = curl_easy_init();
	if (!call->easy)
		return err_set(e, ENOMEM, "out of memory");
	r = set_headers(call, request);
	if (r < 0)
		return err_set(e, -r, "out of memory");
	code = set_connection(call->easy, c);
	if (!code)
		code = set_tls(call->easy, &c->config);
	if (!code)
		code = set_method(call->easy, request);
	if (!code)
		code = set_request(call, request, url);
	if (code == CURLE_OUT_OF_MEMORY)
		return err_set(e, ENOMEM, "out of memory");
	if (code)
		return err_set(e, EINVAL, "this libcurl lacks what is needed here: %s",
			curl_easy_strerror(code));
	return 0;
}

static int errno_of(CURLcode code)
{
	switch (code) {
	case CURLE_OK:
		return 0;
	case CURLE_COULDNT_RESOLVE_HOST:
		return -EHOSTUNREACH;
	case CURLE_COULDNT_CONNECT:
		return -ECONNREFUSED;
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CONNECT_ERROR:
		return -EKEYREJECTED;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_PARTIAL_FILE:
		return -ECONNRESET;
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_BAD_CONTENT_ENCODING:
		return -EPROTO;
	default:
		return -EIO;
	}
}

/* Without the query: a continue token would fill the line. */
static int describe(
	const struct kube_call *call, struct err *e, int code, const char *what, const char *more)
{
	int path = (int)strcspn(call->path, "?");

	return err_set(e, code, "%s %s%.*s: %s%s%s", method_names[call->method],
		call->client->config.server, MIN(path, 120), call->path, what, more[0] ? ": " : "",
		more);
}

static void explain_failure(const struct kube_call *call, CURLcode result,
	const struct kube_answer *a, struct err *text)
{
	const char *curl = call->curl_error[0] ? call->curl_error : curl_easy_strerror(result);

	switch (-a->error) {
	case EPROTO:
		if (call->aborted == -EPROTO) {
			(void)describe(call, text, EPROTO, "the answer is not JSON",
				"something between here and the API server answers in its place");
			return;
		}
		break;
	case EKEYREJECTED:
		(void)describe(call, text, EKEYREJECTED, curl,
			"is the server's certificate from the configured authority, in date, and "
			"for this name?");
		return;
	case EMSGSIZE:
		(void)describe(
			call, text, EMSGSIZE, "the answer is larger than what is taken here", "");
		return;
	case ETIMEDOUT:
		if (call->aborted == -ETIMEDOUT) {
			(void)describe(call, text, ETIMEDOUT, "the server fell silent", "");
			return;
		}
		break;
	default:
		break;
	}
	(void)describe(call, text, -a->error, call->aborted ? strerror(-call->aborted) : curl, "");
}

void kube_call_answer(
	struct kube_call *call, CURLcode result, struct kube_answer *ret, struct err *text)
{
	struct kube_config *config = &call->client->config;
	curl_off_t retry_after_sec = 0;
	char status[32];

	*ret = (struct kube_answer){.error = call->aborted ? call->aborted : errno_of(result),
		.status = status_of(call)};
	text->text[0] = '\0';
	ret->text = text->text;
	(void)curl_easy_getinfo(call->easy, CURLINFO_RETRY_AFTER, &retry_after_sec);
	if (retry_after_sec > 0)
		ret->retry_after_usec =
			(uint64_t)MIN(retry_after_sec, (curl_off_t)86400) * USEC_PER_SEC;
	if (ret->error < 0) {
		explain_failure(call, result, ret, text);
		return;
	}
	ret->body = buf_str(&call->body);
	if (succeeded(ret->status))
		return;
	(void)kube_status_parse(ret->body, &ret->kube_status);
	(void)snprintf(status, sizeof(status), "%u%s%s", ret->status,
		ret->kube_status.reason[0] ? " " : "", ret->kube_status.reason);
	if (ret->status == 401 && config->token_error.text[0])
		(void)describe(call, text, EACCES, status, config->token_error.text);
	else
		(void)describe(call, text, EACCES, status, ret->kube_status.message);
}
