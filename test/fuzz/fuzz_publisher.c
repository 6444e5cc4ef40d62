/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as what the API server answers when the publisher reads its Node or patches it: a wait
 * at worst. The first byte of each answer says how it ends; a byte of 0 ends the answer. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/publish/publisher_inner.h"
#include "base/log.h"

#define ANSWERS_MAX 24

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct server {
	struct kube_request request;
	bool busy;
	struct workloads workloads;
};

static void no_log(const char *line, size_t n, void *arg)
{
}

static uint64_t no_chance(void *arg)
{
	return UINT64_MAX / 3;
}

static int start(void *arg, const struct kube_request *request, struct err *e)
{
	struct server *s = arg;

	if (s->busy)
		abort();
	s->busy = true;
	s->request = *request;
	return 0;
}

static void cancel(void *arg)
{
	((struct server *)arg)->busy = false;
}

static struct workload *found(
	void *arg, const struct annotation_names *names, const struct annotation_value *value)
{
	struct server *s = arg;
	struct workload *w;

	return workloads_get(&s->workloads, names->namespace, names->daemonset, names->container,
		       &w, NULL) < 0
		       ? NULL
		       : w;
}

static void answer(struct server *s, struct str text)
{
	static const int errors[] = {0, 0, 0, 0, -ETIMEDOUT, -ECONNRESET, -EPROTO};
	static const unsigned int status[] = {200, 200, 200, 404, 409, 422, 429, 500};
	unsigned int kind = text.n ? (unsigned char)text.p[0] : 0;
	struct kube_answer a = {.error = errors[kind % ARRAY_SIZE(errors)],
		.status = status[kind / 8 % ARRAY_SIZE(status)],
		.text = ""};

	text = text.n ? (struct str){text.p + 1, text.n - 1} : text;
	s->busy = false;
	if (a.error)
		a.status = 0;
	else
		while (text.n) { /* in two pieces at least */
			size_t n = (text.n + 1) / 2;

			if (s->request.data(s->request.arg, (struct str){text.p, n}) < 0)
				break;
			text = (struct str){text.p + n, text.n - n};
		}
	s->request.done(s->request.arg, &a);
}

static void converse(
	struct publisher *p, struct server *s, struct clock_manual *clock, struct str all)
{
	for (int i = 0; i < ANSWERS_MAX; i++) {
		if (p->wake_usec > clock->mono_usec)
			clock_manual_advance(clock, p->wake_usec - clock->mono_usec);
		publisher_turn(p);
		if (s->busy)
			answer(s, str_cut(&all, '\0'));
		if (i == 2)
			publisher_synced(p);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct server server = {.busy = false};
	const struct publisher_port port = {start, cancel, &server};
	struct clock_manual clock;
	struct publisher_options o = {.node_name = "n",
		.version = "1",
		.boot_id = "b",
		.clock = &clock.clock,
		.random = no_chance,
		.hooks = {.found = found, .arg = &server},
		.port = &port};
	struct publisher *p;
	struct knobs knobs;
	struct loop loop;

	log_to(no_log, NULL);
	if (loop_init(&loop) < 0)
		abort();
	clock_manual_init(&clock, INT64_C(1800000000000000));
	clock_manual_advance(&clock, USEC_PER_HOUR);
	knobs_defaults(&knobs, PROFILE_FINE);
	workloads_init(&server.workloads, &knobs);
	if (publisher_create(&p, &loop, NULL, &server.workloads, &o, NULL) == 0) {
		converse(p, &server, &clock, (struct str){(const char *)data, size});
		publisher_destroy(p);
	}
	loop_finish(&loop);
	workloads_finish(&server.workloads);
	return 0;
}
