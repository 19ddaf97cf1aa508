#ifndef KERNELS_X86_GEMM_DOT_VECTOR_H
#define KERNELS_X86_GEMM_DOT_VECTOR_H

#include "kernels/x86/gemm_scaled_vector.h"

#ifdef VEC_LANES

/* The loops of every gemm_scaled.h product. The including file first defines
 *   dot_step(sum, a, b)     one step: four bytes of a row, the same in each lane, against four
 * bytes of each of VEC_LANES columns dot_to_float(sum)       the sum's lanes as floats Tile: 6 rows
 * x 64 columns in AVX-512's 32 registers (24 sums, 4 of B, A); 6 x 16 in AVX2's 16. */
#ifndef DOT_TILE_ROWS
#define DOT_TILE_ROWS 6
#endif
#define DOT_TILE_VECTORS (VEC_LANES == 16 ? 4 : 2)
#define DOT_TILE_COLUMNS (DOT_TILE_VECTORS * VEC_LANES)
/* A tile asks for its share of the next panel while it computes, evenly: a burst would hold up its
 * own misses. */
#define DOT_AHEAD_STEPS 4
#define DOT_INLINE static inline __attribute__((always_inline))

/* Where a tile is: rows from m, columns from n0, of which `columns` are wanted. A comes in two
 * parts, whole steps and then what is left of a row, filled up with zeros. */
typedef struct dot_part {
    const uint8_t *a;
    size_t a_stride, steps;
} dot_part;

typedef struct dot_tile {
    size_t m, n0, columns;
    dot_part parts[2];
    const uint8_t *groups;        /* B at the first step */
    const int32_t *starts;        /* of the sums, without what a_zero adds; NULL: 0 */
    const int32_t *negative_sums; /* NULL unless there is a_zero */
    float *
        sums; /* [rows][DOT_TILE_COLUMNS], int32 for GEMM_S32: to be finished; or NULL, and then: */
    const float *scales, *biases; /* of the tile's columns */
    float row_scales[DOT_TILE_ROWS];
    const char *ahead;
    size_t ahead_lines; /* of 64 bytes from `ahead` on, every DOT_AHEAD_STEPS steps */
} dot_tile;

DOT_INLINE vec_i dot_start(const dot_job *d, const dot_tile *t, int i, int j)
{
    vec_i x = t->starts ? vec_i_load(t->starts + j * VEC_LANES) : vec_i_set(0);
    if (!t->negative_sums)
        return x;
    vec_i zero = vec_i_set(d->a_zero[t->m + (size_t)i]);
    return vec_i_add(x, vec_i_mul(zero, vec_i_load(t->negative_sums + j * VEC_LANES)));
}

/* `rows` and `vectors` are constants at every call: the loops unroll, `c` lives in registers. */
DOT_INLINE void dot_tile_fixed(const int rows, const int vectors, const dot_job *d,
                               const dot_tile *t)
{
    vec_i c[DOT_TILE_ROWS][DOT_TILE_VECTORS];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            c[i][j] = dot_start(d, t, i, j);
    }
    const uint8_t *b = t->groups;
    const char *ahead = t->ahead;
    for (const dot_part *part = t->parts; part < t->parts + 2; part++) {
        const uint8_t *a = part->a, *end = a + 4 * part->steps;
        while (a < end) {
            const uint8_t *stop = end - a < 4 * DOT_AHEAD_STEPS ? end : a + 4 * DOT_AHEAD_STEPS;
            for (size_t line = 0; line < t->ahead_lines; line++, ahead += 64)
                _mm_prefetch(ahead, _MM_HINT_T1);
            for (; a < stop; a += 4) {
                vec_i y[DOT_TILE_VECTORS];
#pragma GCC unroll 4
                for (int j = 0; j < vectors; j++)
                    y[j] = vec_i_load(b + 4 * VEC_LANES * j);
                b += DOT_STEP_BYTES;
#pragma GCC unroll 8
                for (int i = 0; i < rows; i++) {
                    int32_t word;
                    memcpy(&word, a + (size_t)i * part->a_stride, sizeof word);
                    vec_i x = vec_i_set(word);
#pragma GCC unroll 4
                    for (int j = 0; j < vectors; j++)
                        c[i][j] = dot_step(c[i][j], x, y[j]);
                }
            }
        }
    }
    if (!t->sums) { /* the commonest epilogue straight from the registers: the rest of C can wait */
        float *out = (float *)d->c + t->m * d->c_stride + t->n0;
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            vec row_scale = vec_set(t->row_scales[i]);
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++) {
                vec scale = vec_mul(row_scale, vec_load(t->scales + j * VEC_LANES));
                vec x = dot_to_float(c[i][j]);
                vec_store(out + (size_t)i * d->c_stride + j * VEC_LANES,
                          vec_fma(x, scale, vec_load(t->biases + j * VEC_LANES)));
            }
        }
        return;
    }
    float *sums = t->sums;
    int is_integer = d->output == GEMM_S32;
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            vec_store(sums + i * DOT_TILE_COLUMNS + j * VEC_LANES,
                      is_integer ? vec_from_bits(c[i][j]) : dot_to_float(c[i][j]));
    }
}

DOT_INLINE void dot_tile_rows(const int rows, const dot_job *d, const dot_tile *t)
{
#if VEC_LANES == 16
    if (t->columns > 2 * VEC_LANES) {
        dot_tile_fixed(rows, 4, d, t);
        return;
    }
#endif
    if (t->columns > VEC_LANES)
        dot_tile_fixed(rows, 2, d, t);
    else
        dot_tile_fixed(rows, 1, d, t);
}

static void dot_tile_of(size_t rows, const dot_job *d, const dot_tile *t)
{
    switch (rows) {
    case 1:
        dot_tile_rows(1, d, t);
        break;
    case 2:
        dot_tile_rows(2, d, t);
        break;
    case 3:
        dot_tile_rows(3, d, t);
        break;
    case 4:
        dot_tile_rows(4, d, t);
        break;
#if DOT_TILE_ROWS > 4
    case 5:
        dot_tile_rows(5, d, t);
        break;
    case 6:
        dot_tile_rows(6, d, t);
        break;
#endif
    }
}

/* More steps than an integer sum can take: block by block, added as floats. */
static void dot_tile_in_blocks(size_t rows, size_t block, const dot_job *d, const dot_tile *whole)
{
    float total[DOT_TILE_ROWS * DOT_TILE_COLUMNS] __attribute__((aligned(64)));
    memset(total, 0, sizeof total);
    size_t steps = whole->parts[0].steps;
    for (size_t first = 0; first < steps; first += block) {
        dot_tile t = *whole;
        t.parts[0].a += 4 * first;
        t.parts[0].steps = steps - first < block ? steps - first : block;
        t.parts[1].steps = first + block < steps ? 0 : t.parts[1].steps;
        t.groups += first * DOT_STEP_BYTES;
        t.ahead += 64 * (first / DOT_AHEAD_STEPS) * t.ahead_lines;
        dot_tile_of(rows, d, &t);
        for (size_t i = 0; i < rows * DOT_TILE_COLUMNS; i += VEC_LANES)
            vec_store(total + i, vec_add(vec_load(total + i), vec_load(t.sums + i)));
    }
    memcpy(whole->sums, total, sizeof total);
}

static void dot_panel(const dot_job *d, size_t m0, size_t m1, size_t n0, size_t block)
{
    float sums[DOT_TILE_ROWS * DOT_TILE_COLUMNS] __attribute__((aligned(64)));
    size_t bytes = dot_panel_bytes(d);
    const uint8_t *panel = d->b + n0 / DOT_PANEL * bytes, *groups = panel + d->b_header_bytes;
    size_t columns = d->n - n0 < DOT_PANEL ? d->n - n0 : DOT_PANEL;
    int32_t starts[DOT_PANEL] __attribute__((aligned(64))) = {0};
    if (d->b_header_bytes)
        dot_fill_starts(d, n0, columns, (const int32_t *)panel, starts);
    float scales[DOT_PANEL] __attribute__((aligned(64)));
    float biases[DOT_PANEL] __attribute__((aligned(64)));
    int is_direct = dot_is_direct(d) && columns == DOT_PANEL && d->steps <= block;
    for (size_t j = 0; is_direct && j < DOT_PANEL; j++) {
        scales[j] = d->epilogue->column_scale ? d->epilogue->column_scale[n0 + j] : 1;
        biases[j] = d->epilogue->bias ? d->epilogue->bias[n0 + j] : 0;
    }
    size_t tiles = (m1 - m0 + DOT_TILE_ROWS - 1) / DOT_TILE_ROWS;
    size_t ahead_bytes = n0 + DOT_PANEL < d->n ? bytes : 0, ahead = 0; /* of the next panel */
    size_t strips = (columns + DOT_TILE_COLUMNS - 1) / DOT_TILE_COLUMNS;
    size_t times = d->steps / DOT_AHEAD_STEPS + 1; /* that a tile asks */
    for (size_t m = m0, rows; tiles > 0; m += rows, tiles--) {
        rows = (m1 - m + tiles - 1) / tiles;
        const uint8_t *a = d->a + m * d->a_stride;
        uint8_t tails[DOT_TILE_ROWS][4] = {{0}};
        for (size_t i = 0; d->tail_bytes && i < rows; i++)
            memcpy(tails[i], a + i * d->a_stride + 4 * d->steps, d->tail_bytes);
        for (size_t j = 0; j < columns; j += DOT_TILE_COLUMNS) {
            size_t width = columns - j < DOT_TILE_COLUMNS ? columns - j : DOT_TILE_COLUMNS;
            dot_tile t = {.m = m, .n0 = n0 + j, .columns = width, .groups = groups + 4 * j};
            t.parts[0] = (dot_part){a, d->a_stride, d->steps};
            t.parts[1] = (dot_part){tails[0], 4, d->tail_bytes > 0};
            t.negative_sums = d->a_zero ? (const int32_t *)panel + j : NULL;
            t.starts = d->b_header_bytes ? starts + j : NULL;
            t.sums = is_direct ? NULL : sums;
            t.ahead = (const char *)panel + bytes + ahead;
            t.ahead_lines = (ahead_bytes - ahead + 64 * times * tiles * strips - 1) /
                            (64 * times * tiles * strips);
            ahead += 64 * times * t.ahead_lines;
            ahead = ahead < ahead_bytes ? ahead : ahead_bytes;
            t.scales = scales + j;
            t.biases = biases + j;
            for (size_t i = 0; i < rows; i++)
                t.row_scales[i] = d->epilogue->row_scale ? d->epilogue->row_scale[m + i] : 1;
            if (d->steps > block)
                dot_tile_in_blocks(rows, block, d, &t);
            else
                dot_tile_of(rows, d, &t);
            if (!is_direct)
                dot_finish_of(d, m, n0 + j, rows, width, sums, DOT_TILE_COLUMNS);
        }
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
