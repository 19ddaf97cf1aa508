#ifndef KERNELS_SCALAR_FOLD_LOOPS_H
#define KERNELS_SCALAR_FOLD_LOOPS_H

#include <assert.h>
#include <math.h>

#include "kernels/lines.h"

/* Folds, extremes with their places and running sums of lines.h in plain C, as in line_loops.h. */

#define FOLD_BLOCK 256 /* results at a time: they stay in the L1 cache while the taps pass */

static inline __attribute__((always_inline)) float line_fold(fold_kind kind, float sum, float x)
{
    switch (kind) {
    case FOLD_SUM:
        return sum + x;
    case FOLD_SUM_SQUARE:
        return sum + x * x;
    case FOLD_MAX:
        return (x > sum) | (x != x) ? x : sum;
    case FOLD_MIN:
        return (x < sum) | (x != x) ? x : sum;
    case FOLD_SUM_ABS:
        return sum + fabsf(x);
    case FOLD_PRODUCT:
        break;
    }
    return sum;
}

static inline __attribute__((always_inline)) void line_fold_windows_kind(fold_kind kind,
                                                                         const fold_windows_f32 *p)
{
    size_t stride = p->stride;
    for (size_t i = 0; i < p->count; i += FOLD_BLOCK) {
        size_t count = p->count - i < FOLD_BLOCK ? p->count - i : FOLD_BLOCK;
        const float *restrict in = p->in + i * stride;
        float *restrict out = p->out + i;
        for (size_t j = 0; j < count; j++)
            out[j] = in[j * stride];
        for (size_t r = 0; r < p->rows; r++, in += p->row_stride)
            for (size_t t = r == 0; t < p->taps; t++)
                for (size_t j = 0; j < count; j++)
                    out[j] = line_fold(kind, out[j], in[t * p->dilation + j * stride]);
    }
}

static inline void line_fold_windows(const fold_windows_f32 *p)
{
    assert(p->rows > 0 && p->taps > 0 && p->kind != FOLD_SUM_SQUARE);
    if (p->kind == FOLD_MAX)
        line_fold_windows_kind(FOLD_MAX, p);
    else if (p->kind == FOLD_MIN)
        line_fold_windows_kind(FOLD_MIN, p);
    else
        line_fold_windows_kind(FOLD_SUM, p);
}

/* Four rows at a time: the results are loaded and stored once for them. */
static inline __attribute__((always_inline)) void line_fold_rows_kind(fold_kind kind,
                                                                      const fold_rows_f32 *p)
{
    float *restrict out = p->out;
    size_t i = 0, width = p->width, stride = p->stride;
    for (; i + 4 <= p->rows; i += 4) {
        const float *restrict a = p->in + i * stride, *restrict b = a + stride;
        const float *restrict c = b + stride, *restrict d = c + stride;
        for (size_t j = 0; j < width; j++) {
            float x = line_fold(kind, line_fold(kind, out[j], a[j]), b[j]);
            out[j] = line_fold(kind, line_fold(kind, x, c[j]), d[j]);
        }
    }
    for (; i < p->rows; i++) {
        const float *restrict a = p->in + i * stride;
        for (size_t j = 0; j < width; j++)
            out[j] = line_fold(kind, out[j], a[j]);
    }
}

static inline void line_fold_rows(const fold_rows_f32 *p)
{
    switch (p->kind) {
    case FOLD_SUM:
        line_fold_rows_kind(FOLD_SUM, p);
        break;
    case FOLD_SUM_SQUARE:
        line_fold_rows_kind(FOLD_SUM_SQUARE, p);
        break;
    case FOLD_MAX:
        line_fold_rows_kind(FOLD_MAX, p);
        break;
    case FOLD_MIN:
        line_fold_rows_kind(FOLD_MIN, p);
        break;
    case FOLD_SUM_ABS:
    case FOLD_PRODUCT:
        assert(!"a kind for columns");
    }
}

#define LINE_PARTS 8

static inline float line_product(const float *restrict in, size_t count)
{
    double parts[LINE_PARTS];
    for (size_t j = 0; j < LINE_PARTS; j++)
        parts[j] = 1;
    size_t i = 0;
    for (; i + LINE_PARTS <= count; i += LINE_PARTS)
        for (size_t j = 0; j < LINE_PARTS; j++)
            parts[j] *= (double)in[i + j];
    for (; i < count; i++)
        parts[i % LINE_PARTS] *= (double)in[i];
    double product = parts[0];
    for (size_t j = 1; j < LINE_PARTS; j++)
        product *= parts[j];
    return (float)product;
}

static inline void line_fold_each(const fold_each_f32 *p)
{
    assert(p->width > 0);
    const float *in = p->in;
    for (size_t r = 0; r < p->rows; r++, in += p->stride) {
        float sum = in[0];
        if (p->kind == FOLD_PRODUCT) {
            p->out[r] = line_product(in, p->width);
            continue;
        }
        sum = p->kind == FOLD_SUM_SQUARE ? sum * sum : p->kind == FOLD_SUM_ABS ? fabsf(sum) : sum;
        for (size_t i = 1; i < p->width; i++)
            sum = line_fold(p->kind, sum, in[i]);
        p->out[r] = sum;
    }
}

/* The first NaN wins. */
static inline __attribute__((always_inline)) void line_arg(const bool is_max, const bool is_last,
                                                           const arg_rows_f32 *p)
{
    float *restrict best = p->best;
    int32_t *restrict out = p->out;
    size_t width = p->width;
    for (size_t j = 0; j < width; j++) {
        best[j] = p->in[j];
        out[j] = 0;
    }
    for (size_t i = 1; i < p->rows; i++) {
        const float *restrict in = p->in + i * p->stride;
        int32_t place = (int32_t)i;
        for (size_t j = 0; j < width; j++) {
            float x = in[j], y = best[j];
            int is_first_nan = (x != x) & (y == y);
            int is_better = (is_max ? x > y : x < y) | is_first_nan | (is_last & (x == y));
            best[j] = is_better ? x : y;
            out[j] = is_better ? place : out[j];
        }
    }
}

static inline void line_arg_rows(const arg_rows_f32 *p)
{
    assert(p->rows > 0 && p->rows <= INT32_MAX);
    if (p->is_max && p->is_last)
        line_arg(true, true, p);
    else if (p->is_max)
        line_arg(true, false, p);
    else if (p->is_last)
        line_arg(false, true, p);
    else
        line_arg(false, false, p);
}

/* `line_stride` is a constant where it is 1. */
static inline __attribute__((always_inline)) void
line_cumulate_some(const cumulate_f32 *p, const size_t line_stride, size_t first, size_t lines)
{
    double sums[FOLD_BLOCK] = {0};
    for (size_t i = 0; i < p->count; i++) {
        size_t at = first * line_stride + (p->is_reverse ? p->count - 1 - i : i) * p->step;
        const float *in = p->in + at;
        float *out = p->out + at;
        for (size_t l = 0; l < lines; l++) {
            double before = sums[l];
            sums[l] += (double)in[l * line_stride];
            out[l * line_stride] = (float)(p->is_exclusive ? before : sums[l]);
        }
    }
}

/* Lines beside each other are added by vectors; others some at a time, so that none waits for the
 * latency of its additions. */
static inline void line_cumulate(const cumulate_f32 *p)
{
    size_t most = p->line_stride == 1 ? FOLD_BLOCK : LINE_PARTS;
    for (size_t first = 0, lines; first < p->lines; first += lines) {
        lines = p->lines - first < most ? p->lines - first : most;
        if (p->line_stride == 1)
            line_cumulate_some(p, 1, first, lines);
        else if (lines == LINE_PARTS)
            line_cumulate_some(p, p->line_stride, first, LINE_PARTS);
        else
            line_cumulate_some(p, p->line_stride, first, lines);
    }
}

#endif
