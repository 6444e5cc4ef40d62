/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "helper_alloc.h"

struct place {
	char path[64];
	int fd;
};

static int setup(void **state)
{
	static struct place place;

	(void)snprintf(place.path, sizeof(place.path), "/tmp/pernode-file-XXXXXX");
	if (!mkdtemp(place.path))
		return -1;
	place.fd = open(place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &place;
	return place.fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	struct place *place = *state;
	static const char *const names[] = {"a", "b", "fifo"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		(void)unlinkat(place->fd, names[i], 0);
	(void)unlinkat(place->fd, "dir", AT_REMOVEDIR);
	(void)close(place->fd);
	return rmdir(place->path); /* fails when a temporary file was left behind */
}

static void test_what_was_written_is_read_and_replaced_whole(void **state)
{
	struct place *place = *state;
	_cleanup_buf_ struct buf b = BUF_INIT(100);
	struct err e = {""};
	struct stat st;

	assert_int_equal(file_write_atomic(place->fd, "a", "first", 5, 0640, &e), 0);
	assert_int_equal(file_write_atomic(place->fd, "a", "2nd", 3, 0640, &e), 0);
	assert_int_equal(file_read(place->fd, "a", &b, &e), 0);
	assert_string_equal(b.p, "2nd");
	assert_int_equal(fstatat(place->fd, "a", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void test_a_failed_write_leaves_the_old_file_and_no_other(void **state)
{
	struct place *place = *state;
	_cleanup_buf_ struct buf b = BUF_INIT(100);
	struct err e = {""};

	assert_int_equal(file_write_atomic(place->fd, "a", "old", 3, 0600, &e), 0);
	assert_int_equal(mkdirat(place->fd, "dir", 0700), 0);
	/* A directory cannot be replaced by a file: the rename is what fails. */
	assert_int_equal(file_write_atomic(place->fd, "dir", "new", 3, 0600, &e), -EISDIR);
	assert_non_null(strstr(e.text, "dir: cannot write"));
	assert_int_equal(faccessat(place->fd, "dir.tmp", F_OK, 0), -1);
	assert_int_equal(file_read(place->fd, "a", &b, &e), 0);
	assert_string_equal(b.p, "old");
}

static void test_reading_is_bounded_and_says_why_not(void **state)
{
	struct place *place = *state;
	_cleanup_buf_ struct buf b = BUF_INIT(5);
	struct err e = {""};

	assert_int_equal(file_write_atomic(place->fd, "b", "12345", 5, 0600, &e), 0);
	assert_int_equal(file_read(place->fd, "b", &b, &e), 0);
	assert_int_equal(b.n, 5);
	buf_clear(&b);
	assert_int_equal(file_write_atomic(place->fd, "b", "123456", 6, 0600, &e), 0);
	assert_int_equal(file_read(place->fd, "b", &b, &e), -EFBIG);
	assert_string_equal(e.text, "b: is larger than the 5 bytes that are read");
	assert_int_equal(file_read(place->fd, "none", &b, &e), -ENOENT);
	assert_string_equal(e.text, "none: cannot open: No such file or directory");
	assert_int_equal(mkfifoat(place->fd, "fifo", 0600), 0);
	assert_int_equal(file_read(place->fd, "fifo", &b, &e), -EINVAL);
	assert_int_equal(file_read(place->fd, ".", &b, &e), -EISDIR);
}

static void test_reading_survives_every_failed_allocation(void **state)
{
	struct place *place = *state;
	struct err e = {""};

	assert_int_equal(file_write_atomic(place->fd, "a", "some text", 9, 0600, &e), 0);
	ALLOC_FAIL_EACH
	{
		struct buf b = BUF_INIT(100);
		int r = file_read(place->fd, "a", &b, &e);
		assert_true(r == 0 || r == -ENOMEM);
		assert_true(r < 0 || b.n == 9);
		buf_finish(&b);
	}
}

/* In a child: the bits of what did not hold. */
static int without(int closed)
{
	int wrong = 0;

	(void)close(closed);
	if (file_keep_standard() < 0)
		wrong |= 1;
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fd <= STDERR_FILENO)
		wrong |= 2;
	char c = 'x';
	if ((closed == STDIN_FILENO ? read(closed, &c, 1) : write(closed, &c, 1)) != -1 ||
		errno != EBADF)
		wrong |= 4;
	return wrong;
}

static void test_a_file_is_never_opened_as_what_stdin_stdout_or_stderr_should_be(void **state)
{
	(void)state;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int status;
		pid_t child = fork();

		assert_true(child >= 0);
		if (child == 0)
			_exit(without(fd));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_what_was_written_is_read_and_replaced_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_failed_write_leaves_the_old_file_and_no_other, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_reading_is_bounded_and_says_why_not, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_reading_survives_every_failed_allocation, setup, teardown),
		cmocka_unit_test(
			test_a_file_is_never_opened_as_what_stdin_stdout_or_stderr_should_be),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
