/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "agent/agent.h"

typedef void (*health_fn)(void *fn_arg, const struct health_item *item);

static void tell(health_fn fn, void *fn_arg, const char *name, enum health health, const char *text)
{
	struct health_item item = {.name = name, .health = health, .text = text};

	fn(fn_arg, &item);
}

static void pods_health(const struct agent *a, health_fn fn, void *fn_arg)
{
	const char *trouble = a->podsource ? podsource_trouble(a->podsource) : "";
	struct err text = {""};

	if (a->tracker.synced && !trouble[0]) {
		tell(fn, fn_arg, "pods", HEALTH_OK, "");
		return;
	}
	if (a->tracker.synced || a->tracker.pods.n > 0) {
		(void)err_set(&text, EAGAIN, "%u pods as last known%s%s", a->tracker.pods.n,
			trouble[0] ? "; " : "", trouble);
		tell(fn, fn_arg, "pods", HEALTH_NOTE, text.text);
		return;
	}
	(void)err_set(&text, EAGAIN, "the pods of this node are not known yet%s%s",
		trouble[0] ? ": " : "", trouble);
	tell(fn, fn_arg, "pods", HEALTH_NOT_READY, text.text);
}

static void containers_health(const struct agent *a, health_fn fn, void *fn_arg)
{
	unsigned int n, sampled;
	struct err text = {""};

	tracker_count(&a->tracker, &n, &sampled);
	if (n == sampled) {
		tell(fn, fn_arg, "containers", HEALTH_OK, "");
		return;
	}
	(void)err_set(&text, ENOENT,
		"%u of %u containers are measured; /v1/containers says why not the others", sampled,
		n);
	tell(fn, fn_arg, "containers", HEALTH_NOTE, text.text);
}

void agent_each_health(void *arg, health_fn fn, void *fn_arg)
{
	const struct agent *a = arg;
	const char *text = "";

	pods_health(a, fn, fn_arg);
	tell(fn, fn_arg, "cgroup", a->unsupported.text[0] ? HEALTH_NOTE : HEALTH_OK,
		a->unsupported.text);
	containers_health(a, fn, fn_arg);
	tell(fn, fn_arg, "state", a->store.trouble.text[0] ? HEALTH_NOTE : HEALTH_OK,
		a->store.trouble.text);
	if (a->publisher) {
		enum health health = publisher_health(a->publisher, &text);
		tell(fn, fn_arg, "publish", health, text);
	}
}
