/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "version.h"

#define EXPIRE_INTERVAL_USEC USEC_PER_HOUR
#define SAVE_RETRY_USEC USEC_PER_MINUTE
#define FILE_SCHEME "file:"

/* ---- state on disk ---- */

static struct checkpoint_identity identity_of(const struct agent *a)
{
	/* Before the Node was read, whose state it was is still whose it is. */
	const char *uid = a->publisher ? publisher_node_uid(a->publisher) : "";
	const char *machine = a->publisher ? publisher_machine(a->publisher) : "";

	return (struct checkpoint_identity){.node_uid = str_of(uid[0] ? uid : a->saved.node_uid),
		.machine = str_of(machine[0] ? machine : a->saved.machine)};
}

static void save(struct agent *a)
{
	struct checkpoint_identity id = identity_of(a);
	bool had_trouble = a->store.trouble.text[0] != '\0';

	int r = store_save(
		&a->store, &id, clock_wall_usec(a->clock) * NSEC_PER_USEC, saved_write, &a->saved);
	if (r < 0)
		log_warn("%s; history is kept in memory only", err_text(&a->store.trouble, r));
	else if (had_trouble)
		log_info("state is saved again");
}

static void on_save(void *arg)
{
	struct agent *a = arg;

	save(a);
	uint64_t interval = (uint64_t)(a->settings->checkpoint_interval_ns / NSEC_PER_USEC);
	loop_timer_set(
		&a->save, a->store.trouble.text[0] ? MIN(interval, SAVE_RETRY_USEC) : interval);
}

static void on_expire(void *arg)
{
	struct agent *a = arg;
	unsigned int n = workloads_expire(&a->workloads, clock_wall_usec(a->clock) * NSEC_PER_USEC);

	if (n)
		log_info("%u histories were dropped: no pod of theirs was here for long", n);
	loop_timer_set(&a->expire, EXPIRE_INTERVAL_USEC);
}

static int start_tracker(struct agent *a, int64_t since_ns, struct err *e);

static int on_load(void *arg, const struct checkpoint *c)
{
	struct agent *a = arg;

	int r = saved_read_workloads(&a->saved, c);
	if (r == 0)
		r = start_tracker(a, c->saved_at_ns, NULL);
	if (r == 0)
		r = saved_read_pods(&a->saved, c);
	return r;
}

static void on_told(void *arg, const char *text)
{
	(void)arg;
	log_warn("%s", text);
}

static int load(struct agent *a, struct err *e)
{
	/* Whose node this is, is not known before the API server was asked; on_identified looks at
	 * that. */
	struct checkpoint_identity anyone = {{"", 0}, {"", 0}};

	int r = store_open(&a->store, a->settings->state_dir);
	if (r < 0)
		log_warn("%s; running without it: history will not survive a restart",
			a->store.trouble.text);
	a->saved.workloads = &a->workloads;
	a->saved.tracker = &a->tracker;
	r = store_load(&a->store, &anyone, on_load, a, on_told);
	if (r < 0)
		return err_set(e, -r, "state in %s: %s", a->settings->state_dir, strerror(-r));
	a->restored = r == 1;
	if (!a->tracking)
		return start_tracker(a, clock_wall_usec(a->clock) * NSEC_PER_USEC, e);
	log_info("going on with %u workloads and %u pods of %s/%s", a->saved.n_workloads,
		a->saved.n_pods, a->store.path, a->store.loaded);
	return 0;
}

/* ---- what the parts tell each other ---- */

static void on_urgent(void *arg, struct workload *w)
{
	struct agent *a = arg;

	(void)w;
	if (a->publisher)
		publisher_poke(a->publisher);
}

static void on_synced(void *arg)
{
	struct agent *a = arg;

	if (a->publisher)
		publisher_synced(a->publisher);
}

/* Another machine under the same name: nothing that was learned is of this one. */
static void forget_everything(struct agent *a)
{
	struct event event = EVENT(EVENT_KIND_NODE, clock_wall_usec(a->clock) * NSEC_PER_USEC);

	event.detail = "foreign-state";
	event.text = STR("the state on disk was of another node or machine, and was dropped");
	events_add(&a->events, &event);
	log_warn("the state in %s is of another node or machine; starting afresh", a->store.path);
	for (struct workload *w = a->workloads.first, *next; w; w = next) {
		next = w->next;
		if (!w->here) {
			workloads_remove(&a->workloads, w);
			continue;
		}
		usage_init(&w->usage, &a->workloads.model);
		coverage_init(&w->coverage);
		publish_item_init(&w->publish);
		w->seeded = false;
	}
}

static bool differs(const char *before, const char *now)
{
	return before[0] && now[0] && strcmp(before, now) != 0;
}

static void on_identified(void *arg, const char *node_uid, const char *machine)
{
	struct agent *a = arg;

	if (differs(a->saved.node_uid, node_uid) || differs(a->saved.machine, machine))
		forget_everything(a);
	(void)str_copy(a->saved.node_uid, sizeof(a->saved.node_uid), str_of(node_uid));
	(void)str_copy(a->saved.machine, sizeof(a->saved.machine), str_of(machine));
	a->view.node_uid = a->saved.node_uid;
}

/* A value of ours on the Node without a history: a start that is soon outweighed by what is seen.
 */
static struct workload *on_found(
	void *arg, const struct annotation_names *names, const struct annotation_value *value)
{
	struct agent *a = arg;
	double margin = 1 + a->settings->knobs.margin_fraction;
	struct workload *w;

	if (workloads_get(&a->workloads, names->namespace, names->daemonset, names->container, &w,
		    NULL) < 0)
		return NULL;
	if (usage_any(&w->usage))
		return w;
	if (value->target.cpu_millicores >= 0)
		(void)usage_add_cpu(
			&w->usage, value->at_ns, (double)value->target.cpu_millicores / margin, 1);
	if (value->target.memory_bytes >= 0)
		(void)usage_add_memory(&w->usage, value->at_ns,
			(int64_t)((double)value->target.memory_bytes / margin));
	w->seeded = true;
	if (!w->here)
		w->seen_at_ns = value->at_ns;
	return w;
}

static void on_published(void *arg, const struct workload *w)
{
	struct agent *a = arg;
	struct event event = EVENT(EVENT_KIND_PUBLISHED, w->publish.at);

	event.namespace = str_of(w->namespace);
	event.daemonset = str_of(w->daemonset);
	event.container = str_of(w->container);
	event.pod = str_of(w->pod);
	event.detail = publish_reason_name(w->publish.reason);
	event.target = w->publish.published.amounts[BOUND_TARGET];
	events_add(&a->events, &event);
}

static void on_removed(void *arg, struct str key)
{
	struct agent *a = arg;
	struct event event = EVENT(EVENT_KIND_REMOVED, clock_wall_usec(a->clock) * NSEC_PER_USEC);

	event.text = key;
	events_add(&a->events, &event);
	log_info("annotation %.*s was removed: its DaemonSet is not here any more", STR_ARG(key));
}

static void each_container(
	void *arg, int (*fn)(void *fn_arg, const struct container_entry *entry), void *fn_arg)
{
	tracker_each(&((struct agent *)arg)->tracker, fn, fn_arg);
}

/* ---- start ---- */

static int start_tracker(struct agent *a, int64_t since_ns, struct err *e)
{
	const struct agent_settings *s = a->settings;
	struct tracker_options options = {
		.interval_usec = (uint64_t)(s->interval_ns / NSEC_PER_USEC),
		.since_ns = since_ns,
		.unsupported = a->unsupported.text[0] ? a->unsupported.text : NULL,
		.urgent = on_urgent,
		.synced = on_synced,
		.arg = a};

	int r = tracker_init(&a->tracker, &a->loop, a->clock, a->root.fd, &a->workloads, &a->events,
		&options, e);
	a->tracking = r == 0;
	return r;
}

/* A node that cannot be measured is a state that is told, not a reason to end. */
static void open_cgroups(struct agent *a)
{
	int r = cgroot_open(&a->root, a->settings->cgroup_root, &a->unsupported);

	if (r == 0)
		r = cgroot_check(&a->root, &a->unsupported);
	else
		a->root.fd = -1;
	if (r < 0 && !a->unsupported.text[0])
		(void)err_set(&a->unsupported, -r, "cgroup root: %s", strerror(-r));
	if (r < 0)
		log_error("this node cannot be measured: %s", a->unsupported.text);
	else
		a->unsupported = (struct err){""};
}

static void read_boot_id(struct agent *a)
{
	_cleanup_buf_ struct buf b = BUF_INIT(128);

	if (file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &b, NULL) == 0)
		(void)str_copy(a->saved.boot_id, sizeof(a->saved.boot_id), str_trim(buf_str(&b)));
}

static int start_client(struct agent *a, struct err *e)
{
	const struct agent_settings *s = a->settings;
	struct kube_config config;
	struct kube_client_options options = {
		.user_agent = "pernode-agent/" PERNODE_VERSION " (" PERNODE_COMMIT ")",
		.clock = a->clock};

	if (strcmp(s->pod_source, "api") != 0 && strcmp(s->publish, "api") != 0)
		return 0;
	int r = s->kubeconfig && s->kubeconfig[0]
			? kube_config_from_file(&config, s->kubeconfig, e)
			: kube_config_from_pod(&config, environ, KUBE_SERVICE_ACCOUNT_DIR, e);
	if (r < 0)
		return r;
	r = kube_client_create(&a->client, &a->loop, &config, &options, e);
	if (r < 0)
		kube_config_finish(&config);
	return r;
}

static int start_podsource(struct agent *a, struct err *e)
{
	const struct agent_settings *s = a->settings;

	if (!strcmp(s->pod_source, "api"))
		return podsource_create_api(&a->podsource, &a->loop, a->client, s->node_name,
			(uint64_t)(s->start_spread_ns / NSEC_PER_USEC), &a->tracker, e);
	return podsource_create_file(&a->podsource, &a->loop, s->pod_source + strlen(FILE_SCHEME),
		s->node_name, &a->tracker, e);
}

static int start_publisher(struct agent *a, struct err *e)
{
	const struct agent_settings *s = a->settings;
	bool to_file = str_starts(str_of(s->publish), STR(FILE_SCHEME));
	struct publisher_options options = {.node_name = s->node_name,
		.file = to_file ? s->publish + strlen(FILE_SCHEME) : NULL,
		.version = PERNODE_VERSION,
		.boot_id = a->saved.boot_id,
		.clock = a->clock,
		.pace = &a->pace,
		.stale_after_usec = (uint64_t)(s->stale_after_ns / NSEC_PER_USEC),
		.start_spread_usec = (uint64_t)(s->start_spread_ns / NSEC_PER_USEC),
		.hooks = {.identified = on_identified,
			.found = on_found,
			.published = on_published,
			.removed = on_removed,
			.arg = a}};

	if (!strcmp(s->publish, "none"))
		return 0;
	a->pace = publish_pace_default;
	a->pace.interval_usec = (uint64_t)(s->publish_interval_ns / NSEC_PER_USEC);
	a->pace.first_spread_usec = (uint64_t)(s->first_publish_spread_ns / NSEC_PER_USEC);
	int r = publisher_create(
		&a->publisher, &a->loop, to_file ? NULL : a->client, &a->workloads, &options, e);
	if (r == 0 && a->unsupported.text[0])
		publisher_set_state(a->publisher, "unsupported", a->unsupported.text);
	return r;
}

static void fill_view(struct agent *a, const struct flag_set *flags)
{
	a->view = (struct agent_view){
		.node_name = a->settings->node_name ? a->settings->node_name : "",
		.node_uid = a->saved.node_uid,
		.state = a->unsupported.text[0] ? "unsupported" : "ok",
		.reason = a->unsupported.text,
		.clock = a->clock,
		.started_wall_usec = clock_wall_usec(a->clock),
		.started_mono_usec = clock_mono_usec(a->clock),
		.workloads = &a->workloads,
		.tracker = &a->tracker,
		.lag = &a->loop.lag,
		.events = &a->events,
		.flags = flags,
		.publisher = a->publisher,
		.client = a->client,
		.reflector = a->podsource ? podsource_reflector(a->podsource) : NULL,
		.store = &a->store,
		.each_container = each_container,
		.each_health = agent_each_health,
		.arg = a};
}

static int start_timers(struct agent *a)
{
	int r = loop_timer_init(&a->loop, &a->save, on_save, a);

	if (r == 0)
		r = loop_timer_init(&a->loop, &a->expire, on_expire, a);
	if (r < 0)
		return r;
	loop_timer_set(&a->save, (uint64_t)(a->settings->checkpoint_interval_ns / NSEC_PER_USEC));
	loop_timer_set(&a->expire, EXPIRE_INTERVAL_USEC);
	return 0;
}

int agent_init(struct agent *a, const struct agent_settings *settings, const struct flag_set *flags,
	const struct clock *clock, struct err *e)
{
	*a = (struct agent){
		.settings = settings, .clock = clock, .root = {.fd = -1}, .store = {.dirfd = -1}};
	workloads_init(&a->workloads, &settings->knobs);
	events_init(&a->events);
	int r = loop_init(&a->loop);
	if (r < 0)
		return err_set(e, -r, "event loop: %s", strerror(-r));
	read_boot_id(a);
	open_cgroups(a);
	r = load(a, e);
	if (r == 0)
		r = start_client(a, e);
	if (r == 0)
		r = start_publisher(a, e);
	if (r == 0)
		r = start_podsource(a, e);
	if (r == 0)
		r = start_timers(a);
	if (r < 0)
		return r;
	fill_view(a, flags);
	endpoint_init(&a->endpoint, &a->view, (enum metrics_detail)settings->metrics);
	r = endpoint_listen(&a->endpoint, &a->loop, settings->listen, e);
	if (r == 0)
		a->view.server = a->endpoint.server;
	return r;
}

void agent_run(struct agent *a)
{
	log_info("pernode-agent %s on node %s: profile %s, a sample every %.0f s", PERNODE_VERSION,
		a->view.node_name, a->settings->knobs.profile == PROFILE_VPA ? "vpa" : "fine",
		(double)a->settings->interval_ns / (double)NSEC_PER_SEC);
	(void)loop_run(&a->loop);
	log_info("ending");
}

void agent_finish(struct agent *a)
{
	endpoint_finish(&a->endpoint);
	podsource_destroy(a->podsource);
	a->podsource = NULL;
	if (a->tracking) {
		/* What the running minute has so far belongs to what is saved. */
		sampler_close_windows(&a->tracker.sampler);
		if (a->save.open)
			save(a);
	}
	publisher_destroy(a->publisher);
	kube_client_destroy(a->client);
	if (a->tracking)
		tracker_finish(&a->tracker);
	store_finish(&a->store);
	loop_finish(&a->loop);
	cgroot_finish(&a->root);
	events_finish(&a->events);
	workloads_finish(&a->workloads);
}
