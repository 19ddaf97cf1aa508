#include <criterion/criterion.h>

#include "batcher/job/stage.h"

Test(stage, names)
{
    cr_assert_str_eq(stage_name(STAGE_ACCEPT), "accept");
    cr_assert_str_eq(stage_name(STAGE_RECORD), "record");
}

Test(stage, a_stamp_writes_its_own_stage_only)
{
    uint64_t stage_ns[STAGE_COUNT] = {0};
    stage_stamp(stage_ns, STAGE_PAD, 5);
    for (int i = 0; i < STAGE_COUNT; i++)
        cr_expect_eq(stage_ns[i], i == STAGE_PAD ? 5 : 0);
}
