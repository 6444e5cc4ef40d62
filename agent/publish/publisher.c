/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/publish/publisher.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "agent/publish/publisher_inner.h"
#include "base/file.h"
#include "base/log.h"
#include "base/num.h"

static uint64_t system_random(void *arg)
{
	uint64_t v = 0;

	if (getrandom(&v, sizeof v, GRND_NONBLOCK) != (ssize_t)sizeof v)
		v = clock_mono_usec(&clock_system) * UINT64_C(0x9e3779b97f4a7c15);
	return v;
}

static uint64_t chance(const struct publisher *p)
{
	return p->random(p->random_arg);
}

static int64_t wall_ns(const struct publisher *p)
{
	return clock_wall_usec(p->clock) * NSEC_PER_USEC;
}

/* The port of every day: the client. */
static int client_start(void *arg, const struct kube_request *request, struct err *e)
{
	struct publisher *p = arg;

	return kube_client_start(p->client, request, &p->call, e);
}

static void client_cancel(void *arg)
{
	struct publisher *p = arg;

	kube_call_cancel(p->call);
}

static void sleep_for(struct publisher *p, uint64_t usec)
{
	p->wake_usec = u64_add_sat(clock_mono_usec(p->clock), usec);
	loop_timer_set(&p->timer, usec);
}

static void set_trouble(struct publisher *p, enum publisher_outcome o, const char *text)
{
	enum publisher_outcome was = p->trouble;

	p->trouble = o;
	if (o == PUBLISHER_OK) {
		p->trouble_text.text[0] = '\0';
		if (was != PUBLISHER_OK)
			log_info("publishing works again");
		return;
	}
	snprintf(p->trouble_text.text, sizeof p->trouble_text.text, "%s", text);
	/* Once per kind of trouble, not per try. */
	if (was != o)
		log_warn("cannot publish (%s): %s; tried again by itself",
			publisher_outcome_name(o), text);
}

/* The Node was looked at: as usual, or to learn whether the last patch was taken. What was the
 * trouble with a patch that was not is so still. */
static void look_done(struct publisher *p, uint64_t now)
{
	bool unsettled = p->node.unsettled, taken = unsettled && publisher_settle(p);

	if (taken)
		publisher_patch_done(p);
	if (unsettled)
		publish_node_settled(&p->node, now, taken, chance(p));
	else
		publish_node_readback_done(&p->node, now, chance(p));
	if (!unsettled || taken)
		set_trouble(p, PUBLISHER_OK, "");
}

/* It did not go well. */
static void request_failed(struct publisher *p, enum publisher_request request,
	enum publisher_outcome o, uint64_t now, uint64_t retry_after_usec)
{
	const struct publisher_patience *patience = &publisher_patience[o];
	bool open = request == PUBLISHER_PATCH && p->sent && patience->open;

	if (request == PUBLISHER_PATCH && !open)
		publisher_patch_failed(p, o);
	(open ? publish_node_unsettled : publish_node_failed)(&p->node, now, patience->first_usec,
		patience->last_usec, retry_after_usec, chance(p));
}

/* The request under way is over, one way or the other. */
static void finish(struct publisher *p, enum publisher_outcome o, const char *text,
	uint64_t retry_after_usec, const struct node *node)
{
	enum publisher_request request = p->request;
	uint64_t now = clock_mono_usec(p->clock);

	p->request = PUBLISHER_NONE;
	(request == PUBLISHER_PATCH ? p->stats.patches : p->stats.reads)[o]++;
	if (o != PUBLISHER_OK) {
		set_trouble(p, o, text);
		request_failed(p, request, o, now, retry_after_usec);
	} else if (request == PUBLISHER_PATCH) {
		set_trouble(p, PUBLISHER_OK, "");
		publisher_patch_done(p);
		publish_node_done(&p->node, now, chance(p));
	} else {
		look_done(p, now);
		/* What was too much may have become less since. */
		p->room = MIN(p->room + p->room / 4 + PUBLISHER_VALUE_BYTES, p->room_max);
	}
	if (o == PUBLISHER_OK)
		p->stats.last_ok_wall_usec = clock_wall_usec(p->clock);
	if (node)
		publisher_compare(p, node);
	buf_finish(&p->seen);
	buf_init(&p->seen, PUBLISHER_SEEN_MAX_BYTES);
	sleep_for(p, 0);
}

static int on_data(void *arg, struct str piece)
{
	struct publisher *p = arg;

	/* The rest is read, so that the connection can be used again. */
	if (p->reading == 0)
		p->reading = node_reader_feed(p->reader, piece, &p->reading_error);
	return 0;
}

static void on_done(void *arg, const struct kube_answer *a)
{
	struct publisher *p = arg;
	enum publisher_outcome o = publisher_outcome_of(a);
	const struct node *node = NULL;
	struct err e = {0};

	p->call = NULL;
	if (o != PUBLISHER_OK) {
		finish(p, o, a->text ? a->text : err_text(NULL, a->error), a->retry_after_usec,
			NULL);
		return;
	}
	if (p->reading == 0)
		p->reading = node_reader_end(p->reader, &node, &p->reading_error);
	if (p->reading == 0 && !str_is(str_of(node->name), p->node_name))
		p->reading = err_set(&p->reading_error, EPROTO, "it is the Node %s", node->name);
	if (p->reading == 0) {
		finish(p, o, "", 0, node);
		return;
	}
	err_set(&e, EPROTO, "the answer to %s is not the Node %s: %s",
		p->request == PUBLISHER_PATCH ? "a patch" : "a read", p->node_name,
		err_text(&p->reading_error, p->reading));
	finish(p, p->reading == -ENOMEM ? PUBLISHER_LOCAL : PUBLISHER_PROTOCOL, e.text, 0, NULL);
}

static void start(struct publisher *p, enum publisher_request kind, struct str body)
{
	struct kube_request request = {
		.method = kind == PUBLISHER_PATCH ? KUBE_PATCH : KUBE_GET,
		.path = kind == PUBLISHER_PATCH ? p->patch_path : p->path,
		.content_type = kind == PUBLISHER_PATCH ? KUBE_MERGE_PATCH : NULL,
		.body = body,
		.data = on_data,
		.done = on_done,
		.arg = p,
	};
	struct err e = {0};
	int r;

	p->request = kind;
	p->reading = 0;
	p->reading_error.text[0] = '\0';
	node_reader_begin(p->reader);
	buf_clear(&p->seen);
	r = p->port.start(p->port.arg, &request, &e);
	p->sent = r == 0;
	if (r < 0)
		finish(p, PUBLISHER_LOCAL, err_text(&e, r), 0, NULL);
}

/* The dry run: one line per patch. */
static int append_line(const struct publisher *p, const struct buf *b, struct err *e)
{
	_cleanup_close_ int fd =
		open(p->file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
	struct stat st;
	int r;

	if (fd < 0)
		return err_set(e, errno, "%s: %s", p->file, strerror(errno));
	if (fstat(fd, &st) < 0)
		return err_set(e, errno, "%s: %s", p->file, strerror(errno));
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size + b->n > PUBLISHER_FILE_MAX_BYTES)
		return err_set(e, EFBIG,
			"%s has %lld bytes, and more than %llu are not written to "
			"it: move it away",
			p->file, (long long)st.st_size,
			(unsigned long long)PUBLISHER_FILE_MAX_BYTES);
	r = write_full(fd, b->p, b->n);
	if (r < 0 && S_ISREG(st.st_mode))
		(void)ftruncate(fd, st.st_size); /* no half line */
	return r < 0 ? err_set(e, -r, "%s: %s", p->file, strerror(-r)) : 0;
}

static void send_patch(struct publisher *p, enum publish_need need)
{
	_cleanup_buf_ struct buf b = BUF_INIT(PUBLISHER_PATCH_MAX_BYTES);
	struct err e = {0};
	int r;

	p->sent_at_ns = wall_ns(p);
	if (p->hello)
		publish_node_hello_sent(&p->node, clock_mono_usec(p->clock));
	else
		publish_node_sent(&p->node, clock_mono_usec(p->clock), need);
	p->request = PUBLISHER_PATCH;
	p->sent = false;
	r = publisher_write_patch(p, &b, p->sent_at_ns);
	if (r < 0) {
		finish(p, PUBLISHER_LOCAL, err_text(&e, r), 0, NULL);
		return;
	}
	if (!p->file) {
		start(p, PUBLISHER_PATCH, buf_str(&b));
		return;
	}
	r = buf_putc(&b, '\n');
	if (r == 0)
		r = append_line(p, &b, &e);
	finish(p, r < 0 ? PUBLISHER_LOCAL : PUBLISHER_OK, r < 0 ? err_text(&e, r) : "", 0, NULL);
}

/* How long until the next look at the Node. What cannot wait does not wait for the spread of the
 * first one. */
static uint64_t look_wait(struct publisher *p, uint64_t now)
{
	uint64_t wait = publish_node_readback_wait(&p->node, now);

	if (wait > 0 && !p->identified && now >= p->node.hold_usec &&
		publisher_look(p, wall_ns(p)) == PUBLISH_NOW)
		return 0;
	return wait;
}

void publisher_turn(void *arg)
{
	struct publisher *p = arg;
	uint64_t now = clock_mono_usec(p->clock), readback = UINT64_MAX, wait, hello;
	enum publish_need need;

	p->poked = false;
	if (p->request != PUBLISHER_NONE)
		return; /* the answer wakes us */
	if (!p->file) {
		readback = look_wait(p, now);
		if (readback == 0) {
			start(p, PUBLISHER_READ, (struct str){NULL, 0});
			return;
		}
		/* Nothing is written to a Node that was not seen, nor before it is known what is
		 * there. */
		if (!p->identified || p->node.unsettled) {
			sleep_for(p, readback);
			return;
		}
	}
	need = publisher_look(p, wall_ns(p));
	wait = publish_node_wait(&p->node, now, need, p->candidates.all_ready, chance(p));
	hello = publisher_hello_wait(p, now, chance(p));
	p->hello = hello < wait;
	wait = MIN(wait, hello);
	if (wait == 0) {
		send_patch(p, need);
		return;
	}
	wait = MIN(wait, p->node.first_done ? PUBLISHER_LOOK_USEC : PUBLISHER_LOOK_EARLY_USEC);
	sleep_for(p, MIN(wait, readback));
}

void publisher_poke(struct publisher *p)
{
	if (p->poked)
		return;
	p->poked = true;
	if (p->request == PUBLISHER_NONE)
		sleep_for(p, 0);
}

void publisher_synced(struct publisher *p)
{
	p->synced = true;
	publisher_poke(p);
}

void publisher_set_state(struct publisher *p, const char *state, const char *reason)
{
	char *s, *r;

	if (str_is(str_of(p->state), state) && str_is(str_of(p->reason), reason))
		return;
	s = str_dup(str_of(state));
	r = str_dup(str_of(reason));
	if (!s || !r) {
		free(s);
		free(r);
		return; /* said again by the next one */
	}
	free(p->state);
	free(p->reason);
	p->state = s;
	p->reason = r;
	p->agent_due = true;
	p->agent_lost = p->agent_told = false;
	publisher_poke(p);
}

static int copy(char **ret, const char *z)
{
	*ret = str_dup(str_of(z ? z : ""));
	return *ret ? 0 : -ENOMEM;
}

static int copy_strings(struct publisher *p, const struct publisher_options *o)
{
	_cleanup_buf_ struct buf path = BUF_INIT(KUBE_PATH_MAX_BYTES);

	buf_puts(&path, "/api/v1/nodes/");
	kube_path_escape(&path, str_of(o->node_name));
	if (path.error || copy(&p->path, path.p) < 0)
		return -ENOMEM;
	buf_puts(&path, "?fieldManager=" PUBLISHER_FIELD_MANAGER);
	if (path.error || copy(&p->patch_path, path.p) < 0 ||
		copy(&p->node_name, o->node_name) < 0 || copy(&p->version, o->version) < 0 ||
		copy(&p->boot_id, o->boot_id) < 0 || copy(&p->state, "ok") < 0 ||
		copy(&p->reason, "") < 0)
		return -ENOMEM;
	return o->file ? copy(&p->file, o->file) : 0;
}

static void release(void *arg)
{
	struct publisher *p = arg;

	node_reader_destroy(p->reader);
	buf_finish(&p->seen);
	buf_finish(&p->strays);
	buf_finish(&p->removals);
	free(p->candidates.all);
	free(p->node_name);
	free(p->path);
	free(p->patch_path);
	free(p->file);
	free(p->version);
	free(p->boot_id);
	free(p->state);
	free(p->reason);
	free(p);
}

int publisher_create(struct publisher **ret, struct loop *l, struct kube_client *client,
	struct workloads *workloads, const struct publisher_options *o, struct err *e)
{
	struct publisher *p;
	int r;

	if (!o->node_name || !o->node_name[0])
		return err_set(e, EINVAL, "publishing needs the node's name: give --node-name");
	if (!client && !o->port && !o->file)
		return err_set(e, EINVAL, "publishing to the API server needs an API server");
	p = calloc(1, sizeof *p);
	if (!p)
		return err_set(e, ENOMEM, "no memory for the publisher");
	p->loop = l;
	p->workloads = workloads;
	p->client = client;
	p->clock = o->clock ? o->clock : &clock_system;
	p->random = o->random ? o->random : system_random;
	p->random_arg = o->random_arg;
	p->hooks = o->hooks;
	p->port = o->port ? *o->port : (struct publisher_port){client_start, client_cancel, p};
	p->stale_after_usec =
		o->stale_after_usec ? o->stale_after_usec : PUBLISHER_STALE_AFTER_USEC;
	p->room = p->room_max = PUBLISHER_ROOM_BYTES;
	p->batch_max = SIZE_MAX;
	p->agent_due = true;
	p->agent_at_ns = TIME_NONE;
	p->started_at_ns = wall_ns(p);
	p->stats.last_ok_wall_usec = p->stats.last_patch_wall_usec = INT64_MIN;
	publish_node_init(&p->node, o->pace, clock_mono_usec(p->clock));
	if (o->start_spread_usec)
		p->node.readback_usec += chance(p) % o->start_spread_usec;
	buf_init(&p->seen, PUBLISHER_SEEN_MAX_BYTES);
	buf_init(&p->strays, PUBLISHER_ROOM_BYTES);
	buf_init(&p->removals, PUBLISHER_ROOM_BYTES);
	p->reader = node_reader_create(publisher_on_annotation, p);
	r = p->reader ? copy_strings(p, o) : -ENOMEM;
	if (r == 0)
		r = loop_timer_init(l, &p->timer, publisher_turn, p);
	if (r < 0) {
		release(p);
		return err_wrap(e, r, "the publisher");
	}
	sleep_for(p, 0);
	*ret = p;
	return 0;
}

void publisher_destroy(struct publisher *p)
{
	if (!p)
		return;
	if (p->request != PUBLISHER_NONE)
		p->port.cancel(p->port.arg);
	/* Nothing of it is known to have been taken. */
	for (struct workload *w = p->workloads->first; w; w = w->next)
		publish_item_failed(&w->publish);
	loop_timer_close(&p->timer, release);
}

enum health publisher_health(const struct publisher *p, const char **ret_text)
{
	*ret_text = p->trouble_text.text;
	switch (p->trouble) {
	case PUBLISHER_OK:
		break;
	case PUBLISHER_TLS:
	case PUBLISHER_UNAUTHORIZED:
	case PUBLISHER_FORBIDDEN:
	case PUBLISHER_NOT_FOUND:
		return HEALTH_NOT_READY; /* somebody has to mend it */
	default:
		return HEALTH_NOTE;
	}
	if (!p->file && !p->identified) {
		*ret_text = "the own Node has not been read yet";
		return HEALTH_NOTE;
	}
	*ret_text = p->aside_text;
	return p->aside_text[0] ? HEALTH_NOTE : HEALTH_OK;
}

const struct publisher_stats *publisher_stats(const struct publisher *p)
{
	return &p->stats;
}

enum publisher_outcome publisher_trouble(const struct publisher *p)
{
	return p->trouble;
}

const char *publisher_node_uid(const struct publisher *p)
{
	return p->node_uid;
}

const char *publisher_machine(const struct publisher *p)
{
	return p->machine;
}
