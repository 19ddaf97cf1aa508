/* Reductions against plain loops in double. */
#include <criterion/criterion.h>

#include "tests/unit/devices/cpu/case.h"

Test(cpu_reduce, reduce_mean_over_inner_and_outer_axes)
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
                sum += cpu_case_get(&c.inputs[0], (i / inner * n + k) * inner + i % inner);
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), sum / (double)n, 1e-6, i);
        }
        cpu_case_dispose(&c);
    }
}
