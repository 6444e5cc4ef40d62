// SPDX-License-Identifier: Apache-2.0
#include "helper_alloc.h"
#include "proto/annotation.h"
#include "proto/node.h"
#include "proto/pod.h"
#include "proto/rfc3339.h"
#include "test/unit/unit.h"

#define POD                                                                                        \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"shipper-x\","            \
	"\"namespace\":\"default\","                                                               \
	"\"uid\":\"11111111-2222-3333-4444-555555555555\",\"resourceVersion\":\"77\","             \
	"\"deletionTimestamp\":null,"                                                              \
	"\"labels\":{\"app\":\"shipper\",\"controller-revision-hash\":\"6d9c7b5f4\"},"             \
	"\"annotations\":{\"pernode.io/recommender\":\"{\\\"margin\\\":0.2}\",\"other\":\"x\"},"   \
	"\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"X\",\"name\":\"no\",\"uid\":"      \
	"\"u0\"},"                                                                                 \
	"{\"apiVersion\":\"apps/"                                                                  \
	"v1\",\"kind\":\"DaemonSet\",\"name\":\"shipper\",\"uid\":\"u1\",\"controller\":true}],"   \
	"\"managedFields\":[{\"fieldsV1\":{\"f:metadata\":{\"f:name\":{}}}}]},"                    \
	"\"spec\":{\"nodeName\":\"node-a\",\"runtimeClassName\":\"kata\","                         \
	"\"initContainers\":[{\"name\":\"setup\"},{\"name\":\"proxy\",\"restartPolicy\":"          \
	"\"Always\","                                                                              \
	"\"resources\":{\"requests\":{\"cpu\":\"10m\"}}}],"                                        \
	"\"containers\":[{\"name\":\"main\",\"image\":\"i\",\"env\":[{\"name\":\"HOME\","          \
	"\"value\":\"/\"}],"                                                                       \
	"\"resources\":{\"limits\":{\"memory\":\"64Mi\",\"nvidia.com/gpu\":\"1\"},"                \
	"\"requests\":{\"cpu\":\"100m\",\"memory\":\"32Mi\"}}},{\"name\":\"second\"}]},"           \
	"\"status\":{\"phase\":\"Running\",\"initContainerStatuses\":[{\"name\":\"setup\","        \
	"\"containerID\":\"cri-o://00\"},"                                                         \
	"{\"name\":\"proxy\",\"containerID\":\"cri-o://"                                           \
	"bb\",\"started\":true,\"state\":{\"running\":{}}}],"                                      \
	"\"containerStatuses\":[{\"name\":\"main\",\"containerID\":\"containerd://"                \
	"aa\",\"ready\":true,"                                                                     \
	"\"restartCount\":3,\"started\":true,\"state\":{\"running\":{\"startedAt\":\"2026-01-"     \
	"01T00:00:00Z\"}},"                                                                        \
	"\"lastState\":{\"terminated\":{\"exitCode\":137,\"reason\":\"OOMKilled\","                \
	"\"containerID\":\"containerd://a9\","                                                     \
	"\"finishedAt\":\"2026-01-01T00:00:01Z\"}},\"resources\":{\"requests\":{\"cpu\":\"200m\"}" \
	"}},"                                                                                      \
	"{\"name\":\"second\",\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}}}]}}"

#define T0 (1767225600 * INT64_C(1000000000))

static int read_pod(
	struct pod_reader *r, struct str text, size_t piece, const struct pod **ret, struct err *e)
{
	pod_reader_begin(r);
	for (size_t i = 0; i < text.n; i += piece) {
		int result =
			pod_reader_feed(r, (struct str){text.p + i, MIN(piece, text.n - i)}, e);
		if (result < 0)
			return result;
	}
	return pod_reader_end(r, ret, e);
}

static void assert_the_pod(const struct pod *p)
{
	assert_string_equal(p->namespace, "default");
	assert_string_equal(p->name, "shipper-x");
	assert_string_equal(p->uid, "11111111-2222-3333-4444-555555555555");
	assert_string_equal(p->resource_version, "77");
	assert_string_equal(p->node_name, "node-a");
	assert_string_equal(p->runtime_class, "kata");
	assert_string_equal(p->daemonset, "shipper");
	assert_string_equal(p->daemonset_uid, "u1");
	assert_string_equal(p->revision, "6d9c7b5f4");
	assert_string_equal(p->recommender, "{\"margin\":0.2}");
	assert_int_equal(p->phase, POD_RUNNING);
	assert_true(p->deletion_ns == TIME_NONE);
	assert_int_equal(p->n_containers, 3);
	assert_int_equal(p->containers_left_out, 0);

	const struct pod_container *main_container = pod_container_find(p, STR("main"));
	assert_non_null(main_container);
	assert_false(main_container->sidecar);
	assert_true(main_container->requests.cpu_millicores == 100);
	assert_true(main_container->requests.memory_bytes == 33554432);
	assert_true(main_container->limits.cpu_millicores == -1);
	assert_true(main_container->limits.memory_bytes == 67108864);
	assert_string_equal(main_container->container_id, "aa");
	assert_true(main_container->running && main_container->started && main_container->ready);
	assert_true(main_container->running_since_ns == T0);
	assert_true(main_container->restart_count == 3);
	assert_false(main_container->terminated.known);
	assert_true(main_container->last_terminated.known);
	assert_true(main_container->last_terminated.exit_code == 137);
	assert_string_equal(main_container->last_terminated.reason, "OOMKilled");
	assert_string_equal(main_container->last_terminated.container_id, "a9");
	assert_true(main_container->last_terminated.finished_at_ns == T0 + 1000000000);
	assert_true(main_container->actual_requests.cpu_millicores == 200);
	assert_true(main_container->actual_requests.memory_bytes == -1);

	const struct pod_container *proxy = pod_container_find(p, STR("proxy"));
	assert_non_null(proxy);
	assert_true(proxy->sidecar && proxy->running && proxy->started && !proxy->ready);
	assert_true(proxy->requests.cpu_millicores == 10);
	assert_string_equal(proxy->container_id, "bb");
	const struct pod_container *second = pod_container_find(p, STR("second"));
	assert_true(
		second->has_status && !second->running && second->requests.cpu_millicores == -1);
	assert_null(pod_container_find(p, STR("setup")));
}

static void a_pod_is_read_in_any_pieces(void **state)
{
	struct pod_reader *r = pod_reader_create();
	const struct pod *p;

	for (size_t piece = 1; piece < 200; piece += piece < 20 ? 1 : 17) {
		struct err e;
		if (read_pod(r, STR(POD), piece, &p, &e) < 0)
			fail_msg("%s", e.text);
		assert_the_pod(p);
	}
	/* an aborted one leaves nothing behind */
	pod_reader_begin(r);
	assert_int_equal(pod_reader_feed(r, (struct str){POD, 700}, NULL), 0);
	assert_int_equal(read_pod(r, STR(POD), 4096, &p, NULL), 0);
	assert_the_pod(p);
	pod_reader_destroy(r);
}

static void members_may_come_in_any_order(void **state)
{
	struct pod_reader *r = pod_reader_create();
	const struct pod *p;
	struct str text = STR(
		"{\"status\":{\"containerStatuses\":[{\"containerID\":\"x://1\",\"name\":\"a\"},"
		"{\"containerID\":\"x://"
		"2\",\"name\":\"gone\"}]},\"spec\":{\"containers\":[{\"resources\":"
		"{\"limits\":{\"cpu\":\"1\"}},\"name\":\"a\"}]},"
		"\"metadata\":{\"uid\":\"u\",\"name\":\"n\",\"namespace\":\"s\"}}");

	assert_int_equal(read_pod(r, text, text.n, &p, NULL), 0);
	assert_int_equal(p->n_containers, 1);
	assert_string_equal(p->container[0].container_id, "1");
	assert_true(p->container[0].limits.cpu_millicores == 1000);
	assert_string_equal(p->daemonset, "");
	pod_reader_destroy(r);
}

#define META "\"metadata\":{\"namespace\":\"s\",\"name\":\"n\",\"uid\":\"u\"}"

static void only_a_controlling_daemonset_of_apps_v1_owns(void **state)
{
	static const struct {
		const char *owner, *daemonset;
	} t[] = {
		{"\"apiVersion\":\"apps/"
		 "v1\",\"kind\":\"DaemonSet\",\"name\":\"d\",\"controller\":true",
			"d"},
		{"\"apiVersion\":\"apps/"
		 "v1\",\"kind\":\"DaemonSet\",\"name\":\"d\",\"controller\":false",
			""},
		{"\"apiVersion\":\"apps/v1\",\"kind\":\"DaemonSet\",\"name\":\"d\"", ""},
		{"\"apiVersion\":\"apps.kruise.io/"
		 "v1\",\"kind\":\"DaemonSet\",\"name\":\"d\",\"controller\":true",
			""},
		{"\"apiVersion\":\"apps/"
		 "v1\",\"kind\":\"ReplicaSet\",\"name\":\"d\",\"controller\":true",
			""},
		{"\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"d\",\"controller\":true", ""},
	};
	struct pod_reader *r = pod_reader_create();

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		_cleanup_buf_ struct buf text = BUF_INIT(4096);
		const struct pod *p;

		(void)buf_printf(&text,
			"{\"metadata\":{\"namespace\":\"s\",\"name\":\"n\",\"uid\":\"u\","
			"\"ownerReferences\":[{%s}]}}",
			t[i].owner);
		assert_int_equal(read_pod(r, buf_str(&text), 4096, &p, NULL), 0);
		assert_string_equal(p->daemonset, t[i].daemonset);
	}
	pod_reader_destroy(r);
}

#define N64 "0123456789012345678901234567890123456789012345678901234567890123"

static const struct {
	const char *text;
	int r;
	const char *says;
} bad_pods[] = {
	{"{\"metadata\":{}}", -EINVAL, "pod ?/?: metadata has no name"},
	{"{\"metadata\":{\"name\":\"n\",\"uid\":\"u\"}}", -EINVAL,
		"pod ?/n: metadata has no namespace"},
	{"{\"metadata\":{\"name\":\"n\",\"namespace\":\"s\"}}", -EINVAL,
		"pod s/n: metadata has no uid"},
	{"{\"metadata\":{\"uid\":7,\"namespace\":\"s\",\"name\":\"n\"}}", -EINVAL,
		"pod s/n: metadata.uid is 7, expected a name"},
	{"{\"metadata\":{\"name\":\"../etc\"}}", -EINVAL, "\"../etc\""},
	{"{\"metadata\":{\"uid\":\"..\"}}", -EINVAL, "\"..\""},
	{"{\"metadata\":{\"name\":\"\xc3\xa9\"}}", -EINVAL, "\"??\""},
	{"{\"metadata\":{\"name\":\"a\\u0000b\"}}", -EINVAL, "\"a?b\""},
	{"{\"metadata\":{\"namespace\":\"" N64 "\"}}", -EINVAL, "at most 63 bytes"},
	{"{" META ",\"spec\":{\"containers\":[7]}}", -EINVAL, "a container is 7"},
	{"{" META ",\"spec\":{\"containers\":[{}]}}", -EINVAL, "a container has no name"},
	{"{" META ",\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":"
	 "\"x\"}}}]}}",
		-EINVAL, "pod s/n: resources.requests.cpu is \"x\""},
	{"{" META ",\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{"
	 "\"memory\":\"-1\"}}}]}}",
		-EINVAL, "not negative"},
	{"{" META ",\"status\":{\"containerStatuses\":[{\"name\":\"c\",\"restartCount\":\"1\"}]}}",
		-EINVAL, "restartCount"},
	{"{" META
	 ",\"status\":{\"containerStatuses\":[{\"name\":\"c\",\"state\":{\"running\":true}}]}}",
		-EINVAL, "state.running is a boolean"},
	{"{" META
	 ",\"status\":{\"containerStatuses\":[{\"name\":\"c\",\"containerID\":\"x://a/b\"}]}}",
		-EINVAL, "containerID"},
	{"{\"kind\":\"Node\"," META "}", -EINVAL, "kind is Node, expected Pod"},
	{"[{" META "}]", -EINVAL, "the pod is an array"},
	{"null", -EINVAL, "the pod is null"},
};

static void a_pod_that_is_none_is_named_with_its_reason(void **state)
{
	struct pod_reader *r = pod_reader_create();
	const struct pod *p;
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(bad_pods); i++) {
		struct err why = {0};
		assert_int_equal(read_pod(r, str_of(bad_pods[i].text), 7, &p, &why), bad_pods[i].r);
		if (!strstr(why.text, bad_pods[i].says))
			fail_msg("%s: '%s' does not say '%s'", bad_pods[i].text, why.text,
				bad_pods[i].says);
		/* the next one is not touched by it */
		assert_int_equal(read_pod(r, STR(POD), 4096, &p, NULL), 0);
		assert_the_pod(p);
	}
	for (size_t n = 0; n < sizeof POD - 1; n += 13)
		assert_true(read_pod(r, (struct str){POD, n}, 4096, &p, &e) < 0);
	assert_int_equal(read_pod(r, STR("<html>"), 1, &p, &e), -EBADMSG);
	assert_int_equal(read_pod(r, STR(POD POD), 4096, &p, &e), -EBADMSG);
	pod_reader_destroy(r);
}

static void too_much_of_a_pod_is_left_out(void **state)
{
	struct pod_reader *r = pod_reader_create();
	_cleanup_buf_ struct buf text = BUF_INIT(4U << 20);
	const struct pod *p;

	(void)buf_puts(&text, "{\"spec\":{\"containers\":[");
	for (int i = 0; i < 60; i++)
		(void)buf_printf(&text, "%s{\"name\":\"c%d\"}", i ? "," : "", i);
	(void)buf_puts(&text,
		"]},\"metadata\":{\"namespace\":\"s\",\"name\":\"n\",\"uid\":\"u\",\"annotations\":"
		"{\"pernode.io/recommender\":\"");
	for (int i = 0; i < 200000; i++)
		(void)buf_puts(&text, "0123456789");
	(void)buf_puts(&text, "\"}}}");
	assert_int_equal(read_pod(r, buf_str(&text), 16384, &p, NULL), 0);
	assert_int_equal(p->n_containers, POD_CONTAINERS_MAX);
	assert_int_equal(p->containers_left_out, 60 - POD_CONTAINERS_MAX);
	assert_true(p->recommender_too_long);
	assert_string_equal(p->recommender, "");
	pod_reader_destroy(r);
}

struct seen {
	unsigned int pods, skipped;
	struct buf text;
};

static void count_pod(void *arg, const struct pod *p)
{
	struct seen *s = arg;
	assert_the_pod(p);
	s->pods++;
}

static void count_skipped(void *arg, const struct err *e)
{
	struct seen *s = arg;
	(void)buf_printf(&s->text, "%s\n", e->text);
	s->skipped++;
}

static const struct pod_list_ops list_ops = {.pod = count_pod, .skipped = count_skipped};

static int read_list(struct str text, size_t piece, struct seen *s, struct err *e)
{
	struct pod_list *l = pod_list_create(&list_ops, s);
	int r = l ? 0 : -ENOMEM;

	for (size_t i = 0; i < text.n && r == 0; i += piece)
		r = pod_list_feed(l, (struct str){text.p + i, MIN(piece, text.n - i)}, e);
	if (r == 0)
		r = pod_list_end(l, e);
	pod_list_destroy(l);
	return r;
}

static void one_bad_pod_does_not_spoil_a_list(void **state)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1U << 20);

	(void)buf_puts(&text,
		"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[" POD);
	for (size_t i = 0; i + 3 < ARRAY_SIZE(bad_pods); i++)
		(void)buf_printf(&text, ",%s," POD, bad_pods[i].text);
	(void)buf_puts(&text, ",7,[" POD "],{\"kind\":\"Node\",\"metadata\":{\"name\":\"x\"}}]}");
	for (size_t piece = 1; piece < 20000; piece *= 3) {
		struct seen s = {.text = BUF_INIT(65536)};
		struct err e;

		assert_int_equal(read_list(buf_str(&text), piece, &s, &e), 0);
		assert_int_equal(s.pods, ARRAY_SIZE(bad_pods) - 2);
		assert_int_equal(s.skipped, ARRAY_SIZE(bad_pods) - 3 + 2);
		assert_non_null(strstr(s.text.p, "item 2: pod ?/?: metadata has no name\n"));
		assert_non_null(strstr(s.text.p, "it is 7, expected an object"));
		buf_finish(&s.text);
	}
}

static void what_is_no_list_is_refused(void **state)
{
	static const struct {
		const char *text;
		int r;
		const char *says;
	} t[] = {
		{"", -EINVAL, "kind is \"\""},
		{"{}", -EINVAL, "expected PodList"},
		{"{\"kind\":\"NodeList\",\"items\":[]}", -EINVAL, "NodeList"},
		{POD, -EINVAL, "kind is \"Pod\""},
		{"{\"kind\":\"PodList\",\"items\":[", -EBADMSG, "middle"},
		{"hello", -EBADMSG, "not JSON"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct seen s = {.text = BUF_INIT(65536)};
		struct err e = {0};

		assert_int_equal(read_list(str_of(t[i].text), 100, &s, &e), t[i].r);
		if (!strstr(e.text, t[i].says))
			fail_msg("'%s' does not say '%s'", e.text, t[i].says);
		assert_int_equal(s.pods + s.skipped, 0);
		buf_finish(&s.text);
	}
}

static void note_annotation(void *arg, struct str key, struct str value)
{
	(void)buf_printf(arg, "%.*s=%.*s;", STR_ARG(key), value.n > 20 ? 3 : (int)value.n, value.p);
}

static void a_node_gives_its_identity_and_our_annotations(void **state)
{
	_cleanup_buf_ struct buf seen = BUF_INIT(65536), text = BUF_INIT(1U << 20);
	struct node_reader *r = node_reader_create(note_annotation, &seen);
	const struct node *n;
	struct err e;

	(void)buf_puts(&text,
		"{\"kind\":\"Node\",\"metadata\":{\"name\":\"node-a\",\"uid\":\"u1\","
		"\"resourceVersion\":\"5\","
		"\"annotations\":{\"volumes.example/x\":\"no\",\"pernode.io/agent\":\"{}\","
		"\"d.n.pernode.io/c\":\"{1}\",\"d.n.pernode.io/e\":7,\"d.n.pernode.io/long\":\"");
	for (int i = 0; i < 1000; i++)
		(void)buf_puts(&text, "0123456789");
	(void)buf_puts(&text, "\"}},\"status\":{\"nodeInfo\":{\"machineID\":\"m\",\"bootID\":\"b\"}"
			      ",\"images\":[{}]}}");
	for (size_t piece = 1; piece < 20000; piece *= 3) {
		buf_clear(&seen);
		node_reader_begin(r);
		for (size_t i = 0; i < text.n; i += piece)
			assert_int_equal(
				node_reader_feed(
					r, (struct str){text.p + i, MIN(piece, text.n - i)}, &e),
				0);
		assert_int_equal(node_reader_end(r, &n, &e), 0);
		assert_string_equal(n->name, "node-a");
		assert_string_equal(n->uid, "u1");
		assert_string_equal(n->resource_version, "5");
		assert_string_equal(n->machine_id, "m");
		assert_string_equal(n->boot_id, "b");
		assert_int_equal(n->other_annotations_bytes, strlen("volumes.example/x"
								    "no"
								    "pernode.io/agent"
								    "{}"));
		assert_string_equal(seen.p,
			"pernode.io/agent={};d.n.pernode.io/c={1};d.n.pernode.io/long=012;");
	}
	static const char *const bad[] = {"{}", "[]", "null", "", "{\"metadata\":{\"name\":\"n\"}}",
		"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"n\",\"uid\":\"u\"}}",
		"{\"metadata\":{\"name\":\"n\",\"uid\":[]}}"};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		node_reader_begin(r);
		assert_int_equal(node_reader_feed(r, str_of(bad[i]), &e), 0);
		assert_int_equal(node_reader_end(r, &n, &e), -EINVAL);
		assert_non_null(strstr(e.text, "node "));
	}
	node_reader_destroy(r);
}

static void a_failed_allocation_is_an_error_and_nothing_more(void **state)
{
	ALLOC_FAIL_EACH
	{
		struct seen s = {.text = BUF_INIT(65536)};
		int r = read_list(STR("{\"kind\":\"PodList\",\"items\":[" POD "]}"), 100, &s, NULL);
		assert_true(r == 0 || r == -ENOMEM);
		buf_finish(&s.text);
	}
	ALLOC_FAIL_EACH
	{
		struct node_reader *n = node_reader_create(NULL, NULL);
		node_reader_destroy(n);
		struct pod_reader *p = pod_reader_create();
		pod_reader_destroy(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_is_read_in_any_pieces),
		cmocka_unit_test(members_may_come_in_any_order),
		cmocka_unit_test(only_a_controlling_daemonset_of_apps_v1_owns),
		cmocka_unit_test(a_pod_that_is_none_is_named_with_its_reason),
		cmocka_unit_test(too_much_of_a_pod_is_left_out),
		cmocka_unit_test(one_bad_pod_does_not_spoil_a_list),
		cmocka_unit_test(what_is_no_list_is_refused),
		cmocka_unit_test(a_node_gives_its_identity_and_our_annotations),
		cmocka_unit_test(a_failed_allocation_is_an_error_and_nothing_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
