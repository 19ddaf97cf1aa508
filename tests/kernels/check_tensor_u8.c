#include <math.h>
#include <string.h>

#include "kernels/kernels_list.h"
#include "kernels/tensor_u8.h"
#include "tests/kernels/harness.h"

typedef __typeof__(((kernels *)0)->quantise_tensor_u8) quantise_fn;
typedef __typeof__(((kernels *)0)->dequantise_u8) dequantise_fn;
typedef __typeof__(((kernels *)0)->add_u8) add_fn;
typedef __typeof__(((kernels *)0)->pool_u8) pool_fn;
typedef __typeof__(((kernels *)0)->depthwise_u8s8) depthwise_fn;

static uint8_t *make_bytes(size_t count)
{
    uint8_t *x = check_buffer(count, 1);
    check_fill_bytes(x, count);
    return x;
}

static double saturated(double x, int32_t zero, double low, double high)
{
    double q = nearbyint(x) + zero;
    return q != q ? low : fmin(fmax(q, low), high);
}

static bool check_byte(size_t i, double got, double want)
{
    if (got != want)
        check_fail("byte %zu is %g, not %g", i, got, want);
    return got == want;
}

static void check_quantise_tensor_u8(const variant *v)
{
    quantise_fn run = (quantise_fn)v->function;
    for (unsigned turn = 0; turn < 60; turn++) {
        size_t count = check_random_below(300);
        float *x = check_floats(count);
        check_fill_floats(x, count, -4, 4);
        for (size_t i = 0; i < count; i++) {
            static const float special[] = {0, 0.5f, 1.5f, 1e30f, -1e30f, INFINITY, -INFINITY, NAN};
            if (turn % 2 && check_random_below(4) == 0)
                x[i] = special[check_random_below(8)];
        }
        quantise_tensor_u8 q = {x, count, turn % 3 ? 0.0173f : 1, 0, false, check_buffer(count, 1)};
        q.is_signed = turn / 2 % 2;
        q.zero = (int32_t)check_random_below(256) - (q.is_signed ? 128 : 0);
        run(&q);
        for (size_t i = 0; i < count; i++) {
            double low = q.is_signed ? -128 : 0;
            double want = saturated((double)(x[i] / q.scale), q.zero, low, low + 255);
            double got = q.is_signed ? (double)(int8_t)q.out[i] : (double)q.out[i];
            if (!check_byte(i, got, want))
                break;
        }
        check_reset();
    }
}

static void check_dequantise_u8(const variant *v)
{
    dequantise_fn run = (dequantise_fn)v->function;
    for (unsigned turn = 0; turn < 60; turn++) {
        size_t count = check_random_below(300);
        dequantise_u8 d = {make_bytes(count), count, 0.0371f, 0, turn % 2, check_floats(count)};
        d.zero = (int32_t)check_random_below(256) - (d.is_signed ? 128 : 0);
        run(&d);
        for (size_t i = 0; i < count; i++) {
            int32_t q = d.is_signed ? (int8_t)d.in[i] : d.in[i];
            check_close("value", i, d.out[i], (float)(q - d.zero) * d.scale, 0);
        }
        check_reset();
    }
}

static void check_add_u8(const variant *v)
{
    add_fn run = (add_fn)v->function;
    for (unsigned turn = 0; turn < 60; turn++) {
        size_t count = check_random_below(300);
        add_u8 p = {make_bytes(count),     make_bytes(count), count, 0.731f, 0.42f, 0, 0, 0, 0,
                    check_buffer(count, 1)};
        p.a_zero = (int32_t)check_random_below(256);
        p.b_zero = (int32_t)check_random_below(256);
        p.zero = (int32_t)check_random_below(256);
        p.low = turn % 2 ? p.zero : 0;
        run(&p);
        for (size_t i = 0; i < count; i++) {
            float x = (float)(p.a[i] - p.a_zero) * p.a_scale;
            float y = (float)(p.b[i] - p.b_zero) * p.b_scale;
            if (!check_byte(i, p.out[i], saturated((double)(x + y), p.zero, p.low, 255)))
                break;
        }
        check_reset();
    }
}

static image_window make_window(unsigned turn)
{
    static const size_t channels[] = {1, 3, 8, 16, 63, 64, 130};
    image_window w = {.height = 1 + check_random_below(12), .width = 1 + check_random_below(12)};
    w.channels = channels[turn % 7];
    w.kernel_height = 1 + check_random_below(4);
    w.kernel_width = 1 + check_random_below(4);
    if (turn % 25 == 24) /* more taps than vectors hold at once */
        w.kernel_height = w.kernel_width = 9;
    w.stride_y = 1 + check_random_below(3);
    w.stride_x = 1 + check_random_below(3);
    w.dilation_y = 1 + check_random_below(2);
    w.dilation_x = 1 + check_random_below(2);
    w.pad_top = check_random_below(w.kernel_height + 1);
    w.pad_left = check_random_below(w.kernel_width + 1);
    w.out_height = 1 + (w.height + w.pad_top) / w.stride_y;
    w.out_width = 1 + (w.width + w.pad_left) / w.stride_x;
    return w;
}

/* The byte under a tap of an output pixel; -1 for padding. */
static int byte_at(const image_window *w, const uint8_t *in, size_t pixel, size_t tap, size_t c)
{
    size_t ky = tap / w->kernel_width, kx = tap % w->kernel_width;
    long y = (long)(pixel / w->out_width * w->stride_y + ky * w->dilation_y) - (long)w->pad_top;
    long x = (long)(pixel % w->out_width * w->stride_x + kx * w->dilation_x) - (long)w->pad_left;
    if (y < 0 || x < 0 || y >= (long)w->height || x >= (long)w->width)
        return -1;
    return in[((size_t)y * w->width + (size_t)x) * w->channels + c];
}

static void check_pool_u8(const variant *v)
{
    pool_fn run = (pool_fn)v->function;
    for (unsigned turn = 0; turn < 100; turn++) {
        image_window w = make_window(turn);
        size_t pixels = w.out_height * w.out_width, first = check_random_below(pixels);
        size_t count = pixels - first;
        pool_u8 p = {w, make_bytes(w.height * w.width * w.channels), first, count,
                     check_buffer(count * w.channels, 1)};
        run(&p);
        for (size_t i = 0; i < count * w.channels; i++) {
            int want = 0;
            for (size_t t = 0; t < w.kernel_height * w.kernel_width; t++) {
                int x = byte_at(&w, p.in, first + i / w.channels, t, i % w.channels);
                want = x > want ? x : want;
            }
            if (!check_byte(i, p.out[i], want))
                break;
        }
        check_reset();
    }
}

static double convolved(const depthwise_u8s8 *d, size_t pixel, size_t c)
{
    const image_window *w = &d->window;
    int32_t sum = d->start ? d->start[c] : 0;
    for (size_t t = 0; t < w->kernel_height * w->kernel_width; t++) {
        int x = byte_at(w, d->in, pixel, t, c);
        if (x >= 0)
            sum += (x - d->in_zero) * d->weights[t * w->channels + c];
    }
    float x = (float)sum * d->scale[c];
    x = d->bias ? x + d->bias[c] : x;
    return (double)(d->has_relu && x < 0 ? 0 : x);
}

static void check_depthwise_u8s8(const variant *v)
{
    depthwise_fn run = (depthwise_fn)v->function;
    for (unsigned turn = 0; turn < 100; turn++) {
        image_window w = make_window(turn);
        size_t pixels = w.out_height * w.out_width, first = check_random_below(pixels);
        size_t taps = w.kernel_height * w.kernel_width, outputs = (pixels - first) * w.channels;
        float *scale = check_floats(w.channels), *bias = check_floats(w.channels);
        int32_t *start = check_buffer(w.channels * sizeof *start, 4);
        check_fill_floats(scale, w.channels, 0.001f, 0.01f);
        check_fill_floats(bias, w.channels, -50, 50);
        for (size_t c = 0; c < w.channels; c++)
            start[c] = (int32_t)check_random_below(2000) - 1000;
        depthwise_u8s8 d = {.window = w, .scale = scale, .first = first, .count = pixels - first};
        d.in = make_bytes(w.height * w.width * w.channels);
        d.weights = (const int8_t *)make_bytes(taps * w.channels);
        d.in_zero = (int32_t)check_random_below(256);
        d.zero = (int32_t)check_random_below(256);
        d.bias = turn % 2 ? bias : NULL;
        d.start = turn % 3 ? start : NULL;
        d.has_relu = turn % 5 == 0;
        if (turn % 4)
            d.out = check_buffer(outputs, 1);
        else
            d.out_f32 = check_floats(outputs);
        run(&d);
        for (size_t i = 0; i < outputs; i++) {
            double want = convolved(&d, first + i / w.channels, i % w.channels);
            if (d.out ? !check_byte(i, d.out[i], saturated(want, d.zero, 0, 255))
                      : !check_close("channel", i, d.out_f32[i], want, 0))
                break;
        }
        check_reset();
    }
}

const check checks_bytes[] = {
    {"quantise_tensor_u8", check_quantise_tensor_u8, NULL},
    {"dequantise_u8", check_dequantise_u8, NULL},
    {"add_u8", check_add_u8, NULL},
    {"pool_u8", check_pool_u8, NULL},
    {"depthwise_u8s8", check_depthwise_u8s8, NULL},
    {NULL, NULL, NULL},
};
