/* SPDX-License-Identifier: Apache-2.0 */
/* The verb prepare-state: the init container's one step before the agent starts as nobody's uid. */
#include "agent/prepare_state.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/options.h"
#include "agent/verbs.h"
#include "base/log.h"

#define GROUP_DEFAULT "65532" /* what the chart runs the agent as */
#define MODE 02770

struct settings {
	struct common_settings common;
	const char *state_dir;
	int64_t group;
	bool optional;
};

/* 1 when the directory holds nothing (a fresh file system's lost+found is nothing), else 0. */
static int is_empty(int fd, const char *path, struct err *e)
{
	_cleanup_closedir_ DIR *dir = NULL;
	const struct dirent *entry;
	int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (own < 0)
		return err_set(e, errno, "%s: cannot be listed: %s", path, strerror(errno));
	dir = fdopendir(own);
	if (!dir) {
		int code = errno;

		(void)close(own);
		return err_set(e, code, "%s: cannot be listed: %s", path, strerror(code));
	}
	errno = 0;
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
			strcmp(entry->d_name, "lost+found") != 0)
			return 0;
	return errno ? err_set(e, errno, "%s: cannot be listed: %s", path, strerror(errno)) : 1;
}

int prepare_state(const char *path, gid_t group, struct err *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0)
		return err_set(
			e, errno, "%s: cannot be opened as a directory: %s", path, strerror(errno));
	if (fstat(fd, &st) < 0)
		return err_set(e, errno, "%s: %s", path, strerror(errno));
	if (st.st_gid == group && (st.st_mode & 07777) == MODE)
		return 0;
	if (st.st_gid != group) {
		r = is_empty(fd, path, e);
		if (r < 0)
			return r;
		if (!r)
			return err_set(e, EBUSY,
				"%s: belongs to group %u and is not empty, so it may be someone "
				"else's; "
				"give group %u to it and to what it holds, or name another "
				"directory",
				path, st.st_gid, group);
		if (fchown(fd, (uid_t)-1, group) < 0)
			return err_set(e, errno,
				"%s: cannot be given to group %u: %s (owner is uid %u, this is uid "
				"%u)",
				path, group, strerror(errno), st.st_uid, geteuid());
	}
	if (fchmod(fd, MODE) < 0)
		return err_set(
			e, errno, "%s: cannot be given mode %04o: %s", path, MODE, strerror(errno));
	return 0;
}

int verb_prepare_state(int argc, char **argv)
{
	static const struct flag flags[] = {
		COMMON_FLAGS(struct settings, common),
		{.name = "state-dir",
			.kind = FLAG_STRING,
			.offset = offsetof(struct settings, state_dir),
			.default_text = "/var/lib/pernode",
			.value_name = "DIR",
			.help = "the directory; it must exist"},
		{.name = "group",
			.kind = FLAG_INT,
			.offset = offsetof(struct settings, group),
			.default_text = GROUP_DEFAULT,
			.min = 1,
			.max = INT32_MAX,
			.value_name = "GID",
			.help = "the group that the agent runs as"},
		{.name = "optional",
			.kind = FLAG_BOOL,
			.offset = offsetof(struct settings, optional),
			.default_text = "false",
			.help = "warn and exit 0 on failure: the agent then runs without disk, and "
				"says "
				"so"},
		{0},
	};
	struct settings settings = {0};
	const struct flag *const tables[] = {flags, NULL};
	struct flag_set set = {.verb = "prepare-state",
		.summary =
			"Hands the state directory over to the agent's group, with mode 2770. For "
			"an init container: uid 0, that group, no capability.",
		.example = "pernode-agent prepare-state --state-dir=/var/lib/pernode",
		.tables = tables,
		.settings = &settings};
	struct err e;
	int first, code;

	if (!options_read(&set, &settings.common, argc, argv, &first, &code))
		return code;
	if (prepare_state(settings.state_dir, (gid_t)settings.group, &e) == 0)
		return EXIT_SUCCESS;
	if (settings.optional) {
		log_warn("%s", e.text);
		return EXIT_SUCCESS;
	}
	log_error("%s", e.text);
	return EXIT_FAILURE;
}
