#ifndef KERNELS_GEMM_SCALED_H
#define KERNELS_GEMM_SCALED_H

#include "kernels/kernels.h"

/* Matrix multiplication of quantised operands, and what is done to its sums before they are stored.
 *
 *   sum[m][n] = start[n] + row_start[m] + sum over k of (A[m][k] - a_zero[m]) * B[k][n]
 *               in int32, wrapping
 *   x         = sum * (row_scale[m] * column_scale[n]) + bias[n] + residual[m][n]
 *   C[m][n]   = activation(x), or that rounded and shifted to u8
 *
 * The sum is exact, so every level gives the same; x is within 4e-7 * (|sum * scales| + |bias| +
 * |residual|). Results of a row depend on nothing but that row of A and the columns of B. */

typedef enum gemm_output {
    GEMM_S32, /* the sum itself, without the epilogue */
    GEMM_F32,
    GEMM_U8, /* min(255, max(0, round(activation(x)) + c_zero)), ties to even; NaN gives 0 */
} gemm_output;

typedef struct gemm_scaled_epilogue {
    const float *row_scale;    /* [m]; NULL: 1 */
    const float *column_scale; /* [n]; NULL: 1 */
    const float *bias;         /* [n]; NULL: 0 */
    const float *residual;     /* [m, n], may be C; NULL: 0 */
    size_t residual_stride;
    kernels_activation activation;
    /* [m], both or neither: lowered and raised to the smallest and largest result of each row.
     * Set to 0 by the caller beforehand. For the next quantisation. */
    float *row_low, *row_high;
} gemm_scaled_epilogue;

/* u8 x s8. B is packed by gemm_pack_u8s8 of the same table into panels of 64 columns; a panel is
 * int32[64] of -(sum of the column), then k in groups of four as [group][64][4] bytes, filled up
 * with zeros. At level amx the groups of whole steps of 16 are packed as tiles, [pair of
 * tiles][step][2 tiles][16 groups][16 columns][4 bytes]; what is left keeps the common layout. So a
 * panel has one size at all levels, but only the level that packed it can use it. GELU is computed
 * by polynomials here, within 1e-4 + 3e-6 * |x|. */
#define GEMM_U8S8_LAYOUT 2 /* for caches on disk: changes whenever the packed layout does */
#define GEMM_SCALED_PANEL_COLUMNS 64

typedef struct gemm_u8s8 {
    size_t m, n, k;
    const uint8_t *a; /* [m, k] */
    size_t a_stride;
    const int32_t *a_zero;    /* [m], 0 to 255; NULL: 128 for all */
    const void *b;            /* packed; 64-byte aligned */
    const int32_t *start;     /* [n]; NULL: 0 */
    const int32_t *row_start; /* [m]; NULL: 0 */
    gemm_output output;
    void *c;         /* [m, n] of int32, float or u8 */
    size_t c_stride; /* elements */
    int32_t c_zero;
    gemm_scaled_epilogue epilogue;
} gemm_u8s8;

static inline size_t gemm_u8s8_panel_bytes(size_t k)
{
    return GEMM_SCALED_PANEL_COLUMNS * (sizeof(int32_t) + (k + 3) / 4 * 4);
}

static inline size_t gemm_u8s8_packed_bytes(size_t k, size_t n)
{
    size_t panels = (n + GEMM_SCALED_PANEL_COLUMNS - 1) / GEMM_SCALED_PANEL_COLUMNS;
    return panels * gemm_u8s8_panel_bytes(k);
}

/* s16 x s16 of integers within +-GEMM_S16_LIMIT (11 bits with sign), for bf16 precision. The sum of
 * 2,048 products fits an int32; longer sums are added as floats in blocks of 2,048. There is no
 * zero point, no start and no GEMM_S32. B in panels [k / 2][64][2]. GELU within 1e-6 * max(1, |x|).
 * Sums are exact for k <= 2048, else within 1e-7 * sum |A||B|. */
#define GEMM_S16_LIMIT 1023
#define GEMM_S16_BLOCK 2048
#define GEMM_S16_LAYOUT 2

typedef struct gemm_s16 {
    size_t m, n, k;
    const int16_t *a;
    size_t a_stride;
    const void *b; /* packed by gemm_pack_s16; 64-byte aligned */
    gemm_output output;
    void *c;
    size_t c_stride;
    int32_t c_zero;
    gemm_scaled_epilogue epilogue;
} gemm_s16;

/* bf16 x bf16 accumulated in float. gemm_pack_bf16 packs B as gemm_pack_s16 does, but at level amx
 * whole steps of k as tiles, as gemm_pack_u8s8 does. GELU within 1e-5 + 1e-6 * |x|. Denormals count
 * as zero, rounding is to nearest even, whatever MXCSR says. Error of the sum: k * 2^-23 * sum
 * |A||B|. The order of a sum is the level's own, the same for every row: pairs of products one
 * after another (avx512bf16), or blocks of 32, in each the even products, the odd ones, both, and
 * the sum so far (AMX). */
typedef struct gemm_bf16 {
    size_t m, n, k;
    const uint16_t *a;
    size_t a_stride;
    const void *b;      /* packed by gemm_pack_bf16; 64-byte aligned */
    gemm_output output; /* GEMM_F32 or GEMM_U8 */
    void *c;
    size_t c_stride;
    int32_t c_zero;
    gemm_scaled_epilogue epilogue;
} gemm_bf16;

static inline size_t gemm_s16_panel_bytes(size_t k)
{
    return GEMM_SCALED_PANEL_COLUMNS * 4 * ((k + 1) / 2);
}

static inline size_t gemm_s16_packed_bytes(size_t k, size_t n)
{
    size_t panels = (n + GEMM_SCALED_PANEL_COLUMNS - 1) / GEMM_SCALED_PANEL_COLUMNS;
    return panels * gemm_s16_panel_bytes(k);
}

#endif
