/* SPDX-License-Identifier: Apache-2.0 */
/* The verb preflight: what this machine offers, what is missing, and what to do about it. */
#include <errno.h>
#include <fcntl.h>
#include <libcgroup.h>
#include <string.h>
#include <sys/utsname.h>

#include "agent/cgfile.h"
#include "agent/cgroot.h"
#include "agent/options.h"
#include "agent/verbs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/num.h"

#define CHECKS_MAX 16U
#define KERNEL_FILE_MAX 8192U

enum verdict { CHECK_OK, CHECK_WARN, CHECK_FAIL };
static const char *const verdict_names[] = {"ok", "warn", "fail"};

struct check {
	const char *name;
	enum verdict verdict;
	char found[320];
	const char *advice; /* NULL when there is nothing to do */
};

struct report {
	struct check checks[CHECKS_MAX];
	size_t n;
};

struct settings {
	struct common_settings common;
	const char *cgroup_root;
	const char *state_dir;
	int output;
};

static _printf_(5, 6) void add(struct report *r, const char *name, enum verdict verdict,
	const char *advice, const char *format, ...)
{
	struct check *c = &r->checks[r->n];
	va_list ap;

	if (r->n >= CHECKS_MAX)
		return;
	r->n++;
	*c = (struct check){.name = name, .verdict = verdict, .advice = advice};
	va_start(ap, format);
	(void)vsnprintf(c->found, sizeof(c->found), format, ap);
	va_end(ap);
}

/* "6.1.0-13-amd64" → 6, 1 */
static bool kernel_version(const char *release, uint64_t *major, uint64_t *minor)
{
	struct str rest = str_of(release), first = str_cut(&rest, '.');
	size_t digits = 0;

	while (digits < rest.n && rest.p[digits] >= '0' && rest.p[digits] <= '9')
		digits++;
	rest.n = digits;
	return parse_u64(first, major) == 0 && parse_u64(rest, minor) == 0;
}

static void check_kernel(struct report *report)
{
	struct utsname u;
	uint64_t major, minor;

	if (uname(&u) < 0 || !kernel_version(u.release, &major, &minor)) {
		add(report, "kernel", CHECK_WARN, NULL, "version not understood");
		return;
	}
	if (major < 5 || (major == 5 && minor < 2))
		add(report, "kernel", CHECK_FAIL, "use Linux 5.2 or newer (5.19 for all features)",
			"Linux %s has no memory.events.local", u.release);
	else if (major == 5 && minor < 19)
		add(report, "kernel", CHECK_WARN, "Linux 5.19 or newer also gives memory.peak",
			"Linux %s", u.release);
	else
		add(report, "kernel", CHECK_OK, NULL, "Linux %s", u.release);
}

/* What libcgroup finds, as a second opinion: it sees the machine as other cgroup tools do. */
static void check_controllers_known(struct report *report)
{
	struct controller_data info;
	char names[200] = "";
	size_t n = 0;
	void *handle = NULL;
	int r = cgroup_init();

	if (r) {
		add(report, "libcgroup", CHECK_WARN, "other cgroup tools will fail here as well",
			"%s", cgroup_strerror(r));
		return;
	}
	for (r = cgroup_get_all_controller_begin(&handle, &info); r == 0;
		r = cgroup_get_all_controller_next(&handle, &info)) {
		int written = info.enabled && n < sizeof(names)
				      ? snprintf(names + n, sizeof(names) - n, "%s%s", n ? " " : "",
						info.name)
				      : 0;

		n += written > 0 ? (size_t)written : 0;
	}
	(void)cgroup_get_all_controller_end(&handle);
	add(report, "libcgroup", CHECK_OK, NULL, "controllers of this kernel: %s", names);
}

static int read_at(int fd, const char *name, struct buf *b)
{
	buf_clear(b);
	return file_read(fd, name, b, NULL);
}

static bool check_root(struct report *report, const char *path, struct cgroot *root)
{
	struct err e;

	if (cgroot_open(root, path, &e) < 0 || cgroot_check(root, &e) < 0) {
		add(report, "cgroup", CHECK_FAIL, "run the node with cgroup v2 (unified hierarchy)",
			"%s", e.text);
		return false;
	}
	if (root->kind == CGROOT_PLAIN) {
		add(report, "cgroup", CHECK_FAIL, "give the mount point of cgroup v2",
			"%.200s is not a cgroup v2 file system", root->path);
		return false;
	}
	add(report, "cgroup", CHECK_OK, NULL, "cgroup v2 at %.200s", root->path);
	return true;
}

static void check_controllers(struct report *report, int fd, const char *file, const char *where)
{
	_cleanup_buf_ struct buf b = BUF_INIT(KERNEL_FILE_MAX);
	bool cpu, memory;

	if (read_at(fd, file, &b) < 0) {
		add(report, "controllers", CHECK_FAIL, "mount the whole tree readable",
			"%s of %.200s cannot be read", file, where);
		return;
	}
	cpu = cgfile_has_controller(buf_str(&b), "cpu");
	memory = cgfile_has_controller(buf_str(&b), "memory");
	if (cpu && memory)
		add(report, "controllers", CHECK_OK, NULL, "cpu and memory are on below %.200s",
			where);
	else
		add(report, "controllers", memory ? CHECK_WARN : CHECK_FAIL,
			"the kubelet turns them on (cgroupsPerQOS: true); elsewhere: echo "
			"'+cpu +memory' > cgroup.subtree_control",
			"%s%s%s off below %.200s", memory ? "" : "memory",
			memory || cpu ? "" : " and ", cpu ? "" : "cpu", where);
}

static int verb_checks(struct report *report, const struct settings *s)
{
	struct cgroot root = {.fd = -1};

	check_kernel(report);
	check_controllers_known(report);
	if (check_root(report, s->cgroup_root, &root))
		check_controllers(report, root.fd, "cgroup.subtree_control", root.path);
	cgroot_finish(&root);
	return 0;
}

static int print_text(const struct report *report)
{
	for (size_t i = 0; i < report->n; i++) {
		const struct check *c = &report->checks[i];

		printf("%-5s %-12s %s\n", verdict_names[c->verdict], c->name, c->found);
		if (c->verdict != CHECK_OK && c->advice)
			printf("%-5s %-12s -> %s\n", "", "", c->advice);
	}
	return fflush(stdout);
}

int verb_preflight(int argc, char **argv)
{
	static const char *const outputs[] = {"text", NULL};
	static const struct flag flags[] = {
		COMMON_FLAGS(struct settings, common),
		{.name = "cgroup-root",
			.kind = FLAG_STRING,
			.offset = offsetof(struct settings, cgroup_root),
			.value_name = "PATH",
			.help = "the mount point of cgroup v2 (default: the mounted one)"},
		{.name = "state-dir",
			.kind = FLAG_STRING,
			.offset = offsetof(struct settings, state_dir),
			.default_text = "/var/lib/pernode",
			.value_name = "DIR",
			.help = "where history is kept"},
		{.name = "output",
			.kind = FLAG_CHOICE,
			.offset = offsetof(struct settings, output),
			.default_text = "text",
			.choices = outputs,
			.value_name = "FORMAT",
			.help = "text"},
		{0},
	};
	struct settings settings = {0};
	const struct flag *const tables[] = {flags, NULL};
	struct flag_set set = {.verb = "preflight",
		.summary = "Checks what this machine offers, and says what is missing.",
		.example = "pernode-agent preflight --cgroup-root=/sys/fs/cgroup",
		.tables = tables,
		.settings = &settings};
	struct report report = {0};
	bool failed = false;
	int first, code;

	if (!options_read(&set, &settings.common, argc, argv, &first, &code))
		return code;
	(void)verb_checks(&report, &settings);
	if (print_text(&report) < 0)
		return EXIT_FAILURE;
	for (size_t i = 0; i < report.n; i++)
		failed |= report.checks[i].verdict == CHECK_FAIL;
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
