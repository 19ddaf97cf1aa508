#ifndef KERNELS_X86_GEMM_TILES_VECTOR_H
#define KERNELS_X86_GEMM_TILES_VECTOR_H

#include <immintrin.h>

#include "kernels/x86/amx.h"
#include "kernels/x86/gemm_scaled_vector.h"

/* The loops of every gemm_scaled.h product on AMX tiles. The including file first defines
 *   TILE_DOT(sums, a, b)     the instruction, by tile numbers
 *   tile_to_float(sums)      16 sums as floats
 *   TILE_IS_INTEGER          1: sums have starts and zero points, GELU may be the fast one; or 0
 *
 * A block is two tiles of rows x 32 columns of a panel, or one x 64 where a single tile of rows is
 * left: four tiles of sums either way. All tiles have the same number of rows, so that a call needs
 * one configuration; the last one overlaps the one before, whose sums it computes again.
 *
 * Blocks are pipelined by hand. The sums of a block leave the tiles during the first step of the
 * next, each just before its tile is needed (four stores in a row would stall the multiplications
 * by a seventh at k = 384). During the other steps the vector units finish the rows of those sums,
 * some per step, close enough for the reorder buffer (512 instructions) to keep both units busy. */

#define TILE_STEP_BYTES AMX_ROW_BYTES /* of a row of A */
#define TILE_GROUPS 16                /* of four bytes: a step's rows of B */
#define TILE_PAIR 32                  /* columns of two tiles */
#define TILE_BLOCK_SUMS (2 * AMX_ROWS_MAX * TILE_PAIR)
#define TILE_SUMS_STRIDE (TILE_PAIR * sizeof(int32_t))
#define TILE_RUN_BLOCKS 8  /* of rows that pass while a panel stays in the L1 cache */
#define TILE_CHUNK_STEPS 8 /* of k: 32 KiB of a panel, or half of one */
#define TILE_INLINE static inline __attribute__((always_inline))

typedef struct tile_run tile_run;
typedef struct tile_sums tile_sums;
typedef void tile_finish(const tile_run *r, tile_sums *s, size_t rows);

typedef struct tile_panel {
    size_t n0, columns;
    const uint8_t *groups;        /* B at the first step */
    const int32_t *negative_sums; /* NULL unless rows have zero points of their own */
    tile_finish *finish;
    int32_t starts[DOT_PANEL] __attribute__((aligned(64)));
    float scales[DOT_PANEL] __attribute__((aligned(64)));
    float biases[DOT_PANEL] __attribute__((aligned(64)));
    uint8_t tail[TILE_GROUPS * DOT_STEP_BYTES] __attribute__((aligned(64)));
} tile_panel;

/* A block whose sums are in the tiles, to be stored and then finished. */
struct tile_sums {
    int32_t *at[4];
    const tile_panel *panel;
    const int32_t *next; /* sums of the next row; those of a second pair are half a block further */
    size_t row, rows;    /* to be finished */
    size_t column;       /* within the panel */
    int pairs;
};

/* What a call works on. */
struct tile_run {
    const dot_job *job;
    size_t tile_rows, whole_steps, steps, chunks;
    size_t row;    /* of `ranges` */
    float *ranges; /* [rows][2][VEC_LANES]: smallest and largest results */
    int32_t *sums, *partial_sums;
};

/* One pass over k, or a chunk of it. */
typedef struct tile_block {
    const uint8_t *a[2], *tails[2]; /* of the two tiles of rows; tails are [AMX_ROWS_MAX][64] */
    const uint8_t *b, *b_tail;
    size_t first_step, end_step, whole_steps, a_stride;
    int32_t *from;     /* sums of the chunks before; NULL: zero */
    size_t below;      /* in `from`: to the sums of the second tile of rows, or the second pair */
    const char *ahead; /* the part of the next panel to be prefetched: `ahead_lines` per step */
    size_t ahead_lines;
} tile_block;

typedef struct tile_operands {
    const uint8_t *a[2], *b;
    size_t a_stride;
} tile_operands;

TILE_INLINE tile_operands tile_operands_at(const tile_block *b, size_t step)
{
    if (step < b->whole_steps)
        return (tile_operands){{b->a[0] + step * TILE_STEP_BYTES, b->a[1] + step * TILE_STEP_BYTES},
                               b->b + step * TILE_GROUPS * DOT_STEP_BYTES,
                               b->a_stride};
    return (tile_operands){{b->tails[0], b->tails[1]}, b->b_tail, TILE_STEP_BYTES};
}

/* Stores what a tile of sums holds for the block before, and begins the next. */
#define TILE_BEGIN(tile, before, b, from_at)                                                       \
    do {                                                                                           \
        AMX_STORE(tile, (before)->at[tile], TILE_SUMS_STRIDE);                                     \
        if ((b)->from)                                                                             \
            AMX_LOAD(tile, (b)->from + (from_at), TILE_SUMS_STRIDE);                               \
        else                                                                                       \
            AMX_ZERO(tile);                                                                        \
    } while (0)

/* One step of a block, with `share` rows of the block before finished after each half of it. */
TILE_INLINE void tile_step(const int is_wide, const int is_first, const tile_run *r,
                           const tile_block *b, tile_sums *before, size_t step, size_t share)
{
    tile_operands o = tile_operands_at(b, step);
    AMX_LOAD(4, o.a[0], o.a_stride);
    AMX_LOAD(6, o.b, DOT_STEP_BYTES);
    if (is_first)
        TILE_BEGIN(0, before, b, 0);
    TILE_DOT(0, 4, 6);
    AMX_LOAD(7, o.b + 64, DOT_STEP_BYTES);
    if (is_first)
        TILE_BEGIN(1, before, b, 16);
    TILE_DOT(1, 4, 7);
    for (size_t i = step * b->ahead_lines; i < (step + 1) * b->ahead_lines; i++)
        _mm_prefetch(b->ahead + 64 * i, _MM_HINT_T1);
    if (!is_first && before->rows > 0)
        before->panel->finish(r, before, share);
    if (is_wide)
        AMX_LOAD(6, o.b + 128, DOT_STEP_BYTES);
    else
        AMX_LOAD(5, o.a[1], o.a_stride);
    if (is_first)
        TILE_BEGIN(2, before, b, b->below);
    if (is_wide) {
        TILE_DOT(2, 4, 6);
        AMX_LOAD(7, o.b + 192, DOT_STEP_BYTES);
    } else {
        TILE_DOT(2, 5, 6);
    }
    if (is_first)
        TILE_BEGIN(3, before, b, b->below + 16);
    if (is_wide)
        TILE_DOT(3, 4, 7);
    else
        TILE_DOT(3, 5, 7);
    if (!is_first && before->rows > 0)
        before->panel->finish(r, before, share);
}

TILE_INLINE void tile_steps(const int is_wide, const tile_run *r, const tile_block *b,
                            tile_sums *before)
{
    unsigned slots = 2 * (unsigned)(b->end_step - b->first_step - 1);
    unsigned share = slots ? ((unsigned)before->rows + slots - 1) / slots : 0;
    tile_step(is_wide, 1, r, b, before, b->first_step, 0);
    for (size_t step = b->first_step + 1; step < b->end_step; step++)
        tile_step(is_wide, 0, r, b, before, step, share);
    if (before->rows > 0)
        before->panel->finish(r, before, before->rows);
}

/* After the last block. */
static void tile_flush(const tile_run *r, tile_sums *s)
{
    AMX_STORE(0, s->at[0], TILE_SUMS_STRIDE);
    AMX_STORE(1, s->at[1], TILE_SUMS_STRIDE);
    AMX_STORE(2, s->at[2], TILE_SUMS_STRIDE);
    AMX_STORE(3, s->at[3], TILE_SUMS_STRIDE);
    if (s->rows > 0)
        s->panel->finish(r, s, s->rows);
}

/* The sums of a row and 16 columns as numbers, and what begins them added. */
TILE_INLINE vec_i tile_sum(const int has_zeros, const tile_panel *p, const int32_t *sums,
                           size_t column, vec_i zero)
{
    vec_i x = vec_i_load(sums);
#if TILE_IS_INTEGER
    x = vec_i_add(x, vec_i_load(p->starts + column));
    if (has_zeros)
        x = vec_i_add(x, vec_i_mul(zero, vec_i_load(p->negative_sums + column)));
#else
    (void)p, (void)column, (void)zero, (void)has_zeros;
#endif
    return x;
}

/* Rows of whole pairs, stored as floats or bytes: the commonest epilogues. */
TILE_INLINE void tile_finish_pairs(const kernels_activation activation, const int is_bytes,
                                   const int has_range, const int has_zeros, const tile_run *r,
                                   tile_sums *s, size_t rows)
{
    const dot_job *d = r->job;
    const tile_panel *p = s->panel;
    const float *row_scales = d->epilogue->row_scale;
    const vec_i c_zero = vec_i_set(d->c_zero);
    const int32_t *sums = s->next;
    size_t m = s->row, count = rows < s->rows ? rows : s->rows, at = m * d->c_stride + p->n0;
    size_t first_column = s->column, columns = (size_t)s->pairs * TILE_PAIR;
    for (size_t end = m + count; m < end; m++) {
        vec row_scale = vec_set(row_scales ? row_scales[m] : 1);
        vec_i zero = vec_i_set(has_zeros ? d->a_zero[m] : 0);
        float *range = r->ranges + (m - r->row) * 2 * VEC_LANES;
        vec low = vec_set(0), high = low;
        if (has_range) {
            low = vec_load(range);
            high = vec_load(range + VEC_LANES);
        }
        for (size_t pair = 0; pair < columns; pair += TILE_PAIR) {
#pragma GCC unroll 2
            for (size_t j = 0; j < TILE_PAIR; j += VEC_LANES) {
                size_t column = first_column + pair + j;
                const int32_t *from = sums + pair * (TILE_BLOCK_SUMS / 2 / TILE_PAIR) + j;
                vec_i sum = tile_sum(has_zeros, p, from, column, zero);
                vec scale = vec_mul(row_scale, vec_load(p->scales + column));
                vec x = vec_fma(tile_to_float(sum), scale, vec_load(p->biases + column));
                x = TILE_IS_INTEGER && activation == KERNELS_GELU ? vec_gelu_fast(x)
                                                                  : vec_activate(activation, x);
                if (has_range) {
                    low = vec_min(x, low);
                    high = vec_max(x, high);
                }
                if (is_bytes)
                    vec_i_store_u8((uint8_t *)d->c + at + column, VEC_LANES, dot_round(x, c_zero));
                else
                    vec_store((float *)d->c + at + column, x);
            }
        }
        if (has_range) {
            vec_store(range, low);
            vec_store(range + VEC_LANES, high);
        }
        sums += TILE_PAIR;
        at += d->c_stride;
    }
    s->next = sums;
    s->row = m;
    s->rows -= count;
}

static void tile_finish_plain(const tile_run *r, tile_sums *s, size_t rows)
{
    tile_finish_pairs(KERNELS_IDENTITY, 0, 0, 0, r, s, rows);
}

static void tile_finish_gelu(const tile_run *r, tile_sums *s, size_t rows)
{
    tile_finish_pairs(KERNELS_GELU, 0, 0, 0, r, s, rows);
}

static void tile_finish_gelu_range(const tile_run *r, tile_sums *s, size_t rows)
{
    tile_finish_pairs(KERNELS_GELU, 0, 1, 0, r, s, rows);
}

#if TILE_IS_INTEGER
static void tile_finish_zeros(const tile_run *r, tile_sums *s, size_t rows)
{
    tile_finish_pairs(KERNELS_IDENTITY, 0, 0, 1, r, s, rows);
}
#endif

#if TILE_IS_INTEGER
static void tile_finish_bytes_plain(const tile_run *r, tile_sums *s, size_t rows)
{
    tile_finish_pairs(KERNELS_IDENTITY, 1, 0, 0, r, s, rows);
}

static void tile_finish_bytes_zeros(const tile_run *r, tile_sums *s, size_t rows)
{
    tile_finish_pairs(KERNELS_IDENTITY, 1, 0, 1, r, s, rows);
}

static void tile_finish_bytes_relu(const tile_run *r, tile_sums *s, size_t rows)
{
    tile_finish_pairs(KERNELS_RELU, 1, 0, 0, r, s, rows);
}

static void tile_finish_bytes_relu_zeros(const tile_run *r, tile_sums *s, size_t rows)
{
    tile_finish_pairs(KERNELS_RELU, 1, 0, 1, r, s, rows);
}

static tile_finish *tile_finish_for_bytes(const dot_job *d)
{
    if (d->epilogue->activation == KERNELS_RELU)
        return d->a_zero ? tile_finish_bytes_relu_zeros : tile_finish_bytes_relu;
    return d->a_zero ? tile_finish_bytes_zeros : tile_finish_bytes_plain;
}
#endif

/* Any epilogue, any number of columns. */
static void tile_finish_any(const tile_run *r, tile_sums *s, size_t rows)
{
    const dot_job *d = r->job;
    const tile_panel *p = s->panel;
    for (; rows > 0 && s->rows > 0; rows--, s->rows--, s->row++, s->next += TILE_PAIR) {
        vec_i zero = vec_i_set(d->a_zero ? d->a_zero[s->row] : 0);
        for (int pair = 0; pair < s->pairs; pair++) {
            float x[TILE_PAIR];
            size_t column = s->column + (size_t)pair * TILE_PAIR;
            for (size_t j = 0; j < TILE_PAIR; j += VEC_LANES) {
                const int32_t *sums = s->next + (size_t)pair * TILE_BLOCK_SUMS / 2 + j;
                vec_i sum = tile_sum(p->negative_sums != NULL, p, sums, column + j, zero);
                vec_store(x + j, d->output == GEMM_S32 ? vec_from_bits(sum) : tile_to_float(sum));
            }
            if (column < p->columns)
                dot_finish_of(d, s->row, p->n0 + column, 1,
                              p->columns - column < TILE_PAIR ? p->columns - column : TILE_PAIR, x,
                              TILE_PAIR);
        }
    }
}

static tile_finish *tile_finish_for(const dot_job *d, size_t columns)
{
    const gemm_scaled_epilogue *e = d->epilogue;
    if (d->output == GEMM_S32 || e->residual || columns % TILE_PAIR != 0)
        return tile_finish_any;
#if TILE_IS_INTEGER
    if (d->output == GEMM_U8 && !e->row_low &&
        (e->activation == KERNELS_IDENTITY || e->activation == KERNELS_RELU))
        return tile_finish_for_bytes(d);
#endif
    if (d->output != GEMM_F32)
        return tile_finish_any;
    if (e->activation == KERNELS_GELU && !d->a_zero)
        return e->row_low ? tile_finish_gelu_range : tile_finish_gelu;
    if (e->activation != KERNELS_IDENTITY || e->row_low)
        return tile_finish_any;
#if TILE_IS_INTEGER
    if (d->a_zero)
        return tile_finish_zeros;
#endif
    return tile_finish_plain;
}

static void tile_panel_begin(const tile_run *r, size_t n0, tile_panel *p)
{
    const dot_job *d = r->job;
    const uint8_t *panel = d->b + n0 / DOT_PANEL * dot_panel_bytes(d);
    const gemm_scaled_epilogue *e = d->epilogue;
    size_t tail_groups = d->steps % TILE_GROUPS + (d->tail_bytes > 0);
    p->n0 = n0;
    p->columns = d->n - n0 < DOT_PANEL ? d->n - n0 : DOT_PANEL;
    p->groups = panel + d->b_header_bytes;
    p->negative_sums = d->a_zero ? (const int32_t *)panel : NULL;
    p->finish = tile_finish_for(d, p->columns);
    memset(p->starts, 0, sizeof p->starts);
    if (d->b_header_bytes)
        dot_fill_starts(d, n0, p->columns, (const int32_t *)panel, p->starts);
    for (size_t j = 0; j < p->columns && d->output != GEMM_S32; j += VEC_LANES) {
        size_t n = p->columns - j < VEC_LANES ? p->columns - j : VEC_LANES;
        const float *scale = e->column_scale, *bias = e->bias;
        vec_store(p->scales + j, scale ? vec_load_first(scale + n0 + j, n) : vec_set(1));
        vec_store(p->biases + j, bias ? vec_load_first(bias + n0 + j, n) : vec_set(0));
    }
    if (r->steps > r->whole_steps) {
        memcpy(p->tail, p->groups + r->whole_steps * TILE_GROUPS * DOT_STEP_BYTES,
               tail_groups * DOT_STEP_BYTES);
        memset(p->tail + tail_groups * DOT_STEP_BYTES, 0,
               (TILE_GROUPS - tail_groups) * DOT_STEP_BYTES);
    }
}

/* What is left of rows of A after the whole steps, filled up with zeros. */
static void tile_copy_tails(const tile_run *r, const uint8_t *a, uint8_t *tails)
{
    const dot_job *d = r->job;
    size_t bytes = 4 * d->steps + d->tail_bytes - r->whole_steps * TILE_STEP_BYTES;
    __mmask64 wanted = ((__mmask64)1 << bytes) - 1;
    for (size_t i = 0; i < r->tile_rows; i++) {
        const uint8_t *from = a + i * d->a_stride + r->whole_steps * TILE_STEP_BYTES;
        _mm512_storeu_si512(tails + i * TILE_STEP_BYTES, _mm512_maskz_loadu_epi8(wanted, from));
    }
}

/* Rows of one block: `tiles` (1 or 2) tiles from the `tile`th on. */
typedef struct tile_rows {
    size_t start[2], first, count; /* of the tiles; of the rows that no tile before has */
    int is_wide;
} tile_rows;

static tile_rows tile_rows_of(const tile_run *r, size_t tile, size_t tiles)
{
    size_t m = r->job->m, last = m - r->tile_rows, first = tile * r->tile_rows;
    size_t end = first + tiles * r->tile_rows;
    tile_rows t = {.first = first, .is_wide = tiles == 1};
    t.start[0] = first < last ? first : last;
    t.start[1] = t.is_wide || first + r->tile_rows > last ? last : first + r->tile_rows;
    t.count = (end < m ? end : m) - first;
    return t;
}

/* One chunk of k: the blocks of a panel's columns, after each other. */
static void tile_chunk(const tile_run *r, const tile_panel *p, const tile_rows *blocks,
                       size_t block_count, size_t chunk, tile_sums *before)
{
    const dot_job *d = r->job;
    uint8_t tails[2][AMX_ROWS_MAX * TILE_STEP_BYTES] __attribute__((aligned(64)));
    size_t first_step = r->steps * chunk / r->chunks, end_step = r->steps * (chunk + 1) / r->chunks;
    int is_last = chunk + 1 == r->chunks;
    /* The next panel comes from the L3 cache while this one is used: an equal part in each step. */
    size_t panel_lines = p->n0 + DOT_PANEL < d->n ? dot_panel_bytes(d) / 64 : 0;
    size_t block_steps = r->steps * block_count * (p->columns > TILE_PAIR ? 2 : 1);
    size_t ahead_lines = (panel_lines + block_steps - 1) / block_steps, block_number = 0;
    const char *ahead = (const char *)p->groups - d->b_header_bytes + dot_panel_bytes(d);
    for (size_t i = 0; i < block_count; i++) {
        const tile_rows *t = &blocks[i];
        const uint8_t *a[2] = {d->a + t->start[0] * d->a_stride, d->a + t->start[1] * d->a_stride};
        if (is_last && r->steps > r->whole_steps) {
            tile_copy_tails(r, a[0], tails[0]);
            tile_copy_tails(r, a[1], tails[1]);
        }
        for (size_t column = 0; column < p->columns; column += t->is_wide ? DOT_PANEL : TILE_PAIR) {
            int32_t *partial = r->partial_sums + (2 * i + (column > 0)) * TILE_BLOCK_SUMS;
            tile_block b = {.a = {a[0], a[1]},
                            .tails = {tails[0], tails[1]},
                            .b = p->groups + 4 * column,
                            .b_tail = p->tail + 4 * column,
                            .first_step = first_step,
                            .end_step = end_step,
                            .whole_steps = r->whole_steps,
                            .a_stride = d->a_stride,
                            .ahead = ahead + 64 * ahead_lines * r->steps * block_number++,
                            .ahead_lines = ahead_lines,
                            .from = chunk > 0 ? partial : NULL,
                            .below = t->is_wide ? TILE_BLOCK_SUMS / 2
                                                : (t->start[1] - t->start[0]) * TILE_PAIR};
            if (t->is_wide)
                tile_steps(1, r, &b, before);
            else
                tile_steps(0, r, &b, before);
            int32_t *to = is_last ? r->sums : partial;
            *before = (tile_sums){.at = {to, to + 16, to + b.below, to + b.below + 16},
                                  .panel = p,
                                  .next = to + (t->first - t->start[0]) * TILE_PAIR,
                                  .row = t->first,
                                  .rows = is_last ? t->count : 0,
                                  .column = column,
                                  .pairs = t->is_wide && p->columns > TILE_PAIR ? 2 : 1};
        }
    }
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

/* All columns of the rows of up to TILE_RUN_BLOCKS blocks. */
static void tile_run_blocks(tile_run *r, const tile_rows *blocks, size_t block_count)
{
    const dot_job *d = r->job;
    const tile_rows *last = &blocks[block_count - 1];
    int has_range = d->output != GEMM_S32 && d->epilogue->row_low;
    tile_panel panels[2];
    tile_sums before = {.at = {r->sums, r->sums, r->sums, r->sums}};
    size_t rows = last->first + last->count - blocks[0].first;
    r->row = blocks[0].first;
    if (has_range)
        memset(r->ranges, 0, rows * 2 * sizeof(vec));
    for (size_t n0 = 0; n0 < d->n; n0 += DOT_PANEL) {
        tile_panel *p = &panels[n0 / DOT_PANEL % 2];
        tile_panel_begin(r, n0, p);
        for (size_t chunk = 0; chunk < r->chunks; chunk++)
            tile_chunk(r, p, blocks, block_count, chunk, &before);
    }
    tile_flush(r, &before);
    if (has_range)
        tile_store_ranges(r, rows);
}

static void tile_multiply(const dot_job *d)
{
    enum { ROWS_MAX = TILE_RUN_BLOCKS * 2 * AMX_ROWS_MAX };
    float ranges[ROWS_MAX * 2 * VEC_LANES] __attribute__((aligned(64)));
    int32_t sums[TILE_BLOCK_SUMS] __attribute__((aligned(64)));
    int32_t partial_sums[TILE_RUN_BLOCKS * 2 * TILE_BLOCK_SUMS] __attribute__((aligned(64)));
    if (d->m == 0 || d->n == 0)
        return;
    size_t tiles = (d->m + AMX_ROWS_MAX - 1) / AMX_ROWS_MAX;
    size_t row_bytes = 4 * d->steps + d->tail_bytes;
    tile_run r = {.job = d,
                  .tile_rows = (d->m + tiles - 1) / tiles,
                  .whole_steps = row_bytes / TILE_STEP_BYTES,
                  .ranges = ranges,
                  .sums = sums,
                  .partial_sums = partial_sums};
    r.steps = r.whole_steps + (row_bytes % TILE_STEP_BYTES > 0 || row_bytes == 0);
    r.chunks = (r.steps + TILE_CHUNK_STEPS - 1) / TILE_CHUNK_STEPS;
    amx_configure(r.tile_rows);
    for (size_t tile = 0; tile < tiles;) {
        tile_rows blocks[TILE_RUN_BLOCKS];
        size_t count = 0;
        for (; tile < tiles && count < TILE_RUN_BLOCKS; tile += 2)
            blocks[count++] = tile_rows_of(&r, tile, tiles - tile < 2 ? 1 : 2);
        tile_run_blocks(&r, blocks, count);
    }
    amx_release();
}

/* As dot_peak(): four sums at a time, whose operands stay in their tiles. */
static inline double tile_peak(size_t rounds, double items_per_group)
{
    amx_configure(AMX_ROWS_MAX);
    for (size_t r = 0; r < rounds; r++) {
        TILE_DOT(0, 4, 6);
        TILE_DOT(1, 4, 7);
        TILE_DOT(2, 5, 6);
        TILE_DOT(3, 5, 7);
    }
    amx_release();
    return (double)rounds * 4 * AMX_ROWS_MAX * 16 * TILE_GROUPS * 2 * items_per_group;
}

#endif
