#include "base/large_memory.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

Test(large_memory, keeps_its_content_while_it_grows)
{
    size_t bytes = 0;
    unsigned char *p = NULL;
    for (size_t more = 1000; more < 40 * LARGE_MEMORY_BYTES; more = more * 5 / 2) {
        p = large_memory_grow(p, bytes, more);
        cr_assert_not_null(p);
        for (size_t i = 0; i < bytes; i += 97)
            cr_assert_eq(p[i], (unsigned char)(i % 251));
        for (size_t i = 0; i < more; i++)
            p[i] = (unsigned char)(i % 251);
        bytes = more;
    }
    cr_assert_geq(bytes, 10 * LARGE_MEMORY_BYTES);
    large_memory_free(p, bytes);
}

Test(large_memory, without_memory_it_stays_as_it_was)
{
    size_t sizes[] = {100, LARGE_MEMORY_BYTES, 3 * LARGE_MEMORY_BYTES + 5};
    for (int i = 0; i < 3; i++) {
        char *p = large_memory_grow(NULL, 0, sizes[i]);
        cr_assert_not_null(p);
        p[sizes[i] - 1] = 7;
        cr_expect_null(large_memory_grow(p, sizes[i], SIZE_MAX / 4));
        cr_expect_eq(p[sizes[i] - 1], 7);
        large_memory_free(p, sizes[i]);
    }
    large_memory_free(NULL, 0);
}

/* Of any size, aligned, freed by free(); one that nobody has is NULL. */
Test(large_memory, allocates_for_free)
{
    static const size_t sizes[] = {1, 63, 4096, LARGE_MEMORY_PAGE - 1, 3 * LARGE_MEMORY_PAGE + 100};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *p = large_memory_allocate(sizes[i]);
        cr_assert(p != NULL);
        cr_expect_eq((uintptr_t)p % 64, 0);
        memset(p, 7, sizes[i]);
        cr_expect_eq(p[sizes[i] - 1], 7);
        free(p);
    }
    cr_expect_null(large_memory_allocate(SIZE_MAX));
    cr_expect_null(large_memory_allocate(SIZE_MAX / 2));
}
