#ifndef KERNELS_CONVOLUTION_H
#define KERNELS_CONVOLUTION_H

#include "kernels/kernels.h"

/* Convolution and pooling of images with the channels last ([height, width, channels], NHWC): a
 * pixel's channels are contiguous, as u8 x s8 GEMMs and vectors need them. One image per call.
 * Output pixels are numbered y * out_width + x; a call computes pixels `first` .. `first + count -
 * 1`, so that the caller can split an image into blocks that fit the cache, or among threads.
 */
typedef struct image_window {
    size_t height, width, channels; /* of the input */
    size_t out_height, out_width;   /* of the output */
    size_t kernel_height, kernel_width;
    size_t stride_y, stride_x, dilation_y, dilation_x;
    size_t pad_top, pad_left; /* below and to the right it follows from the size of the output */
} image_window;

/* The rows of an implicit GEMM (im2col): out row r is [kernel_height][kernel_width][channels] items
 * of pixel first + r, with `pad_item` outside the image. Then gemm_* with k = row items, n = output
 * channels is the convolution. Items of 1 (u8), 2 or 4 bytes. */
typedef struct image_rows {
    image_window window;
    size_t item_bytes;
    const void *in;       /* [height, width, in_stride] items, of which `channels` are used */
    size_t in_stride;     /* items from pixel to pixel; channels, or more for grouped convolution */
    const void *pad_item; /* item_bytes bytes */
    size_t first, count;
    void *out;
    size_t out_stride; /* items */
} image_rows;

/* Depthwise: out[pixel][c] = activation(bias[c] + sum over the window of in * weights[ky][kx][c]).
 * The window's order is fixed (ky, then kx), so are the bits. Error: taps * 2^-23 * sum |products|.
 */
typedef struct depthwise_f32 {
    image_window window;
    const float *in,
        *weights;      /* [height, width, channels], [kernel_height, kernel_width, channels] */
    const float *bias; /* [channels] or NULL */
    kernels_activation activation;
    size_t first, count;
    float *out; /* [count, channels] */
} depthwise_f32;

typedef enum pool_kind {
    POOL_MAX,           /* padding is ignored; -inf where a window is all padding; NaN wins */
    POOL_AVERAGE,       /* over the pixels inside the image */
    POOL_AVERAGE_PADDED /* over the whole window, padding counting as 0 */
} pool_kind;

typedef struct pool_f32 {
    image_window window;
    pool_kind kind;
    const float *in;
    size_t first, count;
    float *out; /* [count, channels] */
} pool_f32;

/* Pooling with the channels first, each plane by itself: the largest (padding is -inf, NaN wins),
 * or the sum (padding is 0), of the columns in a row of the window, then of these row by row. Sums
 * are divided by `divisors` ([out_height, out_width] or NULL). The bits are those of every level.
 * Vectors where pool_planes_is_fast(); dilations are 1, `window.channels` is not read. */
typedef struct pool_planes_f32 {
    image_window window;
    bool is_max;
    size_t planes;
    const float *in; /* [planes, height, width] */
    const float *divisors;
    float *out; /* [planes, out_height, out_width], not `in` */
} pool_planes_f32;

/* Square windows of 2, 3 or 5, and steps of 1 or 2, of which the rows are kept from one result to
 * the next. */
static inline bool pool_planes_is_fast(const image_window *w)
{
    size_t size = w->kernel_height, step = w->stride_y;
    return size == w->kernel_width && step == w->stride_x && w->dilation_y == 1 &&
           w->dilation_x == 1 && (size == 2 || size == 3 || size == 5) && (step == 1 || step == 2);
}

#endif
