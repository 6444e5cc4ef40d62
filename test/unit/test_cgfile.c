/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/cgroup/cgfile.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/macros.h"

static void cpu_stat_of_a_cgroup_with_a_quota(void **state)
{
	struct cpu_stat s;

	assert_int_equal(
		cgfile_cpu_stat(STR("usage_usec 123456\nuser_usec 100000\nsystem_usec 23456\n"
				    "nr_periods 50\nnr_throttled 16\nthrottled_usec 789\n"
				    "nr_bursts 0\nburst_usec 0\n"),
			&s),
		0);
	assert_int_equal(s.seen, CPU_USAGE_USEC | CPU_THROTTLE_KEYS);
	assert_int_equal(s.usage_usec, 123456);
	assert_int_equal(s.nr_periods, 50);
	assert_int_equal(s.nr_throttled, 16);
	assert_int_equal(s.throttled_usec, 789);
}

static void cpu_stat_without_the_controller_has_no_throttling(void **state)
{
	struct cpu_stat s;

	assert_int_equal(cgfile_cpu_stat(STR("usage_usec 7\nuser_usec 4\nsystem_usec 3\n"), &s), 0);
	assert_int_equal(s.seen, CPU_USAGE_USEC);
	assert_int_equal(s.usage_usec, 7);
}

static void keys_in_another_order_and_unknown_ones_do_not_matter(void **state)
{
	struct cpu_stat s;

	assert_int_equal(
		cgfile_cpu_stat(STR("throttled_usec 4\nnew.key 99\nnr_throttled 3\n"
				    "usage_usecs 5\nusage_use 6\nnr_periods 2\nusage_usec 1"),
			&s),
		0);
	assert_int_equal(s.seen, CPU_USAGE_USEC | CPU_THROTTLE_KEYS);
	assert_int_equal(s.usage_usec, 1);
	assert_int_equal(s.nr_periods, 2);
	assert_int_equal(s.nr_throttled, 3);
	assert_int_equal(s.throttled_usec, 4);
}

static void a_missing_key_is_not_a_zero(void **state)
{
	struct memory_stat m;
	struct memory_events e;
	struct cpu_stat c;

	assert_int_equal(cgfile_memory_stat(STR("file 10\nshmem 0\n"), &m), 0);
	assert_int_equal(m.seen, MEMORY_SHMEM);
	assert_int_equal(
		cgfile_memory_events(STR("low 0\nhigh 0\nmax 3\noom 2\noom_kill 1\n"), &e), 0);
	assert_int_equal(e.seen, EVENT_HIGH | EVENT_MAX | EVENT_OOM | EVENT_OOM_KILL);
	assert_int_equal(cgfile_cpu_stat(STR("nothing here\n"), &c), 0);
	assert_int_equal(c.seen, 0);
}

static void an_empty_read_is_told_apart(void **state)
{
	struct memory_stat m = {.anon_bytes = 5};
	struct memory_events e;
	struct cpu_stat c;
	struct cpu_max q;
	struct psi psi;
	uint64_t v = 77;
	bool populated;

	assert_int_equal(cgfile_memory_stat(STR(""), &m), -ENODATA);
	assert_int_equal(m.anon_bytes, 5);
	assert_int_equal(cgfile_memory_events(STR(""), &e), -ENODATA);
	assert_int_equal(cgfile_cpu_stat(STR(""), &c), -ENODATA);
	assert_int_equal(cgfile_cpu_max(STR(""), &q), -ENODATA);
	assert_int_equal(cgfile_psi(STR(""), &psi), -ENODATA);
	assert_int_equal(cgfile_number(STR(""), &v), -ENODATA);
	assert_int_equal(cgfile_number(STR("\n"), &v), -ENODATA);
	assert_int_equal(v, 77);
	assert_int_equal(cgfile_populated(STR(""), &populated), -ENODATA);
}

static void a_wanted_key_without_a_number_is_refused(void **state)
{
	static const char *const bad[] = {"usage_usec \n", "usage_usec x\n", "usage_usec -1\n",
		"usage_usec 1 \n", "usage_usec 18446744073709551616\n", "usage_usec 0x10\n",
		"user_usec 1\nusage_usec 1.5\n"};
	struct cpu_stat s = {.usage_usec = 42};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (cgfile_cpu_stat(str_of(bad[i]), &s) != -EBADMSG)
			fail_msg("accepted: %s", bad[i]);
		assert_int_equal(s.usage_usec, 42);
	}
	assert_int_equal(cgfile_cpu_stat(STR("usage_usec 18446744073709551615\n"), &s), 0);
	assert_true(s.usage_usec == UINT64_MAX);
}

static void numbers_and_max(void **state)
{
	static const struct {
		const char *text;
		int r;
		uint64_t v;
	} cases[] = {
		{"0\n", 0, 0},
		{"4096\n", 0, 4096},
		{"4096", 0, 4096},
		{"max\n", 0, CG_MAX},
		{"18446744073709551615\n", 0, UINT64_MAX},
		{"18446744073709551616\n", -EBADMSG, 0},
		{"-1\n", -EBADMSG, 0},
		{"maximum\n", -EBADMSG, 0},
		{"1 2\n", -EBADMSG, 0},
		{" 1\n", -EBADMSG, 0},
		{"1\n\n", -EBADMSG, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t v = 0;

		if (cgfile_number(str_of(cases[i].text), &v) != cases[i].r || v != cases[i].v)
			fail_msg("%s", cases[i].text);
	}
}

static void cpu_max_gives_millicores(void **state)
{
	static const struct {
		const char *text;
		int r;
		uint64_t millicores;
	} cases[] = {
		{"max 100000\n", 0, CG_MAX},
		{"10000 100000\n", 0, 100},
		{"250000 100000\n", 0, 2500},
		{"1000 1000000\n", 0, 1},
		{"18446744073709551614 1\n", 0, CG_MAX},
		{"max\n", -EBADMSG, 0},
		{"100 0\n", -EBADMSG, 0},
		{"100 max\n", -EBADMSG, 0},
		{"100 100 100\n", -EBADMSG, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cpu_max m;

		if (cgfile_cpu_max(str_of(cases[i].text), &m) != cases[i].r)
			fail_msg("%s", cases[i].text);
		if (cases[i].r == 0 && cpu_max_millicores(&m) != cases[i].millicores)
			fail_msg("%s", cases[i].text);
	}
}

static void pressure_with_and_without_full(void **state)
{
	struct psi psi;

	assert_int_equal(cgfile_psi(STR("some avg10=1.53 avg60=0.00 avg300=12.00 total=987654\n"
					"full avg10=100.00 avg60=0.01 avg300=0.00 total=1\n"),
				 &psi),
		0);
	assert_true(psi.some.seen && psi.full.seen);
	assert_int_equal(psi.some.avg10_centipercent, 153);
	assert_int_equal(psi.some.total_usec, 987654);
	assert_int_equal(psi.full.avg10_centipercent, 10000);
	assert_int_equal(psi.full.avg60_centipercent, 1);
	assert_int_equal(
		cgfile_psi(STR("some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"), &psi), 0);
	assert_true(psi.some.seen && !psi.full.seen);
	assert_int_equal(cgfile_psi(STR("some avg10=0.00\n"), &psi), -EBADMSG);
	assert_int_equal(cgfile_psi(STR("some avg10=abc avg60=0.00 total=1\n"), &psi), -EBADMSG);
	assert_int_equal(cgfile_psi(STR("some avg10=9999999.00 total=1\n"), &psi), -EBADMSG);
	assert_int_equal(cgfile_psi(STR("some \n"), &psi), -EBADMSG);
	assert_int_equal(cgfile_psi(STR("\n"), &psi), -EBADMSG);
}

static void what_reclaim_cannot_give_back(void **state)
{
	struct memory_stat s = {.seen = MEMORY_ANON | MEMORY_SHMEM | MEMORY_KERNEL |
					MEMORY_SLAB_RECLAIMABLE | MEMORY_INACTIVE_FILE,
		.anon_bytes = 1000,
		.shmem_bytes = 50,
		.kernel_bytes = 300,
		.slab_reclaimable_bytes = 100,
		.inactive_file_bytes = 99999};
	uint64_t bytes;

	assert_true(memory_stat_unreclaimable(&s, 0, &bytes));
	assert_int_equal(bytes, 1250);
	assert_true(memory_stat_unreclaimable(&s, 400, &bytes));
	assert_int_equal(bytes, 850);
	assert_true(memory_stat_unreclaimable(&s, CG_MAX, &bytes));
	assert_int_equal(bytes, 250);
	s.seen = MEMORY_ANON; /* an old kernel */
	assert_true(memory_stat_unreclaimable(&s, 0, &bytes));
	assert_int_equal(bytes, 1000);
	s.seen = MEMORY_SHMEM;
	assert_false(memory_stat_unreclaimable(&s, 0, &bytes));
}

static void populated_and_controllers(void **state)
{
	bool populated;

	assert_int_equal(cgfile_populated(STR("populated 1\nfrozen 0\n"), &populated), 0);
	assert_true(populated);
	assert_int_equal(cgfile_populated(STR("populated 0\nfrozen 0\n"), &populated), 0);
	assert_false(populated);
	assert_int_equal(cgfile_populated(STR("frozen 0\n"), &populated), -ENOENT);
	assert_true(cgfile_has_controller(STR("cpuset cpu io memory pids\n"), "memory"));
	assert_true(cgfile_has_controller(STR("cpuset cpu io memory pids\n"), "cpu"));
	assert_false(cgfile_has_controller(STR("cpuset io\n"), "cpu"));
	assert_false(cgfile_has_controller(STR("\n"), "cpu"));
	assert_false(cgfile_has_controller(STR(""), "cpu"));
}

/* Whatever the cut, a prefix of a real file gives values of that file or an error, and never reads
 * past its end. */
static void a_file_cut_anywhere_is_harmless(void **state)
{
	static const char text[] = "anon 4096\nfile 8192\nkernel 100\nshmem 12\n"
				   "inactive_anon 5\ninactive_file 77\nslab_reclaimable 8\n";

	for (size_t n = 0; n < sizeof(text); n++) {
		_cleanup_free_ char *copy = malloc(n ? n : 1);
		struct memory_stat m = {0};
		int r;

		assert_non_null(copy);
		memcpy(copy, text, n);
		r = cgfile_memory_stat((struct str){copy, n}, &m);
		assert_true(r == 0 || r == -ENODATA || r == -EBADMSG);
		assert_true(m.anon_bytes <= 4096 && m.kernel_bytes <= 100 && m.shmem_bytes <= 12 &&
			    m.inactive_file_bytes <= 77 && m.slab_reclaimable_bytes <= 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_stat_of_a_cgroup_with_a_quota),
		cmocka_unit_test(cpu_stat_without_the_controller_has_no_throttling),
		cmocka_unit_test(keys_in_another_order_and_unknown_ones_do_not_matter),
		cmocka_unit_test(a_missing_key_is_not_a_zero),
		cmocka_unit_test(an_empty_read_is_told_apart),
		cmocka_unit_test(a_wanted_key_without_a_number_is_refused),
		cmocka_unit_test(numbers_and_max),
		cmocka_unit_test(cpu_max_gives_millicores),
		cmocka_unit_test(pressure_with_and_without_full),
		cmocka_unit_test(what_reclaim_cannot_give_back),
		cmocka_unit_test(populated_and_controllers),
		cmocka_unit_test(a_file_cut_anywhere_is_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
