#ifndef KERNELS_GEMM_F32_H
#define KERNELS_GEMM_F32_H

#include "kernels/kernels.h"

/* C[m][n] = activation(scale * sum over k of A[m][k] * B[k][n] + bias[n] + residual[m][n])
 *
 * Order: each element has one accumulator that starts at zero and takes k = 0, 1, 2 ... in turn
 * (with FMA where the level has it), whatever the tile, the call or the neighbours; so an element's
 * bits depend on its row of A and its column of B only.
 * Error of the sum, before the epilogue: at most k * 2^-24 * sum |A||B|. */

/* B is packed once into panels of 32 columns: panel p holds columns 32p .. 32p+31 as [k][32], the
 * last one filled up with zeros. The same layout at every level. */
#define GEMM_F32_PANEL_COLUMNS 32

typedef struct gemm_f32_epilogue {
    float scale;           /* 0 means 1 */
    const float *bias;     /* [n], or NULL */
    const float *residual; /* [m, n] or NULL; may be `c` itself (same stride) */
    size_t residual_stride;
    kernels_activation activation;
} gemm_f32_epilogue;

/* A piece of a row of A, and the rows of B that it meets. */
typedef struct gemm_f32_segment {
    size_t a, k; /* elements from the start of the row; the first row of B */
} gemm_f32_segment;

/* Strides count elements between the starts of rows. A and C must not overlap. A row of A may lie
 * in segments, all alike, such as the lines of a window in an image, in ascending order of k; rows
 * of B that none meets count as met by zeros. Rows may overlap, and lie in runs, such as the
 * windows of a line of an image. */
typedef struct gemm_f32 {
    size_t m, n, k; /* k: rows of B */
    const float *a; /* [m, k] */
    size_t a_stride;
    const gemm_f32_segment *a_segments; /* NULL: rows are whole */
    size_t a_segment_count, a_segment;  /* how many, and the elements of each */
    size_t a_run, a_run_stride;         /* rows of a run, and from run to run; 0: a single run */
    const float *b;                     /* packed by gemm_pack_f32; 64-byte aligned is fastest */
    float *c;                           /* [m, n] */
    size_t c_stride;
    gemm_f32_epilogue epilogue;
} gemm_f32;

/* Where row `m` of A starts. */
static inline size_t gemm_f32_row_offset(const gemm_f32 *g, size_t m)
{
    return g->a_run ? m / g->a_run * g->a_run_stride + m % g->a_run * g->a_stride : m * g->a_stride;
}

/* The same with B unpacked: element (k, n) is b[k * b_row_stride + n * b_column_stride], so a
 * transposed B has the strides exchanged. For the product of two activations. */
typedef struct gemm_f32_unpacked {
    size_t m, n, k;
    const float *a;
    size_t a_stride;
    const float *b;
    size_t b_row_stride, b_column_stride;
    float *c;
    size_t c_stride;
    gemm_f32_epilogue epilogue;
} gemm_f32_unpacked;

/* Floats that gemm_pack_f32 writes for a [k, n] matrix. */
static inline size_t gemm_f32_packed_count(size_t k, size_t n)
{
    size_t panels = (n + GEMM_F32_PANEL_COLUMNS - 1) / GEMM_F32_PANEL_COLUMNS;
    return panels * GEMM_F32_PANEL_COLUMNS * k;
}

/* Where column `column` (a multiple of 32) begins in packed B: to split columns among threads,
 * with `c`, `bias`, `residual` advanced likewise. */
static inline size_t gemm_f32_packed_offset(size_t k, size_t column)
{
    return column * k;
}

#endif
