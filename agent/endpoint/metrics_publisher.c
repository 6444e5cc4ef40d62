/* SPDX-License-Identifier: Apache-2.0 */
/* The families about what is told: patches of the own Node, how they ended, and what could not be
 * told. */
#include "agent/endpoint/metrics_private.h"
#include "agent/publish/publisher.h"

static const struct publisher_stats *stats(struct metrics *m)
{
	const struct publisher *p = metrics_view(m)->publisher;

	return p ? publisher_stats(p) : NULL;
}

static void put_outcomes(struct metrics *m, const uint64_t *n, enum publisher_outcome first)
{
	for (enum publisher_outcome o = first; o < PUBLISHER_OUTCOMES; o++)
		metric_put1(m, "reason", publisher_outcome_name(o), (double)n[o]);
}

static uint64_t sum(const uint64_t *n)
{
	uint64_t all = 0;

	for (enum publisher_outcome o = 0; o < PUBLISHER_OUTCOMES; o++)
		all += n[o];
	return all;
}

static void requests(struct metrics *m)
{
	const struct publisher_stats *s = stats(m);

	if (!s)
		return;
	metric_put1(m, "verb", "patch", (double)sum(s->patches));
	metric_put1(m, "verb", "get", (double)sum(s->reads));
}

static void patches_failed(struct metrics *m)
{
	const struct publisher_stats *s = stats(m);

	if (s)
		put_outcomes(m, s->patches, PUBLISHER_OK + 1);
}

static void reads_failed(struct metrics *m)
{
	const struct publisher_stats *s = stats(m);

	if (s)
		put_outcomes(m, s->reads, PUBLISHER_OK + 1);
}

static void published(struct metrics *m)
{
	const struct publisher_stats *s = stats(m);

	for (enum publish_reason r = 0; s && r < PUBLISH_REASONS; r++)
		metric_put1(m, "reason", publish_reason_name(r), (double)s->published[r]);
}

static void removed(struct metrics *m)
{
	const struct publisher_stats *s = stats(m);

	if (s)
		metric_put(m, (double)s->removed);
}

static void lost(struct metrics *m)
{
	const struct publisher_stats *s = stats(m);

	if (s)
		metric_put(m, (double)s->lost);
}

static void keys_refused(struct metrics *m)
{
	const struct publisher_stats *s = stats(m);

	if (!s)
		return;
	metric_put1(m, "reason", "server", (double)s->refused);
	metric_put1(m, "reason", "unreadable", (double)s->unreadable);
}

static void left_out(struct metrics *m)
{
	const struct publisher_stats *s = stats(m);

	if (s)
		metric_put(m, (double)s->left_out);
}

static void last_patch(struct metrics *m)
{
	const struct publisher_stats *s = stats(m);

	if (s && s->last_patch_wall_usec != INT64_MIN)
		metric_put(m, (double)s->last_patch_wall_usec / USEC_PER_SEC);
}

static void last_ok(struct metrics *m)
{
	const struct publisher_stats *s = stats(m);

	if (s && s->last_ok_wall_usec != INT64_MIN)
		metric_put(m, (double)s->last_ok_wall_usec / USEC_PER_SEC);
}

const struct metric_family metrics_of_publisher[] = {
	{"node_requests", METRIC_COUNTER, "", "verb", false,
		"Requests about the own Node that ended: patches, and looks at it.", requests,
		NULL},
	{"node_patches_failed", METRIC_COUNTER, "", "reason", false,
		"Patches of the own Node that were not taken.", patches_failed, NULL},
	{"node_reads_failed", METRIC_COUNTER, "", "reason", false,
		"Looks at the own Node that failed.", reads_failed, NULL},
	{"values_published", METRIC_COUNTER, "", "reason", false,
		"Recommendations that the server took, by why they were sent.", published, NULL},
	{"keys_removed", METRIC_COUNTER, "", "", false,
		"Annotations taken away because their DaemonSet left this node.", removed, NULL},
	{"values_lost", METRIC_COUNTER, "", "", false,
		"Annotations of ours found missing or changed, to be written again.", lost, NULL},
	{"keys_refused", METRIC_COUNTER, "", "reason", false,
		"Annotations that the server does not take, and values under our keys that are "
		"none.",
		keys_refused, NULL},
	{"workloads_left_out", METRIC_GAUGE, "", "", false,
		"Workloads for which the Node's annotations have no room.", left_out, NULL},
	{"last_patch_timestamp_seconds", METRIC_GAUGE, "seconds", "", false,
		"When the last patch was taken, Unix time.", last_patch, NULL},
	{"last_node_contact_timestamp_seconds", METRIC_GAUGE, "seconds", "", false,
		"When the last patch or look succeeded, Unix time.", last_ok, NULL},
	{.name = NULL},
};
