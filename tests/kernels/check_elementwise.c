#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels_list.h"
#include "tests/kernels/harness.h"

/* The special values first, then a sweep, then random bits. */
#define COUNT 4099

static void fill_inputs(float *x, size_t count)
{
    static const float special[] = {0,       -0.0f,   1,        -1,         INFINITY, -INFINITY,
                                    NAN,     FLT_MAX, -FLT_MAX, FLT_MIN,    -FLT_MIN, 1e-40f,
                                    -1e-40f, 88.72f,  88.73f,   -87.33f,    -87.34f,  -104,
                                    100,     -100,    0.625f,   -0.625f,    4,        -4,
                                    10,      -10,     3.9f,     0.70710678f};
    for (size_t i = 0; i < count; i++) {
        if (i < sizeof special / sizeof *special) {
            x[i] = special[i];
        } else if (i % 4) {
            x[i] = check_random_float(-12, 12);
        } else {
            uint32_t bits = check_random();
            memcpy(&x[i], &bits, sizeof bits);
        }
    }
}

typedef double (*exact_fn)(double x);

static double exact_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double exact_gelu(double x)
{
    return x == -INFINITY ? 0 : 0.5 * x * erfc(-x * M_SQRT1_2);
}

static double exact_gelu_tanh(double x)
{
    return x == -INFINITY ? 0 : 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double exact_silu(double x)
{
    return x == -INFINITY ? 0 : x / (1 + exp(-x));
}

static double exact_relu(double x)
{
    return x < 0 ? 0 : x;
}

/* |error| <= absolute + relative * |exact| + per_x * |x|, and denormal results may be zero. */
static void check_unary(const variant *v, exact_fn exact, double absolute, double relative,
                        double per_x)
{
    kernels_unary_f32 run = (kernels_unary_f32)v->function;
    for (size_t count = 0; count < 40; count++) {
        float *x = check_floats(count), *out = check_floats(count);
        check_fill_floats(x, count, -3, 3);
        run(x, out, count);
        for (size_t i = 0; i < count; i++) {
            double want = exact(x[i]);
            check_close("short", i, out[i], want,
                        absolute + relative * fabs(want) + per_x * fabs(x[i]));
        }
        check_reset();
    }
    float *x = check_floats(COUNT), *out = check_floats(COUNT);
    fill_inputs(x, COUNT);
    memcpy(out, x, COUNT * sizeof *x);
    run(out, out, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        double want = (float)exact(x[i]);
        double bound = absolute + relative * fabs(want) + FLT_MIN;
        if (isfinite(x[i]))
            bound += per_x * fabs(x[i]);
        if (!check_close("value", i, out[i], want, bound)) {
            printf("  at x = %.9g\n", x[i]);
            break;
        }
    }
}

static void check_exp(const variant *v)
{
    check_unary(v, exp, 0, 2 * FLT_EPSILON, 0);
}

static void check_erf(const variant *v)
{
    check_unary(v, erf, 4e-7, 0, 0);
}

static void check_tanh(const variant *v)
{
    check_unary(v, tanh, 4e-7, 0, 0);
}

static void check_sigmoid(const variant *v)
{
    check_unary(v, exact_sigmoid, 3e-7, 0, 0);
}

static void check_relu(const variant *v)
{
    check_unary(v, exact_relu, 0, 0, 0);
}

static void check_gelu(const variant *v)
{
    check_unary(v, exact_gelu, 1e-6, 0, 1e-6);
}

static void check_gelu_tanh(const variant *v)
{
    check_unary(v, exact_gelu_tanh, 1e-6, 0, 1e-6);
}

static void check_silu(const variant *v)
{
    check_unary(v, exact_silu, 1e-6, 0, 1e-6);
}

static void check_binary(const variant *v, kernels_binary_f32 scalar)
{
    kernels_binary_f32 run = (kernels_binary_f32)v->function;
    for (size_t turn = 0; turn < 200; turn++) {
        size_t count = turn < 50 ? turn : check_random_below(COUNT);
        size_t a_step = turn % 4 != 1, b_step = turn % 4 != 2;
        size_t a_count = a_step ? count : count > 0, b_count = b_step ? count : count > 0;
        float *a = check_floats(a_count), *b = check_floats(b_count);
        float *want = check_floats(count), *out = a_step && turn % 3 == 0 ? a : check_floats(count);
        fill_inputs(a, a_count);
        fill_inputs(b, b_count);
        if (b_count)
            b[check_random_below(b_count)] = check_random_float(-2, 2);
        scalar(a, a_step, b, b_step, want, count);
        run(a, a_step, b, b_step, out, count);
        for (size_t i = 0; i < count; i++)
            check_close("element", i, out[i], want[i], FLT_MIN);
        check_reset();
    }
}

static void check_add(const variant *v)
{
    check_binary(v, add_f32_scalar);
}

static void check_sub(const variant *v)
{
    check_binary(v, sub_f32_scalar);
}

static void check_mul(const variant *v)
{
    check_binary(v, mul_f32_scalar);
}

static void check_div(const variant *v)
{
    check_binary(v, div_f32_scalar);
}

static void check_max(const variant *v)
{
    check_binary(v, max_f32_scalar);
}

static void check_min(const variant *v)
{
    check_binary(v, min_f32_scalar);
}

static void check_prelu(const variant *v)
{
    check_binary(v, prelu_f32_scalar);
}

typedef __typeof__(((kernels *)0)->convert_f16_f32) widen_fn;
typedef __typeof__(((kernels *)0)->convert_f32_f16) narrow_fn;

static bool is_nan_half(uint16_t x, bool is_bf16)
{
    return is_bf16 ? (x & 0x7fff) > 0x7f80 : (x & 0x7fff) > 0x7c00;
}

/* All 65,536 halves. */
static void check_widen(const variant *v, widen_fn scalar)
{
    widen_fn run = (widen_fn)v->function;
    const size_t count = 65536 + 5;
    uint16_t *in = check_buffer(count * 2, 2);
    float *want = check_floats(count), *got = check_floats(count);
    for (size_t i = 0; i < count; i++)
        in[i] = (uint16_t)i;
    scalar(in, want, count);
    run(in, got, count);
    for (size_t i = 0; i < count; i++)
        check_close("half", i, got[i], want[i], 0);
}

static void check_narrow(const variant *v, narrow_fn scalar, bool is_bf16)
{
    narrow_fn run = (narrow_fn)v->function;
    for (size_t turn = 0; turn < 60; turn++) {
        size_t count = turn < 20 ? turn : COUNT;
        float *in = check_floats(count);
        uint16_t *want = check_buffer(count * 2, 2), *got = check_buffer(count * 2, 2);
        for (size_t i = 0; i < count; i++) { /* ties, and anything */
            uint32_t bits = check_random();
            bits = turn % 2 ? bits & (is_bf16 ? 0xffff8000u : 0xfffff000u) : bits;
            if (turn % 3)
                bits = (bits & 0x8fffffffu) | 0x30000000u;
            memcpy(&in[i], &bits, sizeof bits);
        }
        scalar(in, want, count);
        run(in, got, count);
        for (size_t i = 0; i < count; i++) {
            bool is_same = got[i] == want[i] ||
                           (is_nan_half(got[i], is_bf16) && is_nan_half(want[i], is_bf16));
            if (!is_same)
                check_fail("%.9g becomes %04x, not %04x", in[i], got[i], want[i]);
        }
        check_reset();
    }
}

static void check_f16_f32(const variant *v)
{
    check_widen(v, convert_f16_f32_scalar);
}

static void check_bf16_f32(const variant *v)
{
    check_widen(v, convert_bf16_f32_scalar);
}

static void check_f32_f16(const variant *v)
{
    check_narrow(v, convert_f32_f16_scalar, false);
}

static void check_f32_bf16(const variant *v)
{
    check_narrow(v, convert_f32_bf16_scalar, true);
}

struct unary_bench {
    kernels_unary_f32 run;
    const float *in;
    float *out;
    size_t count;
};

static void run_unary(void *context)
{
    struct unary_bench *b = context;
    b->run(b->in, b->out, b->count);
}

static void bench_unary(const variant *v)
{
    struct unary_bench b = {(kernels_unary_f32)v->function, NULL, NULL, 4096};
    float *in = check_buffer(b.count * 4, 64);
    b.out = check_buffer(b.count * 4, 64);
    check_fill_floats(in, b.count, -4, 4);
    b.in = in;
    bench_line("4096 floats", (double)b.count * 1e-9 / bench_seconds(run_unary, &b), "G/s", 0);
    check_reset();
}

const check checks_elementwise[] = {
    {"exp_f32", check_exp, bench_unary},
    {"erf_f32", check_erf, bench_unary},
    {"tanh_f32", check_tanh, bench_unary},
    {"sigmoid_f32", check_sigmoid, bench_unary},
    {"relu_f32", check_relu, bench_unary},
    {"gelu_f32", check_gelu, bench_unary},
    {"gelu_tanh_f32", check_gelu_tanh, bench_unary},
    {"silu_f32", check_silu, bench_unary},
    {"add_f32", check_add, NULL},
    {"sub_f32", check_sub, NULL},
    {"mul_f32", check_mul, NULL},
    {"div_f32", check_div, NULL},
    {"max_f32", check_max, NULL},
    {"min_f32", check_min, NULL},
    {"prelu_f32", check_prelu, NULL},
    {"convert_f16_f32", check_f16_f32, NULL},
    {"convert_f32_f16", check_f32_f16, NULL},
    {"convert_bf16_f32", check_bf16_f32, NULL},
    {"convert_f32_bf16", check_f32_bf16, NULL},
    {NULL, NULL, NULL},
};
