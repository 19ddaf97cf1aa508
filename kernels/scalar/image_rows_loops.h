#ifndef KERNELS_SCALAR_IMAGE_ROWS_LOOPS_H
#define KERNELS_SCALAR_IMAGE_ROWS_LOOPS_H

#include <string.h>

#include "kernels/convolution.h"

/* The loops of image_rows in plain C; every level compiles these lines, with its own widest copies.
 * Rows are short (a few hundred bytes), so a call of memcpy for each would cost as much as the
 * copy: fixed sizes instead, the last one overlapping the one before. */

#define COPY_TWICE(n)                                                                              \
    do {                                                                                           \
        memcpy(out, in, n);                                                                        \
        memcpy(out + bytes - (n), in + bytes - (n), n);                                            \
    } while (0)

static inline void copy_short(uint8_t *restrict out, const uint8_t *restrict in, size_t bytes)
{
    if (bytes >= 64) {
        size_t i = 0;
        for (; i + 64 <= bytes; i += 64)
            memcpy(out + i, in + i, 64);
        if (i < bytes)
            memcpy(out + bytes - 64, in + bytes - 64, 64);
    } else if (bytes >= 32) {
        COPY_TWICE(32);
    } else if (bytes >= 16) {
        COPY_TWICE(16);
    } else if (bytes >= 8) {
        COPY_TWICE(8);
    } else if (bytes >= 4) {
        COPY_TWICE(4);
    } else {
        for (size_t i = 0; i < bytes; i++)
            out[i] = in[i];
    }
}

static inline uint8_t *pad_items(uint8_t *out, const image_rows *r, size_t count)
{
    if (r->item_bytes == 1) {
        memset(out, *(const uint8_t *)r->pad_item, count);
        return out + count;
    }
    for (size_t i = 0; i < count; i++, out += r->item_bytes)
        memcpy(out, r->pad_item, r->item_bytes);
    return out;
}

/* One row of the window, whose first tap is at column x (perhaps outside) of an image row. */
static inline uint8_t *unfold_taps(const image_rows *r, const uint8_t *row, ptrdiff_t x,
                                   uint8_t *out)
{
    const image_window *w = &r->window;
    size_t bytes = w->channels * r->item_bytes, step = r->in_stride * r->item_bytes;
    bool is_run = w->dilation_x == 1 && r->in_stride == w->channels;
    if (is_run && x >= 0 && (size_t)x + w->kernel_width <= w->width) {
        copy_short(out, row + (size_t)x * step, bytes * w->kernel_width);
        return out + bytes * w->kernel_width;
    }
    for (size_t kx = 0; kx < w->kernel_width; kx++, x += (ptrdiff_t)w->dilation_x) {
        if (x < 0 || (size_t)x >= w->width) {
            out = pad_items(out, r, w->channels);
        } else {
            copy_short(out, row + (size_t)x * step, bytes);
            out += bytes;
        }
    }
    return out;
}

static inline void unfold_rows(const image_rows *r)
{
    const image_window *w = &r->window;
    const uint8_t *in = r->in;
    size_t line = w->width * r->in_stride * r->item_bytes;
    size_t out_y = r->first / w->out_width, out_x = r->first % w->out_width;
    for (size_t i = 0; i < r->count; i++) {
        uint8_t *out = (uint8_t *)r->out + i * r->out_stride * r->item_bytes;
        ptrdiff_t y = (ptrdiff_t)(out_y * w->stride_y) - (ptrdiff_t)w->pad_top;
        ptrdiff_t x = (ptrdiff_t)(out_x * w->stride_x) - (ptrdiff_t)w->pad_left;
        for (size_t ky = 0; ky < w->kernel_height; ky++, y += (ptrdiff_t)w->dilation_y) {
            if (y < 0 || (size_t)y >= w->height)
                out = pad_items(out, r, w->kernel_width * w->channels);
            else
                out = unfold_taps(r, in + (size_t)y * line, x, out);
        }
        if (++out_x == w->out_width) {
            out_x = 0;
            out_y++;
        }
    }
}

#endif
