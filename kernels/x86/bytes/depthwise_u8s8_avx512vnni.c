#include <immintrin.h>

#include "kernels/kernels_list.h"
#include "kernels/scalar/tensor_u8_loops.h"

/* 64 channels at a time: the bytes of four taps are interleaved, which is what a dot product of
 * bytes takes. Interleaving works within quarters of a vector: sums [j] has channels 16 q + 4 j + 0
 * .. 3 in quarter q; scales, biases and starts are brought into that order once, and packing the
 * results undoes it. Padding is read as the zero point, whose share is in the starts. */

#define QUADS_MAX 16 /* of taps; larger windows take the level below */

typedef struct quarters {
    __m512i v[4];
} quarters;

/* What all pixels of 64 channels share. */
typedef struct channel_block {
    __mmask64 mask;
    quarters weights[QUADS_MAX];
    quarters start, scale, bias; /* scale and bias: floats */
} channel_block;

static inline __attribute__((always_inline)) quarters interleaved(__m512i a, __m512i b, __m512i c,
                                                                  __m512i d)
{
    __m512i ab = _mm512_unpacklo_epi8(a, b), cd = _mm512_unpacklo_epi8(c, d);
    __m512i ef = _mm512_unpackhi_epi8(a, b), gh = _mm512_unpackhi_epi8(c, d);
    return (quarters){{_mm512_unpacklo_epi16(ab, cd), _mm512_unpackhi_epi16(ab, cd),
                       _mm512_unpacklo_epi16(ef, gh), _mm512_unpackhi_epi16(ef, gh)}};
}

/* Quarter j of vector q becomes quarter q of vector j; its own inverse. */
static inline __attribute__((always_inline)) quarters exchanged(quarters x)
{
    __m512i a = _mm512_shuffle_i32x4(x.v[0], x.v[1], 0x44);
    __m512i b = _mm512_shuffle_i32x4(x.v[0], x.v[1], 0xee);
    __m512i c = _mm512_shuffle_i32x4(x.v[2], x.v[3], 0x44);
    __m512i d = _mm512_shuffle_i32x4(x.v[2], x.v[3], 0xee);
    return (quarters){{_mm512_shuffle_i32x4(a, c, 0x88), _mm512_shuffle_i32x4(a, c, 0xdd),
                       _mm512_shuffle_i32x4(b, d, 0x88), _mm512_shuffle_i32x4(b, d, 0xdd)}};
}

static __mmask16 mask_of(const channel_block *b, int part)
{
    return (__mmask16)(b->mask >> 16 * part);
}

/* 64 numbers of four bytes, in the order of sums; NULL gives zeros. */
static quarters load_channels(const channel_block *b, const void *from)
{
    quarters x;
    for (int i = 0; i < 4; i++)
        x.v[i] = from ? _mm512_maskz_loadu_epi32(mask_of(b, i), (const int32_t *)from + 16 * i)
                      : _mm512_setzero_si512();
    return exchanged(x);
}

static size_t quads_of(const image_window *w)
{
    return (w->kernel_height * w->kernel_width + 3) / 4;
}

static void prepare_block(const depthwise_u8s8 *d, size_t first, channel_block *b)
{
    const image_window *w = &d->window;
    size_t left = w->channels - first, taps = w->kernel_height * w->kernel_width;
    b->mask = left < 64 ? ((__mmask64)1 << left) - 1 : ~(__mmask64)0;
    b->start = load_channels(b, d->start ? d->start + first : NULL);
    b->scale = load_channels(b, d->scale + first);
    b->bias = load_channels(b, d->bias ? d->bias + first : NULL);
    quarters sums = {{_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                      _mm512_setzero_si512()}};
    for (size_t quad = 0; quad < quads_of(w); quad++) {
        __m512i v[4];
        for (size_t i = 0; i < 4; i++)
            v[i] = 4 * quad + i < taps
                       ? _mm512_maskz_loadu_epi8(b->mask,
                                                 d->weights + (4 * quad + i) * w->channels + first)
                       : _mm512_setzero_si512();
        b->weights[quad] = interleaved(v[0], v[1], v[2], v[3]);
        for (int j = 0; j < 4; j++)
            sums.v[j] = _mm512_dpbusd_epi32(sums.v[j], _mm512_set1_epi8(1), b->weights[quad].v[j]);
    }
    for (int j = 0; j < 4; j++)
        b->start.v[j] = _mm512_sub_epi32(
            b->start.v[j], _mm512_mullo_epi32(sums.v[j], _mm512_set1_epi32(d->in_zero)));
}

/* Sums to results of one pixel; `low` is what ReLU, if any, leaves. */
static inline __attribute__((always_inline)) void
finish_pixel(const depthwise_u8s8 *d, const channel_block *b, const quarters *sums, size_t at)
{
    const __m512 low = _mm512_set1_ps(d->has_relu ? 0 : -3e38f);
    const __m512 bottom = _mm512_set1_ps((float)-d->zero);
    const __m512 top = _mm512_set1_ps((float)(255 - d->zero));
    quarters x;
    for (int j = 0; j < 4; j++) {
        __m512 f =
            _mm512_mul_ps(_mm512_cvtepi32_ps(sums->v[j]), _mm512_castsi512_ps(b->scale.v[j]));
        if (d->bias)
            f = _mm512_add_ps(f, _mm512_castsi512_ps(b->bias.v[j]));
        f = _mm512_max_ps(f, low); /* NaN: the second */
        if (d->out)
            f = _mm512_min_ps(_mm512_max_ps(f, bottom), top);
        x.v[j] = d->out ? _mm512_cvtps_epi32(f) : _mm512_castps_si512(f);
    }
    if (!d->out) {
        x = exchanged(x);
        for (int i = 0; i < 4; i++)
            _mm512_mask_storeu_epi32(d->out_f32 + at + 16 * i, mask_of(b, i), x.v[i]);
        return;
    }
    const __m512i zero = _mm512_set1_epi16((int16_t)d->zero);
    __m512i first = _mm512_add_epi16(_mm512_packs_epi32(x.v[0], x.v[1]), zero);
    __m512i second = _mm512_add_epi16(_mm512_packs_epi32(x.v[2], x.v[3]), zero);
    _mm512_mask_storeu_epi8(d->out + at, b->mask, _mm512_packus_epi16(first, second));
}

/* Where the taps of a pixel lie, from `first` channel on; NULL for those in the padding. What fills
 * up a quad has no weight. */
static void find_taps(const depthwise_u8s8 *d, const image_taps *p, size_t first,
                      const uint8_t *taps[4 * QUADS_MAX])
{
    const image_window *w = &d->window;
    size_t t = 0;
    for (size_t y = 0; y < w->kernel_height; y++)
        for (size_t x = 0; x < w->kernel_width; x++, t++)
            taps[t] = y >= p->y0 && y < p->y1 && x >= p->x0 && x < p->x1
                          ? d->in + image_taps_pixel(p, y, x) * (ptrdiff_t)w->channels + first
                          : NULL;
    for (; t < 4 * quads_of(w); t++)
        taps[t] = taps[t - 1];
}

/* One pixel, whose taps are `offset` bytes from `taps`. */
static inline __attribute__((always_inline)) void
convolve_pixel(const depthwise_u8s8 *d, const channel_block *b, const uint8_t *const *taps,
               size_t quads, const int is_inside, size_t offset, size_t at)
{
    const __m512i pad = _mm512_set1_epi8((char)d->in_zero);
    quarters sums = b->start;
    for (size_t quad = 0; quad < quads; quad++, taps += 4) {
        __m512i v[4];
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            v[j] = is_inside || taps[j] ? _mm512_maskz_loadu_epi8(b->mask, taps[j] + offset) : pad;
        quarters x = interleaved(v[0], v[1], v[2], v[3]);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            sums.v[j] = _mm512_dpbusd_epi32(sums.v[j], x.v[j], b->weights[quad].v[j]);
    }
    finish_pixel(d, b, &sums, at);
}

/* How many pixels from one at column `x` on have all their taps inside the image. */
static size_t inside_run(const image_window *w, const image_taps *p, size_t x)
{
    size_t all = w->kernel_height * w->kernel_width;
    if ((p->y1 - p->y0) * (p->x1 - p->x0) < all)
        return 0;
    size_t reach = x * w->stride_x + (w->kernel_width - 1) * w->dilation_x - w->pad_left;
    size_t run = (w->width - 1 - reach) / w->stride_x + 1, left = w->out_width - x;
    return run < left ? run : left;
}

static void convolve_block(const depthwise_u8s8 *d, const channel_block *b, size_t first)
{
    const image_window *w = &d->window;
    const uint8_t *taps[4 * QUADS_MAX];
    size_t quads = quads_of(w), step = w->stride_x * w->channels, at = first;
    for (size_t i = 0; i < d->count;) {
        image_taps p = image_taps_of(w, d->first + i);
        size_t run = inside_run(w, &p, (d->first + i) % w->out_width);
        run = run < d->count - i ? run : d->count - i;
        find_taps(d, &p, first, taps);
        if (run == 0) {
            convolve_pixel(d, b, taps, quads, 0, 0, at);
            at += w->channels;
            i++;
            continue;
        }
        i += run;
        for (size_t offset = 0; run > 0; run--, offset += step, at += w->channels)
            convolve_pixel(d, b, taps, quads, 1, offset, at);
    }
}

void depthwise_u8s8_avx512vnni(const struct depthwise_u8s8 *d)
{
    if (quads_of(&d->window) > QUADS_MAX) {
        depthwise_u8s8_avx512(d);
        return;
    }
    for (size_t first = 0; first < d->window.channels; first += 64) {
        channel_block b;
        prepare_block(d, first, &b);
        convolve_block(d, &b, first);
    }
}
