/* Operator families against plain loops in double. The ONNX conformance tests cover the rest. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "devices/cpu/ops/op.h"
#include "tests/unit/devices/cpu/case.h"

static double get(const tensor *t, int64_t i)
{
    return tensor_get_number(t, i);
}

static void expect_near(double actual, double expected, double tolerance, int64_t at)
{
    cr_expect(fabs(actual - expected) <= tolerance, "[%lld] %g, expected %g", (long long)at, actual,
              expected);
}

Test(cpu_ops, every_operator_of_the_ir_has_a_row)
{
    for (int op = 0; op < GRAPH_OP_COUNT; op++) /* an If is decided before a device sees it */
        cr_expect(op == GRAPH_OP_IF || cpu_op_find((graph_op)op) != NULL, "%s",
                  graph_op_name((graph_op)op));
}

Test(cpu_ops, add_broadcasts_both_ways_in_every_type)
{
    for (int type = DTYPE_U8; type < DTYPE_BYTES; type++) {
        cpu_case c = {0};
        cpu_case_input(&c, (dtype)type, DIMS(2, 1, 3), (double[]){1, 2, 3, 4, 5, 6});
        cpu_case_input(&c, (dtype)type, DIMS(2, 1), (double[]){10, 20});
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_ADD, 1), STATUS_OK);
        for (int i = 0; i < 12; i++)
            expect_near(get(&c.outputs[0], i), 1 + i / 6 * 3 + i % 3 + (i / 3 % 2 ? 20 : 10), 0, i);
        cpu_case_dispose(&c);
    }
}

Test(cpu_ops, integer_division_by_zero_is_no_trap)
{
    cpu_case c = {0};
    cpu_case_input(&c, DTYPE_I32, DIMS(3), (double[]){7, -2147483648.0, -7});
    cpu_case_input(&c, DTYPE_I32, DIMS(3), (double[]){0, -1, 2});
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_DIV, 1), STATUS_OK);
    expect_near(get(&c.outputs[0], 0), 0, 0, 0);
    expect_near(get(&c.outputs[0], 1), -2147483648.0, 0, 1);
    expect_near(get(&c.outputs[0], 2), -3, 0, 2);
    cpu_case_dispose(&c);
}

Test(cpu_ops, cast_saturates_floats_and_wraps_integers)
{
    cpu_case c = {.attributes = {graph_make_int("to", dtype_to_onnx(DTYPE_I8))},
                  .attribute_count = 1};
    cpu_case_input(&c, DTYPE_F32, DIMS(4), (double[]){300, -300, -1.9, NAN});
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_CAST, 1), STATUS_OK);
    static const double expected[] = {127, -128, -1, 0};
    for (int i = 0; i < 4; i++)
        expect_near(get(&c.outputs[0], i), expected[i], 0, i);
    cpu_case_dispose(&c);
}

Test(cpu_ops, transposes_of_every_order_of_four_dims)
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
            cr_assert(get(&c.outputs[0], i) == get(&c.inputs[0], from));
        }
        cpu_case_dispose(&c);
    }
}

static double matmul_at(const cpu_case *c, int64_t batch, int64_t i, int64_t j, int64_t n,
                        int64_t k)
{
    double sum = 0;
    for (int64_t l = 0; l < k; l++)
        sum += get(&c->inputs[0], (batch * 7 + i) * k + l) *
               get(&c->inputs[1], (batch * k + l) * n + j);
    return sum;
}

Test(cpu_ops, matmul_of_floats_doubles_halves_and_integers)
{
    static const dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_I32};
    for (int t = 0; t < 4; t++) {
        cpu_case c = {0};
        cpu_case_random(&c, types[t], DIMS(2, 7, 300));
        cpu_case_random(&c, types[t], DIMS(2, 300, 35));
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_MATMUL, 1), STATUS_OK);
        for (int64_t i = 0; i < 2 * 7 * 35; i++) {
            double expected = matmul_at(&c, i / 245, i / 35 % 7, i % 35, 35, 300);
            double tolerance = types[t] == DTYPE_F16 ? 0.03 : types[t] == DTYPE_F32 ? 2e-4 : 1e-9;
            expect_near(get(&c.outputs[0], i), expected, tolerance, i);
        }
        cpu_case_dispose(&c);
    }
}

/* Naive convolution of [1, groups * 2, 9, 8] by [6, 2, 3, 2], strides 2 and 1, dilation 1 and 2. */
Test(cpu_ops, conv_with_groups_strides_dilations_and_pads)
{
    const int64_t strides[] = {2, 1}, dilations[] = {1, 2}, pads[] = {1, 0, 2, 1};
    cpu_case c = {
        .attributes =
            {{.name = "strides", .kind = GRAPH_ATTRIBUTE_INTS, .count = 2, .ints = strides},
             {.name = "dilations", .kind = GRAPH_ATTRIBUTE_INTS, .count = 2, .ints = dilations},
             {.name = "pads", .kind = GRAPH_ATTRIBUTE_INTS, .count = 4, .ints = pads},
             graph_make_int("group", 3)},
        .attribute_count = 4};
    cpu_case_random(&c, DTYPE_F32, DIMS(1, 6, 9, 8));
    cpu_case_random(&c, DTYPE_F32, DIMS(6, 2, 3, 2));
    cpu_case_random(&c, DTYPE_F32, DIMS(6));
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_CONV, 1), STATUS_OK);
    const tensor *out = &c.outputs[0];
    for (int64_t i = 0; i < tensor_count(out); i++) {
        int64_t w = out->dims[3], h = out->dims[2], ow = i % w, oh = i / w % h, o = i / (w * h);
        double sum = get(&c.inputs[2], o);
        for (int64_t ch = 0; ch < 2; ch++)
            for (int64_t a = 0; a < 3; a++)
                for (int64_t b = 0; b < 2; b++) {
                    int64_t y = oh * 2 + a - 1, x = ow + b * 2;
                    if (y >= 0 && y < 9 && x < 8)
                        sum += get(&c.inputs[0], ((o / 2 * 2 + ch) * 9 + y) * 8 + x) *
                               get(&c.inputs[1], ((o * 2 + ch) * 3 + a) * 2 + b);
                }
        expect_near(get(out, i), sum, 1e-5, i);
    }
    cpu_case_dispose(&c);
}

Test(cpu_ops, reduce_mean_over_inner_and_outer_axes)
{
    for (int64_t axis = 0; axis < 3; axis++) {
        cpu_case c = {.attributes = {graph_make_int("keepdims", 0)}, .attribute_count = 1};
        cpu_case_random(&c, DTYPE_F32, DIMS(4, 11, 300));
        cpu_case_input(&c, DTYPE_I64, DIMS(1), (double[]){(double)axis});
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_REDUCE_MEAN, 1), STATUS_OK);
        const int64_t dims[] = {4, 11, 300}, strides[] = {3300, 300, 1};
        int64_t inner = strides[axis], n = dims[axis];
        for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
            double sum = 0;
            for (int64_t k = 0; k < n; k++)
                sum += get(&c.inputs[0], (i / inner * n + k) * inner + i % inner);
            expect_near(get(&c.outputs[0], i), sum / (double)n, 1e-6, i);
        }
        cpu_case_dispose(&c);
    }
}

Test(cpu_ops, quantise_rounds_half_to_even_and_saturates)
{
    cpu_case c = {0};
    cpu_case_input(&c, DTYPE_F32, DIMS(6), (double[]){0.5, 1.5, 2.5, -0.5, 1000, -1000});
    cpu_case_input(&c, DTYPE_F32, DIMS(), (double[]){1});
    cpu_case_input(&c, DTYPE_U8, DIMS(), (double[]){10});
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_QUANTIZE_LINEAR, 1), STATUS_OK);
    static const double expected[] = {10, 12, 12, 10, 255, 0};
    for (int i = 0; i < 6; i++)
        expect_near(get(&c.outputs[0], i), expected[i], 0, i);
    cpu_case_dispose(&c);
}

/* A request chooses token ids: the answer is its fault, with the index and the limit in words. */
static void expect_bad_index(graph_op op, double index)
{
    cpu_case c = {0};
    cpu_case_random(&c, DTYPE_F32, DIMS(5, 3));
    cpu_case_input(&c, DTYPE_I64, DIMS(1, 1), &index);
    if (op == GRAPH_OP_SCATTER_ELEMENTS)
        cpu_case_random(&c, DTYPE_F32, DIMS(1, 1));
    if (op == GRAPH_OP_SCATTER_ND)
        cpu_case_random(&c, DTYPE_F32, DIMS(1, 3));
    cr_expect_eq(cpu_case_run(&c, op, 1), STATUS_INVALID_ARGUMENT);
    cr_expect(strstr(status_message(), graph_op_name(op)), "%s", status_message());
    cr_expect(strstr(status_message(), index > 0 ? "5" : "-6"), "%s", status_message());
    cr_expect(strstr(status_message(), "below 5"), "%s", status_message());
    cpu_case_dispose(&c);
}

Test(cpu_ops, indices_out_of_range_are_refused)
{
    static const graph_op ops[] = {GRAPH_OP_GATHER, GRAPH_OP_GATHER_ELEMENTS, GRAPH_OP_GATHER_ND,
                                   GRAPH_OP_SCATTER_ELEMENTS, GRAPH_OP_SCATTER_ND};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        expect_bad_index(ops[i], 5);
        expect_bad_index(ops[i], -6);
    }
}
