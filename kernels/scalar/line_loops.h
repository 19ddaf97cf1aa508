#ifndef KERNELS_SCALAR_LINE_LOOPS_H
#define KERNELS_SCALAR_LINE_LOOPS_H

#include <assert.h>
#include <string.h>

#include "kernels/lines.h"

/* The loops of lines.h in plain C: every level compiles these very lines. Written so that compilers
 * vectorise them: choices are values, not branches, and steps are constants. */

/* x limited to low .. high; NaN gives 0. */
static inline float line_limit(float x, float low, float high)
{
    x = x == x ? x : 0;
    x = x > low ? x : low;
    return x < high ? x : high;
}

/* The largest floats below 2^31 and 2^63: what is larger is put right afterwards. */
#define LINE_BELOW_2_31 2147483520.0f
#define LINE_BELOW_2_63 9223371487098961920.0f

#define LINE_BLOCK 256 /* elements at a time: they stay in the L1 cache between loops */

/* In two loops: compilers narrow integers well, but not floats. */
static inline void line_floats_to_bytes(float low, float high, const float *restrict in,
                                        uint8_t *restrict out, size_t count)
{
    int32_t some[LINE_BLOCK];
    for (size_t i = 0, n; i < count; i += n) {
        n = count - i < LINE_BLOCK ? count - i : LINE_BLOCK;
        for (size_t j = 0; j < n; j++)
            some[j] = (int32_t)line_limit(in[i + j], low, high);
        for (size_t j = 0; j < n; j++)
            out[i + j] = (uint8_t)some[j];
    }
}

static inline void line_floats_to(dtype to, const float *restrict in, void *out, size_t count)
{
    switch (to) {
    case DTYPE_BOOL:
        for (size_t i = 0; i < count; i++)
            ((uint8_t *)out)[i] = in[i] != 0;
        break;
    case DTYPE_U8:
        line_floats_to_bytes(0, 255, in, out, count);
        break;
    case DTYPE_I8:
        line_floats_to_bytes(-128, 127, in, out, count);
        break;
    case DTYPE_I32: {
        int32_t *restrict to_i32 = out;
        for (size_t i = 0; i < count; i++) {
            int32_t x = (int32_t)line_limit(in[i], -0x1p31f, LINE_BELOW_2_31);
            to_i32[i] = in[i] >= 0x1p31f ? INT32_MAX : x;
        }
        break;
    }
    case DTYPE_I64: {
        int64_t *restrict to_i64 = out;
        for (size_t i = 0; i < count; i++) {
            int64_t x = (int64_t)line_limit(in[i], -0x1p63f, LINE_BELOW_2_63);
            to_i64[i] = in[i] >= 0x1p63f ? INT64_MAX : x;
        }
        break;
    }
    default:
        assert(to == DTYPE_F64);
        for (size_t i = 0; i < count; i++)
            ((double *)out)[i] = (double)in[i];
    }
}

static inline void line_floats_of(dtype from, const void *in, float *restrict out, size_t count)
{
    switch (from) {
    case DTYPE_BOOL:
    case DTYPE_U8: {
        const uint8_t *restrict x = in;
        for (size_t i = 0; i < count; i++)
            out[i] = (float)x[i];
        break;
    }
    case DTYPE_I8: {
        const int8_t *restrict x = in;
        for (size_t i = 0; i < count; i++)
            out[i] = (float)x[i];
        break;
    }
    case DTYPE_I32: {
        const int32_t *restrict x = in;
        for (size_t i = 0; i < count; i++)
            out[i] = (float)x[i];
        break;
    }
    case DTYPE_I64: {
        const int64_t *restrict x = in;
        for (size_t i = 0; i < count; i++)
            out[i] = (float)x[i];
        break;
    }
    default: {
        assert(from == DTYPE_F64);
        const double *restrict x = in;
        for (size_t i = 0; i < count; i++)
            out[i] = (float)x[i];
    }
    }
}

/* The largest double below 2^63. */
#define LINE_DOUBLE_BELOW_2_63 9223372036854774784.0

static inline double line_limit_double(double x, double low, double high)
{
    x = x == x ? x : 0;
    x = x > low ? x : low;
    return x < high ? x : high;
}

static inline void line_doubles_to(dtype to, const double *restrict in, void *out, size_t count)
{
    if (to == DTYPE_BOOL) {
        for (size_t i = 0; i < count; i++)
            ((uint8_t *)out)[i] = in[i] != 0;
    } else if (to == DTYPE_I64) {
        int64_t *restrict x = out;
        for (size_t i = 0; i < count; i++) {
            int64_t cut = (int64_t)line_limit_double(in[i], -0x1p63, LINE_DOUBLE_BELOW_2_63);
            x[i] = in[i] >= 0x1p63 ? INT64_MAX : cut;
        }
    } else if (to == DTYPE_I32) {
        int32_t *restrict x = out;
        for (size_t i = 0; i < count; i++)
            x[i] = (int32_t)line_limit_double(in[i], INT32_MIN, INT32_MAX);
    } else {
        double low = to == DTYPE_I8 ? INT8_MIN : 0, high = to == DTYPE_I8 ? INT8_MAX : UINT8_MAX;
        uint8_t *restrict x = out;
        for (size_t i = 0; i < count; i++)
            x[i] = (uint8_t)(int32_t)line_limit_double(in[i], low, high);
    }
}

#define CONVERT_EACH(type, result, expression)                                                     \
    do {                                                                                           \
        const type *restrict x = in;                                                               \
        result *restrict y = out;                                                                  \
        for (size_t i = 0; i < count; i++)                                                         \
            y[i] = (result)(expression);                                                           \
    } while (0)

#define CONVERT_TO(type)                                                                           \
    switch (to) {                                                                                  \
    case DTYPE_BOOL:                                                                               \
        CONVERT_EACH(type, uint8_t, x[i] != 0);                                                    \
        break;                                                                                     \
    case DTYPE_U8:                                                                                 \
    case DTYPE_I8:                                                                                 \
        CONVERT_EACH(type, uint8_t, x[i]);                                                         \
        break;                                                                                     \
    case DTYPE_I32:                                                                                \
        CONVERT_EACH(type, uint32_t, x[i]);                                                        \
        break;                                                                                     \
    case DTYPE_I64:                                                                                \
        CONVERT_EACH(type, uint64_t, x[i]);                                                        \
        break;                                                                                     \
    default:                                                                                       \
        assert(to == DTYPE_F64);                                                                   \
        CONVERT_EACH(type, double, x[i]);                                                          \
    }

static inline void line_integers_to(dtype from, dtype to, const void *in, void *out, size_t count)
{
    if (from == DTYPE_BOOL || from == DTYPE_U8)
        CONVERT_TO(uint8_t)
    else if (from == DTYPE_I8)
        CONVERT_TO(int8_t)
    else if (from == DTYPE_I32)
        CONVERT_TO(int32_t)
    else
        CONVERT_TO(int64_t)
}

#undef CONVERT_EACH
#undef CONVERT_TO

static inline void line_convert(const convert_line *p)
{
    assert(convert_line_has(p->from, p->to));
    if (p->from == DTYPE_F32)
        line_floats_to(p->to, p->in, p->out, p->count);
    else if (p->to == DTYPE_F32)
        line_floats_of(p->from, p->in, p->out, p->count);
    else if (p->from == DTYPE_F64)
        line_doubles_to(p->to, p->in, p->out, p->count);
    else
        line_integers_to(p->from, p->to, p->in, p->out, p->count);
}

static inline float line_weigh(float weight, float x)
{
    return weight != 0 ? weight * x : 0;
}

static inline void line_gather_sum(const gather_sum_f32 *p)
{
    const int32_t *restrict index = p->index, *restrict second = p->index + p->count;
    const float *restrict weights = p->weights, *restrict row = p->row;
    float *restrict out = p->out;
    size_t count = p->count;
    if (!weights) {
        for (size_t i = 0; i < count; i++)
            out[i] = row[index[i]];
        return;
    }
    if (p->taps == 2) { /* linear */
        const float *restrict other = weights + count;
        for (size_t i = 0; i < count; i++)
            out[i] =
                0 + line_weigh(weights[i], row[index[i]]) + line_weigh(other[i], row[second[i]]);
        return;
    }
    if (p->taps == 4) { /* linear in planes */
        const int32_t *restrict third = second + count, *restrict fourth = third + count;
        for (size_t i = 0; i < count; i++) {
            float sum = 0 + line_weigh(weights[i], row[index[i]]);
            sum += line_weigh(weights[i + count], row[second[i]]);
            sum += line_weigh(weights[i + 2 * count], row[third[i]]);
            out[i] = sum + line_weigh(weights[i + 3 * count], row[fourth[i]]);
        }
        return;
    }
    for (size_t i = 0; i < count; i++)
        out[i] = 0;
    for (size_t t = 0; t < p->taps; t++, index += count, weights += count)
        for (size_t i = 0; i < count; i++)
            out[i] += line_weigh(weights[i], row[index[i]]);
}

/* `rows` is 1 or 2: so many rows of the result are written at once. */
#define REPEAT_ROW(type, times, rows)                                                              \
    do {                                                                                           \
        const type *restrict x = in;                                                               \
        type *restrict to = out, *restrict below = to + p->columns * (times);                      \
        for (size_t c = 0; c < columns; c++)                                                       \
            for (size_t t = 0; t < (times); t++) {                                                 \
                to[c * (times) + t] = x[c];                                                        \
                if ((rows) == 2)                                                                   \
                    below[c * (times) + t] = x[c];                                                 \
            }                                                                                      \
    } while (0)

#define REPEAT_TYPE(type)                                                                          \
    do {                                                                                           \
        if (times == 2 && is_double)                                                               \
            REPEAT_ROW(type, 2, 2);                                                                \
        else if (times == 2)                                                                       \
            REPEAT_ROW(type, 2, 1);                                                                \
        else if (times == 3)                                                                       \
            REPEAT_ROW(type, 3, 1);                                                                \
        else if (times == 4)                                                                       \
            REPEAT_ROW(type, 4, 1);                                                                \
        else                                                                                       \
            REPEAT_ROW(type, times, 1);                                                            \
    } while (0)

static inline void line_repeat_row(const repeat_plane *p, const void *in, void *out, bool is_double)
{
    size_t columns = p->columns, times = p->times;
    if (p->element_bytes == sizeof(uint8_t))
        REPEAT_TYPE(uint8_t);
    else if (p->element_bytes == sizeof(uint16_t))
        REPEAT_TYPE(uint16_t);
    else if (p->element_bytes == sizeof(uint32_t))
        REPEAT_TYPE(uint32_t);
    else
        REPEAT_TYPE(uint64_t);
}

static inline void line_repeat(const repeat_plane *p)
{
    size_t in_row = p->columns * p->element_bytes, row = in_row * p->times;
    bool is_double = p->times == 2 && p->row_times >= 2;
    const char *in = p->in;
    char *out = p->out;
    for (size_t r = 0; r < p->rows && row > 0; r++, in += in_row, out += p->row_times * row) {
        line_repeat_row(p, in, out, is_double);
        for (size_t s = is_double ? 2 : 1; s < p->row_times; s++)
            memcpy(out + s * row, out, row);
    }
}

#undef REPEAT_ROW
#undef REPEAT_TYPE

#endif
