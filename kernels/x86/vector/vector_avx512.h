#ifndef KERNELS_X86_VECTOR_VECTOR_AVX512_H
#define KERNELS_X86_VECTOR_VECTOR_AVX512_H

/* The vocabulary of kernels/x86/vector/vector.h in sixteen lanes. Include that one. */

#include <stddef.h>
#include <stdint.h>

#if defined(__AVX512F__)

#include <immintrin.h>

#define VEC_LANES 16
typedef __m512 vec;
typedef __mmask16 vec_mask;

static inline vec_mask vec_first(size_t n)
{
    return (vec_mask)((1u << n) - 1);
}

/* Lanes first .. end - 1; none where end <= first. */
static inline vec_mask vec_between(size_t first, size_t end)
{
    return vec_first(end) & (vec_mask)~vec_first(first);
}

/* The lanes of the mask from `p`, of which only these are read; `other` in the others. */
static inline vec vec_load_where(vec_mask where, const float *p, vec other)
{
    return _mm512_mask_loadu_ps(other, where, p);
}

static inline vec vec_set(float x)
{
    return _mm512_set1_ps(x);
}

static inline vec vec_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline void vec_store(float *p, vec x)
{
    _mm512_storeu_ps(p, x);
}

static inline vec vec_load_first(const float *p, size_t n)
{
    if (__builtin_constant_p(n) && n == VEC_LANES)
        return _mm512_loadu_ps(p);
    return _mm512_maskz_loadu_ps(vec_first(n), p);
}

static inline void vec_store_first(float *p, size_t n, vec x)
{
    if (__builtin_constant_p(n) && n == VEC_LANES)
        _mm512_storeu_ps(p, x);
    else
        _mm512_mask_storeu_ps(p, vec_first(n), x);
}

static inline vec vec_add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}

static inline vec vec_sub(vec a, vec b)
{
    return _mm512_sub_ps(a, b);
}

static inline vec vec_mul(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}

static inline vec vec_div(vec a, vec b)
{
    return _mm512_div_ps(a, b);
}

/* a * b + c */
static inline vec vec_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

/* c - a * b */
static inline vec vec_fnma(vec a, vec b, vec c)
{
    return _mm512_fnmadd_ps(a, b, c);
}

static inline vec vec_max(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}

static inline vec vec_min(vec a, vec b)
{
    return _mm512_min_ps(a, b);
}

static inline vec vec_abs(vec a)
{
    return _mm512_abs_ps(a);
}

/* x limited to +-limit; NaN becomes one of them. */
static inline vec vec_limit(vec x, float limit)
{
    return _mm512_range_ps(x, _mm512_set1_ps(limit), 2); /* the smaller magnitude, x's sign */
}

static inline vec vec_copy_sign(vec magnitude, vec sign)
{
    __m512i bit = _mm512_set1_epi32((int)0x80000000u);
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(
        bit, _mm512_castps_si512(sign), _mm512_castps_si512(magnitude), 0xca)); /* a ? b : c */
}

static inline vec vec_sqrt(vec a)
{
    return _mm512_sqrt_ps(a);
}

static inline vec vec_negate(vec a)
{
    return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f));
}

/* a = mantissa * 2^exponent, mantissa in 1 .. 2; for positive a that are not denormal. */
static inline vec vec_mantissa(vec a)
{
    return _mm512_getmant_ps(a, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero);
}

static inline vec vec_exponent(vec a)
{
    return _mm512_getexp_ps(a);
}

static inline vec vec_round(vec a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* The even lanes of `low`, then those of `high`. */
static inline vec vec_even(vec low, vec high)
{
    __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(low, even, high);
}

/* The odd lanes of `low`, then those of `high`. */
static inline vec vec_odd(vec low, vec high)
{
    __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(low, odd, high);
}

static inline vec vec_floor(vec a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}

static inline vec vec_ceil(vec a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}

static inline vec_mask vec_is_less(vec a, vec b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

static inline vec_mask vec_is_not_zero(vec a)
{
    return _mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_NEQ_UQ);
}

static inline vec_mask vec_is_nan(vec a)
{
    return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
}

static inline vec_mask vec_is_number(vec a)
{
    return _mm512_cmp_ps_mask(a, a, _CMP_ORD_Q);
}

static inline int vec_any(vec_mask m)
{
    return m != 0;
}

/* where ? a : b */
static inline vec vec_select(vec_mask where, vec a, vec b)
{
    return _mm512_mask_blend_ps(where, b, a);
}

/* where ? a : 0 */
static inline vec vec_keep(vec_mask where, vec a)
{
    return _mm512_maskz_mov_ps(where, a);
}

static inline vec_mask vec_mask_and(vec_mask a, vec_mask b)
{
    return a & b;
}

/* x * 2^n for integral n. */
static inline vec vec_scale(vec x, vec n)
{
    return _mm512_scalef_ps(x, n);
}

static inline float vec_sum(vec a)
{
    return _mm512_reduce_add_ps(a);
}

static inline float vec_top(vec a)
{
    return _mm512_reduce_max_ps(a);
}

/* The smallest lane of `low` and the largest of `high`, in one reduction. */
static inline void vec_range(vec low, vec high, float *bottom, float *top)
{
    vec negated = _mm512_sub_ps(_mm512_setzero_ps(), low);
    __m256 a = _mm256_max_ps(_mm512_castps512_ps256(high), _mm512_extractf32x8_ps(high, 1));
    __m256 b = _mm256_max_ps(_mm512_castps512_ps256(negated), _mm512_extractf32x8_ps(negated, 1));
    __m512 x = _mm512_insertf32x8(_mm512_castps256_ps512(a), b, 1);
    x = _mm512_max_ps(x, _mm512_shuffle_f32x4(x, x, 0xb1));
    x = _mm512_max_ps(x, _mm512_permute_ps(x, 0x4e));
    x = _mm512_max_ps(x, _mm512_permute_ps(x, 0xb1));
    *top = _mm512_cvtss_f32(x);
    *bottom = -_mm_cvtss_f32(_mm512_extractf32x4_ps(x, 2));
}

/* The lanes among the first n whose byte is not zero. */
static inline vec_mask vec_mask_from_bytes(const uint8_t *p, size_t n)
{
    __m128i bytes = _mm_maskz_loadu_epi8(vec_first(n), p);
    return _mm_test_epi8_mask(bytes, bytes);
}

/* Integers: lanes of int32. */
typedef __m512i vec_i;

static inline vec_i vec_i_set(int32_t x)
{
    return _mm512_set1_epi32(x);
}

static inline vec_i vec_i_load(const void *p)
{
    return _mm512_loadu_si512(p);
}

static inline vec_i vec_i_load_first(const int32_t *p, size_t n)
{
    return _mm512_maskz_loadu_epi32(vec_first(n), p);
}

static inline void vec_i_store_first(int32_t *p, size_t n, vec_i x)
{
    _mm512_mask_storeu_epi32(p, vec_first(n), x);
}

/* row[index] of each lane. */
static inline vec vec_gather(const float *row, vec_i index)
{
    return _mm512_i32gather_ps(index, row, sizeof *row);
}

static inline vec_i vec_i_add(vec_i a, vec_i b)
{
    return _mm512_add_epi32(a, b);
}

static inline vec_i vec_i_mul(vec_i a, vec_i b)
{
    return _mm512_mullo_epi32(a, b);
}

static inline vec vec_from_bits(vec_i x)
{
    return _mm512_castsi512_ps(x);
}

static inline vec vec_from_i(vec_i x)
{
    return _mm512_cvtepi32_ps(x);
}

/* Round to nearest, ties to even; out of int32's range gives its lowest value. */
static inline vec_i vec_to_i(vec x)
{
    return _mm512_cvtps_epi32(x);
}

/* Stores the first n lanes as bytes, each limited to 0 .. 255. */
static inline void vec_i_store_u8(uint8_t *p, size_t n, vec_i x)
{
    __m512i positive = _mm512_max_epi32(x, _mm512_setzero_si512());
    _mm_mask_storeu_epi8(p, vec_first(n), _mm512_cvtusepi32_epi8(positive));
}

/* Stores all lanes of four vectors as bytes, `shift` (0 .. 255) added to each and the sum limited
 * to 0 .. 255. */
static inline void vec_i_store_u8_4(uint8_t *p, const vec_i *x, int shift)
{
    __m512i shifts = _mm512_set1_epi16((int16_t)shift);
    __m512i words_0 = _mm512_adds_epi16(_mm512_packs_epi32(x[0], x[1]), shifts);
    __m512i words_1 = _mm512_adds_epi16(_mm512_packs_epi32(x[2], x[3]), shifts);
    __m512i bytes = _mm512_packus_epi16(words_0, words_1); /* of each quarter: x[0] .. x[3] */
    __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(p, _mm512_permutexvar_epi32(order, bytes));
}

/* Stores the first n lanes as 16-bit integers, limited to their range. */
static inline void vec_i_store_s16(int16_t *p, size_t n, vec_i x)
{
    _mm256_mask_storeu_epi16(p, vec_first(n), _mm512_cvtsepi32_epi16(x));
}

#endif
#endif
