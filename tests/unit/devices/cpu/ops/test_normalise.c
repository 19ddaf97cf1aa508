/* Normalisations of planes longer than a block of sums, against plain loops in double. */
#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/devices/cpu/case.h"

#define PLANE 2500

/* x normalised over `count` numbers from `first` on. */
static double normal(const tensor *x, int64_t first, int64_t count, int64_t i)
{
    double sum = 0, squares = 0;
    for (int64_t k = first; k < first + count; k++)
        sum += cpu_case_get(x, k);
    for (int64_t k = first; k < first + count; k++)
        squares += pow(cpu_case_get(x, k) - sum / (double)count, 2);
    return (cpu_case_get(x, i) - sum / (double)count) / sqrt(squares / (double)count + 1e-5);
}

Test(cpu_normalise, instances_and_groups)
{
    static const double scales[] = {1, -2, 0.5, 3}, biases[] = {0, 1, -1, 5};
    for (int64_t groups = 2; groups <= 4; groups += 2) {
        cpu_case c = {.attributes = {graph_make_int("num_groups", groups)}, .attribute_count = 1};
        cpu_case_random(&c, DTYPE_F32, DIMS(2, 4, 50, 50));
        cpu_case_input(&c, DTYPE_F32, DIMS(4), scales);
        cpu_case_input(&c, DTYPE_F32, DIMS(4), biases);
        if (groups == 4)
            c.attribute_count = 0;
        graph_op op = groups == 4 ? GRAPH_OP_INSTANCE_NORMALIZATION : GRAPH_OP_GROUP_NORMALIZATION;
        cr_assert_eq(cpu_case_run(&c, op, 1), STATUS_OK);
        int64_t count = 4 / groups * PLANE;
        for (int64_t i = 0; i < 8 * PLANE; i += 97) {
            double x = normal(&c.inputs[0], i / count * count, count, i);
            int64_t channel = i / PLANE % 4;
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i),
                                 x * scales[channel] + biases[channel], 1e-5, i);
        }
        cpu_case_dispose(&c);
    }
}

/* A large mean must not hide a small deviation. */
Test(cpu_normalise, far_from_zero)
{
    double numbers[2 * PLANE];
    for (int i = 0; i < 2 * PLANE; i++)
        numbers[i] = 1000 + (i % 2);
    cpu_case c = {0};
    cpu_case_input(&c, DTYPE_F32, DIMS(1, 1, 2 * PLANE), numbers);
    cpu_case_input(&c, DTYPE_F32, DIMS(1), (double[]){1});
    cpu_case_input(&c, DTYPE_F32, DIMS(1), (double[]){0});
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_INSTANCE_NORMALIZATION, 1), STATUS_OK);
    for (int64_t i = 0; i < 2 * PLANE; i++)
        cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), i % 2 ? 1 : -1, 1e-3, i);
    cpu_case_dispose(&c);
}

/* Means over every set of axes: runs of neighbours that are reduced, and that are kept. */
Test(cpu_normalise, mean_and_variance_over_any_axes)
{
    const int64_t dims[] = {3, 4, 5, 7};
    for (int set = 0; set < 16; set++) {
        int64_t axes[4], count = 0;
        for (int d = 0; d < 4; d++)
            if (set >> d & 1)
                axes[count++] = d;
        cpu_case c = {.attributes = {{.name = "axes",
                                      .kind = GRAPH_ATTRIBUTE_INTS,
                                      .count = (size_t)count,
                                      .ints = axes}},
                      .attribute_count = 1};
        cpu_case_random(&c, DTYPE_F32, DIMS(3, 4, 5, 7));
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_MEAN_VARIANCE_NORMALIZATION, 1), STATUS_OK);
        double sums[420] = {0}, squares[420] = {0}, n = 1;
        int64_t group[420];
        for (int d = 0; d < 4; d++)
            n *= set >> d & 1 ? (double)dims[d] : 1;
        for (int64_t i = 0; i < 420; i++) {
            int64_t rest = i, stride = 1;
            group[i] = 0;
            for (int d = 3; d >= 0; rest /= dims[d], stride *= dims[d], d--)
                group[i] += set >> d & 1 ? 0 : rest % dims[d] * stride;
            sums[group[i]] += cpu_case_get(&c.inputs[0], i) / n;
        }
        for (int64_t i = 0; i < 420; i++)
            squares[group[i]] += pow(cpu_case_get(&c.inputs[0], i) - sums[group[i]], 2) / n;
        for (int64_t i = 0; i < 420; i++) {
            double centred = cpu_case_get(&c.inputs[0], i) - sums[group[i]];
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i),
                                 centred / (sqrt(squares[group[i]]) + 1e-9), 1e-5, i);
        }
        cpu_case_dispose(&c);
    }
}

/* Rows of channels, and planes. */
Test(cpu_normalise, batch_normalization_of_rows_and_planes)
{
    for (int64_t plane = 1; plane < 4; plane++) {
        cpu_case c = {0};
        tensor *x = plane == 1 ? cpu_case_random(&c, DTYPE_F32, DIMS(5, 7))
                               : cpu_case_random(&c, DTYPE_F32, DIMS(5, 7, plane));
        tensor *p[4];
        for (int i = 0; i < 4; i++)
            p[i] = cpu_case_random(&c, DTYPE_F32, DIMS(7));
        for (int i = 0; i < 7; i++)
            ((float *)p[3]->data)[i] += 3;
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_BATCH_NORMALIZATION, 1), STATUS_OK);
        for (int64_t i = 0; i < 35 * plane; i++) {
            int64_t at = i / plane % 7;
            double want = (cpu_case_get(x, i) - cpu_case_get(p[2], at)) /
                              sqrt(cpu_case_get(p[3], at) + 1e-5) * cpu_case_get(p[0], at) +
                          cpu_case_get(p[1], at);
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), want, 1e-5, i);
        }
        cpu_case_dispose(&c);
    }
}
