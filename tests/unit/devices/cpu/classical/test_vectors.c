/* What support vector machines need: distances, and probabilities of classes from those of pairs.
 */
#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/devices/cpu/case.h"

enum { COLUMNS = 21, VECTORS = 3, ROWS = 2 };

Test(cpu_vectors, squared_distances)
{
    for (int wide = 0; wide < 2; wide++) {
        cpu_case c = {0};
        dtype type = wide ? DTYPE_F64 : DTYPE_F32;
        tensor *x = cpu_case_random(&c, type, DIMS(ROWS, COLUMNS));
        tensor *y = cpu_case_random(&c, type, DIMS(VECTORS, COLUMNS));
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_SQUARED_DISTANCE, 1), STATUS_OK);
        for (int i = 0; i < ROWS * VECTORS; i++) {
            double sum = 0;
            for (int k = 0; k < COLUMNS; k++)
                sum += pow(cpu_case_get(x, i / VECTORS * COLUMNS + k) -
                               cpu_case_get(y, i % VECTORS * COLUMNS + k),
                           2);
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), sum, wide ? 1e-12 : 1e-4, i);
        }
        cpu_case_dispose(&c);
    }
}

/* Pairs that agree with one distribution: p[i] / (p[i] + p[j]). */
Test(cpu_vectors, classes_from_pairs_that_agree)
{
    const double p[] = {0.1, 0.2, 0.3, 0.4};
    double pairs[6];
    int n = 0;
    for (int i = 0; i < 4; i++)
        for (int j = i + 1; j < 4; j++)
            pairs[n++] = p[i] / (p[i] + p[j]);
    cpu_case c = {.attributes = {graph_make_int("classes", 4)}, .attribute_count = 1};
    cpu_case_input(&c, DTYPE_F32, DIMS(1, 6), pairs);
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_COUPLE, 1), STATUS_OK);
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), p[i], 0.01, i);
        sum += cpu_case_get(&c.outputs[0], i);
    }
    cpu_case_expect_near(sum, 1, 1e-5, -1);
    cpu_case_dispose(&c);
}

/* Two classes: one pair says it all. And a class that wins both of its pairs is the likeliest. */
Test(cpu_vectors, classes_from_few_pairs)
{
    cpu_case two = {.attributes = {graph_make_int("classes", 2)}, .attribute_count = 1};
    cpu_case_input(&two, DTYPE_F32, DIMS(2, 1), (double[]){0.9, 1e-7});
    cr_assert_eq(cpu_case_run(&two, GRAPH_OP_COUPLE, 1), STATUS_OK);
    cpu_case_expect_near(cpu_case_get(&two.outputs[0], 0), 0.9, 0.01, 0);
    cpu_case_expect_near(cpu_case_get(&two.outputs[0], 3), 1, 0.01, 3);
    cpu_case_dispose(&two);
    cpu_case three = {.attributes = {graph_make_int("classes", 3)}, .attribute_count = 1};
    cpu_case_input(&three, DTYPE_F32, DIMS(1, 3), (double[]){0.2, 0.9, 0.8}); /* 01, 02, 12 */
    cr_assert_eq(cpu_case_run(&three, GRAPH_OP_COUPLE, 1), STATUS_OK);
    double second = cpu_case_get(&three.outputs[0], 1);
    cr_assert_gt(second, cpu_case_get(&three.outputs[0], 0));
    cr_assert_gt(cpu_case_get(&three.outputs[0], 0), cpu_case_get(&three.outputs[0], 2));
    cpu_case_dispose(&three);
}
