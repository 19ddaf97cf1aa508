#ifndef KERNELS_X86_ROWS_VECTOR_H
#define KERNELS_X86_ROWS_VECTOR_H

#include <math.h>
#include <stdbool.h>

#include "kernels/rows.h"
#include "kernels/x86/elementwise_vector.h"

#ifdef VEC_LANES

static inline float row_sum(const float *in, size_t count)
{
    vec a = vec_set(0), b = a;
    size_t i = 0;
    for (; i + 2 * VEC_LANES <= count; i += 2 * VEC_LANES) {
        a = vec_add(a, vec_load(in + i));
        b = vec_add(b, vec_load(in + i + VEC_LANES));
    }
    for (; i < count; i += VEC_LANES) {
        size_t n = count - i < VEC_LANES ? count - i : VEC_LANES;
        a = vec_add(a, vec_load_first(in + i, n));
    }
    return vec_sum(vec_add(a, b));
}

/* The largest value, times `sign` (1: maximum, -1: minimum); NaN if any is. */
static inline float row_extreme(const float *in, size_t count, float sign)
{
    vec best = vec_set(-INFINITY), nan = vec_set(0);
    for (size_t i = 0; i < count; i += VEC_LANES) {
        size_t n = count - i < VEC_LANES ? count - i : VEC_LANES;
        vec x = vec_mul(vec_load_first(in + i, n), vec_set(sign));
        nan = vec_add(nan, vec_keep(vec_is_nan(x), x));
        best = vec_max(best, n < VEC_LANES ? vec_select(vec_first(n), x, best) : x);
    }
    if (vec_any(vec_is_nan(nan)))
        return NAN;
    return sign * vec_top(best);
}

/* The steps of a row below take four vectors a turn, each with its own sums, so that none waits for
 * another; then single vectors, the last one in part. */
#define ROW_TURN 4

static inline vec vec_sum_of_4(const vec *v)
{
    return vec_add(vec_add(v[0], v[1]), vec_add(v[2], v[3]));
}

static inline vec vec_max_of_4(const vec *v)
{
    return vec_max(vec_max(v[0], v[1]), vec_max(v[2], v[3]));
}

/* out = x + residual, or x; returns the sum of the row. */
static inline float add_residual(const float *x, const float *residual, float *out, size_t width)
{
    vec sums[ROW_TURN] = {vec_set(0), vec_set(0), vec_set(0), vec_set(0)};
    size_t i = 0;
    for (; residual && i + ROW_TURN * VEC_LANES <= width; i += ROW_TURN * VEC_LANES) {
#pragma GCC unroll 4
        for (size_t j = 0; j < ROW_TURN; j++) {
            size_t at = i + j * VEC_LANES;
            vec y = vec_add(vec_load(x + at), vec_load(residual + at));
            vec_store(out + at, y);
            sums[j] = vec_add(sums[j], y);
        }
    }
    for (; i < width; i += VEC_LANES) {
        size_t n = width - i < VEC_LANES ? width - i : VEC_LANES;
        vec y = vec_load_first(x + i, n);
        if (residual)
            y = vec_add(y, vec_load_first(residual + i, n));
        vec_store_first(out + i, n, y);
        sums[0] = vec_add(sums[0], y);
    }
    return vec_sum(vec_sum_of_4(sums));
}

/* x -= mean; returns the sum of the squares. */
static inline float centre(float *x, size_t width, float mean)
{
    vec sums[ROW_TURN] = {vec_set(0), vec_set(0), vec_set(0), vec_set(0)}, means = vec_set(mean);
    size_t i = 0;
    for (; i + ROW_TURN * VEC_LANES <= width; i += ROW_TURN * VEC_LANES) {
#pragma GCC unroll 4
        for (size_t j = 0; j < ROW_TURN; j++) {
            vec y = vec_sub(vec_load(x + i + j * VEC_LANES), means);
            vec_store(x + i + j * VEC_LANES, y);
            sums[j] = vec_fma(y, y, sums[j]);
        }
    }
    for (; i < width; i += VEC_LANES) {
        size_t n = width - i < VEC_LANES ? width - i : VEC_LANES;
        vec y = vec_sub(vec_load_first(x + i, n), means);
        vec_store_first(x + i, n, y);
        y = n < VEC_LANES ? vec_keep(vec_first(n), y) : y;
        sums[0] = vec_fma(y, y, sums[0]);
    }
    return vec_sum(vec_sum_of_4(sums));
}

/* out = out * inverse * gamma + beta; returns the largest magnitude. */
static inline float normalise(float *out, size_t width, float inverse, const float *gamma,
                              const float *beta)
{
    vec factor = vec_set(inverse);
    vec tops[ROW_TURN] = {vec_set(0), vec_set(0), vec_set(0), vec_set(0)};
    size_t i = 0;
    for (; gamma && beta && i + ROW_TURN * VEC_LANES <= width; i += ROW_TURN * VEC_LANES) {
#pragma GCC unroll 4
        for (size_t j = 0; j < ROW_TURN; j++) {
            size_t at = i + j * VEC_LANES;
            vec y = vec_mul(vec_load(out + at), factor);
            y = vec_fma(y, vec_load(gamma + at), vec_load(beta + at));
            vec_store(out + at, y);
            tops[j] = vec_max(tops[j], vec_abs(y));
        }
    }
    for (; i < width; i += VEC_LANES) {
        size_t n = width - i < VEC_LANES ? width - i : VEC_LANES;
        vec y = vec_mul(vec_load_first(out + i, n), factor);
        if (gamma)
            y = vec_mul(y, vec_load_first(gamma + i, n));
        if (beta)
            y = vec_add(y, vec_load_first(beta + i, n));
        vec_store_first(out + i, n, y);
        y = vec_abs(y);
        tops[0] = vec_max(tops[0], n < VEC_LANES ? vec_keep(vec_first(n), y) : y);
    }
    return vec_top(vec_max_of_4(tops));
}

/* Rows that layer_norm_some takes at a time: the end of one row's sum, which waits for one lane
 * after another, overlaps with the next row's. */
#define NORM_ROWS 4

/* `rows` (1 .. NORM_ROWS) rows of layer_norm_f32 from `first` on; `tops` takes the largest
 * magnitude of each result (not NaN). */
static inline void layer_norm_some(const struct layer_norm_f32 *l, size_t first, size_t rows,
                                   float *tops)
{
    float *out = l->out + first * l->out_stride, count = (float)l->width;
    float means[NORM_ROWS], inverses[NORM_ROWS];
    for (size_t r = 0; r < rows; r++) {
        size_t row = first + r;
        const float *residual = l->residual ? l->residual + row * l->residual_stride : NULL;
        means[r] =
            add_residual(l->x + row * l->x_stride, residual, out + r * l->out_stride, l->width) /
            count;
    }
    for (size_t r = 0; r < rows; r++) {
        float variance = centre(out + r * l->out_stride, l->width, means[r]) / count;
        inverses[r] = 1 / sqrtf(variance + l->epsilon);
    }
    for (size_t r = 0; r < rows; r++)
        tops[r] = normalise(out + r * l->out_stride, l->width, inverses[r], l->gamma, l->beta);
}

/* out = x * scale + bias where the mask lets it, -inf elsewhere; returns the largest. */
static inline float softmax_scores(const struct softmax_f32 *s, const float *x, const float *bias,
                                   const uint8_t *mask, float *out)
{
    vec top = vec_set(-INFINITY), low = top, scale = vec_set(s->scale), nan = vec_set(0);
    size_t i = 0;
    for (; !bias && !mask && i + VEC_LANES <= s->width; i += VEC_LANES) {
        vec y = vec_mul(vec_load(x + i), scale);
        vec_store(out + i, y);
        nan = vec_add(nan, vec_keep(vec_is_nan(y), y));
        top = vec_max(top, y);
    }
    for (; i < s->width; i += VEC_LANES) {
        size_t n = s->width - i < VEC_LANES ? s->width - i : VEC_LANES;
        vec y = vec_load_first(x + i, n);
        y = bias ? vec_fma(y, scale, vec_load_first(bias + i, n)) : vec_mul(y, scale);
        if (mask)
            y = vec_select(vec_mask_from_bytes(mask + i, n), y, low);
        else if (n < VEC_LANES)
            y = vec_select(vec_first(n), y, low);
        vec_store_first(out + i, n, y);
        nan = vec_add(nan, vec_keep(vec_is_nan(y), y));
        top = vec_max(top, y);
    }
    return vec_any(vec_is_nan(nan)) ? NAN : vec_top(top);
}

static inline int row_has_no_key(const uint8_t *mask, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        if (mask[i])
            return 0;
    }
    return 1;
}

static inline void fill_row(float *out, size_t width, float value)
{
    for (size_t i = 0; i < width; i++)
        out[i] = value;
}

#define SOFTMAX_SHORT 4 /* vectors: such rows stay in registers */

/* A row of `count` vectors without bias and mask, the last one of `last` elements. */
static inline __attribute__((always_inline)) void
softmax_short(const struct softmax_f32 *s, const int count, size_t last, const float *x, float *out)
{
    vec y[SOFTMAX_SHORT], low = vec_set(-INFINITY), top = low, nan = vec_set(0), sum = nan;
    vec scale = vec_set(s->scale), unit = vec_set(1.44269504f);
#pragma GCC unroll 4
    for (int j = 0; j < count; j++) {
        bool is_last = j + 1 == count;
        y[j] = vec_mul(vec_load_first(x + j * VEC_LANES, is_last ? last : VEC_LANES), scale);
        y[j] = is_last ? vec_select(vec_first(last), y[j], low) : y[j];
        nan = vec_add(nan, vec_keep(vec_is_nan(y[j]), y[j]));
        top = vec_max(top, y[j]);
    }
    float largest = vec_any(vec_is_nan(nan)) ? NAN : vec_top(top);
    if (!(fabsf(largest) < INFINITY)) {
        fill_row(out, s->width, NAN);
        return;
    }
    vec e[SOFTMAX_SHORT], shift = vec_set(largest);
#pragma GCC unroll 4
    for (int j = 0; j < count; j++) {
        y[j] = vec_sub(y[j], shift);
        e[j] = vec_exp2_fast(vec_mul(y[j], unit));
        sum = vec_add(sum, j + 1 == count ? vec_keep(vec_first(last), e[j]) : e[j]);
    }
    float total = vec_sum(sum);
    vec inverse = vec_set(1 / total), log = vec_set(s->is_log ? logf(total) : 0);
#pragma GCC unroll 4
    for (int j = 0; j < count; j++)
        vec_store_first(out + j * VEC_LANES, j + 1 == count ? last : VEC_LANES,
                        s->is_log ? vec_sub(y[j], log) : vec_mul(e[j], inverse));
}

static inline void softmax_short_row(const struct softmax_f32 *s, const float *x, float *out)
{
    size_t count = (s->width + VEC_LANES - 1) / VEC_LANES;
    size_t last = s->width - (count - 1) * VEC_LANES;
    if (count == 1)
        softmax_short(s, 1, last, x, out);
    else if (count == 2)
        softmax_short(s, 2, last, x, out);
    else if (count == 3)
        softmax_short(s, 3, last, x, out);
    else
        softmax_short(s, 4, last, x, out);
}

/* The row's results from its scores, for is_log. */
static inline void log_softmax_scores(float *out, size_t width, float top)
{
    vec sum = vec_set(0), shift = vec_set(top), unit = vec_set(1.44269504f);
    for (size_t i = 0; i < width; i += VEC_LANES) {
        size_t n = width - i < VEC_LANES ? width - i : VEC_LANES;
        vec y = vec_exp2_fast(vec_mul(vec_sub(vec_load_first(out + i, n), shift), unit));
        sum = vec_add(sum, n < VEC_LANES ? vec_keep(vec_first(n), y) : y);
    }
    vec log = vec_set(logf(vec_sum(sum)));
    for (size_t i = 0; i < width; i += VEC_LANES) {
        size_t n = width - i < VEC_LANES ? width - i : VEC_LANES;
        vec_store_first(out + i, n, vec_sub(vec_sub(vec_load_first(out + i, n), shift), log));
    }
}

static inline void softmax_row(const struct softmax_f32 *s, const float *x, const float *bias,
                               const uint8_t *mask, float *out)
{
    size_t width = s->width;
    if (!mask && !bias && width > 0 && width <= SOFTMAX_SHORT * VEC_LANES) {
        softmax_short_row(s, x, out);
        return;
    }
    if (mask && row_has_no_key(mask, width)) {
        fill_row(out, width, 1 / (float)width);
        return;
    }
    float top = softmax_scores(s, x, bias, mask, out);
    if (!(fabsf(top) < INFINITY)) {
        fill_row(out, width, NAN);
        return;
    }
    if (s->is_log) {
        log_softmax_scores(out, width, top);
        return;
    }
    const float log2_e = 1.44269504f;
    vec sum = vec_set(0), shift = vec_set(top), unit = vec_set(log2_e);
    size_t whole = width / VEC_LANES * VEC_LANES, n = width - whole;
    for (size_t i = 0; i < whole; i += VEC_LANES) {
        vec y = vec_exp2_fast(vec_mul(vec_sub(vec_load(out + i), shift), unit));
        vec_store(out + i, y);
        sum = vec_add(sum, y);
    }
    if (n > 0) {
        vec y = vec_exp2_fast(vec_mul(vec_sub(vec_load_first(out + whole, n), shift), unit));
        y = vec_keep(vec_first(n), y);
        vec_store_first(out + whole, n, y);
        sum = vec_add(sum, y);
    }
    vec inverse = vec_set(1 / vec_sum(sum));
    for (size_t i = 0; i < whole; i += VEC_LANES)
        vec_store(out + i, vec_mul(vec_load(out + i), inverse));
    if (n > 0)
        vec_store_first(out + whole, n, vec_mul(vec_load_first(out + whole, n), inverse));
}

#endif
#endif
