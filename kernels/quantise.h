#ifndef KERNELS_QUANTISE_H
#define KERNELS_QUANTISE_H

#include "kernels/kernels.h"
#include "kernels/rows.h"

/* Rows of floats to integers with a scale per row, for the GEMMs of gemm_scaled.h. Ties round to
 * even. A row of zeros gets scale 0 (and its products are 0). NaN is undefined but harmless. */

/* Symmetric, u8: q = round(x * 127 / top) + 128 in 1 .. 255, scale = top / 127, where top is the
 * largest |x| of the row. Asymmetric: q = round(x * 255 / (high - low)) + zero in 0 .. 255 with
 * zero = round(-low * 255 / (high - low)), scale = (high - low) / 255, where [low, high] is the
 * range of the row with 0 included. x is then within scale/2 (symmetric) or scale (asymmetric) of
 * (q - zero) * scale. Levels may differ by one in q. */
typedef struct quantise_u8 {
    size_t rows, width;
    const float *x; /* [rows, width] */
    size_t x_stride;
    const float *factors;    /* [width]: x * factors is quantised; NULL: x */
    const float *low, *high; /* [rows], when known: the extremes of each row, low <= 0 <= high;
                                NULL: found here. Not with factors */
    uint8_t *out;
    size_t out_stride;
    float *scale;  /* [rows] */
    int32_t *zero; /* [rows]; NULL: symmetric, the zero point being 128 */
} quantise_u8;

/* s16: q = round(x * 1023 / top), scale = top / 1023 (GEMM_S16_LIMIT). */
typedef struct quantise_s16 {
    size_t rows, width;
    const float *x;
    size_t x_stride;
    const float *low, *high;
    int16_t *out;
    size_t out_stride;
    float *scale;
} quantise_s16;

/* layer_norm_f32, then its result quantised, in one pass while a row is in the L1 cache. */
typedef struct layer_norm_quantise {
    layer_norm_f32 norm;  /* `out` is written as well: the residual of the next layer */
    const float *factors; /* [width]: of what is quantised, not of norm.out; NULL: 1 */
    uint8_t *out;         /* [rows, width] */
    size_t out_stride;
    float *scale;  /* [rows] */
    int32_t *zero; /* [rows]; NULL: symmetric */
} layer_norm_quantise;

#endif
