#ifndef KERNELS_CONV_U8S8_H
#define KERNELS_CONV_U8S8_H

#include "kernels/kernels.h"

/* A convolution of uint8 images as a GEMM that reads its windows in place: no rows are unfolded. It
 * needs images in which all windows have one shape in memory, which padding and strides prevent;
 * the caller lays images out as cells first (devices/cpu/fused/conv_layout.h). The window of cell p
 * begins at in + p * cell_bytes and consists of `steps` pieces of 64 bytes, piece s at offsets[s]
 * from there. Of each `pitch` cells the first `width` are pixels of the result; the others lie
 * beside a row of the image, and their results are not used.
 *
 *   window[s, i] = in[p * cell_bytes + offsets[s] + i]
 *
 *   sum[n] = start[n] + sum over s, i of window[s, i] * W[64 s + i][n]
 *
 *   out[n] = max(low, saturate(round(fma(sum[n], scale[n], bias[n])) + zero))
 *
 * in int32, wrapping; ties to even; NaN gives 0 before `low`. Every level gives the same bytes. */

#define CONV_U8S8_STEP_BYTES 64
#define CONV_U8S8_COLUMNS 16 /* of a tile */

typedef struct conv_u8s8 {
    size_t images, in_image_bytes, out_image_bytes; /* bytes from image to image */
    const uint8_t *in;
    size_t cells; /* of an image, up to its last pixel */
    size_t cell_bytes, pitch, width;
    const size_t *offsets; /* [steps] */
    size_t steps, n;
    const void *weights; /* from conv_pack_u8s8; 64-byte aligned */
    /* Each [n rounded up to CONV_U8S8_COLUMNS]. */
    const int32_t *start;
    const float *scale, *bias;
    int32_t zero, low; /* 0 to 255; `low` is `zero` where ReLU follows, otherwise 0 */
    uint8_t *out;      /* [pixels of an image][n] */
    size_t out_stride; /* bytes from pixel to pixel */
} conv_u8s8;

/* Weights are packed as tiles [n / 16][step][16][16][4]: column, k / 4 within the step, column
 * within the tile, k % 4. Columns beyond n are zero. */
static inline size_t conv_u8s8_packed_bytes(size_t steps, size_t n)
{
    size_t tiles = (n + CONV_U8S8_COLUMNS - 1) / CONV_U8S8_COLUMNS;
    return tiles * steps * CONV_U8S8_COLUMNS * CONV_U8S8_STEP_BYTES;
}

/* Whether this table's conv_u8s8 is faster than image_rows and gemm_u8s8: only tiles are. */
static inline bool conv_u8s8_is_fast(const kernels *k)
{
    return k->level >= KERNELS_AMX;
}

#endif
