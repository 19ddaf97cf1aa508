#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/budget/memory.h"

static char root[] = "/tmp/penstock-groups-XXXXXX";
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

TestSuite(memory, .init = begin, .fini = end);

Test(memory, version_2_the_least_of_a_group_and_those_above)
{
    put("groups", "0::/a/b\n");
    cr_assert_eq(memory_of_groups(root, groups), SIZE_MAX);
    folder("a");
    folder("a/b");
    put("a/b/memory.max", "max\n");
    cr_assert_eq(memory_of_groups(root, groups), SIZE_MAX);
    put("a/memory.max", "3000000\n");
    cr_assert_eq(memory_of_groups(root, groups), 3000000);
    put("a/b/memory.max", "2000000\n");
    put("memory.max", "9000000\n");
    cr_assert_eq(memory_of_groups(root, groups), 2000000);
}

Test(memory, version_1)
{
    put("groups", "5:cpu:/x\n4:memory:/pod/c\n");
    folder("memory");
    put("memory/memory.limit_in_bytes", "5000000\n");
    cr_assert_eq(memory_of_groups(root, groups), 5000000, "the group is not visible from inside");
}

Test(memory, address_space)
{
#ifdef __SANITIZE_ADDRESS__
    cr_skip_test("a sanitizer needs more address space than the limit of this test");
#endif
    size_t before = memory_there_is();
    cr_assert(before > 0 && before < SIZE_MAX);
    struct rlimit limit = {.rlim_cur = (rlim_t)before, .rlim_max = RLIM_INFINITY};
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = (rlim_t)2 << 30;
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    cr_assert_lt(memory_there_is(), (size_t)2 << 30);
}
