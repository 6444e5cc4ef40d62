/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/cgroup/cgpath.h"
#include "base/macros.h"

#define ID "a09bc17f5aa29b0dbdec9ede5f46cf1396d2405917ab02e6f1eb1019f388396e"
#define UUID "1e597579-417e-482f-bf65-5fe170c3aebd"
#define UUID_ "1e597579_417e_482f_bf65_5fe170c3aebd"
#define HASH "8daa50c3a64c9ff60bb9eab7b44b56fd"

static const struct {
	const char *name;
	enum cgname_kind kind;
	const char *uid, *id;
} cases[] = {
	/* roots */
	{"kubepods", CGNAME_KUBEPODS, NULL, NULL},
	{"kubepods.slice", CGNAME_KUBEPODS, NULL, NULL},
	{"kubelet-kubepods.slice", CGNAME_KUBEPODS, NULL, NULL},
	{"foo-bar-kubepods.slice", CGNAME_KUBEPODS, NULL, NULL},
	{"notkubepods.slice", CGNAME_OTHER, NULL, NULL},
	{"my-kubepods", CGNAME_OTHER, NULL, NULL},
	/* quality of service */
	{"burstable", CGNAME_QOS, NULL, NULL},
	{"besteffort", CGNAME_QOS, NULL, NULL},
	{"kubepods-burstable.slice", CGNAME_QOS, NULL, NULL},
	{"kubelet-kubepods-besteffort.slice", CGNAME_QOS, NULL, NULL},
	{"guaranteed", CGNAME_OTHER, NULL, NULL},
	/* pods */
	{"pod" UUID, CGNAME_POD, UUID, NULL},
	{"pod" HASH, CGNAME_POD, HASH, NULL},
	{"kubepods-burstable-pod" UUID_ ".slice", CGNAME_POD, UUID_, NULL},
	{"kubepods-pod" UUID_ ".slice", CGNAME_POD, UUID_, NULL},
	{"kubelet-kubepods-besteffort-pod" UUID_ ".slice", CGNAME_POD, UUID_, NULL},
	{"kubepods-burstable-pod" HASH ".slice", CGNAME_POD, HASH, NULL},
	{"pod-root-kubepods-pod" UUID_ ".slice", CGNAME_POD, UUID_, NULL},
	{"pod", CGNAME_OTHER, NULL, NULL},
	{"podx y", CGNAME_OTHER, NULL, NULL},
	{"kubepods-burstable-pod.slice", CGNAME_OTHER, NULL, NULL},
	{"kubepods-burstable-pod" UUID_, CGNAME_OTHER, NULL, NULL},
	/* containers */
	{ID, CGNAME_CONTAINER, NULL, ID},
	{"cri-containerd-" ID ".scope", CGNAME_CONTAINER, NULL, ID},
	{"crio-" ID ".scope", CGNAME_CONTAINER, NULL, ID},
	{"crio-" ID, CGNAME_CONTAINER, NULL, ID},
	{"docker-" ID ".scope", CGNAME_CONTAINER, NULL, ID},
	{"crio-conmon-" ID ".scope", CGNAME_MONITOR, NULL, ID},
	{"crio-conmon-" ID, CGNAME_MONITOR, NULL, ID},
	{"a" ID, CGNAME_OTHER, NULL, NULL},
	{ID "0", CGNAME_OTHER, NULL, NULL},
	{"docker-" ID ".mount", CGNAME_OTHER, NULL, NULL},
	{"docker-" ID ".slice", CGNAME_OTHER, NULL, NULL},
	{"kata_" ID, CGNAME_KATA, NULL, NULL},
	{"kata_overhead", CGNAME_KATA, NULL, NULL},
	/* a systemd argument made into a directory */
	{"kubepods-burstable-pod" HASH ".slice:cri-containerd:" ID, CGNAME_POD_CONTAINER, HASH, ID},
	{"kubepods-burstable-pod" UUID_ ".slice:cri-containerd:" ID, CGNAME_POD_CONTAINER, UUID_,
		ID},
	{"kubepods-pod" UUID_ ".slice:crio:" ID, CGNAME_POD_CONTAINER, UUID_, ID},
	{"kubepods-burstable.slice:cri-containerd:" ID, CGNAME_CONTAINER, NULL, ID},
	{"kubepods-pod" UUID_ ".slice:crio:short", CGNAME_OTHER, NULL, NULL},
	/* nothing of ours */
	{"", CGNAME_OTHER, NULL, NULL},
	{"system.slice", CGNAME_OTHER, NULL, NULL},
	{"init.scope", CGNAME_OTHER, NULL, NULL},
	{"container", CGNAME_OTHER, NULL, NULL},
	{"exec", CGNAME_OTHER, NULL, NULL},
	{".slice", CGNAME_OTHER, NULL, NULL},
	{":::", CGNAME_OTHER, NULL, NULL},
};

static void every_form_of_the_field_is_read(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cgname c = cgname_parse(str_of(cases[i].name));

		if (c.kind != cases[i].kind)
			fail_msg("%s: kind %d, expected %d", cases[i].name, (int)c.kind,
				(int)cases[i].kind);
		if (!str_eq(c.uid, str_of(cases[i].uid)))
			fail_msg("%s: uid %.*s", cases[i].name, STR_ARG(c.uid));
		if (!str_eq(c.id, str_of(cases[i].id)))
			fail_msg("%s: id %.*s", cases[i].name, STR_ARG(c.id));
	}
}

static void a_uid_is_the_same_with_dashes_and_with_underscores(void **state)
{
	assert_true(pod_uid_same(STR(UUID), STR(UUID_)));
	assert_true(pod_uid_same(STR(UUID), STR(UUID)));
	assert_false(pod_uid_same(STR(UUID), STR(HASH)));
	assert_false(pod_uid_same(STR("a-b"), STR("a-c")));
	assert_false(pod_uid_same(STR(""), STR("")));
}

static void a_static_pods_hash_is_told_from_a_uuid(void **state)
{
	assert_true(pod_uid_is_static(STR(HASH)));
	assert_false(pod_uid_is_static(STR(UUID)));
	assert_true(pod_uid_plausible(STR(HASH)));
	assert_true(pod_uid_plausible(STR(UUID)));
	assert_true(pod_uid_plausible(STR(UUID_)));
	assert_false(pod_uid_plausible(STR("man")));
	assert_false(pod_uid_plausible(STR("1e597579-417e-482f-bf65-5fe170c3aebg")));
	assert_false(pod_uid_plausible(STR("1e597579x417e-482f-bf65-5fe170c3aebd")));
}

static void the_id_is_cut_from_a_status(void **state)
{
	assert_true(str_is(container_id_of_status(STR("containerd://" ID)), ID));
	assert_true(str_is(container_id_of_status(STR("cri-o://" ID)), ID));
	assert_true(str_is(container_id_of_status(STR("docker://" ID)), ID));
	assert_null(container_id_of_status(STR("")).p);
	assert_null(container_id_of_status(STR("containerd://")).p);
	assert_null(container_id_of_status(STR(ID)).p);
	assert_null(container_id_of_status(STR("containerd://" ID "0")).p);
	assert_null(container_id_of_status(STR("containerd://../../" ID)).p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_the_field_is_read),
		cmocka_unit_test(a_uid_is_the_same_with_dashes_and_with_underscores),
		cmocka_unit_test(a_static_pods_hash_is_told_from_a_uuid),
		cmocka_unit_test(the_id_is_cut_from_a_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
