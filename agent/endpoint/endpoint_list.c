/* SPDX-License-Identifier: Apache-2.0 */
/* The long answers: /v1/recommendations, /v1/containers. */
#include <math.h>

#include "agent/endpoint/endpoint_private.h"
#include "agent/endpoint/endpoint_write.h"
#include "agent/sample/container.h"
#include "rules/coverage.h"
#include "rules/publish.h"

/* ---- /v1/recommendations ---- */

static void recommendations_first(struct endpoint_list *l)
{
	struct json_writer *w = &l->json;

	json_begin_object(w);
	json_key(w, "node");
	json_string(w, l->view->node_name);
	json_key(w, "profile");
	json_string(w, endpoint_profile_name(l->view->workloads->knobs.profile));
	json_key(w, "recommendations");
	json_begin_array(w);
}

static void end(struct endpoint_list *l)
{
	json_end_array(&l->json);
	endpoint_end(&l->json);
}

static void put_coverage(struct json_writer *w, const struct coverage *c, enum coverage_line line)
{
	json_begin_object(w);
	for (enum resource r = 0; r < RESOURCES; r++) {
		double share = coverage_share_rounded(c, line, r);

		if (isnan(share))
			continue;
		json_key(w, resource_name(r));
		json_double(w, share);
	}
	json_end_object(w);
}

const char *endpoint_workload_state(
	const struct agent_view *view, const struct workload *w, char reason[ENDPOINT_REASON_MAX])
{
	struct container_entry entry;
	bool named = view_find(view, w, &entry);

	reason[0] = 0;
	if (named &&
		(entry.state == CONTAINER_NOT_FOUND || entry.state == CONTAINER_NOT_MEASURABLE)) {
		(void)snprintf(reason, ENDPOINT_REASON_MAX, "%s", endpoint_why_not(&entry));
		return container_state_name(entry.state);
	}
	if (named && entry.state == CONTAINER_WAITING)
		(void)snprintf(reason, ENDPOINT_REASON_MAX, "%s", endpoint_why_not(&entry));
	else if (!w->here)
		(void)snprintf(reason, ENDPOINT_REASON_MAX, "no pod of it is on this node now");
	if (workload_ready(w)) {
		if (w->seeded && !estimate_ready(&w->usage) && !reason[0])
			(void)snprintf(reason, ENDPOINT_REASON_MAX,
				"known only from this Node's annotations; %lld of 2 CPU samples "
				"so far",
				(long long)w->usage.cpu_samples);
		return "ready";
	}
	if (!reason[0])
		(void)snprintf(reason, ENDPOINT_REASON_MAX, "%lld of 2 CPU samples so far",
			(long long)w->usage.cpu_samples);
	return "learning";
}

/* Members of what is on the Node: "published" and "publishedAt". */
void endpoint_published(struct json_writer *w, const struct publish_item *p)
{
	json_key(w, "published");
	if (p->at == TIME_NONE) {
		json_null(w);
	} else {
		json_begin_object(w);
		bounds_members(w, &p->published);
		json_key(w, "reason");
		json_string(w, publish_reason_name(p->reason));
		json_end_object(w);
	}
	json_key(w, "publishedAt");
	json_time(w, p->at);
}

static void recommendation_item(struct endpoint_list *l, const struct workload *work)
{
	struct json_writer *w = &l->json;
	struct recommendation r;
	char reason[ENDPOINT_REASON_MAX];
	const char *state = endpoint_workload_state(l->view, work, reason);

	workload_estimate(work, endpoint_now(l->view), &r, NULL);
	json_begin_object(w);
	endpoint_key(w, work->namespace, work->daemonset, work->container);
	endpoint_text(w, "pod", work->pod);
	bounds_members(w, &r);
	json_key(w, "samples");
	json_i64(w, work->usage.cpu_samples);
	json_key(w, "since");
	json_time(w, work->usage.cpu_first);
	json_key(w, "oomKills");
	json_i64(w, work->usage.oom_kills);
	json_key(w, "coverage");
	put_coverage(w, &work->coverage, COVERAGE_TARGET);
	json_key(w, "requestCoverage");
	put_coverage(w, &work->coverage, COVERAGE_REQUEST);
	json_key(w, "request");
	endpoint_request(w, work);
	endpoint_published(w, &work->publish);
	endpoint_text(w, "revision", work->revision);
	json_key(w, "state");
	json_string(w, state);
	endpoint_text(w, "reason", reason);
	json_end_object(w);
}

void endpoint_request(struct json_writer *w, const struct workload *work)
{
	const struct amounts request = {.value = {work->request_millicores, work->request_bytes},
		.known = {work->request_millicores >= 0, work->request_bytes >= 0}};

	amounts_object(w, &request);
}

/* A container that has no workload yet: there is nothing to recommend, but it is not kept quiet. */
static void recommendation_container(struct endpoint_list *l, const struct container_entry *entry)
{
	struct json_writer *w = &l->json;
	const struct recommendation nothing = {0};

	if (entry->state == CONTAINER_HELD ||
		workloads_find(l->view->workloads, str_of(entry->namespace),
			str_of(entry->daemonset), str_of(entry->container)))
		return;
	json_begin_object(w);
	endpoint_key(w, entry->namespace, entry->daemonset, entry->container);
	endpoint_text(w, "pod", entry->pod);
	bounds_members(w, &nothing);
	json_key(w, "samples");
	json_i64(w, 0);
	json_key(w, "published");
	json_null(w);
	json_key(w, "state");
	json_string(
		w, entry->state == CONTAINER_NOT_FOUND || entry->state == CONTAINER_NOT_MEASURABLE
			   ? container_state_name(entry->state)
			   : "learning");
	endpoint_text(w, "reason", endpoint_why_not(entry));
	json_end_object(w);
}

static const struct endpoint_list_ops recommendations_ops = {
	.first = recommendations_first,
	.workload = recommendation_item,
	.container = recommendation_container,
	.last = end,
};

int endpoint_recommendations(void *arg, const struct http_request *request,
	struct http_response *response, struct err *e)
{
	return endpoint_list_start(arg, &recommendations_ops, response);
}

/* ---- /v1/containers ---- */

static void containers_first(struct endpoint_list *l)
{
	struct json_writer *w = &l->json;

	json_begin_object(w);
	json_key(w, "node");
	json_string(w, l->view->node_name);
	json_key(w, "state");
	json_string(w, l->view->state);
	endpoint_text(w, "reason", l->view->reason);
	json_key(w, "containers");
	json_begin_array(w);
}

static double age_seconds(const struct agent_view *view, uint64_t mono_usec)
{
	uint64_t now = clock_mono_usec(view->clock);

	return now > mono_usec ? (double)(now - mono_usec) / USEC_PER_SEC : 0;
}

static void put_bytes(
	struct json_writer *w, const char *key, enum cg_outcome outcome, uint64_t bytes)
{
	if (outcome != CG_OK || bytes == CG_MAX)
		return;
	json_key(w, key);
	json_u64(w, bytes);
}

static void put_sample(
	struct json_writer *w, const struct agent_view *view, const struct container *c)
{
	uint64_t unreclaimable;

	json_key(w, "sample");
	if (!c->read_usec) {
		json_null(w);
		return;
	}
	json_begin_object(w);
	json_key(w, "age_seconds");
	json_double(w, age_seconds(view, c->read_usec));
	if (c->millicores_known) {
		json_key(w, "cpu_millicores");
		json_i64(w, llround(c->millicores));
	}
	if (c->working_set_known) {
		json_key(w, "memory_bytes");
		json_u64(w, c->working_set_bytes);
	}
	put_bytes(w, "memory_current_bytes", c->sample.current_outcome, c->sample.current_bytes);
	if (c->sample.stat_outcome == CG_OK &&
		memory_stat_unreclaimable(&c->sample.memory, 0, &unreclaimable)) {
		json_key(w, "memory_unreclaimable_bytes");
		json_u64(w, unreclaimable);
	}
	json_end_object(w);
}

static void put_limits(struct json_writer *w, const struct container *c)
{
	static const char *const levels[LEVELS] = {
		[LEVEL_SELF] = "container", [LEVEL_CHILD] = "child", [LEVEL_POD] = "pod"};
	const struct cgleaf_limits *x = &c->limits;

	json_key(w, "limits");
	json_begin_object(w);
	if (c->limits_usec && x->cpu_max_outcome == CG_OK && x->cpu_max_millicores != CG_MAX) {
		json_key(w, "cpu_millicores");
		json_u64(w, x->cpu_max_millicores);
		json_key(w, "quotaLevel");
		json_string(w, levels[x->quota_level]);
	}
	if (c->limits_usec)
		put_bytes(w, "memory_bytes", x->memory_max_outcome, x->memory_max_bytes);
	json_end_object(w);
	if (!c->limits_usec)
		return;
	put_bytes(w, "memory_peak_bytes", x->peak_outcome, x->peak_bytes);
	put_bytes(w, "swap_bytes", x->swap_outcome, x->swap_current_bytes);
}

static void put_psi_line(struct json_writer *w, const char *key, const struct psi_line *line)
{
	if (!line->seen)
		return;
	json_key(w, key);
	json_begin_object(w);
	json_key(w, "avg10_percent");
	json_double(w, line->avg10_centipercent / 100.0);
	json_key(w, "avg60_percent");
	json_double(w, line->avg60_centipercent / 100.0);
	json_key(w, "total_seconds");
	json_double(w, (double)line->total_usec / USEC_PER_SEC);
	json_end_object(w);
}

static void put_pressure(struct json_writer *w, const struct container *c)
{
	const struct cgleaf_limits *x = &c->limits;
	const struct {
		const char *key;
		enum cg_outcome outcome;
		const struct psi *psi;
	} all[] = {{"cpu", x->cpu_psi_outcome, &x->cpu_psi},
		{"memory", x->memory_psi_outcome, &x->memory_psi}};

	if (!c->limits_usec)
		return;
	json_key(w, "pressure");
	json_begin_object(w);
	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++) {
		if (all[i].outcome != CG_OK)
			continue;
		json_key(w, all[i].key);
		json_begin_object(w);
		put_psi_line(w, "some", &all[i].psi->some);
		put_psi_line(w, "full", &all[i].psi->full);
		json_end_object(w);
	}
	json_end_object(w);
}

static void put_throttling(struct json_writer *w, const struct container *c)
{
	const struct cpu_stat *s = &c->sample.cpu;

	if (isnan(c->throttled_fraction) && !(s->seen & CPU_NR_THROTTLED))
		return;
	json_key(w, "throttling");
	json_begin_object(w);
	if (!isnan(c->throttled_fraction)) {
		json_key(w, "last_minute_share");
		json_double(w, c->throttled_fraction);
	}
	if ((s->seen & CPU_THROTTLE_KEYS) == CPU_THROTTLE_KEYS) {
		json_key(w, "periods");
		json_u64(w, s->nr_periods);
		json_key(w, "throttled_periods");
		json_u64(w, s->nr_throttled);
		json_key(w, "throttled_seconds");
		json_double(w, (double)s->throttled_usec / USEC_PER_SEC);
	}
	json_end_object(w);
}

/* Which files could not be read, and how: only those. */
static void put_unread(struct json_writer *w, const struct container *c)
{
	const struct {
		const char *file;
		enum cg_outcome outcome;
	} files[] = {{"cpu.stat", c->sample.cpu_outcome},
		{"memory.current", c->sample.current_outcome},
		{"memory.stat", c->sample.stat_outcome},
		{"memory.max", c->limits.memory_max_outcome},
		{"cpu.max", c->limits.cpu_max_outcome}, {"memory.peak", c->limits.peak_outcome},
		{"memory.swap.current", c->limits.swap_outcome},
		{"cpu.pressure", c->limits.cpu_psi_outcome},
		{"memory.pressure", c->limits.memory_psi_outcome}};

	json_key(w, "unread");
	json_begin_object(w);
	for (unsigned int i = 0; i < ARRAY_SIZE(files); i++) {
		if (files[i].outcome == CG_OK || files[i].outcome == CG_NOT_READ)
			continue;
		json_key(w, files[i].file);
		json_string(w, cg_outcome_name(files[i].outcome));
	}
	json_end_object(w);
}

static void put_measured(
	struct json_writer *w, const struct agent_view *view, const struct container *c)
{
	const struct {
		const char *key;
		uint64_t n;
	} counts[] = {{"rounds", c->rounds}, {"backwards", c->backwards},
		{"impossible", c->impossible}, {"failed", c->failed}};

	put_sample(w, view, c);
	put_limits(w, c);
	put_throttling(w, c);
	put_pressure(w, c);
	put_unread(w, c);
	for (unsigned int i = 0; i < ARRAY_SIZE(counts); i++) {
		json_key(w, counts[i].key);
		json_u64(w, counts[i].n);
	}
	json_key(w, "filesHeld");
	json_bool(w, c->leaf.held);
	json_key(w, "everySecond");
	json_bool(w, c->fast);
}

static void container_item(struct endpoint_list *l, const struct container_entry *entry)
{
	struct json_writer *w = &l->json;

	json_begin_object(w);
	if (entry->container[0])
		endpoint_key(w, entry->namespace, entry->daemonset, entry->container);
	endpoint_text(w, "pod", entry->pod);
	endpoint_text(w, "podUID", entry->pod_uid);
	endpoint_text(w, "containerID", entry->container_id);
	endpoint_text(w, "cgroup", entry->cgroup);
	json_key(w, "state");
	json_string(w, container_state_name(entry->state));
	endpoint_text(w, "reason", endpoint_why_not(entry));
	if (entry->measured)
		put_measured(w, l->view, entry->measured);
	json_end_object(w);
}

static const struct endpoint_list_ops containers_ops = {
	.first = containers_first,
	.container = container_item,
	.last = end,
};

int endpoint_containers(void *arg, const struct http_request *request,
	struct http_response *response, struct err *e)
{
	return endpoint_list_start(arg, &containers_ops, response);
}
