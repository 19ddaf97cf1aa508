/* Operators on pairs, in each type that they compute in. */
#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/devices/cpu/case.h"

Test(cpu_binary, add_broadcasts_both_ways_in_every_type)
{
    for (int type = DTYPE_U8; type < DTYPE_BYTES; type++) {
        cpu_case c = {0};
        cpu_case_input(&c, (dtype)type, DIMS(2, 1, 3), (double[]){1, 2, 3, 4, 5, 6});
        cpu_case_input(&c, (dtype)type, DIMS(2, 1), (double[]){10, 20});
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_ADD, 1), STATUS_OK);
        for (int i = 0; i < 12; i++)
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i),
                                 1 + i / 6 * 3 + i % 3 + (i / 3 % 2 ? 20 : 10), 0, i);
        cpu_case_dispose(&c);
    }
}

Test(cpu_binary, integer_division_by_zero_is_no_trap)
{
    cpu_case c = {0};
    cpu_case_input(&c, DTYPE_I32, DIMS(3), (double[]){7, -2147483648.0, -7});
    cpu_case_input(&c, DTYPE_I32, DIMS(3), (double[]){0, -1, 2});
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_DIV, 1), STATUS_OK);
    cpu_case_expect_near(cpu_case_get(&c.outputs[0], 0), 0, 0, 0);
    cpu_case_expect_near(cpu_case_get(&c.outputs[0], 1), -2147483648.0, 0, 1);
    cpu_case_expect_near(cpu_case_get(&c.outputs[0], 2), -3, 0, 2);
    cpu_case_dispose(&c);
}

static void expect_pairs(graph_op op, dtype type, const int64_t *dims, const double *a,
                         const double *b, const double *expected, int count)
{
    cpu_case c = {0};
    cpu_case_input(&c, type, dims, a);
    cpu_case_input(&c, type, dims, b);
    cr_assert_eq(cpu_case_run(&c, op, 1), STATUS_OK);
    for (int i = 0; i < count; i++)
        cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), expected[i], 1e-6, i);
    cpu_case_dispose(&c);
}

Test(cpu_binary, mod_has_the_sign_of_the_divisor)
{
    static const double a[] = {7, -7, 7, -7, 6, 5}, b[] = {3, 3, -3, -3, -3, 0};
    static const double expected[] = {1, 2, -2, -1, 0, 0};
    expect_pairs(GRAPH_OP_MOD, DTYPE_I32, DIMS(6), a, b, expected, 6);
    expect_pairs(GRAPH_OP_MOD, DTYPE_I64, DIMS(6), a, b, expected, 6);
    static const double fractions[] = {5.5, -5.5, 5.5}, divisors[] = {2, 2, -2};
    expect_pairs(GRAPH_OP_MOD, DTYPE_F64, DIMS(3), fractions, divisors, (double[]){1.5, 0.5, -0.5},
                 3);
}

Test(cpu_binary, comparisons_of_signed_and_unsigned)
{
    static const double a[] = {1, 2, 3}, b[] = {2, 2, 2};
    for (int type = DTYPE_U8; type < DTYPE_BYTES; type++) {
        expect_pairs(GRAPH_OP_LESS, (dtype)type, DIMS(3), a, b, (double[]){1, 0, 0}, 3);
        expect_pairs(GRAPH_OP_LESS_OR_EQUAL, (dtype)type, DIMS(3), a, b, (double[]){1, 1, 0}, 3);
        expect_pairs(GRAPH_OP_GREATER, (dtype)type, DIMS(3), a, b, (double[]){0, 0, 1}, 3);
        expect_pairs(GRAPH_OP_GREATER_OR_EQUAL, (dtype)type, DIMS(3), a, b, (double[]){0, 1, 1}, 3);
        expect_pairs(GRAPH_OP_EQUAL, (dtype)type, DIMS(3), a, b, (double[]){0, 1, 0}, 3);
    }
    expect_pairs(GRAPH_OP_LESS, DTYPE_I64, DIMS(1), (double[]){-1}, (double[]){1}, (double[]){1},
                 1);
    expect_pairs(GRAPH_OP_LESS, DTYPE_U64, DIMS(1), (double[]){0x1p63}, (double[]){1},
                 (double[]){0}, 1);
}

Test(cpu_binary, powers_of_integers)
{
    expect_pairs(GRAPH_OP_POW, DTYPE_I64, DIMS(5), (double[]){3, -2, 1, -1, 2},
                 (double[]){4, 3, -5, -3, -1}, (double[]){81, -8, 1, -1, 0}, 5);
}

/* Sums and products keep the low bits; extremes and comparisons know the sign. One operand repeats,
 * and lines are longer than a block of a kernel. */
Test(cpu_binary, integers_in_long_lines)
{
    static const dtype types[] = {DTYPE_U8, DTYPE_I8, DTYPE_I32, DTYPE_I64};
    static const graph_op ops[] = {GRAPH_OP_ADD, GRAPH_OP_SUB,  GRAPH_OP_MUL,        GRAPH_OP_MAX,
                                   GRAPH_OP_MIN, GRAPH_OP_LESS, GRAPH_OP_BITWISE_XOR};
    for (int turn = 0; turn < 28; turn++) {
        dtype type = types[turn % 4];
        cpu_case c = {0};
        cpu_case_random(&c, type, DIMS(2, 1100));
        cpu_case_input(&c, type, DIMS(2, 1), (double[]){type == DTYPE_U8 ? 200 : -100, 3});
        for (int64_t i = 0; i < 2200; i++)
            tensor_set_number(&c.inputs[0], i,
                              (double)(i * 7 % 256) - (type == DTYPE_U8 ? 0 : 128));
        graph_op op = ops[turn / 4];
        cr_assert_eq(cpu_case_run(&c, op, 1), STATUS_OK);
        for (int64_t i = 0; i < 2200; i++) {
            int64_t x = (int64_t)cpu_case_get(&c.inputs[0], i);
            int64_t y = (int64_t)cpu_case_get(&c.inputs[1], i / 1100);
            int64_t want = op == GRAPH_OP_ADD   ? x + y
                           : op == GRAPH_OP_SUB ? x - y
                           : op == GRAPH_OP_MUL ? x * y
                           : op == GRAPH_OP_MAX ? (x > y ? x : y)
                           : op == GRAPH_OP_MIN ? (x < y ? x : y)
                                                : (op == GRAPH_OP_LESS ? x < y : x ^ y);
            want = type == DTYPE_U8 ? (uint8_t)want : type == DTYPE_I8 ? (int8_t)want : want;
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), (double)want, 0, i);
        }
        cpu_case_dispose(&c);
    }
}

/* Rows of a few elements beside one row, or one for each of two images, on either side. */
Test(cpu_binary, short_rows_beside_a_row_that_repeats)
{
    static const dtype types[] = {DTYPE_F32, DTYPE_U8, DTYPE_I64};
    static const int64_t widths[] = {1, 2, 3, 7, 32, 33};
    for (int turn = 0; turn < 72; turn++) {
        int64_t width = widths[turn % 6], rows = turn / 6 % 2 ? 301 : 4;
        bool is_first = turn / 12 % 2, is_each = turn / 24 % 3 == 2;
        graph_op op = turn % 5 ? GRAPH_OP_SUB : GRAPH_OP_LESS;
        dtype type = types[turn % 3];
        double row[2 * 33];
        for (int i = 0; i < 2 * 33; i++)
            row[i] = i % 13;
        cpu_case c = {0};
        if (is_first)
            cpu_case_input(&c, type, DIMS(is_each ? 2 : 1, 1, width), row);
        cpu_case_random(&c, type, DIMS(2, rows, width));
        if (!is_first)
            cpu_case_input(&c, type, DIMS(is_each ? 2 : 1, 1, width), row);
        for (int64_t i = 0; i < 2 * rows * width; i++)
            tensor_set_number(&c.inputs[is_first], i, (double)(i * 11 % 100));
        cr_assert_eq(cpu_case_run(&c, op, 1), STATUS_OK);
        for (int64_t i = 0; i < 2 * rows * width; i++) {
            int64_t at = i % width + (is_each ? i / (rows * width) * width : 0);
            double x = (double)(i * 11 % 100), y = row[at];
            double a = is_first ? y : x, b = is_first ? x : y;
            double want = op == GRAPH_OP_LESS         ? a < b
                          : type == DTYPE_U8 && a < b ? a - b + 256
                                                      : a - b;
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), want, 0, i);
        }
        cpu_case_dispose(&c);
    }
}

Test(cpu_binary, where_repeats_each_of_its_operands)
{
    const int64_t *const shapes[] = {DIMS(3, 5), DIMS(3, 1), DIMS(5), DIMS(1)};
    static const dtype types[] = {DTYPE_U8, DTYPE_F16, DTYPE_F32, DTYPE_I64};
    for (int turn = 0; turn < 64; turn++) {
        int of[3] = {turn % 4, turn / 4 % 4, turn / 16};
        double truths[15], numbers[15];
        for (int i = 0; i < 15; i++) {
            truths[i] = i * 5 % 3 == 0;
            numbers[i] = 20 + i;
        }
        cpu_case c = {0};
        cpu_case_input(&c, DTYPE_BOOL, shapes[of[0]], truths);
        cpu_case_input(&c, types[turn % 3], shapes[of[1]], numbers);
        cpu_case_input(&c, types[turn % 3], shapes[of[2]], truths);
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_WHERE, 1), STATUS_OK);
        for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
            int64_t columns = c.outputs[0].dims[c.outputs[0].rank - 1], at[3];
            for (int o = 0; o < 3; o++)
                at[o] = of[o] == 0 ? i : of[o] == 1 ? i / columns : of[o] == 2 ? i % columns : 0;
            double want = cpu_case_get(&c.inputs[0], at[0]) != 0
                              ? cpu_case_get(&c.inputs[1], at[1])
                              : cpu_case_get(&c.inputs[2], at[2]);
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), want, 0, i);
        }
        cpu_case_dispose(&c);
    }
}

/* Clip with both bounds, one, none; Pow as products. */
Test(cpu_binary, clips_and_powers_in_long_lines)
{
    static const dtype types[] = {DTYPE_U8, DTYPE_I8, DTYPE_I32, DTYPE_I64, DTYPE_F32, DTYPE_F64};
    for (int turn = 0; turn < 24; turn++) {
        dtype type = types[turn % 6];
        double low = 3, high = 60;
        cpu_case c = {0};
        tensor *x = cpu_case_random(&c, type, DIMS(3, 1001));
        for (int64_t i = 0; i < 3003; i++)
            tensor_set_number(x, i, (double)(i * 7 % 127));
        c.is_absent[1] = turn / 6 % 2;
        c.is_absent[2] = turn / 12 % 2;
        cpu_case_input(&c, type, DIMS(1), &low)->rank = 0;
        cpu_case_input(&c, type, DIMS(1), &high)->rank = 0;
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_CLIP, 1), STATUS_OK);
        for (int64_t i = 0; i < 3003; i++) {
            double want = cpu_case_get(x, i);
            want = !c.is_absent[1] && want < low ? low : want;
            want = !c.is_absent[2] && want > high ? high : want;
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), want, 0, i);
        }
        cpu_case_dispose(&c);
    }
    for (int turn = 0; turn < 8; turn++) {
        dtype type = types[2 + turn % 4];
        double power = 2 + turn / 4;
        cpu_case c = {0};
        tensor *x = cpu_case_random(&c, type, DIMS(3, 401));
        for (int64_t i = 0; i < 1203; i++)
            tensor_set_number(x, i, (double)(i * 7 % 127 - 60));
        cpu_case_input(&c, type, DIMS(1), &power)->rank = 0;
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_POW, 1), STATUS_OK);
        for (int64_t i = 0; i < 1203; i++)
            cpu_case_expect_near(
                cpu_case_get(&c.outputs[0], i),
                power == 2 ? pow(cpu_case_get(x, i), 2) : pow(cpu_case_get(x, i), 3), 0, i);
        cpu_case_dispose(&c);
    }
}
