#ifndef KERNELS_X86_GEMM_GEMM_DOT_VECTOR_H
#define KERNELS_X86_GEMM_GEMM_DOT_VECTOR_H

#include "kernels/x86/gemm/gemm_scaled_vector.h"

#ifdef VEC_LANES

/* The loops of every GEMM of gemm_scaled.h. The including file first defines
 *
 *   dot_step(sum, a, b)
 *     one step: four bytes of a row, the same in each lane, against four bytes of each of VEC_LANES
 *     columns
 *
 *   dot_to_float(sum)
 *     the lanes of the sum as floats
 *
 * Tile: 6 rows x 64 columns in AVX-512's 32 registers (24 sums, 4 of B, A); 6 x 16 in AVX2's 16. */
#ifndef DOT_TILE_ROWS
#define DOT_TILE_ROWS 6
#endif
#define DOT_TILE_VECTORS (VEC_LANES == 16 ? 4 : 2)
#define DOT_TILE_COLUMNS (DOT_TILE_VECTORS * VEC_LANES)
/* A tile prefetches its share of the next panel evenly while it computes: a burst would delay its
 * own loads. */
#define DOT_AHEAD_STEPS 4
/* Unrolled steps: the instructions of the loop compete with the steps for their units. 1 where
 * dot_step is intrinsics, since gcc would mix unrolled steps and run out of registers. */
#ifndef DOT_UNROLLED_STEPS
#define DOT_UNROLLED_STEPS DOT_AHEAD_STEPS
#endif
#define DOT_INLINE static inline __attribute__((always_inline))

/* A run of tiles, one below the other: rows from m, as many columns from n0 on as a tile has, of
 * which `columns` are wanted. */
typedef struct dot_tiles {
    size_t m, n0, columns, steps, tail_bytes;
    const uint8_t *a;             /* the first row's bytes of these steps */
    const uint8_t *groups;        /* B at the first step */
    const int32_t *starts;        /* of the sums, without what a_zero adds */
    const int32_t *negative_sums; /* NULL unless there is a_zero */
    const float *scales, *biases; /* of the columns, for sums that need no more than those */
    float *sums;                  /* else: [rows][DOT_TILE_COLUMNS], int32 for GEMM_S32 */
    int is_finished;              /* sums go through the epilogue, tile by tile */
    /* What to prefetch meanwhile: every DOT_AHEAD_STEPS steps a line of 64 bytes and `ahead_more`
     * others, until ahead_end. */
    const char *ahead, *ahead_end;
    size_t ahead_more;
} dot_tiles;

/* `rows`, `vectors` and `steps` are constants at every call below: the loops unroll, `c` lives in
 * registers. */
DOT_INLINE void dot_start(const int rows, const int vectors, const dot_job *d, const dot_tiles *t,
                          vec_i (*c)[DOT_TILE_VECTORS])
{
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            c[i][j] = vec_i_load(t->starts + j * VEC_LANES);
    }
    if (d->row_start) {
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            vec_i start = vec_i_set(d->row_start[t->m + (size_t)i]);
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++)
                c[i][j] = vec_i_add(c[i][j], start);
        }
    }
    if (!t->negative_sums)
        return;
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        vec_i zero = vec_i_set(d->a_zero[t->m + (size_t)i]);
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            c[i][j] =
                vec_i_add(c[i][j], vec_i_mul(zero, vec_i_load(t->negative_sums + j * VEC_LANES)));
    }
}

DOT_INLINE void dot_steps(const int rows, const int vectors, const int steps, const uint8_t *a,
                          size_t a_stride, const uint8_t *b, vec_i (*c)[DOT_TILE_VECTORS])
{
#pragma GCC unroll 4
    for (int s = 0; s < steps; s++) {
        vec_i y[DOT_TILE_VECTORS];
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            y[j] = vec_i_load(b + s * DOT_STEP_BYTES + 4 * VEC_LANES * j);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            int32_t word;
            memcpy(&word, a + (size_t)i * a_stride + 4 * s, sizeof word);
            vec_i x = vec_i_set(word);
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++)
                c[i][j] = dot_step(c[i][j], x, y[j]);
        }
    }
}

/* The sums of one tile. What is left of a row is filled up with zeros. */
DOT_INLINE void dot_sum(const int rows, const int vectors, const dot_job *d, const dot_tiles *t,
                        vec_i (*c)[DOT_TILE_VECTORS])
{
    const uint8_t *a = t->a, *b = t->groups;
    const char *ahead = t->ahead;
    size_t ahead_step = ahead < t->ahead_end ? 64 : 0;
    size_t left = t->steps;
    for (; left >= DOT_AHEAD_STEPS; left -= DOT_AHEAD_STEPS) {
        _mm_prefetch(ahead, _MM_HINT_T1);
        ahead += ahead_step;
        for (size_t more = t->ahead_more; more > 0; more--, ahead += ahead_step)
            _mm_prefetch(ahead, _MM_HINT_T1);
#pragma GCC unroll 1
        for (int s = 0; s < DOT_AHEAD_STEPS; s += DOT_UNROLLED_STEPS) {
            dot_steps(rows, vectors, DOT_UNROLLED_STEPS, a, d->a_stride, b, c);
            a += 4 * DOT_UNROLLED_STEPS;
            b += DOT_UNROLLED_STEPS * DOT_STEP_BYTES;
        }
    }
    for (; left > 0; left--, a += 4, b += DOT_STEP_BYTES)
        dot_steps(rows, vectors, 1, a, d->a_stride, b, c);
    if (t->tail_bytes > 0) {
        uint8_t tails[DOT_TILE_ROWS][4] = {{0}};
        for (int i = 0; i < rows; i++)
            memcpy(tails[i], a + (size_t)i * d->a_stride, t->tail_bytes);
        dot_steps(rows, vectors, 1, tails[0], 4, b, c);
    }
}

/* The commonest epilogue straight from the registers. */
DOT_INLINE void dot_store(const int rows, const int vectors, const dot_job *d, const dot_tiles *t,
                          vec_i (*c)[DOT_TILE_VECTORS])
{
    float *out = (float *)d->c + t->m * d->c_stride + t->n0;
    const float *row_scales = d->epilogue->row_scale;
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        vec row_scale = vec_set(row_scales ? row_scales[t->m + (size_t)i] : 1);
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) {
            vec scale = vec_mul(row_scale, vec_load(t->scales + j * VEC_LANES));
            vec x = dot_to_float(c[i][j]);
            vec_store(out + (size_t)i * d->c_stride + j * VEC_LANES,
                      vec_fma(x, scale, vec_load(t->biases + j * VEC_LANES)));
        }
    }
}

DOT_INLINE void dot_keep(const int rows, const int vectors, const dot_job *d, const dot_tiles *t,
                         vec_i (*c)[DOT_TILE_VECTORS])
{
    int is_integer = d->output == GEMM_S32;
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            vec_store(t->sums + i * DOT_TILE_COLUMNS + j * VEC_LANES,
                      is_integer ? vec_from_bits(c[i][j]) : dot_to_float(c[i][j]));
    }
}

static __attribute__((noinline)) void dot_finish_tile(const dot_job *d, const dot_tiles *t,
                                                      size_t rows)
{
    dot_finish_of(d, t->m, t->n0, rows, t->columns, t->sums, DOT_TILE_COLUMNS);
}

/* `count` tiles of `rows` rows each; t is left at the row after them. */
DOT_INLINE void dot_tiles_fixed(const int rows, const int vectors, const dot_job *d, dot_tiles *t,
                                size_t count)
{
    for (; count > 0; count--) {
        vec_i c[DOT_TILE_ROWS][DOT_TILE_VECTORS];
        dot_start(rows, vectors, d, t, c);
        dot_sum(rows, vectors, d, t, c);
        if (t->sums)
            dot_keep(rows, vectors, d, t, c);
        else
            dot_store(rows, vectors, d, t, c);
        if (t->is_finished)
            dot_finish_tile(d, t, (size_t)rows);
        t->m += (size_t)rows;
        t->a += (size_t)rows * d->a_stride;
        if (t->ahead < t->ahead_end)
            t->ahead += t->steps / DOT_AHEAD_STEPS * (1 + t->ahead_more) * 64;
    }
}

DOT_INLINE void dot_tiles_wide(const int rows, const dot_job *d, dot_tiles *t, size_t count)
{
#if VEC_LANES == 16
    if (t->columns > 2 * VEC_LANES) {
        dot_tiles_fixed(rows, 4, d, t, count);
        return;
    }
#endif
    if (t->columns > VEC_LANES)
        dot_tiles_fixed(rows, 2, d, t, count);
    else
        dot_tiles_fixed(rows, 1, d, t, count);
}

static void dot_tiles_of(size_t rows, const dot_job *d, dot_tiles *t, size_t count)
{
    switch (rows) {
    case 1:
        dot_tiles_wide(1, d, t, count);
        break;
    case 2:
        dot_tiles_wide(2, d, t, count);
        break;
    case 3:
        dot_tiles_wide(3, d, t, count);
        break;
    case 4:
        dot_tiles_wide(4, d, t, count);
        break;
#if DOT_TILE_ROWS > 4
    case 5:
        dot_tiles_wide(5, d, t, count);
        break;
    case 6:
        dot_tiles_wide(6, d, t, count);
        break;
#endif
    }
}

/* More steps than an integer sum can take: block by block, added as floats. */
static void dot_tile_in_blocks(size_t rows, size_t block, const dot_job *d, dot_tiles *whole)
{
    float total[DOT_TILE_ROWS * DOT_TILE_COLUMNS] __attribute__((aligned(64)));
    memset(total, 0, sizeof total);
    for (size_t first = 0; first < d->steps; first += block) {
        dot_tiles t = *whole;
        int is_last = d->steps - first <= block;
        t.a += 4 * first;
        t.steps = is_last ? d->steps - first : block;
        t.tail_bytes = is_last ? d->tail_bytes : 0;
        t.groups += first * DOT_STEP_BYTES;
        t.ahead += 64 * (first / DOT_AHEAD_STEPS) * (1 + t.ahead_more);
        t.is_finished = 0;
        dot_tiles_of(rows, d, &t, 1);
        for (size_t i = 0; i < rows * DOT_TILE_COLUMNS; i += VEC_LANES)
            vec_store(total + i, vec_add(vec_load(total + i), vec_load(t.sums + i)));
    }
    memcpy(whole->sums, total, sizeof total);
    dot_finish_tile(d, whole, rows);
    whole->m += rows;
    whole->a += rows * d->a_stride;
    whole->ahead += d->steps / DOT_AHEAD_STEPS * (1 + whole->ahead_more) * 64;
}

/* Rows [m0, m1) of one panel: tiles of two heights, one less than the other, the higher first. */
static void dot_strip(const dot_job *d, size_t m1, size_t block, dot_tiles *t)
{
    size_t rows = m1 - t->m, tiles = (rows + DOT_TILE_ROWS - 1) / DOT_TILE_ROWS;
    size_t low = rows / tiles, high_tiles = rows % tiles;
    if (d->steps <= block) {
        dot_tiles_of(low + 1, d, t, high_tiles);
        dot_tiles_of(low, d, t, tiles - high_tiles);
        return;
    }
    for (size_t i = 0; i < tiles; i++)
        dot_tile_in_blocks(i < high_tiles ? low + 1 : low, block, d, t);
}

static void dot_panel(const dot_job *d, size_t m0, size_t m1, size_t n0, size_t block)
{
    const gemm_scaled_epilogue *e = d->epilogue;
    float sums[DOT_TILE_ROWS * DOT_TILE_COLUMNS] __attribute__((aligned(64)));
    float scales[DOT_PANEL] __attribute__((aligned(64)));
    float biases[DOT_PANEL] __attribute__((aligned(64)));
    int32_t starts[DOT_PANEL] __attribute__((aligned(64))) = {0};
    size_t bytes = dot_panel_bytes(d);
    const uint8_t *panel = d->b + n0 / DOT_PANEL * bytes;
    size_t columns = d->n - n0 < DOT_PANEL ? d->n - n0 : DOT_PANEL;
    if (d->b_header_bytes)
        dot_fill_starts(d, n0, columns, (const int32_t *)panel, starts);
    int is_direct = dot_is_direct(d) && columns == DOT_PANEL && d->steps <= block;
    for (size_t j = 0; is_direct && j < DOT_PANEL; j++) {
        scales[j] = e->column_scale ? e->column_scale[n0 + j] : 1;
        biases[j] = e->bias ? e->bias[n0 + j] : 0;
    }
    size_t strips = (columns + DOT_TILE_COLUMNS - 1) / DOT_TILE_COLUMNS;
    size_t tiles = strips * ((m1 - m0 + DOT_TILE_ROWS - 1) / DOT_TILE_ROWS);
    size_t times = tiles * (d->steps / DOT_AHEAD_STEPS); /* that some of the next panel is asked */
    dot_tiles t = {.steps = d->steps,
                   .tail_bytes = d->tail_bytes,
                   .sums = is_direct ? NULL : sums,
                   .is_finished = !is_direct,
                   .ahead = (const char *)panel + bytes,
                   .ahead_end = (const char *)panel + 2 * bytes,
                   .ahead_more = times == 0 ? 0 : (bytes / 64 - 1) / (times + times / 8)};
    for (size_t j = 0; j < columns; j += DOT_TILE_COLUMNS) {
        t.m = m0;
        t.a = d->a + m0 * d->a_stride;
        t.n0 = n0 + j;
        t.columns = columns - j < DOT_TILE_COLUMNS ? columns - j : DOT_TILE_COLUMNS;
        t.groups = panel + d->b_header_bytes + 4 * j;
        t.starts = starts + j;
        t.negative_sums = d->a_zero ? (const int32_t *)panel + j : NULL;
        t.scales = scales + j;
        t.biases = biases + j;
        dot_strip(d, m1, block, &t);
    }
}

/* `block`: the most steps of one integer sum. Rows go in blocks whose part of A stays in the L2
 * cache while all panels pass. */
static void dot_run(const dot_job *d, size_t block)
{
    size_t rows = 262144 / (4 * d->steps + 4) / DOT_TILE_ROWS * DOT_TILE_ROWS;
    rows = rows < 8 * DOT_TILE_ROWS ? 8 * DOT_TILE_ROWS : rows;
    for (size_t m0 = 0; m0 < d->m; m0 += rows) {
        size_t m1 = d->m - m0 < rows ? d->m : m0 + rows;
        for (size_t n0 = 0; n0 < d->n; n0 += DOT_PANEL)
            dot_panel(d, m0, m1, n0, block);
    }
}

/* `rounds` times twelve independent steps on registers: what the units can do at best. Returns the
 * operations done, a multiplication and an addition each counting one. */
static inline double dot_peak(size_t rounds, double items_per_step)
{
    vec_i c[12], a = vec_i_set(0x01010101), b = vec_i_set(0x02020202);
#pragma GCC unroll 12
    for (int i = 0; i < 12; i++)
        c[i] = vec_i_set(i);
    for (size_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < 12; i++) {
            __asm__ volatile("" : "+v"(c[i]), "+v"(a)); /* as if new: nothing is shared */
            c[i] = dot_step(c[i], a, b);
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < 12; i++)
        __asm__ volatile("" : : "v"(c[i]));
    return (double)rounds * 12 * VEC_LANES * 2 * items_per_step;
}

#endif
#endif
