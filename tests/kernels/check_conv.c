#include <math.h>
#include <string.h>

#include "kernels/conv_u8s8.h"
#include "kernels/kernels_list.h"
#include "tests/kernels/harness.h"

typedef __typeof__(((kernels *)0)->conv_u8s8) conv_fn;
typedef __typeof__(((kernels *)0)->conv_pack_u8s8) pack_fn;

static size_t rounded_up(size_t n)
{
    return (n + CONV_U8S8_COLUMNS - 1) / CONV_U8S8_COLUMNS * CONV_U8S8_COLUMNS;
}

static void *packed(pack_fn pack, const int8_t *w, size_t steps, size_t n)
{
    void *out = check_buffer(conv_u8s8_packed_bytes(steps, n), 64);
    pack(w, steps, n, out);
    return out;
}

/* Geometry and factors; sums are some thousands, results go past both ends of a byte. */
static conv_u8s8 make_conv(unsigned turn)
{
    static const size_t widths[] = {1, 3, 7, 14, 28, 56};
    conv_u8s8 c = {.images = 1 + turn % 3, .width = widths[check_random_below(6)]};
    size_t height = 1 + check_random_below(check_is_slow() ? 2 : 9);
    c.pitch = c.width + check_random_below(4);
    c.cells = (height - 1) * c.pitch + c.width;
    c.cell_bytes = 1 + check_random_below(130);
    c.steps = turn % 5 ? 1 + check_random_below(20) : 1;
    c.n = turn % 4 ? 1 + check_random_below(40) : 64;
    c.zero = (int32_t)check_random_below(256);
    c.low = turn % 2 ? c.zero : 0;
    size_t *offsets = check_buffer(c.steps * sizeof *offsets, 8), last = 0;
    for (size_t s = 0; s < c.steps; s++) {
        offsets[s] = check_random_below(1000);
        last = offsets[s] > last ? offsets[s] : last;
    }
    c.offsets = offsets;
    c.in_image_bytes = (c.cells - 1) * c.cell_bytes + last + CONV_U8S8_STEP_BYTES;
    uint8_t *in = check_buffer(c.images * c.in_image_bytes, 1);
    check_fill_bytes(in, c.images * c.in_image_bytes);
    c.in = in;
    size_t all = rounded_up(c.n);
    int32_t *start = check_buffer(all * sizeof *start, 4);
    float *scale = check_floats(all), *bias = check_floats(all);
    check_fill_floats(scale, all, 0.0001f, 0.01f);
    check_fill_floats(bias, all, -100, 100);
    for (size_t j = 0; j < all; j++)
        start[j] = (int32_t)check_random_below(20000) - 10000;
    if (turn % 7 == 0) {
        start[0] = INT32_MAX; /* wraps */
        scale[c.n - 1] = turn % 2 ? 1e30f : -1e30f;
        bias[c.n / 2] = turn % 3 ? INFINITY : NAN;
    }
    c.start = start;
    c.scale = scale;
    c.bias = bias;
    c.out_stride = c.n + check_random_below(3);
    c.out_image_bytes = height * c.width * c.out_stride + check_random_below(9);
    return c;
}

static void check_conv(const variant *v)
{
    conv_fn run = (conv_fn)v->function;
    for (unsigned turn = 0; turn < (check_is_slow() ? 10 : 60); turn++) {
        conv_u8s8 c = make_conv(turn);
        size_t weights = c.steps * CONV_U8S8_STEP_BYTES * c.n, bytes = c.images * c.out_image_bytes;
        int8_t *w = check_buffer(weights, 1);
        check_fill_bytes(w, weights);
        c.weights = packed(conv_pack_u8s8_scalar, w, c.steps, c.n);
        uint8_t *want = check_buffer(bytes, 1), *got = check_buffer(bytes, 1);
        c.out = want;
        conv_u8s8_scalar(&c);
        c.out = got;
        run(&c);
        for (size_t i = 0; i < bytes && !check_has_failed(); i++)
            if (got[i] != want[i])
                check_fail("turn %u: byte %zu is %d, not %d", turn, i, got[i], want[i]);
        check_reset();
    }
}

/* The specification itself: a GEMM by its definition, from weights as they were before packing. */
static void check_pack(const variant *v)
{
    for (unsigned turn = 0; turn < 20; turn++) {
        conv_u8s8 c = make_conv(turn * 7 + 1); /* finite factors */
        size_t k = c.steps * CONV_U8S8_STEP_BYTES, rows = 0;
        int8_t *w = check_buffer(k * c.n, 1);
        check_fill_bytes(w, k * c.n);
        c.weights = packed((pack_fn)v->function, w, c.steps, c.n);
        c.out = check_buffer(c.images * c.out_image_bytes, 1);
        conv_u8s8_scalar(&c);
        for (size_t p = 0; p < c.cells; p++) {
            if (p % c.pitch >= c.width)
                continue;
            for (size_t j = 0; j < c.n; j++) {
                int32_t sum = c.start[j];
                for (size_t i = 0; i < k; i++)
                    sum += w[i * c.n + j] *
                           c.in[p * c.cell_bytes + c.offsets[i / CONV_U8S8_STEP_BYTES] +
                                i % CONV_U8S8_STEP_BYTES];
                double x = nearbyint((double)fmaf((float)sum, c.scale[j], c.bias[j])) + c.zero;
                x = fmin(fmax(x, c.low), 255);
                check_close("result", j, c.out[rows * c.out_stride + j], x, 0);
            }
            rows++;
        }
        check_reset();
    }
}

/* A layer of ResNet-18: its pixels, channels and columns. */
static void bench_layer(const variant *v, const char *name, size_t size, size_t channels)
{
    size_t steps = 9 * channels / 64, pitch = size + 1, rows = size + 2;
    size_t image = (rows * pitch + 1) * channels, all = rows * pitch;
    size_t *offsets = check_buffer(steps * sizeof *offsets, 8);
    for (size_t s = 0; s < steps; s++) {
        size_t tap = s * 64 / channels;
        offsets[s] = (tap / 3 * pitch + tap % 3) * channels + s * 64 % channels;
    }
    uint8_t *in = check_buffer(image, 64), *out = check_buffer(all * channels, 64);
    int8_t *w = check_buffer(9 * channels * channels, 1);
    check_fill_bytes(in, image);
    check_fill_bytes(w, 9 * channels * channels);
    int32_t *start = check_buffer(channels * 4, 64);
    float *scale = check_floats(channels), *bias = check_floats(channels);
    memset(start, 0, channels * 4);
    check_fill_floats(scale, channels, 0.0001f, 0.001f);
    check_fill_floats(bias, channels, -10, 10);
    conv_u8s8 c = {.images = 1,
                   .in = in,
                   .cells = (size - 1) * pitch + size,
                   .cell_bytes = channels,
                   .pitch = pitch,
                   .width = size,
                   .offsets = offsets,
                   .steps = steps,
                   .n = channels,
                   .weights = packed(conv_pack_u8s8_scalar, w, steps, channels),
                   .start = start,
                   .scale = scale,
                   .bias = bias,
                   .zero = 3,
                   .out = out,
                   .out_stride = channels};
    double seconds = bench_seconds((void (*)(void *))v->function, &c);
    double work = 2e-9 * 9 * (double)(size * size * channels * channels);
    bench_line(name, work / seconds, "Gop/s", bench_peak("u8s8"));
    check_reset();
}

static void bench_conv(const variant *v)
{
    bench_layer(v, "56 x 56 x 64, 3 x 3", 56, 64);
    bench_layer(v, "28 x 28 x 128, 3 x 3", 28, 128);
    bench_layer(v, "14 x 14 x 256, 3 x 3", 14, 256);
    bench_layer(v, "7 x 7 x 512, 3 x 3", 7, 512);
}

const check checks_conv[] = {
    {"conv_pack_u8s8", check_pack, NULL},
    {"conv_u8s8", check_conv, bench_conv},
    {NULL, NULL, NULL},
};
