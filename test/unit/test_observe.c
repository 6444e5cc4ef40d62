/* SPDX-License-Identifier: Apache-2.0 */
/* What observe watches and prints, on recorded trees. With a real kernel: test/kernel. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "agent/observe/observe.h"
#include "base/file.h"
#include "helper_alloc.h"
#include "proto/json_read.h"

static void patterns_choose_cgroups(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool leaf, wanted;
	} cases[] = {
		{NULL, "/a/b", true, true},
		{NULL, "/a", false, false},
		{NULL, "/", true, false},
		{"/a/*", "/a/b", true, true},
		{"/a/*", "/a/b/c", true, true},
		{"/a/*", "/b/a", true, false},
		{"/a", "/a", true, true},
		{"/a", "/a", false, true}, /* named exactly: also with children */
		{"/a*", "/a", false, false},
		{"ctr", "/pod/ctr", true, true},
		{"pod/*", "/node/pod/ctr", true, true},
		{"od/*", "/node/pod/ctr", true, false},
		{"*busy*", "/x/very-busy-one/y", true, true},
		{"/", "/", false, true},
		{"[", "/[", true, true},
		{"", "/a", true, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *patterns[] = {(char *)(uintptr_t)cases[i].pattern, NULL};

		if (observe_wants(patterns, cases[i].path, cases[i].leaf) != cases[i].wanted)
			fail_msg("%s on %s", cases[i].pattern, cases[i].path);
	}
}

/* ---- a recorded tree */

static const char *const directories[] = {"pod", "pod/a", "pod/b", "lone"};
static const struct {
	const char *path, *text;
} files[] = {
	{"pod/memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n"},
	{"pod/a/cpu.stat", "usage_usec 1000000\n"},
	{"pod/a/memory.current", "41943040\n"},
	{"pod/a/memory.stat", "anon 20971520\ninactive_file 20971520\n"},
	{"pod/a/memory.max", "67108864\n"},
	{"pod/a/memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n"},
	{"pod/b/cpu.stat", "usage_usec 5\n"},
	{"lone/cpu.stat", "not what a kernel writes"},
};

struct bed {
	char path[64];
	struct cgroot root;
	struct clock_manual clock;
	struct knobs knobs;
	struct model model;
	struct loop loop;
	struct sampler sampler;
	struct oomwatch watch;
	struct observe_table table;
	struct buf out;
};

static void put(const struct bed *b, const char *path, const char *text)
{
	int fd = openat(b->root.fd, path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, text, strlen(text)), 0);
	(void)close(fd);
}

static void on_killed(struct oomwatch_pod *pod, struct oomwatch_child *child, enum oom_class class,
	bool vanished, void *arg)
{
	struct bed *b = arg;
	struct observed *o = child->owner;

	container_oom(
		&o->container, &b->sampler.io, class, vanished, b->clock.wall_usec * 1000, -1);
	observed_event(o, &b->clock.clock, OBSERVED_OOM, class);
}

static int setup(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));
	const struct oomwatch_events events = {.killed = on_killed, .arg = b};

	assert_non_null(b);
	(void)snprintf(b->path, sizeof(b->path), "/tmp/pernode-observe-XXXXXX");
	assert_non_null(mkdtemp(b->path));
	assert_int_equal(cgroot_open(&b->root, b->path, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		assert_int_equal(mkdirat(b->root.fd, directories[i], 0755), 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		put(b, files[i].path, files[i].text);
	clock_manual_init(&b->clock, INT64_C(1800000000000000));
	b->clock.mono_usec = USEC_PER_MINUTE;
	knobs_defaults(&b->knobs, PROFILE_FINE);
	model_init(&b->model, &b->knobs);
	assert_int_equal(loop_init(&b->loop), 0);
	sampler_init(&b->sampler, &b->clock.clock, USEC_PER_SEC, 10 * USEC_PER_SEC, 16, NULL);
	assert_int_equal(
		oomwatch_init(&b->watch, &b->loop, &b->clock.clock, &b->sampler.io, &events), 0);
	b->table = (struct observe_table){.root = &b->root,
		.clock = &b->clock.clock,
		.knobs = &b->knobs,
		.model = &b->model,
		.sampler = &b->sampler,
		.oomwatch = &b->watch};
	b->out = BUF_INIT(1 << 20);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	observe_table_finish(&b->table);
	assert_null(b->table.pods);
	oomwatch_finish(&b->watch);
	assert_int_equal(b->sampler.io.held, 0);
	sampler_finish(&b->sampler);
	loop_finish(&b->loop);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		(void)unlinkat(b->root.fd, files[i].path, 0);
	for (size_t i = ARRAY_SIZE(directories); i-- > 0;)
		(void)unlinkat(b->root.fd, directories[i], AT_REMOVEDIR);
	cgroot_finish(&b->root);
	assert_int_equal(rmdir(b->path), 0);
	buf_finish(&b->out);
	free(b);
	return 0;
}

static void scan_and_round(struct bed *b)
{
	struct err e;

	assert_int_equal(observe_table_scan(&b->table, &e), 0);
	clock_manual_advance(&b->clock, USEC_PER_SEC);
	sampler_round(&b->sampler);
	oomwatch_look(&b->watch);
}

struct found {
	unsigned int containers, nulls;
	int64_t last_bytes;
};

static int on_value(void *arg, unsigned int id, const struct json_value *v)
{
	struct found *f = arg;

	if (id == 1)
		f->containers += v->type == JSON_STRING;
	else if (v->type == JSON_NULL)
		f->nulls++;
	else
		f->last_bytes++;
	return 0;
}

static void the_document_is_json_and_unknown_is_null(void **state)
{
	static const struct json_path paths[] = {
		{"containers[].cgroup", 1}, {"containers[].memory.last_bytes", 2}};
	static const struct json_spec spec = {
		.paths = paths, .n_paths = ARRAY_SIZE(paths), .value = on_value};
	struct found found = {0};
	struct bed *b = *state;
	struct err e;

	scan_and_round(b);
	scan_and_round(b);
	observe_print_json(&b->table, &b->out);
	if (json_read(&spec, &found, buf_str(&b->out), &e) < 0)
		fail_msg("%s: %s", e.text, b->out.p);
	assert_int_equal(found.containers, 3);
	assert_int_equal(found.nulls, 2); /* two have no memory files */
	assert_int_equal(found.last_bytes, 1);
	assert_non_null(
		strstr(b->out.p, "{\"cgroup\":\"/lone\",\"gone\":false,\"samples\":0,\"cpu\":{"
				 "\"last_millicores\":null},\"memory\":{\"last_bytes\":null},"
				 "\"oomKills\":0,\"events\":[],\"target\":{},\"lowerBound\":{},"
				 "\"upperBound\":{}}"));
	assert_non_null(strstr(b->out.p, "\"limit_bytes\":67108864"));
}

static void containers_of_one_pod_share_its_watch(void **state)
{
	struct bed *b = *state;
	unsigned int pods = 0;

	scan_and_round(b);
	for (struct observed_pod *p = b->table.pods; p; p = p->next)
		pods++;
	assert_int_equal(pods, 2); /* "/pod" and the root */
}

static void a_kill_shows_as_event_and_target(void **state)
{
	struct bed *b = *state;

	scan_and_round(b);
	put(b, "pod/a/memory.events",
		"low 0\nhigh 0\nmax 3\noom 1\noom_kill 5\noom_group_kill 1\n");
	put(b, "pod/memory.events", "low 0\nhigh 0\nmax 3\noom 1\noom_kill 5\noom_group_kill 1\n");
	scan_and_round(b);
	scan_and_round(b);
	observe_print_json(&b->table, &b->out);
	assert_non_null(
		strstr(b->out.p, "\"oomKills\":1,\"events\":[{\"time\":\"2027-01-15T08:00:02Z\","
				 "\"kind\":\"oom\",\"class\":\"limit\"}]"));
	buf_clear(&b->out);
	observe_print_table(&b->table, 0, 0, false, &b->out);
	assert_non_null(strstr(b->out.p, "oom"));
}

static void the_table_fits_the_terminal(void **state)
{
	struct bed *b = *state;
	const char *line;

	scan_and_round(b);
	observe_print_table(&b->table, 5, 80, true, &b->out);
	assert_non_null(strstr(b->out.p, "... and 1 more"));
	for (line = b->out.p; *line; line = strchr(line, '\n') + 1)
		assert_true(strchr(line, '\n') - line <= 80);
}

static void a_directory_that_went_is_let_go_and_one_that_came_joined(void **state)
{
	struct bed *b = *state;

	scan_and_round(b);
	assert_int_equal(b->table.n, 3);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (strncmp(files[i].path, "lone", 4) == 0)
			assert_int_equal(unlinkat(b->root.fd, files[i].path, 0), 0);
	assert_int_equal(unlinkat(b->root.fd, "lone", AT_REMOVEDIR), 0);
	assert_int_equal(mkdirat(b->root.fd, "lone", 0755), 0);
	assert_int_equal(mkdirat(b->root.fd, "lone/child", 0755), 0);
	scan_and_round(b);
	scan_and_round(b);
	/* "/lone" has a child now and is no leaf any more. */
	assert_int_equal(b->table.n, 3);
	observe_print_json(&b->table, &b->out);
	assert_non_null(strstr(b->out.p, "\"/lone/child\""));
	assert_null(strstr(b->out.p, "\"/lone\""));
	assert_int_equal(unlinkat(b->root.fd, "lone/child", AT_REMOVEDIR), 0);
}

static void without_memory_some_cgroups_are_left_out_and_counted(void **state)
{
	struct bed *b = *state;

	ALLOC_FAIL_EACH
	{
		struct observe_table *t = &b->table;

		if (observe_table_scan(t, NULL) == 0 && t->refused == 0)
			sampler_round(&b->sampler);
		for (struct observed *o = t->first; o; o = o->next)
			assert_non_null(o->path);
		observe_table_finish(t);
		assert_null(t->pods);
	}
	scan_and_round(b);
	assert_int_equal(b->table.n, 3);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_choose_cgroups),
		TEST(the_document_is_json_and_unknown_is_null),
		TEST(containers_of_one_pod_share_its_watch),
		TEST(a_kill_shows_as_event_and_target),
		TEST(the_table_fits_the_terminal),
		TEST(a_directory_that_went_is_let_go_and_one_that_came_joined),
		TEST(without_memory_some_cgroups_are_left_out_and_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
