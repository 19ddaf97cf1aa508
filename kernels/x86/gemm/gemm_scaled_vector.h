#ifndef KERNELS_X86_GEMM_GEMM_SCALED_VECTOR_H
#define KERNELS_X86_GEMM_GEMM_SCALED_VECTOR_H

#include <string.h>

#include "kernels/gemm_scaled.h"
#include "kernels/x86/vector/math_vector.h"

#ifdef VEC_LANES

/* The GEMMs of gemm_scaled.h, all as one job: a step takes four bytes of each row of A (4 x u8,
 * 2 x s16 or 2 x bf16) against four bytes of each column of B. */
typedef struct dot_job {
    size_t m, n, steps, tail_bytes; /* a row of A is 4 * steps + tail_bytes bytes */
    const uint8_t *a;
    size_t a_stride;       /* bytes */
    const int32_t *a_zero; /* u8 only */
    const int32_t *start, *row_start;
    const uint8_t *b;
    size_t b_header_bytes; /* of column sums before each panel */
    gemm_output output;
    void *c;
    size_t c_stride;
    int32_t c_zero;
    const gemm_scaled_epilogue *epilogue;
    int has_fast_gelu;
} dot_job;

#define DOT_PANEL GEMM_SCALED_PANEL_COLUMNS
#define DOT_STEP_BYTES (4 * DOT_PANEL)

static inline size_t dot_panel_bytes(const dot_job *d)
{
    return d->b_header_bytes + (d->steps + (d->tail_bytes > 0)) * DOT_STEP_BYTES;
}

/* GEMM_S32: stores the sums. */
static inline void dot_store_s32(const dot_job *d, size_t row, size_t column, size_t rows,
                                 size_t columns, const int32_t *sums, size_t sums_stride)
{
    for (size_t i = 0; i < rows; i++) {
        int32_t *c = (int32_t *)d->c + (row + i) * d->c_stride + column;
        for (size_t j = 0; j < columns; j += VEC_LANES) {
            size_t n = columns - j < VEC_LANES ? columns - j : VEC_LANES;
            vec_i_store_first(c + j, n, vec_i_load(sums + i * sums_stride + j));
        }
    }
}

/* Scales and bias only. */
static inline int dot_is_direct(const dot_job *d)
{
    const gemm_scaled_epilogue *e = d->epilogue;
    return d->output == GEMM_F32 && !e->residual && !e->row_low &&
           e->activation == KERNELS_IDENTITY;
}

/* Where the sums of a panel's columns begin: at `start`, less a zero point of 128 unless rows have
 * their own. */
static inline void dot_fill_starts(const dot_job *d, size_t n0, size_t columns,
                                   const int32_t *negative_sums, int32_t *starts)
{
    if (d->start)
        memcpy(starts, d->start + n0, columns * sizeof *starts);
    for (size_t j = 0; !d->a_zero && j < DOT_PANEL; j++)
        starts[j] = (int32_t)((uint32_t)starts[j] + 128u * (uint32_t)negative_sums[j]);
}

static inline vec dot_scale(const gemm_scaled_epilogue *e, size_t row, size_t column, size_t n)
{
    vec scale = vec_set(e->row_scale ? e->row_scale[row] : 1);
    if (e->column_scale)
        scale = vec_mul(scale, vec_load_first(e->column_scale + column, n));
    return scale;
}

/* x as an integer, shifted by `zero`, not yet limited to a byte; NaN is 0 before the shift. */
static inline vec_i dot_round(vec x, vec_i zero)
{
    vec limited = vec_max(vec_min(x, vec_set(1e6f)), vec_set(-1e6f));
    return vec_i_add(vec_to_i(vec_keep(vec_is_number(x), limited)), zero);
}

static inline void dot_widen_range(const gemm_scaled_epilogue *e, size_t row, vec low, vec high)
{
    float bottom, top;
    vec_range(low, high, &bottom, &top);
    e->row_low[row] = bottom < e->row_low[row] ? bottom : e->row_low[row];
    e->row_high[row] = top > e->row_high[row] ? top : e->row_high[row];
}

/* `is_plain`: whole vectors of floats, with both scales and a bias, without a residual: the
 * commonest, for which it costs nothing that the others exist. */
static inline __attribute__((always_inline)) void
dot_finish(const kernels_activation activation, const int is_fast_gelu, const int is_plain,
           const dot_job *d, size_t row, size_t column, size_t rows, size_t columns,
           const float *sums, size_t sums_stride)
{
    const gemm_scaled_epilogue *e = d->epilogue;
    for (size_t i = 0; i < rows; i++) {
        size_t m = row + i, at = m * d->c_stride + column;
        vec low = vec_set(0), high = low;
        for (size_t j = 0; j < columns; j += VEC_LANES) {
            size_t n = is_plain || columns - j > VEC_LANES ? VEC_LANES : columns - j;
            vec x = vec_load(sums + i * sums_stride + j), scale;
            if (is_plain)
                scale = vec_mul(vec_set(e->row_scale[m]), vec_load(e->column_scale + column + j));
            else
                scale = dot_scale(e, m, column + j, n);
            x = is_plain || e->bias ? vec_fma(x, scale, vec_load_first(e->bias + column + j, n))
                                    : vec_mul(x, scale);
            if (!is_plain && e->residual)
                x = vec_add(x,
                            vec_load_first(e->residual + m * e->residual_stride + column + j, n));
            x = is_fast_gelu ? vec_gelu_fast(x) : vec_activate(activation, x);
            if (e->row_low) {
                vec y = n < VEC_LANES ? vec_keep(vec_first(n), x) : x;
                low = vec_min(y, low);
                high = vec_max(y, high);
            }
            if (is_plain || d->output == GEMM_F32) {
                vec_store_first((float *)d->c + at + j, n, x);
            } else {
                vec_i_store_u8((uint8_t *)d->c + at + j, n, dot_round(x, vec_i_set(d->c_zero)));
            }
        }
        if (e->row_low)
            dot_widen_range(e, m, low, high);
    }
}

/* The commonest of all: sums of whole vectors, both scales, bias, fast GELU, floats; four vectors
 * at a time, since the polynomial of one waits for its own steps. */
static inline __attribute__((always_inline)) void
dot_finish_gelu(const int is_ranged, const dot_job *d, size_t row, size_t column, size_t rows,
                size_t columns, const float *sums, size_t sums_stride)
{
    const gemm_scaled_epilogue *e = d->epilogue;
    for (size_t i = 0; i < rows; i++) {
        size_t m = row + i;
        float *out = (float *)d->c + m * d->c_stride + column;
        vec low = vec_set(0), high = low, row_scale = vec_set(e->row_scale[m]);
        for (size_t j = 0; j < columns; j += 4 * VEC_LANES) {
            vec x[4];
#pragma GCC unroll 4
            for (size_t k = 0; k < 4; k++) {
                size_t at = j + k * VEC_LANES;
                vec scale = vec_mul(row_scale, vec_load(e->column_scale + column + at));
                x[k] = vec_fma(vec_load(sums + i * sums_stride + at), scale,
                               vec_load(e->bias + column + at));
            }
            vec_gelu_fast_all(x, 4);
#pragma GCC unroll 4
            for (size_t k = 0; k < 4; k++) {
                low = is_ranged ? vec_min(x[k], low) : low;
                high = is_ranged ? vec_max(x[k], high) : high;
                vec_store(out + j + k * VEC_LANES, x[k]);
            }
        }
        if (is_ranged)
            dot_widen_range(e, m, low, high);
    }
}

/* Epilogue of rows x columns sums, stored into C at (row, column). */
static inline void dot_finish_of(const dot_job *d, size_t row, size_t column, size_t rows,
                                 size_t columns, const float *sums, size_t sums_stride)
{
    const gemm_scaled_epilogue *e = d->epilogue;
    kernels_activation activation = e->activation;
    int is_plain = d->output == GEMM_F32 && columns % VEC_LANES == 0 && e->row_scale &&
                   e->column_scale && e->bias && !e->residual;
    int is_fast = d->has_fast_gelu;
    int is_gelu_of_four =
        activation == KERNELS_GELU && is_fast && is_plain && columns % (4 * VEC_LANES) == 0;
    if (d->output == GEMM_S32)
        dot_store_s32(d, row, column, rows, columns, (const int32_t *)sums, sums_stride);
    else if (is_gelu_of_four && e->row_low)
        dot_finish_gelu(1, d, row, column, rows, columns, sums, sums_stride);
    else if (is_gelu_of_four)
        dot_finish_gelu(0, d, row, column, rows, columns, sums, sums_stride);
    else if (activation == KERNELS_GELU && is_fast && is_plain)
        dot_finish(KERNELS_GELU, 1, 1, d, row, column, rows, columns, sums, sums_stride);
    else if (activation == KERNELS_GELU && is_fast)
        dot_finish(KERNELS_GELU, 1, 0, d, row, column, rows, columns, sums, sums_stride);
    else if (activation == KERNELS_GELU && is_plain)
        dot_finish(KERNELS_GELU, 0, 1, d, row, column, rows, columns, sums, sums_stride);
    else if (activation == KERNELS_GELU)
        dot_finish(KERNELS_GELU, 0, 0, d, row, column, rows, columns, sums, sums_stride);
    else if (activation == KERNELS_IDENTITY)
        dot_finish(KERNELS_IDENTITY, 0, 0, d, row, column, rows, columns, sums, sums_stride);
    else if (activation == KERNELS_RELU)
        dot_finish(KERNELS_RELU, 0, 0, d, row, column, rows, columns, sums, sums_stride);
    else
        dot_finish(activation, 0, 0, d, row, column, rows, columns, sums, sums_stride);
}

static inline dot_job dot_job_of_u8s8(const struct gemm_u8s8 *g)
{
    dot_job d = {.m = g->m,
                 .n = g->n,
                 .steps = g->k / 4,
                 .tail_bytes = g->k % 4,
                 .a = g->a,
                 .a_stride = g->a_stride,
                 .a_zero = g->a_zero,
                 .start = g->start,
                 .row_start = g->row_start,
                 .b = g->b,
                 .b_header_bytes = DOT_PANEL * sizeof(int32_t),
                 .output = g->output,
                 .c = g->c,
                 .c_stride = g->c_stride,
                 .c_zero = g->c_zero,
                 .epilogue = &g->epilogue,
                 .has_fast_gelu = 1};
    return d;
}

static inline dot_job dot_job_of_s16(const struct gemm_s16 *g)
{
    dot_job d = {.m = g->m,
                 .n = g->n,
                 .steps = g->k / 2,
                 .tail_bytes = g->k % 2 * 2,
                 .a = (const uint8_t *)g->a,
                 .a_stride = g->a_stride * 2,
                 .b = g->b,
                 .output = g->output,
                 .c = g->c,
                 .c_stride = g->c_stride,
                 .c_zero = g->c_zero,
                 .epilogue = &g->epilogue};
    return d;
}

static inline dot_job dot_job_of_bf16(const struct gemm_bf16 *g)
{
    dot_job d = {.m = g->m,
                 .n = g->n,
                 .steps = g->k / 2,
                 .tail_bytes = g->k % 2 * 2,
                 .a = (const uint8_t *)g->a,
                 .a_stride = g->a_stride * 2,
                 .b = g->b,
                 .output = g->output,
                 .c = g->c,
                 .c_stride = g->c_stride,
                 .c_zero = g->c_zero,
                 .epilogue = &g->epilogue};
    return d;
}

#endif
#endif
