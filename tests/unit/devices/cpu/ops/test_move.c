/* Operators that only move elements. */
#include <criterion/criterion.h>

#include "base/xorshift.h"
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

static int64_t below(uint64_t *seed, int64_t n)
{
    return (int64_t)(xorshift_next(seed) % (uint64_t)n);
}

/* Element i of a dense array of those dims, as its index in each dim. */
static void place_of(int64_t i, int rank, const int64_t *dims, int64_t *at)
{
    for (int d = rank - 1; d >= 0; d--) {
        at[d] = i % dims[d];
        i /= dims[d];
    }
}

static const dtype move_types[] = {DTYPE_U8, DTYPE_F16, DTYPE_F32, DTYPE_I64};

/* Expand: dims of 1 repeat what lies behind them, or single elements. */
Test(cpu_move, expand_repeats_any_dims)
{
    uint64_t seed = 3;
    for (int turn = 0; turn < 200; turn++) {
        int rank = 1 + (int)below(&seed, 4);
        int64_t dims[5] = {0}, ends[5] = {-1, -1, -1, -1, -1};
        double wanted[4];
        for (int d = 0; d < rank; d++) {
            wanted[d] = (double)(dims[d] = 1 + below(&seed, turn % 9 ? 6 : 40));
            ends[d] = below(&seed, 2) ? dims[d] : 1;
        }
        cpu_case c = {0};
        tensor *x = cpu_case_random(&c, move_types[turn % 4], ends);
        cpu_case_input(&c, DTYPE_I64, DIMS(rank), wanted);
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_EXPAND, 1), STATUS_OK);
        for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
            int64_t at[4], from = 0;
            place_of(i, rank, dims, at);
            for (int d = 0; d < rank; d++)
                from = from * ends[d] + at[d] % ends[d];
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), cpu_case_get(x, from), 0, i);
        }
        cpu_case_dispose(&c);
    }
}

Test(cpu_move, tile_repeats_any_dims)
{
    uint64_t seed = 4;
    for (int turn = 0; turn < 200; turn++) {
        int rank = 1 + (int)below(&seed, 4);
        int64_t dims[5] = {0}, ends[5] = {-1, -1, -1, -1, -1};
        double times[4];
        for (int d = 0; d < rank; d++) {
            ends[d] = 1 + below(&seed, 6);
            times[d] = (double)(1 + below(&seed, 3) * below(&seed, 2));
            dims[d] = ends[d] * (int64_t)times[d];
        }
        cpu_case c = {0};
        tensor *x = cpu_case_random(&c, move_types[turn % 4], ends);
        cpu_case_input(&c, DTYPE_I64, DIMS(rank), times);
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_TILE, 1), STATUS_OK);
        for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
            int64_t at[4], from = 0;
            place_of(i, rank, dims, at);
            for (int d = 0; d < rank; d++)
                from = from * ends[d] + at[d] % ends[d];
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), cpu_case_get(x, from), 0, i);
        }
        cpu_case_dispose(&c);
    }
}

/* The index in a dim of `n` elements of element j of the padded dim, or -1. */
static int64_t unpadded(const char *mode, int64_t j, int64_t n)
{
    if (j >= 0 && j < n)
        return j;
    if (mode[0] == 'c')
        return -1;
    if (mode[0] == 'e')
        return j < 0 ? 0 : n - 1;
    return mode[0] == 'w' ? (j + 8 * n) % n : j < 0 ? -j : 2 * (n - 1) - j;
}

/* Pad: inner dims that are not padded are moved with those that are. */
Test(cpu_move, pad_of_any_dims)
{
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    uint64_t seed = 5;
    for (int turn = 0; turn < 300; turn++) {
        const char *mode = modes[turn / 4 % 4];
        int rank = 1 + (int)below(&seed, 4);
        int64_t dims[5] = {0}, ends[5] = {-1, -1, -1, -1, -1};
        double pads[8] = {0}, seven = 7;
        for (int d = 0; d < rank; d++) {
            dims[d] = ends[d] = 3 + below(&seed, 5);
            bool is_padded = below(&seed, 3) == 0;
            int64_t low = mode[0] == 'c' ? -1 : 0;
            pads[d] = is_padded ? (double)(low + below(&seed, 4)) : 0;
            pads[d + rank] = is_padded ? (double)(low + below(&seed, 3)) : 0;
            pads[d] = pads[d] < (double)ends[d] ? pads[d] : 0;
            dims[d] += (int64_t)(pads[d] + pads[d + rank]);
        }
        cpu_case c = {.attributes = {{.name = "mode", .kind = GRAPH_ATTRIBUTE_STRING, .s = mode}},
                      .attribute_count = 1};
        tensor *x = cpu_case_random(&c, move_types[turn % 4], ends);
        cpu_case_input(&c, DTYPE_I64, DIMS(2 * rank), pads);
        cpu_case_input(&c, move_types[turn % 4], DIMS(1), &seven);
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_PAD, 1), STATUS_OK);
        for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
            int64_t at[4], from = 0;
            bool is_inside = true;
            place_of(i, rank, dims, at);
            for (int d = 0; d < rank; d++) {
                int64_t j = unpadded(mode, at[d] - (int64_t)pads[d], ends[d]);
                is_inside &= j >= 0;
                from = from * ends[d] + j;
            }
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i),
                                 is_inside ? cpu_case_get(x, from) : 7, 0, i);
        }
        cpu_case_dispose(&c);
    }
}
