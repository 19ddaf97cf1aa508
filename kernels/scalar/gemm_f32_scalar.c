#include <assert.h>

#include "kernels/gemm_f32.h"
#include "kernels/kernels_list.h"
#include "kernels/scalar/scalar.h"

#define PANEL GEMM_F32_PANEL_COLUMNS

void gemm_pack_f32_scalar(const float *b, size_t b_row_stride, size_t b_column_stride, size_t k,
                          size_t n, float *packed)
{
    for (size_t n0 = 0; n0 < n; n0 += PANEL) {
        for (size_t i = 0; i < k; i++) {
            for (size_t j = 0; j < PANEL; j++)
                *packed++ = n0 + j < n ? b[i * b_row_stride + (n0 + j) * b_column_stride] : 0;
        }
    }
}

static void finish_row(const gemm_f32_epilogue *e, size_t row, size_t column, size_t count,
                       const float *sum, float *c)
{
    float scale = e->scale == 0 ? 1 : e->scale;
    for (size_t j = 0; j < count; j++) {
        float x = sum[j] * scale;
        if (e->bias)
            x += e->bias[column + j];
        if (e->residual)
            x += e->residual[row * e->residual_stride + column + j];
        c[j] = scalar_activate(e->activation, x);
    }
}

/* sum += `k` elements of a row of A by as many rows of a panel. */
static void add_products(const float *a, const float *panel, size_t k, float *sum)
{
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < PANEL; j++)
            sum[j] += a[i] * panel[i * PANEL + j];
}

void gemm_f32_scalar(const struct gemm_f32 *g)
{
    for (size_t n0 = 0; n0 < g->n; n0 += PANEL) {
        const float *panel = g->b + gemm_f32_packed_offset(g->k, n0);
        size_t count = g->n - n0 < PANEL ? g->n - n0 : PANEL;
        for (size_t m = 0; m < g->m; m++) {
            float sum[PANEL] = {0};
            const float *a = g->a + gemm_f32_row_offset(g, m);
            if (!g->a_segments)
                add_products(a, panel, g->k, sum);
            for (size_t s = 0; g->a_segments && s < g->a_segment_count; s++)
                add_products(a + g->a_segments[s].a, panel + g->a_segments[s].k * PANEL,
                             g->a_segment, sum);
            finish_row(&g->epilogue, m, n0, count, sum, g->c + m * g->c_stride + n0);
        }
    }
}

void gemm_unpacked_f32_scalar(const struct gemm_f32_unpacked *g)
{
    for (size_t m = 0; m < g->m; m++) {
        for (size_t n0 = 0; n0 < g->n; n0 += PANEL) {
            size_t count = g->n - n0 < PANEL ? g->n - n0 : PANEL;
            float sum[PANEL] = {0};
            for (size_t k = 0; k < g->k; k++) {
                float a = g->a[m * g->a_stride + k];
                const float *b = g->b + k * g->b_row_stride + n0 * g->b_column_stride;
                for (size_t j = 0; j < count; j++)
                    sum[j] += a * b[j * g->b_column_stride];
            }
            finish_row(&g->epilogue, m, n0, count, sum, g->c + m * g->c_stride + n0);
        }
    }
}
