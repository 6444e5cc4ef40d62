/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/prepare_state.h"

/* A directory of this process's own group, and another group's number. */
struct place {
	char path[64], inside[80], link[80];
	gid_t own, foreign;
};

static int setup(void **state)
{
	static struct place place;

	(void)snprintf(place.path, sizeof(place.path), "/tmp/pernode-state-XXXXXX");
	if (!mkdtemp(place.path) || chmod(place.path, 0755) < 0)
		return -1;
	(void)snprintf(place.inside, sizeof(place.inside), "%s/x", place.path);
	(void)snprintf(place.link, sizeof(place.link), "%s.link", place.path);
	place.own = getegid();
	place.foreign = place.own + 1;
	*state = &place;
	return chown(place.path, (uid_t)-1, place.own);
}

static int teardown(void **state)
{
	const struct place *place = *state;

	(void)unlink(place->inside);
	(void)rmdir(place->inside);
	(void)unlink(place->link);
	return rmdir(place->path);
}

static void assert_directory(const char *path, gid_t group, mode_t mode)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_gid, group);
	assert_int_equal(st.st_mode & 07777, mode);
}

static void make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
}

static void test_it_gets_mode_2770_and_what_is_made_in_it_the_group(void **state)
{
	const struct place *place = *state;
	struct err e;

	assert_int_equal(prepare_state(place->path, place->own, &e), 0);
	assert_directory(place->path, place->own, 02770);
	assert_int_equal(mkdir(place->inside, 0750), 0);
	assert_directory(place->inside, place->own, 02750);
}

static void test_a_second_time_and_with_content_changes_nothing(void **state)
{
	const struct place *place = *state;
	struct err e;

	assert_int_equal(prepare_state(place->path, place->own, &e), 0);
	make_file(place->inside);
	assert_int_equal(prepare_state(place->path, place->own, &e), 0);
	assert_directory(place->path, place->own, 02770);
}

static void test_lost_mode_is_set_again_although_it_holds_files(void **state)
{
	const struct place *place = *state;
	struct err e;

	make_file(place->inside);
	assert_int_equal(prepare_state(place->path, place->own, &e), 0);
	assert_directory(place->path, place->own, 02770);
}

static void test_someone_elses_full_directory_is_refused_and_left_as_it_is(void **state)
{
	const struct place *place = *state;
	struct err e;

	make_file(place->inside);
	assert_int_equal(prepare_state(place->path, place->foreign, &e), -EBUSY);
	assert_non_null(strstr(e.text, place->path));
	assert_non_null(strstr(e.text, "not empty"));
	assert_directory(place->path, place->own, 0755);
}

static void test_an_empty_one_changes_group_if_the_kernel_allows_it(void **state)
{
	const struct place *place = *state;
	struct err e;
	int r = prepare_state(place->path, place->foreign, &e);

	if (r == 0) { /* root may give it to any group */
		assert_directory(place->path, place->foreign, 02770);
		return;
	}
	assert_int_equal(r, -EPERM);
	assert_non_null(strstr(e.text, "cannot be given to group"));
	assert_directory(place->path, place->own, 0755);
}

static void test_what_is_no_directory_is_refused_by_name(void **state)
{
	const struct place *place = *state;
	struct err e;

	assert_int_equal(prepare_state(place->inside, place->own, &e), -ENOENT);
	assert_non_null(strstr(e.text, place->inside));
	make_file(place->inside);
	assert_int_equal(prepare_state(place->inside, place->own, &e), -ENOTDIR);
	assert_int_equal(symlink(place->path, place->link), 0);
	assert_true(prepare_state(place->link, place->own, &e) < 0);
	assert_directory(place->path, place->own, 0755);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_it_gets_mode_2770_and_what_is_made_in_it_the_group),
		TEST(test_a_second_time_and_with_content_changes_nothing),
		TEST(test_lost_mode_is_set_again_although_it_holds_files),
		TEST(test_someone_elses_full_directory_is_refused_and_left_as_it_is),
		TEST(test_an_empty_one_changes_group_if_the_kernel_allows_it),
		TEST(test_what_is_no_directory_is_refused_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
