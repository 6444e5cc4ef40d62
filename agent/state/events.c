/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state/events.h"

#include <stdlib.h>
#include <string.h>

#define NAME_CUT 253U /* the longest name of a Kubernetes object */

const char *event_kind_name(enum event_kind kind)
{
	static const char *const names[EVENT_KINDS] = {
		[EVENT_KIND_OOM] = "oom",
		[EVENT_KIND_AHEAD] = "ahead-of-oom",
		[EVENT_KIND_PUBLISHED] = "published",
		[EVENT_KIND_REMOVED] = "removed",
		[EVENT_KIND_RESTARTED] = "restarted",
		[EVENT_KIND_SETTINGS] = "settings",
		[EVENT_KIND_CLOCK] = "clock",
		[EVENT_KIND_NODE] = "node",
	};

	return (unsigned int)kind < EVENT_KINDS ? names[kind] : "unknown";
}

void events_init(struct events *e)
{
	memset(e, 0, sizeof(*e));
}

void events_finish(struct events *e)
{
	for (unsigned int i = 0; i < EVENTS_MAX; i++)
		free(e->strings[i]);
	events_init(e);
}

/* Cuts s to max bytes, and not in the middle of a UTF-8 character. */
static struct str cut(struct str s, size_t max)
{
	if (s.n > max) {
		s.n = max;
		while (s.n > 0 && ((unsigned char)s.p[s.n] & 0xc0) == 0x80)
			s.n--;
	}
	return s;
}

void events_add(struct events *e, const struct event *event)
{
	struct event copy = *event;
	struct {
		struct str *s;
		size_t max;
	} texts[] = {
		{&copy.namespace, NAME_CUT},
		{&copy.daemonset, NAME_CUT},
		{&copy.container, NAME_CUT},
		{&copy.pod, NAME_CUT},
		{&copy.text, EVENT_TEXT_MAX_BYTES},
	};
	unsigned int at = (unsigned int)(e->added % EVENTS_MAX);
	size_t n = 1; /* never nothing: malloc(0) may be NULL */
	char *p, *block;

	e->of_kind[event->kind]++;
	for (enum oom_class c = 0; event->kind == EVENT_KIND_OOM && c < OOM_CLASSES; c++)
		e->oom_of_class[c] += !strcmp(event->detail, oom_class_name(c));
	for (unsigned int i = 0; i < ARRAY_SIZE(texts); i++) {
		*texts[i].s = cut(*texts[i].s, texts[i].max);
		n += texts[i].s->n;
	}
	p = block = malloc(n);
	if (!block) {
		e->lost++;
		return;
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(texts); i++) {
		struct str *s = texts[i].s;

		if (s->n)
			memcpy(p, s->p, s->n);
		s->p = p;
		p += s->n;
	}
	free(e->strings[at]);
	e->strings[at] = block;
	e->ring[at] = copy;
	e->added++;
}

unsigned int events_n(const struct events *e)
{
	return (unsigned int)MIN(e->added, (uint64_t)EVENTS_MAX);
}

const struct event *events_get(const struct events *e, unsigned int i)
{
	return i < events_n(e) ? &e->ring[(e->added - 1 - i) % EVENTS_MAX] : NULL;
}
