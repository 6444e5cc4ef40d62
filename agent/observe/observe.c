/* SPDX-License-Identifier: Apache-2.0 */
/* The verb observe: what the cgroups of this machine need, with no cluster. */
#include "agent/observe/observe.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "agent/options.h"
#include "agent/verbs.h"
#include "base/file.h"
#include "base/log.h"

#define OUTPUT_MAX (32U << 20)
#define OTHER_DESCRIPTORS 64U /* not for sampling: standard streams, the loop, the walk */

enum output { OUTPUT_TEXT, OUTPUT_JSON, OUTPUT_JSONL };

struct settings {
	struct knobs knobs; /* first: see knobs_flags */
	struct common_settings common;
	const char *cgroup_root;
	int64_t interval_ns, duration_ns, cpu_window_ns;
	int output; /* enum output */
};

struct observe {
	const struct settings *settings;
	struct loop loop;
	struct cgroot root;
	struct sampler sampler;
	struct oomwatch oomwatch;
	struct model model;
	struct observe_table table;
	struct loop_timer round, fast;
	uint64_t start_usec, round_usec;
	bool terminal, colour;
	struct buf out;
	int error;
};

/* ---- output */

static void put(struct observe *v)
{
	int r = v->out.error ? v->out.error : write_full(STDOUT_FILENO, v->out.p, v->out.n);

	if (r < 0) {
		v->error = r;
		loop_stop(&v->loop);
	}
	buf_clear(&v->out);
}

static void show_live(struct observe *v)
{
	struct winsize size = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row)
		size = (struct winsize){.ws_row = 24, .ws_col = 80};
	(void)buf_puts(&v->out, "\033[H\033[J");
	observe_print_table(&v->table, size.ws_row, size.ws_col, v->colour, &v->out);
	put(v);
}

static void show_round(struct observe *v)
{
	if (v->settings->output == OUTPUT_JSONL) {
		observe_print_json(&v->table, &v->out);
		put(v);
	} else if (v->settings->output == OUTPUT_TEXT && v->terminal) {
		show_live(v);
	}
}

static void show_end(struct observe *v)
{
	if (v->settings->output == OUTPUT_TEXT) {
		if (v->terminal)
			(void)buf_puts(&v->out, "\033[H\033[J");
		observe_print_table(&v->table, 0, 0, v->colour, &v->out);
	} else {
		observe_print_json(&v->table, &v->out);
	}
	put(v);
}

/* ---- what the parts report */

static void arm_fast(struct observe *v)
{
	if (v->sampler.n_fast > 0 && !loop_timer_armed(&v->fast) &&
		(uint64_t)v->settings->interval_ns / NSEC_PER_USEC > FAST_INTERVAL_USEC)
		loop_timer_set(&v->fast, FAST_INTERVAL_USEC);
}

static void on_fast(void *arg)
{
	struct observe *v = arg;

	sampler_round_fast(&v->sampler);
	arm_fast(v);
}

static void on_gone(struct container *c, void *arg)
{
	struct observe *v = arg;

	observed_event(c->owner, v->table.clock, OBSERVED_GONE, OOM_CLASSES);
}

static void on_ahead(struct container *c, int64_t t_ns, void *arg)
{
	struct observe *v = arg;

	(void)t_ns;
	observed_event(c->owner, v->table.clock, OBSERVED_AHEAD, OOM_CLASSES);
}

/* The wall clock was set: what is remembered keeps its age. */
static void on_clock_jumped(int64_t by_ns, void *arg)
{
	struct observe *v = arg;

	log_warn("the clock was set by %+lld ms", (long long)(by_ns / 1000000));
	for (struct observed *o = v->table.first; o; o = o->next)
		usage_shift(&o->usage, by_ns);
}

/* It ran into its limit: with page cache, or for good. */
static void on_limit_hit(struct oomwatch_child *child, void *arg)
{
	struct observe *v = arg;
	struct observed *o = child->owner;

	sampler_look(&v->sampler, &o->container);
	arm_fast(v);
}

static void on_killed(struct oomwatch_pod *pod, struct oomwatch_child *child, enum oom_class class,
	bool vanished, void *arg)
{
	struct observe *v = arg;
	struct observed *o = child ? child->owner : NULL;
	const struct observed_pod *p = pod->owner;

	if (!o) {
		log_warn("%s: a cgroup that came and went unseen was OOM-killed there (%s)",
			p->path, oom_class_name(class));
		return;
	}
	container_oom(&o->container, &v->sampler.io, class, vanished,
		clock_wall_usec(v->table.clock) * NSEC_PER_USEC, -1);
	observed_event(o, v->table.clock, OBSERVED_OOM, class);
	if (v->terminal)
		show_live(v);
}

/* ---- rounds */

/* Rounds keep to multiples of the interval since the start, however long one takes. */
static void arm_round(struct observe *v)
{
	uint64_t interval = (uint64_t)v->settings->interval_ns / NSEC_PER_USEC;
	uint64_t now = clock_mono_usec(v->table.clock) - v->start_usec;
	uint64_t duration = (uint64_t)v->settings->duration_ns / NSEC_PER_USEC;
	uint64_t next = (now / interval + 1) * interval;

	if (duration > 0 && now >= duration) {
		loop_stop(&v->loop);
		return;
	}
	if (duration > 0)
		next = MIN(next, duration);
	loop_timer_set(&v->round, next - now);
}

static void on_round(void *arg)
{
	struct observe *v = arg;
	struct err e;

	if (observe_table_scan(&v->table, &e) < 0) {
		log_error("%s", e.text);
		v->error = -EIO;
		loop_stop(&v->loop);
		return;
	}
	v->round_usec = clock_mono_usec(v->table.clock);
	sampler_round(&v->sampler);
	oomwatch_look(&v->oomwatch);
	show_round(v);
	arm_fast(v);
	arm_round(v);
}

static int run(struct observe *v)
{
	struct err e;

	v->start_usec = clock_mono_usec(v->table.clock);
	if (observe_table_scan(&v->table, &e) < 0) {
		log_error("%s", e.text);
		return -EIO;
	}
	if (v->settings->output == OUTPUT_TEXT && v->terminal)
		show_live(v);
	arm_round(v);
	(void)loop_run(&v->loop);
	if (v->error)
		return v->error;
	oomwatch_look(&v->oomwatch);
	/* When a signal ended it, the last round may be long ago. */
	if (clock_mono_usec(v->table.clock) - v->round_usec >
		(uint64_t)v->settings->interval_ns / NSEC_PER_USEC / 2)
		sampler_round(&v->sampler);
	sampler_close_windows(&v->sampler);
	show_end(v);
	return v->error;
}

static int start(struct observe *v, char **patterns)
{
	const struct sampler_events sampler_events = {
		.gone = on_gone, .ahead = on_ahead, .clock_jumped = on_clock_jumped, .arg = v};
	const struct oomwatch_events oomwatch_events = {
		.killed = on_killed, .limit_hit = on_limit_hit, .arg = v};
	const struct settings *s = v->settings;
	int r = loop_init(&v->loop);

	if (r < 0)
		return r;
	model_init(&v->model, &s->knobs);
	sampler_init(&v->sampler, &clock_system, (uint64_t)s->interval_ns / NSEC_PER_USEC,
		(uint64_t)s->cpu_window_ns / NSEC_PER_USEC, OTHER_DESCRIPTORS, &sampler_events);
	r = oomwatch_init(&v->oomwatch, &v->loop, &clock_system, &v->sampler.io, &oomwatch_events);
	if (r == 0)
		r = loop_timer_init(&v->loop, &v->round, on_round, v);
	if (r == 0)
		r = loop_timer_init(&v->loop, &v->fast, on_fast, v);
	v->table = (struct observe_table){.root = &v->root,
		.clock = &clock_system,
		.knobs = &s->knobs,
		.model = &v->model,
		.patterns = patterns,
		.sampler = &v->sampler,
		.oomwatch = &v->oomwatch};
	v->terminal = s->output == OUTPUT_TEXT && isatty(STDOUT_FILENO);
	v->colour = v->terminal && !getenv("NO_COLOR");
	return r;
}

static int observe(const struct settings *settings, char **patterns)
{
	_cleanup_free_ struct observe *v = calloc(1, sizeof(*v));
	struct err e;
	int r;

	if (!v)
		return -ENOMEM;
	v->settings = settings;
	v->out = BUF_INIT(OUTPUT_MAX);
	v->root.fd = -1;
	r = cgroot_open(&v->root, settings->cgroup_root, &e);
	if (r == 0)
		r = cgroot_check(&v->root, &e);
	if (r < 0) {
		log_error("%s", e.text);
		cgroot_finish(&v->root);
		return r;
	}
	r = start(v, patterns);
	if (r == 0)
		r = run(v);
	if (r < 0 && r != -EPIPE)
		log_error("observe: %s", strerror(-r));
	observe_table_finish(&v->table);
	oomwatch_finish(&v->oomwatch);
	sampler_finish(&v->sampler);
	loop_finish(&v->loop);
	cgroot_finish(&v->root);
	buf_finish(&v->out);
	return r;
}

static const char *const output_names[] = {"text", "json", "jsonl", NULL};

static const struct flag flags[] = {
	{.name = "cgroup-root",
		.kind = FLAG_STRING,
		.offset = offsetof(struct settings, cgroup_root),
		.value_name = "PATH",
		.help = "the mount point of cgroup v2, or a directory below it (default: the "
			"mounted one)"},
	{.name = "interval",
		.kind = FLAG_DURATION,
		.offset = offsetof(struct settings, interval_ns),
		.default_text = "1s",
		.value_name = "DURATION",
		.min = 100 * INT64_C(1000000),
		.max = 3600 * NSEC_PER_SEC,
		.help = "time between two readings"},
	{.name = "duration",
		.kind = FLAG_DURATION,
		.offset = offsetof(struct settings, duration_ns),
		.default_text = "60s",
		.value_name = "DURATION",
		.min = 0,
		.max = INT64_MAX,
		.help = "how long to watch; 0: until interrupted"},
	{.name = "cpu-window",
		.kind = FLAG_DURATION,
		.offset = offsetof(struct settings, cpu_window_ns),
		.default_text = "10s",
		.value_name = "DURATION",
		.min = 1 * NSEC_PER_SEC,
		.max = 3600 * NSEC_PER_SEC,
		.help = "time whose mean is one CPU sample; a minute counts fully for confidence"},
	{.name = "output",
		.kind = FLAG_CHOICE,
		.offset = offsetof(struct settings, output),
		.default_text = "text",
		.value_name = "FORMAT",
		.choices = output_names,
		.help = "text: a table; json: one document at the end; jsonl: one per interval"},
	COMMON_FLAGS(struct settings, common),
	{0},
};

int verb_observe(int argc, char **argv)
{
	static const struct flag *const tables[] = {flags, knobs_flags, NULL};
	struct settings settings = {0};
	struct flag_set set = {.verb = "observe",
		.summary = "Watches cgroups of this machine and says what each needs. A PATTERN is "
			   "a glob "
			   "on the path of a cgroup; without one every leaf is watched.",
		.arguments = "[PATTERN…]",
		.example = "pernode-agent observe --duration=5m '/system.slice/*'",
		.tables = tables,
		.settings = &settings};
	struct err e;
	int first, code;

	knobs_unset(&settings.knobs);
	if (!options_read(&set, &settings.common, argc, argv, &first, &code))
		return code;
	if (knobs_resolve(&settings.knobs, &e) < 0) {
		fprintf(stderr, "pernode-agent observe: %s\n", e.text);
		return EXIT_USAGE;
	}
	return observe(&settings, argv + first) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
