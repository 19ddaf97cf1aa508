#include <math.h>
#include <string.h>

#include "kernels/convolution.h"
#include "kernels/embedding.h"
#include "kernels/kernels_list.h"
#include "tests/kernels/harness.h"

typedef __typeof__(((kernels *)0)->image_rows) rows_fn;
typedef __typeof__(((kernels *)0)->depthwise_f32) depthwise_fn;
typedef __typeof__(((kernels *)0)->pool_f32) pool_fn;
typedef __typeof__(((kernels *)0)->embedding_sum_f32) embedding_fn;

static image_window make_window(unsigned turn)
{
    static const size_t channels[] = {1, 3, 8, 16, 17, 33, 64};
    image_window w = {.height = 1 + check_random_below(12), .width = 1 + check_random_below(12)};
    w.channels = channels[turn % 7];
    w.kernel_height = 1 + check_random_below(4);
    w.kernel_width = 1 + check_random_below(4);
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

/* The value under tap (ky, kx) of an output pixel and channel; `outside` for padding. */
static float value_at(const image_window *w, const float *in, size_t pixel, size_t ky, size_t kx,
                      size_t c, float outside)
{
    long y = (long)(pixel / w->out_width * w->stride_y + ky * w->dilation_y) - (long)w->pad_top;
    long x = (long)(pixel % w->out_width * w->stride_x + kx * w->dilation_x) - (long)w->pad_left;
    if (y < 0 || x < 0 || y >= (long)w->height || x >= (long)w->width)
        return outside;
    return in[((size_t)y * w->width + (size_t)x) * w->channels + c];
}

static float *make_image(const image_window *w)
{
    size_t count = w->height * w->width * w->channels;
    float *in = check_floats(count);
    check_fill_floats(in, count, -1, 1);
    return in;
}

static void check_rows(const variant *v)
{
    rows_fn run = (rows_fn)v->function;
    for (unsigned turn = 0; turn < 100; turn++) {
        image_window w = make_window(turn);
        float *in = make_image(&w), pad = 0.25f;
        size_t pixels = w.out_height * w.out_width, first = check_random_below(pixels);
        size_t k = w.kernel_height * w.kernel_width * w.channels, count = pixels - first;
        float *out = check_floats(count * k);
        image_rows r = {w, 4, in, w.channels, &pad, first, count, out, k};
        run(&r);
        for (size_t i = 0; i < count * k; i++) {
            size_t tap = i % k / w.channels;
            float want = value_at(&w, in, first + i / k, tap / w.kernel_width, tap % w.kernel_width,
                                  i % w.channels, pad);
            check_close("item", i, out[i], want, 0);
        }
        check_reset();
    }
}

static void check_depthwise(const variant *v)
{
    depthwise_fn run = (depthwise_fn)v->function;
    for (unsigned turn = 0; turn < 100; turn++) {
        image_window w = make_window(turn);
        size_t pixels = w.out_height * w.out_width, first = check_random_below(pixels);
        size_t taps = w.kernel_height * w.kernel_width;
        float *weights = check_floats(taps * w.channels), *bias = check_floats(w.channels);
        check_fill_floats(weights, taps * w.channels, -1, 1);
        check_fill_floats(bias, w.channels, -1, 1);
        depthwise_f32 d = {.window = w, .in = make_image(&w), .weights = weights, .first = first};
        d.bias = turn % 2 ? bias : NULL;
        d.activation = turn % 3 ? KERNELS_IDENTITY : KERNELS_RELU;
        d.count = pixels - first;
        d.out = check_floats(d.count * w.channels);
        run(&d);
        for (size_t i = 0; i < d.count * w.channels; i++) {
            size_t c = i % w.channels;
            double want = d.bias ? bias[c] : 0;
            for (size_t t = 0; t < taps; t++)
                want += (double)weights[t * w.channels + c] *
                        value_at(&w, d.in, first + i / w.channels, t / w.kernel_width,
                                 t % w.kernel_width, c, 0);
            if (d.activation == KERNELS_RELU)
                want = fmax(want, 0);
            check_close("channel", i, d.out[i], want, 1e-5);
        }
        check_reset();
    }
}

static double pooled(const pool_f32 *p, size_t pixel, size_t c)
{
    const image_window *w = &p->window;
    double sum = 0, top = -INFINITY;
    size_t inside = 0, taps = w->kernel_height * w->kernel_width;
    for (size_t t = 0; t < taps; t++) {
        float x = value_at(w, p->in, pixel, t / w->kernel_width, t % w->kernel_width, c, INFINITY);
        if (x == INFINITY)
            continue;
        inside++;
        sum += x;
        top = fmax(top, x);
    }
    if (p->kind == POOL_MAX)
        return top;
    return p->kind == POOL_AVERAGE_PADDED ? sum / (double)taps : inside ? sum / (double)inside : 0;
}

static void check_pool(const variant *v)
{
    pool_fn run = (pool_fn)v->function;
    for (unsigned turn = 0; turn < 150; turn++) {
        image_window w = make_window(turn);
        size_t pixels = w.out_height * w.out_width, first = check_random_below(pixels);
        pool_f32 p = {.window = w, .kind = (pool_kind)(turn % 3), .in = make_image(&w)};
        p.first = first;
        p.count = pixels - first;
        p.out = check_floats(p.count * w.channels);
        run(&p);
        for (size_t i = 0; i < p.count * w.channels; i++)
            check_close("channel", i, p.out[i], pooled(&p, first + i / w.channels, i % w.channels),
                        1e-6);
        check_reset();
    }
}

/* Windows that vectors take, mostly; some are not square. */
static image_window make_plane_window(unsigned turn)
{
    static const size_t sizes[] = {2, 3, 3, 5};
    image_window w = {.height = 1 + check_random_below(turn % 3 ? 24 : 80),
                      .width = 1 + check_random_below(turn % 5 ? 24 : 80),
                      .channels = 1,
                      .dilation_y = 1,
                      .dilation_x = 1};
    w.kernel_height = sizes[check_random_below(4)];
    w.kernel_width = turn % 9 ? w.kernel_height : 1 + check_random_below(6);
    w.stride_y = 1 + check_random_below(2);
    w.stride_x = turn % 9 ? w.stride_y : 1 + check_random_below(3);
    w.pad_top = check_random_below(w.kernel_height + 1);
    w.pad_left = check_random_below(w.kernel_width + 1);
    w.out_height = 1 + (w.height + w.pad_top) / w.stride_y;
    w.out_width = 1 + (w.width + w.pad_left) / w.stride_x;
    return w;
}

/* By the definition, in its order. */
static float pooled_plane(const pool_planes_f32 *p, const float *in, size_t pixel)
{
    const image_window *w = &p->window;
    float result = 0;
    for (size_t ky = 0; ky < w->kernel_height; ky++) {
        float row = 0;
        for (size_t kx = 0; kx < w->kernel_width; kx++) {
            float x = value_at(w, in, pixel, ky, kx, 0, p->is_max ? -INFINITY : 0);
            row = kx == 0 ? x : !p->is_max ? row + x : x > row || isnan(x) ? x : row;
        }
        result = ky == 0                      ? row
                 : !p->is_max                 ? result + row
                 : row > result || isnan(row) ? row
                                              : result;
    }
    return p->divisors ? result / p->divisors[pixel] : result;
}

static void check_pool_planes(const variant *v)
{
    __typeof__(((kernels *)0)->pool_planes_f32) run =
        (__typeof__(((kernels *)0)->pool_planes_f32))v->function;
    for (unsigned turn = 0; turn < 300; turn++) {
        pool_planes_f32 p = {.window = make_plane_window(turn), .is_max = turn % 2};
        const image_window *w = &p.window;
        size_t plane = w->height * w->width, count = w->out_height * w->out_width;
        p.planes = turn % 4;
        float *in = check_floats(p.planes * plane), *divisors = check_floats(count);
        check_fill_floats(in, p.planes * plane, -1, 1);
        check_fill_floats(divisors, count, 1, 9);
        for (size_t i = 0; turn % 5 == 0 && i < p.planes * plane; i += 1 + check_random_below(40))
            in[i] = turn % 2 ? NAN : INFINITY;
        p.in = in;
        p.divisors = turn % 4 < 2 ? divisors : NULL;
        p.out = check_floats(p.planes * count);
        run(&p);
        for (size_t i = 0; i < p.planes * count; i++)
            check_close("place", i, p.out[i], pooled_plane(&p, in + i / count * plane, i % count),
                        0);
        check_reset();
    }
}

static void check_embedding(const variant *v)
{
    embedding_fn run = (embedding_fn)v->function;
    for (unsigned turn = 0; turn < 60; turn++) {
        embedding_sum_f32 e = {.tokens = turn % 9, .width = 1 + check_random_below(100)};
        e.table_count = 1 + turn % 3;
        e.out_stride = e.width;
        for (size_t i = 0; i < e.table_count; i++) {
            float *table = check_floats(11 * e.width);
            int64_t *ids = check_buffer(e.tokens * 8, 8);
            check_fill_floats(table, 11 * e.width, -1, 1);
            for (size_t t = 0; t < e.tokens; t++)
                ids[t] = (int64_t)check_random_below(11);
            e.tables[i] = table;
            e.ids[i] = ids;
        }
        float *want = check_floats(e.tokens * e.width), *got = check_floats(e.tokens * e.width);
        e.out = want;
        embedding_sum_f32_scalar(&e);
        e.out = got;
        run(&e);
        if (memcmp(want, got, e.tokens * e.width * sizeof *got) != 0)
            check_fail("%zu tokens of %zu differ", e.tokens, e.width);
        check_reset();
    }
}

const check checks_image[] = {
    {"image_rows", check_rows, NULL},
    {"depthwise_f32", check_depthwise, NULL},
    {"pool_f32", check_pool, NULL},
    {"pool_planes_f32", check_pool_planes, NULL},
    {"embedding_sum_f32", check_embedding, NULL},
    {NULL, NULL, NULL},
};
