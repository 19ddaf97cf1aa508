#ifndef KERNELS_ACTIVATION_H
#define KERNELS_ACTIVATION_H

#include "kernels/kernels.h"

/* Functions of one float with up to two parameters. Error bounds against exact arithmetic; results
 * that would be denormal may be zero. NaN gives NaN.
 *
 *   leaky_relu    x < 0 ? a x : x                             none beside the rounding of a x
 *   clip          x limited to a .. b                         exact; b where a > b
 *   hard_sigmoid  a x + b limited to 0 .. 1                   two roundings
 *   hard_swish    x (x / 6 + 1/2 limited to 0 .. 1)           1e-6 * max(1, |x|) absolute
 *   elu           x < 0 ? a (e^x - 1) : x                     4e-7 * |a| absolute
 *   softplus      log(1 + e^x)                                5e-7 * max(1, |x|) absolute
 *   mish          x tanh(softplus(x))                         1e-6 * max(1, |x|) absolute
 *   log           log x                                       2^-22 * max(1, |log x|) absolute;
 *                 -inf for 0 and denormals, NaN below
 *   selu          b (x > 0 ? x : a (e^x - 1))                 4e-7 * |a b| + |x| ulp absolute
 *   celu          x > 0 ? x : a (e^(x / a) - 1)               4e-7 * |a| absolute
 *   atan          arc tangent                                 3e-7 absolute
 *   sin, cos     4e-7 absolute
 *   tan          1e-6 * max(1, |tan x|) absolute
 *   asin, acos   5e-7 absolute; NaN beyond 1
 *   sinh, cosh   1e-6 * max(1, |result|) absolute
 *   asinh, acosh, atanh   1e-6 * max(1, |result|) absolute
 *   sqrt, abs, negate, floor, ceil, round (ties to even)      exact */
typedef enum activation_kind {
    ACTIVATION_LEAKY_RELU,
    ACTIVATION_CLIP,
    ACTIVATION_HARD_SIGMOID,
    ACTIVATION_HARD_SWISH,
    ACTIVATION_ELU,
    ACTIVATION_SOFTPLUS,
    ACTIVATION_MISH,
    ACTIVATION_LOG,
    ACTIVATION_SQRT,
    ACTIVATION_ABS,
    ACTIVATION_NEGATE,
    ACTIVATION_SELU,
    ACTIVATION_CELU,
    ACTIVATION_ATAN,
    ACTIVATION_FLOOR,
    ACTIVATION_CEIL,
    ACTIVATION_ROUND,
    ACTIVATION_SIN,
    ACTIVATION_COS,
    ACTIVATION_TAN,
    ACTIVATION_ASIN,
    ACTIVATION_ACOS,
    ACTIVATION_SINH,
    ACTIVATION_COSH,
    ACTIVATION_ASINH,
    ACTIVATION_ACOSH,
    ACTIVATION_ATANH,
    ACTIVATION_COUNT
} activation_kind;

/* out[i] = kind(in[i]); `out` may be `in`. */
typedef struct activation_f32 {
    activation_kind kind;
    float a, b; /* the parameters, where the kind has them */
    const float *in;
    float *out;
    size_t count;
} activation_f32;

/* out[i] = sum over t of weights[t] * rows[t][i], t ascending, one accumulator (with FMA where the
 * level has it): what resizing is made of. Error: taps * 2^-24 * sum |products|. */
typedef struct weighted_rows_f32 {
    size_t taps, count;
    const float *const *rows; /* [taps], each [count] */
    const float *weights;     /* [taps] */
    float *out;               /* none of the rows */
} weighted_rows_f32;

#endif
