#ifndef KERNELS_X86_VECTOR_VECTOR_H
#define KERNELS_X86_VECTOR_VECTOR_H

/* One vocabulary for AVX2 and AVX-512 vectors of float, so that a row kernel is written once
 * (*_vector.h) and compiled for each level by a file of that level. VEC_LANES is defined when the
 * including file is compiled for one of the two.
 *
 * `first` forms touch the first `n` lanes only (n <= VEC_LANES): memory beyond is not accessed,
 * lanes beyond load as zero. max and min return the second operand if either is NaN. */

#include "kernels/x86/vector/vector_avx2.h"
#include "kernels/x86/vector/vector_avx512.h"

#endif
