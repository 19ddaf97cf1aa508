#ifndef KERNELS_SCALAR_IMAGE_TAPS_H
#define KERNELS_SCALAR_IMAGE_TAPS_H

#include "kernels/convolution.h"

/* The part of a window that lies inside the image: taps [y0, y1) x [x0, x1). The input pixel under
 * tap (y, x) is origin + y * row_step + x * column_step; `origin` may be negative. */
typedef struct image_taps {
    size_t y0, y1, x0, x1;
    ptrdiff_t origin, row_step, column_step;
} image_taps;

/* Taps 0 .. count-1 lie at start + tap * dilation; the first and the end of those in [0, size). */
static inline void image_taps_clip(ptrdiff_t start, size_t dilation, size_t count, size_t size,
                                   size_t *first, size_t *end)
{
    ptrdiff_t step = (ptrdiff_t)dilation, room = (ptrdiff_t)size - start;
    size_t skipped = start < 0 ? (size_t)((-start + step - 1) / step) : 0;
    size_t fitting = room > 0 ? (size_t)((room + step - 1) / step) : 0;
    *end = fitting < count ? fitting : count;
    *first = skipped < *end ? skipped : *end;
}

/* Of output pixel `index`. */
static inline image_taps image_taps_of(const image_window *w, size_t index)
{
    image_taps t;
    ptrdiff_t y = (ptrdiff_t)(index / w->out_width * w->stride_y) - (ptrdiff_t)w->pad_top;
    ptrdiff_t x = (ptrdiff_t)(index % w->out_width * w->stride_x) - (ptrdiff_t)w->pad_left;
    image_taps_clip(y, w->dilation_y, w->kernel_height, w->height, &t.y0, &t.y1);
    image_taps_clip(x, w->dilation_x, w->kernel_width, w->width, &t.x0, &t.x1);
    t.origin = y * (ptrdiff_t)w->width + x;
    t.row_step = (ptrdiff_t)(w->dilation_y * w->width);
    t.column_step = (ptrdiff_t)w->dilation_x;
    return t;
}

static inline ptrdiff_t image_taps_pixel(const image_taps *t, size_t y, size_t x)
{
    return t->origin + (ptrdiff_t)y * t->row_step + (ptrdiff_t)x * t->column_step;
}

#endif
