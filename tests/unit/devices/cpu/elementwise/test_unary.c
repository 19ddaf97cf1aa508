/* Operators on single elements, in each type that they compute in. */
#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/devices/cpu/case.h"

static void expect_each(graph_op op, dtype type, const char *attribute, float value,
                        const double *in, const double *expected, int count)
{
    cpu_case c = {0};
    if (attribute)
        c.attributes[c.attribute_count++] =
            (graph_attribute){.name = attribute, .kind = GRAPH_ATTRIBUTE_FLOAT, .f = value};
    cpu_case_input(&c, type, DIMS(count), in);
    cr_assert_eq(cpu_case_run(&c, op, 1), STATUS_OK);
    double tolerance = type == DTYPE_F16 || type == DTYPE_BF16 ? 0.01 : 1e-6;
    for (int i = 0; i < count; i++)
        cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), expected[i], tolerance, i);
    cpu_case_dispose(&c);
}

Test(cpu_unary, parameters_are_those_of_the_attribute_or_its_default)
{
    static const dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16};
    static const double in[] = {-2, -0.5, 0, 3};
    for (int t = 0; t < 4; t++) {
        expect_each(GRAPH_OP_LEAKY_RELU, types[t], NULL, 0, in, (double[]){-0.02, -0.005, 0, 3}, 4);
        expect_each(GRAPH_OP_LEAKY_RELU, types[t], "alpha", 0.5f, in, (double[]){-1, -0.25, 0, 3},
                    4);
        expect_each(GRAPH_OP_HARD_SIGMOID, types[t], NULL, 0, in, (double[]){0.1, 0.4, 0.5, 1}, 4);
        expect_each(GRAPH_OP_SHRINK, types[t], "bias", 1, in, (double[]){-1, 0, 0, 2}, 4);
    }
}

Test(cpu_unary, integers)
{
    static const double in[] = {-3, 0, 4};
    expect_each(GRAPH_OP_ABS, DTYPE_I8, NULL, 0, in, (double[]){3, 0, 4}, 3);
    expect_each(GRAPH_OP_NEG, DTYPE_I64, NULL, 0, in, (double[]){3, 0, -4}, 3);
    expect_each(GRAPH_OP_RELU, DTYPE_I32, NULL, 0, in, (double[]){0, 0, 4}, 3);
    expect_each(GRAPH_OP_SIGN, DTYPE_I16, NULL, 0, in, (double[]){-1, 0, 1}, 3);
    expect_each(GRAPH_OP_SIGN, DTYPE_U64, NULL, 0, in + 1, (double[]){0, 1}, 2);
}

/* Every width, longer than a block. */
Test(cpu_unary, integers_in_long_lines)
{
    static const dtype types[] = {DTYPE_U8, DTYPE_I8, DTYPE_I32, DTYPE_I64};
    static const graph_op ops[] = {GRAPH_OP_ABS, GRAPH_OP_NEG, GRAPH_OP_RELU, GRAPH_OP_SIGN};
    for (int turn = 0; turn < 16; turn++) {
        dtype type = types[turn % 4];
        graph_op op = ops[turn / 4];
        if (type == DTYPE_U8 && (op == GRAPH_OP_NEG || op == GRAPH_OP_RELU))
            continue;
        cpu_case c = {0};
        tensor *x = cpu_case_random(&c, type, DIMS(3, 1001));
        for (int64_t i = 0; i < 3003; i++)
            tensor_set_number(x, i, (double)(i * 7 % 250 - (type == DTYPE_U8 ? 0 : 125)));
        cr_assert_eq(cpu_case_run(&c, op, 1), STATUS_OK);
        for (int64_t i = 0; i < 3003; i++) {
            double v = cpu_case_get(x, i);
            double want = op == GRAPH_OP_ABS    ? fabs(v)
                          : op == GRAPH_OP_NEG  ? -v
                          : op == GRAPH_OP_RELU ? fmax(v, 0)
                                                : (v > 0) - (v < 0);
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), want, 0, i);
        }
        cpu_case_dispose(&c);
    }
}

Test(cpu_unary, gelu_by_its_two_formulas)
{
    static const double in[] = {1}, exact[] = {0.841344746}, by_tanh[] = {0.841191990};
    expect_each(GRAPH_OP_GELU, DTYPE_F64, NULL, 0, in, exact, 1);
    cpu_case c = {
        .attributes = {{.name = "approximate", .kind = GRAPH_ATTRIBUTE_STRING, .s = "tanh"}},
        .attribute_count = 1};
    cpu_case_input(&c, DTYPE_F64, DIMS(1), in);
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_GELU, 1), STATUS_OK);
    cpu_case_expect_near(cpu_case_get(&c.outputs[0], 0), by_tanh[0], 1e-6, 0);
    cpu_case_dispose(&c);
}

Test(cpu_unary, not_and_is_nan)
{
    static const double truths[] = {0, 1, 1, 0}, floats[] = {0, NAN, -1, INFINITY};
    expect_each(GRAPH_OP_NOT, DTYPE_BOOL, NULL, 0, truths, (double[]){1, 0, 0, 1}, 4);
    expect_each(GRAPH_OP_IS_NAN, DTYPE_F32, NULL, 0, floats, (double[]){0, 1, 0, 0}, 4);
    expect_each(GRAPH_OP_IS_NAN, DTYPE_F16, NULL, 0, floats, (double[]){0, 1, 0, 0}, 4);
    expect_each(GRAPH_OP_IS_INF, DTYPE_F32, NULL, 0, floats, (double[]){0, 0, 0, 1}, 4);
}
