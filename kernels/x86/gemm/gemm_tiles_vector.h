#ifndef KERNELS_X86_GEMM_GEMM_TILES_VECTOR_H
#define KERNELS_X86_GEMM_GEMM_TILES_VECTOR_H

#include "kernels/x86/gemm/gemm_tiles_finish.h"
#include "kernels/x86/vector/amx.h"

/* The loops of every GEMM of gemm_scaled.h on AMX tiles. The including file first defines
 *   TILE_DOT(sums, a, b)     the instruction, by tile numbers
 *   tile_to_float(sums)      16 sums as floats
 *   TILE_IS_INTEGER          1: sums have starts and zero points; or 0
 *   GELU_DEGREE              of gelu_pieces.h
 *
 * A block is two tiles of rows x 32 columns of a panel, or one x 64 where a single tile of rows is
 * left: four tiles of sums either way. All tiles have the same number of rows, so that a call needs
 * one configuration; the last one overlaps the one before, whose sums it computes again.
 *
 * A block's rows of A stay in the L1 cache while a group of panels passes, which stays in L2 while
 * all rows do. Panels are packed as tiles (gemm_pack_amx.c).
 *
 * Blocks are pipelined by hand. The sums of a block leave the tiles during the first step of the
 * next, each just before its tile is needed (four stores in a row would stall the multiplications
 * by a seventh at k = 384). During the other steps the vector units finish the rows of those sums,
 * some per step, close enough for the reorder buffer (512 instructions) to keep both units busy. */

#define TILE_STEP_BYTES AMX_ROW_BYTES /* of a row of A */
#define TILE_GROUPS 16                /* of four bytes: a step's rows of B */
#define TILE_BYTES (TILE_GROUPS * 64)
#define TILE_PAIR_BYTES (2 * TILE_BYTES)
#define TILE_SUMS_STRIDE (TILE_PAIR * sizeof(int32_t))
#define TILE_RUN_BLOCKS 8   /* of rows that share a group of panels */
#define TILE_GROUP_PANELS 4 /* at most */
#define TILE_GROUP_BYTES 131072

/* What is multiplied. */
struct tile_block {
    const uint8_t *a[2], *a_tails[2]; /* of the two tiles of rows; tails are [AMX_ROWS_MAX][64] */
    const uint8_t *b, *b_tail;        /* the pair's tiles, one step after the other */
    size_t b_later;                   /* to the tiles of the panel's second pair */
    size_t steps, whole_steps, a_stride;
    const char *ahead; /* the part of the next group to be prefetched: `ahead_lines` per step */
    size_t ahead_lines;
};

typedef struct tile_operands {
    const uint8_t *a[2], *b, *b_later;
    size_t a_stride;
} tile_operands;

TILE_INLINE tile_operands tile_operands_at(const tile_block *b, size_t step)
{
    size_t k = step * TILE_STEP_BYTES;
    const uint8_t *pair = b->b + step * TILE_PAIR_BYTES;
    if (step < b->whole_steps)
        return (tile_operands){{b->a[0] + k, b->a[1] + k}, pair, pair + b->b_later, b->a_stride};
    return (tile_operands){
        {b->a_tails[0], b->a_tails[1]}, b->b_tail, b->b_tail + TILE_PAIR_BYTES, TILE_STEP_BYTES};
}

/* Stores what a tile of sums holds for the block before, and begins the next. */
#define TILE_BEGIN(tile, before)                                                                   \
    do {                                                                                           \
        AMX_STORE(tile, (before)->at[tile], TILE_SUMS_STRIDE);                                     \
        AMX_ZERO(tile);                                                                            \
    } while (0)

/* One step of a block, with `share` rows of the block before finished after each half of it. */
TILE_INLINE void tile_step(const int is_wide, const int is_first, const tile_kind kind,
                           const tile_run *r, const tile_block *b, const tile_sums *before,
                           int pair, tile_cursor *t, const gelu_pieces *g, size_t step,
                           size_t share)
{
    tile_operands o = tile_operands_at(b, step);
    AMX_LOAD(4, o.a[0], o.a_stride);
    AMX_LOAD(6, o.b, 64);
    if (is_first)
        TILE_BEGIN(0, before);
    TILE_DOT(0, 4, 6);
    AMX_LOAD(7, o.b + TILE_BYTES, 64);
    if (is_first)
        TILE_BEGIN(1, before);
    TILE_DOT(1, 4, 7);
    for (size_t i = step * b->ahead_lines; i < (step + 1) * b->ahead_lines; i++)
        _mm_prefetch(b->ahead + 64 * i, _MM_HINT_T1);
    if (!is_first)
        tile_finish_rows(kind, r, before, pair, t, g, share);
    if (is_wide)
        AMX_LOAD(6, o.b_later, 64);
    else
        AMX_LOAD(5, o.a[1], o.a_stride);
    if (is_first)
        TILE_BEGIN(2, before);
    if (is_wide) {
        TILE_DOT(2, 4, 6);
        AMX_LOAD(7, o.b_later + TILE_BYTES, 64);
    } else {
        TILE_DOT(2, 5, 6);
    }
    if (is_first)
        TILE_BEGIN(3, before);
    if (is_wide)
        TILE_DOT(3, 4, 7);
    else
        TILE_DOT(3, 5, 7);
    if (!is_first)
        tile_finish_rows(kind, r, before, pair, t, g, share);
}

/* All steps of a block, while the one before is finished, whose epilogue is `kind`. NULL: there is
 * no block more. */
TILE_INLINE void tile_steps(const int is_wide, const tile_kind kind, const tile_run *r,
                            const tile_block *b, const tile_sums *before)
{
    gelu_pieces g = {0};
    if (kind.activation == KERNELS_GELU)
        g = gelu_pieces_load();
    if (!b) {
        AMX_STORE(0, before->at[0], TILE_SUMS_STRIDE);
        AMX_STORE(1, before->at[1], TILE_SUMS_STRIDE);
        AMX_STORE(2, before->at[2], TILE_SUMS_STRIDE);
        AMX_STORE(3, before->at[3], TILE_SUMS_STRIDE);
    }
    size_t step = 0, pairs = before->pairs[1] ? 2 : 1;
    for (int pair = 0; pair < (int)pairs; pair++) {
        tile_cursor t = tile_cursor_at(kind, r, before, pair);
        size_t end = b ? (pair + 1 == (int)pairs ? b->steps : (b->steps + 1) / 2) : 0;
        if (b && step == 0)
            tile_step(is_wide, 1, kind, r, b, before, pair, &t, &g, step++, 0);
        size_t slots = step < end ? 2 * (end - step) : 1;
        size_t share = (t.rows + slots - 1) / slots;
        for (; step < end; step++)
            tile_step(is_wide, 0, kind, r, b, before, pair, &t, &g, step, share);
        tile_finish_rows(kind, r, before, pair, &t, &g, t.rows);
    }
}

/* `name` runs the steps of a block, compiled for one kind of epilogue. */
#define TILE_STEPS(name, ...)                                                                      \
    static void name(const tile_run *r, const tile_block *b, tile_sums *before, int is_wide)       \
    {                                                                                              \
        const tile_kind kind = {__VA_ARGS__};                                                      \
        if (is_wide)                                                                               \
            tile_steps(1, kind, r, b, before);                                                     \
        else                                                                                       \
            tile_steps(0, kind, r, b, before);                                                     \
    }

TILE_STEPS(tile_steps_any, .is_any = 1)
TILE_STEPS(tile_steps_plain, .is_any = 0)
TILE_STEPS(tile_steps_gelu, .activation = KERNELS_GELU)
TILE_STEPS(tile_steps_gelu_range, .activation = KERNELS_GELU, .has_range = 1)
#if TILE_IS_INTEGER
TILE_STEPS(tile_steps_zeros, .has_zeros = 1)
TILE_STEPS(tile_steps_gelu_zeros, .activation = KERNELS_GELU, .has_zeros = 1)
TILE_STEPS(tile_steps_gelu_range_zeros, .activation = KERNELS_GELU, .has_range = 1, .has_zeros = 1)
TILE_STEPS(tile_steps_u8, .is_u8 = 1)
TILE_STEPS(tile_steps_u8_zeros, .is_u8 = 1, .has_zeros = 1)
TILE_STEPS(tile_steps_u8_relu, .activation = KERNELS_RELU, .is_u8 = 1)
TILE_STEPS(tile_steps_u8_relu_zeros, .activation = KERNELS_RELU, .is_u8 = 1, .has_zeros = 1)

static tile_steps_of *tile_steps_for_u8(const dot_job *d)
{
    if (d->epilogue->activation == KERNELS_RELU)
        return d->a_zero ? tile_steps_u8_relu_zeros : tile_steps_u8_relu;
    return d->a_zero ? tile_steps_u8_zeros : tile_steps_u8;
}
#endif

/* Whole pairs of columns; others take tile_steps_any. */
static tile_steps_of *tile_steps_for(const dot_job *d)
{
    const gemm_scaled_epilogue *e = d->epilogue;
    if (d->output == GEMM_S32 || e->residual || d->row_start)
        return tile_steps_any;
#if TILE_IS_INTEGER
    if (d->output == GEMM_U8 && !e->row_low &&
        (e->activation == KERNELS_IDENTITY || e->activation == KERNELS_RELU))
        return tile_steps_for_u8(d);
#endif
    if (d->output != GEMM_F32)
        return tile_steps_any;
#if TILE_IS_INTEGER
    if (e->activation == KERNELS_GELU && d->a_zero)
        return e->row_low ? tile_steps_gelu_range_zeros : tile_steps_gelu_zeros;
#endif
    if (e->activation == KERNELS_GELU)
        return e->row_low ? tile_steps_gelu_range : tile_steps_gelu;
    if (e->activation != KERNELS_IDENTITY || e->row_low)
        return tile_steps_any;
#if TILE_IS_INTEGER
    if (d->a_zero)
        return tile_steps_zeros;
#endif
    return tile_steps_plain;
}

/* What is left of rows of A after the whole steps, filled up with zeros. */
static void tile_copy_a_tails(const tile_run *r, const uint8_t *a, uint8_t *tails)
{
    const dot_job *d = r->job;
    size_t bytes = 4 * d->steps + d->tail_bytes - r->whole_steps * TILE_STEP_BYTES;
    __mmask64 wanted = ((__mmask64)1 << bytes) - 1;
    for (size_t i = 0; i < r->tile_rows; i++) {
        const uint8_t *from = a + i * d->a_stride + r->whole_steps * TILE_STEP_BYTES;
        _mm512_storeu_si512(tails + i * TILE_STEP_BYTES, _mm512_maskz_loadu_epi8(wanted, from));
    }
}

/* What is left of a panel after the whole steps ([group][64 columns], gemm_pack_amx.c) as tiles,
 * filled up with zeros. */
static void tile_copy_b_tails(const tile_run *r, const uint8_t *panel, uint8_t *tiles)
{
    const dot_job *d = r->job;
    const uint8_t *from = panel + d->b_header_bytes + r->whole_steps * 2 * TILE_PAIR_BYTES;
    size_t groups = d->steps % TILE_GROUPS + (d->tail_bytes > 0);
    memset(tiles, 0, 2 * TILE_PAIR_BYTES);
    for (size_t i = 0; i < groups; i++) {
        for (size_t tile = 0; tile < 4; tile++)
            memcpy(tiles + tile * TILE_BYTES + i * 64, from + i * DOT_STEP_BYTES + tile * 64, 64);
    }
}

/* Rows of one block: `tiles` (1 or 2) tiles from the `tile`th on. */
typedef struct tile_rows {
    size_t start[2], first, count; /* of the tiles; of the rows that no tile before has */
    size_t tiles;
} tile_rows;

static tile_rows tile_rows_of(const tile_run *r, size_t tile, size_t tiles)
{
    size_t m = r->job->m, last = m - r->tile_rows, first = tile * r->tile_rows;
    size_t end = first + tiles * r->tile_rows;
    tile_rows t = {.first = first, .tiles = tiles};
    t.start[0] = first < last ? first : last;
    t.start[1] = tiles == 1 || first + r->tile_rows > last ? last : first + r->tile_rows;
    t.count = (end < m ? end : m) - first;
    return t;
}

/* Panels that are used by all rows of a run while they stay in the L2 cache. */
typedef struct tile_group {
    size_t column, end; /* of C */
    const char *ahead;  /* the next group, to be prefetched meanwhile */
    size_t ahead_lines; /* in each step of a block */
} tile_group;

/* The block of a panel's columns from `column` on, and `before` finished; it is `before` then. */
static size_t tile_block_at(const tile_run *r, const tile_rows *t, tile_block *b, size_t column,
                            size_t tail, tile_sums *before)
{
    const dot_job *d = r->job;
    const uint8_t *panel = d->b + column / DOT_PANEL * dot_panel_bytes(d) + d->b_header_bytes;
    size_t pair = column % DOT_PANEL / TILE_PAIR;
    /* A single tile of rows goes twice where a panel is not whole. */
    int is_wide = t->tiles == 1 && column % DOT_PANEL == 0 && column + DOT_PANEL <= d->n;
    b->b = panel + pair * r->whole_steps * TILE_PAIR_BYTES;
    b->b_tail = r->tails + (tail * 2 + pair) * TILE_PAIR_BYTES;
    int is_whole = before->column + TILE_PAIR <= d->n;
    (is_whole ? r->steps_of : tile_steps_any)(r, b, before, is_wide);
    size_t below = is_wide ? TILE_BLOCK_SUMS / 2 : (t->start[1] - t->start[0]) * TILE_PAIR;
    const int32_t *next = r->sums + (t->first - t->start[0]) * TILE_PAIR;
    *before = (tile_sums){.at = {r->sums, r->sums + 16, r->sums + below, r->sums + below + 16},
                          .pairs = {next, is_wide ? next + TILE_BLOCK_SUMS / 2 : NULL},
                          .row = t->first,
                          .rows = t->count,
                          .column = column};
    return is_wide ? DOT_PANEL : TILE_PAIR;
}

/* All rows of a run with a group of panels. */
static void tile_run_group(const tile_run *r, const tile_group *g, const tile_rows *blocks,
                           size_t block_count, tile_sums *before)
{
    const dot_job *d = r->job;
    uint8_t tails[2][AMX_ROWS_MAX * TILE_STEP_BYTES] __attribute__((aligned(64)));
    size_t panel_bytes = dot_panel_bytes(d);
    int has_tails = r->steps > r->whole_steps;
    for (size_t n = g->column; has_tails && n < g->end; n += DOT_PANEL)
        tile_copy_b_tails(r, d->b + n / DOT_PANEL * panel_bytes,
                          r->tails + (n - g->column) / DOT_PANEL * 2 * TILE_PAIR_BYTES);
    tile_block b = {.a_tails = {tails[0], tails[1]},
                    .b_later = r->whole_steps * TILE_PAIR_BYTES,
                    .steps = r->steps,
                    .whole_steps = r->whole_steps,
                    .a_stride = d->a_stride,
                    .ahead = g->ahead,
                    .ahead_lines = g->ahead_lines};
    for (const tile_rows *t = blocks; t < blocks + block_count; t++) {
        b.a[0] = d->a + t->start[0] * d->a_stride;
        b.a[1] = d->a + t->start[1] * d->a_stride;
        if (has_tails) {
            tile_copy_a_tails(r, b.a[0], tails[0]);
            tile_copy_a_tails(r, b.a[1], tails[1]);
        }
        for (size_t n = g->column; n < g->end;) {
            n += tile_block_at(r, t, &b, n, (n - g->column) / DOT_PANEL, before);
            b.ahead += 64 * b.ahead_lines * r->steps;
        }
    }
}

/* All columns of the rows of up to TILE_RUN_BLOCKS blocks. */
static void tile_run_blocks(tile_run *r, const tile_rows *blocks, size_t block_count)
{
    const dot_job *d = r->job;
    const tile_rows *last = &blocks[block_count - 1];
    int has_range = d->output != GEMM_S32 && d->epilogue->row_low;
    size_t rows = last->first + last->count - blocks[0].first, panel_bytes = dot_panel_bytes(d);
    size_t panels = TILE_GROUP_BYTES / (panel_bytes + 1), columns;
    tile_sums before = {.at = {r->sums, r->sums, r->sums, r->sums}, .row = blocks[0].first};
    columns = DOT_PANEL * (panels < 1                   ? 1
                           : panels > TILE_GROUP_PANELS ? TILE_GROUP_PANELS
                                                        : panels);
    r->row = blocks[0].first;
    if (has_range)
        memset(r->ranges, 0, rows * 2 * sizeof(vec));
    for (size_t n = 0; n < d->n; n += columns) {
        tile_group g = {.column = n, .end = n + columns < d->n ? n + columns : d->n};
        size_t later = d->n - g.end < columns ? d->n - g.end : columns;
        size_t lines = (later + DOT_PANEL - 1) / DOT_PANEL * panel_bytes / 64;
        size_t steps = r->steps * block_count * ((g.end - n + TILE_PAIR - 1) / TILE_PAIR);
        g.ahead = (const char *)d->b + g.end / DOT_PANEL * panel_bytes;
        g.ahead_lines = (lines + steps - 1) / steps;
        tile_run_group(r, &g, blocks, block_count, &before);
    }
    int is_whole = before.column + TILE_PAIR <= d->n;
    (is_whole ? r->steps_of : tile_steps_any)(r, NULL, &before, 0);
    if (has_range)
        tile_store_ranges(r, rows);
}

static void tile_multiply(const dot_job *d)
{
    enum { ROWS_MAX = TILE_RUN_BLOCKS * 2 * AMX_ROWS_MAX };
    float ranges[ROWS_MAX * 2 * VEC_LANES] __attribute__((aligned(64)));
    int32_t sums[TILE_BLOCK_SUMS] __attribute__((aligned(64)));
    uint8_t tails[TILE_GROUP_PANELS * 2 * TILE_PAIR_BYTES] __attribute__((aligned(64)));
    if (d->m == 0 || d->n == 0)
        return;
    size_t tiles = (d->m + AMX_ROWS_MAX - 1) / AMX_ROWS_MAX;
    size_t row_bytes = 4 * d->steps + d->tail_bytes;
    tile_run r = {.job = d,
                  .steps_of = tile_steps_for(d),
                  .tile_rows = (d->m + tiles - 1) / tiles,
                  .whole_steps = row_bytes / TILE_STEP_BYTES,
                  .ranges = ranges,
                  .sums = sums,
                  .tails = tails};
    r.steps = r.whole_steps + (row_bytes % TILE_STEP_BYTES > 0 || row_bytes == 0);
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
