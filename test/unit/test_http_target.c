/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/macros.h"
#include "net/http/listen.h"
#include "net/http/target.h"
#include "unit.h"

static void targets_are_taken_apart(void **state)
{
	static const struct {
		const char *raw;
		int result;
		const char *segments; /* joined with '|' */
		const char *queries;  /* name=value; */
	} cases[] = {
		{"/", 0, "", ""},
		{"/v1/x", 0, "v1|x", ""},
		{"/v1/x/", 0, "v1|x|", ""},
		{"//", 0, "|", ""},
		{"/a%2Fb/%41", 0, "a/b|A", ""},
		{"/x?a=1&b=2&&c&d=&=e", 0, "x", "a=1;b=2;c=;d=;"},
		{"/x?window=24h+%2b%26%3D", 0, "x", "window=24h +&=;"},
		{"/a+b", 0, "a+b", ""},
		{"/x?a=b=c?d", 0, "x", "a=b=c?d;"},
		{"/x?", 0, "x", ""},
		{"/%e4%bd%a0", 0, "\xe4\xbd\xa0", ""},
		{"", -EINVAL, NULL, NULL},
		{"x", -EINVAL, NULL, NULL},
		{"*", -EINVAL, NULL, NULL},
		{"http://host/x", -EINVAL, NULL, NULL},
		{"/%", -EINVAL, NULL, NULL},
		{"/%4", -EINVAL, NULL, NULL},
		{"/%zz", -EINVAL, NULL, NULL},
		{"/%4z", -EINVAL, NULL, NULL},
		{"/a%00b", -EINVAL, NULL, NULL},
		{"/x?a=%0", -EINVAL, NULL, NULL},
		{"/1/2/3/4/5/6/7/8/9/0/1/2/3/4/5/6/7", -ENAMETOOLONG, NULL, NULL},
		{"/x?1&2&3&4&5&6&7&8&9&0&1&2&3&4&5&6&7", -ENAMETOOLONG, NULL, NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct http_target t;
		struct buf segments = BUF_INIT(4096), queries = BUF_INIT(4096);
		int r = http_target_parse(str_of(cases[i].raw), &t);

		if (r != cases[i].result)
			fail_msg("%s: %d", cases[i].raw, r);
		if (r < 0)
			continue;
		for (size_t k = 0; k < t.segments_n; k++)
			(void)buf_printf(&segments, "%s%s", k ? "|" : "", t.segments[k].p);
		for (size_t k = 0; k < t.queries_n; k++)
			(void)buf_printf(
				&queries, "%s=%s;", t.queries[k].name.p, t.queries[k].value.p);
		assert_string_equal(segments.p ? segments.p : "", cases[i].segments);
		assert_string_equal(queries.p ? queries.p : "", cases[i].queries);
		buf_finish(&segments);
		buf_finish(&queries);
	}
}

static void the_longest_target_fits_and_one_more_byte_does_not(void **state)
{
	static char raw[HTTP_TARGET_MAX_BYTES + 1];
	struct http_target t;

	memset(raw, 'x', sizeof(raw));
	raw[0] = '/';
	assert_int_equal(http_target_parse((struct str){raw, HTTP_TARGET_MAX_BYTES}, &t), 0);
	assert_int_equal(t.segments[0].n, HTTP_TARGET_MAX_BYTES - 1);
	assert_int_equal(http_target_parse((struct str){raw, sizeof(raw)}, &t), -ENAMETOOLONG);
	/* As many parts as there may be, in as many bytes: each part has a NUL. */
	memset(raw, 'x', sizeof(raw));
	raw[0] = '/';
	raw[1] = '?';
	for (size_t i = 0; i < HTTP_QUERIES_MAX - 1; i++)
		raw[3 + 2 * i] = '&';
	assert_int_equal(http_target_parse((struct str){raw, HTTP_TARGET_MAX_BYTES}, &t), 0);
	assert_int_equal(t.queries_n, HTTP_QUERIES_MAX);
}

static void patterns_match_whole_paths_only(void **state)
{
	static const struct {
		const char *pattern, *raw;
		bool matches;
		const char *params[HTTP_PARAMS_MAX];
	} cases[] = {
		{"/", "/", true, {NULL}},
		{"/", "/x", false, {NULL}},
		{"/x", "/", false, {NULL}},
		{"/x", "/x", true, {NULL}},
		{"/x", "/x/", false, {NULL}},
		{"/x", "/X", false, {NULL}},
		{"/x", "/x?a=b", true, {NULL}},
		{"/v1/e/{ns}/{ds}/{c}", "/v1/e/a/b/c", true, {"a", "b", "c"}},
		{"/v1/e/{ns}/{ds}/{c}", "/v1/e/a/b", false, {NULL}},
		{"/v1/e/{ns}/{ds}/{c}", "/v1/e/a/b/c/d", false, {NULL}},
		{"/v1/e/{ns}/{ds}/{c}", "/v1/e/a//c", false, {NULL}},
		{"/v1/e/{ns}/{ds}/{c}", "/v1/e/a%2Fb/b/c", true, {"a/b", "b", "c"}},
		{"/{a}/x", "/y/x", true, {"y"}},
		{"/{1}/{2}/{3}/{4}/{5}", "/1/2/3/4/5", false, {NULL}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct http_target t;
		struct str params[HTTP_PARAMS_MAX] = {{NULL, 0}};

		assert_int_equal(http_target_parse(str_of(cases[i].raw), &t), 0);
		if (http_target_match(&t, cases[i].pattern, params) != cases[i].matches)
			fail_msg("%s and %s", cases[i].pattern, cases[i].raw);
		for (size_t k = 0; cases[i].matches && k < HTTP_PARAMS_MAX && cases[i].params[k];
			k++)
			assert_string_equal(params[k].p, cases[i].params[k]);
	}
}

static void a_query_is_found_by_name(void **state)
{
	struct http_target t;

	assert_int_equal(http_target_parse(STR("/x?a=1&b&a=2"), &t), 0);
	assert_true(str_is(http_target_query(&t, "a"), "1"));
	assert_non_null(http_target_query(&t, "b").p);
	assert_int_equal(http_target_query(&t, "b").n, 0);
	assert_null(http_target_query(&t, "c").p);
}

static void listen_addresses_are_read(void **state)
{
	static const struct {
		const char *text;
		int result;
		int family;
		const char *host;
		unsigned int port;
	} cases[] = {
		{":9870", 0, AF_INET6, "::", 9870},
		{"127.0.0.1:9870", 0, AF_INET, "127.0.0.1", 9870},
		{"0.0.0.0:0", 0, AF_INET, "0.0.0.0", 0},
		{"[::1]:9870", 0, AF_INET6, "::1", 9870},
		{"[::]:65535", 0, AF_INET6, "::", 65535},
		{"localhost:80", 0, AF_INET, "127.0.0.1", 80},
		{"", -EINVAL, 0, NULL, 0},
		{"9870", -EINVAL, 0, NULL, 0},
		{":", -EINVAL, 0, NULL, 0},
		{":x", -EINVAL, 0, NULL, 0},
		{":65536", -EINVAL, 0, NULL, 0},
		{":-1", -EINVAL, 0, NULL, 0},
		{"::1:9870", -EINVAL, 0, NULL, 0},
		{"[::1]", -EINVAL, 0, NULL, 0},
		{"[127.0.0.1]:1", -EINVAL, 0, NULL, 0},
		{"[]:1", -EINVAL, 0, NULL, 0},
		{"1.2.3:1", -EINVAL, 0, NULL, 0},
		{"example.org:80", -EINVAL, 0, NULL, 0},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1",
			-EINVAL, 0, NULL, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct listen_address a;
		struct err e = {.text = ""};
		char host[INET6_ADDRSTRLEN];
		int r = listen_address_parse(str_of(cases[i].text), &a, &e);

		if (r != cases[i].result)
			fail_msg("%s: %d", cases[i].text, r);
		if (r < 0) {
			assert_non_null(strstr(e.text, "accepted: "));
			continue;
		}
		assert_int_equal(a.u.sa.sa_family, cases[i].family);
		assert_non_null(inet_ntop(a.u.sa.sa_family,
			a.u.sa.sa_family == AF_INET ? (void *)&a.u.in.sin_addr
						    : (void *)&a.u.in6.sin6_addr,
			host, sizeof(host)));
		assert_string_equal(host, cases[i].host);
		assert_int_equal(
			ntohs(a.u.sa.sa_family == AF_INET ? a.u.in.sin_port : a.u.in6.sin6_port),
			cases[i].port);
	}
}

static void a_port_in_use_is_an_error_that_says_what_to_do(void **state)
{
	struct listen_address a;
	struct err e;
	uint16_t port, other;
	char text[32];
	int fd, r;

	assert_int_equal(listen_address_parse(STR("127.0.0.1:0"), &a, &e), 0);
	fd = listen_socket(&a, &port, &e);
	assert_true(fd >= 0);
	assert_int_not_equal(port, 0);
	(void)snprintf(text, sizeof(text), "127.0.0.1:%u", port);
	assert_int_equal(listen_address_parse(str_of(text), &a, &e), 0);
	r = listen_socket(&a, &other, &e);
	assert_int_equal(r, -EADDRINUSE);
	assert_non_null(strstr(e.text, text));
	assert_non_null(strstr(e.text, "--listen"));
	(void)close(fd);
	assert_int_equal(listen_address_parse(STR("192.0.2.1:0"), &a, &e), 0);
	assert_int_equal(listen_socket(&a, &other, &e), -EADDRNOTAVAIL);
	assert_non_null(strstr(e.text, "no interface"));
}

static void every_address_is_listened_on(void **state)
{
	struct listen_address a;
	struct err e;
	uint16_t port;
	int fd;

	assert_int_equal(listen_address_parse(STR(":0"), &a, &e), 0);
	fd = listen_socket(&a, &port, &e);
	assert_true(fd >= 0);
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(connect(client, (struct sockaddr *)&to, sizeof(to)), 0);
	(void)close(client);
	(void)close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets_are_taken_apart),
		cmocka_unit_test(the_longest_target_fits_and_one_more_byte_does_not),
		cmocka_unit_test(patterns_match_whole_paths_only),
		cmocka_unit_test(a_query_is_found_by_name),
		cmocka_unit_test(listen_addresses_are_read),
		cmocka_unit_test(a_port_in_use_is_an_error_that_says_what_to_do),
		cmocka_unit_test(every_address_is_listened_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
