#include <criterion/criterion.h>
#include <stdio.h>

#include "base/io/cores.h"
#include "tests/support/temporary.h"

static char root[TEMPORARY_FOLDER_BYTES], groups[TEMPORARY_FOLDER_BYTES + 10];

static void put(const char *path, const char *text)
{
    temporary_write_text(root, path, text);
}

static void begin(void)
{
    temporary_make(root);
    snprintf(groups, sizeof groups, "%s/groups", root);
}

static void end(void)
{
    temporary_remove(root);
}

TestSuite(cores, .init = begin, .fini = end);

Test(cores, version_2_the_least_of_a_group_and_those_above)
{
    put("groups", "0::/a/b\n");
    cr_assert_eq(cores_of_groups(root, groups), 0);
    put("a/b/cpu.max", "max 100000\n");
    cr_assert_eq(cores_of_groups(root, groups), 0);
    put("a/cpu.max", "200000 100000\n");
    cr_assert_eq(cores_of_groups(root, groups), 2);
    put("a/b/cpu.max", "50000 100000\n");
    put("cpu.max", "900000 100000\n");
    cr_assert_eq(cores_of_groups(root, groups), 0.5);
}

Test(cores, version_1)
{
    put("groups", "7:cpuset:/x\n5:cpu,cpuacct:/pod/c\n4:memory:/pod/c\n");
    put("cpu/cpu.cfs_quota_us", "-1\n");
    put("cpu/cpu.cfs_period_us", "100000\n");
    cr_assert_eq(cores_of_groups(root, groups), 0);
    put("cpu/cpu.cfs_quota_us", "150000\n");
    cr_assert_eq(cores_of_groups(root, groups), 1.5);
}

Test(cores, there_is_one)
{
    cr_assert_geq(cores_there_are(), 1);
}
