#include <immintrin.h>

#include "kernels/kernels_list.h"
#include "kernels/x86/gemm_scaled_vector.h"

/* Tiles of 16 rows x 64 bytes: 0 to 3 are sums of 2 x 2 blocks of 16 x 16, 4 and 5 are rows of A, 6
 * and 7 are columns of B, which lie as the other levels pack them, 256 bytes from step to step.
 * Only whole blocks of 16 rows and 64 of k are for tiles; VNNI does the rest, with the same sums.
 */
#define BLOCK_ROWS 32
#define K_TILE 64
#define STEP_STRIDE DOT_STEP_BYTES

/* Intel SDM volume 1, 18.3.2 (palette 1). */
typedef struct tile_configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_configuration;

static void configure_tiles(void)
{
    tile_configuration c __attribute__((aligned(64))) = {.palette = 1};
    for (int t = 0; t < 8; t++) {
        c.row_bytes[t] = 64;
        c.rows[t] = 16;
    }
    /* Not _tile_loadconfig(): gcc 12 declares only the first 8 bytes as read, and drops the stores
     * to the others. */
    __asm__ volatile("ldtilecfg %0" ::"m"(c));
}

/* 32 rows x 32 columns of sums, [..][DOT_PANEL], go on from what they are. */
static void block_32(const uint8_t *a, size_t a_stride, const uint8_t *groups, size_t k,
                     int32_t *sums)
{
    const size_t stride = DOT_PANEL * sizeof *sums;
    int32_t *below = sums + 16 * DOT_PANEL;
    _tile_loadd(0, sums, stride);
    _tile_loadd(1, sums + 16, stride);
    _tile_loadd(2, below, stride);
    _tile_loadd(3, below + 16, stride);
    for (size_t i = 0; i < k; i += K_TILE) {
        _tile_loadd(6, groups + i * 64, STEP_STRIDE);
        _tile_loadd(7, groups + i * 64 + 64, STEP_STRIDE);
        _tile_loadd(4, a + i, a_stride);
        _tile_dpbusd(0, 4, 6);
        _tile_dpbusd(1, 4, 7);
        _tile_loadd(5, a + 16 * a_stride + i, a_stride);
        _tile_dpbusd(2, 5, 6);
        _tile_dpbusd(3, 5, 7);
    }
    _tile_stored(0, sums, stride);
    _tile_stored(1, sums + 16, stride);
    _tile_stored(2, below, stride);
    _tile_stored(3, below + 16, stride);
}

static void block_16(const uint8_t *a, size_t a_stride, const uint8_t *groups, size_t k,
                     int32_t *sums)
{
    const size_t stride = DOT_PANEL * sizeof *sums;
    _tile_loadd(0, sums, stride);
    _tile_loadd(1, sums + 16, stride);
    for (size_t i = 0; i < k; i += K_TILE) {
        _tile_loadd(4, a + i, a_stride);
        _tile_loadd(6, groups + i * 64, STEP_STRIDE);
        _tile_loadd(7, groups + i * 64 + 64, STEP_STRIDE);
        _tile_dpbusd(0, 4, 6);
        _tile_dpbusd(1, 4, 7);
    }
    _tile_stored(0, sums, stride);
    _tile_stored(1, sums + 16, stride);
}

static void start_sums(const dot_job *d, size_t m, size_t rows, const int32_t *starts,
                       const int32_t *negative_sums, int32_t *sums)
{
    for (size_t i = 0; i < rows; i++) {
        vec_i zero = vec_i_set(d->a_zero ? d->a_zero[m + i] : 0);
        for (size_t j = 0; j < DOT_PANEL; j += VEC_LANES) {
            vec_i x = vec_i_load(starts + j);
            if (d->a_zero)
                x = vec_i_add(x, vec_i_mul(zero, vec_i_load(negative_sums + j)));
            _mm512_storeu_si512(sums + i * DOT_PANEL + j, x);
        }
    }
}

static void panel_block(const dot_job *d, size_t m, size_t rows, size_t n0)
{
    int32_t sums[BLOCK_ROWS * DOT_PANEL] __attribute__((aligned(64)));
    int32_t starts[DOT_PANEL] __attribute__((aligned(64))) = {0};
    const uint8_t *panel = d->b + n0 / DOT_PANEL * dot_panel_bytes(d);
    const int32_t *negative_sums = (const int32_t *)panel;
    const uint8_t *a = d->a + m * d->a_stride, *groups = panel + d->b_header_bytes;
    size_t columns = d->n - n0 < DOT_PANEL ? d->n - n0 : DOT_PANEL;
    dot_fill_starts(d, n0, columns, negative_sums, starts);
    start_sums(d, m, rows, starts, negative_sums, sums);
    for (size_t j = 0; j < columns; j += 32) {
        if (rows == BLOCK_ROWS)
            block_32(a, d->a_stride, groups + 4 * j, 4 * d->steps, sums + j);
        else
            block_16(a, d->a_stride, groups + 4 * j, 4 * d->steps, sums + j);
    }
    for (size_t i = 0; d->output != GEMM_S32 && i < rows * DOT_PANEL; i += VEC_LANES)
        vec_store((float *)sums + i, vec_from_i(vec_i_load(sums + i)));
    dot_finish_of(d, m, n0, rows, columns, (const float *)sums, DOT_PANEL);
}

/* The rows from `first` on, as a product of its own. */
static gemm_u8s8 rows_from(const gemm_u8s8 *g, size_t first)
{
    gemm_u8s8 r = *g;
    gemm_scaled_epilogue *e = &r.epilogue;
    r.m -= first;
    r.a += first * g->a_stride;
    r.a_zero = g->a_zero ? g->a_zero + first : NULL;
    r.c = (uint8_t *)g->c + first * g->c_stride * (g->output == GEMM_U8 ? 1 : 4);
    e->row_scale = e->row_scale ? e->row_scale + first : NULL;
    e->residual = e->residual ? e->residual + first * e->residual_stride : NULL;
    e->row_low = e->row_low ? e->row_low + first : NULL;
    e->row_high = e->row_high ? e->row_high + first : NULL;
    return r;
}

void gemm_u8s8_amx(const struct gemm_u8s8 *g)
{
    size_t whole = g->k > 0 && g->k % K_TILE == 0 ? g->m / 16 * 16 : 0;
    if (whole > 0) {
        dot_job d = dot_job_of_u8s8(g);
        /* As many rows as leave their part of A in the L2 cache, then panel by panel. */
        size_t block = 524288 / g->k / BLOCK_ROWS * BLOCK_ROWS;
        block = block < BLOCK_ROWS ? BLOCK_ROWS : block;
        configure_tiles();
        for (size_t m0 = 0; m0 < whole; m0 += block) {
            size_t m1 = whole - m0 < block ? whole : m0 + block;
            for (size_t n0 = 0; n0 < g->n; n0 += DOT_PANEL) {
                for (size_t m = m0; m < m1; m += BLOCK_ROWS)
                    panel_block(&d, m, m1 - m < BLOCK_ROWS ? 16 : BLOCK_ROWS, n0);
            }
        }
        _tile_release();
    }
    if (whole < g->m) {
        gemm_u8s8 rest = rows_from(g, whole);
        gemm_u8s8_avx512vnni(&rest);
    }
}

double peak_u8s8_amx(size_t rounds)
{
    configure_tiles();
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(6);
    for (size_t r = 0; r < rounds; r++) {
        _tile_dpbusd(0, 4, 6);
        _tile_dpbusd(1, 4, 6);
        _tile_dpbusd(2, 4, 6);
        _tile_dpbusd(3, 4, 6);
    }
    _tile_release();
    return (double)rounds * 4 * 16 * 16 * 64 * 2;
}
