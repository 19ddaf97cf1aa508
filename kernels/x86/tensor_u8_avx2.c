#include <immintrin.h>

#include "kernels/kernels_list.h"
#include "kernels/scalar/tensor_u8_loops.h"

void quantise_tensor_u8_avx2(const struct quantise_tensor_u8 *q)
{
    u8_quantise(q);
}

void dequantise_u8_avx2(const struct dequantise_u8 *d)
{
    u8_dequantise(d);
}

void add_u8_avx2(const struct add_u8 *p)
{
    u8_add(p);
}

/* Of 16 bytes of a plane those that belong in the `part`th 16 bytes of three planes' pixels, each
 * at its place: byte k of the pixels is that of plane k % 3. */
static inline __m128i spread_third(const uint8_t *in, int plane, int part)
{
    static const int8_t places[48] = {
        0,  -1, -1, 1,  -1, -1, 2,  -1, -1, 3,  -1, -1, 4,  -1, -1, 5,
        -1, -1, 6,  -1, -1, 7,  -1, -1, 8,  -1, -1, 9,  -1, -1, 10, -1,
        -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1,
    };
    int8_t wanted[16];
    for (int i = 0; i < 16; i++) {
        int k = 16 * part + i - plane;
        wanted[i] = k >= 0 ? places[k] : -1;
    }
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)in),
                            _mm_loadu_si128((const __m128i *)wanted));
}

void interleave_u8_avx2(const struct interleave_u8 *p)
{
    size_t i = 0;
    for (; p->planes == 3 && i + 16 <= p->count; i += 16) {
        const uint8_t *in = p->in + i;
#pragma GCC unroll 3
        for (int part = 0; part < 3; part++) {
            __m128i pixels =
                _mm_or_si128(spread_third(in, 0, part), spread_third(in + p->count, 1, part));
            pixels = _mm_or_si128(pixels, spread_third(in + 2 * p->count, 2, part));
            _mm_storeu_si128((__m128i *)(p->out + 3 * i + 16 * (size_t)part), pixels);
        }
    }
    u8_interleave(p, i);
}

void pool_u8_avx2(const struct pool_u8 *p)
{
    u8_pool(p);
}

void depthwise_u8s8_avx2(const struct depthwise_u8s8 *d)
{
    u8_depthwise(d);
}
