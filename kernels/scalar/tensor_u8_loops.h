#ifndef KERNELS_SCALAR_TENSOR_U8_LOOPS_H
#define KERNELS_SCALAR_TENSOR_U8_LOOPS_H

#include <string.h>

#include "kernels/tensor_u8.h"

/* The loops of bytes.h in plain C: every level compiles these very lines with its own instructions,
 * so levels cannot differ. Written so that compilers vectorise them: no calls, no branches, no
 * conversions that saturate by themselves. */

/* To nearest, ties to even, for |x| < 2^22: the sum's last bit is worth one. */
#define BYTES_ROUNDER 12582912.0f /* 1.5 * 2^23 */

/* As an integer from low to high (which are whole); NaN gives low. */
static inline int32_t bytes_round(float x, float low, float high)
{
    x = x > low ? x : low;
    x = x < high ? x : high;
    return (int32_t)((x + BYTES_ROUNDER) - BYTES_ROUNDER);
}

static inline void quantise_bytes(const quantise_tensor_u8 *q)
{
    const float *restrict x = q->x;
    uint8_t *restrict out = q->out;
    uint8_t flip = q->is_signed ? 0x80 : 0;
    int32_t zero = q->zero + flip;
    float scale = q->scale, low = (float)-zero, high = (float)(255 - zero);
    size_t count = q->count; /* a byte stored could change what q points to */
    for (size_t i = 0; i < count; i++)
        out[i] = (uint8_t)(bytes_round(x[i] / scale, low, high) + zero) ^ flip;
}

static inline void dequantise_bytes(const dequantise_u8 *d)
{
    const uint8_t *restrict in = d->in;
    float *restrict out = d->out;
    uint8_t flip = d->is_signed ? 0x80 : 0;
    int32_t zero = d->zero + flip;
    float scale = d->scale;
    size_t count = d->count;
    for (size_t i = 0; i < count; i++)
        out[i] = (float)((int32_t)(in[i] ^ flip) - zero) * scale;
}

static inline void add_bytes(const add_u8 *p)
{
    const uint8_t *a = p->a, *b = p->b;
    uint8_t *out = p->out;
    float a_scale = p->a_scale, b_scale = p->b_scale;
    float low = (float)(p->low - p->zero), high = (float)(255 - p->zero);
    int32_t a_zero = p->a_zero, b_zero = p->b_zero, zero = p->zero;
    size_t count = p->count;
#pragma GCC ivdep
    for (size_t i = 0; i < count; i++) {
        float x = (float)((int32_t)a[i] - a_zero) * a_scale;
        float y = (float)((int32_t)b[i] - b_zero) * b_scale;
        out[i] = (uint8_t)(bytes_round(x + y, low, high) + zero);
    }
}

/* Pixels [first, count). */
static inline void interleave_bytes(const interleave_u8 *p, size_t first)
{
    uint8_t *restrict out = p->out + first * p->planes;
    for (size_t i = first; i < p->count; i++)
        for (size_t plane = 0; plane < p->planes; plane++)
            *out++ = p->in[plane * p->count + i];
}

/* Taps t with 0 <= start + t * dilation < size are [*first, *end). */
static inline void bytes_clip(ptrdiff_t start, size_t dilation, size_t taps, size_t size,
                              size_t *first, size_t *end)
{
    ptrdiff_t step = (ptrdiff_t)dilation, room = (ptrdiff_t)size - start;
    size_t fitting = room > 0 ? (size_t)((room + step - 1) / step) : 0;
    size_t skipped = start < 0 ? (size_t)((-start + step - 1) / step) : 0;
    *end = fitting < taps ? fitting : taps;
    *first = skipped < *end ? skipped : *end;
}

/* The taps of output pixel `index` that lie inside the image, and the input pixel under tap 0 of
 * row y0 (perhaps outside, to the left). */
typedef struct bytes_part {
    size_t y0, y1, x0, x1;
    ptrdiff_t y, x;
} bytes_part;

static inline bytes_part bytes_part_of(const image_window *w, size_t index)
{
    bytes_part p;
    p.y = (ptrdiff_t)(index / w->out_width * w->stride_y) - (ptrdiff_t)w->pad_top;
    p.x = (ptrdiff_t)(index % w->out_width * w->stride_x) - (ptrdiff_t)w->pad_left;
    bytes_clip(p.y, w->dilation_y, w->kernel_height, w->height, &p.y0, &p.y1);
    bytes_clip(p.x, w->dilation_x, w->kernel_width, w->width, &p.x0, &p.x1);
    return p;
}

static inline const uint8_t *bytes_pixel(const image_window *w, const bytes_part *p,
                                         const uint8_t *in, size_t ky, size_t kx)
{
    size_t y = (size_t)(p->y + (ptrdiff_t)(ky * w->dilation_y));
    size_t x = (size_t)(p->x + (ptrdiff_t)(kx * w->dilation_x));
    return in + (y * w->width + x) * w->channels;
}

static inline void larger_bytes(uint8_t *restrict out, const uint8_t *restrict in, size_t count)
{
    for (size_t c = 0; c < count; c++)
        out[c] = in[c] > out[c] ? in[c] : out[c];
}

static inline void pool_bytes(const pool_u8 *q)
{
    const image_window *w = &q->window;
    for (size_t i = 0; i < q->count; i++) {
        bytes_part p = bytes_part_of(w, q->first + i);
        uint8_t *out = q->out + i * w->channels;
        for (size_t c = 0; c < w->channels; c++)
            out[c] = 0;
        for (size_t y = p.y0; y < p.y1; y++)
            for (size_t x = p.x0; x < p.x1; x++)
                larger_bytes(out, bytes_pixel(w, &p, q->in, y, x), w->channels);
    }
}

#define BYTES_CHANNELS 64 /* sums at a time */

static inline void add_products(int32_t *restrict sums, const uint8_t *restrict in, int32_t zero,
                                const int8_t *restrict weights, size_t count)
{
    for (size_t c = 0; c < count; c++)
        sums[c] += ((int32_t)in[c] - zero) * (int32_t)weights[c];
}

static inline void finish_channels(const depthwise_u8s8 *d, const int32_t *restrict sums,
                                   size_t first, size_t count, size_t at)
{
    const float *restrict scale = d->scale + first;
    const float *restrict bias = d->bias ? d->bias + first : NULL;
    float x[BYTES_CHANNELS], low = d->has_relu ? 0 : -3e38f;
    for (size_t c = 0; c < count; c++)
        x[c] = (float)sums[c] * scale[c];
    for (size_t c = 0; bias && c < count; c++)
        x[c] += bias[c];
    for (size_t c = 0; c < count; c++)
        x[c] = x[c] > low ? x[c] : low;
    if (d->out_f32) {
        memcpy(d->out_f32 + at, x, count * sizeof x[0]);
        return;
    }
    uint8_t *restrict out = d->out + at;
    int32_t zero = d->zero;
    float bottom = (float)-zero, top = (float)(255 - zero);
    for (size_t c = 0; c < count; c++)
        out[c] = (uint8_t)(bytes_round(x[c], bottom, top) + zero);
}

static inline void depthwise_bytes(const depthwise_u8s8 *d)
{
    const image_window *w = &d->window;
    for (size_t i = 0; i < d->count; i++) {
        bytes_part p = bytes_part_of(w, d->first + i);
        for (size_t first = 0; first < w->channels; first += BYTES_CHANNELS) {
            size_t count =
                w->channels - first < BYTES_CHANNELS ? w->channels - first : BYTES_CHANNELS;
            int32_t sums[BYTES_CHANNELS];
            for (size_t c = 0; c < count; c++)
                sums[c] = d->start ? d->start[first + c] : 0;
            for (size_t y = p.y0; y < p.y1; y++)
                for (size_t x = p.x0; x < p.x1; x++)
                    add_products(sums, bytes_pixel(w, &p, d->in, y, x) + first, d->in_zero,
                                 d->weights + (y * w->kernel_width + x) * w->channels + first,
                                 count);
            finish_channels(d, sums, first, count, i * w->channels + first);
        }
    }
}

#endif
