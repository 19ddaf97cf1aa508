#ifndef KERNELS_X86_VECTOR_MATH_VECTOR_H
#define KERNELS_X86_VECTOR_MATH_VECTOR_H

#include "kernels/kernels.h"
#include "kernels/x86/vector/vector.h"

#ifdef VEC_LANES

/* Elementary functions on vectors; bounds in kernels/rows.h. The polynomials are minimax fits
 * (Lawson's iteration on Chebyshev nodes), each with the error of the fit before rounding. */

/* 2^t for t up to 126, relative error 2e-7 (fit: 9.2e-8); t below -126 gives 0, or a denormal. The
 * cheap one, for weights that are normalised afterwards. NaN stays NaN. */
static inline vec vec_exp2_fast(vec t)
{
    t = vec_max(vec_set(-200), t);
    vec n = vec_round(t), f = vec_sub(t, n);
    vec p = vec_fma(f, vec_set(1.326472205e-03f), vec_set(9.671512997e-03f));
    p = vec_fma(p, f, vec_set(5.550733760e-02f));
    p = vec_fma(p, f, vec_set(2.402224208e-01f));
    p = vec_fma(p, f, vec_set(6.931469776e-01f));
    p = vec_fma(p, f, vec_set(1));
    return vec_scale(p, n);
}

/* e^x = 2^n e^r, r = x - n ln 2 in two steps (ln 2 = high + low, high has 12 trailing zero bits).
 * Fit of e^r on |r| <= ln2/2: 3.1e-9. */
static inline vec vec_exp(vec x)
{
    vec_mask is_tiny = vec_is_less(x, vec_set(-87.336544f));
    vec y = vec_min(vec_set(89), vec_max(vec_set(-88), x));
    vec n = vec_round(vec_mul(y, vec_set(1.44269504f)));
    vec r = vec_fnma(n, vec_set(0.693359375f), y);
    r = vec_fnma(n, vec_set(-2.12194440e-4f), r);
    vec p = vec_fma(r, vec_set(1.381461100e-03f), vec_set(8.368710035e-03f));
    p = vec_fma(p, r, vec_set(4.166838741e-02f));
    p = vec_fma(p, r, vec_set(1.666652069e-01f));
    p = vec_fma(p, r, vec_set(4.999999345e-01f));
    p = vec_fma(vec_mul(r, r), p, r);
    p = vec_add(p, vec_set(1));
    return vec_select(is_tiny, vec_set(0), vec_scale(p, n));
}

/* x = m 2^e with m in sqrt(1/2) .. sqrt(2): log m + e log 2; log m = z - z^2/2 + z^3 P(z), z = m
 * - 1. Coefficients of logf in Cephes 2.2 (single/logf.c). 0 and denormals give -inf. */
static inline vec vec_log(vec x)
{
    vec m = vec_mantissa(x), e = vec_exponent(x), one = vec_set(1);
    vec_mask is_large = vec_is_less(vec_set(1.41421356f), m);
    m = vec_select(is_large, vec_mul(m, vec_set(0.5f)), m);
    e = vec_select(is_large, vec_add(e, one), e);
    vec z = vec_sub(m, one), z2 = vec_mul(z, z);
    vec p = vec_fma(z, vec_set(7.0376836292e-2f), vec_set(-1.1514610310e-1f));
    p = vec_fma(p, z, vec_set(1.1676998740e-1f));
    p = vec_fma(p, z, vec_set(-1.2420140846e-1f));
    p = vec_fma(p, z, vec_set(1.4249322787e-1f));
    p = vec_fma(p, z, vec_set(-1.6668057665e-1f));
    p = vec_fma(p, z, vec_set(2.0000714765e-1f));
    p = vec_fma(p, z, vec_set(-2.4999993993e-1f));
    p = vec_fma(p, z, vec_set(3.3333331174e-1f));
    p = vec_mul(vec_mul(p, z), z2);
    p = vec_fma(e, vec_set(-2.12194440e-4f), p);
    p = vec_fnma(z2, vec_set(0.5f), p);
    vec y = vec_fma(e, vec_set(0.693359375f), vec_add(z, p));
    vec limit = vec_set(__builtin_inff());
    y = vec_select(vec_is_less(x, limit), y, x); /* infinity and NaN */
    y = vec_select(vec_is_less(x, vec_set(1.17549435e-38f)), vec_sub(vec_set(0), limit), y);
    return vec_select(vec_is_less(x, vec_set(0)), vec_set(__builtin_nanf("")), y);
}

/* Beyond tan(3/8 pi): pi/2 - atan(1/x); beyond tan(pi/8): pi/4 + atan((x - 1) / (x + 1)); below: x
 * + x^3 P(x^2), coefficients of atanf in Cephes 2.2 (single/atanf.c). */
static inline vec vec_atan(vec x)
{
    vec z = vec_abs(x), one = vec_set(1);
    vec_mask is_middle = vec_is_less(vec_set(0.41421356f), z);
    vec_mask is_far = vec_is_less(vec_set(2.41421356f), z);
    vec n = vec_select(is_far, vec_set(-1), vec_select(is_middle, vec_sub(z, one), z));
    vec d = vec_select(is_far, z, vec_select(is_middle, vec_add(z, one), one));
    vec base = vec_select(is_far, vec_set(1.57079633f), vec_keep(is_middle, vec_set(0.785398163f)));
    vec r = vec_div(n, d), r2 = vec_mul(r, r);
    vec p = vec_fma(r2, vec_set(8.05374449538e-2f), vec_set(-1.38776856032e-1f));
    p = vec_fma(p, r2, vec_set(1.99777106478e-1f));
    p = vec_fma(p, r2, vec_set(-3.33329491539e-1f));
    p = vec_fma(vec_mul(p, r2), r, r);
    return vec_copy_sign(vec_add(base, p), x);
}

/* |x| < 1: x P(x^2), fit 3.9e-8 relative. Beyond: 1 - e^Q(|x|), fit of erfc 1.6e-9 up to |x| = 4,
 * where erf rounds to 1. */
static inline vec vec_erf(vec x)
{
    vec z = vec_mul(x, x);
    vec p = vec_fma(z, vec_set(-5.660294417e-04f), vec_set(4.924827600e-03f));
    p = vec_fma(p, z, vec_set(-2.671774525e-02f));
    p = vec_fma(p, z, vec_set(1.128041325e-01f));
    p = vec_fma(p, z, vec_set(-3.761235597e-01f));
    p = vec_mul(x, vec_fma(p, z, vec_set(1.128379129e+00f)));
    vec a = vec_min(vec_set(4), vec_abs(x));
    vec q = vec_fma(a, vec_set(1.971826222e-04f), vec_set(-3.055615695e-03f));
    q = vec_fma(q, a, vec_set(2.227711705e-02f));
    q = vec_fma(q, a, vec_set(-1.040374170e-01f));
    q = vec_fma(q, a, vec_set(-6.370596928e-01f));
    q = vec_fma(q, a, vec_set(-1.127749596e+00f));
    q = vec_fma(q, a, vec_set(-1.774872461e-04f));
    vec far = vec_sub(vec_set(1), vec_exp2_fast(vec_mul(q, vec_set(1.44269504f))));
    return vec_select(vec_is_less(vec_abs(x), vec_set(1)), p, vec_copy_sign(far, x));
}

/* 1 / (1 + 2^t), t = -x log2 e, limited where the result is the least normal float; beyond, 0. The
 * error of 2^t, which grows with |t|, matters only where the result does not. */
static inline vec vec_sigmoid(vec x)
{
    vec one = vec_set(1), t = vec_min(vec_set(126), vec_mul(x, vec_set(-1.44269504f)));
    vec y = vec_div(one, vec_add(one, vec_exp2_fast(t)));
    return vec_select(vec_is_less(x, vec_set(-87.336544f)), vec_set(0), y);
}

/* |x| < 0.625: x + x^3 P(x^2), fit 1.6e-7 relative. Beyond: (1 - e^-2|x|) / (1 + e^-2|x|). */
static inline vec vec_tanh(vec x)
{
    vec z = vec_mul(x, x), one = vec_set(1);
    vec p = vec_fma(z, vec_set(-5.528637257e-03f), vec_set(2.048332000e-02f));
    p = vec_fma(p, z, vec_set(-5.369296953e-02f));
    p = vec_fma(p, z, vec_set(1.333089978e-01f));
    p = vec_fma(p, z, vec_set(-3.333326288e-01f));
    p = vec_fma(vec_mul(p, z), x, x);
    vec e = vec_exp(vec_mul(vec_abs(x), vec_set(-2)));
    vec far = vec_div(vec_sub(one, e), vec_add(one, e));
    return vec_select(vec_is_less(vec_abs(x), vec_set(0.625f)), p, vec_copy_sign(far, x));
}

/* -inf * 0 would be NaN in the three below: their argument is kept finite, NaN passes. */
static inline vec vec_keep_finite(vec x)
{
    return vec_max(vec_set(-3e38f), x);
}

static inline vec vec_gelu(vec x)
{
    x = vec_keep_finite(x);
    vec half = vec_mul(x, vec_set(0.5f));
    return vec_fma(half, vec_erf(vec_mul(x, vec_set(0.70710678f))), half);
}

/* x/2 (1 + tanh u) = x sigmoid(2u) */
static inline vec vec_gelu_tanh(vec x)
{
    x = vec_keep_finite(x);
    vec y =
        vec_min(vec_set(10), vec_max(vec_set(-10), x)); /* tanh is +-1 there; cubes stay small */
    vec u = vec_fma(vec_mul(vec_mul(y, y), y), vec_set(2 * 0.79788456f * 0.044715f),
                    vec_mul(y, vec_set(2 * 0.79788456f)));
    return vec_select(vec_is_less(x, vec_set(-10)), vec_set(0), vec_mul(x, vec_sigmoid(u)));
}

static inline vec vec_silu(vec x)
{
    x = vec_keep_finite(x);
    return vec_mul(x, vec_sigmoid(x));
}

/* x (1/2 + c P(c^2)), c = x limited to +-4.2: within 7.5e-5 of gelu (fit of Phi(x) - 1/2, weighted
 * by x). A third of the work of vec_gelu, for results that are quantised to 8 bits afterwards. */
static inline void vec_gelu_fast_all(vec *x, const int count)
{
    static const float factors[] = {7.941233802e-08f,  -3.037901177e-06f, 6.689024674e-05f,
                                    -9.506539102e-04f, 9.298214285e-03f,  -6.552817342e-02f,
                                    3.984658562e-01f};
    vec c[4], z[4], p[4];
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        c[i] = vec_limit(x[i], 4.2f);
        z[i] = vec_mul(c[i], c[i]);
        p[i] = vec_set(-9.017384523e-10f);
    }
#pragma GCC unroll 7
    for (int f = 0; f < 7; f++) {
#pragma GCC unroll 4
        for (int i = 0; i < count; i++)
            p[i] = vec_fma(p[i], z[i], vec_set(factors[f]));
    }
#pragma GCC unroll 4
    for (int i = 0; i < count; i++)
        x[i] = vec_mul(x[i], vec_fma(c[i], p[i], vec_set(0.5f)));
}

static inline vec vec_gelu_fast(vec x)
{
    vec_gelu_fast_all(&x, 1);
    return x;
}

static inline vec vec_relu(vec x)
{
    return vec_max(vec_set(0), x);
}

/* `activation` is a constant at each call, or costs a switch. */
static inline vec vec_activate(kernels_activation activation, vec x)
{
    switch (activation) {
    case KERNELS_RELU:
        return vec_relu(x);
    case KERNELS_GELU:
        return vec_gelu(x);
    case KERNELS_GELU_TANH:
        return vec_gelu_tanh(x);
    case KERNELS_TANH:
        return vec_tanh(x);
    case KERNELS_SIGMOID:
        return vec_sigmoid(x);
    case KERNELS_SILU:
        return vec_silu(x);
    case KERNELS_IDENTITY:
    case KERNELS_ACTIVATION_COUNT:
        break;
    }
    return x;
}

#endif
#endif
