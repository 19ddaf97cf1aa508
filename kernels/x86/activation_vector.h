#ifndef KERNELS_X86_ACTIVATION_VECTOR_H
#define KERNELS_X86_ACTIVATION_VECTOR_H

#include "kernels/activation.h"
#include "kernels/x86/elementwise_vector.h"
#include "kernels/x86/trigonometry_vector.h"

#ifdef VEC_LANES

typedef vec (*vec_activation)(vec x, vec a, vec b);

/* x is the second operand of both: NaN passes. */
static inline vec limit_between(vec x, vec low, vec high)
{
    return vec_min(high, vec_max(low, x));
}

static inline vec leaky_relu(vec x, vec a, vec b)
{
    (void)b;
    return vec_select(vec_is_less(x, vec_set(0)), vec_mul(x, a), x);
}

static inline vec hard_sigmoid(vec x, vec a, vec b)
{
    return limit_between(vec_add(vec_mul(x, a), b), vec_set(0), vec_set(1));
}

static inline vec hard_swish(vec x, vec a, vec b)
{
    (void)a, (void)b;
    return vec_mul(x, hard_sigmoid(x, vec_set(1 / 6.0f), vec_set(0.5f)));
}

static inline vec elu(vec x, vec a, vec b)
{
    (void)b;
    vec below = vec_mul(a, vec_sub(vec_exp(x), vec_set(1)));
    return vec_select(vec_is_less(x, vec_set(0)), below, x);
}

static inline vec softplus(vec x, vec a, vec b)
{
    (void)a, (void)b;
    vec e = vec_exp(vec_sub(vec_set(0), vec_abs(x)));
    return vec_add(vec_max(vec_set(0), x), vec_log(vec_add(vec_set(1), e)));
}

/* tanh(log(1 + e)) = n / (n + 2), n = e (e + 2); 1 in float from e^20 on. */
static inline vec mish(vec x, vec a, vec b)
{
    (void)a, (void)b;
    vec e = vec_exp(vec_min(vec_set(20), x));
    vec n = vec_mul(e, vec_add(e, vec_set(2)));
    return vec_mul(vec_keep_finite(x), vec_div(n, vec_add(n, vec_set(2))));
}

static inline vec log_of(vec x, vec a, vec b)
{
    (void)a, (void)b;
    return vec_log(x);
}

static inline vec sqrt_of(vec x, vec a, vec b)
{
    (void)a, (void)b;
    return vec_sqrt(x);
}

static inline vec abs_of(vec x, vec a, vec b)
{
    (void)a, (void)b;
    return vec_abs(x);
}

static inline vec negate(vec x, vec a, vec b)
{
    (void)a, (void)b;
    return vec_negate(x);
}

static inline vec selu(vec x, vec a, vec b)
{
    vec below = vec_mul(a, vec_sub(vec_exp(x), vec_set(1)));
    return vec_mul(b, vec_select(vec_is_less(vec_set(0), x), x, below));
}

static inline vec celu(vec x, vec a, vec b)
{
    (void)b;
    vec below = vec_mul(a, vec_sub(vec_exp(vec_div(x, a)), vec_set(1)));
    return vec_select(vec_is_less(vec_set(0), x), x, below);
}

static inline vec atan_of(vec x, vec a, vec b)
{
    (void)a, (void)b;
    return vec_atan(x);
}

static inline vec floor_of(vec x, vec a, vec b)
{
    (void)a, (void)b;
    return vec_floor(x);
}

static inline vec ceil_of(vec x, vec a, vec b)
{
    (void)a, (void)b;
    return vec_ceil(x);
}

static inline vec round_of(vec x, vec a, vec b)
{
    (void)a, (void)b;
    return vec_round(x);
}

static inline __attribute__((always_inline)) void map_activation(vec_activation f,
                                                                 const activation_f32 *p)
{
    vec a = vec_set(p->a), b = vec_set(p->b);
    size_t i = 0;
    for (; i + VEC_LANES <= p->count; i += VEC_LANES)
        vec_store(p->out + i, f(vec_load(p->in + i), a, b));
    if (i < p->count)
        vec_store_first(p->out + i, p->count - i, f(vec_load_first(p->in + i, p->count - i), a, b));
}

/* Functions of angles, and hyperbolic ones. */
static inline void map_trigonometry(const activation_f32 *p)
{
    switch (p->kind) {
    case ACTIVATION_SIN:
        map_activation(sin_of, p);
        break;
    case ACTIVATION_COS:
        map_activation(cos_of, p);
        break;
    case ACTIVATION_TAN:
        map_activation(tan_of, p);
        break;
    case ACTIVATION_ASIN:
        map_activation(asin_of, p);
        break;
    case ACTIVATION_ACOS:
        map_activation(acos_of, p);
        break;
    case ACTIVATION_SINH:
        map_activation(sinh_of, p);
        break;
    case ACTIVATION_COSH:
        map_activation(cosh_of, p);
        break;
    case ACTIVATION_ASINH:
        map_activation(asinh_of, p);
        break;
    case ACTIVATION_ACOSH:
        map_activation(acosh_of, p);
        break;
    case ACTIVATION_ATANH:
        map_activation(atanh_of, p);
        break;
    default:
        break;
    }
}

static inline void activate_all(const activation_f32 *p)
{
    switch (p->kind) {
    case ACTIVATION_LEAKY_RELU:
        map_activation(leaky_relu, p);
        break;
    case ACTIVATION_CLIP:
        map_activation(limit_between, p);
        break;
    case ACTIVATION_HARD_SIGMOID:
        map_activation(hard_sigmoid, p);
        break;
    case ACTIVATION_HARD_SWISH:
        map_activation(hard_swish, p);
        break;
    case ACTIVATION_ELU:
        map_activation(elu, p);
        break;
    case ACTIVATION_SOFTPLUS:
        map_activation(softplus, p);
        break;
    case ACTIVATION_MISH:
        map_activation(mish, p);
        break;
    case ACTIVATION_LOG:
        map_activation(log_of, p);
        break;
    case ACTIVATION_SQRT:
        map_activation(sqrt_of, p);
        break;
    case ACTIVATION_ABS:
        map_activation(abs_of, p);
        break;
    case ACTIVATION_NEGATE:
        map_activation(negate, p);
        break;
    case ACTIVATION_SELU:
        map_activation(selu, p);
        break;
    case ACTIVATION_CELU:
        map_activation(celu, p);
        break;
    case ACTIVATION_ATAN:
        map_activation(atan_of, p);
        break;
    case ACTIVATION_FLOOR:
        map_activation(floor_of, p);
        break;
    case ACTIVATION_CEIL:
        map_activation(ceil_of, p);
        break;
    case ACTIVATION_ROUND:
        map_activation(round_of, p);
        break;
    case ACTIVATION_SIN:
    case ACTIVATION_COS:
    case ACTIVATION_TAN:
    case ACTIVATION_ASIN:
    case ACTIVATION_ACOS:
    case ACTIVATION_SINH:
    case ACTIVATION_COSH:
    case ACTIVATION_ASINH:
    case ACTIVATION_ACOSH:
    case ACTIVATION_ATANH:
        map_trigonometry(p);
        break;
    case ACTIVATION_COUNT:
        break;
    }
}

static inline vec prelu(vec x, vec slope)
{
    return vec_select(vec_is_less(x, vec_set(0)), vec_mul(x, slope), x);
}

static inline void sum_rows(const weighted_rows_f32 *w)
{
    for (size_t i = 0; i < w->count; i += VEC_LANES) {
        size_t n = w->count - i < VEC_LANES ? w->count - i : VEC_LANES;
        vec sum = vec_set(0);
        for (size_t t = 0; t < w->taps; t++)
            sum = vec_fma(vec_set(w->weights[t]), vec_load_first(w->rows[t] + i, n), sum);
        vec_store_first(w->out + i, n, sum);
    }
}

#endif
#endif
