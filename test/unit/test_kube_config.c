/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "helper_alloc.h"
#include "net/kube/config.h"
#include "net/kube/config_private.h"
#include "unit.h"

struct dir {
	char path[64];
	int fd;
};

static int make_dir(void **state)
{
	struct dir *d = calloc(1, sizeof(*d));

	(void)str_copy(d->path, sizeof(d->path), STR("/tmp/test_kube_config.XXXXXX"));
	assert_non_null(mkdtemp(d->path));
	d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = d;
	return 0;
}

static int remove_dir(void **state)
{
	struct dir *d = *state;

	(void)unlinkat(d->fd, "token", 0);
	(void)unlinkat(d->fd, "ca.crt", 0);
	(void)close(d->fd);
	(void)rmdir(d->path);
	free(d);
	return 0;
}

static void put(const struct dir *d, const char *name, const char *content)
{
	assert_int_equal(file_write_atomic(d->fd, name, content, strlen(content), 0600, NULL), 0);
}

static void a_pods_server_is_read_from_its_environment(void **state)
{
	static const struct {
		const char *host, *port, *server;
		int result;
	} cases[] = {
		{"10.96.0.1", "443", "https://10.96.0.1:443", 0},
		{"fd00:10::1", "6443", "https://[fd00:10::1]:6443", 0},
		{"kubernetes.default.svc", "443", "https://kubernetes.default.svc:443", 0},
		{"", "443", NULL, -ENOENT},
		{"10.0.0.1", "", NULL, -ENOENT},
		{"10.0.0.1/x", "443", NULL, -EINVAL},
		{"u@10.0.0.1", "443", NULL, -EINVAL},
		{"10.0.0.1 ", "443", NULL, -EINVAL},
		{"10.0.0.1", "0", NULL, -EINVAL},
		{"10.0.0.1", "65536", NULL, -EINVAL},
		{"10.0.0.1", "tcp://10.0.0.1:443", NULL, -EINVAL},
	};

	put(*state, "ca.crt", "x");
	put(*state, "token", "t0k3n\n");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char host[80], port[80];
		char *environment[] = {"KUBERNETES_SERVICE_HOSTNAME=no", host, port, NULL};
		struct kube_config c;
		struct err e = {.text = ""};
		int r;

		(void)snprintf(host, sizeof(host), "KUBERNETES_SERVICE_HOST=%s", cases[i].host);
		(void)snprintf(port, sizeof(port), "KUBERNETES_SERVICE_PORT=%s", cases[i].port);
		kube_config_init(&c);
		r = kube_config_from_pod(&c, environment, ((struct dir *)*state)->path, &e);
		if (r != cases[i].result)
			fail_msg("%s %s: %d %s", cases[i].host, cases[i].port, r, e.text);
		if (r == 0) {
			assert_string_equal(c.server, cases[i].server);
			assert_string_equal(c.token, "t0k3n");
		} else {
			assert_null(c.server);
			assert_string_not_equal(e.text, "");
		}
		kube_config_finish(&c);
	}
}

static char *const in_a_pod[] = {
	"KUBERNETES_SERVICE_HOST=10.0.0.1", "KUBERNETES_SERVICE_PORT=443", NULL};

static void a_pod_without_service_account_is_told_so(void **state)
{
	struct dir *d = *state;
	struct kube_config c;
	struct err e;

	(void)unlinkat(d->fd, "ca.crt", 0);
	(void)unlinkat(d->fd, "token", 0);
	assert_int_equal(kube_config_from_pod(&c, in_a_pod, d->path, &e), -ENOENT);
	assert_non_null(strstr(e.text, "automountServiceAccountToken"));
	put(d, "ca.crt", "x");
	assert_int_equal(kube_config_from_pod(&c, in_a_pod, d->path, &e), -ENOENT);
	assert_non_null(strstr(e.text, "token"));
	assert_int_equal(kube_config_from_pod(&c, NULL, d->path, &e), -ENOENT);
	assert_non_null(strstr(e.text, "--kubeconfig"));
}

static void a_token_is_read_again_when_old_or_refused(void **state)
{
	struct dir *d = *state;
	struct kube_config c;
	struct err e;
	uint64_t now = 1000 * USEC_PER_SEC;

	put(d, "ca.crt", "x");
	put(d, "token", "one");
	assert_int_equal(kube_config_from_pod(&c, in_a_pod, d->path, &e), 0);
	put(d, "token", "two");
	assert_string_equal(kube_config_token(&c, now), "two");
	put(d, "token", "three");
	assert_string_equal(kube_config_token(&c, now + KUBE_TOKEN_AGE_USEC - 1), "two");
	assert_string_equal(kube_config_token(&c, now + KUBE_TOKEN_AGE_USEC), "three");
	put(d, "token", "four");
	kube_config_token_refused(&c);
	assert_string_equal(kube_config_token(&c, now + KUBE_TOKEN_AGE_USEC + 1), "four");

	static const char *const bad[] = {"", "\n", "a b", "a\r\nHost: x", "\xc3\xa9"};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		put(d, "token", bad[i]);
		kube_config_token_refused(&c);
		assert_string_equal(kube_config_token(&c, now), "four");
		assert_non_null(strstr(c.token_error.text, "token file"));
	}
	assert_int_equal(unlinkat(d->fd, "token", 0), 0);
	assert_string_equal(kube_config_token(&c, now), "four");
	put(d, "token", "five");
	assert_string_equal(kube_config_token(&c, now), "five");
	assert_string_equal(c.token_error.text, "");
	kube_config_finish(&c);
}

#define HEAD                                                                                   \
	"kind: Config\ncurrent-context: x\ncontexts:\n- {name: y, context: {cluster: no}}\n- " \
	"name: x\n  context: {cluster: k, user: u}\n"
#define CLUSTER \
	"clusters:\n- {name: other}\n- name: k\n  cluster: {server: 'https://10.0.0.1:6443/'}\n"
#define USER "users:\n- name: u\n  user: {token: abc}\n"

static void kubeconfigs_in_yaml_and_json_are_read(void **state)
{
	static const struct {
		const char *text, *server, *token, *cert, *ca;
	} cases[] = {
		{HEAD CLUSTER USER, "https://10.0.0.1:6443", "abc", NULL, NULL},
		{"{\"kind\":\"Config\",\"apiVersion\":\"v1\",\"current-context\":\"x\","
		 "\"contexts\":[{\"name\":\"x\",\"context\":{"
		 "\"cluster\":\"k\",\"user\":\"u\"}}],\"clusters\":[{\"name\":\"k\",\"cluster\":{"
		 "\"server\":\"https://[fd00::1]:1/"
		 "p\",\"certificate-authority\":\"/a/"
		 "ca.crt\"}}],\"users\":[{\"name\":\"u\",\"user\":{\"client-certificate\":"
		 "\"c.crt\",\"client-key\":\"c.key\"}}]}",
			"https://[fd00::1]:1/p", NULL, "/dir/c.crt", "/a/ca.crt"},
		{HEAD "clusters:\n- name: k\n  cluster:\n    server: http://127.0.0.1:8001\nusers: "
		      "[]\n",
			NULL, NULL, NULL, NULL},
		{"kind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: "
		 "k}}]\n" CLUSTER,
			"https://10.0.0.1:6443", NULL, NULL, NULL},
		{HEAD "clusters: [{name: k, cluster: {server: 'http://localhost:8001', "
		      "insecure-skip-tls-verify: false, proxy-url: "
		      "''}}]\n" USER,
			"http://localhost:8001", "abc", NULL, NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct kube_config c;
		struct err e = {.text = ""};
		int r;

		kube_config_init(&c);
		r = kube_config_parse(&c, str_of(cases[i].text), "/dir", &e);
		if ((r == 0) != (cases[i].server != NULL))
			fail_msg("%zu: %s", i, e.text);
		if (cases[i].server)
			assert_string_equal(c.server, cases[i].server);
		if (cases[i].token)
			assert_string_equal(c.token, cases[i].token);
		if (cases[i].cert)
			assert_string_equal(c.cert_file, cases[i].cert);
		if (cases[i].ca)
			assert_string_equal(c.ca_file, cases[i].ca);
		kube_config_finish(&c);
	}
}

static void inline_data_becomes_a_file_that_can_be_opened_again(void **state)
{
	struct kube_config c;
	struct err e;
	struct buf b = BUF_INIT(100);

	assert_int_equal(kube_config_parse(&c,
				 STR(HEAD "clusters: [{name: k, cluster: {server: 'https://h', "
					  "certificate-authority-data: "
					  "'aGVsbG8K', certificate-authority: ignored}}]\n" USER),
				 "/dir", &e),
		0);
	for (int i = 0; i < 2; i++) {
		_cleanup_close_ int fd = open(c.ca_file, O_RDONLY | O_CLOEXEC);
		char text[16] = "";

		assert_true(fd >= 0);
		assert_int_equal(read(fd, text, sizeof(text) - 1), 6);
		assert_string_equal(text, "hello\n");
	}
	assert_int_equal(open(c.ca_file, O_WRONLY | O_TRUNC | O_CLOEXEC), -1);
	buf_finish(&b);
	kube_config_finish(&c);
}

static void what_cannot_be_used_is_named(void **state)
{
	static const struct {
		const char *text;
		int result;
		const char *says;
	} cases[] = {
		{"", -EINVAL, "not a kubeconfig"},
		{"[]", -EINVAL, "not a kubeconfig"},
		{"a: [", -EINVAL, "line "},
		{"\x01", -EINVAL, "not YAML"},
		{"kind: Pod\n", -EINVAL, "kind: Config"},
		{"kind: Config\n", -EINVAL, "current-context"},
		{"kind: Config\ncurrent-context: z\ncontexts: []\n", -EINVAL,
			"\"z\" is not among the contexts"},
		{HEAD USER, -EINVAL, "cluster \"k\""},
		{HEAD CLUSTER, -EINVAL, "user \"u\""},
		{HEAD "clusters: [{name: k, cluster: {}}]\n" USER, -EINVAL, "no server"},
		{HEAD "clusters: [{name: k, cluster: {server: 'ftp://x'}}]\n" USER, -EINVAL,
			"not https"},
		{HEAD "clusters: [{name: k, cluster: {server: 'https://'}}]\n" USER, -EINVAL,
			"not a URL"},
		{HEAD "clusters: [{name: k, cluster: {server: 'https://u:p@h'}}]\n" USER, -EINVAL,
			"with a user"},
		{HEAD "clusters: [{name: k, cluster: {server: 'http://127.evil.example'}}]\n" USER,
			-EINVAL, "loopback"},
		{HEAD "clusters: [{name: k, cluster: {server: 'http://10.1.1.1'}}]\n" USER, -EINVAL,
			"loopback"},
		{HEAD "clusters: [{name: k, cluster: {server: 'https://h', "
		      "certificate-authority-data: '!'}}]\n" USER,
			-EINVAL, "certificate-authority-data is not base64"},
		{HEAD CLUSTER "users: [{name: u, user: {exec: {command: aws}}}]\n", -ENOTSUP,
			"exec"},
		{HEAD CLUSTER "users: [{name: u, user: {as: root, token: x}}]\n", -ENOTSUP,
			"as is not"},
		{HEAD CLUSTER "users: [{name: u, user: {username: a, password: b}}]\n", -ENOTSUP,
			"username"},
		{HEAD CLUSTER "users: [{name: u, user: {client-key: k}}]\n", -EINVAL,
			"without its certificate"},
		{HEAD CLUSTER "users: [{name: u, user: {token: 'a b'}}]\n", -EINVAL, "token"},
		{HEAD CLUSTER "users: [{name: u, user: {client-certificate: \"a\\0b\", client-key: "
			      "k}}]\n",
			-EINVAL, "NUL"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct kube_config c;
		struct err e = {.text = ""};
		int r = kube_config_parse(&c, str_of(cases[i].text), "/dir", &e);

		if (r != cases[i].result || !strstr(e.text, cases[i].says))
			fail_msg("%zu: %d %s", i, r, e.text);
	}
}

static void base64_is_decoded_strictly(void **state)
{
	static const struct {
		const char *text, *bytes;
	} cases[] = {
		{"", ""},
		{"Zg==", "f"},
		{"Zm8=", "fo"},
		{"Zm9v", "foo"},
		{"Zm9v\r\nYg==\n", "foob"},
		{"Zg", NULL},
		{"Z", NULL},
		{"Zg=", NULL},
		{"Zg===", NULL},
		{"Zm9v=", NULL},
		{"====", NULL},
		{"Zg==Zg==", NULL},
		{"Z-_v", NULL},
		{"Zm9v!", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf b = BUF_INIT(100);
		int r = base64_decode(str_of(cases[i].text), &b);

		if ((r == 0) != (cases[i].bytes != NULL))
			fail_msg("%s: %d", cases[i].text, r);
		if (r == 0)
			assert_string_equal(b.p ? b.p : "", cases[i].bytes);
		buf_finish(&b);
	}
}

static void memory_may_run_out_at_any_allocation(void **state)
{
	struct dir *d = *state;
	int succeeded = 0;

	put(d, "ca.crt", "x");
	put(d, "token", "t");
	ALLOC_FAIL_EACH
	{
		struct kube_config c;
		struct err e;
		int r = kube_config_from_pod(&c, in_a_pod, d->path, &e);

		succeeded += r == 0;
		if (r == 0)
			kube_config_finish(&c);
		else
			assert_int_equal(r, -ENOMEM);
	}
	ALLOC_FAIL_EACH
	{
		struct kube_config c;
		struct err e;
		int r = kube_config_parse(&c,
			STR(HEAD CLUSTER
				"users: [{name: u, user: {tokenFile: t, client-key-data: Zg==, "
				"client-certificate: c}}]\n"),
			"/dir", &e);

		succeeded += r == 0;
		if (r == 0)
			kube_config_finish(&c);
		else
			assert_int_equal(r, -ENOMEM);
	}
	assert_int_equal(succeeded, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pods_server_is_read_from_its_environment),
		cmocka_unit_test(a_pod_without_service_account_is_told_so),
		cmocka_unit_test(a_token_is_read_again_when_old_or_refused),
		cmocka_unit_test(kubeconfigs_in_yaml_and_json_are_read),
		cmocka_unit_test(inline_data_becomes_a_file_that_can_be_opened_again),
		cmocka_unit_test(what_cannot_be_used_is_named),
		cmocka_unit_test(base64_is_decoded_strictly),
		cmocka_unit_test(memory_may_run_out_at_any_allocation),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
