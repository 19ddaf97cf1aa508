#include <immintrin.h>
#include <string.h>

#include "kernels/kernels_list.h"

/* Whole vectors of eight, the rest through a buffer. AVX-512 would gain nothing: memory bounds. */

static __m256 f16_to_f32(__m128i x)
{
    return _mm256_cvtph_ps(x);
}

static __m256 bf16_to_f32(__m128i x)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}

static __m128i f32_to_f16(__m256 x)
{
    return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
}

static __m128i f32_to_bf16(__m256 x)
{
    __m256i bits = _mm256_castps_si256(x), one = _mm256_set1_epi32(1);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), one);
    __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7fff));
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    __m256 is_nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    rounded = _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(is_nan));
    rounded = _mm256_srli_epi32(rounded, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
}

static inline __attribute__((always_inline)) void widen(__m256 (*f)(__m128i), const uint16_t *in,
                                                        float *out, size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(out + i, f(_mm_loadu_si128((const __m128i *)(in + i))));
    if (i < count) {
        uint16_t tail[8] = {0};
        float wide[8];
        memcpy(tail, in + i, (count - i) * sizeof *in);
        _mm256_storeu_ps(wide, f(_mm_loadu_si128((const __m128i *)tail)));
        memcpy(out + i, wide, (count - i) * sizeof *out);
    }
}

static inline __attribute__((always_inline)) void narrow(__m128i (*f)(__m256), const float *in,
                                                         uint16_t *out, size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i *)(out + i), f(_mm256_loadu_ps(in + i)));
    if (i < count) {
        float tail[8] = {0};
        uint16_t half[8];
        memcpy(tail, in + i, (count - i) * sizeof *in);
        _mm_storeu_si128((__m128i *)half, f(_mm256_loadu_ps(tail)));
        memcpy(out + i, half, (count - i) * sizeof *out);
    }
}

void convert_f16_f32_avx2(const uint16_t *in, float *out, size_t count)
{
    widen(f16_to_f32, in, out, count);
}

void convert_bf16_f32_avx2(const uint16_t *in, float *out, size_t count)
{
    widen(bf16_to_f32, in, out, count);
}

void convert_f32_f16_avx2(const float *in, uint16_t *out, size_t count)
{
    narrow(f32_to_f16, in, out, count);
}

void convert_f32_bf16_avx2(const float *in, uint16_t *out, size_t count)
{
    narrow(f32_to_bf16, in, out, count);
}
