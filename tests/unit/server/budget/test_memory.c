#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

#include "server/budget/memory.h"
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

TestSuite(memory, .init = begin, .fini = end);

Test(memory, version_2_the_least_of_a_group_and_those_above)
{
    put("groups", "0::/a/b\n");
    cr_assert_eq(memory_of_groups(root, groups), SIZE_MAX);
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
