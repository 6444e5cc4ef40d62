/* SPDX-License-Identifier: Apache-2.0 */
/* The verb remove-annotations: takes away what the agents published, when they are gone for good.
 * One picture of the Nodes, then one patch for each that carries keys of ours, one at a time: it is
 * in no hurry, and the API server has others to serve. */
#include <errno.h>
#include <string.h>

#include "agent/options.h"
#include "agent/verbs.h"
#include "base/log.h"
#include "net/kube/client.h"
#include "net/kube/reflector.h"
#include "proto/annotation.h"
#include "proto/json_write.h"
#include "proto/node.h"
#include "version.h"

#define PATCH_MAX_BYTES (512U << 10) /* twice what all annotations of an object may have */
#define ATTEMPTS_MAX 5U
#define RETRY_USEC USEC_PER_SEC /* times the attempt; the server's own word counts more */
#define TIMEOUT_MAX_NS (INT64_C(24) * 3600 * 1000000000)

struct settings {
	struct common_settings common;
	const char *kubeconfig;
	const char *node_name;
	int64_t timeout_ns;
	bool dry_run;
};

struct removal {
	char *node;
	char *patch;
	size_t n_keys;
};

struct remover {
	const struct settings *settings;
	struct loop loop;
	struct kube_client *client;
	struct kube_reflector *reflector;
	struct loop_timer deadline, again;
	struct node_reader *reader;

	/* Of the Node that is being read. */
	struct buf patch;
	struct json_writer writer;
	size_t n_keys;

	struct removal *removals;
	size_t n, capacity, next;
	unsigned int attempts;
	size_t nodes_seen, nodes_done, keys_done, failed;
	bool complete;
};

static void forget_removals(struct remover *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->removals[i].node);
		free(m->removals[i].patch);
	}
	m->n = m->nodes_seen = 0;
}

static void on_begin(void *arg)
{
	forget_removals(arg);
}

static void on_annotation(void *arg, struct str key, struct str value)
{
	struct remover *m = arg;

	json_key_str(&m->writer, key);
	json_null(&m->writer);
	m->n_keys++;
}

static void on_object_start(void *arg)
{
	struct remover *m = arg;

	node_reader_begin(m->reader);
	buf_clear(&m->patch);
	m->writer = JSON_WRITER(&m->patch);
	m->n_keys = 0;
	json_begin_object(&m->writer);
	json_key(&m->writer, "metadata");
	json_begin_object(&m->writer);
	json_key(&m->writer, "annotations");
	json_begin_object(&m->writer);
}

static int on_object_data(void *arg, struct str piece, struct err *e)
{
	struct remover *m = arg;

	return node_reader_feed(m->reader, piece, e);
}

static int add_removal(struct remover *m, const char *node, struct err *e)
{
	struct removal *grown;

	if (m->n == m->capacity) {
		size_t capacity = m->capacity ? 2 * m->capacity : 64;

		grown = reallocarray(m->removals, capacity, sizeof(*grown));
		if (!grown)
			return err_set(e, ENOMEM, "no memory for the list of Nodes");
		m->removals = grown;
		m->capacity = capacity;
	}
	for (int i = 0; i < 3; i++)
		json_end_object(&m->writer);
	if (m->patch.error)
		return err_set(e, -m->patch.error, "the patch of node %s is too large", node);
	grown = &m->removals[m->n];
	grown->n_keys = m->n_keys;
	grown->node = strdup(node);
	grown->patch = buf_take(&m->patch);
	if (!grown->node || !grown->patch) {
		free(grown->node);
		free(grown->patch);
		return err_set(e, ENOMEM, "no memory for the patch of node %s", node);
	}
	m->n++;
	return 0;
}

static int on_object_end(
	void *arg, enum kube_event event, const struct kube_meta *meta, struct err *e)
{
	struct remover *m = arg;
	const struct node *node;
	int r = node_reader_end(m->reader, &node, e);

	if (r < 0)
		return r;
	if (event == KUBE_DELETED)
		return 0;
	m->nodes_seen++;
	return m->n_keys ? add_removal(m, node->name, e) : 0;
}

static void on_object_abort(void *arg)
{
	(void)arg;
}

static void on_skipped(
	void *arg, enum kube_skip why, const struct kube_meta *meta, const char *text)
{
	struct remover *m = arg;

	m->failed++;
	log_error("%s", text);
}

static void on_trouble(void *arg, enum kube_trouble why, const char *text, uint64_t retry_in_usec)
{
	log_warn("%s; trying again in %.1f s", text, (double)retry_in_usec / 1e6);
}

static void patch_next(void *arg);

static void go_on(struct remover *m)
{
	m->next++;
	m->attempts = 0;
	patch_next(m);
}

static void on_patched(void *arg, const struct kube_answer *answer)
{
	struct remover *m = arg;
	const struct removal *removal = &m->removals[m->next];
	enum kube_trouble trouble = kube_trouble_of(answer->error, answer->status);

	if (trouble == KUBE_TROUBLE_NONE) {
		m->nodes_done++;
		m->keys_done += removal->n_keys;
		log_info("node %s: %zu annotations %s", removal->node, removal->n_keys,
			m->settings->dry_run ? "would be removed" : "removed");
	} else if (answer->status == 404) {
		log_info("node %s: is gone, and so are its annotations", removal->node);
	} else if (++m->attempts < ATTEMPTS_MAX && trouble != KUBE_TROUBLE_REFUSED) {
		log_warn("%s; trying again", answer->text);
		loop_timer_set(&m->again,
			MAX(answer->retry_after_usec, m->attempts * (uint64_t)RETRY_USEC));
		return;
	} else {
		m->failed++;
		log_error("node %s: annotations stay: %s", removal->node, answer->text);
	}
	go_on(m);
}

/* Starts the patch of the next Node; with none left, the work is done. */
static void patch_next(void *arg)
{
	struct remover *m = arg;
	const struct removal *removal = &m->removals[m->next];
	struct kube_request request = {.method = KUBE_PATCH,
		.content_type = KUBE_MERGE_PATCH,
		.done = on_patched,
		.arg = m};
	_cleanup_buf_ struct buf path = BUF_INIT(KUBE_PATH_MAX_BYTES);
	struct err e;

	if (m->next == m->n) {
		m->complete = true;
		loop_stop(&m->loop);
		return;
	}
	buf_puts(&path, "/api/v1/nodes/");
	kube_path_escape(&path, str_of(removal->node));
	buf_puts(&path, "?fieldManager=pernode-remove-annotations");
	if (m->settings->dry_run)
		buf_puts(&path, "&dryRun=All");
	request.path = path.p;
	request.body = str_of(removal->patch);
	if (path.error || kube_client_start(m->client, &request, NULL, &e) < 0) {
		m->failed++;
		log_error("node %s: annotations stay: %s", removal->node,
			path.error ? "its name is too long" : e.text);
		/* Not go_on: that would recurse once for every Node. */
		m->next++;
		loop_timer_set(&m->again, 1);
	}
}

static void on_synced(void *arg)
{
	struct remover *m = arg;

	kube_reflector_destroy(m->reflector);
	m->reflector = NULL;
	patch_next(m);
}

static void on_deadline(void *arg)
{
	struct remover *m = arg;

	if (m->reflector)
		log_error("not done in time: the Nodes could not be read");
	else
		log_error("not done in time: %zu of %zu Nodes are left", m->n - m->next, m->n);
	loop_stop(&m->loop);
}

static int connect_to_server(struct remover *m, struct err *e)
{
	struct kube_config config;
	const struct kube_client_options options = {
		.user_agent = "pernode-agent/" PERNODE_VERSION " (" PERNODE_COMMIT ")"};
	int r = m->settings->kubeconfig
			? kube_config_from_file(&config, m->settings->kubeconfig, e)
			: kube_config_from_pod(&config, environ, KUBE_SERVICE_ACCOUNT_DIR, e);

	if (r < 0)
		return r;
	r = kube_client_create(&m->client, &m->loop, &config, &options, e);
	kube_config_finish(&config);
	return r;
}

static int start(struct remover *m, struct err *e)
{
	char selector[NODE_NAME_MAX + sizeof("metadata.name=")];
	const struct kube_consumer consumer = {.begin = on_begin,
		.object_start = on_object_start,
		.object_data = on_object_data,
		.object_end = on_object_end,
		.object_abort = on_object_abort,
		.synced = on_synced,
		.skipped = on_skipped,
		.trouble = on_trouble,
		.arg = m};
	struct kube_reflector_options options = {.path = "/api/v1/nodes"};
	int r = connect_to_server(m, e);

	if (r < 0)
		return r;
	if (m->settings->node_name) {
		r = snprintf(
			selector, sizeof(selector), "metadata.name=%s", m->settings->node_name);
		if (r < 0 || (size_t)r >= sizeof(selector))
			return err_set(
				e, EINVAL, "--node-name is longer than a Node's name can be");
		options.field_selector = selector;
	}
	m->reader = node_reader_create(on_annotation, m);
	if (!m->reader)
		return err_set(e, ENOMEM, "no memory");
	r = loop_timer_init(&m->loop, &m->deadline, on_deadline, m);
	if (r == 0)
		r = loop_timer_init(&m->loop, &m->again, patch_next, m);
	if (r < 0)
		return err_wrap(e, r, "timer");
	loop_timer_set(&m->deadline, (uint64_t)m->settings->timeout_ns / 1000);
	return kube_reflector_create(&m->reflector, &m->loop, m->client, &options, &consumer, e);
}

static int remove_annotations(const struct settings *settings)
{
	struct remover m = {.settings = settings, .patch = BUF_INIT(PATCH_MAX_BYTES)};
	struct err e = {""};
	int r = loop_init(&m.loop);

	if (r < 0) {
		log_error("event loop: %s", strerror(-r));
		return EXIT_FAILURE;
	}
	r = start(&m, &e);
	if (r < 0)
		log_error("%s", err_text(&e, r));
	else
		(void)loop_run(&m.loop);
	kube_reflector_destroy(m.reflector);
	kube_client_destroy(m.client);
	loop_finish(&m.loop);
	if (m.complete)
		printf("%s %zu annotations of %zu Nodes (%zu Nodes seen, %zu failed)\n",
			settings->dry_run ? "would remove" : "removed", m.keys_done, m.nodes_done,
			m.nodes_seen, m.failed);
	node_reader_destroy(m.reader);
	forget_removals(&m);
	free(m.removals);
	buf_finish(&m.patch);
	return r == 0 && m.complete && !m.failed && fflush(stdout) == 0 ? EXIT_SUCCESS
									: EXIT_FAILURE;
}

int verb_remove_annotations(int argc, char **argv)
{
	static const struct flag flags[] = {
		COMMON_FLAGS(struct settings, common),
		{.name = "kubeconfig",
			.kind = FLAG_STRING,
			.offset = offsetof(struct settings, kubeconfig),
			.value_name = "FILE",
			.help = "how to reach the API server (default: the pod's own service "
				"account)"},
		{.name = "node-name",
			.kind = FLAG_STRING,
			.offset = offsetof(struct settings, node_name),
			.value_name = "NAME",
			.help = "only this Node (default: all)"},
		{.name = "timeout",
			.kind = FLAG_DURATION,
			.offset = offsetof(struct settings, timeout_ns),
			.default_text = "5m",
			.min = 1000000000,
			.max = TIMEOUT_MAX_NS,
			.value_name = "DURATION",
			.help = "give up after this time"},
		{.name = "dry-run",
			.kind = FLAG_BOOL,
			.offset = offsetof(struct settings, dry_run),
			.default_text = "false",
			.help = "ask the API server for everything, and have it change nothing"},
		{0},
	};
	struct settings settings = {0};
	const struct flag *const tables[] = {flags, NULL};
	struct flag_set set = {.verb = "remove-annotations",
		.summary = "Removes the annotations below pernode.io from Nodes. Agents that still "
			   "run put theirs back: remove them first.",
		.example = "pernode-agent remove-annotations --kubeconfig=admin.conf --dry-run",
		.tables = tables,
		.settings = &settings};
	int first, code;

	if (!options_read(&set, &settings.common, argc, argv, &first, &code))
		return code;
	return remove_annotations(&settings);
}
