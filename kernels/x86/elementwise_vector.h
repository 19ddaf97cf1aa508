#ifndef KERNELS_X86_ELEMENTWISE_VECTOR_H
#define KERNELS_X86_ELEMENTWISE_VECTOR_H

#include "kernels/x86/vector/math_vector.h"

#ifdef VEC_LANES

typedef vec (*vec_unary)(vec x);
typedef vec (*vec_binary)(vec a, vec b);

/* Applied through a constant pointer, which the compiler inlines. */
static inline __attribute__((always_inline)) void map_unary(vec_unary f, const float *in,
                                                            float *out, size_t count)
{
    size_t i = 0;
    for (; i + VEC_LANES <= count; i += VEC_LANES)
        vec_store(out + i, f(vec_load(in + i)));
    if (i < count)
        vec_store_first(out + i, count - i, f(vec_load_first(in + i, count - i)));
}

static inline __attribute__((always_inline)) void map_binary(vec_binary f, const float *a,
                                                             size_t a_step, const float *b,
                                                             size_t b_step, float *out,
                                                             size_t count)
{
    if (count == 0)
        return;
    vec x = vec_set(*a), y = vec_set(*b);
    size_t i = 0;
    for (; i + VEC_LANES <= count; i += VEC_LANES) {
        x = a_step ? vec_load(a + i) : x;
        y = b_step ? vec_load(b + i) : y;
        vec_store(out + i, f(x, y));
    }
    if (i < count) {
        x = a_step ? vec_load_first(a + i, count - i) : x;
        y = b_step ? vec_load_first(b + i, count - i) : y;
        vec_store_first(out + i, count - i, f(x, y));
    }
}

/* NaN if either is: the instruction returns its second operand then. */
static inline vec vec_max_or_nan(vec a, vec b)
{
    return vec_select(vec_is_nan(a), a, vec_max(a, b));
}

static inline vec vec_min_or_nan(vec a, vec b)
{
    return vec_select(vec_is_nan(a), a, vec_min(a, b));
}

#endif
#endif
