/* SPDX-License-Identifier: Apache-2.0 */
/* Finding pods and containers in trees of every layout that was seen in the field; plain
 * directories stand for cgroups. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "agent/cgroup/cgfind.h"
#include "helper_alloc.h"

#define UID "f3c1a9a0-0c1e-4b57-9a63-2f8f0f6d1b11"
#define UID_ "f3c1a9a0_0c1e_4b57_9a63_2f8f0f6d1b11"
#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SANDBOX "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

struct place {
	char path[64];
	int fd;
	struct cgfind find;
};

static int setup(void **state)
{
	static struct place place;

	(void)snprintf(place.path, sizeof(place.path), "/tmp/pernode-find-XXXXXX");
	if (!mkdtemp(place.path))
		return -1;
	place.fd = open(place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cgfind_init(&place.find, place.fd);
	*state = &place;
	return place.fd < 0 ? -1 : 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int teardown(void **state)
{
	struct place *place = *state;

	cgfind_finish(&place->find);
	(void)close(place->fd);
	return nftw(place->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void make(const struct place *place, const char *path)
{
	char partial[1024];

	for (const char *at = path;; at++) {
		if (*at != '/' && *at != '\0')
			continue;
		(void)snprintf(partial, sizeof(partial), "%.*s", (int)(at - path), path);
		if (mkdirat(place->fd, partial, 0755) < 0 && errno != EEXIST)
			fail_msg("mkdir %s: %s", partial, strerror(errno));
		if (*at == '\0')
			return;
	}
}

static void test_every_layout_is_found(void **state)
{
	static const struct {
		const char *pod, *container; /* container: its name in the pod */
	} rows[] = {
		{"kubepods/burstable/pod" UID, ID},
		{"kubepods/besteffort/pod" UID, ID},
		{"kubepods/pod" UID, ID},
		{"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice",
			"cri-containerd-" ID ".scope"},
		{"kubepods.slice/kubepods-pod" UID_ ".slice", "crio-" ID ".scope"},
		{"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
		 "kubelet-kubepods-besteffort-pod" UID_ ".slice",
			"cri-containerd-" ID ".scope"},
		{"kubelet/kubepods/burstable/pod" UID, ID},
		{"k3s/kubepods/burstable/pod" UID, ID},
		{"docker/" SANDBOX
		 "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
		 "kubelet-kubepods-burstable-pod" UID_ ".slice",
			"docker-" ID ".scope"},
	};
	struct place *place = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char path[1024], found[CGROOT_PATH_MAX];
		struct err e = {""};

		assert_int_equal(teardown(state), 0); /* a tree of its own */
		assert_int_equal(setup(state), 0);
		place = *state;
		make(place, "system.slice/ssh.service");
		(void)snprintf(path, sizeof(path), "%s/%s", rows[i].pod, SANDBOX);
		make(place, path);
		(void)snprintf(path, sizeof(path), "%s/%s", rows[i].pod, rows[i].container);
		make(place, path);
		assert_int_equal(cgfind_pod(&place->find, STR(UID), 1, found, &e), 0);
		assert_string_equal(found, rows[i].pod);
		assert_int_equal(
			cgfind_container(&place->find, rows[i].pod, STR(UID), STR(ID), found, &e),
			0);
		assert_string_equal(found, path);
	}
}

static void test_a_name_that_was_meant_as_a_path_is_found(void **state)
{
	struct place *place = *state;
	char found[CGROOT_PATH_MAX];
	struct err e = {""};
	const char *path = "system.slice/containerd.service/kubepods-burstable-pod" UID_
			   ".slice:cri-containerd:" ID;

	make(place, path);
	assert_int_equal(cgfind_pod(&place->find, STR(UID), 1, found, &e), -ENOENT);
	assert_string_equal(e.text, "no kubepods cgroup below the cgroup root");
	assert_int_equal(cgfind_container(&place->find, "", STR(UID), STR(ID), found, &e), 0);
	assert_string_equal(found, path);
	assert_int_equal(
		cgfind_container(&place->find, "", STR(UID), STR(SANDBOX), found, &e), -ENOENT);
}

static void test_what_is_not_there_is_said_and_found_when_it_comes(void **state)
{
	struct place *place = *state;
	char found[CGROOT_PATH_MAX] = "untouched";
	struct err e = {""};

	make(place, "kubepods/burstable/pod00000000-0000-0000-0000-000000000000");
	assert_int_equal(cgfind_pod(&place->find, STR(UID), 1, found, &e), -ENOENT);
	assert_string_equal(e.text, "no cgroup of pod " UID " below kubepods");
	assert_string_equal(found, "untouched");
	make(place, "kubepods/burstable/pod" UID);
	assert_int_equal(cgfind_pod(&place->find, STR(UID), 2, found, &e),
		0); /* the places are known: no walk */
	assert_int_equal(place->find.walks, 1);
	assert_int_equal(
		cgfind_container(&place->find, found, STR(UID), STR(ID), found, &e), -ENOENT);
	/* A place that came after the walk is found by the next one, and that is not made at every
	 * look-up. */
	make(place, "late/kubepods/pod11111111-0c1e-4b57-9a63-2f8f0f6d1b11");
	struct str late = STR("11111111-0c1e-4b57-9a63-2f8f0f6d1b11");
	assert_int_equal(cgfind_pod(&place->find, late, 3, found, &e), -ENOENT);
	assert_int_equal(place->find.walks, 1);
	assert_int_equal(cgfind_pod(&place->find, late, 1 + CGFIND_WALK_USEC, found, &e), 0);
	assert_int_equal(place->find.walks, 2);
}

static void test_a_virtual_machine_is_not_measurable(void **state)
{
	struct place *place = *state;
	char found[CGROOT_PATH_MAX];
	struct err e = {""};

	make(place, "kubepods/burstable/pod" UID "/kata_" SANDBOX);
	assert_int_equal(cgfind_container(&place->find, "kubepods/burstable/pod" UID, STR(UID),
				 STR(ID), found, &e),
		-EOPNOTSUPP);
	assert_non_null(strstr(e.text, "virtual machine"));
}

static int count_id(void *arg, struct str id, const char *name)
{
	(void)name;
	*(int *)arg += str_is(id, ID) ? 1 : 10;
	return 0;
}

static void test_all_containers_of_a_pod_are_told_the_sandbox_too(void **state)
{
	struct place *place = *state;
	int seen = 0;

	make(place, "kubepods/pod" UID "/" ID);
	make(place, "kubepods/pod" UID "/crio-" SANDBOX);
	make(place, "kubepods/pod" UID "/crio-conmon-" SANDBOX ".scope");
	make(place, "kubepods/pod" UID "/something");
	assert_int_equal(cgfind_each(&place->find, "kubepods/pod" UID, count_id, &seen), 0);
	assert_int_equal(seen, 11);
}

static void test_a_huge_or_hostile_tree_is_bounded(void **state)
{
	struct place *place = *state;
	char found[CGROOT_PATH_MAX], name[32];
	struct err e = {""};

	make(place, "a/a/a/a/a/a/a/a/kubepods/pod" UID); /* deeper than any kubelet puts it */
	for (unsigned int i = 0; i < CGFIND_VISITS_MAX + 10; i++) {
		(void)snprintf(name, sizeof(name), "d%u", i);
		assert_int_equal(mkdirat(place->fd, name, 0755), 0);
	}
	assert_int_equal(symlinkat("..", place->fd, "loop"), 0);
	assert_int_equal(cgfind_pod(&place->find, STR(UID), 1, found, &e), -ENOENT);
	assert_true(place->find.cut);
}

static void test_no_memory_is_an_error_and_loses_nothing(void **state)
{
	struct place *place = *state;

	make(place, "kubepods/burstable/pod" UID);
	make(place, "kubepods/besteffort");
	ALLOC_FAIL_EACH
	{
		struct cgfind f;
		char found[CGROOT_PATH_MAX];
		cgfind_init(&f, place->fd);
		int r = cgfind_pod(&f, STR(UID), 1, found, NULL);
		assert_true(r == 0 || r == -ENOMEM);
		cgfind_finish(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_every_layout_is_found, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_name_that_was_meant_as_a_path_is_found, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_what_is_not_there_is_said_and_found_when_it_comes, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_virtual_machine_is_not_measurable, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_all_containers_of_a_pod_are_told_the_sandbox_too, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_huge_or_hostile_tree_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_no_memory_is_an_error_and_loses_nothing, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
