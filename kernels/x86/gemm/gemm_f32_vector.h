#ifndef KERNELS_X86_GEMM_GEMM_F32_VECTOR_H
#define KERNELS_X86_GEMM_GEMM_F32_VECTOR_H

#include <string.h>

#include "kernels/gemm_f32.h"
#include "kernels/x86/gemm/gemm_f32_pack_vector.h"
#include "kernels/x86/vector/math_vector.h"

#ifdef VEC_LANES

/* Two vectors wide, with as many rows as registers allow: 12 x 32 of AVX-512's 32 registers,
 * 6 x 16 (half a panel) of AVX2's 16. */
#define TILE_VECTORS 2
#define TILE_COLUMNS (TILE_VECTORS * VEC_LANES)
#define TILE_ROWS (VEC_LANES == 16 ? 12 : 6)

/* The panel of the moment and the next one should both fit the L2 cache beside A. */
#define ROW_BLOCK 96
#define K_BLOCK 512

#define TILE_INLINE static inline __attribute__((always_inline))

/* The rows of A of a tile: `count` segments of `segment` elements. */
typedef struct tile_a {
    const float *a;
    size_t stride, segment, count;
    const gemm_f32_segment *segments;
} tile_a;

static const gemm_f32_segment whole_row = {0, 0};

static inline tile_a tile_a_of(const gemm_f32 *g)
{
    tile_a t = {.stride = g->a_stride, .segment = g->k, .count = 1, .segments = &whole_row};
    if (g->a_segments) {
        t.segment = g->a_segment;
        t.count = g->a_segment_count;
        t.segments = g->a_segments;
    }
    return t;
}

/* sums[rows][vectors * VEC_LANES] (+)= A[rows][k] * panel[k][..]; one accumulator per element, k
 * ascending. `rows` and `vectors` are constants at every call, so the loops over them unroll and
 * `c` lives in registers. */
TILE_INLINE void tile(const int rows, const int vectors, const tile_a *t, const float *panel,
                      float *sums, size_t sums_stride, int is_first)
{
    size_t a_stride = t->stride;
    vec c[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            c[i][j] = is_first ? vec_set(0) : vec_load(sums + i * sums_stride + j * VEC_LANES);
    }
    for (size_t s = 0; s < t->count; s++) {
        const float *a = t->a + t->segments[s].a, *row = panel + t->segments[s].k * PANEL;
        for (size_t p = 0; p < t->segment; p++) {
            vec b[TILE_VECTORS];
#pragma GCC unroll 2
            for (int j = 0; j < vectors; j++)
                b[j] = vec_load(row + j * VEC_LANES);
            row += PANEL;
#pragma GCC unroll 16
            for (int i = 0; i < rows; i++) {
                vec x = vec_set(a[i * a_stride + p]);
#pragma GCC unroll 2
                for (int j = 0; j < vectors; j++)
                    c[i][j] = vec_fma(x, b[j], c[i][j]);
            }
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            vec_store(sums + i * sums_stride + j * VEC_LANES, c[i][j]);
    }
}

/* A tile of 1 .. TILE_ROWS rows of which `columns` (1 .. TILE_COLUMNS) are wanted; whole vectors of
 * them are written. */
#define TILE_CASE(rows)                                                                            \
    case rows:                                                                                     \
        if (columns > VEC_LANES)                                                                   \
            tile(rows, 2, t, panel, sums, sums_stride, is_first);                                  \
        else                                                                                       \
            tile(rows, 1, t, panel, sums, sums_stride, is_first);                                  \
        break

static void tile_of(size_t rows, size_t columns, const tile_a *t, const float *panel, float *sums,
                    size_t sums_stride, int is_first)
{
    switch (rows) {
        TILE_CASE(1);
        TILE_CASE(2);
        TILE_CASE(3);
        TILE_CASE(4);
        TILE_CASE(5);
        TILE_CASE(6);
#if VEC_LANES == 16
        TILE_CASE(7);
        TILE_CASE(8);
        TILE_CASE(9);
        TILE_CASE(10);
        TILE_CASE(11);
        TILE_CASE(12);
#endif
    }
}

#undef TILE_CASE

TILE_INLINE void finish(kernels_activation activation, const gemm_f32_epilogue *e, size_t row,
                        size_t column, size_t rows, size_t columns, const float *sums, float *c,
                        size_t c_stride)
{
    vec scale = vec_set(e->scale == 0 ? 1 : e->scale);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < columns; j += VEC_LANES) {
            size_t n = columns - j < VEC_LANES ? columns - j : VEC_LANES;
            vec x = vec_mul(vec_load(sums + i * TILE_COLUMNS + j), scale);
            if (e->bias)
                x = vec_add(x, vec_load_first(e->bias + column + j, n));
            if (e->residual) {
                const float *residual = e->residual + (row + i) * e->residual_stride + column + j;
                x = vec_add(x, vec_load_first(residual, n));
            }
            vec_store_first(c + i * c_stride + j, n, vec_activate(activation, x));
        }
    }
}

/* Adds the epilogue to rows x columns of sums and stores them at `c`, which is C at (row, column).
 */
static inline void finish_of(const gemm_f32_epilogue *e, size_t row, size_t column, size_t rows,
                             size_t columns, const float *sums, float *c, size_t c_stride)
{
    switch (e->activation) {
    case KERNELS_IDENTITY:
        finish(KERNELS_IDENTITY, e, row, column, rows, columns, sums, c, c_stride);
        break;
    case KERNELS_RELU:
        finish(KERNELS_RELU, e, row, column, rows, columns, sums, c, c_stride);
        break;
    case KERNELS_GELU:
        finish(KERNELS_GELU, e, row, column, rows, columns, sums, c, c_stride);
        break;
    default:
        finish(e->activation, e, row, column, rows, columns, sums, c, c_stride);
        break;
    }
}

/* Rows of the next tile when `left` remain: as even as can be, since narrow tiles wait for the
 * latency of their few FMAs. */
static inline size_t tile_rows(size_t left)
{
    size_t tiles = (left + TILE_ROWS - 1) / TILE_ROWS;
    return (left + tiles - 1) / tiles;
}

static inline void prefetch_span(const char *p, size_t from, size_t to)
{
    for (; from < to; from += 64)
        _mm_prefetch(p + from, _MM_HINT_T1);
}

/* All rows against one panel; meanwhile the next panel is asked for, a part per tile. */
static inline void panel_rows(const gemm_f32 *g, size_t m0, size_t m1, size_t n0)
{
    float sums[TILE_ROWS * TILE_COLUMNS] __attribute__((aligned(64)));
    const float *panel = g->b + gemm_f32_packed_offset(g->k, n0);
    size_t columns = g->n - n0 < PANEL ? g->n - n0 : PANEL;
    size_t panel_bytes = n0 + PANEL < g->n ? g->k * PANEL * sizeof *panel : 0;
    const char *next = (const char *)(panel + g->k * PANEL);
    tile_a t = tile_a_of(g);
    size_t run = g->a_run && g->a_run < m1 - m0 ? g->a_run : m1 - m0, tile_index = 0;
    size_t tiles = (m1 - m0 + run - 1) / run * ((run + TILE_ROWS - 1) / TILE_ROWS);
    for (size_t m = m0, rows; m < m1; m += rows, tile_index++) {
        size_t left = g->a_run ? g->a_run - m % g->a_run : m1 - m; /* of the run */
        rows = tile_rows(left < m1 - m ? left : m1 - m);
        prefetch_span(next, panel_bytes * tile_index / tiles & ~(size_t)63,
                      panel_bytes * (tile_index + 1) / tiles);
        t.a = g->a + gemm_f32_row_offset(g, m);
        for (size_t j = 0; j < columns; j += TILE_COLUMNS) {
            size_t width = columns - j < TILE_COLUMNS ? columns - j : TILE_COLUMNS;
            tile_of(rows, width, &t, panel + j, sums, TILE_COLUMNS, 1);
            finish_of(&g->epilogue, m, n0 + j, rows, width, sums, g->c + m * g->c_stride + n0 + j,
                      g->c_stride);
        }
    }
}

/* One or two rows have too few sums in a tile to hide the latency of an FMA: several panels at once
 * have eight vectors of them, or four where no more columns are left. Each sum takes its products
 * in the same order as in a tile. */
#define WIDE_ROWS 2
#define WIDE_VECTORS 8
#define PANEL_VECTORS (PANEL / VEC_LANES)

TILE_INLINE void wide_tile(const int rows, const int vectors, const tile_a *t, const float *panel,
                           size_t panel_stride, float sums[][WIDE_ROWS * TILE_COLUMNS])
{
    vec c[WIDE_ROWS][WIDE_VECTORS];
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 8
        for (int j = 0; j < vectors; j++)
            c[i][j] = vec_set(0);
    }
    for (size_t s = 0; s < t->count; s++) {
        const float *a = t->a + t->segments[s].a, *row = panel + t->segments[s].k * PANEL;
        for (size_t p = 0; p < t->segment; p++, row += PANEL) {
#pragma GCC unroll 8
            for (int j = 0; j < vectors; j++) {
                vec b = vec_load(row + (size_t)(j / PANEL_VECTORS) * panel_stride +
                                 j % PANEL_VECTORS * VEC_LANES);
#pragma GCC unroll 2
                for (int i = 0; i < rows; i++)
                    c[i][j] = vec_fma(vec_set(a[(size_t)i * t->stride + p]), b, c[i][j]);
            }
        }
    }
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 8
        for (int j = 0; j < vectors; j++)
            vec_store(sums[j / TILE_VECTORS] + i * TILE_COLUMNS + j % TILE_VECTORS * VEC_LANES,
                      c[i][j]);
    }
}

/* All rows, WIDE_ROWS at most, against the panels of so many vectors of columns. */
TILE_INLINE void wide_rows(const gemm_f32 *g, const int vectors, size_t n0)
{
    float sums[WIDE_VECTORS / TILE_VECTORS][WIDE_ROWS * TILE_COLUMNS] __attribute__((aligned(64)));
    const float *panel = g->b + gemm_f32_packed_offset(g->k, n0);
    tile_a t = tile_a_of(g);
    t.a = g->a;
    t.stride = g->a_run == 1 ? g->a_run_stride : g->a_stride;
    if (g->m == 1)
        wide_tile(1, vectors, &t, panel, g->k * PANEL, sums);
    else
        wide_tile(2, vectors, &t, panel, g->k * PANEL, sums);
    for (size_t j = 0; j < (size_t)vectors / TILE_VECTORS; j++) {
        size_t column = n0 + j * TILE_COLUMNS;
        finish_of(&g->epilogue, 0, column, g->m, TILE_COLUMNS, sums[j], g->c + column, g->c_stride);
    }
}

static inline void gemm_rows(const gemm_f32 *g)
{
    size_t wide = 0; /* columns that are done */
    if (g->m > 0 && g->m <= WIDE_ROWS) {
        const size_t most = WIDE_VECTORS * VEC_LANES, half = most / 2;
        for (; wide + most <= g->n; wide += most)
            wide_rows(g, WIDE_VECTORS, wide);
        for (; wide + half <= g->n; wide += half)
            wide_rows(g, WIDE_VECTORS / 2, wide);
    }

    /* Rows in blocks whose part of A stays in the L2 cache while all panels pass. */
    size_t width = g->a_run ? g->a_stride + 1 : g->k; /* windows of neighbours overlap */
    size_t block = width ? 65536 / width / TILE_ROWS * TILE_ROWS : g->m;
    block = block < ROW_BLOCK ? ROW_BLOCK : block;
    if (g->a_run && g->a_run < block)
        block = block / g->a_run * g->a_run;
    for (size_t m0 = 0; m0 < g->m; m0 += block) {
        size_t m1 = g->m - m0 < block ? g->m : m0 + block;
        for (size_t n0 = wide; n0 < g->n; n0 += PANEL)
            panel_rows(g, m0, m1, n0);
    }
}

/* Packs K_BLOCK x PANEL at a time on the stack; partial sums of ROW_BLOCK rows wait beside it, as
 * floats, which keeps the order and the bits of a single pass. */
static inline void unpacked_block(const gemm_f32_unpacked *g, size_t m0, size_t m1, size_t n0,
                                  float *packed, int is_packed)
{
    float sums[PANEL / TILE_COLUMNS][ROW_BLOCK * TILE_COLUMNS] __attribute__((aligned(64)));
    size_t columns = g->n - n0 < PANEL ? g->n - n0 : PANEL;
    size_t k0 = 0;
    do { /* once also when k is 0: zeros */
        size_t k = g->k - k0 < K_BLOCK ? g->k - k0 : K_BLOCK;
        if (!is_packed)
            pack_panel(g->b + k0 * g->b_row_stride + n0 * g->b_column_stride, g->b_row_stride,
                       g->b_column_stride, k, columns, packed);
        for (size_t m = m0, rows; m < m1; m += rows) {
            rows = tile_rows(m1 - m);
            for (size_t j = 0; j < columns; j += TILE_COLUMNS)
                tile_of(rows, columns - j,
                        &(tile_a){g->a + m * g->a_stride + k0, g->a_stride, k, 1, &whole_row},
                        packed + j, sums[j / TILE_COLUMNS] + (m - m0) * TILE_COLUMNS, TILE_COLUMNS,
                        k0 == 0);
        }
        k0 += k;
    } while (k0 < g->k);
    for (size_t j = 0; j < columns; j += TILE_COLUMNS) {
        size_t width = columns - j < TILE_COLUMNS ? columns - j : TILE_COLUMNS;
        finish_of(&g->epilogue, m0, n0 + j, m1 - m0, width, sums[j / TILE_COLUMNS],
                  g->c + m0 * g->c_stride + n0 + j, g->c_stride);
    }
}

static inline void gemm_unpacked(const gemm_f32_unpacked *g)
{
    float packed[K_BLOCK * PANEL] __attribute__((aligned(64)));
    for (size_t n0 = 0; n0 < g->n; n0 += PANEL) {
        for (size_t m0 = 0; m0 < g->m; m0 += ROW_BLOCK) {
            size_t m1 = g->m - m0 < ROW_BLOCK ? g->m : m0 + ROW_BLOCK;
            unpacked_block(g, m0, m1, n0, packed, m0 > 0 && g->k <= K_BLOCK);
        }
    }
}

/* `rounds` times twelve independent FMAs on registers; returns the operations done. */
static inline double gemm_peak(size_t rounds)
{
    vec c[12], a = vec_set(0.5f), b = vec_set(0.25f);
#pragma GCC unroll 12
    for (int i = 0; i < 12; i++)
        c[i] = vec_set((float)i);
    for (size_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < 12; i++) {
            c[i] = vec_fma(a, b, c[i]);
            __asm__ volatile("" : "+v"(c[i]));
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < 12; i++)
        __asm__ volatile("" : : "v"(c[i]));
    return (double)rounds * 12 * VEC_LANES * 2;
}

#endif
#endif
