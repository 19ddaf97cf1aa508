/* ConvInteger against a plain loop: exact. */
#include <criterion/criterion.h>

#include "tests/unit/devices/cpu/case.h"

Test(cpu_integer, conv_with_zero_points_strides_and_pads)
{
    const int64_t strides[] = {2, 1}, pads[] = {1, 1, 0, 1};
    cpu_case c = {
        .attributes =
            {{.name = "strides", .kind = GRAPH_ATTRIBUTE_INTS, .count = 2, .ints = strides},
             {.name = "pads", .kind = GRAPH_ATTRIBUTE_INTS, .count = 4, .ints = pads}},
        .attribute_count = 2};
    double x[2 * 5 * 6], weights[3 * 2 * 2 * 3];
    for (int i = 0; i < 2 * 5 * 6; i++)
        x[i] = i * 37 % 256;
    for (int i = 0; i < 3 * 2 * 2 * 3; i++)
        weights[i] = i * 29 % 256 - 128;
    cpu_case_input(&c, DTYPE_U8, DIMS(1, 2, 5, 6), x);
    cpu_case_input(&c, DTYPE_I8, DIMS(3, 2, 2, 3), weights);
    cpu_case_input(&c, DTYPE_U8, DIMS(), (double[]){7});
    cpu_case_input(&c, DTYPE_I8, DIMS(), (double[]){-3});
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_CONV_INTEGER, 1), STATUS_OK);
    const tensor *out = &c.outputs[0];
    int64_t h = out->dims[2], w = out->dims[3];
    cr_assert(h == 3 && w == 6);
    for (int64_t i = 0; i < tensor_count(out); i++) {
        int64_t ox = i % w, oy = i / w % h, o = i / (w * h);
        double sum = 0;
        for (int64_t t = 0; t < 2 * 2 * 3; t++) {
            int64_t b = t % 3, a = t / 3 % 2, ch = t / 6;
            int64_t iy = 2 * oy + a - 1, ix = ox + b - 1;
            if (iy >= 0 && iy < 5 && ix >= 0 && ix < 6)
                sum +=
                    (x[(ch * 5 + iy) * 6 + ix] - 7) * (weights[((o * 2 + ch) * 2 + a) * 3 + b] + 3);
        }
        cpu_case_expect_near(cpu_case_get(out, i), sum, 0, i);
    }
    cpu_case_dispose(&c);
}
