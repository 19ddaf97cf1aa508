#ifndef KERNELS_LINES_H
#define KERNELS_LINES_H

#include "base/dtype.h"
#include "kernels/kernels.h"

/* Lines of elements: comparing, converting, folding. Every level compiles the same plain loops
 * (scalar/line_loops.h) with its own instructions: results are the same at every level, bit for
 * bit. */

typedef enum compare_kind {
    COMPARE_EQUAL,
    COMPARE_LESS,
    COMPARE_LESS_OR_EQUAL,
    COMPARE_GREATER,
    COMPARE_GREATER_OR_EQUAL,
} compare_kind;

/* out[i] = a[i * a_step] kind b[i * b_step], 0 or 1; steps are 0 or 1. */
typedef struct compare_f32 {
    compare_kind kind;
    const float *a;
    size_t a_step;
    const float *b;
    size_t b_step;
    uint8_t *out;
    size_t count;
} compare_f32;

/* Floats become integers toward zero, saturated, NaN as 0; integers wrap; BOOL is x != 0. Only
 * where convert_line_has(from, to). */
typedef struct convert_line {
    dtype from, to;
    const void *in;
    void *out;
    size_t count;
} convert_line;

/* F32 to and from the integers that models use; I64 to and from I32. */
static inline bool convert_line_has(dtype from, dtype to)
{
    dtype other = from == DTYPE_F32 ? to : from;
    if ((from == DTYPE_I32 && to == DTYPE_I64) || (from == DTYPE_I64 && to == DTYPE_I32))
        return true;
    return (from == DTYPE_F32) != (to == DTYPE_F32) &&
           (other == DTYPE_BOOL || other == DTYPE_U8 || other == DTYPE_I8 || other == DTYPE_I32 ||
            other == DTYPE_I64 || other == DTYPE_F64);
}

/* MAX and MIN: NaN if one is NaN. */
typedef enum fold_kind { FOLD_SUM, FOLD_SUM_SQUARE, FOLD_MAX, FOLD_MIN } fold_kind;

/* out[i] = fold over r < rows and t < taps of in[r * row_stride + i * stride + t * dilation], row
 * by row: a line of pooling. `rows` and `taps` are at least 1. Not FOLD_SUM_SQUARE. */
typedef struct fold_windows_f32 {
    fold_kind kind;
    const float *in; /* not `out` */
    size_t rows, row_stride, stride, taps, dilation;
    float *out;
    size_t count;
} fold_windows_f32;

/* out[j] = out[j] folded with in[i * stride + j] for i < rows, ascending. */
typedef struct fold_rows_f32 {
    fold_kind kind;
    size_t rows, width;
    const float *in; /* not `out` */
    size_t stride;
    float *out; /* [width] */
} fold_rows_f32;

/* out[i] = sum over t of weights[t * count + i] * row[index[t * count + i]], t ascending; taps
 * without weight add nothing, not even NaN. `weights` NULL: one tap of weight 1. */
typedef struct gather_sum_f32 {
    size_t taps, count;
    const int32_t *index;
    const float *weights;
    const float *row;
    float *out; /* not `row` */
} gather_sum_f32;

/* out[i * times + t] = in[i] for i < count and t < times. */
typedef struct repeat_f32 {
    size_t count, times;
    const float *in;
    float *out; /* [count * times], not `in` */
} repeat_f32;

#endif
