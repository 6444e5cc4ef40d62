/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a recording: CSV, an answer of Prometheus, or either one packed. Bad rows are told
 * and left out; the rest becomes a report that can be printed in every form. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/replay/replay.h"
#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is wrong with the rows is told on stderr, thousands of times a second here. */
static int hush(void)
{
	int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (saved < 0 || null < 0 || dup2(null, STDERR_FILENO) < 0)
		abort();
	(void)close(null);
	return saved;
}

static void speak(int saved)
{
	(void)dup2(saved, STDERR_FILENO);
	(void)close(saved);
}

static void replay(const char *file, bool prometheus, bool fine)
{
	_cleanup_buf_ struct buf out = BUF_INIT(64U << 20);
	struct replay_settings s = {.request = {fine ? 100 : -1, fine ? 64 << 20 : -1},
		.series_name = "{namespace}/{pod}/{container}"};
	struct replay r;
	struct err e;

	knobs_defaults(&s.knobs, fine ? PROFILE_FINE : PROFILE_VPA);
	if (replay_init(&r, &s, &e) < 0)
		abort();
	if (prometheus)
		(void)replay_prometheus(&r, file, fine ? file : NULL, &e);
	else
		(void)replay_csv(&r, file, &e);
	replay_conclude(&r);
	replay_print_json(&r, &out);
	replay_print_csv(&r, &out);
	replay_print_text(&r, &out);
	replay_finish(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char file[64];
	int fd, saved;

	if (size == 0)
		return 0;
	fd = memfd_create("recording", MFD_CLOEXEC);
	if (fd < 0 || write_full(fd, data + 1, size - 1) < 0)
		abort();
	(void)snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	saved = hush();
	replay(file, data[0] & 1, data[0] & 2);
	speak(saved);
	(void)close(fd);
	return 0;
}
