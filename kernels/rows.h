#ifndef KERNELS_ROWS_H
#define KERNELS_ROWS_H

#include "kernels/kernels.h"

/* Kernels on whole rows, and the error bounds of the elementwise ones against exact arithmetic.
 * ulp: units in the last place of the exact result. Results that would be denormal may be zero.
 *
 *   exp        2 ulp; 0 below -87.34, +inf above 88.73
 *   erf        4e-7 absolute
 *   tanh       4e-7 absolute
 *   sigmoid    3e-7 absolute
 *   gelu       1e-6 * max(1, |x|) absolute
 *   gelu_tanh  1e-6 * max(1, |x|) absolute
 *   silu       1e-6 * max(1, |x|) absolute
 *
 * NaN gives NaN; infinities give the limits. */

/* out = (x + residual - mean) / sqrt(variance + epsilon) * gamma + beta, mean and variance over the
 * row (two passes: the mean first). Error: 1e-5 * (1 + |gamma|) * row maximum of the normalised
 * values, for rows whose standard deviation is at least 1e-3 of their largest value. */
typedef struct layer_norm_f32 {
    size_t rows, width;
    const float *x;
    size_t x_stride;
    const float *residual; /* NULL: none */
    size_t residual_stride;
    const float *gamma, *beta; /* [width]; NULL: 1 and 0 */
    float epsilon;
    float *out; /* may be `x` or `residual` */
    size_t out_stride;
} layer_norm_f32;

/* out = softmax(x * scale + bias) along each row. A key whose mask byte is 0 gets weight 0 and its
 * value is ignored; if every byte of a row is 0, all its keys get the same weight (which is what
 * adding the lowest finite float to each would give). Error: 1e-6 + 2^-23 * (largest |x * scale| +
 * |bias|) of the weight, for finite inputs. A row with NaN or +inf, or all -inf, is all NaN. With
 * is_log the result is the logarithm of the weight, -inf for 0, with that error times 2 (absolute).
 */
typedef struct softmax_f32 {
    size_t rows, width;
    const float *x;
    size_t x_stride;
    float scale;
    const float *bias;   /* [rows, width]; NULL: none */
    size_t bias_stride;  /* 0: one row for all */
    const uint8_t *mask; /* [rows, width]; NULL: none */
    size_t mask_stride;  /* 0: one row for all */
    bool is_log;         /* not with a mask */
    float *out;          /* may be `x` */
    size_t out_stride;
} softmax_f32;

#endif
