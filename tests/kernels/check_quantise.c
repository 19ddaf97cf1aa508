#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gemm_scaled.h"
#include "kernels/kernels_list.h"
#include "kernels/quantise.h"
#include "tests/kernels/harness.h"

typedef __typeof__(((kernels *)0)->quantise_u8) u8_fn;
typedef __typeof__(((kernels *)0)->quantise_s16) s16_fn;
typedef __typeof__(((kernels *)0)->layer_norm_quantise) norm_fn;

/* Values of one kind per turn: around zero, all positive, all zero, tiny, huge, with an outlier. */
static float *make_rows(size_t rows, size_t width, unsigned turn)
{
    static const float ranges[][2] = {{-3, 3},         {0, 5},      {0, 0},       {-1e-30f, 1e-30f},
                                      {-1e30f, 1e30f}, {-0.17f, 4}, {-7, -0.001f}};
    const float *range = ranges[turn % 7];
    float *x = check_floats(rows * width);
    check_fill_floats(x, rows * width, range[0], range[1]);
    if (turn % 5 == 4)
        x[check_random_below(rows * width)] *= 40;
    return x;
}

/* What was quantised must come back within half a step (a step where the zero point rounds). */
static void check_u8_row(const float *x, size_t width, const uint8_t *q, float scale,
                         const int32_t *zero)
{
    float low = 0, high = 0;
    for (size_t i = 0; i < width; i++) {
        low = fminf(low, x[i]);
        high = fmaxf(high, x[i]);
    }
    double want_scale = zero ? ((double)high - low) / 255 : fmax(high, -low) / 127;
    check_close("scale", 0, scale, want_scale, 1e-6 * want_scale);
    for (size_t i = 0; i < width; i++) {
        double back = (double)(q[i] - (zero ? *zero : 128)) * scale;
        double bound = scale * (zero ? 1.001 : 0.501);
        if (!check_close("value and back", i, back, x[i], bound))
            return;
    }
}

/* x * factors, or x itself without. */
static const float *scaled(const float *x, const float *factors, size_t rows, size_t width)
{
    float *y = check_floats(rows * width);
    for (size_t i = 0; i < rows * width; i++)
        y[i] = factors ? x[i] * factors[i % width] : x[i];
    return y;
}

static const float *make_factors(size_t width, unsigned turn)
{
    float *factors = check_floats(width);
    check_fill_floats(factors, width, 0.1f, 3);
    return turn % 3 == 1 ? factors : NULL;
}

static void check_u8(const variant *v)
{
    u8_fn run = (u8_fn)v->function;
    for (unsigned turn = 0; turn < 300; turn++) {
        size_t rows = 1 + turn % 3, width = turn < 80 ? turn / 2 + 1 : 1 + check_random_below(1600);
        quantise_u8 q = {.rows = rows, .width = width, .x_stride = width, .out_stride = width};
        q.x = make_rows(rows, width, turn);
        q.out = check_buffer(rows * width, 1);
        q.scale = check_floats(rows);
        q.zero = turn % 2 ? check_buffer(rows * 4, 4) : NULL;
        q.factors = make_factors(width, turn);
        run(&q);
        const float *wanted = scaled(q.x, q.factors, rows, width);
        for (size_t r = 0; r < rows; r++)
            check_u8_row(wanted + r * width, width, q.out + r * width, q.scale[r],
                         q.zero ? q.zero + r : NULL);
        if (q.factors) {
            check_reset();
            continue;
        }
        quantise_u8 s = q; /* with the range given: the same bytes */
        float *low = check_floats(rows), *high = check_floats(rows);
        for (size_t r = 0; r < rows; r++) {
            low[r] = fminf(0, reduce_min_f32_scalar(q.x + r * width, width));
            high[r] = fmaxf(0, reduce_max_f32_scalar(q.x + r * width, width));
        }
        s.low = low;
        s.high = high;
        s.out = check_buffer(rows * width, 1);
        run(&s);
        if (memcmp(s.out, q.out, rows * width) != 0)
            check_fail("other bytes when the range is given, width %zu", width);
        check_reset();
    }
}

static void check_s16(const variant *v)
{
    s16_fn run = (s16_fn)v->function;
    for (unsigned turn = 0; turn < 200; turn++) {
        size_t rows = 1 + turn % 3, width = turn < 80 ? turn / 2 + 1 : 1 + check_random_below(1600);
        quantise_s16 q = {.rows = rows, .width = width, .x_stride = width, .out_stride = width};
        q.x = make_rows(rows, width, turn);
        q.out = check_buffer(rows * width * 2, 2);
        q.scale = check_floats(rows);
        run(&q);
        for (size_t r = 0; r < rows; r++) {
            for (size_t i = 0; i < width; i++) {
                int value = q.out[r * width + i];
                if (abs(value) > GEMM_S16_LIMIT)
                    check_fail("%d is beyond the limit", value);
                check_close("value and back", i, (double)value * q.scale[r], q.x[r * width + i],
                            0.501 * q.scale[r]);
            }
        }
        check_reset();
    }
}

static void check_norm(const variant *v)
{
    norm_fn run = (norm_fn)v->function;
    for (unsigned turn = 0; turn < 100; turn++) {
        size_t rows = 1 + turn % 3, width = turn < 40 ? turn + 2 : 2 + check_random_below(900);
        layer_norm_quantise l = {.out_stride = width};
        l.norm = (layer_norm_f32){.rows = rows, .width = width, .x_stride = width};
        l.norm.x = make_rows(rows, width, 0);
        l.norm.residual = turn % 2 ? make_rows(rows, width, 0) : NULL;
        l.norm.residual_stride = l.norm.out_stride = width;
        l.norm.gamma = make_rows(1, width, 1);
        l.norm.beta = make_rows(1, width, 0);
        l.norm.epsilon = 1e-5f;
        float *plain = check_floats(rows * width);
        l.norm.out = plain;
        layer_norm_f32_scalar(&l.norm);
        l.norm.out = check_floats(rows * width);
        l.out = check_buffer(rows * width, 1);
        l.scale = check_floats(rows);
        l.zero = turn % 3 ? check_buffer(rows * 4, 4) : NULL;
        l.factors = make_factors(width, turn / 3);
        run(&l);
        for (size_t i = 0; i < rows * width; i++)
            check_close("normalised", i, l.norm.out[i], plain[i], 1e-4 * (1 + fabs(plain[i])));
        const float *wanted = scaled(l.norm.out, l.factors, rows, width);
        for (size_t r = 0; r < rows; r++)
            check_u8_row(wanted + r * width, width, l.out + r * width, l.scale[r],
                         l.zero ? l.zero + r : NULL);
        check_reset();
    }
}

typedef struct bench_job {
    kernel_function run;
    void *arguments;
} bench_job;

static void run_job(void *context)
{
    bench_job *job = context;
    ((void (*)(const void *))job->run)(job->arguments);
}

static void bench_u8(const variant *v)
{
    const size_t rows = 64, width = 384;
    quantise_u8 q = {.rows = rows, .width = width, .x_stride = width, .out_stride = width};
    q.x = make_rows(rows, width, 0);
    q.out = check_buffer(rows * width, 64);
    q.scale = check_floats(rows);
    bench_job job = {v->function, &q};
    bench_line("64 x 384", 1e-9 * (double)(rows * width) / bench_seconds(run_job, &job), "G/s", 0);
    check_reset();
}

static void bench_norm(const variant *v)
{
    const size_t rows = 64, width = 384;
    layer_norm_quantise l = {.out_stride = width};
    l.norm = (layer_norm_f32){.rows = rows, .width = width, .x_stride = width};
    l.norm.x = make_rows(rows, width, 0);
    l.norm.residual = make_rows(rows, width, 0);
    l.norm.residual_stride = l.norm.out_stride = width;
    l.norm.gamma = make_rows(1, width, 1);
    l.norm.beta = make_rows(1, width, 0);
    l.norm.out = check_buffer(rows * width * 4, 64);
    l.out = check_buffer(rows * width, 64);
    l.scale = check_floats(rows);
    bench_job job = {v->function, &l};
    bench_line("64 x 384", 1e-9 * (double)(rows * width) / bench_seconds(run_job, &job), "G/s", 0);
    check_reset();
}

const check checks_quantise[] = {
    {"quantise_u8", check_u8, bench_u8},
    {"quantise_s16", check_s16, NULL},
    {"layer_norm_quantise", check_norm, bench_norm},
    {NULL, NULL, NULL},
};
