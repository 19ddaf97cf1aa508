#ifndef KERNELS_X86_IMAGE_VECTOR_H
#define KERNELS_X86_IMAGE_VECTOR_H

#include <math.h>

#include "kernels/convolution.h"
#include "kernels/embedding.h"
#include "kernels/x86/elementwise_vector.h"

#ifdef VEC_LANES

/* The part of a window that lies inside the image: taps [y0, y1) x [x0, x1), the first of which is
 * over input pixel `origin` + y0 * row_step + x0 * column_step (which may begin negative). */
typedef struct window_part {
    size_t y0, y1, x0, x1;
    ptrdiff_t origin, row_step, column_step;
} window_part;

/* Taps 0 .. count-1 lie at start + tap * dilation; the first and the end of those in [0, size). */
static inline void clip_taps(ptrdiff_t start, size_t dilation, size_t count, size_t size,
                             size_t *first, size_t *end)
{
    ptrdiff_t step = (ptrdiff_t)dilation, room = (ptrdiff_t)size - start;
    size_t skipped = start < 0 ? (size_t)((-start + step - 1) / step) : 0;
    size_t fitting = room > 0 ? (size_t)((room + step - 1) / step) : 0;
    *end = fitting < count ? fitting : count;
    *first = skipped < *end ? skipped : *end;
}

static inline window_part clip_window(const image_window *w, size_t index)
{
    window_part p;
    ptrdiff_t y = (ptrdiff_t)(index / w->out_width * w->stride_y) - (ptrdiff_t)w->pad_top;
    ptrdiff_t x = (ptrdiff_t)(index % w->out_width * w->stride_x) - (ptrdiff_t)w->pad_left;
    clip_taps(y, w->dilation_y, w->kernel_height, w->height, &p.y0, &p.y1);
    clip_taps(x, w->dilation_x, w->kernel_width, w->width, &p.x0, &p.x1);
    p.origin = y * (ptrdiff_t)w->width + x;
    p.row_step = (ptrdiff_t)(w->dilation_y * w->width);
    p.column_step = (ptrdiff_t)w->dilation_x;
    return p;
}

static inline const float *window_pixel(const window_part *p, const float *in, size_t channels,
                                        size_t y, size_t x)
{
    ptrdiff_t pixel = p->origin + (ptrdiff_t)y * p->row_step + (ptrdiff_t)x * p->column_step;
    return in + pixel * (ptrdiff_t)channels;
}

static inline void depthwise_pixels(const depthwise_f32 *d)
{
    const image_window *w = &d->window;
    size_t channels = w->channels;
    for (size_t i = 0; i < d->count; i++) {
        window_part p = clip_window(w, d->first + i);
        for (size_t c = 0; c < channels; c += VEC_LANES) {
            size_t n = channels - c < VEC_LANES ? channels - c : VEC_LANES;
            vec sum = d->bias ? vec_load_first(d->bias + c, n) : vec_set(0);
            for (size_t y = p.y0; y < p.y1; y++) {
                const float *weights = d->weights + (y * w->kernel_width) * channels + c;
                for (size_t x = p.x0; x < p.x1; x++) {
                    const float *in = window_pixel(&p, d->in, channels, y, x) + c;
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
        window_part p = clip_window(w, q->first + i);
        size_t inside = (p.y1 - p.y0) * (p.x1 - p.x0);
        size_t divisor = q->kind == POOL_AVERAGE ? inside : w->kernel_height * w->kernel_width;
        for (size_t c = 0; c < channels; c += VEC_LANES) {
            size_t n = channels - c < VEC_LANES ? channels - c : VEC_LANES;
            vec result = vec_set(q->kind == POOL_MAX ? -INFINITY : 0);
            for (size_t y = p.y0; y < p.y1; y++) {
                for (size_t x = p.x0; x < p.x1; x++) {
                    vec in = vec_load_first(window_pixel(&p, q->in, channels, y, x) + c, n);
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
        /* A word's row is not in any cache as a rule: asked for some tokens ahead. */
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
