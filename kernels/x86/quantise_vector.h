#ifndef KERNELS_X86_QUANTISE_VECTOR_H
#define KERNELS_X86_QUANTISE_VECTOR_H

#include "kernels/gemm_scaled.h"
#include "kernels/quantise.h"
#include "kernels/x86/rows_vector.h"

#ifdef VEC_LANES

typedef struct row_range {
    float low, high;
} row_range;

/* `n` elements at i, times their factors where there are any. */
static inline vec load_scaled(const float *x, const float *factors, size_t i, size_t n)
{
    vec y = vec_load_first(x + i, n);
    return factors ? vec_mul(y, vec_load_first(factors + i, n)) : y;
}

static inline vec load_scaled_whole(const float *x, const float *factors, size_t i)
{
    vec y = vec_load(x + i);
    return factors ? vec_mul(y, vec_load(factors + i)) : y;
}

/* Lanes beyond the row load as zero, which the range includes anyway. */
static inline row_range find_range(const float *x, const float *factors, size_t width)
{
    vec lows[ROW_TURN] = {vec_set(0), vec_set(0), vec_set(0), vec_set(0)};
    vec highs[ROW_TURN] = {lows[0], lows[0], lows[0], lows[0]};
    size_t i = 0;
    for (; i + ROW_TURN * VEC_LANES <= width; i += ROW_TURN * VEC_LANES) {
#pragma GCC unroll 4
        for (size_t j = 0; j < ROW_TURN; j++) {
            vec y = load_scaled_whole(x, factors, i + j * VEC_LANES);
            lows[j] = vec_min(y, lows[j]);
            highs[j] = vec_max(y, highs[j]);
        }
    }
    for (; i < width; i += VEC_LANES) {
        vec y = load_scaled(x, factors, i, width - i < VEC_LANES ? width - i : VEC_LANES);
        lows[0] = vec_min(y, lows[0]);
        highs[0] = vec_max(y, highs[0]);
    }
    vec low = vec_min(vec_min(lows[0], lows[1]), vec_min(lows[2], lows[3]));
    row_range range;
    vec_range(low, vec_max_of_4(highs), &range.low, &range.high);
    return range;
}

/* |x * factors * factor| is at most 255, or NaN, which becomes 0. */
static inline void quantise_row_u8(const float *x, const float *factors, size_t width,
                                   row_range range, uint8_t *out, float *scale, int32_t *zero)
{
    float top = range.high > -range.low ? range.high : -range.low;
    float span = zero ? range.high - range.low : top, levels = zero ? 255 : 127;
    float factor = span > 0 ? levels / span : 0;
    vec by = vec_set(factor);
    int32_t offset = zero ? (int32_t)lrintf(-range.low * factor) : 128;
    vec_i shift = vec_i_set(offset);
    size_t i = 0;
    for (; i + ROW_TURN * VEC_LANES <= width; i += ROW_TURN * VEC_LANES) {
        vec_i q[ROW_TURN];
#pragma GCC unroll 4
        for (size_t j = 0; j < ROW_TURN; j++)
            q[j] = vec_to_i(vec_mul(load_scaled_whole(x, factors, i + j * VEC_LANES), by));
        vec_i_store_u8_4(out + i, q, offset);
    }
    for (; i < width; i += VEC_LANES) {
        size_t n = width - i < VEC_LANES ? width - i : VEC_LANES;
        vec_i q = vec_to_i(vec_mul(load_scaled(x, factors, i, n), by));
        vec_i_store_u8(out + i, n, vec_i_add(q, shift));
    }
    *scale = span / levels;
    if (zero)
        *zero = offset;
}

static inline void quantise_rows_u8(const quantise_u8 *q)
{
    for (size_t r = 0; r < q->rows; r++) {
        const float *x = q->x + r * q->x_stride;
        row_range range =
            q->low ? (row_range){q->low[r], q->high[r]} : find_range(x, q->factors, q->width);
        quantise_row_u8(x, q->factors, q->width, range, q->out + r * q->out_stride, q->scale + r,
                        q->zero ? q->zero + r : NULL);
    }
}

static inline void quantise_rows_s16(const quantise_s16 *q)
{
    for (size_t r = 0; r < q->rows; r++) {
        const float *x = q->x + r * q->x_stride;
        int16_t *out = q->out + r * q->out_stride;
        row_range range =
            q->low ? (row_range){q->low[r], q->high[r]} : find_range(x, NULL, q->width);
        float top = range.high > -range.low ? range.high : -range.low;
        vec by = vec_set(top > 0 ? GEMM_S16_LIMIT / top : 0);
        for (size_t i = 0; i < q->width; i += VEC_LANES) {
            size_t n = q->width - i < VEC_LANES ? q->width - i : VEC_LANES;
            vec_i_store_s16(out + i, n, vec_to_i(vec_mul(vec_load_first(x + i, n), by)));
        }
        q->scale[r] = top / GEMM_S16_LIMIT;
    }
}

static inline void layer_norm_quantise_rows(const layer_norm_quantise *l)
{
    size_t count = l->norm.rows, width = l->norm.width;
    float tops[NORM_ROWS];
    for (size_t first = 0; first < count; first += NORM_ROWS) {
        size_t rows = count - first < NORM_ROWS ? count - first : NORM_ROWS;
        layer_norm_some(&l->norm, first, rows, tops);
        for (size_t r = first; r < first + rows; r++) {
            const float *x = l->norm.out + r * l->norm.out_stride;
            row_range range = {-tops[r - first], tops[r - first]};
            if (l->zero || l->factors)
                range = find_range(x, l->factors, width);
            quantise_row_u8(x, l->factors, width, range, l->out + r * l->out_stride, l->scale + r,
                            l->zero ? l->zero + r : NULL);
        }
    }
}

#endif
#endif
