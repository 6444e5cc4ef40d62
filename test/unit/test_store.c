/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "agent/state/store.h"
#include "base/file.h"
#include "helper_alloc.h"

#define TAG CHECKPOINT_TAG('t', 'e', 's', 't')

struct place {
	char path[64];
	int fd;
	uint64_t loaded; /* the number that load found, 0: none */
	char told[1024];
	struct store store;
};

static const struct checkpoint_identity here = {{"uid-1", 5}, {"machine-1", 9}};

static int setup(void **state)
{
	static struct place place;

	place = (struct place){.fd = -1};
	(void)snprintf(place.path, sizeof(place.path), "/tmp/pernode-store-XXXXXX");
	if (!mkdtemp(place.path))
		return -1;
	place.fd = open(place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &place;
	return store_open(&place.store, place.path);
}

static int teardown(void **state)
{
	struct place *place = *state;
	_cleanup_closedir_ DIR *d = NULL;

	store_finish(&place->store);
	d = fdopendir(place->fd);
	for (struct dirent *e; d && (e = readdir(d));)
		(void)unlinkat(dirfd(d), e->d_name, 0);
	(void)chmod(place->path, 0700);
	return rmdir(place->path);
}

static int save_number(void *arg, struct buf *b)
{
	size_t chunk = checkpoint_open_chunk(b, TAG);

	checkpoint_put_u64(b, *(uint64_t *)arg);
	checkpoint_close_chunk(b, chunk);
	return b->error;
}

static int load_number(void *arg, const struct checkpoint *c)
{
	struct checkpoint_cursor chunks = c->chunks, chunk;
	uint32_t tag;

	while (checkpoint_next_chunk(&chunks, &tag, &chunk))
		((struct place *)arg)->loaded = checkpoint_get_u64(&chunk);
	return 0;
}

static void tell(void *arg, const char *text)
{
	struct place *place = arg;

	(void)snprintf(place->told + strlen(place->told), sizeof(place->told) - strlen(place->told),
		"%s\n", text);
}

static int save(struct place *place, uint64_t number)
{
	return store_save(&place->store, &here, (int64_t)number, save_number, &number);
}

static int load(struct place *place, const struct checkpoint_identity *identity)
{
	place->loaded = 0;
	place->told[0] = '\0';
	return store_load(&place->store, identity, load_number, place, tell);
}

static void spoil(struct place *place, const char *name, size_t keep, int flip_at)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	assert_int_equal(file_read(place->fd, name, &b, NULL), 0);
	if (flip_at >= 0)
		b.p[flip_at] ^= 1;
	assert_int_equal(file_write_atomic(place->fd, name, b.p, MIN(keep, b.n), 0600, NULL), 0);
}

static void test_the_newest_is_loaded_and_nothing_is_no_error(void **state)
{
	struct place *place = *state;

	assert_int_equal(load(place, &here), 0);
	assert_string_equal(place->told, "");
	assert_int_equal(save(place, 1), 0);
	assert_int_equal(save(place, 2), 0);
	assert_int_equal(load(place, &here), 1);
	assert_int_equal(place->loaded, 2);
	assert_string_equal(place->store.loaded, STORE_NAME);
	assert_int_equal(place->store.saved_at_ns, 2);
}

static void test_a_bad_newest_is_set_aside_and_the_older_one_serves(void **state)
{
	static const struct {
		size_t keep;
		int flip_at;
		const char *aside;
	} rows[] = {
		{0, -1, "checkpoint.empty"},
		{30, -1, "checkpoint.truncated"},
		{9999, 50, "checkpoint.torn"},
		{9999, 0, "checkpoint.not-a-checkpoint"},
	};
	struct place *place = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(save(place, 1), 0);
		assert_int_equal(save(place, 2), 0);
		spoil(place, STORE_NAME, rows[i].keep, rows[i].flip_at);
		assert_int_equal(load(place, &here), 1);
		assert_int_equal(place->loaded, 1);
		assert_string_equal(place->store.loaded, STORE_OLDER_NAME);
		assert_non_null(strstr(place->told, rows[i].aside));
		assert_int_equal(faccessat(place->fd, rows[i].aside, F_OK, 0), 0);
		assert_int_equal(faccessat(place->fd, STORE_NAME, F_OK, 0), -1);
	}
}

static void test_another_nodes_file_is_never_used(void **state)
{
	static const struct checkpoint_identity reinstalled = {{"uid-1", 5}, {"machine-2", 9}};
	struct place *place = *state;

	assert_int_equal(save(place, 1), 0);
	assert_int_equal(save(place, 2), 0);
	assert_int_equal(load(place, &reinstalled), 0);
	assert_int_equal(place->loaded, 0);
	assert_int_equal(place->store.set_aside[CHECKPOINT_FOREIGN], 2);
	assert_int_equal(faccessat(place->fd, "checkpoint.foreign", F_OK, 0), 0);
}

static void test_killed_between_the_two_renames_the_older_one_serves(void **state)
{
	struct place *place = *state;

	assert_int_equal(save(place, 1), 0);
	assert_int_equal(renameat(place->fd, STORE_NAME, place->fd, STORE_OLDER_NAME), 0);
	assert_int_equal(load(place, &here), 1);
	assert_int_equal(place->loaded, 1);
	assert_int_equal(save(place, 2), 0);
	assert_int_equal(load(place, &here), 1);
	assert_int_equal(place->loaded, 2);
}

static void test_no_directory_costs_saves_until_there_is_one(void **state)
{
	struct place *place = *state;
	struct store s;
	char path[128];
	uint64_t number = 5;

	(void)snprintf(path, sizeof(path), "%s/later", place->path);
	assert_int_equal(store_open(&s, path), -ENOENT);
	assert_int_equal(store_load(&s, &here, load_number, place, tell), 0);
	assert_int_equal(store_save(&s, &here, 1, save_number, &number), -ENOENT);
	assert_non_null(strstr(s.trouble.text, "later: No such file or directory"));
	assert_int_equal(s.failures, 1);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(store_save(&s, &here, 2, save_number, &number), 0);
	assert_string_equal(s.trouble.text, "");
	store_finish(&s);
	(void)snprintf(path, sizeof(path), "%s/later/" STORE_NAME, place->path);
	assert_int_equal(unlink(path), 0);
	(void)snprintf(path, sizeof(path), "%s/later", place->path);
	assert_int_equal(rmdir(path), 0);
}

static void test_two_agents_do_not_share_a_directory(void **state)
{
	struct place *place = *state;
	struct store second;

	assert_int_equal(store_open(&second, place->path), -EBUSY);
	assert_non_null(strstr(second.trouble.text, "in use by another agent"));
	store_finish(&second);
}

static void test_a_save_that_cannot_be_written_keeps_what_was_there(void **state)
{
	struct place *place = *state;

	assert_int_equal(save(place, 1), 0);
	/* A directory in the place of the temporary file stands for a disk that takes no more. */
	assert_int_equal(mkdirat(place->fd, STORE_NAME ".tmp", 0700), 0);
	assert_int_equal(save(place, 2), -EISDIR);
	assert_int_equal(load(place, &here), 1);
	assert_int_equal(place->loaded, 1);
	assert_int_equal(unlinkat(place->fd, STORE_NAME ".tmp", AT_REMOVEDIR), 0);
	assert_int_equal(save(place, 3), 0);
	assert_int_equal(load(place, &here), 1);
	assert_int_equal(place->loaded, 3);
}

static void test_no_memory_loses_nothing(void **state)
{
	struct place *place = *state;

	assert_int_equal(save(place, 1), 0);
	ALLOC_FAIL_EACH
	{
		int r = save(place, 2);
		assert_true(r == 0 || r == -ENOMEM);
		r = load(place, &here);
		assert_true(r == 1 || r == -ENOMEM);
		assert_true(place->loaded == 1 || place->loaded == 2 || r < 0);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_the_newest_is_loaded_and_nothing_is_no_error),
		TEST(test_a_bad_newest_is_set_aside_and_the_older_one_serves),
		TEST(test_another_nodes_file_is_never_used),
		TEST(test_killed_between_the_two_renames_the_older_one_serves),
		TEST(test_no_directory_costs_saves_until_there_is_one),
		TEST(test_two_agents_do_not_share_a_directory),
		TEST(test_a_save_that_cannot_be_written_keeps_what_was_there),
		TEST(test_no_memory_loses_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
