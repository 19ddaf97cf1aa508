#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/io/cores.h"

static char root[] = "/tmp/penstock-cores-XXXXXX";
static char groups[64];

static void put(const char *path, const char *text)
{
    char at[256];
    snprintf(at, sizeof at, "%s/%s", root, path);
    FILE *file = fopen(at, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static void folder(const char *path)
{
    char at[256];
    snprintf(at, sizeof at, "%s/%s", root, path);
    cr_assert_eq(mkdir(at, 0700), 0);
}

static void begin(void)
{
    cr_assert_not_null(mkdtemp(root));
    snprintf(groups, sizeof groups, "%s/groups", root);
}

static void end(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(cores, .init = begin, .fini = end);

Test(cores, version_2_the_least_of_a_group_and_those_above)
{
    put("groups", "0::/a/b\n");
    cr_assert_eq(cores_of_groups(root, groups), 0);
    folder("a");
    folder("a/b");
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
    folder("cpu");
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
