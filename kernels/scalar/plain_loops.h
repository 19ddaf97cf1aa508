#ifndef KERNELS_SCALAR_PLAIN_LOOPS_H
#define KERNELS_SCALAR_PLAIN_LOOPS_H

#include <assert.h>
#include <string.h>

#include "kernels/lines.h"

/* Extremes, their places and products of integers and doubles of lines.h in plain C, as in
 * line_loops.h; written once for each type. */

#define PLAIN_INLINE static inline __attribute__((always_inline))

#define PLAIN_EXTREME(name, type)                                                                  \
    PLAIN_INLINE type plain_extreme_##name(const bool is_max, const type *restrict in,             \
                                           size_t count)                                           \
    {                                                                                              \
        type best = in[0];                                                                         \
        for (size_t i = 1; i < count; i++)                                                         \
            best = (is_max ? in[i] > best : in[i] < best) ? in[i] : best;                          \
        return best;                                                                               \
    }

PLAIN_EXTREME(u8, uint8_t)
PLAIN_EXTREME(i8, int8_t)
PLAIN_EXTREME(i32, int32_t)
PLAIN_EXTREME(i64, int64_t)

#define PLAIN_LANES 8

/* NaN if one is NaN. */
PLAIN_INLINE double plain_better(const bool is_max, double best, double x)
{
    return (is_max ? x > best : x < best) | (x != x) ? x : best;
}

PLAIN_INLINE double plain_extreme_f64(const bool is_max, const double *restrict in, size_t count)
{
    double lanes[PLAIN_LANES];
    for (size_t j = 0; j < PLAIN_LANES; j++)
        lanes[j] = in[0];
    size_t i = 0;
    for (; i + PLAIN_LANES <= count; i += PLAIN_LANES)
        for (size_t j = 0; j < PLAIN_LANES; j++)
            lanes[j] = plain_better(is_max, lanes[j], in[i + j]);
    for (size_t j = 0; i + j < count; j++)
        lanes[j] = plain_better(is_max, lanes[j], in[i + j]);
    for (size_t j = 1; j < PLAIN_LANES; j++)
        lanes[0] = plain_better(is_max, lanes[0], lanes[j]);
    return lanes[0];
}

static inline double plain_sum_f64(const double *restrict in, size_t count)
{
    double lanes[PLAIN_LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + PLAIN_LANES <= count; i += PLAIN_LANES)
        for (size_t j = 0; j < PLAIN_LANES; j++)
            lanes[j] += in[i + j];
    for (size_t j = 0; i + j < count; j++)
        lanes[j] += in[i + j];
    for (size_t j = 0; j < PLAIN_LANES; j++)
        sum += lanes[j];
    return sum;
}

PLAIN_INLINE void plain_extreme(const bool is_max, const fold_line *p)
{
    switch (p->type) {
    case DTYPE_U8:
        *(uint8_t *)p->out = plain_extreme_u8(is_max, p->in, p->count);
        break;
    case DTYPE_I8:
        *(int8_t *)p->out = plain_extreme_i8(is_max, p->in, p->count);
        break;
    case DTYPE_I32:
        *(int32_t *)p->out = plain_extreme_i32(is_max, p->in, p->count);
        break;
    case DTYPE_I64:
        *(int64_t *)p->out = plain_extreme_i64(is_max, p->in, p->count);
        break;
    default:
        assert(p->type == DTYPE_F64);
        *(double *)p->out = plain_extreme_f64(is_max, p->in, p->count);
    }
}

static inline void line_fold_plain(const fold_line *p)
{
    assert(p->count > 0);
    if (p->kind == FOLD_SUM) {
        assert(p->type == DTYPE_F64);
        *(double *)p->out = plain_sum_f64(p->in, p->count);
    } else if (p->kind == FOLD_MAX) {
        plain_extreme(true, p);
    } else {
        assert(p->kind == FOLD_MIN);
        plain_extreme(false, p);
    }
}

/* Elements that are compared at once, before one of them is looked for. */
#define PLAIN_FIND 64

/* The first or last that equals `wanted`; there is one. `flag`: as large as an element, so that
 * comparisons are gathered by vectors. */
#define PLAIN_FIND_EQUAL(name, type, flag)                                                         \
    static inline size_t plain_find_##name(const type *restrict in, size_t count, type wanted,     \
                                           bool is_last)                                           \
    {                                                                                              \
        size_t at = is_last ? count : 0;                                                           \
        for (size_t left = count; left >= PLAIN_FIND; left -= PLAIN_FIND) {                        \
            const type *restrict some = in + (is_last ? at - PLAIN_FIND : at);                     \
            flag any = 0;                                                                          \
            for (size_t j = 0; j < PLAIN_FIND; j++)                                                \
                any |= (flag)(some[j] == wanted);                                                  \
            if (any)                                                                               \
                break;                                                                             \
            at = is_last ? at - PLAIN_FIND : at + PLAIN_FIND;                                      \
        }                                                                                          \
        if (is_last) {                                                                             \
            while (in[at - 1] != wanted)                                                           \
                at--;                                                                              \
            return at - 1;                                                                         \
        }                                                                                          \
        while (in[at] != wanted)                                                                   \
            at++;                                                                                  \
        return at;                                                                                 \
    }

PLAIN_FIND_EQUAL(u8, uint8_t, uint8_t)
PLAIN_FIND_EQUAL(i32, int32_t, uint32_t)
PLAIN_FIND_EQUAL(i64, int64_t, uint64_t)
PLAIN_FIND_EQUAL(f64, double, uint64_t)

static inline size_t line_place(const place_line *p)
{
    union {
        uint8_t u8;
        int32_t i32;
        int64_t i64;
        double f64;
    } best;
    line_fold_plain(&(fold_line){p->is_max ? FOLD_MAX : FOLD_MIN, p->type, p->in, p->count, &best});
    if (p->type == DTYPE_U8 || p->type == DTYPE_I8)
        return plain_find_u8(p->in, p->count, best.u8, p->is_last);
    if (p->type == DTYPE_I32)
        return plain_find_i32(p->in, p->count, best.i32, p->is_last);
    if (p->type == DTYPE_I64)
        return plain_find_i64(p->in, p->count, best.i64, p->is_last);
    const double *x = p->in;
    size_t nan = 0;
    if (best.f64 == best.f64)
        return plain_find_f64(x, p->count, best.f64, p->is_last);
    while (x[nan] == x[nan])
        nan++;
    return nan;
}

/* Columns at a time: rows of B stay in the caches while the rows of A pass. */
#define PLAIN_COLUMNS 64

/* One or two rows of C; four rows of B at a time, so that C is loaded and stored once for them. */
#define PLAIN_PRODUCT(name, type)                                                                  \
    PLAIN_INLINE void plain_rows_##name(const plain_product *p, const size_t rows, size_t row,     \
                                        size_t column, size_t columns)                             \
    {                                                                                              \
        const type *x = (const type *)p->a + row * p->a_stride;                                    \
        const type *y = rows > 1 ? x + p->a_stride : x;                                            \
        const type *restrict b = (const type *)p->b + column;                                      \
        type *restrict c = (type *)p->c + row * p->c_stride + column;                              \
        type *restrict d = c + p->c_stride;                                                        \
        size_t k = 0, stride = p->b_stride;                                                        \
        memset(c, 0, columns * sizeof *c);                                                         \
        if (rows > 1)                                                                              \
            memset(d, 0, columns * sizeof *d);                                                     \
        for (; k + 4 <= p->k; k += 4, b += 4 * stride) {                                           \
            type x0 = x[k], x1 = x[k + 1], x2 = x[k + 2], x3 = x[k + 3];                           \
            type y0 = y[k], y1 = y[k + 1], y2 = y[k + 2], y3 = y[k + 3];                           \
            for (size_t j = 0; j < columns; j++) {                                                 \
                type b0 = b[j], b1 = b[stride + j], b2 = b[2 * stride + j],                        \
                     b3 = b[3 * stride + j];                                                       \
                c[j] = c[j] + x0 * b0 + x1 * b1 + x2 * b2 + x3 * b3;                               \
                if (rows > 1)                                                                      \
                    d[j] = d[j] + y0 * b0 + y1 * b1 + y2 * b2 + y3 * b3;                           \
            }                                                                                      \
        }                                                                                          \
        for (; k < p->k; k++, b += stride) {                                                       \
            for (size_t j = 0; j < columns; j++)                                                   \
                c[j] += x[k] * b[j];                                                               \
            for (size_t j = 0; rows > 1 && j < columns; j++)                                       \
                d[j] += y[k] * b[j];                                                               \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static inline void plain_product_##name(const plain_product *p)                                \
    {                                                                                              \
        for (size_t column = 0; column < p->n; column += PLAIN_COLUMNS) {                          \
            size_t left = p->n - column, columns = left < PLAIN_COLUMNS ? left : PLAIN_COLUMNS;    \
            size_t row = 0;                                                                        \
            for (; row + 2 <= p->m; row += 2)                                                      \
                plain_rows_##name(p, 2, row, column, columns);                                     \
            if (row < p->m)                                                                        \
                plain_rows_##name(p, 1, row, column, columns);                                     \
        }                                                                                          \
    }

PLAIN_PRODUCT(u32, uint32_t)
PLAIN_PRODUCT(u64, uint64_t)
PLAIN_PRODUCT(f64, double)

static inline void line_product_plain(const plain_product *p)
{
    if (p->type == DTYPE_F64) {
        plain_product_f64(p);
    } else if (p->type == DTYPE_I32 || p->type == DTYPE_U32) {
        plain_product_u32(p);
    } else {
        assert(p->type == DTYPE_I64 || p->type == DTYPE_U64);
        plain_product_u64(p);
    }
}

#endif
