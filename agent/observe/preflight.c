/* SPDX-License-Identifier: Apache-2.0 */
/* The verb preflight: what this machine offers, what is missing, and what to do about it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libcgroup.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include "agent/cgroup/cgfile.h"
#include "agent/cgroup/cgleaf.h"
#include "agent/cgroup/cgpath.h"
#include "agent/cgroup/cgroot.h"
#include "agent/cgroup/cgtree.h"
#include "agent/options.h"
#include "agent/verbs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/num.h"
#include "proto/json_write.h"

#define CHECKS_MAX 16U
#define KERNEL_FILE_MAX 8192U
#define OUTPUT_MAX 65536U
#define API_TIMEOUT_MSEC 3000

#define STATE_DIR_FLAG 1 /* its place in the table of flags below */
enum output { OUTPUT_TEXT, OUTPUT_JSON };
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

/* ---- where pods live */

#define LOOK_DEPTH_MAX 6U /* of kubepods below the root */

struct search {
	char kubepods[CGTREE_PATH_MAX]; /* "" until found */
	char leaf[CGTREE_PATH_MAX];     /* the first leaf that is not the root: what can be read? */
};

static enum cgtree_advice search_visit(const struct cgtree_dir *dir, void *arg)
{
	struct search *s = arg;

	if (!s->leaf[0] && dir->leaf && dir->depth > 0)
		(void)str_copy(s->leaf, sizeof(s->leaf), str_of(dir->path + 1));
	if (cgname_parse(str_of(dir->name)).kind == CGNAME_KUBEPODS) {
		(void)str_copy(s->kubepods, sizeof(s->kubepods), str_of(dir->path + 1));
		return CGTREE_STOP;
	}
	return dir->depth < LOOK_DEPTH_MAX ? CGTREE_DESCEND : CGTREE_SKIP;
}

static void check_pods(struct report *report, const struct cgroot *root, struct search *search)
{
	_cleanup_close_ int fd = -1;

	(void)cgtree_walk(root->fd, search_visit, search, NULL);
	if (!search->kubepods[0]) {
		add(report, "kubepods", CHECK_WARN,
			"on a Kubernetes node mount all of /sys/fs/cgroup of the host; elsewhere "
			"only `observe` is of use",
			"no pods live here");
		check_controllers(report, root->fd, "cgroup.subtree_control", root->path);
		return;
	}
	add(report, "kubepods", CHECK_OK, NULL, "pods live below /%.200s", search->kubepods);
	fd = openat(root->fd, search->kubepods, O_PATH | O_DIRECTORY | O_CLOEXEC);
	check_controllers(report, fd, "cgroup.subtree_control", search->kubepods);
}

/* What this uid can read of a cgroup, and what this kernel has. */
static void check_files(
	struct report *report, const struct cgroot *root, const struct search *search)
{
	static const char *const wanted[] = {"cpu.stat", "memory.current", "memory.stat",
		"memory.events", "memory.events.local", "memory.max", "cpu.max"};
	const char *path = search->kubepods[0] ? search->kubepods : search->leaf;
	_cleanup_close_ int fd =
		path[0] ? openat(root->fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	struct cgio io = {.held_max = 0};
	struct str text;
	enum cg_outcome outcome;

	if (fd < 0) {
		add(report, "readable", CHECK_WARN, "start a pod, or a service, and ask again",
			"there is no cgroup to try");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		outcome = cgio_read_at(&io, fd, wanted[i], &text);
		if (outcome == CG_OK || outcome == CG_EMPTY)
			continue;
		add(report, "readable", CHECK_FAIL,
			outcome == CG_NO_FILE ? "turn the controllers on for this level"
					      : "run with read access to all of the tree",
			"/%.200s/%s: %s", path, wanted[i], cg_outcome_name(outcome));
		return;
	}
	add(report, "readable", CHECK_OK, NULL,
		"all files can be read by uid %u (tried in /%.200s)", (unsigned int)getuid(), path);
	outcome = cgio_read_at(&io, fd, "memory.peak", &text);
	add(report, "memory.peak", outcome == CG_OK ? CHECK_OK : CHECK_WARN,
		"peaks between two readings are missed; Linux 5.19 or newer has it", "%s",
		outcome == CG_OK ? "there" : cg_outcome_name(outcome));
	outcome = cgio_read_at(&io, fd, "memory.pressure", &text);
	add(report, "psi", outcome == CG_OK ? CHECK_OK : CHECK_WARN,
		"stalls are not shown; boot with psi=1 on a kernel with CONFIG_PSI", "%s",
		outcome == CG_OK ? "there" : cg_outcome_name(outcome));
}

/* ---- what is not the kernel */

static void check_state_dir(struct report *report, const char *path, bool given)
{
	static const char *const advice =
		"history would be lost at every restart: give a directory that this uid can write";
	_cleanup_close_ int dir = open(path ? path : "", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err e;
	int r;

	if (dir < 0) {
		add(report, "state-dir", given ? CHECK_FAIL : CHECK_WARN, advice, "%.200s: %s",
			path, strerror(errno));
		return;
	}
	r = file_write_atomic(dir, ".preflight", "ok\n", 3, 0600, &e);
	if (r == 0)
		(void)unlinkat(dir, ".preflight", 0);
	add(report, "state-dir", r == 0 ? CHECK_OK : CHECK_FAIL, advice, "%.200s: %.100s", path,
		r == 0 ? "writable" : err_text(&e, r));
}

/* host is an address literal, as the kubelet writes it into the environment. */
static int connect_to(const char *host, uint16_t port)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	bool is6 = inet_pton(AF_INET6, host, &v6.sin6_addr) == 1;
	_cleanup_close_ int fd = -1;
	struct pollfd p;
	int error = 0;
	socklen_t n = sizeof(error);

	if (!is6 && inet_pton(AF_INET, host, &v4.sin_addr) != 1)
		return -EINVAL;
	fd = socket(is6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, is6 ? (const struct sockaddr *)&v6 : (const struct sockaddr *)&v4,
		    is6 ? sizeof(v6) : sizeof(v4)) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	p = (struct pollfd){.fd = fd, .events = POLLOUT};
	if (poll(&p, 1, API_TIMEOUT_MSEC) <= 0)
		return -ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0 ? -errno : -error;
}

static void check_api_server(struct report *report)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port_text = getenv("KUBERNETES_SERVICE_PORT");
	uint64_t port = 443;
	int r;

	if (!host || !host[0]) {
		add(report, "api-server", CHECK_OK, NULL, "not in a pod: not looked for");
		return;
	}
	if (port_text && (parse_u64(str_of(port_text), &port) < 0 || port == 0 || port > 65535)) {
		add(report, "api-server", CHECK_FAIL, "the kubelet sets it; do not override it",
			"KUBERNETES_SERVICE_PORT=%.40s is no port", port_text);
		return;
	}
	r = connect_to(host, (uint16_t)port);
	add(report, "api-server", r == 0 ? CHECK_OK : CHECK_FAIL,
		"look at network policies and at the CNI of this node", "%.60s port %u: %s", host,
		(unsigned int)port, r == 0 ? "answers" : strerror(-r));
}

static void run_checks(struct report *report, const struct settings *s, bool state_dir_given)
{
	struct search search = {.kubepods = ""};
	struct cgroot root = {.fd = -1};

	check_kernel(report);
	check_controllers_known(report);
	if (check_root(report, s->cgroup_root, &root)) {
		check_pods(report, &root, &search);
		check_files(report, &root, &search);
	}
	cgroot_finish(&root);
	check_state_dir(report, s->state_dir, state_dir_given);
	check_api_server(report);
}

static int print_json(const struct report *report, bool ok)
{
	_cleanup_buf_ struct buf b = BUF_INIT(OUTPUT_MAX);
	struct json_writer w = JSON_WRITER(&b);

	json_begin_object(&w);
	json_key(&w, "ok");
	json_bool(&w, ok);
	json_key(&w, "checks");
	json_begin_array(&w);
	for (size_t i = 0; i < report->n; i++) {
		const struct check *c = &report->checks[i];

		json_begin_object(&w);
		json_key(&w, "name");
		json_string(&w, c->name);
		json_key(&w, "status");
		json_string(&w, verdict_names[c->verdict]);
		json_key(&w, "found");
		json_string(&w, c->found);
		if (c->verdict != CHECK_OK && c->advice) {
			json_key(&w, "advice");
			json_string(&w, c->advice);
		}
		json_end_object(&w);
	}
	json_end_array(&w);
	json_end_object(&w);
	(void)buf_putc(&b, '\n');
	return b.error ? b.error : write_full(STDOUT_FILENO, b.p, b.n);
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
	static const char *const outputs[] = {"text", "json", NULL};
	static const struct flag flags[] = {
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
			.help = "text for people, json for programs"},
		COMMON_FLAGS(struct settings, common),
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
	run_checks(&report, &settings, set.sources[STATE_DIR_FLAG] != FLAG_FROM_DEFAULT);
	for (size_t i = 0; i < report.n; i++)
		failed |= report.checks[i].verdict == CHECK_FAIL;
	if ((settings.output == OUTPUT_JSON ? print_json(&report, !failed) : print_text(&report)) <
		0)
		return EXIT_FAILURE;
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
