#ifndef KERNELS_LINES_H
#define KERNELS_LINES_H

#include "base/dtype.h"
#include "kernels/kernels.h"

/* Lines of elements: combining in pairs, converting, folding. Every level compiles the same plain
 * loops (scalar/line_loops.h) with its own instructions: results are the same at every level, bit
 * for bit. */

/* Of integers: sums, differences and products wrap; BIT_* are bitwise. AND, OR and XOR are of truth
 * values, 0 or not, and give 0 or 1, as comparisons do. */
typedef enum combine_kind {
    COMBINE_ADD,
    COMBINE_SUB,
    COMBINE_MUL,
    COMBINE_MAX,
    COMBINE_MIN,
    COMBINE_BIT_AND,
    COMBINE_BIT_OR,
    COMBINE_BIT_XOR,
    COMBINE_SHIFT_LEFT, /* by b bits, 0 where that is all of them or more */
    COMBINE_SHIFT_RIGHT,
    COMBINE_DIVIDE, /* toward zero; 0 where b is 0; the least by -1 is the least */
    COMBINE_TRUTH,  /* from here on the result is a byte, 0 or 1 */
    COMBINE_AND = COMBINE_TRUTH,
    COMBINE_OR,
    COMBINE_XOR,
    COMBINE_EQUAL,
    COMBINE_NOT_EQUAL,
    COMBINE_LESS,
    COMBINE_LESS_OR_EQUAL,
    COMBINE_GREATER,
    COMBINE_GREATER_OR_EQUAL,
    COMBINE_COUNT
} combine_kind;

/* out[i] = a[i * a_step] kind b[i * b_step]; steps are 0 (one value for all) or 1. Only where
 * combine_line_has(kind, type). */
typedef struct combine_line {
    combine_kind kind;
    dtype type; /* of a and b; of `out` up to COMBINE_TRUTH, else BOOL */
    const void *a;
    size_t a_step;
    const void *b;
    size_t b_step;
    void *out; /* neither `a` nor `b` */
    size_t count;
} combine_line;

/* Comparisons of floats, arithmetic of F64 (NaN if one is NaN), truth of BOOL, everything else of
 * the integers that models use, but for shifts of signed ones and quotients of 64 bits. */
static inline bool combine_line_has(combine_kind kind, dtype type)
{
    bool is_compare = kind >= COMBINE_EQUAL && kind < COMBINE_COUNT;
    switch (type) {
    case DTYPE_F32:
        return is_compare;
    case DTYPE_F64:
        return is_compare || kind <= COMBINE_MIN;
    case DTYPE_BOOL:
        return kind >= COMBINE_AND && kind <= COMBINE_NOT_EQUAL;
    case DTYPE_U8:
        return is_compare || kind < COMBINE_TRUTH;
    case DTYPE_I8:
    case DTYPE_I32:
        return is_compare || kind < COMBINE_SHIFT_LEFT || kind == COMBINE_DIVIDE;
    case DTYPE_I64:
        return is_compare || kind < COMBINE_SHIFT_LEFT;
    default:
        return false;
    }
}

/* out[i] = choice[i] ? a[i * a_step] : b[i * b_step]; steps as in combine_line. */
typedef struct choose_line {
    size_t element_bytes; /* 1, 2, 4 or 8 */
    const uint8_t *choice;
    const void *a;
    size_t a_step;
    const void *b;
    size_t b_step;
    void *out; /* none of the others */
    size_t count;
} choose_line;

/* Floats become integers toward zero, saturated, NaN as 0; integers wrap; BOOL is x != 0. Only
 * where convert_line_has(from, to). */
typedef struct convert_line {
    dtype from, to;
    const void *in;
    void *out;
    size_t count;
} convert_line;

/* Between the floats and integers that models use, but halves. */
static inline bool convert_line_is(dtype type)
{
    return type == DTYPE_BOOL || type == DTYPE_U8 || type == DTYPE_I8 || type == DTYPE_I32 ||
           type == DTYPE_I64 || type == DTYPE_F64 || type == DTYPE_F32;
}

static inline bool convert_line_has(dtype from, dtype to)
{
    return from != to && convert_line_is(from) && convert_line_is(to);
}

/* MAX and MIN: NaN if one is NaN. SUM_ABS and PRODUCT: fold_each_f32 only. */
typedef enum fold_kind {
    FOLD_SUM,
    FOLD_SUM_SQUARE,
    FOLD_MAX,
    FOLD_MIN,
    FOLD_SUM_ABS,
    FOLD_PRODUCT
} fold_kind;

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

/* Each element of [rows, columns] `times` times, then each row `row_times` times (at least 1):
 * out[(r * row_times + s) * columns * times + c * times + t] = in[r * columns + c]. */
typedef struct repeat_plane {
    size_t element_bytes; /* 1, 2, 4 or 8 */
    size_t rows, row_times, columns, times;
    const void *in;
    void *out; /* not `in` */
} repeat_plane;

/* out[i * out_stride + j] = in[i + j * in_stride] for i < rows and j < columns. */
typedef struct transpose_plane {
    size_t element_bytes;         /* 1, 2, 4 or 8 */
    size_t rows, columns;         /* of the result */
    const void *in;               /* not `out` */
    size_t in_stride, out_stride; /* elements */
    void *out;
} transpose_plane;

/* out[r] = fold of in[r * stride .. + width] for r < rows; `width` is at least 1. The order of a
 * sum depends on the level and on `width`: error width * 2^-24 * sum |terms|. A product is one of
 * doubles in eight parts. */
typedef struct fold_each_f32 {
    fold_kind kind;
    size_t rows, width;
    const float *in; /* not `out` */
    size_t stride;
    float *out; /* [rows] */
} fold_each_f32;

/* out[j] = the i < rows where in[i * stride + j] is largest or least: the first or the last such i;
 * the first NaN comes before all. `best` is room, and holds the extremes afterwards. */
typedef struct arg_rows_f32 {
    bool is_max, is_last;
    size_t rows, width; /* rows: 1 .. INT32_MAX */
    const float *in;
    size_t stride;
    float *best;  /* [width] */
    int32_t *out; /* [width] */
} arg_rows_f32;

/* Running sums of `lines` lines, in doubles: element i < count of line l lies at l * line_stride +
 * i * step, of `in` and of `out`. */
typedef struct cumulate_f32 {
    size_t lines, line_stride, count, step;
    bool is_exclusive, is_reverse;
    const float *in; /* may be `out` */
    float *out;
} cumulate_f32;

/* Integers and doubles, one at a time or in lines, where floats have kernels of their own. */
static inline bool plain_line_has(dtype type)
{
    return type == DTYPE_U8 || type == DTYPE_I8 || type == DTYPE_I32 || type == DTYPE_I64 ||
           type == DTYPE_F64;
}

/* *out = FOLD_MAX or FOLD_MIN of in[0 .. count), `count` at least 1, where plain_line_has(type); or
 * FOLD_SUM of F64, with element i in sum i % 8, and these added in order. */
typedef struct fold_line {
    fold_kind kind;
    dtype type;
    const void *in;
    size_t count;
    void *out; /* one element */
} fold_line;

/* Of the largest or least of in[0 .. count): the first or the last; the first NaN comes before all.
 * Where plain_line_has(type); `count` is at least 1. */
typedef struct place_line {
    bool is_max, is_last;
    dtype type;
    const void *in;
    size_t count;
} place_line;

/* c[m][n] = sum over k, ascending, of a[m][k] * b[k][n], each product and each sum rounded, or
 * wrapping. I32, U32, I64, U64 or F64. Strides are in elements. */
typedef struct plain_product {
    dtype type;
    size_t m, n, k;
    const void *a, *b;
    size_t a_stride, b_stride;
    void *c; /* neither `a` nor `b` */
    size_t c_stride;
} plain_product;

#endif
