#ifndef KERNELS_X86_POOL_VECTOR_H
#define KERNELS_X86_POOL_VECTOR_H

#include <math.h>

#include "kernels/convolution.h"
#include "kernels/kernels_list.h"
#include "kernels/x86/elementwise_vector.h"

/* Planes are pooled in strips of VEC_LANES results, downwards: a row of the window is combined once
 * and kept in a register for the results that share it. */

#ifdef VEC_LANES

#define POOL_SIZE_MAX 5
#define POOL_BAND 32 /* rows of results: what strips beside each other read stays in a cache */

/* Results x .. x + count - 1 of some rows. */
typedef struct pool_strip {
    size_t x, count;
    ptrdiff_t column; /* of the input, under the first tap of result x */
    /* The lanes inside the image, for each tap; of steps of two: for pairs of taps, and for the
     * first and the second vector that they read. */
    vec_mask inside[POOL_SIZE_MAX + 1];
} pool_strip;

static inline __attribute__((always_inline)) vec pool_two(const bool is_max, vec a, vec b)
{
    return is_max ? vec_max_or_nan(a, b) : vec_add(a, b);
}

static inline __attribute__((always_inline)) vec
pool_load(const bool is_inside, vec_mask where, const float *row, ptrdiff_t column, vec none)
{
    return is_inside ? vec_load(row + column) : vec_load_where(where, row + column, none);
}

/* One row of the window. */
static inline __attribute__((always_inline)) vec pool_row(const bool is_max, const int size,
                                                          const int step, const bool is_inside,
                                                          const pool_strip *s, const float *row)
{
    vec none = vec_set(is_max ? -INFINITY : 0), result = none;
    if (step == 1) {
#pragma GCC unroll 5
        for (int t = 0; t < size; t++) {
            vec x = pool_load(is_inside, s->inside[t], row, s->column + t, none);
            result = t > 0 ? pool_two(is_max, result, x) : x;
        }
        return result;
    }
#pragma GCC unroll 3
    for (int t = 0; t < size; t += 2) {
        ptrdiff_t at = s->column + t;
        vec low = pool_load(is_inside, s->inside[t], row, at, none);
        vec high = pool_load(is_inside, s->inside[t + 1], row, at + VEC_LANES, none);
        vec even = vec_even(low, high);
        result = t > 0 ? pool_two(is_max, result, even) : even;
        if (t + 1 < size)
            result = pool_two(is_max, result, vec_odd(low, high));
    }
    return result;
}

/* Rows y .. end - 1 of the results of a strip. */
static inline __attribute__((always_inline)) void pool_down(const bool is_max, const int size,
                                                            const int step, const bool is_inside,
                                                            const pool_planes_f32 *p,
                                                            const pool_strip *s, const float *in,
                                                            size_t y, size_t end, float *out)
{
    const image_window *w = &p->window;
    vec rows[POOL_SIZE_MAX], none = vec_set(is_max ? -INFINITY : 0);
    ptrdiff_t row = (ptrdiff_t)(y * (size_t)step) - (ptrdiff_t)w->pad_top;
    for (bool has_rows = false; y < end; y++, row += step, has_rows = true) {
#pragma GCC unroll 5
        for (int r = 0; r < size; r++) {
            ptrdiff_t at = row + r;
            if (has_rows && r + step < size)
                rows[r] = rows[r + step];
            else if (at < 0 || at >= (ptrdiff_t)w->height)
                rows[r] = none;
            else
                rows[r] = pool_row(is_max, size, step, is_inside, s, in + at * (ptrdiff_t)w->width);
        }
        vec result = rows[0];
#pragma GCC unroll 5
        for (int r = 1; r < size; r++)
            result = pool_two(is_max, result, rows[r]);
        size_t at = y * w->out_width + s->x, count = is_inside ? VEC_LANES : s->count;
        if (p->divisors)
            result = vec_div(result, vec_load_first(p->divisors + at, count));
        vec_store_first(out + at, count, result);
    }
}

/* The lanes whose columns, `column` and those after it, are inside. */
static inline vec_mask pool_lanes_inside(const image_window *w, ptrdiff_t column)
{
    ptrdiff_t first = column < 0 ? -column : 0, end = (ptrdiff_t)w->width - column;
    end = end < 0 ? 0 : end < VEC_LANES ? end : VEC_LANES;
    return vec_between((size_t)(first < VEC_LANES ? first : VEC_LANES), (size_t)end);
}

static inline __attribute__((always_inline)) void
pool_band(const bool is_max, const int size, const int step, const pool_planes_f32 *p,
          const float *in, size_t y, size_t end, float *out)
{
    const image_window *w = &p->window;
    for (size_t x = 0; x < w->out_width; x += VEC_LANES) {
        size_t left = w->out_width - x;
        pool_strip s = {.x = x, .count = left < VEC_LANES ? left : VEC_LANES};
        s.column = (ptrdiff_t)(x * (size_t)step) - (ptrdiff_t)w->pad_left;
        ptrdiff_t behind = s.column + (size - 1) / step * step + step * VEC_LANES;
        if (s.column >= 0 && behind <= (ptrdiff_t)w->width && s.count == VEC_LANES) {
            pool_down(is_max, size, step, true, p, &s, in, y, end, out);
            continue;
        }
#pragma GCC unroll 6
        for (int t = 0; t < (size + step - 1) / step * step; t++)
            s.inside[t] =
                pool_lanes_inside(w, s.column + (step == 1 ? t : t / 2 * 2 + t % 2 * VEC_LANES));
        pool_down(is_max, size, step, false, p, &s, in, y, end, out);
    }
}

static inline __attribute__((always_inline)) void pool_all(const bool is_max, const int size,
                                                           const int step, const pool_planes_f32 *p)
{
    const image_window *w = &p->window;
    for (size_t i = 0; i < p->planes; i++)
        for (size_t y = 0; y < w->out_height; y += POOL_BAND) {
            size_t end = y + POOL_BAND < w->out_height ? y + POOL_BAND : w->out_height;
            pool_band(is_max, size, step, p, p->in + i * w->height * w->width, y, end,
                      p->out + i * w->out_height * w->out_width);
        }
}

static inline __attribute__((always_inline)) void pool_sized(const int size, const int step,
                                                             const pool_planes_f32 *p)
{
    if (p->is_max)
        pool_all(true, size, step, p);
    else
        pool_all(false, size, step, p);
}

static inline void pool_planes(const pool_planes_f32 *p)
{
    const image_window *w = &p->window;
    size_t size = w->kernel_height;
    if (!pool_planes_is_fast(w))
        pool_planes_f32_scalar(p);
    else if (size == 2 && w->stride_y == 1)
        pool_sized(2, 1, p);
    else if (size == 2)
        pool_sized(2, 2, p);
    else if (size == 3 && w->stride_y == 1)
        pool_sized(3, 1, p);
    else if (size == 3)
        pool_sized(3, 2, p);
    else if (w->stride_y == 1)
        pool_sized(5, 1, p);
    else
        pool_sized(5, 2, p);
}

#endif
#endif
