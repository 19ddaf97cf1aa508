#ifndef KERNELS_SCALAR_TRANSPOSE_LOOPS_H
#define KERNELS_SCALAR_TRANSPOSE_LOOPS_H

#include <assert.h>
#include <string.h>

#include "kernels/lines.h"

/* transpose_plane of lines.h in plain C: every level compiles these very lines. Squares are
 * transposed in vectors of 16 bytes; a few columns or rows that lie together (the channels of
 * pixels) are interleaved or pulled apart by loops that compilers vectorise. */

#define TRANSPOSE_TILE 16 /* a tile of 16 x 16 eight-byte elements touches 32 cache lines */
#define TRANSPOSE_TOGETHER_MAX 4

typedef uint64_t transpose_longs __attribute__((vector_size(16)));
typedef uint32_t transpose_words __attribute__((vector_size(16)));
typedef uint16_t transpose_halves __attribute__((vector_size(16)));
typedef uint8_t transpose_octets __attribute__((vector_size(16)));

/* Vectors x[i] and x[i + n / 2], interleaved, log2 n times: rows become columns. */
#define TRANSPOSE_SQUARE(type, n, low, high)                                                       \
    do {                                                                                           \
        type x[n], y[n];                                                                           \
        _Pragma("GCC unroll 16") for (int j = 0; j < (n); j++)                                     \
            memcpy(&x[j], from + (size_t)j * apart, sizeof x[j]);                                  \
        _Pragma("GCC unroll 4") for (int step = 1; step < (n); step *= 2)                          \
        {                                                                                          \
            _Pragma("GCC unroll 8") for (int j = 0; j < (n) / 2; j++)                              \
            {                                                                                      \
                y[2 * j] = __builtin_shufflevector(x[j], x[j + (n) / 2], low);                     \
                y[2 * j + 1] = __builtin_shufflevector(x[j], x[j + (n) / 2], high);                \
            }                                                                                      \
            _Pragma("GCC unroll 16") for (int j = 0; j < (n); j++) x[j] = y[j];                    \
        }                                                                                          \
        _Pragma("GCC unroll 16") for (int j = 0; j < (n); j++)                                     \
            memcpy(to + (size_t)j * line, &x[j], sizeof x[j]);                                     \
    } while (0)

#define LOW_2 0, 2
#define HIGH_2 1, 3
#define LOW_4 0, 4, 1, 5
#define HIGH_4 2, 6, 3, 7
#define LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31

/* One square of 16 bytes by as many rows as it has elements. */
static inline __attribute__((always_inline)) void
transpose_square(const size_t bytes, const char *from, size_t apart, char *to, size_t line)
{
    if (bytes == sizeof(uint8_t))
        TRANSPOSE_SQUARE(transpose_octets, 16, LOW_16, HIGH_16);
    else if (bytes == sizeof(uint16_t))
        TRANSPOSE_SQUARE(transpose_halves, 8, LOW_8, HIGH_8);
    else if (bytes == sizeof(uint32_t))
        TRANSPOSE_SQUARE(transpose_words, 4, LOW_4, HIGH_4);
    else
        TRANSPOSE_SQUARE(transpose_longs, 2, LOW_2, HIGH_2);
}

/* Lines of the result that are a multiple of it apart share few sets of an L1 cache, which holds
 * fewer of them than a tile has: there a line is written whole before the next. */
#define TRANSPOSE_CONFLICT_BYTES 2048

/* As many rows and columns as are multiples of a square, TRANSPOSE_TILE rows of the result at a
 * time. */
static inline __attribute__((always_inline)) void
transpose_squares(const size_t bytes, const transpose_plane *p, size_t rows, size_t columns)
{
    const size_t n = 16 / bytes, apart = p->in_stride * bytes, line = p->out_stride * bytes;
    const size_t step =
        line % TRANSPOSE_CONFLICT_BYTES == 0 && n < TRANSPOSE_TILE ? TRANSPOSE_TILE : n;
    for (size_t i0 = 0; i0 < rows; i0 += TRANSPOSE_TILE)
        for (size_t j0 = 0; j0 < columns; j0 += step)
            for (size_t i = i0; i < rows && i < i0 + TRANSPOSE_TILE; i += n)
                for (size_t j = j0; j < columns && j < j0 + step; j += n)
                    transpose_square(bytes, (const char *)p->in + i * bytes + j * apart, apart,
                                     (char *)p->out + i * line + j * bytes, line);
}

#define TRANSPOSE_FEW(type)                                                                        \
    do {                                                                                           \
        const type *restrict in = p->in;                                                           \
        type *restrict out = p->out;                                                               \
        size_t apart = p->in_stride, line = p->out_stride;                                         \
        for (size_t i = first_row; i < end_row; i++)                                               \
            for (size_t j = first_column; j < p->columns; j++)                                     \
                out[i * line + j] = in[i + j * apart];                                             \
    } while (0)

/* Element by element: what squares leave. */
static inline void transpose_rest(const transpose_plane *p, size_t first_row, size_t end_row,
                                  size_t first_column)
{
    if (p->element_bytes == sizeof(uint8_t))
        TRANSPOSE_FEW(uint8_t);
    else if (p->element_bytes == sizeof(uint16_t))
        TRANSPOSE_FEW(uint16_t);
    else if (p->element_bytes == sizeof(uint32_t))
        TRANSPOSE_FEW(uint32_t);
    else
        TRANSPOSE_FEW(uint64_t);
}

/* `n` columns that lie together in the result, from lines of the source. */
#define TRANSPOSE_TOGETHER(type, n, each)                                                          \
    do {                                                                                           \
        const type *restrict in = p->in, *restrict in1 = in + p->in_stride;                        \
        const type *restrict in2 = in + (n > 2 ? 2 : 0) * p->in_stride;                            \
        const type *restrict in3 = in + (n > 3 ? 3 : 0) * p->in_stride;                            \
        type *restrict out = p->out;                                                               \
        for (size_t i = 0; i < rows; i++) {                                                        \
            out[n * i] = in[i];                                                                    \
            out[n * i + 1] = in1[i];                                                               \
            each                                                                                   \
        }                                                                                          \
        (void)in2, (void)in3;                                                                      \
    } while (0)

/* `n` rows of the result, from elements that lie together in the source. */
#define TRANSPOSE_APART(type, n, each)                                                             \
    do {                                                                                           \
        const type *restrict in = p->in;                                                           \
        type *restrict out = p->out, *restrict out1 = out + p->out_stride;                         \
        type *restrict out2 = out + (n > 2 ? 2 : 0) * p->out_stride;                               \
        type *restrict out3 = out + (n > 3 ? 3 : 0) * p->out_stride;                               \
        for (size_t j = 0; j < columns; j++) {                                                     \
            out[j] = in[n * j];                                                                    \
            out1[j] = in[n * j + 1];                                                               \
            each                                                                                   \
        }                                                                                          \
        (void)out2, (void)out3;                                                                    \
    } while (0)

#define TRANSPOSE_CHANNELS(type)                                                                   \
    do {                                                                                           \
        if (is_apart && rows == 2)                                                                 \
            TRANSPOSE_APART(type, 2, );                                                            \
        else if (is_apart && rows == 3)                                                            \
            TRANSPOSE_APART(type, 3, out2[j] = in[3 * j + 2];);                                    \
        else if (is_apart)                                                                         \
            TRANSPOSE_APART(type, 4, out2[j] = in[4 * j + 2]; out3[j] = in[4 * j + 3];);           \
        else if (columns == 2)                                                                     \
            TRANSPOSE_TOGETHER(type, 2, );                                                         \
        else if (columns == 3)                                                                     \
            TRANSPOSE_TOGETHER(type, 3, out[3 * i + 2] = in2[i];);                                 \
        else                                                                                       \
            TRANSPOSE_TOGETHER(type, 4, out[4 * i + 2] = in2[i]; out[4 * i + 3] = in3[i];);        \
    } while (0)

static inline void transpose_channels(const transpose_plane *p, const int is_apart)
{
    const size_t rows = p->rows, columns = p->columns;
    if (p->element_bytes == sizeof(uint8_t))
        TRANSPOSE_CHANNELS(uint8_t);
    else if (p->element_bytes == sizeof(uint16_t))
        TRANSPOSE_CHANNELS(uint16_t);
    else if (p->element_bytes == sizeof(uint32_t))
        TRANSPOSE_CHANNELS(uint32_t);
    else
        TRANSPOSE_CHANNELS(uint64_t);
}

static inline void line_transpose(const transpose_plane *p)
{
    size_t bytes = p->element_bytes;
    assert(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
    if (p->columns > 1 && p->columns <= TRANSPOSE_TOGETHER_MAX && p->out_stride == p->columns) {
        transpose_channels(p, 0);
        return;
    }
    if (p->rows > 1 && p->rows <= TRANSPOSE_TOGETHER_MAX && p->in_stride == p->rows) {
        transpose_channels(p, 1);
        return;
    }
    size_t n = 16 / bytes, rows = p->rows / n * n, columns = p->columns / n * n;
    if (bytes == sizeof(uint8_t))
        transpose_squares(sizeof(uint8_t), p, rows, columns);
    else if (bytes == sizeof(uint16_t))
        transpose_squares(sizeof(uint16_t), p, rows, columns);
    else if (bytes == sizeof(uint32_t))
        transpose_squares(sizeof(uint32_t), p, rows, columns);
    else
        transpose_squares(sizeof(uint64_t), p, rows, columns);
    transpose_rest(p, 0, rows, columns);
    transpose_rest(p, rows, p->rows, 0);
}

#undef TRANSPOSE_SQUARE
#undef TRANSPOSE_FEW
#undef TRANSPOSE_TOGETHER
#undef TRANSPOSE_APART
#undef TRANSPOSE_CHANNELS

#endif
