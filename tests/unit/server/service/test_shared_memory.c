#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/service/shared_memory.h"

#define BYTES 100

static char key[64];

static shared_memory *make(void)
{
    snprintf(key, sizeof key, "/penstock_unit_%d", (int)getpid());
    int fd = shm_open(key, O_CREAT | O_RDWR, 0600);
    cr_assert(fd >= 0 && ftruncate(fd, BYTES) == 0);
    close(fd);
    shared_memory *m = shared_memory_create(1000);
    cr_assert(m);
    return m;
}

static void drop(shared_memory *m)
{
    shared_memory_destroy(m);
    shm_unlink(key);
}

static status add(shared_memory *m, const char *name, uint64_t offset, uint64_t bytes)
{
    shared_region r = {.offset = offset, .bytes = bytes};
    snprintf(r.name, sizeof r.name, "%s", name);
    snprintf(r.key, sizeof r.key, "%s", key);
    return shared_memory_register(m, &r);
}

static int descriptors(void)
{
    int fd = dup(0);
    close(fd);
    return fd; /* the lowest one that is free */
}

Test(shared_memory, reads_and_writes_what_lies_in_the_region)
{
    shared_memory *m = make();
    char found[8] = "";
    cr_assert(shared_memory_is_empty(m));
    cr_assert_eq(add(m, "r", 10, 50), STATUS_OK, "%s", status_message());
    cr_assert(!shared_memory_is_empty(m));
    cr_assert_eq(shared_memory_write(m, "r", 1, 4, 6, "abcdef"), STATUS_OK);
    cr_assert_eq(shared_memory_read(m, "r", 1, 5, 4, found), STATUS_OK);
    cr_assert_str_eq(found, "bcde");
    int fd = shm_open(key, O_RDWR, 0);
    cr_assert(pread(fd, found, 2, 14) == 2 && found[0] == 'a' && found[1] == 'b');
    cr_assert_eq(shared_memory_check(m, "r", 1, 0, 50), STATUS_OK);
    cr_assert_eq(shared_memory_check(m, "r", 1, 50, 0), STATUS_OK);
    cr_assert_eq(shared_memory_check(m, "r", 1, 0, 51), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(shared_memory_check(m, "r", 1, 51, 0), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(shared_memory_check(m, "r", 1, UINT64_MAX, 2), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(shared_memory_check(m, "r\0x", 3, 0, 1), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(shared_memory_check(m, "rr", 2, 0, 1), STATUS_INVALID_ARGUMENT);
    cr_assert(ftruncate(fd, 12) == 0);
    cr_assert_eq(shared_memory_read(m, "r", 1, 0, 4, found), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(shared_memory_write(m, "r", 1, 0, 1, "x"), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(lseek(fd, 0, SEEK_END), 12);
    close(fd);
    drop(m);
}

Test(shared_memory, names_and_limits)
{
    int before = descriptors();
    shared_memory *m = make();
    shared_region found[SHARED_REGIONS_MAX];
    char longer[SHARED_NAME_BYTES + 50];
    memset(longer, 'a', sizeof longer);
    cr_assert_eq(add(m, "ab", 0, 90), STATUS_OK);
    cr_assert_eq(add(m, "b", 0, 90), STATUS_OK);
    cr_assert_eq(add(m, "a", 0, 90), STATUS_OK);
    cr_assert_eq(add(m, "ab", 0, 1), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(shared_memory_check(m, longer, sizeof longer, 0, 1), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(shared_memory_list(m, "", found), 3);
    cr_assert_str_eq(found[0].name, "a");
    cr_assert_str_eq(found[1].name, "ab");
    cr_assert_str_eq(found[2].name, "b");
    cr_assert_eq(shared_memory_list(m, "ab", found), 1);
    shared_memory_unregister(m, "ab");
    shared_memory_unregister(m, "none");
    cr_assert_eq(shared_memory_list(m, NULL, found), 2);
    for (int i = 0; i < 8; i++)
        cr_assert_eq(add(m, (char[]){(char)('c' + i), 0}, 0, 100), STATUS_OK);
    cr_assert_eq(add(m, "x", 0, 21), STATUS_RESOURCE_EXHAUSTED); /* 980 of 1000 */
    cr_assert_eq(add(m, "x", 0, 20), STATUS_OK);
    shared_memory_unregister(m, NULL);
    cr_assert(shared_memory_is_empty(m));
    for (int i = 0; i < SHARED_REGIONS_MAX; i++)
        cr_assert_eq(add(m, (char[]){(char)('!' + i), 0}, 0, 1), STATUS_OK);
    cr_assert_eq(add(m, "more", 0, 1), STATUS_RESOURCE_EXHAUSTED);
    drop(m);
    cr_assert_eq(descriptors(), before, "descriptors are left open");
}
