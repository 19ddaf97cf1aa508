#ifndef DEVICES_CPU_SIGNAL_FFT_H
#define DEVICES_CPU_SIGNAL_FFT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

/* Discrete Fourier transforms of any length in double precision: mixed radix, one level per prime
 * factor (Cooley and Tukey 1965). A length n with the prime factors p, q, ... takes about
 * 8 * n * (p + q + ...) operations, so a large prime is slow. Powers of two go in stages over all
 * numbers, about 5 * n * log2(n) operations. */

typedef struct fft {
    int64_t length;
    double *turns; /* [length][2]: cos and sin of 2 pi k / length; negative sine: forward */
} fft;

/* In `memory`. STATUS_OUT_OF_MEMORY. */
status fft_create(arena *memory, int64_t length, bool is_inverse, fft *out) MUST_CHECK;
/* in, out: [length][2]; spare: [length][2]; three different places. Not scaled. */
void fft_run(const fft *f, const double *in, double *out, double *spare);

bool fft_is_power_of_two(int64_t length);

#endif
