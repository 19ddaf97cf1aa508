#ifndef KERNELS_PEAK_H
#define KERNELS_PEAK_H

#include "kernels/kernels.h"

/* Peak operations per second of one core, as measured on the calling thread. Zero where the table
 * has nothing faster than scalar for bf16. */
typedef struct kernels_peaks {
    double f32, u8s8, s16, bf16;
} kernels_peaks;

/* Takes about 10 ms. Other load on the core lowers the figures: call it at startup. */
void kernels_measure_peak(const kernels *k, kernels_peaks *out);

/* Measured at the first call for a level, and then the same for the whole process: what is chosen
 * by it, and so the bits of results, does not change because something else ran meanwhile. Any
 * thread. */
const kernels_peaks *kernels_peaks_of(const kernels *k);

/* How this CPU computes bf16 precision. */
typedef enum kernels_bf16_format {
    KERNELS_BF16_AS_S16, /* gemm_s16: 11-bit integers with a scale per row and column */
    KERNELS_BF16_AS_BF16 /* gemm_bf16 */
} kernels_bf16_format;

/* bf16 only where it is at least 10% faster, since 11-bit integers are closer to FP32. */
kernels_bf16_format kernels_choose_bf16_format(const kernels_peaks *peaks);

#endif
