/* SPDX-License-Identifier: Apache-2.0 */
/* Many agents' halves that talk to the API server, in one process: each with a client, a watch of
 * its pods and a publisher of its own, asked for as `pernode-agent run` asks for them. Arguments
 * are name=value: kubeconfig=FILE, agents=N (fewer where descriptors are short), start_spread_ms,
 * first_spread_ms, no_chance=1 (all draw the same number: what a fleet without jitter looks like).
 * Prints "agents N" when all are made, lets them begin with the first line on stdin, and ends in
 * order with stdin, with the sum of what they met. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/pods/podsource.h"
#include "agent/publish/publisher.h"
#include "agent/state/workload.h"
#include "base/loop.h"
#include "base/macros.h"
#include "base/num.h"
#include "net/kube/client.h"
#include "net/kube/reflector.h"

#define DESCRIPTORS_EACH 5U /* a watch, a look, a write, and two with which curl wakes itself */
#define DESCRIPTORS_ELSE 64U

struct member {
	struct fleet *fleet;
	struct kube_client *client;
	struct kube_reflector *reflector;
	struct publisher *publisher;
	struct workloads workloads;
	char name[32];
};

struct fleet {
	struct loop loop;
	struct loop_fd input;
	struct knobs knobs;
	struct publish_pace pace;
	struct member *members;
	uint64_t agents, start_spread_ms, first_spread_ms, no_chance;
	const char *kubeconfig;
	bool begun;
	uint64_t synced, troubles;
};

static uint64_t no_chance(void *arg)
{
	(void)arg;
	return 0;
}

static void ignore(void *arg)
{
	(void)arg;
}

static int take(void *arg, struct str piece, struct err *e)
{
	(void)arg;
	(void)piece;
	(void)e;
	return 0;
}

static int took(void *arg, enum kube_event event, const struct kube_meta *meta, struct err *e)
{
	(void)arg;
	(void)event;
	(void)meta;
	(void)e;
	return 0;
}

static void on_synced(void *arg)
{
	struct member *m = arg;

	m->fleet->synced++;
	publisher_synced(m->publisher);
}

static void on_trouble(void *arg, enum kube_trouble why, const char *text, uint64_t retry_in_usec)
{
	struct member *m = arg;

	(void)why;
	(void)text;
	(void)retry_in_usec;
	m->fleet->troubles++;
}

static int open_client(struct member *m, struct err *e)
{
	const struct kube_client_options options = {.user_agent = "fleet/1.0"};
	struct kube_config config;
	int r = kube_config_from_file(&config, m->fleet->kubeconfig, e);

	if (r < 0)
		return r;
	r = kube_client_create(&m->client, &m->fleet->loop, &config, &options, e);
	if (r < 0)
		kube_config_finish(&config);
	return r;
}

static int begin_member(struct member *m, struct err *e)
{
	const struct fleet *f = m->fleet;
	const struct kube_consumer consumer = {.begin = ignore,
		.object_start = ignore,
		.object_data = take,
		.object_end = took,
		.object_abort = ignore,
		.synced = on_synced,
		.trouble = on_trouble,
		.arg = m};
	const struct publisher_options publish = {.node_name = m->name,
		.version = "1.0",
		.boot_id = "b",
		.random = f->no_chance ? no_chance : NULL,
		.pace = &f->pace,
		.start_spread_usec = f->start_spread_ms * USEC_PER_MSEC};
	struct kube_reflector_options watch;
	char selector[PODSOURCE_SELECTOR_MAX];
	int r;

	podsource_watch_options(&watch, selector, m->name, f->start_spread_ms * USEC_PER_MSEC);
	watch.random = f->no_chance ? no_chance : NULL;
	r = publisher_create(&m->publisher, &m->fleet->loop, m->client, &m->workloads, &publish, e);
	if (r == 0)
		r = kube_reflector_create(
			&m->reflector, &m->fleet->loop, m->client, &watch, &consumer, e);
	return r;
}

static void begin(struct fleet *f)
{
	struct err e = {.text = ""};

	f->begun = true;
	for (uint64_t i = 0; i < f->agents; i++) {
		int r = begin_member(&f->members[i], &e);

		if (r < 0) {
			printf("failed | %s\n", err_text(&e, r));
			loop_stop(&f->loop);
			return;
		}
	}
	puts("begun");
}

static void on_input(void *arg, int status, unsigned int events)
{
	struct fleet *f = arg;
	char line[64];

	(void)events;
	if (status < 0 || read(STDIN_FILENO, line, sizeof(line)) <= 0)
		loop_stop(&f->loop);
	else if (!f->begun)
		begin(f);
}

/* As many as there are descriptors for. */
static void fit(struct fleet *f)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > DESCRIPTORS_ELSE)
		f->agents = MIN(f->agents,
			(uint64_t)(limit.rlim_cur - DESCRIPTORS_ELSE) / DESCRIPTORS_EACH);
}

static int make(struct fleet *f, struct err *e)
{
	int r = 0;

	knobs_defaults(&f->knobs, PROFILE_FINE);
	f->pace = publish_pace_default;
	f->pace.first_spread_usec = f->first_spread_ms * USEC_PER_MSEC;
	f->members = calloc(f->agents, sizeof(*f->members));
	if (!f->members)
		return err_set(e, ENOMEM, "out of memory");
	for (uint64_t i = 0; i < f->agents && r == 0; i++) {
		struct member *m = &f->members[i];

		m->fleet = f;
		(void)snprintf(m->name, sizeof(m->name), "n%llu", (unsigned long long)i);
		workloads_init(&m->workloads, &f->knobs);
		r = open_client(m, e);
	}
	return r;
}

static void unmake(struct fleet *f)
{
	for (uint64_t i = 0; f->members && i < f->agents; i++) {
		kube_reflector_destroy(f->members[i].reflector);
		publisher_destroy(f->members[i].publisher);
		kube_client_destroy(f->members[i].client);
	}
}

static bool argument(struct fleet *f, char *text)
{
	struct str value = str_of(text), name = str_cut(&value, '=');
	const struct {
		const char *name;
		uint64_t *to;
	} numbers[] = {
		{"agents", &f->agents},
		{"start_spread_ms", &f->start_spread_ms},
		{"first_spread_ms", &f->first_spread_ms},
		{"no_chance", &f->no_chance},
	};

	if (str_is(name, "kubeconfig")) {
		f->kubeconfig = value.p;
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (str_is(name, numbers[i].name))
			return parse_u64(value, numbers[i].to) == 0;
	return false;
}

static int run(struct fleet *f, struct err *e)
{
	int r = make(f, e);

	if (r == 0)
		r = loop_fd_init(&f->loop, &f->input, STDIN_FILENO, on_input, f);
	if (r == 0)
		r = loop_fd_set(&f->input, LOOP_READ);
	if (r == 0) {
		printf("agents %llu\n", (unsigned long long)f->agents);
		r = loop_run(&f->loop);
	}
	unmake(f);
	return r;
}

int main(int argc, char **argv)
{
	struct fleet f = {.agents = 1};
	struct err e = {.text = ""};
	int r;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++)
		if (!argument(&f, argv[i])) {
			fprintf(stderr, "fleet: %s?\n", argv[i]);
			return 2;
		}
	if (!f.kubeconfig || loop_init(&f.loop) < 0)
		return 2;
	fit(&f);
	r = run(&f, &e);
	loop_finish(&f.loop);
	for (uint64_t i = 0; f.members && i < f.agents; i++)
		workloads_finish(&f.members[i].workloads);
	free(f.members);
	if (r < 0) {
		printf("failed | %s\n", err_text(&e, r));
		return 1;
	}
	printf("end %llu pictures, %llu troubles\n", (unsigned long long)f.synced,
		(unsigned long long)f.troubles);
	return 0;
}
