#ifndef KERNELS_X86_GEMM_GEMM_F32_PACK_VECTOR_H
#define KERNELS_X86_GEMM_GEMM_F32_PACK_VECTOR_H

#include "kernels/gemm_f32.h"
#include "kernels/x86/vector/vector.h"

#ifdef VEC_LANES

#define PANEL GEMM_F32_PANEL_COLUMNS

/* Transposes eight rows of eight floats: out[j * out_stride + i] = in[i * in_stride + j], of which
 * rows from `rows` on count as zeros and are not read. */
static inline void transpose_8x8(const float *in, size_t in_stride, size_t rows, float *out,
                                 size_t out_stride)
{
    __m256 r[8], t[8];
    for (size_t i = 0; i < 8; i++)
        r[i] = i < rows ? _mm256_loadu_ps(in + i * in_stride) : _mm256_setzero_ps();
    for (size_t i = 0; i < 4; i++) {
        t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    for (size_t i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (size_t i = 0; i < 4; i++) {
        _mm256_storeu_ps(out + i * out_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps(out + (i + 4) * out_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}

/* One panel: columns < PANEL are filled up with zeros. */
static void pack_panel(const float *b, size_t row_stride, size_t column_stride, size_t k,
                       size_t columns, float *packed)
{
    size_t i = 0;
    if (row_stride == 1) {
        for (; i + 8 <= k; i += 8) {
            for (size_t j = 0; j < PANEL; j += 8) {
                size_t left = columns > j ? columns - j : 0;
                transpose_8x8(b + j * column_stride + i, column_stride, left < 8 ? left : 8,
                              packed + i * PANEL + j, PANEL);
            }
        }
    }
    if (column_stride == 1) {
        for (; i < k; i++) {
            for (size_t j = 0; j < PANEL; j += VEC_LANES) {
                size_t left = columns > j ? columns - j : 0;
                vec x = vec_load_first(b + i * row_stride + j, left < VEC_LANES ? left : VEC_LANES);
                vec_store(packed + i * PANEL + j, x);
            }
        }
    }
    for (; i < k; i++) {
        for (size_t j = 0; j < PANEL; j++)
            packed[i * PANEL + j] = j < columns ? b[i * row_stride + j * column_stride] : 0;
    }
}

static inline void gemm_pack(const float *b, size_t row_stride, size_t column_stride, size_t k,
                             size_t n, float *packed)
{
    for (size_t n0 = 0; n0 < n; n0 += PANEL) {
        size_t columns = n - n0 < PANEL ? n - n0 : PANEL;
        pack_panel(b + n0 * column_stride, row_stride, column_stride, k, columns,
                   packed + gemm_f32_packed_offset(k, n0));
    }
}

#endif
#endif
