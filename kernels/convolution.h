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

#endif
