#include "kernels/gemm_scaled.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "kernels/kernels_list.h"
#include "kernels/scalar/scalar.h"

#define PANEL GEMM_SCALED_PANEL_COLUMNS

void gemm_pack_u8s8_scalar(const int8_t *b, size_t b_row_stride, size_t b_column_stride, size_t k,
                           size_t n, void *packed)
{
    uint8_t *out = packed;
    for (size_t n0 = 0; n0 < n; n0 += PANEL) {
        int32_t sums[PANEL] = {0};
        uint8_t *groups = out + sizeof sums;
        memset(groups, 0, gemm_u8s8_panel_bytes(k) - sizeof sums);
        for (size_t i = 0; i < k; i++) {
            for (size_t j = 0; j < PANEL && n0 + j < n; j++) {
                int8_t w = b[i * b_row_stride + (n0 + j) * b_column_stride];
                sums[j] -= w;
                groups[i / 4 * PANEL * 4 + j * 4 + i % 4] = (uint8_t)w;
            }
        }
        memcpy(out, sums, sizeof sums);
        out += gemm_u8s8_panel_bytes(k);
    }
}

void gemm_pack_s16_scalar(const int16_t *b, size_t b_row_stride, size_t b_column_stride, size_t k,
                          size_t n, void *packed)
{
    int16_t *out = packed;
    for (size_t n0 = 0; n0 < n; n0 += PANEL) {
        for (size_t i = 0; i < (k + 1) / 2 * 2; i++) {
            for (size_t j = 0; j < PANEL; j++) {
                bool is_real = i < k && n0 + j < n;
                out[i / 2 * PANEL * 2 + j * 2 + i % 2] =
                    is_real ? b[i * b_row_stride + (n0 + j) * b_column_stride] : 0;
            }
        }
        out += gemm_s16_panel_bytes(k) / sizeof *out;
    }
}

static uint8_t to_u8(float x, int32_t zero)
{
    float limited = fminf(fmaxf(x, -1e6f), 1e6f);
    long q = isnan(x) ? 0 : lrintf(limited) + zero;
    return (uint8_t)(q < 0 ? 0 : q > 255 ? 255 : q);
}

/* One element of C at (m, n), given its sum as a float. */
static void store_element(const gemm_scaled_epilogue *e, gemm_output output, void *c,
                          size_t c_stride, int32_t c_zero, size_t m, size_t n, float sum)
{
    float scale = (e->row_scale ? e->row_scale[m] : 1) * (e->column_scale ? e->column_scale[n] : 1);
    float x = sum * scale + (e->bias ? e->bias[n] : 0);
    if (e->residual)
        x += e->residual[m * e->residual_stride + n];
    x = scalar_activate(e->activation, x);
    if (e->row_low) {
        e->row_low[m] = fminf(e->row_low[m], x);
        e->row_high[m] = fmaxf(e->row_high[m], x);
    }
    if (output == GEMM_F32)
        ((float *)c)[m * c_stride + n] = x;
    else
        ((uint8_t *)c)[m * c_stride + n] = to_u8(x, c_zero);
}

void gemm_u8s8_scalar(const struct gemm_u8s8 *g)
{
    const uint8_t *panel = g->b;
    for (size_t n0 = 0; n0 < g->n; n0 += PANEL, panel += gemm_u8s8_panel_bytes(g->k)) {
        const int32_t *negative_sums = (const int32_t *)panel;
        const int8_t *groups = (const int8_t *)(negative_sums + PANEL);
        size_t columns = g->n - n0 < PANEL ? g->n - n0 : PANEL;
        for (size_t m = 0; m < g->m; m++) {
            uint32_t zero = g->a_zero ? (uint32_t)g->a_zero[m] : 128, sums[PANEL];
            uint32_t row_start = g->row_start ? (uint32_t)g->row_start[m] : 0;
            for (size_t j = 0; j < columns; j++)
                sums[j] = (g->start ? (uint32_t)g->start[n0 + j] : 0) + row_start +
                          zero * (uint32_t)negative_sums[j];
            for (size_t k = 0; k < g->k; k++) {
                const int8_t *b = groups + k / 4 * PANEL * 4 + k % 4;
                for (size_t j = 0; j < columns; j++)
                    sums[j] += (uint32_t)(g->a[m * g->a_stride + k] * b[4 * j]);
            }
            for (size_t j = 0; j < columns; j++) {
                if (g->output == GEMM_S32)
                    ((int32_t *)g->c)[m * g->c_stride + n0 + j] = (int32_t)sums[j];
                else
                    store_element(&g->epilogue, g->output, g->c, g->c_stride, g->c_zero, m, n0 + j,
                                  (float)(int32_t)sums[j]);
            }
        }
    }
}

static float dot_s16(const int16_t *a, const int16_t *groups, size_t column, size_t k)
{
    float sum = 0;
    for (size_t k0 = 0; k0 < k; k0 += GEMM_S16_BLOCK) {
        int32_t block = 0;
        for (size_t i = k0; i < k && i < k0 + GEMM_S16_BLOCK; i++)
            block += a[i] * groups[i / 2 * PANEL * 2 + column * 2 + i % 2];
        sum += (float)block;
    }
    return sum;
}

void gemm_s16_scalar(const struct gemm_s16 *g)
{
    assert(g->output != GEMM_S32);
    const int16_t *panel = g->b;
    size_t panel_items = gemm_s16_panel_bytes(g->k) / sizeof *panel;
    for (size_t n = 0; n < g->n; n++) {
        for (size_t m = 0; m < g->m; m++) {
            float sum =
                dot_s16(g->a + m * g->a_stride, panel + n / PANEL * panel_items, n % PANEL, g->k);
            store_element(&g->epilogue, g->output, g->c, g->c_stride, g->c_zero, m, n, sum);
        }
    }
}

void gemm_bf16_scalar(const struct gemm_bf16 *g)
{
    assert(g->output != GEMM_S32);
    const uint16_t *panel = g->b;
    size_t panel_items = gemm_s16_panel_bytes(g->k) / sizeof *panel;
    for (size_t n = 0; n < g->n; n++) {
        const uint16_t *groups = panel + n / PANEL * panel_items + n % PANEL * 2;
        for (size_t m = 0; m < g->m; m++) {
            float sum = 0;
            for (size_t k = 0; k < g->k; k++)
                sum += dtype_bf16_to_f32(g->a[m * g->a_stride + k]) *
                       dtype_bf16_to_f32(groups[k / 2 * PANEL * 2 + k % 2]);
            store_element(&g->epilogue, g->output, g->c, g->c_stride, g->c_zero, m, n, sum);
        }
    }
}
