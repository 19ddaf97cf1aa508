#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels_list.h"
#include "kernels/rows.h"
#include "tests/kernels/harness.h"

typedef __typeof__(((kernels *)0)->layer_norm_f32) layer_norm_fn;
typedef __typeof__(((kernels *)0)->softmax_f32) softmax_fn;
typedef float (*reduce_fn)(const float *in, size_t count);

static float *random_floats(size_t count, float low, float high)
{
    float *x = check_floats(count);
    check_fill_floats(x, count, low, high);
    return x;
}

static void compare_layer_norm(const layer_norm_f32 *l, const float *out)
{
    for (size_t r = 0; r < l->rows; r++) {
        double sum = 0, squares = 0, top = 0;
        for (size_t pass = 0; pass < 3; pass++) {
            for (size_t i = 0; i < l->width; i++) {
                double x = l->x[r * l->x_stride + i];
                x += l->residual ? l->residual[r * l->residual_stride + i] : 0;
                double d = x - sum / (double)l->width;
                if (pass == 0)
                    sum += x;
                else if (pass == 1)
                    squares += d * d, top = fmax(top, fabs(d));
                else {
                    double inverse = 1 / sqrt(squares / (double)l->width + l->epsilon);
                    double gamma = l->gamma ? l->gamma[i] : 1;
                    double want = d * inverse * gamma + (l->beta ? l->beta[i] : 0);
                    double bound = 1e-5 * (1 + fabs(gamma)) * (1 + top * inverse);
                    check_close("normalised", i, out[r * l->out_stride + i], want, bound);
                }
            }
            if (pass == 0)
                continue;
        }
    }
}

static void check_layer_norm(const variant *v)
{
    layer_norm_fn run = (layer_norm_fn)v->function;
    for (size_t turn = 0; turn < 120; turn++) {
        size_t width = turn < 40 ? turn + 1 : 1 + check_random_below(900), rows = 1 + turn % 4;
        layer_norm_f32 l = {.rows = rows, .width = width, .x_stride = width + turn % 3};
        float spread = turn % 7 == 3 ? 100 : 2, centre = turn % 5 == 4 ? 10 : 0;
        l.x = random_floats((rows - 1) * l.x_stride + width, centre - spread, centre + spread);
        if (turn % 2) {
            l.residual_stride = width;
            l.residual = random_floats(rows * width, -1, 1);
        }
        l.gamma = turn % 3 ? random_floats(width, -2, 2) : NULL;
        l.beta = turn % 4 ? random_floats(width, -2, 2) : NULL;
        l.epsilon = 1e-5f;
        l.out_stride = width;
        l.out = check_floats(rows * width);
        run(&l);
        compare_layer_norm(&l, l.out);
        float *row = check_floats(width);
        layer_norm_f32 last = l;
        last.rows = 1;
        last.x += (rows - 1) * l.x_stride;
        last.residual = l.residual ? l.residual + (rows - 1) * width : NULL;
        last.out = row;
        run(&last);
        if (memcmp(row, l.out + (rows - 1) * width, width * sizeof *row) != 0)
            check_fail("the last of %zu rows of %zu has other bits alone", rows, width);
        check_reset();
    }
}

static void compare_softmax_row(const softmax_f32 *s, size_t r, const float *x)
{
    const uint8_t *mask = s->mask ? s->mask + r * s->mask_stride : NULL;
    const float *bias = s->bias ? s->bias + r * s->bias_stride : NULL;
    double top = -INFINITY, sum = 0, size = 0;
    size_t kept = 0;
    for (size_t i = 0; i < s->width; i++) {
        double y = (double)x[i] * s->scale + (bias ? bias[i] : 0);
        bool is_kept = !mask || mask[i];
        top = is_kept && !isnan(top) && !(y <= top) ? y : top;
        kept += is_kept;
        size = isfinite(y) ? fmax(size, fabs(y) + (bias ? 2 * fabs(bias[i]) : 0)) : size;
    }
    for (size_t i = 0; i < s->width; i++) {
        double y = (double)x[i] * s->scale + (bias ? bias[i] : 0);
        sum += mask && !mask[i] ? 0 : exp(y - top);
    }
    for (size_t i = 0; i < s->width; i++) {
        double y = (double)x[i] * s->scale + (bias ? bias[i] : 0);
        double want = mask && !mask[i] ? 0 : exp(y - top) / sum;
        want = !kept ? 1 / (double)s->width : isfinite(top) ? want : NAN;
        float got = s->out[r * s->out_stride + i];
        if (s->is_log) {
            double log_want = isfinite(top) ? y - top - log(sum) : NAN;
            if (!check_close("log", i, got, log_want, 2e-6 + (fabs(log_want) + size) * 0x1p-22))
                return;
            continue;
        }
        if (!check_close("weight", i, got, want, 1e-6 + want * (1e-6 + size * 0x1p-23)))
            return;
        if (kept && isfinite(top) && mask && !mask[i] && got != 0)
            check_fail("masked key %zu has weight %g", i, got);
    }
}

static void check_softmax(const variant *v)
{
    softmax_fn run = (softmax_fn)v->function;
    for (size_t turn = 0; turn < 200; turn++) {
        size_t width = turn < 60 ? turn / 2 + 1 : 1 + check_random_below(600), rows = 1 + turn % 3;
        softmax_f32 s = {.rows = rows, .width = width, .x_stride = width, .out_stride = width};
        float range = turn % 5 == 4 ? 120 : 6;
        float *x = random_floats(rows * width, -range, range);
        s.x = x;
        s.scale = turn % 2 ? 1 : 0.3f;
        if (turn % 3) {
            s.bias_stride = turn % 3 == 1 ? 0 : width;
            s.bias = random_floats(turn % 3 == 1 ? width : rows * width, -4, 4);
        }
        s.is_log = turn % 8 == 4;
        if (turn % 4) {
            s.mask_stride = turn % 4 == 1 ? 0 : width;
            uint8_t *mask = check_buffer(turn % 4 == 1 ? width : rows * width, 1);
            for (size_t i = 0; i < (turn % 4 == 1 ? width : rows * width); i++)
                mask[i] = turn % 8 == 5 ? 0 : check_random() % 3 != 0;
            s.mask = mask;
        }
        if (turn % 11 == 10)
            x[check_random_below(width)] = turn % 2 ? NAN : INFINITY;
        if (turn % 13 == 12)
            x[check_random_below(width)] = -INFINITY;
        s.out = check_floats(rows * width);
        run(&s);
        for (size_t r = 0; r < rows; r++)
            compare_softmax_row(&s, r, x + r * width);
        memcpy(s.out, x, rows * width * sizeof *x); /* in place */
        s.x = s.out;
        run(&s);
        for (size_t r = 0; r < rows; r++)
            compare_softmax_row(&s, r, x + r * width);
        check_reset();
    }
}

static void check_reduce(const variant *v, reduce_fn scalar, double bound_per_item)
{
    reduce_fn run = (reduce_fn)v->function;
    for (size_t turn = 0; turn < 300; turn++) {
        size_t count = turn < 70 ? turn : check_random_below(3000);
        float *x = random_floats(count, -1, 1);
        if (count && turn % 6 == 5)
            x[check_random_below(count)] = NAN;
        if (count && turn % 7 == 5)
            x[check_random_below(count)] = turn % 2 ? -INFINITY : INFINITY;
        check_close("sum or extreme", count, run(x, count), scalar(x, count),
                    bound_per_item * (double)count);
        check_reset();
    }
}

static void check_sum(const variant *v)
{
    check_reduce(v, reduce_sum_f32_scalar, 1.2e-7);
}

static void check_max(const variant *v)
{
    check_reduce(v, reduce_max_f32_scalar, 0);
}

static void check_min(const variant *v)
{
    check_reduce(v, reduce_min_f32_scalar, 0);
}

static void run_layer_norm(void *context)
{
    void **both = context;
    ((layer_norm_fn)(uintptr_t)both[0])(both[1]);
}

static void bench_layer_norm(const variant *v)
{
    const size_t rows = 64, width = 384;
    layer_norm_f32 l = {rows, width, NULL, width, NULL, width, NULL, NULL, 1e-12f, NULL, width};
    l.x = random_floats(rows * width, -2, 2);
    l.residual = random_floats(rows * width, -2, 2);
    l.gamma = random_floats(width, 0, 2);
    l.beta = random_floats(width, -1, 1);
    l.out = check_buffer(rows * width * 4, 64);
    void *both[2] = {(void *)(uintptr_t)v->function, &l};
    double seconds = bench_seconds(run_layer_norm, both);
    bench_line("64 x 384 + residual", (double)(rows * width) * 1e-9 / seconds, "G/s", 0);
    check_reset();
}

static void bench_softmax(const variant *v)
{
    const size_t rows = 64, width = 128;
    softmax_f32 s = {.rows = rows, .width = width, .x_stride = width, .out_stride = width};
    s.x = random_floats(rows * width, -4, 4);
    s.scale = 0.2f;
    s.out = check_buffer(rows * width * 4, 64);
    void *both[2] = {(void *)(uintptr_t)v->function, &s};
    double seconds = bench_seconds(run_layer_norm, both);
    bench_line("64 x 128", (double)(rows * width) * 1e-9 / seconds, "G/s", 0);
    check_reset();
}

const check checks_rows[] = {
    {"layer_norm_f32", check_layer_norm, bench_layer_norm},
    {"softmax_f32", check_softmax, bench_softmax},
    {"reduce_sum_f32", check_sum, NULL},
    {"reduce_max_f32", check_max, NULL},
    {"reduce_min_f32", check_min, NULL},
    {NULL, NULL, NULL},
};
