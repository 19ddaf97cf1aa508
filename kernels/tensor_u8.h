#ifndef KERNELS_TENSOR_U8_H
#define KERNELS_TENSOR_U8_H

#include "kernels/convolution.h"
#include "kernels/kernels.h"

/* uint8 and int8 tensors with one scale and zero point, as quantised models have them:
 * x = (q - zero) * scale. Rounding is to the nearest integer, ties to even, then
 * saturation; results are the same at every level, bit for bit. Elements are uint8; where
 * `is_signed` is set, elements and zero point are int8. */

/* out[i] = saturate(round(x[i] / scale) + zero); NaN gives the lowest value. */
typedef struct quantise_tensor_u8 {
    const float *x;
    size_t count;
    float scale; /* positive */
    int32_t zero;
    bool is_signed;
    uint8_t *out;
} quantise_tensor_u8;

/* out[i] = (in[i] - zero) * scale */
typedef struct dequantise_u8 {
    const uint8_t *in;
    size_t count;
    float scale;
    int32_t zero;
    bool is_signed;
    float *out;
} dequantise_u8;

/* out[i] = max(low, saturate(round((a[i] - a_zero) * a_scale + (b[i] - b_zero) * b_scale) + zero)):
 * a sum of two tensors, quantised; both scales are already divided by that of the result. `low` is
 * its zero point where ReLU follows, otherwise 0. `out` may be `a` or `b`. */
typedef struct add_u8 {
    const uint8_t *a, *b;
    size_t count;
    float a_scale, b_scale;
    int32_t a_zero, b_zero, zero, low;
    uint8_t *out;
} add_u8;

/* The maximum of each window and channel; padding is ignored, 0 where a window is all padding. */
typedef struct pool_u8 {
    image_window window;
    const uint8_t *in; /* [height, width, channels] */
    size_t first, count;
    uint8_t *out; /* [count, channels] */
} pool_u8;

/* Depthwise convolution: x = scale[c] * sum over the window of (in - in_zero) * weights + bias[c],
 * the sum being exact; then activation(x), as float or quantised: saturate(round(.) + zero). */
typedef struct depthwise_u8s8 {
    image_window window;
    const uint8_t *in;
    int32_t in_zero;
    const int8_t *weights;     /* [kernel_height, kernel_width, channels] */
    const int32_t *start;      /* [channels], added to the sums; NULL: 0 */
    const float *scale, *bias; /* [channels]; bias may be NULL */
    bool has_relu;
    size_t first, count;
    uint8_t *out; /* [count, channels], or NULL and then: */
    float *out_f32;
    int32_t zero;
} depthwise_u8s8;

#endif
