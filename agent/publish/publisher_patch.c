/* SPDX-License-Identifier: Apache-2.0 */
/* What a patch carries, and what follows when it was taken, or was not. */
#include <errno.h>
#include <math.h>

#include "agent/publish/publisher_inner.h"
#include "base/log.h"
#include "proto/json_write.h"

static struct amounts request_of(const struct workload *w)
{
	struct amounts a = {.known = {false, false}};

	if (!w->here)
		return a;
	a.known[RESOURCE_CPU] = w->request_millicores >= 0;
	a.value[RESOURCE_CPU] = MAX(w->request_millicores, INT64_C(0));
	a.known[RESOURCE_MEMORY] = w->request_bytes >= 0;
	a.value[RESOURCE_MEMORY] = MAX(w->request_bytes, INT64_C(0));
	return a;
}

void publisher_facts(const struct workloads *workloads, const struct workload *w, int64_t now_ns,
	uint64_t stale_after_usec, struct publish_facts *ret)
{
	const struct amounts *target = &ret->today.amounts[BOUND_TARGET];
	int64_t stale_ns = stale_after_usec > (uint64_t)INT64_MAX / 1000
				   ? INT64_MAX
				   : (int64_t)stale_after_usec * NSEC_PER_USEC;

	*ret = (struct publish_facts){
		.request = request_of(w),
		.oom_kills = w->usage.oom_kills,
		.samples = w->usage.cpu_samples,
		.throttled_minutes = w->usage.throttled_minutes,
		.ready = workload_ready(w),
		.gone = !w->here && instant_since(now_ns, w->seen_at_ns) > stale_ns,
	};
	if (!ret->ready)
		return;
	workload_estimate(w, now_ns, &ret->today, NULL);
	/* Profile vpa tells the reference's numbers as they are. */
	if (workloads->model.profile == PROFILE_FINE)
		publish_round(&ret->today);
	ret->ready = target->known[RESOURCE_CPU] || target->known[RESOURCE_MEMORY];
}

static int key_of(const struct workload *w, char out[ANNOTATION_KEY_MAX])
{
	return annotation_key(
		out, str_of(w->namespace), str_of(w->daemonset), str_of(w->container));
}

static int make_room(struct candidates *c, size_t n)
{
	struct candidate *all;

	if (n <= c->capacity)
		return 0;
	all = reallocarray(c->all, n, sizeof *all);
	if (!all)
		return -ENOMEM;
	c->all = all;
	c->capacity = n;
	return 0;
}

/* The most valuable first: what runs here, what was killed for want of memory, what needs most. */
static int by_value(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int64_t mx = x->facts.today.amounts[BOUND_TARGET].value[RESOURCE_MEMORY];
	int64_t my = y->facts.today.amounts[BOUND_TARGET].value[RESOURCE_MEMORY];

	if (x->w->here != y->w->here)
		return x->w->here ? -1 : 1;
	if ((x->need == PUBLISH_NOW) != (y->need == PUBLISH_NOW))
		return x->need == PUBLISH_NOW ? -1 : 1;
	if (mx != my)
		return mx > my ? -1 : 1;
	return 0;
}

/* What does not fit is left out, and taken away where it is there already. */
static void fit(struct publisher *p)
{
	struct candidates *c = &p->candidates;
	size_t total = 0;

	p->left_out = 0;
	c->bytes = c->published_bytes = 0;
	for (size_t i = 0; i < c->n; i++)
		total += c->all[i].size;
	if (total > p->room)
		qsort(c->all, c->n, sizeof *c->all, by_value);
	for (size_t i = 0; i < c->n; i++) {
		struct candidate *k = &c->all[i];
		bool there = k->w->publish.at != TIME_NONE;

		if (c->bytes + k->size <= p->room || k->size == 0) {
			c->bytes += k->size;
			c->published_bytes += there ? k->size : 0;
			continue;
		}
		k->left_out = true;
		k->need = there && !k->w->publish.in_flight ? PUBLISH_DUE : PUBLISH_NOT;
		k->reason = k->w->publish.reason;
		p->left_out++;
	}
	p->stats.left_out = p->left_out;
}

static void judge(struct publisher *p, struct candidate *c, struct workload *w, int64_t now_ns)
{
	struct publish_item *i = &w->publish;
	char key[ANNOTATION_KEY_MAX] = "";

	*c = (struct candidate){.w = w};
	publisher_facts(p->workloads, w, now_ns, p->stale_after_usec, &c->facts);
	/* Before the pods are known, nothing is known to be gone. */
	c->facts.gone = c->facts.gone && p->synced;
	if (key_of(w, key) < 0 && !i->refused) {
		i->refused = true;
		p->stats.refused++;
	}
	c->need = publish_judge(i, &c->facts, now_ns, &c->reason);
	if (c->need != PUBLISH_NOT || i->at != TIME_NONE)
		c->size = c->facts.gone || i->refused ? 0 : strlen(key) + PUBLISHER_VALUE_BYTES;
	/* An OOM that taught nothing new is told with the next patch, not by one of its own: it
	 * must not make a later, ordinary rise urgent. */
	if (i->urgent && i->at != TIME_NONE && c->facts.ready && !i->in_flight &&
		c->need != PUBLISH_NOW)
		i->urgent = false;
}

/* The names of workloads that there is no room for, or that the server does not take, as many as
 * fit. */
static void name_aside(const struct publisher *p, bool refused, char *out, size_t size)
{
	size_t n = 0, more = 0;

	out[0] = '\0';
	for (size_t i = 0; i < p->candidates.n; i++) {
		const struct candidate *c = &p->candidates.all[i];
		int written = 0;

		if (refused ? !c->w->publish.refused : !c->left_out)
			continue;
		if (!more)
			written = snprintf(out + n, size - n, "%s%s/%s/%s", n ? ", " : "",
				c->w->namespace, c->w->daemonset, c->w->container);
		if (more || written < 0 || n + (size_t)written + sizeof " and 1000 more" > size) {
			out[n] = '\0';
			more++;
			continue;
		}
		n += (size_t)written;
	}
	if (more)
		snprintf(out + n, size - n, " and %zu more", more);
}

static void say_aside(struct publisher *p, size_t refused, bool was)
{
	char names[240];

	p->aside_text[0] = '\0';
	if (p->left_out) {
		name_aside(p, false, names, sizeof names);
		snprintf(p->aside_text, sizeof p->aside_text,
			"no room in the node's annotations (256 KiB in all) for: %s", names);
	} else if (refused) {
		name_aside(p, true, names, sizeof names);
		snprintf(p->aside_text, sizeof p->aside_text,
			"the API server does not take the values of: %s", names);
	}
	if (p->aside_text[0] && !was)
		log_warn("%s", p->aside_text);
}

/* Once per start. Who undoes it is answered slowly, as with any key. */
static enum publish_need agent_need(const struct publisher *p, int64_t now_ns)
{
	int64_t since = instant_since(now_ns, p->agent_at_ns);

	if (!p->node.first_done)
		return PUBLISH_NEW;
	return since >= 0 && since < PUBLISH_TREMBLES_NS && p->agent_lost ? PUBLISH_SLOW
									  : PUBLISH_DUE;
}

enum publish_need publisher_look(struct publisher *p, int64_t now_ns)
{
	struct candidates *c = &p->candidates;
	enum publish_need need = PUBLISH_NOT;
	bool was_aside = p->aside_text[0] != '\0';
	size_t refused = 0;

	c->n = 0;
	c->all_ready = p->synced;
	if (make_room(c, p->workloads->n) < 0)
		return PUBLISH_NOT; /* memory is short: at the next look */
	for (struct workload *w = p->workloads->first; w && c->n < c->capacity; w = w->next) {
		struct candidate *k = &c->all[c->n++];

		judge(p, k, w, now_ns);
		if (w->here && !k->facts.ready)
			c->all_ready = false;
	}
	fit(p);
	for (size_t i = 0; i < c->n; i++) {
		need = MAX(need, c->all[i].need);
		refused += c->all[i].w->publish.refused;
	}
	say_aside(p, refused, was_aside);
	if (p->strays.n && need < PUBLISH_SLOW)
		need = PUBLISH_SLOW;
	if (p->agent_due)
		need = MAX(need, agent_need(p, now_ns));
	return need;
}

/* Where the first patch goes soon anyway, it tells that too. A dry run's file is no place where
 * somebody looks for an agent. */
uint64_t publisher_hello_wait(struct publisher *p, uint64_t now_usec, uint64_t random)
{
	if (p->file || !p->agent_due || p->agent_told || p->candidates.all_ready)
		return UINT64_MAX;
	return publish_node_hello_wait(&p->node, now_usec, random);
}

static enum annotation_reason reason_of(enum publish_reason r)
{
	static const enum annotation_reason reasons[PUBLISH_REASONS] = {
		[PUBLISH_FIRST] = ANNOTATION_REASON_FIRST,
		[PUBLISH_USAGE] = ANNOTATION_REASON_USAGE,
		[PUBLISH_THROTTLED] = ANNOTATION_REASON_THROTTLED,
		[PUBLISH_OOM] = ANNOTATION_REASON_OOM,
		[PUBLISH_AHEAD_OF_OOM] = ANNOTATION_REASON_AHEAD_OF_OOM,
	};

	return reasons[r];
}

static struct quantity_pair pair_of(const struct amounts *a)
{
	return (struct quantity_pair){
		.cpu_millicores = a->known[RESOURCE_CPU] ? a->value[RESOURCE_CPU] : -1,
		.memory_bytes = a->known[RESOURCE_MEMORY] ? a->value[RESOURCE_MEMORY] : -1,
	};
}

static double coverage_of(const struct workload *w, enum resource r)
{
	double share = coverage_share_rounded(&w->coverage, COVERAGE_TARGET, r);

	return isnan(share) ? -1 : share;
}

static uint64_t count_of(int64_t n)
{
	return n > 0 ? (uint64_t)n : 0;
}

static void write_value(struct buf *b, const struct candidate *c, int64_t now_ns)
{
	const struct recommendation *r = &c->facts.today;
	struct annotation_value v = {
		.target = pair_of(&r->amounts[BOUND_TARGET]),
		.lower = pair_of(&r->amounts[BOUND_LOWER]),
		.upper = pair_of(&r->amounts[BOUND_UPPER]),
		.samples = count_of(c->facts.samples),
		.since_ns = c->w->usage.cpu_first,
		.at_ns = now_ns,
		.reason = reason_of(c->reason),
		.oom_kills = count_of(c->facts.oom_kills),
		.coverage_cpu = coverage_of(c->w, RESOURCE_CPU),
		.coverage_memory = coverage_of(c->w, RESOURCE_MEMORY),
	};

	(void)str_copy(v.revision, sizeof v.revision, str_of(c->w->revision));
	annotation_value_write(b, &v);
}

void publisher_agent(const struct publisher *p, struct annotation_agent *ret)
{
	*ret = (struct annotation_agent){.started_at_ns = p->started_at_ns};
	(void)str_copy(ret->version, sizeof ret->version, str_of(p->version));
	(void)str_copy(ret->node_uid, sizeof ret->node_uid, str_of(p->node_uid));
	(void)str_copy(ret->machine, sizeof ret->machine, str_of(p->machine));
	(void)str_copy(ret->boot_id, sizeof ret->boot_id, str_of(p->boot_id));
	(void)str_copy(ret->state, sizeof ret->state, str_of(p->state));
	snprintf(ret->reason, sizeof ret->reason, "%s", p->reason);
}

static void write_agent(struct publisher *p, struct json_writer *j, struct buf *scratch)
{
	struct annotation_agent a;

	publisher_agent(p, &a);
	buf_clear(scratch);
	annotation_agent_write(scratch, &a);
	if (scratch->error)
		return;
	json_key(j, ANNOTATION_AGENT);
	json_str(j, buf_str(scratch));
	p->agent_sent_hash = publisher_hash(buf_str(scratch));
}

/* Keys that belong to nobody (still: a workload may have come since); removals remembers which. */
static int write_removals(struct publisher *p, struct json_writer *j)
{
	unsigned int n = 0;

	for (size_t at = 0; at < p->strays.n && n < PUBLISHER_REMOVALS_MAX;) {
		struct str key = str_of(p->strays.p + at);

		at += key.n + 1;
		if (publisher_owner(p, key))
			continue;
		json_key_str(j, key);
		json_null(j);
		if (buf_append(&p->removals, key.p, key.n + 1) < 0)
			return p->removals.error;
		n++;
	}
	return 0;
}

/* *ret_hash: 0 for a key that is taken away. */
static int write_item(const struct candidate *c, struct json_writer *j, struct buf *scratch,
	int64_t now_ns, uint64_t *ret_hash)
{
	char key[ANNOTATION_KEY_MAX];
	int r = key_of(c->w, key);

	if (r < 0)
		return r;
	*ret_hash = 0;
	json_key(j, key);
	if (c->facts.gone || c->left_out) {
		json_null(j);
		return 0;
	}
	buf_clear(scratch);
	write_value(scratch, c, now_ns);
	if (scratch->error)
		return scratch->error;
	json_str(j, buf_str(scratch));
	*ret_hash = publisher_hash(buf_str(scratch));
	return 0;
}

static int write_items(
	struct publisher *p, struct json_writer *j, struct buf *scratch, int64_t now_ns)
{
	struct candidates *c = &p->candidates;
	size_t n = 0;

	/* The most pressing first: while a refused key is looked for, not all go at once. */
	for (int need = PUBLISH_NOW; need > PUBLISH_NOT; need--)
		for (size_t i = 0; i < c->n && n < p->batch_max; i++) {
			struct candidate *k = &c->all[i];
			uint64_t hash;
			int r;

			if ((int)k->need != need)
				continue;
			r = write_item(k, j, scratch, now_ns, &hash);
			if (r < 0)
				return r;
			publish_item_sent(&k->w->publish, &k->facts, k->reason, hash, now_ns);
			n++;
		}
	p->sent_items = n;
	return 0;
}

static void unmark(struct publisher *p)
{
	for (struct workload *w = p->workloads->first; w; w = w->next)
		publish_item_failed(&w->publish);
}

int publisher_write_patch(struct publisher *p, struct buf *b, int64_t now_ns)
{
	_cleanup_buf_ struct buf scratch = BUF_INIT(ANNOTATION_VALUE_MAX * 2);
	struct json_writer j = JSON_WRITER(b);
	int r;

	json_begin_object(&j);
	json_key(&j, "metadata");
	json_begin_object(&j);
	json_key(&j, "annotations");
	json_begin_object(&j);
	p->agent_sent = p->agent_due;
	if (p->agent_sent)
		write_agent(p, &j, &scratch);
	buf_clear(&p->removals);
	p->sent_items = 0;
	r = scratch.error;
	if (r == 0 && !p->hello)
		r = write_removals(p, &j);
	if (r == 0 && !p->hello)
		r = write_items(p, &j, &scratch, now_ns);
	json_end_object(&j);
	json_end_object(&j);
	json_end_object(&j);
	if (r == 0)
		r = b->error;
	if (r < 0)
		unmark(p);
	return r;
}

void publisher_patch_failed(struct publisher *p, enum publisher_outcome o)
{
	const struct candidates *c = &p->candidates;
	struct workload *only = NULL;

	for (struct workload *w = p->workloads->first; w; w = w->next) {
		only = w->publish.in_flight ? w : only;
		publish_item_failed(&w->publish);
	}
	if (o == PUBLISHER_TOO_LARGE) {
		/* Half of what would be new; if nothing is, an eighth of all. */
		p->room = c->bytes > c->published_bytes
				  ? c->published_bytes + (c->bytes - c->published_bytes) / 2
				  : c->bytes - c->bytes / 8;
	} else if (o == PUBLISHER_INVALID) {
		/* One of these keys: halved until it is alone, and then it is set aside. */
		if (p->sent_items == 1 && only) {
			only->publish.refused = true;
			p->stats.refused++;
			p->batch_max = SIZE_MAX;
			log_warn("the API server does not take the value of %s/%s container %s: "
				 "left out until the agent starts again",
				only->namespace, only->daemonset, only->container);
		} else if (p->sent_items > 1) {
			p->batch_max = p->sent_items / 2;
		}
	}
}

static void tell_removed(struct publisher *p, struct str key)
{
	p->stats.removed++;
	if (p->hooks.removed)
		p->hooks.removed(p->hooks.arg, key);
}

void publisher_patch_done(struct publisher *p)
{
	char key[ANNOTATION_KEY_MAX];

	for (struct workload *w = p->workloads->first; w; w = w->next) {
		if (!w->publish.in_flight)
			continue;
		publish_item_done(&w->publish, p->sent_at_ns);
		if (w->publish.at != TIME_NONE) {
			p->stats.published[w->publish.reason]++;
			if (p->hooks.published)
				p->hooks.published(p->hooks.arg, w);
		} else if (annotation_key(key, str_of(w->namespace), str_of(w->daemonset),
				   str_of(w->container)) == 0) {
			tell_removed(p, str_of(key));
		}
	}
	for (size_t at = 0; at < p->removals.n; at += strlen(p->removals.p + at) + 1)
		tell_removed(p, str_of(p->removals.p + at));
	buf_clear(&p->strays);
	if (p->agent_sent) {
		p->agent_hash = p->agent_sent_hash;
		p->agent_at_ns = p->sent_at_ns;
		p->agent_due = p->agent_lost = false;
	}
	if (p->batch_max < SIZE_MAX / 2)
		p->batch_max *= 2;
	p->stats.last_patch_wall_usec = clock_wall_usec(p->clock);
}
