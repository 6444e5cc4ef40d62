/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/podsource.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/log.h"
#include "proto/pod.h"

#define READ_STEP SIZE_OR_TINY(65536U, 64U)

struct podsource {
	struct tracker *tracker;
	char node_name[POD_NAME_MAX];
	struct err trouble;

	struct kube_reflector *reflector; /* API */
	struct pod_reader *reader;

	char *path; /* file */
	struct loop_timer look;
	struct stat seen;
};

/* ---- both ---- */

static struct podsource *create(struct tracker *tracker, const char *node_name)
{
	struct podsource *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->tracker = tracker;
	(void)snprintf(s->node_name, sizeof(s->node_name), "%s", node_name ? node_name : "");
	return s;
}

static void timer_closed(void *arg)
{
	struct podsource *s = arg;

	free(s->path);
	free(s);
}

void podsource_destroy(struct podsource *s)
{
	if (!s)
		return;
	kube_reflector_destroy(s->reflector);
	pod_reader_destroy(s->reader);
	if (s->look.open)
		loop_timer_close(&s->look, timer_closed);
	else
		timer_closed(s);
}

const struct kube_reflector *podsource_reflector(const struct podsource *s)
{
	return s->reflector;
}

const char *podsource_trouble(const struct podsource *s)
{
	return s->trouble.text;
}

/* ---- the API server's watch ---- */

static void on_begin(void *arg)
{
	tracker_begin(((struct podsource *)arg)->tracker);
}

static void on_object_start(void *arg)
{
	pod_reader_begin(((struct podsource *)arg)->reader);
}

static int on_object_data(void *arg, struct str piece, struct err *e)
{
	return pod_reader_feed(((struct podsource *)arg)->reader, piece, e);
}

static int on_object_end(
	void *arg, enum kube_event event, const struct kube_meta *meta, struct err *e)
{
	struct podsource *s = arg;
	const struct pod *pod;

	(void)meta;
	int r = pod_reader_end(s->reader, &pod, e);
	if (r < 0)
		return r;
	if (event == KUBE_DELETED)
		tracker_pod_gone(s->tracker, pod->uid);
	else
		tracker_pod(s->tracker, pod);
	return 0;
}

static void on_object_abort(void *arg)
{
	pod_reader_begin(((struct podsource *)arg)->reader);
}

static void on_synced(void *arg)
{
	struct podsource *s = arg;

	s->trouble = (struct err){""};
	tracker_synced(s->tracker);
}

static void on_skipped(
	void *arg, enum kube_skip why, const struct kube_meta *meta, const char *text)
{
	(void)arg;
	(void)why;
	log_warn("pod %s/%s is left out: %s", meta->namespace, meta->name, text);
}

static void on_trouble(void *arg, enum kube_trouble why, const char *text, uint64_t retry_in_usec)
{
	struct podsource *s = arg;

	(void)why;
	(void)err_set(&s->trouble, EIO, "%s", text);
	log_warn("watching pods: %s; again in %.1f s", text,
		(double)retry_in_usec / (double)USEC_PER_SEC);
}

static void on_connected(void *arg)
{
	struct podsource *s = arg;

	if (s->trouble.text[0])
		log_info("watching pods again");
	s->trouble = (struct err){""};
}

void podsource_watch_options(struct kube_reflector_options *ret,
	char selector[PODSOURCE_SELECTOR_MAX], const char *node_name, uint64_t spread_usec)
{
	(void)snprintf(selector, PODSOURCE_SELECTOR_MAX, "spec.nodeName=%s", node_name);
	*ret = (struct kube_reflector_options){.path = "/api/v1/pods",
		.field_selector = selector,
		.start_spread_usec = spread_usec};
}

int podsource_create_api(struct podsource **ret, struct loop *loop, struct kube_client *client,
	const char *node_name, uint64_t spread_usec, struct tracker *tracker, struct err *e)
{
	struct kube_reflector_options options;
	char selector[PODSOURCE_SELECTOR_MAX];
	struct podsource *s = create(tracker, node_name);

	if (!s)
		return -ENOMEM;
	s->reader = pod_reader_create();
	if (!s->reader) {
		podsource_destroy(s);
		return -ENOMEM;
	}
	podsource_watch_options(&options, selector, node_name, spread_usec);
	struct kube_consumer consumer = {.begin = on_begin,
		.object_start = on_object_start,
		.object_data = on_object_data,
		.object_end = on_object_end,
		.object_abort = on_object_abort,
		.synced = on_synced,
		.skipped = on_skipped,
		.trouble = on_trouble,
		.connected = on_connected,
		.arg = s};
	int r = kube_reflector_create(&s->reflector, loop, client, &options, &consumer, e);
	if (r < 0) {
		podsource_destroy(s);
		return r;
	}
	*ret = s;
	return 0;
}

/* ---- a file ---- */

static void take_pod(void *arg, const struct pod *pod)
{
	struct podsource *s = arg;

	if (!s->node_name[0] || !pod->node_name[0] || !strcmp(pod->node_name, s->node_name))
		tracker_pod(s->tracker, pod);
}

static void pass_over(void *arg, const struct err *why)
{
	(void)arg;
	log_warn("%s; left out", why->text);
}

static int feed_file(struct podsource *s, int fd, struct pod_list *list, struct err *e)
{
	char piece[READ_STEP];
	uint64_t total = 0;

	for (;;) {
		ssize_t n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, errno, "%s: %s", s->path, strerror(errno));
		if (n == 0)
			break;
		total += (uint64_t)n;
		int r = total > PODSOURCE_FILE_MAX_BYTES
				? err_set(e, EFBIG, "larger than %u bytes",
					  PODSOURCE_FILE_MAX_BYTES)
				: pod_list_feed(list, (struct str){piece, (size_t)n}, e);
		if (r < 0)
			return err_wrap(e, r, "%s", s->path);
	}
	int r = pod_list_end(list, e);
	return r < 0 ? err_wrap(e, r, "%s", s->path) : 0;
}

/* Nothing is gone for not being in a file that is cut: only a whole one counts. */
static int read_file(struct podsource *s, struct err *e)
{
	static const struct pod_list_ops ops = {take_pod, pass_over};
	_cleanup_close_ int fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &s->seen) < 0)
		return err_set(e, errno, "%s: %s", s->path, strerror(errno));
	struct pod_list *list = pod_list_create(&ops, s);
	if (!list)
		return -ENOMEM;
	tracker_begin(s->tracker);
	int r = feed_file(s, fd, list, e);
	pod_list_destroy(list);
	if (r == 0)
		tracker_synced(s->tracker);
	return r;
}

static bool has_changed(const struct podsource *s)
{
	struct stat now;

	if (stat(s->path, &now) < 0)
		return false; /* being replaced; or gone, and then the last picture stands */
	return now.st_ino != s->seen.st_ino || now.st_size != s->seen.st_size ||
	       now.st_mtim.tv_sec != s->seen.st_mtim.tv_sec ||
	       now.st_mtim.tv_nsec != s->seen.st_mtim.tv_nsec;
}

static void on_look(void *arg)
{
	struct podsource *s = arg;
	struct err why = {""};

	if (has_changed(s)) {
		int r = read_file(s, &why);
		if (r < 0)
			log_warn("pods: %s; the picture stays as it was", err_text(&why, r));
		(void)err_set(&s->trouble, EIO, "%s", r < 0 ? err_text(&why, r) : "");
	}
	loop_timer_set(&s->look, PODSOURCE_FILE_LOOK_USEC);
}

int podsource_create_file(struct podsource **ret, struct loop *loop, const char *path,
	const char *node_name, struct tracker *tracker, struct err *e)
{
	struct podsource *s = create(tracker, node_name);

	if (!s)
		return -ENOMEM;
	s->path = str_dup(str_of(path));
	int r = s->path ? read_file(s, e) : -ENOMEM;
	if (r == 0)
		r = loop_timer_init(loop, &s->look, on_look, s);
	if (r < 0) {
		podsource_destroy(s);
		return r;
	}
	loop_timer_set(&s->look, PODSOURCE_FILE_LOOK_USEC);
	*ret = s;
	return 0;
}
