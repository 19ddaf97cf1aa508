#ifndef KERNELS_X86_TRIGONOMETRY_VECTOR_H
#define KERNELS_X86_TRIGONOMETRY_VECTOR_H

#include <math.h>

#include "kernels/x86/vector/math_vector.h"

#ifdef VEC_LANES

/* Trigonometric and hyperbolic functions and their inverses; bounds in kernels/activation.h.
 * Coefficients of Cephes 2.2 (single/sinf.c, asinf.c, sinhf.c, asinhf.c, acoshf.c, atanhf.c). */

#define TRIGONOMETRY_MAX 8192.0f /* beyond it the C library reduces the angle */

/* Sine and cosine of r = x - n pi/2, n the nearest integer; n mod 4 decides which is which. */
typedef struct vec_angle {
    vec sine, cosine;
    vec_mask is_odd, is_opposite; /* n is odd; n mod 4 is 2 or 3 */
} vec_angle;

/* pi/2 in three parts, of which the first two have few bits. */
static inline vec_angle vec_reduce_angle(vec x)
{
    vec n = vec_round(vec_mul(x, vec_set(0.636619772f)));
    vec r = vec_fnma(n, vec_set(1.5703125f), x);
    r = vec_fnma(n, vec_set(4.837512969970703e-4f), r);
    r = vec_fnma(n, vec_set(7.54978995489188e-8f), r);
    vec half = vec_mul(n, vec_set(0.5f)), quarter = vec_mul(n, vec_set(0.25f));
    vec_angle a = {.is_odd = vec_is_less(vec_set(0.25f), vec_sub(half, vec_floor(half))),
                   .is_opposite = vec_is_less(vec_set(0.4f), vec_sub(quarter, vec_floor(quarter)))};
    vec z = vec_mul(r, r);
    vec s = vec_fma(z, vec_set(-1.9515295891e-4f), vec_set(8.3321608736e-3f));
    s = vec_fma(s, z, vec_set(-1.6666654611e-1f));
    a.sine = vec_fma(vec_mul(s, z), r, r);
    vec c = vec_fma(z, vec_set(2.443315711809948e-5f), vec_set(-1.388731625493765e-3f));
    c = vec_fma(c, z, vec_set(4.166664568298827e-2f));
    a.cosine = vec_fma(vec_mul(c, z), z, vec_fnma(z, vec_set(0.5f), vec_set(1)));
    return a;
}

/* `y`, but what the C library gives for large angles: lane by lane, so that no lane's bits depend
 * on another. */
static inline __attribute__((always_inline)) vec vec_large_angles(float (*f)(float), vec x, vec y)
{
    vec_mask is_large = vec_is_less(vec_set(TRIGONOMETRY_MAX), vec_abs(x));
    if (!vec_any(is_large))
        return y;
    float lanes[VEC_LANES];
    vec_store(lanes, x);
    for (int i = 0; i < VEC_LANES; i++)
        lanes[i] = f(lanes[i]);
    return vec_select(is_large, vec_load(lanes), y);
}

static inline vec sin_of(vec x, vec p, vec q)
{
    (void)p, (void)q;
    vec_angle a = vec_reduce_angle(x);
    vec y = vec_select(a.is_odd, a.cosine, a.sine);
    return vec_large_angles(sinf, x, vec_select(a.is_opposite, vec_negate(y), y));
}

static inline vec cos_of(vec x, vec p, vec q)
{
    (void)p, (void)q;
    vec_angle a = vec_reduce_angle(x);
    vec y = vec_select(a.is_odd, vec_negate(a.sine), a.cosine);
    return vec_large_angles(cosf, x, vec_select(a.is_opposite, vec_negate(y), y));
}

static inline vec tan_of(vec x, vec p, vec q)
{
    (void)p, (void)q;
    vec_angle a = vec_reduce_angle(x);
    vec n = vec_select(a.is_odd, vec_negate(a.cosine), a.sine);
    vec d = vec_select(a.is_odd, a.sine, a.cosine);
    return vec_large_angles(tanf, x, vec_div(n, d));
}

/* asin(s) for s up to 1/2; beyond, twice that of sqrt((1 - |x|) / 2), which pi/2 lacks. */
static inline vec vec_asin_small(vec s, vec z)
{
    vec p = vec_fma(z, vec_set(4.2163199048e-2f), vec_set(2.4181311049e-2f));
    p = vec_fma(p, z, vec_set(4.5470025998e-2f));
    p = vec_fma(p, z, vec_set(7.4953002686e-2f));
    p = vec_fma(p, z, vec_set(1.6666752422e-1f));
    return vec_fma(vec_mul(p, z), s, s);
}

static inline vec asin_of(vec x, vec p, vec q)
{
    (void)p, (void)q;
    vec a = vec_abs(x), half = vec_set(0.5f);
    vec_mask is_far = vec_is_less(half, a);
    vec far = vec_mul(half, vec_sub(vec_set(1), a));
    vec z = vec_select(is_far, far, vec_mul(a, a));
    vec y = vec_asin_small(vec_select(is_far, vec_sqrt(far), a), z);
    y = vec_select(is_far, vec_fnma(y, vec_set(2), vec_set(1.57079633f)), y);
    return vec_copy_sign(y, x);
}

static inline vec acos_of(vec x, vec p, vec q)
{
    (void)p, (void)q;
    vec a = vec_abs(x), half = vec_set(0.5f);
    vec_mask is_far = vec_is_less(half, a), is_negative = vec_is_less(x, vec_set(0));
    vec far = vec_mul(half, vec_sub(vec_set(1), a));
    vec z = vec_select(is_far, far, vec_mul(a, a));
    vec y = vec_asin_small(vec_select(is_far, vec_sqrt(far), x), z);
    vec twice = vec_add(y, y);
    twice = vec_select(is_negative, vec_sub(vec_set(3.14159265f), twice), twice);
    return vec_select(is_far, twice, vec_sub(vec_set(1.57079633f), y));
}

/* e^a / 2, finite wherever sinh and cosh are. */
static inline vec vec_half_exp(vec a)
{
    return vec_mul(vec_exp(vec_sub(a, vec_set(1))), vec_set(1.35914091f));
}

static inline vec sinh_of(vec x, vec p, vec q)
{
    (void)p, (void)q;
    vec a = vec_abs(x), z = vec_mul(x, x), e = vec_half_exp(a);
    vec near = vec_fma(z, vec_set(2.03721912945e-4f), vec_set(8.33028376239e-3f));
    near = vec_fma(near, z, vec_set(1.66667160211e-1f));
    near = vec_fma(vec_mul(near, z), x, x);
    vec far = vec_copy_sign(vec_sub(e, vec_div(vec_set(0.25f), e)), x);
    return vec_select(vec_is_less(vec_set(1), a), far, near);
}

static inline vec cosh_of(vec x, vec p, vec q)
{
    (void)p, (void)q;
    vec e = vec_half_exp(vec_abs(x));
    return vec_add(e, vec_div(vec_set(0.25f), e));
}

/* Beyond it x^2 + 1 is x^2. */
#define HYPERBOLA_MAX 1500.0f

static inline vec asinh_of(vec x, vec p, vec q)
{
    (void)p, (void)q;
    vec a = vec_abs(x), z = vec_mul(a, a), ln2 = vec_set(0.693147181f);
    vec near = vec_fma(z, vec_set(2.0122003309e-2f), vec_set(-4.2699340972e-2f));
    near = vec_fma(near, z, vec_set(7.4847586088e-2f));
    near = vec_fma(near, z, vec_set(-1.6666288134e-1f));
    near = vec_fma(vec_mul(near, z), a, a);
    vec_mask is_far = vec_is_less(vec_set(HYPERBOLA_MAX), a);
    vec root = vec_add(a, vec_sqrt(vec_add(z, vec_set(1))));
    vec log = vec_log(vec_select(is_far, a, root));
    log = vec_select(is_far, vec_add(log, ln2), log);
    return vec_copy_sign(vec_select(vec_is_less(a, vec_set(0.5f)), near, log), x);
}

static inline vec acosh_of(vec x, vec p, vec q)
{
    (void)p, (void)q;
    vec z = vec_sub(x, vec_set(1)), ln2 = vec_set(0.693147181f);
    vec near = vec_fma(z, vec_set(1.7596881071e-3f), vec_set(-7.5272886713e-3f));
    near = vec_fma(near, z, vec_set(2.6454905019e-2f));
    near = vec_fma(near, z, vec_set(-1.1784741703e-1f));
    near = vec_fma(near, z, vec_set(1.4142135263f));
    near = vec_mul(near, vec_sqrt(z));
    vec_mask is_far = vec_is_less(vec_set(HYPERBOLA_MAX), x);
    vec root = vec_add(x, vec_sqrt(vec_mul(z, vec_add(x, vec_set(1)))));
    vec log = vec_log(vec_select(is_far, x, root));
    log = vec_select(is_far, vec_add(log, ln2), log);
    return vec_select(vec_is_less(z, vec_set(0.5f)), near, log);
}

static inline vec atanh_of(vec x, vec p, vec q)
{
    (void)p, (void)q;
    vec a = vec_abs(x), z = vec_mul(a, a), one = vec_set(1);
    vec near = vec_fma(z, vec_set(1.81740078349e-1f), vec_set(8.24370301058e-2f));
    near = vec_fma(near, z, vec_set(1.46691431730e-1f));
    near = vec_fma(near, z, vec_set(1.99782164500e-1f));
    near = vec_fma(near, z, vec_set(3.33337300303e-1f));
    near = vec_fma(vec_mul(near, z), a, a);
    vec far = vec_mul(vec_set(0.5f), vec_log(vec_div(vec_add(one, a), vec_sub(one, a))));
    return vec_copy_sign(vec_select(vec_is_less(a, vec_set(0.5f)), near, far), x);
}

#endif
#endif
