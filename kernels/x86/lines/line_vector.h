#ifndef KERNELS_X86_LINES_LINE_VECTOR_H
#define KERNELS_X86_LINES_LINE_VECTOR_H

#include <assert.h>

#include "kernels/scalar/line_loops.h"
#include "kernels/x86/elementwise_vector.h"

#ifdef VEC_LANES

/* in[0], in[stride], ... of the first `n` lanes; nothing beyond the last of them is read. */
static inline __attribute__((always_inline)) vec load_apart(const float *in, const size_t stride,
                                                            size_t n)
{
    if (stride == 1)
        return vec_load_first(in, n);
    size_t length = 2 * n - 1, first = length < VEC_LANES ? length : VEC_LANES;
    vec low = vec_load_first(in, first);
    vec high = length > VEC_LANES ? vec_load_first(in + VEC_LANES, length - VEC_LANES) : low;
    return vec_even(low, high);
}

static inline __attribute__((always_inline)) vec fold_pair(const fold_kind kind, vec sum, vec x)
{
    return kind == FOLD_SUM   ? vec_add(sum, x)
           : kind == FOLD_MAX ? vec_max_or_nan(sum, x)
                              : vec_min_or_nan(sum, x);
}

/* `n` results, n <= VEC_LANES. */
static inline __attribute__((always_inline)) void
fold_some(const fold_kind kind, const size_t stride, const fold_windows_f32 *p, size_t i, size_t n)
{
    const float *in = p->in + i * stride;
    vec sum = load_apart(in, stride, n);
    for (size_t r = 0; r < p->rows; r++, in += p->row_stride)
        for (size_t t = r == 0; t < p->taps; t++)
            sum = fold_pair(kind, sum, load_apart(in + t * p->dilation, stride, n));
    vec_store_first(p->out + i, n, sum);
}

static inline __attribute__((always_inline)) void
fold_all(const fold_kind kind, const size_t stride, const fold_windows_f32 *p)
{
    size_t i = 0;
    for (; i + VEC_LANES <= p->count; i += VEC_LANES)
        fold_some(kind, stride, p, i, VEC_LANES);
    if (i < p->count)
        fold_some(kind, stride, p, i, p->count - i);
}

static inline void fold_windows(const fold_windows_f32 *p)
{
    assert(p->rows > 0 && p->taps > 0 && p->kind != FOLD_SUM_SQUARE);
    if (p->stride > 2)
        line_fold_windows(p);
    else if (p->kind == FOLD_MAX && p->stride == 1)
        fold_all(FOLD_MAX, 1, p);
    else if (p->kind == FOLD_MAX)
        fold_all(FOLD_MAX, 2, p);
    else if (p->kind == FOLD_SUM && p->stride == 1)
        fold_all(FOLD_SUM, 1, p);
    else if (p->kind == FOLD_SUM)
        fold_all(FOLD_SUM, 2, p);
    else if (p->stride == 1)
        fold_all(FOLD_MIN, 1, p);
    else
        fold_all(FOLD_MIN, 2, p);
}

#endif
#endif
