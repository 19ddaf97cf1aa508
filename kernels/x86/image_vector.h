#ifndef KERNELS_X86_IMAGE_VECTOR_H
#define KERNELS_X86_IMAGE_VECTOR_H

#include <math.h>

#include "kernels/convolution.h"
#include "kernels/embedding.h"
#include "kernels/scalar/image_taps.h"
#include "kernels/x86/elementwise_vector.h"

#ifdef VEC_LANES

#define DEPTHWISE_PIXELS 4
#define DEPTHWISE_VECTORS 4

/* `vectors` vectors of channels from `c` on, the last of `last` channels, of `pixels` neighbouring
 * pixels with the same taps. A sum alone would wait for the latency of its additions; neighbours
 * share the weights. Constants at every call, so that sums live in registers. */
static inline __attribute__((always_inline)) void
depthwise_block(const depthwise_f32 *d, const image_taps *p, const int pixels, const int vectors,
                size_t c, size_t last, float *out)
{
    const image_window *w = &d->window;
    size_t channels = w->channels, step = w->stride_x * channels;
    vec sums[DEPTHWISE_PIXELS][DEPTHWISE_VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
        size_t n = v + 1 < vectors ? VEC_LANES : last;
        vec bias = d->bias ? vec_load_first(d->bias + c + v * VEC_LANES, n) : vec_set(0);
#pragma GCC unroll 4
        for (int q = 0; q < pixels; q++)
            sums[q][v] = bias;
    }
    for (size_t y = p->y0; y < p->y1; y++) {
        const float *weights = d->weights + (y * w->kernel_width + p->x0) * channels + c;
        const float *in = d->in + image_taps_pixel(p, y, p->x0) * (ptrdiff_t)channels + c;
        for (size_t x = p->x0; x < p->x1; x++) {
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) {
                size_t n = v + 1 < vectors ? VEC_LANES : last;
                vec weight = vec_load_first(weights + v * VEC_LANES, n);
#pragma GCC unroll 4
                for (int q = 0; q < pixels; q++)
                    sums[q][v] = vec_fma(vec_load_first(in + (size_t)q * step + v * VEC_LANES, n),
                                         weight, sums[q][v]);
            }
            weights += channels;
            in += p->column_step * (ptrdiff_t)channels;
        }
    }
#pragma GCC unroll 4
    for (int q = 0; q < pixels; q++) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            vec_store_first(out + (size_t)q * channels + c + v * VEC_LANES,
                            v + 1 < vectors ? VEC_LANES : last,
                            vec_activate(d->activation, sums[q][v]));
    }
}

/* All channels of `pixels` neighbours, `vectors` vectors at a time. */
static inline __attribute__((always_inline)) void depthwise_run(const depthwise_f32 *d,
                                                                const image_taps *p,
                                                                const int pixels, const int vectors,
                                                                float *out)
{
    size_t c = 0, channels = d->window.channels;
    for (; c + (size_t)vectors * VEC_LANES <= channels; c += (size_t)vectors * VEC_LANES)
        depthwise_block(d, p, pixels, vectors, c, VEC_LANES, out);
    for (; c + VEC_LANES <= channels; c += VEC_LANES)
        depthwise_block(d, p, pixels, 1, c, VEC_LANES, out);
    if (c < channels)
        depthwise_block(d, p, pixels, 1, c, channels - c, out);
}

static inline void depthwise_pixels(const depthwise_f32 *d)
{
    const image_window *w = &d->window;
    size_t last_tap = (w->kernel_width - 1) * w->dilation_x;
    for (size_t i = 0, pixels; i < d->count; i += pixels) {
        image_taps p = image_taps_of(w, d->first + i);
        float *out = d->out + i * w->channels;
        size_t x = (d->first + i) % w->out_width;
        size_t end = (x + DEPTHWISE_PIXELS - 1) * w->stride_x + last_tap;
        bool is_inside = x * w->stride_x >= w->pad_left && end < w->width + w->pad_left;
        pixels =
            is_inside && d->count - i >= DEPTHWISE_PIXELS && w->out_width - x >= DEPTHWISE_PIXELS
                ? DEPTHWISE_PIXELS
                : 1;
        if (pixels > 1)
            depthwise_run(d, &p, DEPTHWISE_PIXELS, 2, out);
        else
            depthwise_run(d, &p, 1, DEPTHWISE_VECTORS, out);
    }
}

static inline void pool_pixels(const pool_f32 *q)
{
    const image_window *w = &q->window;
    size_t channels = w->channels;
    for (size_t i = 0; i < q->count; i++) {
        image_taps p = image_taps_of(w, q->first + i);
        size_t inside = (p.y1 - p.y0) * (p.x1 - p.x0);
        size_t divisor = q->kind == POOL_AVERAGE ? inside : w->kernel_height * w->kernel_width;
        for (size_t c = 0; c < channels; c += VEC_LANES) {
            size_t n = channels - c < VEC_LANES ? channels - c : VEC_LANES;
            vec result = vec_set(q->kind == POOL_MAX ? -INFINITY : 0);
            for (size_t y = p.y0; y < p.y1; y++) {
                for (size_t x = p.x0; x < p.x1; x++) {
                    vec in = vec_load_first(
                        q->in + image_taps_pixel(&p, y, x) * (ptrdiff_t)channels + c, n);
                    result = q->kind == POOL_MAX ? vec_max_or_nan(result, in) : vec_add(result, in);
                }
            }
            if (q->kind != POOL_MAX)
                result = divisor ? vec_div(result, vec_set((float)divisor)) : vec_set(0);
            vec_store_first(q->out + i * channels + c, n, result);
        }
    }
}

#define EMBEDDING_AHEAD 4

static inline void embed_tokens(const embedding_sum_f32 *e)
{
    for (size_t t = 0; t < e->tokens; t++) {
        const float *rows[EMBEDDING_TABLES_MAX];
        for (size_t i = 0; i < e->table_count; i++)
            rows[i] = e->tables[i] + (size_t)e->ids[i][t] * e->width;
        /* The row of a word is rarely in a cache: it is prefetched some tokens ahead. */
        const float *next = t + EMBEDDING_AHEAD < e->tokens
                                ? e->tables[0] + (size_t)e->ids[0][t + EMBEDDING_AHEAD] * e->width
                                : NULL;
        for (size_t x = 0; x < e->width; x += VEC_LANES) {
            size_t n = e->width - x < VEC_LANES ? e->width - x : VEC_LANES;
            if (next)
                _mm_prefetch((const char *)(next + x), _MM_HINT_T0);
            vec sum = vec_load_first(rows[0] + x, n);
            for (size_t i = 1; i < e->table_count; i++)
                sum = vec_add(sum, vec_load_first(rows[i] + x, n));
            vec_store_first(e->out + t * e->out_stride + x, n, sum);
        }
    }
}

#endif
#endif
