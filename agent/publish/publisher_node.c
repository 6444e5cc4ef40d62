/* SPDX-License-Identifier: Apache-2.0 */
/* What the Node holds, against what it should hold. */
#include <errno.h>

#include "agent/publish/publisher_inner.h"
#include "base/log.h"

struct seen_head {
	uint32_t key_n, value_n;
};

uint64_t publisher_hash(struct str s)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < s.n; i++)
		hash = (hash ^ (unsigned char)s.p[i]) * UINT64_C(1099511628211);
	return hash ? hash : 1;
}

void publisher_on_annotation(void *arg, struct str key, struct str value)
{
	struct publisher *p = arg;
	struct seen_head head = {.key_n = (uint32_t)key.n, .value_n = (uint32_t)value.n};

	/* A Node that holds more under our domain than any Node may: the rest counts as not seen.
	 */
	if (p->seen.n + sizeof head + key.n + value.n > p->seen.max)
		return;
	buf_append(&p->seen, &head, sizeof head);
	buf_add(&p->seen, key);
	buf_add(&p->seen, value);
}

static bool seen_next(const struct publisher *p, size_t *at, struct str *key, struct str *value)
{
	struct seen_head head;

	if (*at + sizeof head > p->seen.n)
		return false;
	memcpy(&head, p->seen.p + *at, sizeof head);
	*at += sizeof head;
	*key = (struct str){p->seen.p + *at, head.key_n};
	*at += head.key_n;
	*value = (struct str){p->seen.p + *at, head.value_n};
	*at += head.value_n;
	return true;
}

static bool seen_find(const struct publisher *p, struct str wanted, struct str *ret_value)
{
	struct str key;

	for (size_t at = 0; seen_next(p, &at, &key, ret_value);)
		if (str_eq(key, wanted))
			return true;
	return false;
}

struct workload *publisher_owner(const struct publisher *p, struct str key)
{
	char own[ANNOTATION_KEY_MAX];

	for (struct workload *w = p->workloads->first; w; w = w->next)
		if (annotation_key(own, str_of(w->namespace), str_of(w->daemonset),
			    str_of(w->container)) == 0 &&
			str_eq(str_of(own), key))
			return w;
	return NULL;
}

static int64_t amount_of(int64_t value)
{
	int64_t known = MAX(value, INT64_C(0));

	return MIN(known, AMOUNT_MAX);
}

static struct amounts amounts_of(const struct quantity_pair *q)
{
	return (struct amounts){
		.value = {amount_of(q->cpu_millicores), amount_of(q->memory_bytes)},
		.known = {q->cpu_millicores >= 0, q->memory_bytes >= 0},
	};
}

static enum publish_reason reason_of(enum annotation_reason r)
{
	switch (r) {
	case ANNOTATION_REASON_FIRST:
		return PUBLISH_FIRST;
	case ANNOTATION_REASON_THROTTLED:
		return PUBLISH_THROTTLED;
	case ANNOTATION_REASON_OOM:
		return PUBLISH_OOM;
	case ANNOTATION_REASON_AHEAD_OF_OOM:
		return PUBLISH_AHEAD_OF_OOM;
	default:
		return PUBLISH_USAGE;
	}
}

static int64_t count_of(uint64_t n)
{
	return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

/* What is on the Node is what was published, though we do not remember it. */
static void adopt(struct workload *w, const struct annotation_value *v, uint64_t hash)
{
	struct publish_item *i = &w->publish;
	bool urgent = i->urgent;
	enum publish_reason urgent_reason = i->urgent_reason;

	publish_item_init(i);
	i->published.amounts[BOUND_TARGET] = amounts_of(&v->target);
	i->published.amounts[BOUND_LOWER] = amounts_of(&v->lower);
	i->published.amounts[BOUND_UPPER] = amounts_of(&v->upper);
	i->at = v->at_ns == TIME_NONE ? 0 : v->at_ns;
	i->oom_kills = count_of(v->oom_kills);
	i->samples = count_of(v->samples);
	i->throttled_minutes = w->usage.throttled_minutes;
	i->reason = reason_of(v->reason);
	i->hash = hash;
	i->urgent = urgent;
	i->urgent_reason = urgent_reason;
}

static void add_stray(struct publisher *p, struct str key)
{
	if (p->strays.n + key.n + 1 > p->strays.max || memchr(key.p, '\0', key.n))
		return;
	buf_append(&p->strays, key.p, key.n);
	buf_putc(&p->strays, '\0');
}

/* A recommendation on the Node that no item stands for. trusted: by an agent of this very node. */
static void look_at_unknown(struct publisher *p, struct str key, struct str text,
	struct workload *w, bool trusted, bool first)
{
	struct annotation_names names;
	struct annotation_value v;

	if (annotation_key_parse(key, &names) != ANNOTATION_IS_RECOMMENDATION)
		return;
	if (annotation_value_read(text, &v, NULL) < 0) {
		p->stats.unreadable++;
		log_warn("the node's annotation %.*s is no value of ours: ignored, and %s",
			STR_ARG(key), w ? "written anew when there is one" : "removed");
		trusted = false;
	}
	if (trusted && first && p->hooks.found) {
		struct workload *made = p->hooks.found(p->hooks.arg, &names, &v);

		w = w ? w : made;
		/* Whether it left is told from now on. */
		if (w && w->seen_at_ns == TIME_NONE)
			w->seen_at_ns = clock_wall_usec(p->clock) * NSEC_PER_USEC;
	}
	if (!w)
		add_stray(p, key);
	else if (trusted && first)
		adopt(w, &v, publisher_hash(text));
	/* else: a value of somebody else under a key that will be ours with the first value. */
}

/* Whether the Node holds the item as it was sent. Each value tells its time, so no other patch of
 * ours made the same. */
static bool holds_sent(const struct publisher *p, const struct workload *w)
{
	char key[ANNOTATION_KEY_MAX];
	struct str text;

	if (annotation_key(key, str_of(w->namespace), str_of(w->daemonset), str_of(w->container)) <
		0)
		return false;
	if (!seen_find(p, str_of(key), &text))
		return w->publish.sent_withdrawn;
	return publisher_hash(text) == w->publish.sent_hash;
}

/* A patch is taken whole or not at all: one value of it is proof. Keys that are gone are none,
 * unless it did nothing else. */
static bool was_taken(const struct publisher *p)
{
	bool says_something = p->agent_sent, gone = true;
	struct str text;

	if (p->agent_sent && seen_find(p, STR(ANNOTATION_AGENT), &text) &&
		publisher_hash(text) == p->agent_sent_hash)
		return true;
	for (const struct workload *w = p->workloads->first; w; w = w->next) {
		if (!w->publish.in_flight)
			continue;
		if (w->publish.sent_withdrawn) {
			gone = gone && holds_sent(p, w);
			continue;
		}
		if (holds_sent(p, w))
			return true;
		says_something = true;
	}
	for (size_t at = 0; at < p->removals.n; at += strlen(p->removals.p + at) + 1)
		gone = gone && !seen_find(p, str_of(p->removals.p + at), &text);
	return !says_something && gone;
}

bool publisher_settle(struct publisher *p)
{
	bool taken = was_taken(p);

	for (struct workload *w = p->workloads->first; w; w = w->next)
		if (w->publish.in_flight && !(taken && holds_sent(p, w)))
			publish_item_failed(&w->publish);
	return taken;
}

/* Was it an agent on this node and this machine that wrote what is there? */
static bool written_here(const struct publisher *p)
{
	struct annotation_agent a;
	struct str text;

	return seen_find(p, STR(ANNOTATION_AGENT), &text) &&
	       annotation_agent_read(text, &a, NULL) == 0 &&
	       str_is(str_of(a.node_uid), p->node_uid) &&
	       (!p->machine[0] || !a.machine[0] || str_is(str_of(a.machine), p->machine));
}

/* True when the Node was not known before: at the first look, or because it is another one. */
static bool identify(struct publisher *p, const struct node *node)
{
	char machine[sizeof p->machine];

	annotation_machine_hash(machine, str_of(node->machine_id));
	if (p->identified && str_is(str_of(p->node_uid), node->uid) &&
		(!machine[0] || str_is(str_of(p->machine), machine)))
		return false;
	if (p->identified) {
		log_warn("the node %s is another object now (UID %s, was %s): everything is "
			 "published again",
			p->node_name, node->uid, p->node_uid);
		p->agent_due = true;
		p->agent_lost = false;
	}
	p->identified = true;
	snprintf(p->node_uid, sizeof p->node_uid, "%s", node->uid);
	snprintf(p->machine, sizeof p->machine, "%s", machine);
	if (!p->boot_id[0]) {
		char *boot_id = str_dup(str_of(node->boot_id));

		if (boot_id) {
			free(p->boot_id);
			p->boot_id = boot_id;
		}
	}
	if (p->hooks.identified)
		p->hooks.identified(p->hooks.arg, p->node_uid, p->machine);
	return true;
}

/* A patch that was taken after the last checkpoint: newer than what we remember. */
static bool is_newer(const struct publish_item *i, struct str text, struct annotation_value *v)
{
	return annotation_value_read(text, v, NULL) == 0 && v->at_ns != TIME_NONE &&
	       v->at_ns > i->at;
}

/* first: nothing was compared since the start; other_node: there is a new Node object. */
static void compare_item(
	struct publisher *p, struct workload *w, bool first, bool trusted, bool other_node)
{
	struct publish_item *i = &w->publish;
	struct annotation_value v;
	char key[ANNOTATION_KEY_MAX];
	struct str text = {NULL, 0};
	bool there;

	if (i->at == TIME_NONE || i->in_flight ||
		annotation_key(
			key, str_of(w->namespace), str_of(w->daemonset), str_of(w->container)) < 0)
		return;
	if (other_node)
		i->trembled_at = TIME_NONE;
	there = seen_find(p, str_of(key), &text);
	if (there && publisher_hash(text) == i->hash) {
		i->lost = false;
	} else if (there && first && trusted && is_newer(i, text, &v)) {
		adopt(w, &v, publisher_hash(text));
	} else if (!i->lost) {
		publish_item_lost(i);
		p->stats.lost++;
	}
}

static bool tells_the_same(const struct publisher *p, struct str text)
{
	struct annotation_agent there, ours;

	if (annotation_agent_read(text, &there, NULL) < 0)
		return false;
	publisher_agent(p, &ours);
	return str_is(str_of(there.version), ours.version) &&
	       str_is(str_of(there.node_uid), ours.node_uid) &&
	       str_is(str_of(there.machine), ours.machine) &&
	       str_is(str_of(there.boot_id), ours.boot_id) &&
	       str_is(str_of(there.state), ours.state) && str_is(str_of(there.reason), ours.reason);
}

static void compare_agent(struct publisher *p)
{
	struct str text;

	p->agent_told = seen_find(p, STR(ANNOTATION_AGENT), &text) && tells_the_same(p, text);
	if (p->agent_due || (seen_find(p, STR(ANNOTATION_AGENT), &text) &&
				    publisher_hash(text) == p->agent_hash))
		return;
	p->stats.lost++;
	p->agent_due = true;
	p->agent_lost = true;
}

/* What others have on the Node is not for us. A room that the server found too large stays as it
 * was cut. */
static void measure_room(struct publisher *p, const struct node *node)
{
	size_t others = MAX(node->other_annotations_bytes, (size_t)PUBLISHER_AGENT_BYTES);
	bool cut = p->room < p->room_max;

	p->room_max = others < PUBLISHER_ROOM_BYTES ? PUBLISHER_ROOM_BYTES - others : 0;
	p->room = cut ? MIN(p->room, p->room_max) : p->room_max;
}

void publisher_compare(struct publisher *p, const struct node *node)
{
	bool first = !p->identified, changed = identify(p, node);
	bool trusted = written_here(p);
	struct str key, text;

	for (struct workload *w = p->workloads->first; w; w = w->next)
		compare_item(p, w, first, trusted, changed && !first);
	buf_clear(&p->strays);
	for (size_t at = 0; seen_next(p, &at, &key, &text);) {
		struct workload *w = publisher_owner(p, key);

		if (!w || w->publish.at == TIME_NONE)
			look_at_unknown(p, key, text, w, trusted, first);
	}
	compare_agent(p);
	measure_room(p, node);
}
