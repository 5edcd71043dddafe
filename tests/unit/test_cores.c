/* test_cores.c - the cores that a process may use. */
#include "base/cores.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/tempdir.h"

static char root[HF_TEMPDIR_SIZE];

static int make_root(void **state)
{
    (void)state;
    hf_tempdir_make(root);
    return 0;
}

static int remove_root(void **state)
{
    (void)state;
    hf_tempdir_remove(root);
    return 0;
}

/* With the directories above it. */
static void put(const char *path, const char *text)
{
    char file[256];
    snprintf(file, sizeof file, "%s%s", root, path);
    for (char *at = file + strlen(root) + 1; (at = strchr(at, '/')) != NULL;
         *at++ = '/') {
        *at = '\0';
        (void)mkdir(file, 0700);
    }
    hf_write_file(file, text);
}

#define UNIFIED "/sys/fs/cgroup"
#define CPU "/sys/fs/cgroup/cpu"

static void v2(const char *path, const char *max)
{
    put("/proc/self/cgroup", "0::/a/b\n");
    put(path, max);
}

static void without_a_limit_there_is_none(void **state)
{
    (void)state;
    assert_int_equal(hf_cores_of_cgroup(root), 0);
    put("/proc/self/cgroup", "0::/\n");
    assert_int_equal(hf_cores_of_cgroup(root), 0);
    v2(UNIFIED "/a/b/cpu.max", "max 100000\n");
    assert_int_equal(hf_cores_of_cgroup(root), 0);
}

static void a_part_of_a_core_counts_as_one(void **state)
{
    (void)state;
    v2(UNIFIED "/a/b/cpu.max", "50000 100000\n");
    assert_int_equal(hf_cores_of_cgroup(root), 1);
    v2(UNIFIED "/a/b/cpu.max", "150000 100000\n");
    assert_int_equal(hf_cores_of_cgroup(root), 2);
    v2(UNIFIED "/a/b/cpu.max", "300000 100000\n");
    assert_int_equal(hf_cores_of_cgroup(root), 3);
    v2(UNIFIED "/a/b/cpu.max", "9000000000000000000 1000\n");
    assert_int_equal(hf_cores_of_cgroup(root), 65536);
}

static void the_lowest_limit_above_it_counts(void **state)
{
    (void)state;
    v2(UNIFIED "/a/b/cpu.max", "400000 100000\n");
    put(UNIFIED "/a/cpu.max", "200000 100000\n");
    assert_int_equal(hf_cores_of_cgroup(root), 2);
    put(UNIFIED "/cpu.max", "100000 100000\n");
    assert_int_equal(hf_cores_of_cgroup(root), 1);
}

/* In a container the group is the root of what is mounted there. */
static void a_container_has_the_limit_at_its_root(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/\n");
    put(UNIFIED "/cpu.max", "250000 100000\n");
    assert_int_equal(hf_cores_of_cgroup(root), 3);
}

static void version_1_has_a_quota(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "12:cpuset:/x\n5:cpu,cpuacct:/docker/17\n0::/\n");
    put(CPU "/docker/17/cpu.cfs_quota_us", "-1\n");
    put(CPU "/docker/17/cpu.cfs_period_us", "100000\n");
    assert_int_equal(hf_cores_of_cgroup(root), 0);
    put(CPU "/docker/17/cpu.cfs_quota_us", "350000\n");
    assert_int_equal(hf_cores_of_cgroup(root), 4);
    /* The path of the host, where only the root of the mount is visible. */
    put("/proc/self/cgroup", "5:cpu,cpuacct:/docker/18\n");
    put(CPU "/cpu.cfs_quota_us", "200000\n");
    put(CPU "/cpu.cfs_period_us", "100000\n");
    assert_int_equal(hf_cores_of_cgroup(root), 2);
}

static void what_is_no_limit_is_ignored(void **state)
{
    (void)state;
    static const char *const lines[] = {"",   "x",     "0::",     "0:/a",
                                        "::", "1:cpu", "5:cpu:a", "5:cpuset,cpuacct:/a"};
    static const char *const limits[] = {"",       "max",    "100000", "0 1000", "1000 0",
                                         "-5 100", "100 -5", "a b",    "max max"};
    put(UNIFIED "/cpu.max", "100000 100000\n");
    put(CPU "/cpu.cfs_quota_us", "100000\n");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        put("/proc/self/cgroup", lines[i]);
        assert_int_equal(hf_cores_of_cgroup(root), 0);
    }
    put("/proc/self/cgroup", "0::/a/b\n");
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        put(UNIFIED "/cpu.max", limits[i]);
        assert_int_equal(hf_cores_of_cgroup(root), 0);
    }
}

static void a_process_has_at_least_one_and_at_most_all(void **state)
{
    (void)state;
    assert_true(hf_cores() >= 1);
    assert_true(hf_cores() <= (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_limit_there_is_none),
        TEST(a_part_of_a_core_counts_as_one),
        TEST(the_lowest_limit_above_it_counts),
        TEST(a_container_has_the_limit_at_its_root),
        TEST(version_1_has_a_quota),
        TEST(what_is_no_limit_is_ignored),
        TEST(a_process_has_at_least_one_and_at_most_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
