#include "base/arena.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

Test(arena, gives_aligned_memory_that_does_not_overlap)
{
    arena a = {0};
    unsigned char *pieces[300];
    for (size_t i = 0; i < 300; i++) {
        size_t bytes = i * 7 % 500 + 1, alignment = (size_t)1 << (i % 13);
        pieces[i] = arena_allocate_aligned(&a, bytes, alignment);
        cr_assert_not_null(pieces[i]);
        cr_assert_eq((uintptr_t)pieces[i] % alignment, 0);
        memset(pieces[i], (int)(i & 255), bytes);
    }
    for (size_t i = 0; i < 300; i++)
        for (size_t j = 0; j < i * 7 % 500 + 1; j++)
            cr_assert_eq(pieces[i][j], i & 255, "piece %zu was overwritten at %zu", i, j);
    arena_dispose(&a);
}

Test(arena, serves_requests_larger_than_a_block)
{
    arena a;
    arena_init(&a, 128);
    unsigned char *p = arena_allocate(&a, 100000);
    cr_assert_not_null(p);
    memset(p, 1, 100000);
    arena_dispose(&a);
    cr_assert_eq(arena_held_bytes(&a), 0);
}

Test(arena, reset_keeps_blocks_up_to_the_limit_and_reuses_them)
{
    arena a;
    arena_init(&a, 1024);
    for (int i = 0; i < 10; i++)
        arena_allocate(&a, 1000);
    size_t held = arena_held_bytes(&a);
    cr_assert_geq(held, 10000);
    arena_reset(&a, held);
    for (int i = 0; i < 10; i++)
        arena_allocate(&a, 1000);
    cr_assert_eq(arena_held_bytes(&a), held, "in steady state nothing is allocated");
    arena_reset(&a, 3000);
    cr_assert_leq(arena_held_bytes(&a), 3000);
    arena_reset(&a, 0);
    cr_assert_eq(arena_held_bytes(&a), 0);
    cr_assert_not_null(arena_allocate(&a, 10));
    arena_dispose(&a);
}

Test(arena, rejects_sizes_that_overflow)
{
    arena a = {0};
    cr_assert_null(arena_allocate(&a, SIZE_MAX));
    cr_assert_null(arena_allocate(&a, SIZE_MAX - 64));
    cr_assert_null(arena_allocate_zeroed(&a, SIZE_MAX / 2, 3));
    cr_assert_null(arena_copy_string(&a, "", SIZE_MAX));
    cr_assert_not_null(arena_allocate(&a, 0));
    arena_dispose(&a);
}

Test(arena, zeroes_reused_memory_when_asked)
{
    arena a = {0};
    memset(arena_allocate(&a, 4000), 0xff, 4000);
    arena_reset(&a, SIZE_MAX);
    unsigned char *p = arena_allocate_zeroed(&a, 1000, 4);
    for (int i = 0; i < 4000; i++)
        cr_assert_eq(p[i], 0);
    arena_dispose(&a);
}

Test(arena, copies_and_formats_text)
{
    arena a = {0};
    cr_assert_str_eq(arena_copy_string(&a, "batches", 5), "batch");
    cr_assert_str_eq(arena_copy_string(&a, "", 0), "");
    cr_assert_str_eq(arena_format(&a, "%s-%d", "bucket", 7), "bucket-7");
    char *longer = arena_format(&a, "%050000d", 7);
    cr_assert_eq(strlen(longer), 50000);
    arena_dispose(&a);
}
