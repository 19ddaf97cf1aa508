#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/activation.h"
#include "kernels/kernels_list.h"
#include "tests/kernels/harness.h"

#define COUNT 2053

/* |error| <= absolute + per_x * |x| + relative * |exact| */
typedef struct expectation {
    const char *name;
    double (*exact)(double x, double a, double b);
    double absolute, per_x, relative;
} expectation;

static double limit(double x, double low, double high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

static double exact_leaky_relu(double x, double a, double b)
{
    (void)b;
    return x < 0 ? a * x : x;
}

static double exact_hard_sigmoid(double x, double a, double b)
{
    return limit(a * x + b, 0, 1);
}

/* A function without parameters. */
#define EXACT(name, value)                                                                         \
    static double name(double x, double a, double b)                                               \
    {                                                                                              \
        (void)a, (void)b;                                                                          \
        return value;                                                                              \
    }

EXACT(exact_hard_swish, limit(x / 6 + 0.5, 0, 1) * x)
EXACT(exact_softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))
/* A denormal may count as zero, which is as far as can be: the check leaves them out. */
EXACT(exact_log, log(x))
EXACT(exact_sqrt, sqrt(x))
EXACT(exact_abs, fabs(x))
EXACT(exact_negate, -x)
EXACT(exact_atan, atan(x))
EXACT(exact_floor, floor(x))
EXACT(exact_ceil, ceil(x))
EXACT(exact_round, nearbyint(x))
EXACT(exact_sin, sin(x))
EXACT(exact_cos, cos(x))
EXACT(exact_tan, tan(x))
EXACT(exact_asin, asin(x))
EXACT(exact_acos, acos(x))
EXACT(exact_sinh, sinh(x))
EXACT(exact_cosh, cosh(x))
EXACT(exact_asinh, asinh(x))
EXACT(exact_acosh, acosh(x))
EXACT(exact_atanh, atanh(x))

static double exact_elu(double x, double a, double b)
{
    (void)b;
    return x < 0 ? a * expm1(x) : x;
}

static double exact_mish(double x, double a, double b)
{
    return x == -INFINITY ? 0 : x * tanh(exact_softplus(x, a, b));
}

static double exact_selu(double x, double a, double b)
{
    return x > 0 ? b * x : b * a * expm1(x);
}

static double exact_celu(double x, double a, double b)
{
    (void)b;
    return x > 0 ? x : a * expm1(x / a);
}

static const expectation expectations[ACTIVATION_COUNT] = {
    [ACTIVATION_LEAKY_RELU] = {"leaky_relu", exact_leaky_relu, 0, 0, FLT_EPSILON},
    [ACTIVATION_CLIP] = {"clip", limit, 0, 0, 0},
    [ACTIVATION_HARD_SIGMOID] = {"hard_sigmoid", exact_hard_sigmoid, FLT_EPSILON, FLT_EPSILON, 0},
    [ACTIVATION_HARD_SWISH] = {"hard_swish", exact_hard_swish, 1e-6, 1e-6, 0},
    [ACTIVATION_ELU] = {"elu", exact_elu, 6e-7, 0, 0}, /* a is at most 1.5 */
    [ACTIVATION_SOFTPLUS] = {"softplus", exact_softplus, 5e-7, 5e-7, 0},
    [ACTIVATION_MISH] = {"mish", exact_mish, 1e-6, 1e-6, 0},
    [ACTIVATION_LOG] = {"log", exact_log, 2 * FLT_EPSILON, 0, 2 * FLT_EPSILON},
    [ACTIVATION_SQRT] = {"sqrt", exact_sqrt, 0, 0, FLT_EPSILON / 2},
    [ACTIVATION_ABS] = {"abs", exact_abs, 0, 0, 0},
    [ACTIVATION_NEGATE] = {"negate", exact_negate, 0, 0, 0},
    [ACTIVATION_SELU] = {"selu", exact_selu, 6e-7, 0, FLT_EPSILON},
    [ACTIVATION_CELU] = {"celu", exact_celu, 6e-7, 0, 0},
    [ACTIVATION_ATAN] = {"atan", exact_atan, 3e-7, 0, 0},
    [ACTIVATION_FLOOR] = {"floor", exact_floor, 0, 0, 0},
    [ACTIVATION_CEIL] = {"ceil", exact_ceil, 0, 0, 0},
    [ACTIVATION_ROUND] = {"round", exact_round, 0, 0, 0},
    [ACTIVATION_SIN] = {"sin", exact_sin, 4e-7, 0, 0},
    [ACTIVATION_COS] = {"cos", exact_cos, 4e-7, 0, 0},
    [ACTIVATION_TAN] = {"tan", exact_tan, 1e-6, 0, 1e-6},
    [ACTIVATION_ASIN] = {"asin", exact_asin, 5e-7, 0, 0},
    [ACTIVATION_ACOS] = {"acos", exact_acos, 5e-7, 0, 0},
    [ACTIVATION_SINH] = {"sinh", exact_sinh, 1e-6, 0, 1e-6},
    [ACTIVATION_COSH] = {"cosh", exact_cosh, 1e-6, 0, 1e-6},
    [ACTIVATION_ASINH] = {"asinh", exact_asinh, 1e-6, 0, 1e-6},
    [ACTIVATION_ACOSH] = {"acosh", exact_acosh, 1e-6, 0, 1e-6},
    [ACTIVATION_ATANH] = {"atanh", exact_atanh, 1e-6, 0, 1e-6},
};

static void fill_inputs(float *x, size_t count)
{
    static const float special[] = {0,        -0.0f, 1,  -1,    INFINITY, -INFINITY, NAN,   FLT_MAX,
                                    -FLT_MAX, 3,     -3, 88.8f, -88.8f,   20,        -20,   0.5f,
                                    2,        1.5f,  -6, 6,     1.0001f,  0.9999f,   1e-30f};
    for (size_t i = 0; i < count; i++) {
        x[i] = check_random_float(-12, 12);
        if (i < sizeof special / sizeof *special)
            x[i] = special[i];
        else if (i % 4 == 0) {
            uint32_t bits = check_random();
            bits = bits >> 23 & 255 ? bits : 0x3f800000; /* no denormals */
            memcpy(&x[i], &bits, sizeof bits);
        }
    }
}

static void check_kind(const variant *v, activation_kind kind, size_t count)
{
    __typeof__(((kernels *)0)->activation_f32) run =
        (__typeof__(((kernels *)0)->activation_f32))v->function;
    const expectation *e = &expectations[kind];
    float *in = check_floats(count), *out = check_floats(count);
    float a = kind == ACTIVATION_CLIP ? -1.25f : check_random_float(0.1f, 1.5f);
    activation_f32 p = {kind, a, check_random_float(0.2f, 0.8f), in, out, count};
    fill_inputs(in, count);
    run(&p);
    for (size_t i = 0; i < count; i++) {
        double x = (double)in[i], want = (float)e->exact(x, (double)p.a, (double)p.b);
        double bound = e->absolute + FLT_MIN + e->relative * fabs(want);
        bound += isfinite(x) ? e->per_x * fabs(x) : 0;
        if (kind == ACTIVATION_HARD_SWISH && x == -(double)INFINITY)
            continue; /* -inf * 0 */
        if (!check_close(e->name, i, (double)out[i], want, bound)) {
            printf("  at x = %.9g\n", x);
            break;
        }
    }
    float *same = check_floats(count);
    memcpy(same, in, count * sizeof *in);
    p.in = p.out = same;
    run(&p);
    if (memcmp(same, out, count * sizeof *out))
        check_fail("%s in place differs", e->name);
    check_reset();
}

static void check_activation(const variant *v)
{
    for (int kind = 0; kind < ACTIVATION_COUNT; kind++) {
        for (size_t count = 0; count < 40; count++)
            check_kind(v, (activation_kind)kind, count);
        check_kind(v, (activation_kind)kind, COUNT);
    }
}

static void check_weighted_rows(const variant *v)
{
    __typeof__(((kernels *)0)->weighted_rows_f32) run =
        (__typeof__(((kernels *)0)->weighted_rows_f32))v->function;
    for (size_t turn = 0; turn < 60; turn++) {
        size_t count = turn < 40 ? turn : check_random_below(300), taps = turn % 17;
        const float *rows[16];
        float *weights = check_floats(taps), *out = check_floats(count);
        for (size_t t = 0; t < taps; t++) {
            float *row = check_floats(count);
            check_fill_floats(row, count, -4, 4);
            rows[t] = row;
        }
        check_fill_floats(weights, taps, -1, 1);
        run(&(weighted_rows_f32){taps, count, rows, weights, out});
        for (size_t i = 0; i < count; i++) {
            double want = 0, sum = 0;
            for (size_t t = 0; t < taps; t++) {
                want += (double)weights[t] * (double)rows[t][i];
                sum += fabs((double)weights[t] * (double)rows[t][i]);
            }
            check_close("sum", i, (double)out[i], want, (double)taps * 0x1p-24 * sum + FLT_MIN);
        }
        check_reset();
    }
}

static void run_kind(void *context)
{
    const activation_f32 *p = ((void **)context)[1];
    ((__typeof__(((kernels *)0)->activation_f32))((void **)context)[0])(p);
}

static void bench_activation(const variant *v)
{
    float *in = check_buffer(4096 * sizeof(float), 64),
          *out = check_buffer(4096 * sizeof(float), 64);
    check_fill_floats(in, 4096, -4, 4);
    for (int kind = 0; kind < ACTIVATION_COUNT; kind++) {
        activation_f32 p = {(activation_kind)kind, 0.1f, 0.5f, in, out, 4096};
        void *context[] = {(void *)v->function, &p};
        bench_line(expectations[kind].name, 4096e-9 / bench_seconds(run_kind, context), "G/s", 0);
    }
    check_reset();
}

const check checks_activation[] = {
    {"activation_f32", check_activation, bench_activation},
    {"weighted_rows_f32", check_weighted_rows, NULL},
    {NULL, NULL, NULL},
};
