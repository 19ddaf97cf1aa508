#ifndef KERNELS_ATTENTION_H
#define KERNELS_ATTENTION_H

#include "kernels/kernels.h"

/* Scaled dot-product attention of whole sequences, concatenated without padding. For each sequence
 * (tokens offsets[s] .. offsets[s + 1] - 1), head h and query i of it:
 *
 *   weight[j] = softmax over keys j of (q[i] . k[j] * scale + bias[h][i][j])
 *   out[i]    = sum over j of weight[j] * v[j]
 *
 * i and j count from the sequence's first token. Keys whose mask byte is 0 have weight 0; if all
 * are, all weights are equal (as in softmax_f32). Float arithmetic in a fixed order (each sum
 * ascending, or by vector lanes): the bits of a sequence depend on nothing outside it.
 * Error: 3e-6 * the largest |v| of the sequence, while scores stay below 30. */
typedef struct attention_f32 {
    const int32_t *offsets; /* [sequences + 1], ascending */
    size_t sequences, heads, head_size;
    const float *q, *k, *v; /* row t, head h begins at q + t * qkv_stride + h * head_size */
    size_t qkv_stride;
    float scale;
    const uint8_t *mask; /* [tokens]; NULL: every key counts */
    /* bias + h * bias_head_stride + i * bias_row_stride + j; NULL: none. A row stride of -1 reads a
     * table by relative position: bias then points at distance 0. */
    const float *bias;
    ptrdiff_t bias_head_stride, bias_row_stride;
    float *out; /* row t, head h at out + t * out_stride + h * head_size; not q, k or v */
    size_t out_stride;
    void
        *workspace; /* 64-byte aligned, attention_f32_workspace_bytes(); the caller's again after */
} attention_f32;

/* For the longest sequence of a call. */
static inline size_t attention_f32_workspace_bytes(size_t length_max, size_t head_size)
{
    size_t length = (length_max + 31) / 32 * 32, width = (head_size + 31) / 32 * 32;
    return (length * head_size + length * width + 12 * (length + 16)) * sizeof(float);
}

#endif
