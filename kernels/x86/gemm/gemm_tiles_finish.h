#ifndef KERNELS_X86_GEMM_GEMM_TILES_FINISH_H
#define KERNELS_X86_GEMM_GEMM_TILES_FINISH_H

#include <immintrin.h>

#include "kernels/x86/gemm/gemm_scaled_vector.h"
#include "kernels/x86/vector/gelu_pieces.h"

/* What becomes of sums that have left their tiles: the epilogues of gemm_tiles_vector.h, which says
 * what the including file defines. Sums lie as rows of 32 columns, "a pair" of tiles, and are
 * finished a few rows at a time beside the multiplications of the next block. Then port 0 alone
 * does float arithmetic and the tiles' own loads take most of the load ports: so what belongs to
 * the columns stays in registers, and what can be an integer operation or a permutation is one. */

#define TILE_PAIR 32 /* columns */
#define TILE_BLOCK_SUMS (2 * AMX_ROWS_MAX * TILE_PAIR)
#define TILE_INLINE static inline __attribute__((always_inline))

/* Of an epilogue; constants wherever it is passed. `is_any`: none of the special ones. */
typedef struct tile_kind {
    kernels_activation activation;
    int is_any, is_u8, has_range, has_zeros;
} tile_kind;

typedef struct tile_run tile_run;
typedef struct tile_block tile_block;
typedef struct tile_sums tile_sums;
typedef void tile_steps_of(const tile_run *r, const tile_block *b, tile_sums *before, int is_wide);

/* What a call works on. */
struct tile_run {
    const dot_job *job;
    tile_steps_of *steps_of; /* for whole pairs of columns */
    size_t tile_rows, whole_steps, steps;
    size_t row;    /* of `ranges` */
    float *ranges; /* [rows][2][VEC_LANES]: smallest and largest results */
    int32_t *sums; /* [TILE_BLOCK_SUMS] */
    uint8_t
        *tails; /* of B: [panels of a group][4 tiles], what is left of k after the whole steps */
};

/* A block: its sums are still in the tiles, and then where the tiles were stored. */
struct tile_sums {
    int32_t *at[4];
    const int32_t *pairs[2]; /* the first row's sums; the second NULL unless the block is wide */
    size_t row, rows;        /* to be finished */
    size_t column;           /* of C */
};

/* What belongs to the 32 columns of a pair. */
typedef struct tile_columns {
    vec scale[2], bias[2];
    vec_i start[2], negative_sum[2];
} tile_columns;

/* `columns` of 32 are there. */
TILE_INLINE void tile_load_starts(const dot_job *d, size_t column, size_t columns, tile_columns *c)
{
    const uint8_t *panel = d->b + column / DOT_PANEL * dot_panel_bytes(d);
    const int32_t *negative_sums = (const int32_t *)panel + column % DOT_PANEL;
#pragma GCC unroll 2
    for (size_t j = 0; TILE_IS_INTEGER && j < 2; j++) {
        size_t at = j * VEC_LANES, n = columns < at ? 0 : columns - at;
        c->start[j] = vec_i_set(0);
        if (d->start)
            c->start[j] = vec_i_load_first(d->start + column + at, n < VEC_LANES ? n : VEC_LANES);
        c->negative_sum[j] = vec_i_load(negative_sums + at);
        if (!d->a_zero) /* all rows' is 128 */
            c->start[j] = vec_i_add(c->start[j], _mm512_slli_epi32(c->negative_sum[j], 7));
    }
}

TILE_INLINE tile_columns tile_load_columns(const dot_job *d, size_t column)
{
    const float *scale = d->epilogue->column_scale, *bias = d->epilogue->bias;
    tile_columns c;
    tile_load_starts(d, column, TILE_PAIR, &c);
#pragma GCC unroll 2
    for (size_t j = 0; j < 2; j++) {
        c.scale[j] = scale ? vec_load(scale + column + j * VEC_LANES) : vec_set(1);
        c.bias[j] = bias ? vec_load(bias + column + j * VEC_LANES) : vec_set(0);
    }
    return c;
}

/* A row's 16 sums, with what they start from and what the row's zero point adds. */
TILE_INLINE vec_i tile_sum(const int has_zeros, const tile_columns *c, size_t j,
                           const int32_t *sums, vec_i zero)
{
    vec_i x = vec_i_load(sums + j * VEC_LANES);
    if (TILE_IS_INTEGER)
        x = vec_i_add(x, c->start[j]);
    if (TILE_IS_INTEGER && has_zeros)
        x = vec_i_add(x, vec_i_mul(zero, c->negative_sum[j]));
    return x;
}

/* Where finishing is, all in registers: stores to C could change whatever is in memory. */
typedef struct tile_cursor {
    size_t rows; /* left of this pair */
    const int32_t *sums;
    const int32_t *a_zero;
    const float *row_scale;
    size_t row_scale_step; /* 0: all rows have the same */
    float *range;
    uint8_t *out;
    size_t out_stride; /* bytes */
    vec_i c_zero;
    tile_columns columns;
} tile_cursor;

TILE_INLINE tile_cursor tile_cursor_at(const tile_kind kind, const tile_run *r, const tile_sums *s,
                                       int pair)
{
    static const float one = 1;
    const dot_job *d = r->job;
    const float *row_scale = d->epilogue->row_scale;
    size_t item = kind.is_u8 ? 1 : sizeof(float), column = s->column + (size_t)pair * TILE_PAIR;
    tile_cursor t = {.rows = s->rows,
                     .sums = s->pairs[pair],
                     .a_zero = d->a_zero + (kind.has_zeros ? s->row : 0),
                     .row_scale = row_scale ? row_scale + s->row : &one,
                     .row_scale_step = row_scale != NULL,
                     .range = r->ranges + (s->row - r->row) * 2 * VEC_LANES,
                     .out = (uint8_t *)d->c + (s->row * d->c_stride + column) * item,
                     .out_stride = d->c_stride * item,
                     .c_zero = vec_i_set(d->c_zero)};
    if (!kind.is_any)
        t.columns = tile_load_columns(d, column);
    return t;
}

/* Lowers and raises a row's range by two vectors: they are sorted by a comparison and blends, which
 * port 5 does. */
TILE_INLINE void tile_extend_range(float *range, const vec x[2])
{
    vec_mask is_less = vec_is_less(x[0], x[1]);
    vec_store(range, vec_min(vec_select(is_less, x[0], x[1]), vec_load(range)));
    vec_store(range + VEC_LANES,
              vec_max(vec_select(is_less, x[1], x[0]), vec_load(range + VEC_LANES)));
}

/* 32 results as bytes. Saturating packs limit them, in quarters that the permutation sorts. */
TILE_INLINE void tile_store_bytes(uint8_t *out, const vec x[2], vec_i zero)
{
    vec_i words = _mm512_packs_epi32(dot_round(x[0], zero), dot_round(x[1], zero));
    vec_i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 0, 0, 0, 0, 0, 0, 0);
    vec_i bytes = _mm512_permutexvar_epi32(order, _mm512_packus_epi16(words, words));
    _mm256_storeu_si256((__m256i *)out, _mm512_castsi512_si256(bytes));
}

/* One row of a whole pair. */
TILE_INLINE void tile_finish_row(const tile_kind kind, tile_cursor *t, const gelu_pieces *g)
{
    vec row_scale = vec_set(*t->row_scale), x[2];
    vec_i zero = vec_i_set(kind.has_zeros ? *t->a_zero : 0);
#pragma GCC unroll 2
    for (size_t j = 0; j < 2; j++) {
        vec sum = tile_to_float(tile_sum(kind.has_zeros, &t->columns, j, t->sums, zero));
        x[j] = vec_fma(sum, vec_mul(row_scale, t->columns.scale[j]), t->columns.bias[j]);
        if (kind.activation == KERNELS_GELU)
            x[j] = vec_gelu_pieces(g, x[j]);
        else
            x[j] = vec_activate(kind.activation, x[j]);
    }
    if (kind.has_range)
        tile_extend_range(t->range, x);
    if (kind.is_u8) {
        tile_store_bytes(t->out, x, t->c_zero);
    } else {
        vec_store((float *)t->out, x[0]);
        vec_store((float *)t->out + VEC_LANES, x[1]);
    }
    t->sums += TILE_PAIR;
    t->a_zero += kind.has_zeros;
    t->row_scale += t->row_scale_step;
    t->range += 2 * VEC_LANES;
    t->out += t->out_stride;
}

/* Any epilogue, any number of columns: rows of a pair. */
static __attribute__((noinline)) void tile_finish_any(const dot_job *d, size_t row, size_t rows,
                                                      size_t column, const int32_t *sums)
{
    size_t columns = d->n - column < TILE_PAIR ? d->n - column : TILE_PAIR;
    tile_columns c;
    tile_load_starts(d, column, columns, &c);
    for (size_t m = row; m < row + rows; m++, sums += TILE_PAIR) {
        vec_i zero = vec_i_set(d->a_zero ? d->a_zero[m] : 0);
        vec_i row_start = vec_i_set(d->row_start ? d->row_start[m] : 0);
        float x[DOT_PANEL] __attribute__((aligned(64))); /* half used: the compiler cannot know */
        for (size_t j = 0; j < 2; j++) {
            vec_i sum = tile_sum(d->a_zero != NULL, &c, j, sums, zero);
            sum = vec_i_add(sum, row_start);
            vec_store(x + j * VEC_LANES,
                      d->output == GEMM_S32 ? vec_from_bits(sum) : tile_to_float(sum));
        }
        dot_finish_of(d, m, column, 1, columns, x, TILE_PAIR);
    }
}

/* Up to `rows` rows more of a pair. */
TILE_INLINE void tile_finish_rows(const tile_kind kind, const tile_run *r, const tile_sums *s,
                                  int pair, tile_cursor *t, const gelu_pieces *g, size_t rows)
{
    size_t count = rows < t->rows ? rows : t->rows;
    if (kind.is_any && count > 0) {
        tile_finish_any(r->job, s->row + s->rows - t->rows, count,
                        s->column + (size_t)pair * TILE_PAIR, t->sums);
        t->sums += count * TILE_PAIR;
    }
    t->rows -= count;
    for (; !kind.is_any && count > 0; count--)
        tile_finish_row(kind, t, g);
}

static void tile_store_ranges(const tile_run *r, size_t rows)
{
    const gemm_scaled_epilogue *e = r->job->epilogue;
    for (size_t i = 0; i < rows; i++) {
        const float *range = r->ranges + i * 2 * VEC_LANES;
        float *low = e->row_low + r->row + i, *high = e->row_high + r->row + i, bottom, top;
        vec_range(vec_load(range), vec_load(range + VEC_LANES), &bottom, &top);
        *low = bottom < *low ? bottom : *low;
        *high = top > *high ? top : *high;
    }
}

#endif
