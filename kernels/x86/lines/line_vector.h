#ifndef KERNELS_X86_LINES_LINE_VECTOR_H
#define KERNELS_X86_LINES_LINE_VECTOR_H

#include <assert.h>
#include <math.h>

#include "kernels/scalar/fold_loops.h"
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

/* `n` results from the i-th on; lanes beyond them read the first place of the row. */
static inline __attribute__((always_inline)) void gather_some(const gather_sum_f32 *p,
                                                              const size_t taps, size_t i, size_t n)
{
    vec sum = vec_set(0);
    const int32_t *index = p->index + i;
    const float *weights = p->weights + i;
    for (size_t t = 0; t < taps; t++, index += p->count, weights += p->count) {
        vec_i at = n == VEC_LANES ? vec_i_load(index) : vec_i_load_first(index, n);
        vec weight = vec_load_first(weights, n);
        sum = vec_add(sum,
                      vec_keep(vec_is_not_zero(weight), vec_mul(weight, vec_gather(p->row, at))));
    }
    vec_store_first(p->out + i, n, sum);
}

static inline __attribute__((always_inline)) void gather_all(const gather_sum_f32 *p,
                                                             const size_t taps)
{
    size_t i = 0;
    for (; i + VEC_LANES <= p->count; i += VEC_LANES)
        gather_some(p, taps, i, VEC_LANES);
    if (i < p->count)
        gather_some(p, taps, i, p->count - i);
}

static inline void gather_sum(const gather_sum_f32 *p)
{
    if (!p->weights)
        line_gather_sum(p);
    else if (p->taps == 2)
        gather_all(p, 2);
    else if (p->taps == 4)
        gather_all(p, 4);
    else
        gather_all(p, p->taps);
}

static inline __attribute__((always_inline)) vec fold_step(const fold_kind kind, vec sum, vec x)
{
    return kind == FOLD_SUM_SQUARE ? vec_fma(x, x, sum)
           : kind == FOLD_SUM_ABS  ? vec_add(sum, vec_abs(x))
                                   : fold_pair(kind, sum, x);
}

static inline __attribute__((always_inline)) float fold_row(const fold_kind kind, const float *in,
                                                            size_t width)
{
    vec none = vec_set(kind == FOLD_MAX ? -INFINITY : kind == FOLD_MIN ? INFINITY : 0), sum = none;
    size_t i = 0;
    if (width >= 8 * VEC_LANES) { /* four sums: one would wait for the latency of its steps */
        vec b = none, c = none, d = none;
        for (; i + 4 * VEC_LANES <= width; i += 4 * VEC_LANES) {
            sum = fold_step(kind, sum, vec_load(in + i));
            b = fold_step(kind, b, vec_load(in + i + VEC_LANES));
            c = fold_step(kind, c, vec_load(in + i + 2 * VEC_LANES));
            d = fold_step(kind, d, vec_load(in + i + 3 * VEC_LANES));
        }
        const fold_kind join = kind == FOLD_MAX || kind == FOLD_MIN ? kind : FOLD_SUM;
        sum = fold_pair(join, fold_pair(join, sum, b), fold_pair(join, c, d));
    }
    for (; i + VEC_LANES <= width; i += VEC_LANES)
        sum = fold_step(kind, sum, vec_load(in + i));
    if (i < width) {
        vec x = vec_load_first(in + i, width - i);
        if (kind == FOLD_MAX || kind == FOLD_MIN)
            x = vec_select(vec_first(width - i), x, none);
        sum = fold_step(kind, sum, x);
    }
    if (kind != FOLD_MAX && kind != FOLD_MIN)
        return vec_sum(sum);
    if (vec_any(vec_is_nan(sum)))
        return NAN;
    return kind == FOLD_MAX ? vec_top(sum) : -vec_top(vec_negate(sum));
}

/* Rows of a few elements: scalar steps of rows that follow each other overlap, and take less time
 * than one vector across its lanes. */
static inline __attribute__((always_inline)) void
fold_short(const fold_kind kind, const size_t width, const fold_each_f32 *p)
{
    for (size_t r = 0; r < p->rows; r++) {
        const float *in = p->in + r * p->stride;
        float sum = kind == FOLD_SUM_SQUARE ? in[0] * in[0]
                    : kind == FOLD_SUM_ABS  ? fabsf(in[0])
                                            : in[0];
#pragma GCC unroll 8
        for (size_t i = 1; i < width; i++)
            sum = line_fold(kind, sum, in[i]);
        p->out[r] = sum;
    }
}

static inline __attribute__((always_inline)) bool fold_if_short(const fold_kind kind,
                                                                const fold_each_f32 *p)
{
    switch (p->width) {
    case 2:
        fold_short(kind, 2, p);
        return true;
    case 3:
        fold_short(kind, 3, p);
        return true;
    case 4:
        fold_short(kind, 4, p);
        return true;
    case 5:
        fold_short(kind, 5, p);
        return true;
    case 6:
        fold_short(kind, 6, p);
        return true;
    case 7:
        fold_short(kind, 7, p);
        return true;
    default:
        return false;
    }
}

static inline __attribute__((always_inline)) void fold_each_kind(const fold_kind kind,
                                                                 const fold_each_f32 *p)
{
    if (fold_if_short(kind, p))
        return;
    for (size_t r = 0; r < p->rows; r++)
        p->out[r] = fold_row(kind, p->in + r * p->stride, p->width);
}

static inline void fold_each(const fold_each_f32 *p)
{
    assert(p->width > 0);
    if (p->kind == FOLD_SUM)
        fold_each_kind(FOLD_SUM, p);
    else if (p->kind == FOLD_SUM_SQUARE)
        fold_each_kind(FOLD_SUM_SQUARE, p);
    else if (p->kind == FOLD_SUM_ABS)
        fold_each_kind(FOLD_SUM_ABS, p);
    else if (p->kind == FOLD_MAX)
        fold_each_kind(FOLD_MAX, p);
    else if (p->kind == FOLD_MIN)
        fold_each_kind(FOLD_MIN, p);
    else
        line_fold_each(p);
}

#endif
#endif
