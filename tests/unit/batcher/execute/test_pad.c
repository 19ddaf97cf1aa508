#include <criterion/criterion.h>

#include "batcher/execute/pad.h"

enum { TOKENS = 3, ROWS = 2 };

/* A mask has 1 at real tokens; other inputs get their pad value; rows beyond the last member repeat
 * the first. */
Test(pad, mask_pad_value_and_repeated_row)
{
    static model m;
    m.input_count = 2;
    for (int i = 0; i < 2; i++)
        m.inputs[i] = (model_tensor){
            .dtype = DTYPE_I64, .rank = 2, .dims = {-1, -1}, .batch_axis = 0, .sequence_axis = 1};
    m.inputs[0].pad_value = 7;
    m.inputs[1].is_mask = true;
    int64_t ids_of_job[ROWS * TOKENS] = {10, 11, 12, 13, 14, 15};
    int64_t mask_of_job[ROWS * TOKENS] = {1, 1, 1, 1, 1, 1};
    static job j;
    j.rows = ROWS;
    j.length = TOKENS;
    j.inputs[0] =
        (tensor){.dtype = DTYPE_I64, .rank = 2, .dims = {ROWS, TOKENS}, .data = ids_of_job};
    j.inputs[1] =
        (tensor){.dtype = DTYPE_I64, .rank = 2, .dims = {ROWS, TOKENS}, .data = mask_of_job};
    int64_t ids[4 * 5], mask[4 * 5];
    tensor to[2] = {{.dtype = DTYPE_I64, .rank = 2, .dims = {4, 5}, .data = ids},
                    {.dtype = DTYPE_I64, .rank = 2, .dims = {4, 5}, .data = mask}};
    batch_member member = {.job = &j, .row = 0, .rows = ROWS};
    pad_rows(&m, &member, 1, to);
    int64_t want[20] = {10, 11, 12, 7, 7, 13, 14, 15, 7, 7, 10, 11, 12, 7, 7, 10, 11, 12, 7, 7};
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(ids[i], want[i]);
        cr_assert_eq(mask[i], i % 5 < 3);
    }
}
