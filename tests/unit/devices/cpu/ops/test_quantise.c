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

/* The sums of integer products: more than a float holds, rounded once. */
Test(cpu_quantise, dequantises_32_bit_sums)
{
    for (int turn = 0; turn < 3; turn++) {
        cpu_case c = {0};
        double x[600], zero = turn == 2 ? 5 : 0;
        for (int i = 0; i < 600; i++)
            x[i] = i % 5 ? i * 3579139 - 1000000000 : i % 2 ? 2147483647 : -2147483648;
        cpu_case_input(&c, DTYPE_I32, DIMS(600), x);
        cpu_case_input(&c, DTYPE_F32, DIMS(), (double[]){0.375});
        if (turn > 0)
            cpu_case_input(&c, DTYPE_I32, DIMS(), &zero);
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_DEQUANTIZE_LINEAR, 1), STATUS_OK);
        for (int i = 0; i < 600; i++)
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i),
                                 (double)((float)(x[i] - zero) * 0.375f), 0, i);
        cpu_case_dispose(&c);
    }
}
