/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>

#include "agent/publish/publisher.h"
#include "base/file.h"
#include "helper_view.h"
#include "net/kube/reflector.h"
#include "proto/checkpoint.h"
#include "unit.h"

static struct fixture f;

static const char *type_name(enum metric_type t)
{
	return t == METRIC_COUNTER ? "counter" : t == METRIC_INFO ? "info" : "gauge";
}

static void series_name(const struct metric_family *x, char out[128])
{
	static const char *const suffixes[] = {"_total", "", "_info"};

	(void)snprintf(out, 128, METRICS_PREFIX "%s%s", x->name, suffixes[x->type]);
}

#define EACH_FAMILY(x)                                                                  \
	for (const struct metric_family *const *t_##x = metric_tables; *t_##x; t_##x++) \
		for (const struct metric_family *x = *t_##x; x->name; x++)

static void the_documented_families_are_the_served_ones(void **state)
{
	_cleanup_buf_ struct buf doc = BUF_INIT(1 << 20);
	unsigned int families = 0;

	assert_int_equal(file_read(AT_FDCWD, TEST_DATA "/../../docs/metrics.md", &doc, NULL), 0);
	EACH_FAMILY(x)
	{
		char name[128], row[1024];

		series_name(x, name);
		(void)snprintf(row, sizeof(row), "\n| `%s` | %s | %s | %s | %s |\n", name,
			type_name(x->type), x->labels[0] ? x->labels : "",
			x->full ? "full" : "summary", x->help);
		if (!strstr(doc.p, row))
			fail_msg("docs/metrics.md lacks the row:%s", row);
		families++;
	}
	/* And no row of a family that there is not. */
	assert_int_equal(count(&doc, "\n| `" METRICS_PREFIX), families);
}

static void documented(const struct buf *doc, const char *word)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "`%s`", word);
	if (!contains(doc, text))
		fail_msg("docs/metrics.md does not name %s", text);
}

static void the_documented_reasons_are_the_served_ones(void **state)
{
	_cleanup_buf_ struct buf doc = BUF_INIT(1 << 20);

	assert_int_equal(file_read(AT_FDCWD, TEST_DATA "/../../docs/metrics.md", &doc, NULL), 0);
	for (int i = PUBLISHER_OK + 1; i < PUBLISHER_OUTCOMES; i++)
		documented(&doc, publisher_outcome_name((enum publisher_outcome)i));
	for (int i = 0; i < PUBLISH_REASONS; i++)
		documented(&doc, publish_reason_name((enum publish_reason)i));
	for (int i = KUBE_TROUBLE_NONE + 1; i < KUBE_TROUBLE_COUNT; i++)
		documented(&doc, kube_trouble_name((enum kube_trouble)i));
	for (int i = 0; i < KUBE_SKIP_COUNT; i++)
		documented(&doc, kube_skip_name((enum kube_skip)i));
	for (int i = 0; i < OOM_CLASSES; i++)
		documented(&doc, oom_class_name((enum oom_class)i));
	for (int i = 0; i < CONTAINER_STATES; i++)
		documented(&doc, container_state_name((enum container_state)i));
	for (int i = CHECKPOINT_EMPTY; i <= CHECKPOINT_TOO_NEW; i++)
		documented(&doc, checkpoint_verdict_name((enum checkpoint_verdict)i));
	for (int i = 0; i < EVENT_KINDS; i++)
		documented(&doc, event_kind_name((enum event_kind)i));
}

static void names_follow_the_customs(void **state)
{
	EACH_FAMILY(x)
	{
		size_t n = strlen(x->name), u = strlen(x->unit);

		assert_true((x->agent != NULL) != (x->workload != NULL));
		assert_int_equal(x->name[strspn(x->name, "abcdefghijklmnopqrstuvwxyz_")], 0);
		if (u)
			assert_true(n > u + 1 && !strcmp(x->name + n - u, x->unit));
		assert_null(strstr(x->name, "_total"));
		assert_true(strlen(x->help) > 10 && x->help[strlen(x->help) - 1] == '.');
		EACH_FAMILY(y)
		{
			assert_true(x == y || strcmp(x->name, y->name) != 0);
		}
	}
}

static void each_family_is_there_once_with_help_and_type(void **state)
{
	static const char *const accepts[] = {"", "application/openmetrics-text"};

	for (unsigned int i = 0; i < 2; i++) {
		struct reply r;

		fixture_init(&f);
		fixture_fill(&f);
		f.endpoint.detail = METRICS_FULL;
		r = fixture_get(&f, "/metrics", accepts[i], NULL);
		assert_int_equal(r.error, 0);
		EACH_FAMILY(x)
		{
			char name[128], text[160];

			series_name(x, name);
			if (i)
				(void)snprintf(name, sizeof(name), METRICS_PREFIX "%s", x->name);
			(void)snprintf(text, sizeof(text), "# HELP %s ", name);
			assert_int_equal(count(&r.body, text), 1);
			(void)snprintf(text, sizeof(text), "# TYPE %s ", name);
			assert_int_equal(count(&r.body, text), 1);
		}
		assert_int_equal(count(&r.body, "# EOF\n"), i);
		if (i)
			assert_string_equal(r.body.p + r.body.n - 6, "# EOF\n");
		assert_non_null(strstr(
			r.content_type, i ? "openmetrics-text; version=1.0.0" : "version=0.0.4"));
		buf_finish(&r.body);
		fixture_finish(&f);
	}
}

static void a_summary_has_six_series_per_container(void **state)
{
	struct reply summary, all;

	fixture_init(&f);
	fixture_fill(&f);
	summary = fixture_get(&f, "/metrics", "", NULL);
	assert_int_equal(count(&summary.body, "daemonset=\"shipper\""), METRICS_SUMMARY_SERIES);
	f.endpoint.detail = METRICS_FULL;
	all = fixture_get(&f, "/metrics", "", NULL);
	assert_true(count(&all.body, "daemonset=\"shipper\"") > METRICS_SUMMARY_SERIES);
	buf_finish(&summary.body);
	buf_finish(&all.body);
	fixture_finish(&f);
}

static void values_have_base_units(void **state)
{
	static const char *const lines[] = {
		"\npernode_agent_container_cpu_usage_cores{namespace=\"default\",daemonset="
		"\"shipper\","
		"container=\"main\"} 0.0474\n",
		"\npernode_agent_container_memory_working_set_bytes{namespace=\"default\","
		"daemonset=\"shipper\","
		"container=\"main\"} 41000000\n",
		"\npernode_agent_container_request_cpu_cores{namespace=\"default\",daemonset="
		"\"shipper\","
		"container=\"main\"} 0.25\n",
		"\npernode_agent_container_limit_memory_bytes{namespace=\"default\",daemonset="
		"\"shipper\","
		"container=\"main\"} 104857600\n",
		"\npernode_agent_container_published_memory_bytes{namespace=\"default\",daemonset="
		"\"shipper\","
		"container=\"main\"} 49566436\n",
		"\npernode_agent_container_oom_kills_total{namespace=\"default\",daemonset="
		"\"shipper\","
		"container=\"main\"} 1\n",
		"\npernode_agent_container_readings_refused_total{namespace=\"default\",daemonset="
		"\"shipper\","
		"container=\"main\",reason=\"counter-backwards\"} 2\n",
		"\npernode_agent_oom_kills_total{class=\"limit\"} 1\n",
		"\npernode_agent_containers{state=\"not measurable\"} 1\n",
		"\npernode_agent_workloads 3\n",
		"\npernode_agent_uptime_seconds 259200\n",
		"\npernode_agent_start_time_seconds 1767225600\n",
		"\npernode_agent_check_ready{check=\"state\"} 1\n",
		"\npernode_agent_state_info{state=\"ok\"} 1\n",
	};
	struct reply r;

	fixture_init(&f);
	fixture_fill(&f);
	f.endpoint.detail = METRICS_FULL;
	struct loop_lag lag = {.late = 3, .since_usec = f.clock.mono_usec, .max_usec = {250000, 1}};
	f.view.lag = &lag;
	r = fixture_get(&f, "/metrics", "", NULL);
	for (unsigned int i = 0; i < ARRAY_SIZE(lines); i++) {
		if (!contains(&r.body, lines[i]))
			fail_msg("not served: %s", lines[i]);
	}
	/* Of its own process something is known. */
	assert_true(contains(&r.body, "\npernode_agent_resident_memory_bytes "));
	assert_true(contains(&r.body, "\npernode_agent_open_fds "));
	assert_true(contains(&r.body, "\npernode_agent_loop_lag_seconds 0.25\n"));
	assert_true(contains(&r.body, "\npernode_agent_loop_timers_late_total 3\n"));
	assert_true(contains(&r.body, "\npernode_agent_cpu_seconds_total "));
	/* What was never measured has no series. */
	assert_false(contains(&r.body, "target_cpu_cores{namespace=\"kube-system\""));
	assert_false(contains(&r.body, "nan"));
	assert_false(contains(&r.body, "null"));
	buf_finish(&r.body);
	fixture_finish(&f);
}

static void label_values_are_escaped(void **state)
{
	struct reply r;
	struct workload *w;

	fixture_init(&f);
	w = fixture_workload(&f, "default", "x", "main");
	(void)snprintf(w->daemonset, sizeof(w->daemonset),
		"a\"b\\c\nd\x01"
		"e\xff\xc3\xa9");
	r = fixture_get(&f, "/metrics", "", NULL);
	assert_true(contains(&r.body, "daemonset=\"a\\\"b\\\\c\\nd\xef\xbf\xbd"
				      "e\xef\xbf\xbd\xc3\xa9\""));
	buf_finish(&r.body);
	fixture_finish(&f);
}

static void openmetrics_is_served_to_who_prefers_it(void **state)
{
	static const struct {
		const char *accept;
		bool open;
	} cases[] = {
		{"", false},
		{"*/*", false},
		{"text/plain", false},
		{"text/html,*/*;q=0.8", false},
		{"application/openmetrics-text", true},
		{"application/openmetrics-text;version=1.0.0,application/"
		 "openmetrics-text;version=0.0.1;q=0.75,"
		 "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
			true},
		{"application/openmetrics-text; version=1.0.0; q=0.3, "
		 "text/plain;version=0.0.4;q=0.9",
			false},
		{"application/openmetrics-text;q=0", false},
		{"application/openmetrics-text;q=zero", false},
		{"text/plain;q=0.5 , application/openmetrics-text ; q = 0.5", true},
		{",;,q=1;;=,", false},
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(metrics_wants_openmetrics(cases[i].accept), cases[i].open);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_documented_families_are_the_served_ones),
		cmocka_unit_test(the_documented_reasons_are_the_served_ones),
		cmocka_unit_test(names_follow_the_customs),
		cmocka_unit_test(each_family_is_there_once_with_help_and_type),
		cmocka_unit_test(a_summary_has_six_series_per_container),
		cmocka_unit_test(values_have_base_units),
		cmocka_unit_test(label_values_are_escaped),
		cmocka_unit_test(openmetrics_is_served_to_who_prefers_it),
	};

	return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
