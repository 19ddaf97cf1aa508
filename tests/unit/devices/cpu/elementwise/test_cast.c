/* Cast between types. */
#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/devices/cpu/case.h"

Test(cpu_cast, cast_saturates_floats_and_wraps_integers)
{
    cpu_case c = {.attributes = {graph_make_int("to", dtype_to_onnx(DTYPE_I8))},
                  .attribute_count = 1};
    cpu_case_input(&c, DTYPE_F32, DIMS(4), (double[]){300, -300, -1.9, NAN});
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_CAST, 1), STATUS_OK);
    static const double expected[] = {127, -128, -1, 0};
    for (int i = 0; i < 4; i++)
        cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), expected[i], 0, i);
    cpu_case_dispose(&c);
}
