#include <immintrin.h>

#include "kernels/conv_u8s8.h"
#include "kernels/kernels_list.h"
#include "kernels/x86/vector/amx.h"

/* A block is two tiles of cells x two tiles of columns: four loads for four multiplications, the
 * fewest that eight tiles allow; loads are the bottleneck. All tiles have the same number of rows,
 * and an image has an even number of them; one that would pass its end begins earlier instead, and
 * computes some cells again.
 *
 * Blocks are pipelined by hand: the sums of a block leave the tiles in the first step of the next,
 * and the vector units finish them during the one after that, some rows in each step. (Finished
 * already during the next block: 1 to 4% slower, more for convolutions of few steps. Loads may have
 * to wait until what a tile stored is in the cache.) */

#define BLOCK_TILES 2
#define BLOCK_COLUMNS (2 * CONV_U8S8_COLUMNS)
#define BLOCK_ROWS (BLOCK_TILES * AMX_ROWS_MAX)
#define TILE_BYTES (AMX_ROWS_MAX * AMX_ROW_BYTES)
#define BLOCKS_FIRST_BYTES (1 << 17) /* of weights, with which blocks are the outer loop */
#define GROUP 2                      /* rows finished together: 64 bytes of results */
#define SUMS_STRIDE (BLOCK_COLUMNS * sizeof(int32_t))
#define CONV_INLINE static inline __attribute__((always_inline))

/* A block whose sums are in the tiles, or stored and to be finished. */
typedef struct conv_sums {
    int32_t *sums; /* [rows][BLOCK_COLUMNS] */
    uint8_t **to;  /* [rows]: where a row of results begins, at column 0 */
    size_t row, rows;
    size_t column;
} conv_sums;

typedef struct conv_run {
    const conv_u8s8 *job;
    conv_sums in_tiles, stored;
    size_t tile_rows, image_tiles;
    size_t share;                  /* of `stored`: rows finished in each step but the first */
    const char *ahead, *ahead_end; /* weights of the next columns, to be prefetched */
    size_t ahead_lines;            /* per step */
} conv_run;

/* What 16 columns' sums become numbers with. */
typedef struct conv_factors {
    __m512i start;
    __m512 scale, bias;
} conv_factors;

CONV_INLINE conv_factors conv_load_factors(const conv_u8s8 *c, size_t column)
{
    return (conv_factors){_mm512_loadu_si512(c->start + column), _mm512_loadu_ps(c->scale + column),
                          _mm512_loadu_ps(c->bias + column)};
}

/* 16 sums as rounded numbers. */
CONV_INLINE __m512i conv_round(const int32_t *sums, const conv_factors *f)
{
    __m512 x = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_load_si512(sums), f->start));
    /* Beyond the int32 range a conversion gives INT_MIN, which is right for all but large numbers.
     */
    x = _mm512_min_ps(_mm512_set1_ps(1e6f), _mm512_fmadd_ps(x, f->scale, f->bias));
    return _mm512_cvtps_epi32(x);
}

/* The second tile of a block's columns; the first again where there is no other. */
static inline size_t conv_second(const conv_u8s8 *c, size_t column)
{
    return column + CONV_U8S8_COLUMNS < c->n ? column + CONV_U8S8_COLUMNS : column;
}

/* Rows of the block before, GROUP at a time, until `end`. */
CONV_INLINE void conv_finish(const conv_u8s8 *c, conv_sums *s, size_t end)
{
    const conv_factors left = conv_load_factors(c, s->column);
    const conv_factors right = conv_load_factors(c, conv_second(c, s->column));
    const __m512i zero = _mm512_set1_epi16((int16_t)c->zero), low = _mm512_set1_epi8((char)c->low);
    /* Packing leaves four bytes of each vector in each quarter. */
    const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    size_t column = s->column, columns = c->n - column, row = s->row;
    uint8_t **to = s->to + row;
    const int32_t *sums = s->sums + row * BLOCK_COLUMNS;
    __mmask32 mask = columns < BLOCK_COLUMNS ? ((__mmask32)1 << columns) - 1 : ~(__mmask32)0;
    end = end < s->rows ? end : s->rows;
    for (; row < end; row += GROUP, to += GROUP, sums += GROUP * BLOCK_COLUMNS) {
        __m512i first = _mm512_packs_epi32(conv_round(sums, &left), conv_round(sums + 16, &right));
        __m512i second =
            _mm512_packs_epi32(conv_round(sums + 32, &left), conv_round(sums + 48, &right));
        __m512i bytes =
            _mm512_packus_epi16(_mm512_adds_epi16(first, zero), _mm512_adds_epi16(second, zero));
        bytes = _mm512_permutexvar_epi32(order, _mm512_max_epu8(bytes, low));
        if (columns >= BLOCK_COLUMNS) {
            _mm256_storeu_si256((__m256i *)(to[0] + column), _mm512_castsi512_si256(bytes));
            _mm256_storeu_si256((__m256i *)(to[1] + column), _mm512_extracti64x4_epi64(bytes, 1));
        } else {
            _mm256_mask_storeu_epi8(to[0] + column, mask, _mm512_castsi512_si256(bytes));
            _mm256_mask_storeu_epi8(to[1] + column, mask, _mm512_extracti64x4_epi64(bytes, 1));
        }
    }
    s->row = row;
}

/* Stores what a tile of sums holds for the block before, and begins the next. */
#define CONV_BEGIN(tile, at)                                                                       \
    do {                                                                                           \
        AMX_STORE(tile, at, SUMS_STRIDE);                                                          \
        AMX_ZERO(tile);                                                                            \
    } while (0)

/* One step of a block: `a` are the windows of its tiles, `b` its tiles of weights. */
CONV_INLINE void conv_step(const int is_first, conv_run *r, const uint8_t *const a[BLOCK_TILES],
                           const uint8_t *const b[2], size_t step, size_t end)
{
    const conv_u8s8 *c = r->job;
    size_t offset = c->offsets[step], stride = c->cell_bytes;
    int32_t *sums = r->in_tiles.sums, *below = sums + r->tile_rows * BLOCK_COLUMNS;
    AMX_LOAD(6, b[0] + step * TILE_BYTES, AMX_ROW_BYTES);
    AMX_LOAD(4, a[0] + offset, stride);
    if (is_first)
        CONV_BEGIN(0, sums);
    AMX_DOT_U8S8(0, 4, 6);
    AMX_LOAD(7, b[1] + step * TILE_BYTES, AMX_ROW_BYTES);
    if (is_first)
        CONV_BEGIN(1, sums + CONV_U8S8_COLUMNS);
    AMX_DOT_U8S8(1, 4, 7);
    if (!is_first)
        conv_finish(c, &r->stored, end);
    AMX_LOAD(5, a[1] + offset, stride);
    if (is_first)
        CONV_BEGIN(2, below);
    AMX_DOT_U8S8(2, 5, 6);
    if (is_first)
        CONV_BEGIN(3, below + CONV_U8S8_COLUMNS);
    AMX_DOT_U8S8(3, 5, 7);
    for (size_t i = 0; i < r->ahead_lines && r->ahead < r->ahead_end; i++, r->ahead += 64)
        _mm_prefetch(r->ahead, _MM_HINT_T1);
}

/* After the last block. */
static void conv_flush(conv_run *r)
{
    int32_t *sums = r->in_tiles.sums, *below = sums + r->tile_rows * BLOCK_COLUMNS;
    AMX_STORE(0, sums, SUMS_STRIDE);
    AMX_STORE(1, sums + CONV_U8S8_COLUMNS, SUMS_STRIDE);
    AMX_STORE(2, below, SUMS_STRIDE);
    AMX_STORE(3, below + CONV_U8S8_COLUMNS, SUMS_STRIDE);
    conv_finish(r->job, &r->stored, r->stored.rows);
    conv_finish(r->job, &r->in_tiles, r->in_tiles.rows);
}

/* The windows of a block, and where its rows go. A cell that is no pixel of the result is stored
 * where the next pixel will be, which overwrites it: rows are finished in order, and the last one
 * is a pixel. */
static void conv_place(const conv_run *r, size_t image, size_t tile, const uint8_t **a,
                       uint8_t **to)
{
    const conv_u8s8 *c = r->job;
    const uint8_t *in = c->in + image * c->in_image_bytes;
    uint8_t *out = c->out + image * c->out_image_bytes;
    size_t last = c->cells - r->tile_rows;
    for (size_t t = 0; t < BLOCK_TILES; t++) {
        size_t first = (tile + t) * r->tile_rows;
        first = first < last ? first : last;
        a[t] = in + first * c->cell_bytes;
        size_t x = first % c->pitch, pixels = x < c->width ? x : c->width;
        uint8_t *pixel = out + (first / c->pitch * c->width + pixels) * c->out_stride;
        for (size_t i = 0; i < r->tile_rows; i++) {
            *to++ = pixel;
            pixel += x < c->width ? c->out_stride : 0;
            x = x + 1 < c->pitch ? x + 1 : 0;
        }
    }
}

/* One block and its columns of tiles, while earlier ones are stored and finished. */
CONV_INLINE void conv_block(conv_run *r, const uint8_t *const a[BLOCK_TILES], uint8_t **to,
                            size_t column)
{
    const conv_u8s8 *c = r->job;
    const uint8_t *weights = c->weights;
    size_t second = conv_second(c, column);
    const uint8_t *const b[2] = {weights + column * c->steps * CONV_U8S8_STEP_BYTES,
                                 weights + second * c->steps * CONV_U8S8_STEP_BYTES};
    conv_step(1, r, a, b, 0, 0);
    for (size_t step = 1, end = r->share; step < c->steps; step++, end += r->share)
        conv_step(0, r, a, b, step, end);
    conv_finish(c, &r->stored, r->stored.rows);
    int32_t *finished = r->stored.sums;
    r->stored = r->in_tiles;
    r->in_tiles = (conv_sums){
        .sums = finished, .to = to, .rows = BLOCK_TILES * r->tile_rows, .column = column};
}

/* Rows of three blocks are kept: the current one, the one in the tiles and the one stored. */
#define PLACES 3

/* With few weights: they stay in the L1 cache, and the results of a block too, until all columns
 * are computed. */
static void conv_by_blocks(conv_run *r)
{
    const conv_u8s8 *c = r->job;
    uint8_t *to[PLACES][BLOCK_ROWS];
    const uint8_t *a[BLOCK_TILES];
    size_t turn = 0;
    for (size_t image = 0; image < c->images; image++)
        for (size_t tile = 0; tile < r->image_tiles; tile += BLOCK_TILES) {
            turn = (turn + 1) % PLACES;
            conv_place(r, image, tile, a, to[turn]);
            for (size_t column = 0; column < c->n; column += BLOCK_COLUMNS)
                conv_block(r, a, to[turn], column);
        }
    conv_flush(r);
}

/* With many weights: they are read once for all blocks, and those of the next columns are
 * prefetched. */
static void conv_by_columns(conv_run *r)
{
    const conv_u8s8 *c = r->job;
    uint8_t *to[PLACES][BLOCK_ROWS];
    const uint8_t *a[BLOCK_TILES];
    size_t turn = 0, blocks = c->images * r->image_tiles / BLOCK_TILES;
    size_t tile_bytes = c->steps * TILE_BYTES,
           all = conv_u8s8_packed_bytes(c->steps, c->n) / tile_bytes;
    r->ahead_lines = (2 * AMX_ROWS_MAX + blocks - 1) / blocks;
    for (size_t column = 0; column < c->n; column += BLOCK_COLUMNS) {
        size_t first = column / CONV_U8S8_COLUMNS + 2;
        size_t end = first + 2 < all ? first + 2 : all;
        r->ahead = (const char *)c->weights + (first < all ? first : all) * tile_bytes;
        r->ahead_end = (const char *)c->weights + end * tile_bytes;
        for (size_t image = 0; image < c->images; image++)
            for (size_t tile = 0; tile < r->image_tiles; tile += BLOCK_TILES) {
                turn = (turn + 1) % PLACES;
                conv_place(r, image, tile, a, to[turn]);
                conv_block(r, a, to[turn], column);
            }
    }
    conv_flush(r);
}

void conv_u8s8_amx(const struct conv_u8s8 *c)
{
    int32_t sums[2][BLOCK_ROWS * BLOCK_COLUMNS] __attribute__((aligned(64)));
    if (c->images == 0 || c->cells == 0 || c->n == 0)
        return;
    size_t tiles = (c->cells + BLOCK_ROWS - 1) / BLOCK_ROWS * BLOCK_TILES;
    conv_run r = {.job = c,
                  .image_tiles = tiles,
                  .tile_rows = (c->cells + tiles - 1) / tiles,
                  .in_tiles = {.sums = sums[0]},
                  .stored = {.sums = sums[1]}};
    size_t groups = BLOCK_TILES * r.tile_rows / GROUP;
    r.share = c->steps > 1 ? (groups + c->steps - 2) / (c->steps - 1) * GROUP : 0;
    amx_configure(r.tile_rows);
    if (conv_u8s8_packed_bytes(c->steps, c->n) <= BLOCKS_FIRST_BYTES)
        conv_by_blocks(&r);
    else
        conv_by_columns(&r);
    amx_release();
}
