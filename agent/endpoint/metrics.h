/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's numbers for Prometheus. There is no registry: each family has a function that looks
 * the numbers up where they are kept, and a scrape is made piece by piece. docs/metrics.md lists
 * the families; a test compares. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/endpoint/view.h"
#include "net/http/server.h"

enum metrics_detail { METRICS_SUMMARY, METRICS_FULL };
/* Series of one container in a summary. */
#define METRICS_SUMMARY_SERIES 6U

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_INFO };

struct metrics; /* one scrape under way */
struct workload;

/* Either agent (called once) or workload (called for each) is set. They put what is known and
 * nothing else. */
struct metric_family {
	const char *name; /* without prefix, and without a counter's _total or an info's _info */
	enum metric_type type;
	const char *unit;   /* "seconds", "bytes", "cores", "ratio", or "" */
	const char *labels; /* for people: "namespace, daemonset, container", or "" */
	bool full;          /* only with --metrics=full */
	const char *help;
	void (*agent)(struct metrics *m);
	void (*workload)(struct metrics *m, const struct workload *w);
};
extern const struct metric_family
	*const metric_tables[]; /* NULL at the end; each table ends with a NULL name */
#define METRICS_PREFIX "pernode_agent_"

/* Answers with all families, as OpenMetrics where the header Accept prefers that, else as
 * Prometheus text. -ENOMEM. */
int metrics_start(const struct agent_view *view, enum metrics_detail detail, const char *accept,
	struct http_response *response);
/* Pure: whether Accept prefers OpenMetrics. */
bool metrics_wants_openmetrics(const char *accept);

/* For the families. A value that is not a number is left out. */
void metric_put(struct metrics *m, double value);
void metric_put1(struct metrics *m, const char *label, const char *label_value, double value);
void metric_put2(struct metrics *m, const char *label, const char *label_value, const char *label2,
	const char *label2_value, double value);
/* With the labels of the workload, and one more unless label is NULL. */
void metric_put_workload(struct metrics *m, const struct workload *w, const char *label,
	const char *label_value, double value);
const struct agent_view *metrics_view(const struct metrics *m);
