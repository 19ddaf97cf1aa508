/* MatMul against a plain loop, in every kind of type. */
#include <criterion/criterion.h>

#include "tests/unit/devices/cpu/case.h"

static double matmul_at(const cpu_case *c, int64_t batch, int64_t i, int64_t j, int64_t n,
                        int64_t k)
{
    double sum = 0;
    for (int64_t l = 0; l < k; l++)
        sum += cpu_case_get(&c->inputs[0], (batch * 7 + i) * k + l) *
               cpu_case_get(&c->inputs[1], (batch * k + l) * n + j);
    return sum;
}

Test(cpu_matmul, matmul_of_floats_doubles_halves_and_integers)
{
    static const dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_I32,
                                  DTYPE_I64, DTYPE_U32, DTYPE_U64};
    for (int t = 0; t < 7; t++) {
        cpu_case c = {0};
        cpu_case_random(&c, types[t], DIMS(2, 7, 300));
        cpu_case_random(&c, types[t], DIMS(2, 300, 35));
        bool is_unsigned = types[t] == DTYPE_U32 || types[t] == DTYPE_U64;
        for (int operand = 0; is_unsigned && operand < 2; operand++) /* none are below 0 */
            for (size_t i = 0; i < tensor_bytes(&c.inputs[operand]) / 4; i++)
                ((uint32_t *)c.inputs[operand].data)[i] =
                    types[t] == DTYPE_U32 || i % 2 == 0 ? i * 37 % 11 : 0;
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_MATMUL, 1), STATUS_OK);
        for (int64_t i = 0; i < 2 * 7 * 35; i++) {
            double expected = matmul_at(&c, i / 245, i / 35 % 7, i % 35, 35, 300);
            double tolerance = types[t] == DTYPE_F16 ? 0.03 : types[t] == DTYPE_F32 ? 2e-4 : 1e-9;
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), expected, tolerance, i);
        }
        cpu_case_dispose(&c);
    }
}
