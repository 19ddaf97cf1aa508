/* NonMaxSuppression, RoiAlign and DeformConv. */
#include <criterion/criterion.h>

#include "tests/unit/devices/cpu/case.h"

/* Two classes; the second box overlaps the first, the third overlaps none. */
Test(cpu_detect, boxes_that_overlap_a_better_one_go)
{
    cpu_case c = {0};
    const double boxes[] = {0, 0, 1, 1, 0, 0.1, 1, 1.1, 1, 11, 0, 10};
    const double scores[] = {0.9, 0.75, 0.6, 0.1, 0.95, 0.05};
    cpu_case_input(&c, DTYPE_F32, DIMS(1, 3, 4), boxes);
    cpu_case_input(&c, DTYPE_F32, DIMS(1, 2, 3), scores);
    cpu_case_input(&c, DTYPE_I64, DIMS(1), (double[]){2});
    cpu_case_input(&c, DTYPE_F32, DIMS(1), (double[]){0.5});
    cpu_case_input(&c, DTYPE_F32, DIMS(1), (double[]){0.08});
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_NON_MAX_SUPPRESSION, 1), STATUS_OK);
    const int64_t expected[] = {0, 0, 0, 0, 0, 2, 0, 1, 1};
    cr_assert_eq(c.outputs[0].dims[0], 3);
    cr_assert_arr_eq(c.outputs[0].data, expected, sizeof expected);
    cpu_case_dispose(&c);
}

/* A plane whose value is its column, 10 wide: the mean of a bin is its centre. */
Test(cpu_detect, a_region_is_the_mean_of_its_samples)
{
    cpu_case c = {
        .attributes = {graph_make_int("output_width", 2), graph_make_int("sampling_ratio", 2)},
        .attribute_count = 2};
    double plane[100];
    for (int i = 0; i < 100; i++)
        plane[i] = i % 10;
    cpu_case_input(&c, DTYPE_F32, DIMS(1, 1, 10, 10), plane);
    cpu_case_input(&c, DTYPE_F32, DIMS(1, 4), (double[]){2.5, 2.5, 6.5, 6.5});
    tensor *image = cpu_case_input(&c, DTYPE_I64, DIMS(1), (double[]){0});
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_ROI_ALIGN, 1), STATUS_OK);
    cpu_case_expect_near(cpu_case_get(&c.outputs[0], 0), 3, 1e-6, 0);
    cpu_case_expect_near(cpu_case_get(&c.outputs[0], 1), 5, 1e-6, 1);
    tensor_set_number(image, 0, 1);
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_ROI_ALIGN, 1), STATUS_INVALID_ARGUMENT);
    cpu_case_dispose(&c);
}

/* With whole offsets a deformed convolution reads other pixels; beyond the edge they are zero. */
Test(cpu_detect, offsets_move_the_taps)
{
    cpu_case c = {0};
    const double plane[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, weights[] = {1, 10};
    /* Two taps, each with a vertical and a horizontal offset for 3 x 2 output pixels. */
    double offsets[24] = {0};
    for (int p = 0; p < 6; p++) {
        offsets[p] = 1;        /* the first tap reads one row below */
        offsets[18 + p] = 0.5; /* the second half a pixel to the right */
    }
    cpu_case_input(&c, DTYPE_F32, DIMS(1, 1, 3, 3), plane);
    cpu_case_input(&c, DTYPE_F32, DIMS(1, 1, 1, 2), weights);
    cpu_case_input(&c, DTYPE_F32, DIMS(1, 4, 3, 2), offsets);
    cpu_case_input(&c, DTYPE_F32, DIMS(1), (double[]){100});
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_DEFORM_CONV, 1), STATUS_OK);
    const double below[] = {4, 5, 7, 8, 0, 0}, right[] = {2.5, 1.5, 5.5, 3, 8.5, 4.5};
    for (int64_t p = 0; p < 6; p++)
        cpu_case_expect_near(cpu_case_get(&c.outputs[0], p), 100 + below[p] + 10 * right[p], 1e-4,
                             p);
    cpu_case_dispose(&c);
}
