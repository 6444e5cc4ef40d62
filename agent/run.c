/* SPDX-License-Identifier: Apache-2.0 */
/* The verb run: its settings, and the agent's life from start to SIGTERM. */
#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/verbs.h"
#include "base/log.h"
#include "net/http/listen.h"
#include "proto/field.h"

static const char *const metrics_names[] = {"summary", "full", NULL};

#define DAY_NS (24 * 3600 * NSEC_PER_SEC)
#define SETTING(member) .offset = offsetof(struct agent_settings, member)

static const struct flag run_flags[] = {
	{.name = "node-name",
		.kind = FLAG_STRING,
		SETTING(node_name),
		.value_name = "NAME",
		.help = "name of the Node object of this machine"},
	{.name = "pod-source",
		.kind = FLAG_STRING,
		SETTING(pod_source),
		.default_text = "api",
		.value_name = "api|file:PATH",
		.help = "where pods are learned from: the API server, or a PodList as JSON that is "
			"read again when it changes"},
	{.name = "publish",
		.kind = FLAG_STRING,
		SETTING(publish),
		.default_text = "api",
		.value_name = "api|none|file:PATH",
		.help = "where recommendations go: annotations of the Node, nowhere, or a file "
			"with the patches that would be sent"},
	{.name = "cgroup-root",
		.kind = FLAG_STRING,
		SETTING(cgroup_root),
		.value_name = "PATH",
		.help = "the mount point of cgroup v2 (default: the mounted one)"},
	{.name = "state-dir",
		.kind = FLAG_STRING,
		SETTING(state_dir),
		.default_text = "/var/lib/pernode",
		.value_name = "DIRECTORY",
		.help = "where history is kept over restarts"},
	{.name = "listen",
		.kind = FLAG_STRING,
		SETTING(listen),
		.default_text = ":9870",
		.value_name = "[ADDRESS]:PORT",
		.help = "the HTTP endpoint: page, /metrics, /readyz, /v1/…"},
	{.name = "kubeconfig",
		.kind = FLAG_STRING,
		SETTING(kubeconfig),
		.value_name = "FILE",
		.help = "how to reach the API server (default: the pod's own service account)"},
	{.name = "metrics",
		.kind = FLAG_CHOICE,
		SETTING(metrics),
		.default_text = "summary",
		.choices = metrics_names,
		.help = "series per container: at most 6, or all"},
	{.name = "interval",
		.kind = FLAG_DURATION,
		SETTING(interval_ns),
		.default_text = "10s",
		.value_name = "DURATION",
		.min = 100 * INT64_C(1000000),
		.max = 60 * NSEC_PER_SEC,
		.help = "time between two readings of a container"},
	{.name = "checkpoint-interval",
		.kind = FLAG_DURATION,
		SETTING(checkpoint_interval_ns),
		.default_text = "5m",
		.value_name = "DURATION",
		.min = NSEC_PER_SEC,
		.max = DAY_NS,
		.help = "time between two saves of the history"},
	{.name = "publish-interval",
		.kind = FLAG_DURATION,
		SETTING(publish_interval_ns),
		.default_text = "15m",
		.value_name = "DURATION",
		.min = NSEC_PER_SEC,
		.max = DAY_NS,
		.help = "shortest time between two ordinary patches of the Node"},
	{.name = "first-publish-spread",
		.kind = FLAG_DURATION,
		SETTING(first_publish_spread_ns),
		.default_text = "60s",
		.value_name = "DURATION",
		.min = 0,
		.max = DAY_NS,
		.help = "first values wait up to so long, at random, so that a fleet does not "
			"write at once"},
	{.name = "start-spread",
		.kind = FLAG_DURATION,
		SETTING(start_spread_ns),
		.default_text = "5s",
		.value_name = "DURATION",
		.min = 0,
		.max = DAY_NS,
		.help = "the first requests, for pods and for the own Node, wait up to so long, at "
			"random"},
	{.name = "stale-after",
		.kind = FLAG_DURATION,
		SETTING(stale_after_ns),
		.default_text = "24h",
		.value_name = "DURATION",
		.min = NSEC_PER_SEC,
		.max = 365 * DAY_NS,
		.help = "annotations of a DaemonSet that left this node are removed after so long"},
	COMMON_FLAGS(struct agent_settings, common),
	{0},
};

static bool one_of(const char *value, const char *const *words)
{
	if (str_starts(str_of(value), STR("file:")) && value[strlen("file:")])
		return true;
	for (; *words; words++) {
		if (!strcmp(value, *words))
			return true;
	}
	return false;
}

/* What no single flag can check. */
static int check_settings(const struct agent_settings *s, struct err *e)
{
	static const char *const sources[] = {"api", NULL}, *const sinks[] = {"api", "none", NULL};
	struct listen_address address;
	struct err why;

	if (!one_of(s->pod_source, sources))
		return err_set(
			e, EINVAL, "--pod-source=%.80s: accepted: api, file:PATH", s->pod_source);
	if (!one_of(s->publish, sinks))
		return err_set(
			e, EINVAL, "--publish=%.80s: accepted: api, none, file:PATH", s->publish);
	bool needs_name = !strcmp(s->pod_source, "api") || strcmp(s->publish, "none") != 0;
	if (needs_name && (!s->node_name || !s->node_name[0]))
		return err_set(e, EINVAL,
			"--node-name (or PERNODE_NODE_NAME) is needed: the name of this machine's "
			"Node");
	if (s->node_name && !field_is_text(str_of(s->node_name), FIELD_NAME))
		return err_set(e, EINVAL,
			"--node-name=%.80s: expected the name of a Node: letters, digits, '-', '.' "
			"and '_'",
			s->node_name);
	if (s->node_name && strlen(s->node_name) >= POD_NAME_MAX)
		return err_set(e, EINVAL, "--node-name=%.80s…: longer than %u bytes", s->node_name,
			POD_NAME_MAX - 1);
	if (listen_address_parse(str_of(s->listen), &address, &why) < 0)
		return err_set(e, EINVAL, "--listen: %s", why.text);
	return 0;
}

int verb_run(int argc, char **argv)
{
	static const struct flag *const tables[] = {run_flags, knobs_flags, NULL};
	static struct agent agent; /* tens of kilobytes: not for the stack */
	struct agent_settings settings = {.node_name = NULL};
	struct flag_set set = {.verb = "run",
		.summary = "Measures the DaemonSet pods of this node and publishes what each of "
			   "their containers needs here.",
		.example = "pernode-agent run --node-name=worker-1 "
			   "--publish=file:/tmp/patches.jsonl --kubeconfig=$HOME/.kube/config",
		.tables = tables,
		.settings = &settings};
	struct err e = {""};
	int first, status;

	knobs_unset(&settings.knobs);
	if (!options_read(&set, &settings.common, argc, argv, &first, &status))
		return status;
	if (knobs_resolve(&settings.knobs, &e) < 0 || check_settings(&settings, &e) < 0) {
		fprintf(stderr, "pernode-agent run: %s\n", e.text);
		return EXIT_USAGE;
	}
	int r = agent_init(&agent, &settings, &set, &clock_system, &e);
	if (r == 0)
		agent_run(&agent);
	else
		log_error("cannot start: %s", err_text(&e, r));
	agent_finish(&agent);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
