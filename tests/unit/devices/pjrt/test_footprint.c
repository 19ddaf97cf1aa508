#include <criterion/criterion.h>
#include <string.h>

#include "devices/pjrt/footprint.h"

#define MIB ((int64_t)1 << 20)

static const pjrt_claim small = {.code_bytes = MIB, .batch_bytes = 2 * MIB, .bucket = {1, 8}},
                        large = {.code_bytes = 3 * MIB, .batch_bytes = 40 * MIB, .bucket = {8, 64}};

Test(footprint, sums_weights_code_and_the_largest_batches)
{
    pjrt_footprint f = {.slots = 2};
    cr_expect_eq(pjrt_footprint_bytes(&f), 0);
    cr_assert_eq(pjrt_footprint_add(&f, &small, 10 * MIB), STATUS_OK);
    cr_expect_eq(pjrt_footprint_bytes(&f), (10 + 1 + 2 * 2) * MIB);
    cr_assert_eq(pjrt_footprint_add(&f, &large, 10 * MIB), STATUS_OK);
    cr_expect_eq(pjrt_footprint_bytes(&f), (10 + 1 + 3 + 2 * 40) * MIB);
    cr_expect_eq(pjrt_footprint_largest(&f)->bucket.batch, 8);
    pjrt_footprint_remove(&f, &large);
    cr_expect_eq(pjrt_footprint_bytes(&f), (10 + 1 + 2 * 2) * MIB);
    pjrt_footprint_dispose(&f);
}

Test(footprint, what_is_too_much_is_refused_and_not_added)
{
    pjrt_footprint f = {.slots = 2, .memory_bytes = 94 * MIB};
    cr_assert_eq(pjrt_footprint_add(&f, &small, 10 * MIB), STATUS_OK);
    cr_assert_eq(pjrt_footprint_add(&f, &large, 10 * MIB), STATUS_OK); /* to the byte */
    pjrt_footprint_remove(&f, &large);
    f.memory_bytes--;
    cr_assert_eq(pjrt_footprint_add(&f, &large, 10 * MIB), STATUS_RESOURCE_EXHAUSTED);
    cr_expect_str_eq(status_message(),
                     "the device has 94.00 MiB and would need 94.00 MiB: weights 10.00 MiB, code "
                     "of 2 programs 4096.0 KiB, 2 batches of 8x64 in flight with 40.00 MiB each");
    cr_expect_eq(pjrt_footprint_bytes(&f), (10 + 1 + 2 * 2) * MIB);
    cr_assert_eq(pjrt_footprint_add(&f, &small, 100 * MIB), STATUS_RESOURCE_EXHAUSTED);
    cr_expect_eq(f.weight_bytes, 10 * MIB);
    pjrt_footprint_dispose(&f);
}

Test(footprint, knows_what_is_published)
{
    cr_expect_eq(pjrt_footprint_memory_of("TPU v5 lite"), (int64_t)16 << 30);
    cr_expect_eq(pjrt_footprint_memory_of("cpu"), 0);
}

Test(footprint, says_how_many_batches_fit)
{
    pjrt_footprint f = {.slots = 2, .memory_bytes = 20 * MIB};
    cr_expect_eq(pjrt_footprint_depth(&f, 4), 4);
    cr_assert_eq(pjrt_footprint_add(&f, &small, 13 * MIB), STATUS_OK);
    cr_expect_eq(pjrt_footprint_bytes_at(&f, 3), 20 * MIB);
    cr_expect_eq(pjrt_footprint_depth(&f, 4), 3);
    f.memory_bytes = 0; /* not known */
    cr_expect_eq(pjrt_footprint_depth(&f, 4), 4);
    f.memory_bytes = MIB; /* never less than what was promised */
    cr_expect_eq(pjrt_footprint_depth(&f, 4), 2);
    pjrt_footprint_dispose(&f);
}
