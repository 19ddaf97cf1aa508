#ifndef KERNELS_SCALAR_COMBINE_LOOPS_H
#define KERNELS_SCALAR_COMBINE_LOOPS_H

#include <assert.h>
#include <string.h>

#include "kernels/lines.h"

/* combine_line and choose_line of lines.h in plain C: every level compiles these very lines. Pairs
 * are taken a block at a time, where an operand that is one value for all is a block of it: so each
 * kind and type has one loop. */

#define COMBINE_BLOCK 512

#define COMBINE_EACH(type, result, expression)                                                     \
    do {                                                                                           \
        const type *restrict x = a, *restrict y = b;                                               \
        result *restrict to = out;                                                                 \
        for (size_t i = 0; i < n; i++)                                                             \
            to[i] = (result)(expression);                                                          \
    } while (0)

/* What is the same for signed and unsigned integers of a width. */
#define COMBINE_WRAPPING(type)                                                                     \
    switch (kind) {                                                                                \
    case COMBINE_ADD:                                                                              \
        COMBINE_EACH(type, type, x[i] + y[i]);                                                     \
        break;                                                                                     \
    case COMBINE_SUB:                                                                              \
        COMBINE_EACH(type, type, x[i] - y[i]);                                                     \
        break;                                                                                     \
    case COMBINE_MUL:                                                                              \
        COMBINE_EACH(type, type, x[i] * y[i]);                                                     \
        break;                                                                                     \
    case COMBINE_BIT_AND:                                                                          \
        COMBINE_EACH(type, type, x[i] & y[i]);                                                     \
        break;                                                                                     \
    case COMBINE_BIT_OR:                                                                           \
        COMBINE_EACH(type, type, x[i] | y[i]);                                                     \
        break;                                                                                     \
    default:                                                                                       \
        assert(kind == COMBINE_BIT_XOR);                                                           \
        COMBINE_EACH(type, type, x[i] ^ y[i]);                                                     \
    }

#define COMBINE_COMPARING(type)                                                                    \
    switch (kind) {                                                                                \
    case COMBINE_EQUAL:                                                                            \
        COMBINE_EACH(type, uint8_t, x[i] == y[i]);                                                 \
        break;                                                                                     \
    case COMBINE_NOT_EQUAL:                                                                        \
        COMBINE_EACH(type, uint8_t, x[i] != y[i]);                                                 \
        break;                                                                                     \
    case COMBINE_LESS:                                                                             \
        COMBINE_EACH(type, uint8_t, x[i] < y[i]);                                                  \
        break;                                                                                     \
    default:                                                                                       \
        assert(kind == COMBINE_LESS_OR_EQUAL);                                                     \
        COMBINE_EACH(type, uint8_t, x[i] <= y[i]);                                                 \
    }

#define COMBINE_EXTREMES(type)                                                                     \
    do {                                                                                           \
        if (kind == COMBINE_MAX)                                                                   \
            COMBINE_EACH(type, type, x[i] > y[i] ? x[i] : y[i]);                                   \
        else                                                                                       \
            COMBINE_EACH(type, type, x[i] < y[i] ? x[i] : y[i]);                                   \
    } while (0)

static inline void combine_compare(combine_kind kind, dtype type, const void *a, const void *b,
                                   void *out, size_t n)
{
    if (type == DTYPE_F32)
        COMBINE_COMPARING(float)
    else if (type == DTYPE_F64)
        COMBINE_COMPARING(double)
    else if (type == DTYPE_U8)
        COMBINE_COMPARING(uint8_t)
    else if (type == DTYPE_I8)
        COMBINE_COMPARING(int8_t)
    else if (type == DTYPE_I32)
        COMBINE_COMPARING(int32_t)
    else
        COMBINE_COMPARING(int64_t)
}

static inline void combine_truths(combine_kind kind, const void *a, const void *b, void *out,
                                  size_t n)
{
    if (kind == COMBINE_AND)
        COMBINE_EACH(uint8_t, uint8_t, (x[i] != 0) & (y[i] != 0));
    else if (kind == COMBINE_OR)
        COMBINE_EACH(uint8_t, uint8_t, (x[i] | y[i]) != 0);
    else if (kind == COMBINE_EQUAL)
        COMBINE_EACH(uint8_t, uint8_t, (x[i] != 0) ^ (y[i] == 0));
    else
        COMBINE_EACH(uint8_t, uint8_t, (x[i] != 0) ^ (y[i] != 0));
}

static inline void combine_extremes(combine_kind kind, dtype type, const void *a, const void *b,
                                    void *out, size_t n)
{
    if (type == DTYPE_U8)
        COMBINE_EXTREMES(uint8_t);
    else if (type == DTYPE_I8)
        COMBINE_EXTREMES(int8_t);
    else if (type == DTYPE_I32)
        COMBINE_EXTREMES(int32_t);
    else
        COMBINE_EXTREMES(int64_t);
}

static inline void combine_doubles(combine_kind kind, const void *a, const void *b, void *out,
                                   size_t n)
{
    switch (kind) {
    case COMBINE_ADD:
        COMBINE_EACH(double, double, x[i] + y[i]);
        break;
    case COMBINE_SUB:
        COMBINE_EACH(double, double, x[i] - y[i]);
        break;
    case COMBINE_MUL:
        COMBINE_EACH(double, double, x[i] * y[i]);
        break;
    case COMBINE_MAX:
        COMBINE_EACH(double, double, (x[i] > y[i]) | (x[i] != x[i]) ? x[i] : y[i]);
        break;
    default:
        assert(kind == COMBINE_MIN);
        COMBINE_EACH(double, double, (x[i] < y[i]) | (x[i] != x[i]) ? x[i] : y[i]);
    }
}

/* Quotients of floats, cut off, are those of the integers: where 1 / b is more than the rounding.
 */
static inline void combine_quotients(dtype type, const void *a, const void *b, void *out, size_t n)
{
    if (type == DTYPE_U8) {
        COMBINE_EACH(uint8_t, uint8_t,
                     y[i] ? (int32_t)((float)x[i] / (float)(y[i] ? y[i] : 1)) : 0);
    } else if (type == DTYPE_I8) {
        COMBINE_EACH(int8_t, int8_t, y[i] ? (int32_t)((float)x[i] / (float)(y[i] ? y[i] : 1)) : 0);
    } else {
        const int32_t *restrict x = a, *restrict y = b;
        int32_t *restrict to = out;
        for (size_t i = 0; i < n; i++) {
            double quotient = (double)x[i] / (double)(y[i] ? y[i] : 1);
            int32_t cut = (int32_t)(quotient < 0x1p31 ? quotient : 0x1p31 - 1);
            cut = quotient == 0x1p31 ? INT32_MIN : cut;
            to[i] = y[i] ? cut : 0;
        }
    }
}

static inline void combine_block(combine_kind kind, dtype type, const void *a, const void *b,
                                 void *out, size_t n)
{
    if (type == DTYPE_BOOL)
        combine_truths(kind, a, b, out, n);
    else if (kind == COMBINE_GREATER)
        combine_compare(COMBINE_LESS, type, b, a, out, n);
    else if (kind == COMBINE_GREATER_OR_EQUAL)
        combine_compare(COMBINE_LESS_OR_EQUAL, type, b, a, out, n);
    else if (kind >= COMBINE_EQUAL)
        combine_compare(kind, type, a, b, out, n);
    else if (type == DTYPE_F64)
        combine_doubles(kind, a, b, out, n);
    else if (kind == COMBINE_DIVIDE)
        combine_quotients(type, a, b, out, n);
    else if (kind == COMBINE_SHIFT_LEFT)
        COMBINE_EACH(uint8_t, uint8_t, y[i] < 8 ? (uint32_t)x[i] << (y[i] & 7) : 0);
    else if (kind == COMBINE_SHIFT_RIGHT)
        COMBINE_EACH(uint8_t, uint8_t, y[i] < 8 ? x[i] >> (y[i] & 7) : 0);
    else if (kind == COMBINE_MAX || kind == COMBINE_MIN)
        combine_extremes(kind, type, a, b, out, n);
    else if (dtype_bytes(type) == sizeof(uint8_t))
        COMBINE_WRAPPING(uint8_t)
    else if (dtype_bytes(type) == sizeof(uint32_t))
        COMBINE_WRAPPING(uint32_t)
    else
        COMBINE_WRAPPING(uint64_t)
}

static inline void combine_repeat(const void *value, size_t bytes, size_t n, uint64_t *out)
{
    if (bytes == sizeof(uint8_t)) {
        memset(out, *(const uint8_t *)value, n);
    } else if (bytes == sizeof(uint16_t)) {
        uint16_t x, *to = (uint16_t *)out;
        memcpy(&x, value, sizeof x);
        for (size_t i = 0; i < n; i++)
            to[i] = x;
    } else if (bytes == sizeof(uint32_t)) {
        uint32_t x, *to = (uint32_t *)out;
        memcpy(&x, value, sizeof x);
        for (size_t i = 0; i < n; i++)
            to[i] = x;
    } else {
        uint64_t x;
        memcpy(&x, value, sizeof x);
        for (size_t i = 0; i < n; i++)
            out[i] = x;
    }
}

/* Where operand `x` is read: itself, or its one value repeated in `room`. */
static inline const char *combine_operand(const void *x, size_t step, size_t bytes, size_t count,
                                          uint64_t room[COMBINE_BLOCK])
{
    if (step)
        return x;
    combine_repeat(x, bytes, count < COMBINE_BLOCK ? count : COMBINE_BLOCK, room);
    return (const char *)room;
}

static inline void line_combine(const combine_line *p)
{
    uint64_t same_a[COMBINE_BLOCK], same_b[COMBINE_BLOCK];
    size_t bytes = dtype_bytes(p->type), count = p->count;
    size_t out_bytes = p->kind >= COMBINE_TRUTH ? 1 : bytes;
    assert(combine_line_has(p->kind, p->type));
    if (count == 0)
        return;
    const char *a = combine_operand(p->a, p->a_step, bytes, count, same_a);
    const char *b = combine_operand(p->b, p->b_step, bytes, count, same_b);
    for (size_t i = 0, n; i < count; i += n) {
        n = count - i < COMBINE_BLOCK ? count - i : COMBINE_BLOCK;
        combine_block(p->kind, p->type, a + i * p->a_step * bytes, b + i * p->b_step * bytes,
                      (char *)p->out + i * out_bytes, n);
    }
}

#define CHOOSE_EACH(type)                                                                          \
    do {                                                                                           \
        const type *restrict x = a, *restrict y = b;                                               \
        type *restrict to = out;                                                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            to[i] = choice[i] ? x[i] : y[i];                                                       \
    } while (0)

static inline void choose_block(size_t bytes, const uint8_t *restrict choice, const void *a,
                                const void *b, void *out, size_t n)
{
    if (bytes == sizeof(uint8_t))
        CHOOSE_EACH(uint8_t);
    else if (bytes == sizeof(uint16_t))
        CHOOSE_EACH(uint16_t);
    else if (bytes == sizeof(uint32_t))
        CHOOSE_EACH(uint32_t);
    else
        CHOOSE_EACH(uint64_t);
}

static inline void line_choose(const choose_line *p)
{
    uint64_t same_a[COMBINE_BLOCK], same_b[COMBINE_BLOCK];
    size_t bytes = p->element_bytes, count = p->count;
    assert(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
    if (count == 0)
        return;
    const char *a = combine_operand(p->a, p->a_step, bytes, count, same_a);
    const char *b = combine_operand(p->b, p->b_step, bytes, count, same_b);
    for (size_t i = 0, n; i < count; i += n) {
        n = count - i < COMBINE_BLOCK ? count - i : COMBINE_BLOCK;
        choose_block(bytes, p->choice + i, a + i * p->a_step * bytes, b + i * p->b_step * bytes,
                     (char *)p->out + i * bytes, n);
    }
}

#undef COMBINE_EACH
#undef COMBINE_WRAPPING
#undef COMBINE_COMPARING
#undef COMBINE_EXTREMES
#undef CHOOSE_EACH

#endif
