#ifndef KERNELS_X86_VECTOR_VECTOR_AVX2_H
#define KERNELS_X86_VECTOR_VECTOR_AVX2_H

/* The vocabulary of kernels/x86/vector/vector.h in eight lanes. Include that one. */

#include <stddef.h>
#include <stdint.h>

#if defined(__AVX2__) && !defined(__AVX512F__)

#include <immintrin.h>

#define VEC_LANES 8
typedef __m256 vec;
typedef __m256 vec_mask; /* all bits of a lane set or none */

static inline vec_mask vec_first(size_t n)
{
    __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane));
}

/* Lanes first .. end - 1; none where end <= first. */
static inline vec_mask vec_between(size_t first, size_t end)
{
    return _mm256_andnot_ps(vec_first(first), vec_first(end));
}

/* The lanes of the mask from `p`, of which only these are read; `other` in the others. */
static inline vec vec_load_where(vec_mask where, const float *p, vec other)
{
    return _mm256_blendv_ps(other, _mm256_maskload_ps(p, _mm256_castps_si256(where)), where);
}

static inline vec vec_set(float x)
{
    return _mm256_set1_ps(x);
}

static inline vec vec_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

static inline void vec_store(float *p, vec x)
{
    _mm256_storeu_ps(p, x);
}

static inline vec vec_load_first(const float *p, size_t n)
{
    if (n == VEC_LANES) /* masked moves are slow on some CPUs */
        return _mm256_loadu_ps(p);
    return _mm256_maskload_ps(p, _mm256_castps_si256(vec_first(n)));
}

static inline void vec_store_first(float *p, size_t n, vec x)
{
    if (n == VEC_LANES)
        _mm256_storeu_ps(p, x);
    else
        _mm256_maskstore_ps(p, _mm256_castps_si256(vec_first(n)), x);
}

static inline vec vec_add(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}

static inline vec vec_sub(vec a, vec b)
{
    return _mm256_sub_ps(a, b);
}

static inline vec vec_mul(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}

static inline vec vec_div(vec a, vec b)
{
    return _mm256_div_ps(a, b);
}

static inline vec vec_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline vec vec_fnma(vec a, vec b, vec c)
{
    return _mm256_fnmadd_ps(a, b, c);
}

static inline vec vec_max(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}

static inline vec vec_min(vec a, vec b)
{
    return _mm256_min_ps(a, b);
}

static inline vec vec_abs(vec a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}

static inline vec vec_limit(vec x, float limit)
{
    return vec_min(vec_set(limit), vec_max(vec_set(-limit), x));
}

static inline vec vec_copy_sign(vec magnitude, vec sign)
{
    vec bit = _mm256_set1_ps(-0.0f);
    return _mm256_or_ps(_mm256_and_ps(bit, sign), _mm256_andnot_ps(bit, magnitude));
}

static inline vec vec_sqrt(vec a)
{
    return _mm256_sqrt_ps(a);
}

static inline vec vec_negate(vec a)
{
    return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f));
}

/* a = mantissa * 2^exponent, mantissa in 1 .. 2; for positive a that are not denormal. */
static inline vec vec_mantissa(vec a)
{
    __m256i bits = _mm256_and_si256(_mm256_castps_si256(a), _mm256_set1_epi32(0x7fffff));
    return _mm256_castsi256_ps(_mm256_or_si256(bits, _mm256_set1_epi32(0x3f800000)));
}

static inline vec vec_exponent(vec a)
{
    __m256i biased = _mm256_srli_epi32(_mm256_castps_si256(a), 23);
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(biased, _mm256_set1_epi32(127)));
}

static inline vec vec_round(vec a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* The even lanes of `low`, then those of `high`. */
static inline vec vec_even(vec low, vec high)
{
    __m256d mixed = _mm256_castps_pd(_mm256_shuffle_ps(low, high, 0x88));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(mixed, 0xd8));
}

/* The odd lanes of `low`, then those of `high`. */
static inline vec vec_odd(vec low, vec high)
{
    __m256d mixed = _mm256_castps_pd(_mm256_shuffle_ps(low, high, 0xdd));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(mixed, 0xd8));
}

static inline vec vec_floor(vec a)
{
    return _mm256_floor_ps(a);
}

static inline vec vec_ceil(vec a)
{
    return _mm256_ceil_ps(a);
}

static inline vec_mask vec_is_less(vec a, vec b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}

static inline vec_mask vec_is_not_zero(vec a)
{
    return _mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_NEQ_UQ);
}

static inline vec_mask vec_is_nan(vec a)
{
    return _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
}

static inline vec_mask vec_is_number(vec a)
{
    return _mm256_cmp_ps(a, a, _CMP_ORD_Q);
}

static inline int vec_any(vec_mask m)
{
    return _mm256_movemask_ps(m) != 0;
}

static inline vec vec_select(vec_mask where, vec a, vec b)
{
    return _mm256_blendv_ps(b, a, where);
}

static inline vec vec_keep(vec_mask where, vec a)
{
    return _mm256_and_ps(where, a);
}

static inline vec_mask vec_mask_and(vec_mask a, vec_mask b)
{
    return _mm256_and_ps(a, b);
}

/* In two steps, so that neither factor leaves the range of exponents: |n| <= 252. */
static inline vec vec_scale(vec x, vec n)
{
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
    __m256i rest = _mm256_sub_epi32(whole, half), bias = _mm256_set1_epi32(127);
    vec a = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    vec b = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
    return _mm256_mul_ps(_mm256_mul_ps(x, a), b);
}

static inline float vec_sum(vec a)
{
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
}

static inline float vec_top(vec a)
{
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps(x, x, 1)));
}

static inline void vec_range(vec low, vec high, float *bottom, float *top)
{
    *bottom = -vec_top(_mm256_sub_ps(_mm256_setzero_ps(), low));
    *top = vec_top(high);
}

static inline vec_mask vec_mask_from_bytes(const uint8_t *p, size_t n)
{
    uint8_t bytes[8] = {0};
    for (size_t i = 0; i < n; i++)
        bytes[i] = p[i];
    __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)bytes));
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(wide, _mm256_setzero_si256()));
}

typedef __m256i vec_i;

static inline vec_i vec_i_set(int32_t x)
{
    return _mm256_set1_epi32(x);
}

static inline vec_i vec_i_load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

static inline vec_i vec_i_load_first(const int32_t *p, size_t n)
{
    if (n == VEC_LANES)
        return vec_i_load(p);
    return _mm256_maskload_epi32(p, _mm256_castps_si256(vec_first(n)));
}

static inline void vec_i_store_first(int32_t *p, size_t n, vec_i x)
{
    if (n == VEC_LANES)
        _mm256_storeu_si256((__m256i *)p, x);
    else
        _mm256_maskstore_epi32(p, _mm256_castps_si256(vec_first(n)), x);
}

/* row[index] of each lane. */
static inline vec vec_gather(const float *row, vec_i index)
{
    return _mm256_i32gather_ps(row, index, sizeof *row);
}

static inline vec_i vec_i_add(vec_i a, vec_i b)
{
    return _mm256_add_epi32(a, b);
}

static inline vec_i vec_i_mul(vec_i a, vec_i b)
{
    return _mm256_mullo_epi32(a, b);
}

static inline vec vec_from_bits(vec_i x)
{
    return _mm256_castsi256_ps(x);
}

static inline vec vec_from_i(vec_i x)
{
    return _mm256_cvtepi32_ps(x);
}

static inline vec_i vec_to_i(vec x)
{
    return _mm256_cvtps_epi32(x);
}

static inline void vec_i_store_u8(uint8_t *p, size_t n, vec_i x)
{
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    __m128i bytes = _mm_packus_epi16(words, words);
    if (n == VEC_LANES) {
        _mm_storel_epi64((__m128i *)p, bytes);
        return;
    }
    uint8_t all[16];
    _mm_storeu_si128((__m128i *)all, bytes);
    for (size_t i = 0; i < n; i++)
        p[i] = all[i];
}

static inline void vec_i_store_u8_4(uint8_t *p, const vec_i *x, int shift)
{
    __m256i shifts = _mm256_set1_epi16((int16_t)shift);
    __m256i words_0 = _mm256_adds_epi16(_mm256_packs_epi32(x[0], x[1]), shifts);
    __m256i words_1 = _mm256_adds_epi16(_mm256_packs_epi32(x[2], x[3]), shifts);
    __m256i bytes = _mm256_packus_epi16(words_0, words_1); /* of each half: x[0] .. x[3] */
    __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256((__m256i *)p, _mm256_permutevar8x32_epi32(bytes, order));
}

static inline void vec_i_store_s16(int16_t *p, size_t n, vec_i x)
{
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    if (n == VEC_LANES) {
        _mm_storeu_si128((__m128i *)p, words);
        return;
    }
    int16_t all[8];
    _mm_storeu_si128((__m128i *)all, words);
    for (size_t i = 0; i < n; i++)
        p[i] = all[i];
}

#endif
#endif
