#ifndef KERNELS_SCALAR_TENSOR_U8_LOOPS_H
#define KERNELS_SCALAR_TENSOR_U8_LOOPS_H

#include <string.h>

#include "kernels/scalar/image_taps.h"
#include "kernels/tensor_u8.h"

/* The loops of tensor_u8.h in plain C: every level compiles these very lines with its own
 * instructions, so levels cannot differ. Written so that compilers vectorise them: no calls, no
 * branches, no conversions that saturate by themselves. */

/* To nearest, ties to even, for |x| < 2^22: the sum's last bit is worth one. */
#define U8_ROUNDER 12582912.0f /* 1.5 * 2^23 */

/* Rounded and limited to low .. high, which are whole numbers; NaN gives low. */
static inline int32_t u8_round(float x, float low, float high)
{
    x = x > low ? x : low;
    x = x < high ? x : high;
    return (int32_t)((x + U8_ROUNDER) - U8_ROUNDER);
}

static inline void u8_quantise(const quantise_tensor_u8 *q)
{
    const float *restrict x = q->x;
    uint8_t *restrict out = q->out;
    uint8_t flip = q->is_signed ? 0x80 : 0;
    int32_t zero = q->zero + flip;
    float scale = q->scale, low = (float)-zero, high = (float)(255 - zero);
    size_t count =
        q->count; /* in a local: the compiler assumes that storing a byte may change *q */
    for (size_t i = 0; i < count; i++)
        out[i] = (uint8_t)(u8_round(x[i] / scale, low, high) + zero) ^ flip;
}

static inline void u8_dequantise(const dequantise_u8 *d)
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

static inline void u8_add(const add_u8 *p)
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
        out[i] = (uint8_t)(u8_round(x + y, low, high) + zero);
    }
}

static inline void u8_larger(uint8_t *restrict out, const uint8_t *restrict in, size_t count)
{
    for (size_t c = 0; c < count; c++)
        out[c] = in[c] > out[c] ? in[c] : out[c];
}

static inline void u8_pool(const pool_u8 *q)
{
    const image_window *w = &q->window;
    for (size_t i = 0; i < q->count; i++) {
        image_taps p = image_taps_of(w, q->first + i);
        uint8_t *out = q->out + i * w->channels;
        for (size_t c = 0; c < w->channels; c++)
            out[c] = 0;
        for (size_t y = p.y0; y < p.y1; y++)
            for (size_t x = p.x0; x < p.x1; x++)
                u8_larger(out, q->in + image_taps_pixel(&p, y, x) * (ptrdiff_t)w->channels,
                          w->channels);
    }
}

#define U8_CHANNELS 64 /* sums at a time */

static inline void u8_add_weighted(int32_t *restrict sums, const uint8_t *restrict in, int32_t zero,
                                   const int8_t *restrict weights, size_t count)
{
    for (size_t c = 0; c < count; c++)
        sums[c] += ((int32_t)in[c] - zero) * (int32_t)weights[c];
}

static inline void u8_finish_channels(const depthwise_u8s8 *d, const int32_t *restrict sums,
                                      size_t first, size_t count, size_t at)
{
    const float *restrict scale = d->scale + first;
    const float *restrict bias = d->bias ? d->bias + first : NULL;
    float x[U8_CHANNELS], low = d->has_relu ? 0 : -3e38f;
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
        out[c] = (uint8_t)(u8_round(x[c], bottom, top) + zero);
}

static inline void u8_depthwise(const depthwise_u8s8 *d)
{
    const image_window *w = &d->window;
    for (size_t i = 0; i < d->count; i++) {
        image_taps p = image_taps_of(w, d->first + i);
        for (size_t first = 0; first < w->channels; first += U8_CHANNELS) {
            size_t count = w->channels - first < U8_CHANNELS ? w->channels - first : U8_CHANNELS;
            int32_t sums[U8_CHANNELS];
            for (size_t c = 0; c < count; c++)
                sums[c] = d->start ? d->start[first + c] : 0;
            for (size_t y = p.y0; y < p.y1; y++)
                for (size_t x = p.x0; x < p.x1; x++)
                    u8_add_weighted(
                        sums, d->in + image_taps_pixel(&p, y, x) * (ptrdiff_t)w->channels + first,
                        d->in_zero, d->weights + (y * w->kernel_width + x) * w->channels + first,
                        count);
            u8_finish_channels(d, sums, first, count, i * w->channels + first);
        }
    }
}

#endif
