/* SPDX-License-Identifier: Apache-2.0 */
/* The families about the API server: the watch of this node's pods, and the client's calls. */
#include "agent/endpoint/metrics_private.h"
#include "net/kube/client.h"
#include "net/kube/reflector.h"

static const struct kube_reflector_stats *watch(struct metrics *m)
{
	const struct kube_reflector *r = metrics_view(m)->reflector;

	return r ? kube_reflector_stats(r) : NULL;
}

static const struct kube_client_stats *client(struct metrics *m)
{
	const struct kube_client *c = metrics_view(m)->client;

	return c ? kube_client_stats(c) : NULL;
}

static void synced(struct metrics *m)
{
	if (watch(m))
		metric_put(m, watch(m)->synced);
}

static void connected(struct metrics *m)
{
	if (watch(m))
		metric_put(m, watch(m)->connected);
}

static void silence(struct metrics *m)
{
	uint64_t now = clock_mono_usec(metrics_view(m)->clock);

	if (watch(m) && watch(m)->heard_mono_usec && now >= watch(m)->heard_mono_usec)
		metric_put(m, (double)(now - watch(m)->heard_mono_usec) / USEC_PER_SEC);
}

static void requests(struct metrics *m)
{
	if (!watch(m))
		return;
	metric_put1(m, "verb", "list", (double)watch(m)->lists);
	metric_put1(m, "verb", "watch", (double)watch(m)->watches);
}

static void pictures(struct metrics *m)
{
	if (!watch(m))
		return;
	metric_put1(m, "step", "begun", (double)watch(m)->pictures);
	metric_put1(m, "step", "completed", (double)watch(m)->syncs);
}

static void objects(struct metrics *m)
{
	if (!watch(m))
		return;
	metric_put1(m, "type", "object", (double)watch(m)->events);
	metric_put1(m, "type", "bookmark", (double)watch(m)->bookmarks);
}

static void skipped(struct metrics *m)
{
	for (enum kube_skip s = 0; watch(m) && s < KUBE_SKIP_COUNT; s++)
		metric_put1(m, "reason", kube_skip_name(s), (double)watch(m)->skipped[s]);
}

static void retries(struct metrics *m)
{
	for (enum kube_trouble t = KUBE_TROUBLE_NONE + 1; watch(m) && t < KUBE_TROUBLE_COUNT; t++)
		metric_put1(m, "reason", kube_trouble_name(t), (double)watch(m)->troubles[t]);
}

static void calls(struct metrics *m)
{
	if (client(m))
		metric_put(m, (double)client(m)->calls);
}

static void call_errors(struct metrics *m)
{
	if (!client(m))
		return;
	metric_put1(m, "reason", "no-answer", (double)client(m)->errors);
	metric_put1(m, "reason", "token-unreadable", (double)client(m)->token_reads_failed);
}

static void received(struct metrics *m)
{
	if (client(m))
		metric_put(m, (double)client(m)->received_bytes);
}

const struct metric_family metrics_of_kube[] = {
	{"watch_synced", METRIC_GAUGE, "", "", false,
		"1 when the pods of this node are all known, 0 before and while that is being "
		"rebuilt.",
		synced, NULL},
	{"watch_connected", METRIC_GAUGE, "", "", false,
		"1 while the watch of this node's pods is open.", connected, NULL},
	{"watch_silence_seconds", METRIC_GAUGE, "seconds", "", false,
		"Since the API server's last byte on the watch; a bookmark comes about every "
		"minute.",
		silence, NULL},
	{"watch_requests", METRIC_COUNTER, "", "verb", false, "Requests of the watch.", requests,
		NULL},
	{"watch_pictures", METRIC_COUNTER, "", "step", false, "Full pictures of this node's pods.",
		pictures, NULL},
	{"watch_events", METRIC_COUNTER, "", "type", false, "What the watch delivered.", objects,
		NULL},
	{"watch_skipped", METRIC_COUNTER, "", "reason", false, "Pod objects that were left out.",
		skipped, NULL},
	{"watch_retries", METRIC_COUNTER, "", "reason", false,
		"Requests of the watch that ended in trouble and were made again after a wait.",
		retries, NULL},
	{"api_calls", METRIC_COUNTER, "", "", false, "Calls to the API server, the watch included.",
		calls, NULL},
	{"api_errors", METRIC_COUNTER, "", "reason", false,
		"Calls that ended without an answer, and tokens that could not be read.",
		call_errors, NULL},
	{"api_received_bytes", METRIC_COUNTER, "bytes", "", false,
		"Bytes received from the API server.", received, NULL},
	{.name = NULL},
};
