#ifndef KERNELS_X86_IMAGE_VECTOR_H
#define KERNELS_X86_IMAGE_VECTOR_H

#include <math.h>

#include "kernels/convolution.h"
#include "kernels/embedding.h"
#include "kernels/scalar/image_taps.h"
#include "kernels/x86/elementwise_vector.h"

#ifdef VEC_LANES

static inline void depthwise_pixels(const depthwise_f32 *d)
{
    const image_window *w = &d->window;
    size_t channels = w->channels;
    for (size_t i = 0; i < d->count; i++) {
        image_taps p = image_taps_of(w, d->first + i);
        for (size_t c = 0; c < channels; c += VEC_LANES) {
            size_t n = channels - c < VEC_LANES ? channels - c : VEC_LANES;
            vec sum = d->bias ? vec_load_first(d->bias + c, n) : vec_set(0);
            for (size_t y = p.y0; y < p.y1; y++) {
                const float *weights = d->weights + (y * w->kernel_width) * channels + c;
                for (size_t x = p.x0; x < p.x1; x++) {
                    const float *in = d->in + image_taps_pixel(&p, y, x) * (ptrdiff_t)channels + c;
                    sum = vec_fma(vec_load_first(in, n), vec_load_first(weights + x * channels, n),
                                  sum);
                }
            }
            vec_store_first(d->out + i * channels + c, n, vec_activate(d->activation, sum));
        }
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
