/* ConvInteger against a plain loop, GEMMs of packed weights against the plain loops: exact. */
#include <criterion/criterion.h>
#include <string.h>

#include "devices/cpu/ops/weights.h"
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

#define WEIGHTS_KNOWN 0xfe /* all inputs but the first */

static tensor *add_bytes(cpu_case *c, dtype type, const int64_t *dims, int32_t seed)
{
    tensor *t = cpu_case_input(c, type, dims, NULL);
    for (int64_t i = 0; i < tensor_count(t); i++)
        ((uint8_t *)t->data)[i] = (uint8_t)((i * 89 + i / 7 * 31 + seed) % 256);
    return t;
}

/* The bits of the plain loops, whether weights are known or not; packed once, if at all. */
static void expect_same(cpu_case *c, graph_op op, unsigned constants, bool is_packed)
{
    cpu_weights *weights = cpu_weights_create(NULL);
    cr_assert_eq(cpu_case_run(c, op, 1), STATUS_OK);
    tensor plain = c->outputs[0];
    size_t bytes = 0;
    for (int run = 0; run < 2; run++) {
        cr_assert_eq(cpu_case_run_packed(c, op, 1, constants, weights), STATUS_OK);
        size_t now = cpu_weights_bytes(weights);
        cr_assert_eq(now > 0, is_packed);
        cr_assert(run == 0 || now == bytes, "packed again");
        bytes = now;
        cr_assert(tensor_same_shape(&plain, &c->outputs[0]));
        cr_assert_arr_eq(plain.data, c->outputs[0].data, tensor_bytes(&plain));
    }
    cpu_weights_release(weights);
    cpu_case_dispose(c);
}

typedef struct conv_spec {
    dtype x, w;
    int64_t images, channels, out, groups, height, width, kernel_h, kernel_w;
    int64_t strides[2], pads[4], dilations[2];
} conv_spec;

static const conv_spec convolutions[] = {
    {DTYPE_U8, DTYPE_U8, 1, 24, 70, 1, 1, 500, 1, 5, {1, 1}, {0, 2, 0, 2}, {1, 1}},
    {DTYPE_U8, DTYPE_I8, 3, 16, 16, 1, 9, 11, 3, 3, {2, 1}, {1, 0, 1, 2}, {1, 2}},
    {DTYPE_I8, DTYPE_U8, 2, 40, 33, 1, 5, 7, 1, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}},
    {DTYPE_I8, DTYPE_I8, 2, 24, 48, 3, 6, 6, 2, 3, {1, 1}, {0, 1, 1, 1}, {1, 1}},
    {DTYPE_U8, DTYPE_I8, 1, 6, 9, 1, 7, 7, 1, 1, {2, 2}, {0, 0, 0, 0}, {1, 1}},
    {DTYPE_U8, DTYPE_I8, 1, 6, 9, 1, 4, 5, 1, 1, {2, 1}, {0, 0, 3, 0}, {1, 1}},
};
#define CONVOLUTIONS (sizeof convolutions / sizeof convolutions[0])

static void start_conv(cpu_case *c, const conv_spec *s)
{
    *c = (cpu_case){
        .attributes =
            {{.name = "strides", .kind = GRAPH_ATTRIBUTE_INTS, .count = 2, .ints = s->strides},
             {.name = "pads", .kind = GRAPH_ATTRIBUTE_INTS, .count = 4, .ints = s->pads},
             {.name = "dilations", .kind = GRAPH_ATTRIBUTE_INTS, .count = 2, .ints = s->dilations},
             graph_make_int("group", s->groups)},
        .attribute_count = 4};
    add_bytes(c, s->x, DIMS(s->images, s->channels, s->height, s->width), 5);
}

static void add_weights(cpu_case *c, const conv_spec *s)
{
    add_bytes(c, s->w, DIMS(s->out, s->channels / s->groups, s->kernel_h, s->kernel_w), 11);
}

Test(cpu_integer, packed_convolutions_are_exact)
{
    for (size_t i = 0; i < CONVOLUTIONS; i++) {
        cpu_case c;
        start_conv(&c, &convolutions[i]);
        add_weights(&c, &convolutions[i]);
        cpu_case_input(&c, convolutions[i].x, DIMS(), (double[]){17});
        cpu_case_input(&c, convolutions[i].w, DIMS(), (double[]){66});
        expect_same(&c, GRAPH_OP_CONV_INTEGER, WEIGHTS_KNOWN, true);
    }
}

/* The zero point of x, and that of the weights, come with the request; the weights may, too. */
Test(cpu_integer, zero_points_may_be_unknown)
{
    for (unsigned known = 0; known <= 2; known += 2) {
        cpu_case c;
        start_conv(&c, &convolutions[0]);
        add_weights(&c, &convolutions[0]);
        cpu_case_input(&c, DTYPE_U8, DIMS(), (double[]){200});
        cpu_case_input(&c, DTYPE_U8, DIMS(), (double[]){3});
        expect_same(&c, GRAPH_OP_CONV_INTEGER, known, known == 2);
    }
}

Test(cpu_integer, zero_points_of_channels_may_differ)
{
    for (int differs = 0; differs < 2; differs++) {
        cpu_case c;
        double zeros[33];
        for (int i = 0; i < 33; i++)
            zeros[i] = differs ? 100 + i : 100;
        start_conv(&c, &convolutions[2]);
        add_weights(&c, &convolutions[2]);
        cpu_case_input(&c, DTYPE_I8, DIMS(), (double[]){-7});
        cpu_case_input(&c, DTYPE_U8, DIMS(33), zeros);
        expect_same(&c, GRAPH_OP_CONV_INTEGER, differs ? 2 : WEIGHTS_KNOWN, true);
    }
}

/* Depthwise convolutions keep the plain loops. */
Test(cpu_integer, packed_convolutions_requantise_the_same)
{
    for (size_t i = 0; i <= CONVOLUTIONS; i++) {
        conv_spec s = convolutions[i % CONVOLUTIONS];
        if (i == CONVOLUTIONS)
            s.groups = s.out = s.channels;
        cpu_case c;
        start_conv(&c, &s);
        double scales[70];
        for (int j = 0; j < 70; j++)
            scales[j] = 0.002 + j * 0.0001;
        cpu_case_input(&c, DTYPE_F32, DIMS(), (double[]){0.03});
        cpu_case_input(&c, s.x, DIMS(), (double[]){17});
        add_weights(&c, &s);
        cpu_case_input(&c, DTYPE_F32, DIMS(s.out), scales);
        cpu_case_input(&c, s.w, DIMS(), (double[]){s.w == DTYPE_U8 ? 66 : 0});
        cpu_case_input(&c, DTYPE_F32, DIMS(), (double[]){0.31});
        cpu_case_input(&c, s.x, DIMS(), (double[]){30});
        double biases[70];
        for (int j = 0; j < 70; j++)
            biases[j] = j * 131 - 4000;
        if (i % 2 == 0)
            cpu_case_input(&c, DTYPE_I32, DIMS(s.out), biases);
        expect_same(&c, GRAPH_OP_QLINEAR_CONV, WEIGHTS_KNOWN, i < CONVOLUTIONS);
    }
}

/* A, B and their zero points; B may be one matrix or one for each of A, and be known or not. */
Test(cpu_integer, packed_matmuls_are_exact)
{
    const dtype types[] = {DTYPE_U8, DTYPE_I8};
    for (unsigned i = 0; i < 16; i++) {
        bool is_known = i & 4, is_one = i & 8;
        cpu_case c = {0};
        double rows[30], columns[70];
        for (int j = 0; j < 70; j++)
            columns[j] = 9 + (i & 1 ? j : 0);
        for (int j = 0; j < 30; j++)
            rows[j] = j;
        add_bytes(&c, types[i & 1], DIMS(2, 30, 37), 3);
        add_bytes(&c, types[i >> 1 & 1], is_one ? DIMS(37, 70) : DIMS(2, 37, 70), 4);
        cpu_case_input(&c, types[i & 1], i & 1 ? DIMS(30) : DIMS(), rows + (i & 1 ? 0 : 5));
        cpu_case_input(&c, types[i >> 1 & 1], is_known ? DIMS(70) : DIMS(), columns);
        expect_same(&c, GRAPH_OP_MATMUL_INTEGER, is_known ? WEIGHTS_KNOWN : 0, is_known && is_one);
    }
}

/* Columns with their own zero points keep the plain loops. */
Test(cpu_integer, packed_matmuls_requantise_the_same)
{
    for (int i = 0; i < 3; i++) {
        dtype type = i == 1 ? DTYPE_I8 : DTYPE_U8;
        cpu_case c = {0};
        double scales[300], zeros[300] = {i == 2 ? 3 : 0};
        for (int j = 0; j < 300; j++)
            scales[j] = 0.01 + j * 0.0001;
        add_bytes(&c, type, DIMS(5, 20), 3);
        cpu_case_input(&c, DTYPE_F32, DIMS(), (double[]){0.02});
        cpu_case_input(&c, type, DIMS(), (double[]){8});
        add_bytes(&c, DTYPE_I8, DIMS(20, 300), 4);
        cpu_case_input(&c, DTYPE_F32, DIMS(300), scales);
        cpu_case_input(&c, DTYPE_I8, DIMS(300), zeros);
        cpu_case_input(&c, DTYPE_F32, DIMS(), (double[]){0.11});
        cpu_case_input(&c, type, DIMS(), (double[]){8});
        expect_same(&c, GRAPH_OP_QLINEAR_MATMUL, WEIGHTS_KNOWN, i < 2);
    }
}

/* Zero points of rows and columns that each matrix has of its own: (a - row) * (b - column). */
Test(cpu_integer, matrices_may_have_their_own_zero_points)
{
    for (int is_packed = 0; is_packed < 2; is_packed++) {
        cpu_case c = {0};
        double numbers[] = {1, 2, 3, 4, 5, 6, 7, 8};
        cpu_case_input(&c, DTYPE_U8, DIMS(2, 2, 1), (double[]){10, 20, 30, 40});
        cpu_case_input(&c, DTYPE_I8, DIMS(2, 1, 2), (double[]){-1, -2, -3, -4});
        cpu_case_input(&c, DTYPE_U8, DIMS(2, 2, 1), numbers);
        cpu_case_input(&c, DTYPE_I8, DIMS(2, 1, 2), numbers + 4);
        cpu_weights *weights = cpu_weights_create(NULL);
        status s = is_packed ? cpu_case_run_packed(&c, GRAPH_OP_MATMUL_INTEGER, 1, 0, weights)
                             : cpu_case_run(&c, GRAPH_OP_MATMUL_INTEGER, 1);
        cr_assert_eq(s, STATUS_OK);
        for (int i = 0; i < 8; i++) {
            int row = i / 2, column = i / 4 * 2 + i % 2;
            double a = 10 * (row + 1) - (row + 1), b = -(column + 1) - (column + 5);
            cpu_case_expect_near(cpu_case_get(&c.outputs[0], i), a * b, 0, i);
        }
        cpu_weights_release(weights);
        cpu_case_dispose(&c);
    }
}
