#include <criterion/criterion.h>

#include "batcher/execute/slice.h"

Test(slice, inner_sequence_axis_is_cut)
{
    /* [2, 3, 4 (sequence), 2] to a job of length 3. */
    static float from[2 * 3 * 4 * 2], to[1 * 3 * 3 * 2];
    for (int i = 0; i < 48; i++)
        from[i] = (float)i;
    static model m;
    m.output_count = 1;
    m.outputs[0] = (model_tensor){
        .dtype = DTYPE_F32, .rank = 4, .dims = {-1, 3, -1, 2}, .batch_axis = 0, .sequence_axis = 2};
    static job j;
    j.rows = 1;
    j.length = 3;
    j.outputs[0] = (tensor){.dtype = DTYPE_F32, .rank = 4, .dims = {1, 3, 3, 2}, .data = to};
    tensor whole = {.dtype = DTYPE_F32, .rank = 4, .dims = {2, 3, 4, 2}, .data = from};
    static job other;
    other = j;
    float unused[18];
    other.outputs[0].data = unused;
    batch_member members[2] = {{.job = &other, .rows = 1}, {.job = &j, .rows = 1}};
    slice_rows(&m, members, 2, &whole);
    for (int h = 0; h < 3; h++)
        for (int s = 0; s < 3; s++)
            for (int k = 0; k < 2; k++)
                cr_assert_eq(to[(h * 3 + s) * 2 + k], from[24 + (h * 4 + s) * 2 + k]);
}
