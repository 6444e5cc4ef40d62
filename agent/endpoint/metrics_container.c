/* SPDX-License-Identifier: Apache-2.0 */
/* The families about containers. A summary has METRICS_SUMMARY_SERIES series of each: what it uses,
 * what it should ask for, and the two ways in which it suffers. */
#include <math.h>

#include "agent/endpoint/endpoint_write.h"
#include "agent/endpoint/metrics_private.h"
#include "agent/sample/container.h"
#include "rules/coverage.h"
#include "rules/publish.h"

static const struct container *measured(struct metrics *m, const struct workload *w)
{
	struct container_entry entry;

	return view_find(metrics_view(m), w, &entry) ? entry.measured : NULL;
}

/* Millicores as cores, bytes as bytes. */
static double base_unit(enum resource r, double amount)
{
	return r == RESOURCE_CPU ? amount / 1000 : amount;
}

static double amount_of(const struct amounts *a, enum resource r)
{
	return a->known[r] ? base_unit(r, (double)a->value[r]) : (double)NAN;
}

/* The estimate walks two histograms, and a scrape asks for six numbers of it: a few microseconds
 * each time. */
static double estimated(struct metrics *m, const struct workload *w, enum bound b, enum resource r)
{
	struct recommendation rec;

	workload_estimate(w, endpoint_now(metrics_view(m)), &rec, NULL);
	return amount_of(&rec.amounts[b], r);
}

static void cpu_usage(struct metrics *m, const struct workload *w)
{
	const struct container *c = measured(m, w);

	if (c && c->millicores_known)
		metric_put_workload(m, w, NULL, NULL, c->millicores / 1000);
}

static void memory_usage(struct metrics *m, const struct workload *w)
{
	const struct container *c = measured(m, w);

	if (c && c->working_set_known)
		metric_put_workload(m, w, NULL, NULL, (double)c->working_set_bytes);
}

#define ESTIMATE(function, bound, resource)                                              \
	static void function(struct metrics *m, const struct workload *w)                \
	{                                                                                \
		metric_put_workload(m, w, NULL, NULL, estimated(m, w, bound, resource)); \
	}
ESTIMATE(target_cpu, BOUND_TARGET, RESOURCE_CPU)
ESTIMATE(target_memory, BOUND_TARGET, RESOURCE_MEMORY)
ESTIMATE(lower_cpu, BOUND_LOWER, RESOURCE_CPU)
ESTIMATE(lower_memory, BOUND_LOWER, RESOURCE_MEMORY)
ESTIMATE(upper_cpu, BOUND_UPPER, RESOURCE_CPU)
ESTIMATE(upper_memory, BOUND_UPPER, RESOURCE_MEMORY)

static void oom_kills(struct metrics *m, const struct workload *w)
{
	metric_put_workload(m, w, NULL, NULL, (double)w->usage.oom_kills);
}

static void throttled(struct metrics *m, const struct workload *w)
{
	metric_put_workload(m, w, NULL, NULL, (double)w->usage.throttled_minutes * 60);
}

static void request_cpu(struct metrics *m, const struct workload *w)
{
	if (w->request_millicores >= 0)
		metric_put_workload(m, w, NULL, NULL, (double)w->request_millicores / 1000);
}

static void request_memory(struct metrics *m, const struct workload *w)
{
	if (w->request_bytes >= 0)
		metric_put_workload(m, w, NULL, NULL, (double)w->request_bytes);
}

static void limit_cpu(struct metrics *m, const struct workload *w)
{
	const struct container *c = measured(m, w);

	if (c && c->limits_usec && c->limits.cpu_max_outcome == CG_OK &&
		c->limits.cpu_max_millicores != CG_MAX)
		metric_put_workload(m, w, NULL, NULL, (double)c->limits.cpu_max_millicores / 1000);
}

static void limit_memory(struct metrics *m, const struct workload *w)
{
	const struct container *c = measured(m, w);

	if (c && c->limits_usec && c->limits.memory_max_outcome == CG_OK &&
		c->limits.memory_max_bytes != CG_MAX)
		metric_put_workload(m, w, NULL, NULL, (double)c->limits.memory_max_bytes);
}

static void published_cpu(struct metrics *m, const struct workload *w)
{
	if (w->publish.at != TIME_NONE)
		metric_put_workload(m, w, NULL, NULL,
			amount_of(&w->publish.published.amounts[BOUND_TARGET], RESOURCE_CPU));
}

static void published_memory(struct metrics *m, const struct workload *w)
{
	if (w->publish.at != TIME_NONE)
		metric_put_workload(m, w, NULL, NULL,
			amount_of(&w->publish.published.amounts[BOUND_TARGET], RESOURCE_MEMORY));
}

static void published_at(struct metrics *m, const struct workload *w)
{
	if (w->publish.at != TIME_NONE)
		metric_put_workload(m, w, NULL, NULL, (double)w->publish.at / (double)NSEC_PER_SEC);
}

static void samples(struct metrics *m, const struct workload *w)
{
	metric_put_workload(m, w, "resource", "cpu", (double)w->usage.cpu_samples);
	metric_put_workload(m, w, "resource", "memory", (double)w->usage.memory_samples);
}

static void coverage_target(struct metrics *m, const struct workload *w)
{
	for (enum resource r = 0; r < RESOURCES; r++)
		metric_put_workload(m, w, "resource", resource_name(r),
			coverage_share(&w->coverage, COVERAGE_TARGET, r));
}

static void coverage_request(struct metrics *m, const struct workload *w)
{
	for (enum resource r = 0; r < RESOURCES; r++)
		metric_put_workload(m, w, "resource", resource_name(r),
			coverage_share(&w->coverage, COVERAGE_REQUEST, r));
}

static void above_target(struct metrics *m, const struct workload *w)
{
	for (enum resource r = 0; r < RESOURCES; r++)
		metric_put_workload(m, w, "resource", resource_name(r),
			coverage_above_seconds(&w->coverage, COVERAGE_TARGET, r));
}

static void above_request(struct metrics *m, const struct workload *w)
{
	for (enum resource r = 0; r < RESOURCES; r++)
		metric_put_workload(m, w, "resource", resource_name(r),
			coverage_above_seconds(&w->coverage, COVERAGE_REQUEST, r));
}

static void readings_refused(struct metrics *m, const struct workload *w)
{
	const struct container *c = measured(m, w);

	if (!c)
		return;
	metric_put_workload(m, w, "reason", "counter-backwards", (double)c->backwards);
	metric_put_workload(m, w, "reason", "more-cpu-than-there-is", (double)c->impossible);
	metric_put_workload(m, w, "reason", "unreadable-file", (double)c->failed);
}

#define KEY "namespace, daemonset, container"

const struct metric_family metrics_of_containers[] = {
	{"container_cpu_usage_cores", METRIC_GAUGE, "cores", KEY, false,
		"CPU used over the last interval.", NULL, cpu_usage},
	{"container_memory_working_set_bytes", METRIC_GAUGE, "bytes", KEY, false,
		"Memory in use, without page cache that can be given back at once.", NULL,
		memory_usage},
	{"container_target_cpu_cores", METRIC_GAUGE, "cores", KEY, false,
		"CPU that the container should request on this node.", NULL, target_cpu},
	{"container_target_memory_bytes", METRIC_GAUGE, "bytes", KEY, false,
		"Memory that the container should request on this node.", NULL, target_memory},
	{"container_oom_kills", METRIC_COUNTER, "", KEY, false,
		"OOM kills since the history began.", NULL, oom_kills},
	{"container_throttled_seconds", METRIC_COUNTER, "seconds", KEY, false,
		"Time in minutes of which at least 5 % of the CPU periods were throttled.", NULL,
		throttled},
	{"container_lower_bound_cpu_cores", METRIC_GAUGE, "cores", KEY, true,
		"A CPU request below this is too small.", NULL, lower_cpu},
	{"container_lower_bound_memory_bytes", METRIC_GAUGE, "bytes", KEY, true,
		"A memory request below this is too small.", NULL, lower_memory},
	{"container_upper_bound_cpu_cores", METRIC_GAUGE, "cores", KEY, true,
		"A CPU request above this is a waste.", NULL, upper_cpu},
	{"container_upper_bound_memory_bytes", METRIC_GAUGE, "bytes", KEY, true,
		"A memory request above this is a waste.", NULL, upper_memory},
	{"container_request_cpu_cores", METRIC_GAUGE, "cores", KEY, true,
		"CPU request of the pod that is here.", NULL, request_cpu},
	{"container_request_memory_bytes", METRIC_GAUGE, "bytes", KEY, true,
		"Memory request of the pod that is here.", NULL, request_memory},
	{"container_limit_cpu_cores", METRIC_GAUGE, "cores", KEY, true,
		"CPU quota that the kernel enforces; none without one.", NULL, limit_cpu},
	{"container_limit_memory_bytes", METRIC_GAUGE, "bytes", KEY, true,
		"Memory limit that the kernel enforces, the pod's included; none without one.",
		NULL, limit_memory},
	{"container_published_cpu_cores", METRIC_GAUGE, "cores", KEY, true,
		"CPU target that is on the Node.", NULL, published_cpu},
	{"container_published_memory_bytes", METRIC_GAUGE, "bytes", KEY, true,
		"Memory target that is on the Node.", NULL, published_memory},
	{"container_published_timestamp_seconds", METRIC_GAUGE, "seconds", KEY, true,
		"When that was published, Unix time.", NULL, published_at},
	{"container_samples", METRIC_COUNTER, "", KEY ", resource", true,
		"Samples in the history: CPU one per minute, memory one per reading.", NULL,
		samples},
	{"container_target_coverage_ratio", METRIC_GAUGE, "ratio", KEY ", resource", true,
		"Share of the time in which usage was within the published target.", NULL,
		coverage_target},
	{"container_request_coverage_ratio", METRIC_GAUGE, "ratio", KEY ", resource", true,
		"Share of the time in which usage was within the pod's request.", NULL,
		coverage_request},
	{"container_above_target_seconds", METRIC_COUNTER, "seconds", KEY ", resource", true,
		"Time with usage above the published target.", NULL, above_target},
	{"container_above_request_seconds", METRIC_COUNTER, "seconds", KEY ", resource", true,
		"Time with usage above the pod's request.", NULL, above_request},
	{"container_readings_refused", METRIC_COUNTER, "", KEY ", reason", true,
		"Readings that were not counted, of the container that runs now.", NULL,
		readings_refused},
	{.name = NULL},
};

const struct metric_family *const metric_tables[] = {
	metrics_of_agent, metrics_of_publisher, metrics_of_kube, metrics_of_containers, NULL};
