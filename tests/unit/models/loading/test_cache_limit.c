#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "models/loading/cache_limit.h"
#include "tests/support/temporary.h"

static char folder[TEMPORARY_FOLDER_BYTES];

/* 1000 bytes, last used that long after 1970. */
static void add(const char *name, time_t used)
{
    static const char data[1000];
    char path[400];
    temporary_write(folder, name, data, sizeof data);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const struct timespec times[] = {{.tv_sec = used}, {.tv_sec = used}};
    cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

static bool has(const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

Test(cache_limit, removes_what_was_not_used_longest)
{
    temporary_make(folder);
    add("1-avx2.weights", 40);
    add("2.graph", 10);
    add("3-fp32-avx2.encoder", 30);
    add("4.files", 20);
    add("5.batching", 50);
    add("6.graph.4711", 5); /* of a process that ended while it wrote */
    add("7", 1);            /* a program of a device: not counted, never removed */
    add("notes.txt", 1);
    cache_limit_apply(folder, 0);
    cache_limit_apply(NULL, 1);
    cache_limit_apply("/nowhere/at/all", 1);
    cache_limit_apply(folder, 6000);
    cr_expect(has("6.graph.4711") && has("2.graph"), "six are within the limit");
    cache_limit_apply(folder, 3500);
    cr_expect(!has("6.graph.4711") && !has("2.graph") && !has("4.files"));
    cr_expect(has("3-fp32-avx2.encoder") && has("1-avx2.weights") && has("5.batching"));
    cache_limit_apply(folder, 1);
    cr_expect(!has("3-fp32-avx2.encoder") && !has("1-avx2.weights") && !has("5.batching"));
    cr_expect(has("7") && has("notes.txt"));
    temporary_remove(folder);
}
