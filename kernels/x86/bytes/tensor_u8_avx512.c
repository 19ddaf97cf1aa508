#include <immintrin.h>

#include "kernels/kernels_list.h"
#include "kernels/scalar/tensor_u8_loops.h"

/* The end of four conversions: 64 whole numbers, 16 each, become bytes, `zero` added, not below
 * `low`. Beyond the int32 range a conversion gives INT_MIN, so large ones were limited.
 */
static inline __m512i pack_numbers(const __m512i q[4], int32_t zero, int32_t low)
{
    /* Packing leaves four bytes of each vector in each quarter. */
    const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    const __m512i shift = _mm512_set1_epi16((int16_t)zero);
    __m512i first = _mm512_adds_epi16(_mm512_packs_epi32(q[0], q[1]), shift);
    __m512i second = _mm512_adds_epi16(_mm512_packs_epi32(q[2], q[3]), shift);
    __m512i bytes =
        _mm512_max_epu8(_mm512_packus_epi16(first, second), _mm512_set1_epi8((char)low));
    return _mm512_permutexvar_epi32(order, bytes);
}

/* (x - zero) * scale of 16 bytes. */
static inline __m512 numbers_of(const uint8_t *x, __m512i zero, __m512 scale)
{
    __m512i wide = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)x));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(wide, zero)), scale);
}

/* A division takes as long as all the rest, so it is done only where x * reciprocal, whose error is
 * at most 512 * 2^-22, is too close to a tie. */
#define QUANTISE_LIMIT 512.0f
#define QUANTISE_SURE 0.4997f /* from the nearest integer */

void quantise_tensor_u8_avx512(const struct quantise_tensor_u8 *q)
{
    const __m512 reciprocal = _mm512_set1_ps(1 / q->scale), most = _mm512_set1_ps(QUANTISE_LIMIT);
    const __m512 sure = _mm512_set1_ps(QUANTISE_SURE);
    const uint8_t flip = q->is_signed ? 0x80 : 0;
    size_t i = 0;
    for (; i + 64 <= q->count; i += 64) {
        __m512i whole[4];
        __mmask16 doubts = 0;
        for (int j = 0; j < 4; j++) {
            __m512 x = _mm512_mul_ps(_mm512_loadu_ps(q->x + i + 16 * j), reciprocal);
            x = _mm512_min_ps(most, x); /* NaN stays */
            __m512 off = _mm512_abs_ps(_mm512_reduce_ps(x, _MM_FROUND_TO_NEAREST_INT));
            doubts |= _mm512_cmp_ps_mask(off, sure, _CMP_NLE_UQ); /* NaN and infinity too */
            whole[j] = _mm512_cvtps_epi32(x);
        }
        if (__builtin_expect(doubts, 0)) {
            quantise_tensor_u8 part = *q;
            part.x += i;
            part.out += i;
            part.count = 64;
            u8_quantise(&part);
            continue;
        }
        __m512i bytes = pack_numbers(whole, q->zero + flip, 0);
        _mm512_storeu_si512(q->out + i, _mm512_xor_si512(bytes, _mm512_set1_epi8((char)flip)));
    }
    quantise_tensor_u8 rest = *q;
    rest.x += i;
    rest.out += i;
    rest.count -= i;
    u8_quantise(&rest);
}

void dequantise_u8_avx512(const struct dequantise_u8 *d)
{
    u8_dequantise(d);
}

void add_u8_avx512(const struct add_u8 *p)
{
    const __m512i a_zero = _mm512_set1_epi32(p->a_zero), b_zero = _mm512_set1_epi32(p->b_zero);
    const __m512 a_scale = _mm512_set1_ps(p->a_scale), b_scale = _mm512_set1_ps(p->b_scale);
    const __m512 most = _mm512_set1_ps(QUANTISE_LIMIT);
    size_t i = 0;
    for (; i + 64 <= p->count; i += 64) {
        __m512i whole[4];
        for (size_t j = 0; j < 4; j++) {
            __m512 x = _mm512_add_ps(numbers_of(p->a + i + 16 * j, a_zero, a_scale),
                                     numbers_of(p->b + i + 16 * j, b_zero, b_scale));
            whole[j] = _mm512_cvtps_epi32(_mm512_min_ps(most, x)); /* NaN stays: the lowest */
        }
        _mm512_storeu_si512(p->out + i, pack_numbers(whole, p->zero, p->low));
    }
    add_u8 rest = *p;
    rest.a += i;
    rest.b += i;
    rest.out += i;
    rest.count -= i;
    u8_add(&rest);
}

/* 64 channels at a time stay in a register for the whole window. */
void pool_u8_avx512(const struct pool_u8 *q)
{
    const image_window *w = &q->window;
    for (size_t i = 0; i < q->count; i++) {
        image_taps p = image_taps_of(w, q->first + i);
        for (size_t c = 0; c < w->channels; c += 64) {
            size_t left = w->channels - c;
            __mmask64 mask = left < 64 ? ((__mmask64)1 << left) - 1 : ~(__mmask64)0;
            __m512i best = _mm512_setzero_si512();
            for (size_t y = p.y0; y < p.y1; y++) {
                const uint8_t *in = q->in + image_taps_pixel(&p, y, 0) * (ptrdiff_t)w->channels + c;
                for (size_t x = p.x0; x < p.x1; x++)
                    best = _mm512_max_epu8(
                        best, _mm512_maskz_loadu_epi8(mask, in + x * w->dilation_x * w->channels));
            }
            _mm512_mask_storeu_epi8(q->out + i * w->channels + c, mask, best);
        }
    }
}

/* 32 channels of two taps, interleaved: the pairs that a multiply-add takes. Unpacking works within
 * quarters, so `low` has channels 0-3, 8-11, 16-19 and 24-27, `high` the others. */
typedef struct channel_sums {
    __m512i low, high;
} channel_sums;

static inline __attribute__((always_inline)) void add_taps(channel_sums *s, __mmask32 mask,
                                                           const uint8_t *a, const uint8_t *b,
                                                           const int8_t *wa, const int8_t *wb,
                                                           __m512i zero)
{
    __m512i x = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(mask, a));
    __m512i y = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(mask, b));
    __m512i u = _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(mask, wa));
    __m512i v =
        wb ? _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(mask, wb)) : _mm512_setzero_si512();
    x = _mm512_sub_epi16(x, zero);
    y = _mm512_sub_epi16(y, zero);
    s->low = _mm512_add_epi32(
        s->low, _mm512_madd_epi16(_mm512_unpacklo_epi16(x, y), _mm512_unpacklo_epi16(u, v)));
    s->high = _mm512_add_epi32(
        s->high, _mm512_madd_epi16(_mm512_unpackhi_epi16(x, y), _mm512_unpackhi_epi16(u, v)));
}

/* The sums of `count` channels from `first` on, at most 32. */
static inline void sum_channels(const depthwise_u8s8 *d, const image_taps *p, size_t first,
                                size_t count, int32_t sums[32])
{
    const image_window *w = &d->window;
    const __m512i zero = _mm512_set1_epi16((int16_t)d->in_zero);
    const __m512i first_half =
        _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i second_half =
        _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    __mmask32 mask = count < 32 ? ((__mmask32)1 << count) - 1 : ~(__mmask32)0;
    channel_sums s = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    const uint8_t *waiting = NULL; /* a tap without a second one yet */
    const int8_t *its_weights = NULL;
    for (size_t y = p->y0; y < p->y1; y++)
        for (size_t x = p->x0; x < p->x1; x++) {
            const uint8_t *in = d->in + image_taps_pixel(p, y, x) * (ptrdiff_t)w->channels + first;
            const int8_t *weights = d->weights + (y * w->kernel_width + x) * w->channels + first;
            if (waiting)
                add_taps(&s, mask, waiting, in, its_weights, weights, zero);
            its_weights = weights;
            waiting = waiting ? NULL : in;
        }
    if (waiting)
        add_taps(&s, mask, waiting, waiting, its_weights, NULL, zero);
    _mm512_storeu_si512(sums, _mm512_permutex2var_epi32(s.low, first_half, s.high));
    _mm512_storeu_si512(sums + 16, _mm512_permutex2var_epi32(s.low, second_half, s.high));
    for (size_t c = 0; d->start && c < count; c++)
        sums[c] = (int32_t)((uint32_t)sums[c] + (uint32_t)d->start[first + c]);
}

void depthwise_u8s8_avx512(const struct depthwise_u8s8 *d)
{
    size_t channels = d->window.channels;
    int32_t sums[U8_CHANNELS];
    for (size_t i = 0; i < d->count; i++) {
        image_taps p = image_taps_of(&d->window, d->first + i);
        for (size_t first = 0; first < channels; first += U8_CHANNELS) {
            size_t count = channels - first < U8_CHANNELS ? channels - first : U8_CHANNELS;
            for (size_t c = 0; c < count; c += 32)
                sum_channels(d, &p, first + c, count - c < 32 ? count - c : 32, sums + c);
            u8_finish_channels(d, sums, first, count, i * channels + first);
        }
    }
}
