/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>

#include "base/file.h"
#include "helper_view.h"
#include "unit.h"

static struct fixture f;

static const char *const json_paths[] = {"/v1/recommendations", "/v1/containers",
	"/v1/histogram/default/shipper/main", "/v1/histogram/default/shipper/main?resource=cpu",
	"/v1/histogram/default/shipper/main?resource=memory", "/v1/explain/default/shipper/main",
	"/v1/history/default/shipper/main", "/v1/history/default/shipper/main?window=24h",
	"/v1/history/default/shipper/main?window=1m", "/v1/explain/kube-system/proxy/proxy",
	"/v1/histogram/kube-system/proxy/proxy", "/v1/history/kube-system/proxy/proxy",
	"/v1/events", "/v1/config"};

static void every_path_answers_in_json(void **state)
{
	fixture_init(&f);
	fixture_fill(&f);
	for (unsigned int i = 0; i < ARRAY_SIZE(json_paths); i++) {
		struct reply r = fixture_get(&f, json_paths[i], "", NULL);

		assert_int_equal(r.error, 0);
		assert_int_equal(r.status, 200);
		assert_string_equal(r.content_type, HTTP_TYPE_JSON);
		assert_json(&r.body);
		assert_true(contains(&r.body, "\"node\":\"node-a\""));
		buf_finish(&r.body);
	}
	fixture_finish(&f);
}

static void every_path_is_documented(void **state)
{
	_cleanup_buf_ struct buf doc = BUF_INIT(1 << 20);

	fixture_init(&f);
	assert_int_equal(file_read(AT_FDCWD, TEST_DATA "/../../docs/endpoint.md", &doc, NULL), 0);
	for (unsigned int i = 0; i < ENDPOINT_ROUTES; i++) {
		char row[128];

		(void)snprintf(row, sizeof(row), "\n| `%s` | ", f.endpoint.routes[i].pattern);
		if (!contains(&doc, row))
			fail_msg("docs/endpoint.md lacks the row:%s", row);
	}
	assert_int_equal(count(&doc, "\n| `/"), ENDPOINT_ROUTES);
	fixture_finish(&f);
}

static void nothing_known_is_an_answer_too(void **state)
{
	static const char *const paths[] = {
		"/v1/recommendations", "/v1/containers", "/v1/events", "/v1/config"};

	fixture_init(&f);
	for (unsigned int i = 0; i < ARRAY_SIZE(paths); i++) {
		struct reply r = fixture_get(&f, paths[i], "", NULL);

		assert_int_equal(r.error, 0);
		assert_json(&r.body);
		assert_true(contains(&r.body, ":[]"));
		buf_finish(&r.body);
	}
	fixture_finish(&f);
}

/* The entry of one container in an answer, up to the next one. */
static struct str entry_of(const struct buf *body, const char *container)
{
	char key[64];
	const char *p, *end;

	(void)snprintf(key, sizeof(key), "\"container\":\"%s\"", container);
	p = strstr(body->p, key);
	assert_non_null(p);
	end = strstr(p, "{\"namespace\"");
	return (struct str){p, end ? (size_t)(end - p) : strlen(p)};
}

static bool within(struct str s, const char *text)
{
	return memmem(s.p, s.n, text, strlen(text)) != NULL;
}

static void recommendations_say_what_is_known_and_no_more(void **state)
{
	struct reply r;
	struct str s;

	fixture_init(&f);
	fixture_fill(&f);
	r = fixture_get(&f, "/v1/recommendations", "", NULL);
	assert_true(contains(&r.body, "\"profile\":\"fine\""));
	s = entry_of(&r.body, "main");
	assert_true(within(s, "\"pod\":\"shipper-x7k2p\""));
	assert_true(within(s, "\"target\":{\"cpu_millicores\":"));
	assert_true(within(s, "\"oomKills\":1"));
	assert_true(within(s, "\"since\":\"2026-01-01T00:00:00Z\""));
	assert_true(within(s, "\"samples\":4320"));
	assert_true(within(
		s, "\"published\":{\"target\":{\"cpu_millicores\":63,\"memory_bytes\":49566436}"));
	assert_true(within(s, "\"publishedAt\":\"2026-01-04T00:00:00Z\""));
	assert_true(within(s, "\"request\":{\"cpu_millicores\":250,\"memory_bytes\":104857600}"));
	assert_true(within(s, "\"state\":\"ready\""));
	/* Never measured: omitted, not 0. */
	s = entry_of(&r.body, "proxy");
	assert_true(within(s, "\"target\":{}"));
	assert_true(within(s, "\"published\":null,\"publishedAt\":null"));
	assert_true(within(s, "\"state\":\"not measurable\""));
	assert_true(within(
		s, "\"reason\":\"runs in a virtual machine (\xef\xbf\xbd<script>\\\"\\\\\\n"));
	assert_false(within(s, "\"cpu_millicores\":0"));
	s = entry_of(&r.body, "starting");
	assert_true(within(s, "\"state\":\"learning\",\"reason\":\"0 of 2 CPU samples so far\""));
	/* Named by a pod, but without a history. */
	s = entry_of(&r.body, "new");
	assert_true(within(s, "\"state\":\"learning\",\"reason\":\"its cgroup is not there yet\""));
	buf_finish(&r.body);
	fixture_finish(&f);
}

static void containers_say_what_is_sampled_and_why_not(void **state)
{
	struct reply r;
	struct str s;

	fixture_init(&f);
	fixture_fill(&f);
	clock_manual_advance(&f.clock, 3 * USEC_PER_SEC);
	r = fixture_get(&f, "/v1/containers", "", NULL);
	s = entry_of(&r.body, "main");
	assert_true(within(s,
		"\"state\":\"sampled\",\"sample\":{\"age_seconds\":3,\"cpu_millicores\":47,"
		"\"memory_bytes\":41000000"));
	assert_true(within(s, "\"limits\":{\"cpu_millicores\":500,\"quotaLevel\":\"container\","
			      "\"memory_bytes\":104857600}"));
	assert_true(within(s, "\"throttling\":{\"last_minute_share\":0.25,\"periods\":100,"
			      "\"throttled_periods\":25,"
			      "\"throttled_seconds\":2.5}"));
	assert_true(within(s, "\"cpu\":{\"some\":{\"avg10_percent\":12.34,\"avg60_percent\":0.1,"
			      "\"total_seconds\":5}}"));
	assert_true(within(s, "\"unread\":{\"memory.peak\":\"no such file\"}"));
	assert_true(within(s, "\"backwards\":2"));
	s = entry_of(&r.body, "proxy");
	assert_true(within(s, "\"state\":\"not measurable\",\"reason\":\"runs in"));
	assert_false(within(s, "\"sample\""));
	assert_true(contains(
		&r.body, "{\"containerID\":\"ffff\",\"cgroup\":\"a/b\",\"state\":\"held\""));
	buf_finish(&r.body);
	fixture_finish(&f);
}

static void explain_goes_from_percentile_to_published(void **state)
{
	struct reply r;
	const char *first, *last;

	fixture_init(&f);
	fixture_fill(&f);
	r = fixture_get(&f, "/v1/explain/default/shipper/main", "", NULL);
	first = strstr(r.body.p,
		"{\"resource\":\"cpu\",\"bound\":\"target\",\"stage\":\"percentile\",\"factor\":");
	last = strstr(r.body.p, "{\"resource\":\"cpu\",\"bound\":\"target\",\"stage\":"
				"\"published\",\"cpu_millicores\":63");
	assert_non_null(first);
	assert_non_null(last);
	assert_true(first < last);
	assert_true(contains(&r.body, "\"stage\":\"margin\""));
	assert_true(contains(&r.body, "\"stage\":\"confidence\""));
	assert_true(contains(&r.body, "\"stage\":\"publish-rounding\""));
	assert_true(contains(&r.body, "\"next\":{\"need\":\"due\",\"reason\":\"usage\",\"text\":"
				      "\"publishing is switched off\"}"));
	assert_true(contains(&r.body, "\"throttling\":{\"last_minute_share\":0.25"));
	assert_true(contains(&r.body, "\"lastOOM\":\"2026-01-04T00:00:00Z\""));
	buf_finish(&r.body);
	fixture_finish(&f);
}

static void the_histogram_adds_up(void **state)
{
	struct reply r;
	double sum = 0, total, weight;

	fixture_init(&f);
	fixture_fill(&f);
	r = fixture_get(&f, "/v1/histogram/default/shipper/main?resource=memory", "", NULL);
	total = strtod(strstr(r.body.p, "\"total\":") + 8, NULL);
	for (const char *p = r.body.p; (p = strstr(p, "\"weight\":")); p++) {
		weight = strtod(p + 9, NULL);
		assert_true(weight > 0);
		sum += weight;
	}
	assert_true(total > 0 && sum > total * 0.9999 && sum < total * 1.0001);
	assert_true(contains(&r.body, "\"unit\":\"bytes\""));
	assert_true(contains(&r.body, "{\"percentile\":0.9,\"memory_bytes\":"));
	assert_true(contains(&r.body, "\"target\":"));
	buf_finish(&r.body);
	fixture_finish(&f);
}

static void history_columns_have_one_length(void **state)
{
	static const char *const keys[] = {"time", "step_seconds", "cpu_mean_millicores",
		"cpu_max_millicores", "cpu_request_millicores", "cpu_target_millicores",
		"memory_mean_bytes", "memory_max_bytes", "memory_request_bytes",
		"memory_target_bytes", "throttled_share", "oomKills"};
	struct reply r;

	fixture_init(&f);
	fixture_fill(&f);
	r = fixture_get(&f, "/v1/history/default/shipper/main?window=1h", "", NULL);
	for (unsigned int i = 0; i < ARRAY_SIZE(keys); i++) {
		char key[64];
		const char *p;
		unsigned int commas = 0;

		(void)snprintf(key, sizeof(key), "\"%s\":[", keys[i]);
		p = strstr(r.body.p, key);
		assert_non_null(p);
		for (; *p != ']'; p++)
			commas += *p == ',';
		assert_int_equal(commas + 1, 60);
	}
	assert_true(contains(&r.body, "\"cpu_request_millicores\":[250,"));
	assert_true(contains(&r.body, "\"throttled_share\":[null,"));
	assert_true(contains(
		&r.body, "\"from\":\"2026-01-03T23:00:00Z\",\"to\":\"2026-01-04T00:00:00Z\""));
	buf_finish(&r.body);
	fixture_finish(&f);
}

static void events_come_newest_first(void **state)
{
	struct reply r;
	const char *published, *oom;

	fixture_init(&f);
	fixture_fill(&f);
	r = fixture_get(&f, "/v1/events", "", NULL);
	published = strstr(r.body.p, "\"kind\":\"published\",\"detail\":\"oom\"");
	oom = strstr(r.body.p, "\"kind\":\"oom\",\"class\":\"limit\",\"namespace\":\"default\"");
	assert_non_null(published);
	assert_non_null(oom);
	assert_true(published < oom);
	assert_true(contains(
		&r.body, "\"limit_bytes\":67108864,\"text\":\"killed at \\\"64 MiB\\\" <b>\""));
	assert_true(contains(&r.body, "\"target\":{\"memory_bytes\":83886080}"));
	assert_false(contains(&r.body, "peak_bytes"));
	buf_finish(&r.body);
	fixture_finish(&f);
}

static void wrong_questions_are_told_what_is_accepted(void **state)
{
	static const struct {
		const char *url;
		int error;
		const char *text;
	} cases[] = {
		{"/v1/explain/default/shipper/other", -ENOENT,
			"\"other\" of DaemonSet \"default/shipper\""},
		{"/v1/histogram/x/y/z", -ENOENT, "/v1/recommendations lists"},
		{"/v1/history/x/%ff/z", -ENOENT, "not known on this node"},
		{"/v1/histogram/default/shipper/main?resource=disk", -EINVAL,
			"accepted: cpu, memory"},
		{"/v1/histogram/default/shipper/main?resource=", -EINVAL, "accepted: cpu, memory"},
		{"/v1/history/default/shipper/main?window=24", -EINVAL,
			"window=24: accepted: a duration"},
		{"/v1/history/default/shipper/main?window=-1h", -EINVAL, "accepted: a duration"},
		{"/v1/history/default/shipper/main?window=0", -EINVAL, "above 0"},
	};

	fixture_init(&f);
	fixture_fill(&f);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct reply r = fixture_get(&f, cases[i].url, "", NULL);

		assert_int_equal(r.error, cases[i].error);
		assert_non_null(strstr(r.e.text, cases[i].text));
		buf_finish(&r.body);
	}
	fixture_finish(&f);
}

static void readyz_and_healthz_tell_why(void **state)
{
	static const struct {
		enum health health;
		unsigned int ready, live;
	} cases[] = {{HEALTH_OK, 200, 200}, {HEALTH_NOTE, 200, 200}, {HEALTH_NOT_READY, 503, 200},
		{HEALTH_FAILED, 503, 503}};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct reply r;

		fixture_init(&f);
		f.health[f.n_health++] = (struct health_item){"disk", HEALTH_OK, ""};
		f.health[f.n_health++] =
			(struct health_item){"pods", cases[i].health, "because of it"};
		r = fixture_get(&f, "/readyz", "", NULL);
		assert_int_equal(r.status, cases[i].ready);
		assert_int_equal(
			contains(&r.body, "pods: because of it"), cases[i].health != HEALTH_OK);
		assert_false(contains(&r.body, "disk"));
		buf_finish(&r.body);
		r = fixture_get(&f, "/readyz?verbose", "", NULL);
		assert_int_equal(r.status, cases[i].ready);
		assert_true(contains(&r.body, "[+]disk ok\n"));
		assert_true(contains(&r.body, r.status == 200 ? "\nready\n" : "\nnot ready\n"));
		buf_finish(&r.body);
		r = fixture_get(&f, "/healthz", "", NULL);
		assert_int_equal(r.status, cases[i].live);
		buf_finish(&r.body);
		fixture_finish(&f);
	}
}

struct settings {
	int64_t interval_ns;
	const char *kubeconfig;
	int64_t floor_millicores;
	bool strict;
	double share;
	int profile;
};

static int parse_other(struct str value, void *target, struct err *e)
{
	return 0;
}

static void config_tells_each_setting_and_its_source(void **state)
{
	static const char *const profiles[] = {"fine", "vpa", NULL};
	static const struct flag table[] = {
		{.name = "interval",
			.kind = FLAG_DURATION,
			.offset = offsetof(struct settings, interval_ns),
			.help = "h"},
		{.name = "kubeconfig",
			.kind = FLAG_STRING,
			.offset = offsetof(struct settings, kubeconfig),
			.help = "h"},
		{.name = "strict",
			.kind = FLAG_BOOL,
			.offset = offsetof(struct settings, strict),
			.help = "h"},
		{.name = NULL}};
	static const struct flag second[] = {{.name = "share",
						     .kind = FLAG_DOUBLE,
						     .offset = offsetof(struct settings, share),
						     .help = "h"},
		{.name = "profile",
			.kind = FLAG_CHOICE,
			.choices = profiles,
			.offset = offsetof(struct settings, profile),
			.help = "h"},
		{.name = "other", .kind = FLAG_CUSTOM, .parse = parse_other, .help = "h"},
		{.name = NULL}};
	static const struct flag *const tables[] = {table, second, NULL};
	struct settings settings = {
		.interval_ns = INT64_C(10000000000), .share = 0.15, .profile = 1};
	struct reply r;

	fixture_init(&f);
	f.flags = (struct flag_set){.tables = tables, .settings = &settings};
	f.flags.sources[1] = FLAG_FROM_ENVIRONMENT;
	f.flags.sources[4] = FLAG_FROM_COMMAND_LINE;
	f.view.flags = &f.flags;
	r = fixture_get(&f, "/v1/config", "", NULL);
	assert_json(&r.body);
	assert_true(contains(&r.body, "{\"name\":\"interval\",\"value\":\"10s\",\"source\":"
				      "\"default\",\"environment\":\"PERNODE_INTERVAL\""));
	assert_true(contains(
		&r.body, "{\"name\":\"kubeconfig\",\"value\":null,\"source\":\"environment\""));
	assert_true(contains(&r.body, "{\"name\":\"strict\",\"value\":false,"));
	assert_true(contains(&r.body, "{\"name\":\"share\",\"value\":0.15,"));
	assert_true(contains(
		&r.body, "{\"name\":\"profile\",\"value\":\"vpa\",\"source\":\"command line\""));
	assert_true(contains(&r.body, "{\"name\":\"other\",\"value\":null,"));
	buf_finish(&r.body);
	fixture_finish(&f);
}

static void the_page_escapes_everything(void **state)
{
	struct reply r;
	struct workload *w;

	fixture_init(&f);
	fixture_fill(&f);
	w = fixture_workload(&f, "default", "zz", "main");
	(void)snprintf(w->daemonset, sizeof(w->daemonset), "z<img src=x>&'\"\xc3\x28%%2f");
	f.view.reason = "</title><script>";
	f.view.state = "unsupported";
	r = fixture_get(&f, "/", "", NULL);
	assert_int_equal(r.error, 0);
	assert_string_equal(r.content_type, HTTP_TYPE_HTML);
	assert_false(contains(&r.body, "<script"));
	assert_false(contains(&r.body, "<img"));
	assert_true(contains(&r.body, "z&lt;img src=x&gt;&amp;&#39;&quot;\xef\xbf\xbd("));
	assert_true(contains(
		&r.body, "v1/explain/default/z%3Cimg%20src%3Dx%3E%26%27%22%C3%28%252f/main"));
	assert_true(contains(
		&r.body, "<td>default/shipper<td>main<td class=n>47m<td class=n>250m<td class=n>"));
	assert_true(contains(&r.body, "killed at &quot;64 MiB&quot; &lt;b&gt;"));
	assert_false(contains(&r.body, "http://"));
	assert_false(contains(&r.body, "https://"));
	buf_finish(&r.body);
	fixture_finish(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_path_answers_in_json),
		cmocka_unit_test(every_path_is_documented),
		cmocka_unit_test(nothing_known_is_an_answer_too),
		cmocka_unit_test(recommendations_say_what_is_known_and_no_more),
		cmocka_unit_test(containers_say_what_is_sampled_and_why_not),
		cmocka_unit_test(explain_goes_from_percentile_to_published),
		cmocka_unit_test(the_histogram_adds_up),
		cmocka_unit_test(history_columns_have_one_length),
		cmocka_unit_test(events_come_newest_first),
		cmocka_unit_test(wrong_questions_are_told_what_is_accepted),
		cmocka_unit_test(readyz_and_healthz_tell_why),
		cmocka_unit_test(config_tells_each_setting_and_its_source),
		cmocka_unit_test(the_page_escapes_everything),
	};

	return cmocka_run_group_tests_name("endpoint", tests, NULL, NULL);
}
