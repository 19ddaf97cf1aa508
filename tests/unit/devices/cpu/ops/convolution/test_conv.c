/* Conv and ConvTranspose against plain loops. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "devices/cpu/ops/weights.h"
#include "tests/unit/devices/cpu/case.h"

/* Conv of [1, groups * 2, 9, 8] by [6, 2, 3, 2], strides 2 and 1, dilations 1 and 2. */
Test(cpu_conv, conv_with_groups_strides_dilations_and_pads)
{
    const int64_t strides[] = {2, 1}, dilations[] = {1, 2}, pads[] = {1, 0, 2, 1};
    cpu_case c = {
        .attributes =
            {{.name = "strides", .kind = GRAPH_ATTRIBUTE_INTS, .count = 2, .ints = strides},
             {.name = "dilations", .kind = GRAPH_ATTRIBUTE_INTS, .count = 2, .ints = dilations},
             {.name = "pads", .kind = GRAPH_ATTRIBUTE_INTS, .count = 4, .ints = pads},
             graph_make_int("group", 3)},
        .attribute_count = 4};
    cpu_case_random(&c, DTYPE_F32, DIMS(1, 6, 9, 8));
    cpu_case_random(&c, DTYPE_F32, DIMS(6, 2, 3, 2));
    cpu_case_random(&c, DTYPE_F32, DIMS(6));
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_CONV, 1), STATUS_OK);
    const tensor *out = &c.outputs[0];
    for (int64_t i = 0; i < tensor_count(out); i++) {
        int64_t w = out->dims[3], h = out->dims[2], ow = i % w, oh = i / w % h, o = i / (w * h);
        double sum = cpu_case_get(&c.inputs[2], o);
        for (int64_t ch = 0; ch < 2; ch++)
            for (int64_t a = 0; a < 3; a++)
                for (int64_t b = 0; b < 2; b++) {
                    int64_t y = oh * 2 + a - 1, x = ow + b * 2;
                    if (y >= 0 && y < 9 && x < 8)
                        sum += cpu_case_get(&c.inputs[0], ((o / 2 * 2 + ch) * 9 + y) * 8 + x) *
                               cpu_case_get(&c.inputs[1], ((o * 2 + ch) * 3 + a) * 2 + b);
                }
        cpu_case_expect_near(cpu_case_get(out, i), sum, 1e-5, i);
    }
    cpu_case_dispose(&c);
}

/* Depthwise: one channel per group goes through the window's runs. */
Test(cpu_conv, depthwise_with_strides_dilations_and_pads)
{
    const int64_t strides[] = {1, 2}, dilations[] = {2, 1}, pads[] = {2, 1, 0, 1};
    cpu_case c = {
        .attributes =
            {{.name = "strides", .kind = GRAPH_ATTRIBUTE_INTS, .count = 2, .ints = strides},
             {.name = "dilations", .kind = GRAPH_ATTRIBUTE_INTS, .count = 2, .ints = dilations},
             {.name = "pads", .kind = GRAPH_ATTRIBUTE_INTS, .count = 4, .ints = pads},
             graph_make_int("group", 3)},
        .attribute_count = 4};
    cpu_case_random(&c, DTYPE_F32, DIMS(2, 3, 7, 9));
    cpu_case_random(&c, DTYPE_F32, DIMS(3, 1, 2, 3));
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_CONV, 1), STATUS_OK);
    const tensor *out = &c.outputs[0];
    int64_t h = out->dims[2], w = out->dims[3];
    cr_assert(h == 7 && w == 5);
    for (int64_t i = 0; i < tensor_count(out); i++) {
        int64_t ow = i % w, oh = i / w % h, plane = i / (w * h);
        double sum = 0;
        for (int64_t a = 0; a < 2; a++)
            for (int64_t b = 0; b < 3; b++) {
                int64_t y = oh + 2 * a - 2, x = 2 * ow + b - 1;
                if (y >= 0 && y < 7 && x >= 0 && x < 9)
                    sum += cpu_case_get(&c.inputs[0], (plane * 7 + y) * 9 + x) *
                           cpu_case_get(&c.inputs[1], (plane % 3 * 2 + a) * 3 + b);
            }
        cpu_case_expect_near(cpu_case_get(out, i), sum, 1e-5, i);
    }
    cpu_case_dispose(&c);
}

Test(cpu_conv, transposed_with_strides_and_pads)
{
    const int64_t strides[] = {2, 3}, pads[] = {1, 0, 0, 1};
    cpu_case c = {
        .attributes =
            {{.name = "strides", .kind = GRAPH_ATTRIBUTE_INTS, .count = 2, .ints = strides},
             {.name = "pads", .kind = GRAPH_ATTRIBUTE_INTS, .count = 4, .ints = pads}},
        .attribute_count = 2};
    cpu_case_random(&c, DTYPE_F32, DIMS(1, 2, 4, 3));
    cpu_case_random(&c, DTYPE_F32, DIMS(2, 3, 3, 2));
    cr_assert_eq(cpu_case_run(&c, GRAPH_OP_CONV_TRANSPOSE, 1), STATUS_OK);
    const tensor *out = &c.outputs[0];
    int64_t h = out->dims[2], w = out->dims[3];
    cr_assert(h == 8 && w == 7);
    double expected[3 * 8 * 7] = {0};
    for (int64_t ch = 0; ch < 2; ch++)
        for (int64_t o = 0; o < 3; o++)
            for (int64_t i = 0; i < 4 * 3 * 3 * 2; i++) {
                int64_t b = i % 2, a = i / 2 % 3, x = i / 6 % 3, y = i / 18;
                int64_t oy = 2 * y + a - 1, ox = 3 * x + b;
                if (oy >= 0 && oy < h && ox >= 0 && ox < w)
                    expected[(o * h + oy) * w + ox] +=
                        cpu_case_get(&c.inputs[0], (ch * 4 + y) * 3 + x) *
                        cpu_case_get(&c.inputs[1], ((ch * 3 + o) * 3 + a) * 2 + b);
            }
    for (int64_t i = 0; i < tensor_count(out); i++)
        cpu_case_expect_near(cpu_case_get(out, i), expected[i], 1e-5, i);
    cpu_case_dispose(&c);
}

/* What ConvTranspose adds to each output: [groups * out][in[0] * ...], of one image. */
static double *expect_transposed(const cpu_case *c, const int64_t *strides, const int64_t *pads,
                                 int64_t groups)
{
    const tensor *x = &c->inputs[0], *w = &c->inputs[1], *y = &c->outputs[0];
    int64_t inputs = x->dims[1] / groups, outs = w->dims[1],
            taps = w->dims[2] * w->dims[3] * w->dims[4];
    int64_t pixels = x->dims[2] * x->dims[3] * x->dims[4];
    double *sums = calloc((size_t)tensor_count(y), sizeof *sums);
    for (int64_t i = 0; i < x->dims[1] * pixels * outs * taps; i++) {
        int64_t t = i % taps, o = i / taps % outs, p = i / taps / outs % pixels;
        int64_t ch = i / taps / outs / pixels, at[3], left = p, tap = t;
        bool is_inside = true;
        for (int d = 2; d >= 0; d--) {
            at[d] = left % x->dims[2 + d] * strides[d] + tap % w->dims[2 + d] - pads[d];
            left /= x->dims[2 + d];
            tap /= w->dims[2 + d];
            is_inside &= at[d] >= 0 && at[d] < y->dims[2 + d];
        }
        int64_t plane = ch / inputs * outs + o;
        if (is_inside)
            sums[((plane * y->dims[2] + at[0]) * y->dims[3] + at[1]) * y->dims[4] + at[2]] +=
                cpu_case_get(x, ch * pixels + p) * cpu_case_get(w, (ch * outs + o) * taps + t);
    }
    return sums;
}

/* The same with known weights: they are turned at the first run only. */
static void expect_turned_once(cpu_case *c, const double *expected, bool is_turned)
{
    cpu_weights *weights = cpu_weights_create(NULL);
    for (int run = 0; run < 2; run++) {
        cr_assert_eq(cpu_case_run_packed(c, GRAPH_OP_CONV_TRANSPOSE, 1, 2, weights), STATUS_OK);
        for (int64_t j = 0; j < tensor_count(&c->outputs[0]); j++)
            cpu_case_expect_near(cpu_case_get(&c->outputs[0], j), expected[j], 1e-4, j);
        cr_assert_eq(cpu_weights_bytes(weights),
                     is_turned ? tensor_bytes(&c->inputs[1]) : (size_t)0);
    }
    cpu_weights_release(weights);
}

/* Sums of GEMMs, over more pixels than one has, in whole lines and in pieces of lines. */
Test(cpu_conv, transposed_volumes_in_blocks)
{
    static const struct {
        int64_t groups, x[5], w[5], strides[3], pads[6];
    } cases[] = {
        {1, {1, 5, 3, 9, 20}, {5, 7, 2, 2, 2}, {2, 2, 2}, {0}},
        {1, {1, 4, 2, 3, 300}, {4, 3, 1, 2, 3}, {1, 2, 1}, {0, 1, 1, 0, 0, 1}},
        {2, {1, 8, 1, 17, 16}, {8, 40, 1, 3, 3}, {1, 2, 3}, {0, 1, 2, 0, 1, 1}},
        {2, {1, 6, 2, 4, 5}, {6, 2, 2, 3, 3}, {1, 2, 1}, {1, 0, 1, 0, 0, 0}}, /* few channels */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cpu_case c = {.attributes = {{.name = "strides",
                                      .kind = GRAPH_ATTRIBUTE_INTS,
                                      .count = 3,
                                      .ints = cases[i].strides},
                                     {.name = "pads",
                                      .kind = GRAPH_ATTRIBUTE_INTS,
                                      .count = 6,
                                      .ints = cases[i].pads},
                                     graph_make_int("group", cases[i].groups)},
                      .attribute_count = 3};
        const int64_t *x = cases[i].x, *w = cases[i].w;
        cpu_case_random(&c, DTYPE_F32, DIMS(x[0], x[1], x[2], x[3], x[4]));
        cpu_case_random(&c, DTYPE_F32, DIMS(w[0], w[1], w[2], w[3], w[4]));
        cr_assert_eq(cpu_case_run(&c, GRAPH_OP_CONV_TRANSPOSE, 1), STATUS_OK);
        double *expected = expect_transposed(&c, cases[i].strides, cases[i].pads, cases[i].groups);
        for (int64_t j = 0; j < tensor_count(&c.outputs[0]); j++)
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], j), expected[j], 1e-4, j);
        expect_turned_once(&c, expected, cases[i].groups == 1 && w[0] >= 4);
        free(expected);
        cpu_case_dispose(&c);
    }
}
