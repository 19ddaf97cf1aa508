#include <string.h>

#include "kernels/gemm_scaled.h"
#include "kernels/kernels_list.h"

/* Panels as AMX takes them (gemm_scaled.h): whole steps of k, 64 bytes of each column, as tiles;
 * what is left as the other levels have it. A step is packed as a panel of its own, and its lines
 * of 64 bytes then go to their places. */

#define PANEL GEMM_SCALED_PANEL_COLUMNS
#define TILE_BYTES 1024
#define LINE_BYTES 64 /* one group of four bytes of k, of a tile's 16 columns */
#define STEP_BYTES (4 * TILE_BYTES)
#define U8S8_STEP 64
#define BF16_STEP 32

/* `lines`: [16 groups][4 tiles]. */
static void place_step(const uint8_t *lines, size_t step, size_t steps, uint8_t *groups)
{
    for (size_t tile = 0; tile < 4; tile++) {
        uint8_t *to = groups + ((tile / 2 * steps + step) * 2 + tile % 2) * TILE_BYTES;
        for (size_t group = 0; group < 16; group++)
            memcpy(to + group * LINE_BYTES, lines + (4 * group + tile) * LINE_BYTES, LINE_BYTES);
    }
}

void gemm_pack_u8s8_amx(const int8_t *b, size_t b_row_stride, size_t b_column_stride, size_t k,
                        size_t n, void *packed)
{
    struct {
        int32_t negative_sums[PANEL];
        uint8_t lines[STEP_BYTES];
    } part __attribute__((aligned(64)));
    size_t steps = k / U8S8_STEP, rest = k % U8S8_STEP;
    uint8_t *panel = packed;
    for (size_t n0 = 0; n0 < n; n0 += PANEL, panel += gemm_u8s8_panel_bytes(k)) {
        const int8_t *from = b + n0 * b_column_stride;
        size_t columns = n - n0 < PANEL ? n - n0 : PANEL;
        int32_t *negative_sums = (int32_t *)panel;
        uint8_t *groups = panel + sizeof part.negative_sums;
        memset(negative_sums, 0, sizeof part.negative_sums);
        for (size_t step = 0; step <= steps; step++) {
            size_t some = step < steps ? U8S8_STEP : rest;
            gemm_pack_u8s8_avx2(from + step * U8S8_STEP * b_row_stride, b_row_stride,
                                b_column_stride, some, columns, &part);
            for (size_t j = 0; j < PANEL; j++)
                negative_sums[j] += part.negative_sums[j];
            if (step < steps)
                place_step(part.lines, step, steps, groups);
            else
                memcpy(groups + steps * STEP_BYTES, part.lines,
                       gemm_u8s8_panel_bytes(rest) - sizeof part.negative_sums);
        }
    }
}

void gemm_pack_bf16_amx(const int16_t *b, size_t b_row_stride, size_t b_column_stride, size_t k,
                        size_t n, void *packed)
{
    uint8_t lines[STEP_BYTES] __attribute__((aligned(64)));
    size_t steps = k / BF16_STEP, rest = k % BF16_STEP;
    uint8_t *panel = packed;
    for (size_t n0 = 0; n0 < n; n0 += PANEL, panel += gemm_s16_panel_bytes(k)) {
        const int16_t *from = b + n0 * b_column_stride;
        size_t columns = n - n0 < PANEL ? n - n0 : PANEL;
        for (size_t step = 0; step < steps; step++) {
            gemm_pack_s16_scalar(from + step * BF16_STEP * b_row_stride, b_row_stride,
                                 b_column_stride, BF16_STEP, columns, lines);
            place_step(lines, step, steps, panel);
        }
        gemm_pack_s16_scalar(from + steps * BF16_STEP * b_row_stride, b_row_stride, b_column_stride,
                             rest, columns, panel + steps * STEP_BYTES);
    }
}
