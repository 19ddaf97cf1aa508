/* Softmax and its logarithm along every axis, against plain loops in double. */
#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/devices/cpu/case.h"

static void check_axis(graph_op op, int64_t axis, const int64_t *dims, const int64_t *strides)
{
    cpu_case c = {.attributes = {graph_make_int("axis", axis)}, .attribute_count = 1};
    cpu_case_random(&c, DTYPE_F32, DIMS(dims[0], dims[1], dims[2]));
    cr_assert_eq(cpu_case_run(&c, op, 1), STATUS_OK);
    int64_t n = dims[axis], inner = strides[axis];
    for (int64_t i = 0; i < tensor_count(&c.outputs[0]); i++) {
        int64_t first = i / (n * inner) * n * inner + i % inner;
        double top = -(double)INFINITY, sum = 0;
        for (int64_t k = 0; k < n; k++)
            top = fmax(top, cpu_case_get(&c.inputs[0], first + k * inner));
        for (int64_t k = 0; k < n; k++)
            sum += exp(cpu_case_get(&c.inputs[0], first + k * inner) - top);
        double x = cpu_case_get(&c.inputs[0], i) - top;
        double expected = op == GRAPH_OP_SOFTMAX ? exp(x) / sum : x - log(sum);
        cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), expected, 2e-6, i);
    }
    cpu_case_dispose(&c);
}

Test(cpu_softmax, along_and_beside)
{
    static const int64_t dims[] = {3, 17, 700}, strides[] = {11900, 700, 1};
    for (int64_t axis = 0; axis < 3; axis++) {
        check_axis(GRAPH_OP_SOFTMAX, axis, dims, strides);
        check_axis(GRAPH_OP_LOG_SOFTMAX, axis, dims, strides);
    }
}

Test(cpu_softmax, large_numbers_do_not_overflow)
{
    for (int64_t axis = 0; axis < 2; axis++) {
        cpu_case c = {.attributes = {graph_make_int("axis", axis)}, .attribute_count = 1};
        cpu_case_input(&c, DTYPE_F32, DIMS(2, 2), (double[]){3e38, 1, 2, 1e38});
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_SOFTMAX, 1), STATUS_OK);
        for (int64_t i = 0; i < 4; i++)
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), i % 3 == 0, 0, i);
        cpu_case_dispose(&c);
    }
}
