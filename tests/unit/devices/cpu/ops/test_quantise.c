/* QuantizeLinear: rounding and saturation. */
#include <criterion/criterion.h>

#include "tests/unit/devices/cpu/case.h"

Test(cpu_quantise, quantise_rounds_half_to_even_and_saturates)
{
    cpu_case c = {0};
    cpu_case_input(&c, DTYPE_F32, DIMS(6), (double[]){0.5, 1.5, 2.5, -0.5, 1000, -1000});
    cpu_case_input(&c, DTYPE_F32, DIMS(), (double[]){1});
    cpu_case_input(&c, DTYPE_U8, DIMS(), (double[]){10});
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_QUANTIZE_LINEAR, 1), STATUS_OK);
    static const double expected[] = {10, 12, 12, 10, 255, 0};
    for (int i = 0; i < 6; i++)
        cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), expected[i], 0, i);
    cpu_case_dispose(&c);
}
