#include <immintrin.h>

#include "kernels/gemm_scaled.h"
#include "kernels/kernels_list.h"

/* Whole panels and whole groups of four by vectors; the rest as scalar does it. */

#define PANEL GEMM_SCALED_PANEL_COLUMNS
#define STEP_BYTES (4 * PANEL)

/* Sums of four signed bytes in each 32-bit lane. */
static __m128i add_groups(__m128i x)
{
    __m128i pairs = _mm_maddubs_epi16(_mm_set1_epi8(1), x);
    return _mm_madd_epi16(pairs, _mm_set1_epi16(1));
}

static void subtract_at(int32_t *sums, __m128i x)
{
    __m128i before = _mm_loadu_si128((const __m128i *)sums);
    _mm_storeu_si128((__m128i *)sums, _mm_sub_epi32(before, x));
}

/* Four rows of k, 16 columns that lie side by side: bytes k0 k1 k2 k3 of each column together. */
static void pack_across(const int8_t *b, size_t row_stride, uint8_t *out, int32_t *negative_sums)
{
    __m128i r[4], t[4];
    for (size_t i = 0; i < 4; i++)
        r[i] = _mm_loadu_si128((const __m128i *)(b + i * row_stride));
    t[0] = _mm_unpacklo_epi8(r[0], r[1]);
    t[1] = _mm_unpackhi_epi8(r[0], r[1]);
    t[2] = _mm_unpacklo_epi8(r[2], r[3]);
    t[3] = _mm_unpackhi_epi8(r[2], r[3]);
    r[0] = _mm_unpacklo_epi16(t[0], t[2]);
    r[1] = _mm_unpackhi_epi16(t[0], t[2]);
    r[2] = _mm_unpacklo_epi16(t[1], t[3]);
    r[3] = _mm_unpackhi_epi16(t[1], t[3]);
    for (size_t i = 0; i < 4; i++) {
        _mm_storeu_si128((__m128i *)(out + 16 * i), r[i]);
        subtract_at(negative_sums + 4 * i, add_groups(r[i]));
    }
}

/* Four columns, each of 16 bytes along k: four groups of each. Groups are 32-bit units here. */
static void pack_along(const int8_t *b, size_t column_stride, uint8_t *out, int32_t *negative_sums)
{
    __m128i r[4], t[4];
    for (size_t i = 0; i < 4; i++)
        r[i] = _mm_loadu_si128((const __m128i *)(b + i * column_stride));
    t[0] = _mm_unpacklo_epi32(r[0], r[1]);
    t[1] = _mm_unpackhi_epi32(r[0], r[1]);
    t[2] = _mm_unpacklo_epi32(r[2], r[3]);
    t[3] = _mm_unpackhi_epi32(r[2], r[3]);
    r[0] = _mm_unpacklo_epi64(t[0], t[2]);
    r[1] = _mm_unpackhi_epi64(t[0], t[2]);
    r[2] = _mm_unpacklo_epi64(t[1], t[3]);
    r[3] = _mm_unpackhi_epi64(t[1], t[3]);
    for (size_t i = 0; i < 4; i++) {
        _mm_storeu_si128((__m128i *)(out + STEP_BYTES * i), r[i]);
        subtract_at(negative_sums, add_groups(r[i]));
    }
}

static void pack_panel(const int8_t *b, size_t row_stride, size_t column_stride, size_t k,
                       uint8_t *panel)
{
    int32_t *negative_sums = (int32_t *)panel;
    uint8_t *groups = panel + PANEL * sizeof *negative_sums;
    size_t done = column_stride == 1 ? k / 4 * 4 : row_stride == 1 ? k / 16 * 16 : 0;
    for (size_t j = 0; j < PANEL; j++)
        negative_sums[j] = 0;
    if (column_stride == 1) {
        for (size_t i = 0; i < done; i += 4) {
            for (size_t j = 0; j < PANEL; j += 16)
                pack_across(b + i * row_stride + j, row_stride, groups + i * PANEL + 4 * j,
                            negative_sums + j);
        }
    } else if (row_stride == 1) {
        for (size_t j = 0; j < PANEL; j += 4) {
            for (size_t i = 0; i < done; i += 16)
                pack_along(b + j * column_stride + i, column_stride, groups + i * PANEL + 4 * j,
                           negative_sums + j);
        }
    }
    for (size_t i = done / 4 * STEP_BYTES; i < (k + 3) / 4 * STEP_BYTES; i++)
        groups[i] = 0;
    for (size_t i = done; i < k; i++) {
        for (size_t j = 0; j < PANEL; j++) {
            int8_t w = b[i * row_stride + j * column_stride];
            groups[i / 4 * STEP_BYTES + 4 * j + i % 4] = (uint8_t)w;
            negative_sums[j] -= w;
        }
    }
}

void gemm_pack_u8s8_avx2(const int8_t *b, size_t b_row_stride, size_t b_column_stride, size_t k,
                         size_t n, void *packed)
{
    uint8_t *panel = packed;
    size_t n0 = 0;
    for (; n0 + PANEL <= n; n0 += PANEL, panel += gemm_u8s8_panel_bytes(k))
        pack_panel(b + n0 * b_column_stride, b_row_stride, b_column_stride, k, panel);
    if (n0 < n)
        gemm_pack_u8s8_scalar(b + n0 * b_column_stride, b_row_stride, b_column_stride, k, n - n0,
                              panel);
}
