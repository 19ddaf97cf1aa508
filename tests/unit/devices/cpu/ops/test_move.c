/* Operators that only move elements. */
#include <criterion/criterion.h>

#include "tests/unit/devices/cpu/case.h"

Test(cpu_move, transposes_of_every_order_of_four_dims)
{
    const int64_t dims[] = {3, 18, 5, 33};
    for (int code = 0; code < 256; code++) {
        const int64_t perm[] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6};
        if ((1 << perm[0] | 1 << perm[1] | 1 << perm[2] | 1 << perm[3]) != 15)
            continue;
        cpu_case c = {.attributes = {{.name = "perm",
                                      .kind = GRAPH_ATTRIBUTE_INTS,
                                      .count = 4,
                                      .ints = perm}},
                      .attribute_count = 1};
        cpu_case_random(&c, DTYPE_F32, DIMS(3, 18, 5, 33));
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_TRANSPOSE, 1), STATUS_OK);
        const int64_t *out = c.outputs[0].dims;
        for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
            int64_t at[4], rest = i, from = 0;
            for (int d = 3; d >= 0; d--) {
                at[perm[d]] = rest % out[d];
                rest /= out[d];
            }
            for (int d = 0; d < 4; d++)
                from = from * dims[d] + at[d];
            cr_assert(cpu_case_get(&c.outputs[0], i) == cpu_case_get(&c.inputs[0], from));
        }
        cpu_case_dispose(&c);
    }
}

/* Rows of the result a multiple of 2 KiB apart, with columns and rows that no tile covers. */
Test(cpu_move, transposes_into_rows_that_share_sets_of_a_cache)
{
    const int64_t perm[] = {0, 2, 1}, rows = 1024, columns = 37;
    cpu_case c = {.attributes = {{.name = "perm",
                                  .kind = GRAPH_ATTRIBUTE_INTS,
                                  .count = 3,
                                  .ints = (int64_t *)perm}},
                  .attribute_count = 1};
    cpu_case_random(&c, DTYPE_F32, DIMS(2, 1024, 37));
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_TRANSPOSE, 1), STATUS_OK);
    for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
        int64_t image = i / (rows * columns), column = i / rows % columns, row = i % rows;
        int64_t from = (image * rows + row) * columns + column;
        cr_assert(cpu_case_get(&c.outputs[0], i) == cpu_case_get(&c.inputs[0], from), "%lld",
                  (long long)i);
    }
    cpu_case_dispose(&c);
}

/* Channels of pixels, in elements of each size: to planes and back. */
Test(cpu_move, channels_of_pixels)
{
    static const dtype types[] = {DTYPE_U8, DTYPE_F16, DTYPE_F32, DTYPE_I64};
    for (int turn = 0; turn < 40; turn++) {
        const int64_t perm[] = {1, 0}, channels = 1 + turn / 4 % 5;
        cpu_case c = {.attributes = {{.name = "perm",
                                      .kind = GRAPH_ATTRIBUTE_INTS,
                                      .count = 2,
                                      .ints = (int64_t *)perm}},
                      .attribute_count = 1};
        int64_t rows = turn < 20 ? 77 : channels, columns = turn < 20 ? channels : 77;
        cpu_case_random(&c, types[turn % 4], DIMS(rows, columns));
        for (int64_t i = 0; i < rows * columns; i++)
            tensor_set_number(&c.inputs[0], i, (double)(i % 250));
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_TRANSPOSE, 1), STATUS_OK);
        for (int64_t i = 0; i < rows * columns; i++)
            cr_assert(cpu_case_get(&c.outputs[0], i) ==
                      cpu_case_get(&c.inputs[0], i % rows * columns + i / rows));
        cpu_case_dispose(&c);
    }
}
