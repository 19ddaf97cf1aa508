#ifndef KERNELS_PEAK_H
#define KERNELS_PEAK_H

#include "kernels/kernels.h"

/* Operations per second of one core at its best, as measured on the calling thread: what achieved
 * speed is a fraction of. Zero where the table has nothing faster than scalar for bf16. */
typedef struct kernels_peaks {
    double f32, u8s8, s16, bf16;
} kernels_peaks;

/* Takes about 10 ms. Other load on the core lowers the figures: call it at start. */
void kernels_measure_peak(const kernels *k, kernels_peaks *out);

/* How to keep the promise of bf16 precision fastest. */
typedef enum kernels_bf16_format {
    KERNELS_BF16_AS_S16, /* gemm_s16: 11-bit integers with a scale per row and column */
    KERNELS_BF16_AS_BF16 /* gemm_bf16 */
} kernels_bf16_format;

/* bf16 only where it is at least a tenth faster, since 11-bit integers are closer to FP32. */
kernels_bf16_format kernels_choose_bf16_format(const kernels_peaks *peaks);

#endif
