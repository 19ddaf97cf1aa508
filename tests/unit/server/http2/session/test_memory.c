#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "server/http2/session/memory.h"

Test(http2_memory, a_freed_block_is_used_again_for_the_same_size)
{
    http2_memory m = {0};
    char *first = http2_memory_allocate(&m, 100);
    cr_assert(first);
    cr_assert_eq((uintptr_t)first % 16, 0);
    memset(first, 1, 100);
    http2_memory_free(&m, first);
    size_t kept = m.kept_bytes;
    void *again = http2_memory_allocate(&m, 90), *other = http2_memory_allocate(&m, 2000);
#ifndef __SANITIZE_ADDRESS__
    cr_assert_eq(kept, 128);
    cr_assert_eq(again, first);
    cr_assert_eq(m.kept_bytes, 0);
#else
    cr_assert_eq(kept, 0);
#endif
    cr_assert_geq(http2_memory_block_bytes(other), 2000);
    http2_memory_free(&m, again);
    http2_memory_free(&m, other);
    http2_memory_free(&m, NULL);
    http2_memory_dispose(&m);
    cr_assert_eq(m.kept_bytes, 0);
}

Test(http2_memory, what_is_kept_has_a_ceiling)
{
    enum { BLOCKS = 1000 };
    static void *blocks[BLOCKS];
    http2_memory m = {0};
    for (int i = 0; i < BLOCKS; i++)
        cr_assert(blocks[i] = http2_memory_allocate(&m, 4000));
    for (int i = 0; i < BLOCKS; i++)
        http2_memory_free(&m, blocks[i]);
    cr_assert_leq(m.kept_bytes, 1 << 20);
    void *large = http2_memory_allocate(&m, 1 << 20);
    size_t kept = m.kept_bytes;
    http2_memory_free(&m, large);
    cr_assert_eq(m.kept_bytes, kept, "a large block is not kept");
    http2_memory_dispose(&m);
}

Test(http2_memory, reallocation_keeps_the_content)
{
    http2_memory m = {0};
    char *p = http2_memory_reallocate(&m, NULL, 20);
    memset(p, 'a', 20);
    for (size_t bytes = 20; bytes < 100000; bytes *= 3) {
        p = http2_memory_reallocate(&m, p, bytes);
        cr_assert(p);
        for (int i = 0; i < 20; i++)
            cr_assert_eq(p[i], 'a');
    }
    cr_assert_null(http2_memory_allocate(&m, SIZE_MAX - 4));
    cr_assert_null(http2_memory_reallocate(&m, p, SIZE_MAX - 4));
    cr_assert_eq(p[19], 'a');
    http2_memory_free(&m, p);
    http2_memory_dispose(&m);
}
