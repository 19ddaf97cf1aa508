#ifndef KERNELS_X86_ATTENTION_VECTOR_H
#define KERNELS_X86_ATTENTION_VECTOR_H

#include "kernels/attention.h"
#include "kernels/x86/gemm/gemm_f32_vector.h"
#include "kernels/x86/rows_vector.h"

#ifdef VEC_LANES

/* One head of one sequence. Keys are packed transposed and values as they are, both into panels of
 * 32 columns (gemm_f32.h), so that both GEMMs use its tiles; scores of a tile's rows lie whole
 * in `scores`, [TILE_ROWS][padded]. */
typedef struct attention_head {
    const attention_f32 *a;
    size_t first, length, scores_stride, head;
    int has_no_key; /* all of them are masked */
    float *keys, *values, *scores;
} attention_head;

static void attention_pack(const attention_head *h)
{
    const attention_f32 *a = h->a;
    size_t at = h->first * a->qkv_stride + h->head * a->head_size, width = a->head_size;
    gemm_pack(a->k + at, 1, a->qkv_stride, width, h->length, h->keys);
    gemm_pack(a->v + at, a->qkv_stride, 1, h->length, width, h->values);
}

/* One row of scores to weights that are not normalised yet; returns what to multiply by. A masked
 * key's weight is 0. NaN and infinite scores make the sum NaN, and so the row. */
static inline float attention_softmax(const attention_head *h, const float *bias,
                                      const uint8_t *mask, float *row)
{
    const float log2_e = 1.44269504f;
    size_t length = h->length;
    vec top = vec_set(-INFINITY), low = top, scale = vec_set(h->a->scale * log2_e);
    for (size_t j = 0; j < length; j += VEC_LANES) {
        size_t n = length - j < VEC_LANES ? length - j : VEC_LANES;
        vec x = vec_mul(vec_load(row + j), scale);
        if (bias)
            x = vec_fma(vec_load_first(bias + j, n), vec_set(log2_e), x);
        if (mask)
            x = vec_select(vec_mask_from_bytes(mask + j, n), x, low);
        else if (n < VEC_LANES)
            x = vec_select(vec_first(n), x, low);
        vec_store(row + j, x);
        top = vec_max(x, top);
    }
    vec sum = vec_set(0), shift = vec_set(vec_top(top));
    for (size_t j = 0; j < length; j += VEC_LANES) {
        vec x = vec_exp2_fast(vec_sub(vec_load(row + j), shift));
        vec_store(row + j, x);
        sum = vec_add(sum, x);
    }
    return 1 / vec_sum(sum);
}

/* Scores of some queries, made weights; `factors` are what their sums are to be multiplied by. */
static void attention_weights(const attention_head *h, size_t i, size_t rows, float *factors)
{
    const attention_f32 *a = h->a;
    const float *q = a->q + (h->first + i) * a->qkv_stride + h->head * a->head_size;
    for (size_t j = 0; j < h->length; j += TILE_COLUMNS) {
        const float *panel = h->keys + j / PANEL * PANEL * a->head_size + j % PANEL;
        tile_of(rows, h->length - j, &(tile_a){q, a->qkv_stride, a->head_size, 1, &whole_row},
                panel, h->scores + j, h->scores_stride, 1);
    }
    const uint8_t *mask = a->mask ? a->mask + h->first : NULL;
    for (size_t r = 0; r < rows; r++) {
        const float *bias = NULL;
        float *row = h->scores + r * h->scores_stride;
        if (a->bias)
            bias = a->bias + (ptrdiff_t)h->head * a->bias_head_stride +
                   (ptrdiff_t)(i + r) * a->bias_row_stride;
        if (h->has_no_key)
            fill_row(row, h->length, 1);
        factors[r] = h->has_no_key ? 1 / (float)h->length : attention_softmax(h, bias, mask, row);
    }
}

static void attention_values(const attention_head *h, size_t i, size_t rows, const float *factors)
{
    const attention_f32 *a = h->a;
    float sums[TILE_ROWS * TILE_COLUMNS] __attribute__((aligned(64)));
    for (size_t x = 0; x < a->head_size; x += TILE_COLUMNS) {
        size_t width = a->head_size - x < TILE_COLUMNS ? a->head_size - x : TILE_COLUMNS;
        const float *panel = h->values + x / PANEL * PANEL * h->length + x % PANEL;
        tile_of(rows, width, &(tile_a){h->scores, h->scores_stride, h->length, 1, &whole_row},
                panel, sums, TILE_COLUMNS, 1);
        float *out = a->out + (h->first + i) * a->out_stride + h->head * a->head_size + x;
        for (size_t r = 0; r < rows; r++) {
            for (size_t y = 0; y < width; y += VEC_LANES) {
                size_t n = width - y < VEC_LANES ? width - y : VEC_LANES;
                vec_store_first(
                    out + r * a->out_stride + y, n,
                    vec_mul(vec_load(sums + r * TILE_COLUMNS + y), vec_set(factors[r])));
            }
        }
    }
}

static inline void attention_run(const attention_f32 *a)
{
    for (size_t s = 0; s < a->sequences; s++) {
        attention_head h = {.a = a, .first = (size_t)a->offsets[s]};
        h.length = (size_t)a->offsets[s + 1] - h.first;
        size_t padded = (h.length + PANEL - 1) / PANEL * PANEL;
        h.scores_stride = padded + 16;
        h.has_no_key = a->mask && row_has_no_key(a->mask + h.first, h.length);
        h.keys = a->workspace;
        h.values = h.keys + padded * a->head_size;
        h.scores = h.values + gemm_f32_packed_count(h.length, a->head_size);
        for (h.head = 0; h.head < a->heads; h.head++) {
            attention_pack(&h);
            for (size_t i = 0, rows; i < h.length; i += rows) {
                rows = tile_rows(h.length - i);
                float factors[TILE_ROWS];
                attention_weights(&h, i, rows, factors);
                attention_values(&h, i, rows, factors);
            }
        }
    }
}

#endif
#endif
