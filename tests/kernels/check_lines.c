#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/kernels_list.h"
#include "kernels/lines.h"
#include "tests/kernels/harness.h"

#define FUNCTION(entry) ((__typeof__(((kernels *)0)->entry))v->function)

static void fill_any(float *x, size_t count)
{
    static const float special[] = {
        0,       -0.0f,   NAN,      INFINITY, -INFINITY, FLT_MAX,       -FLT_MAX,      0.99f,
        -0.99f,  255.5f,  256,      -128.9f,  127.99f,   2147483520,    2147483648.0f, -2.2e9f,
        9.2e18f, 9.3e18f, -9.3e18f, 1,        -1,        -2147483648.0f};
    for (size_t i = 0; i < count; i++) {
        x[i] = check_random_float(-300, 300);
        if (check_random_below(3) == 0)
            x[i] = special[check_random_below(sizeof special / sizeof *special)];
    }
}

static bool compared(compare_kind kind, float a, float b)
{
    switch (kind) {
    case COMPARE_EQUAL:
        return a == b;
    case COMPARE_LESS:
        return a < b;
    case COMPARE_LESS_OR_EQUAL:
        return a <= b;
    case COMPARE_GREATER:
        return a > b;
    case COMPARE_GREATER_OR_EQUAL:
        return a >= b;
    }
    return false;
}

static void check_compare(const variant *v)
{
    for (size_t turn = 0; turn < 200; turn++) {
        size_t count = turn < 70 ? turn : check_random_below(700), a_step = turn % 4 > 0;
        compare_f32 p = {
            .kind = (compare_kind)(turn % 5), .a_step = a_step, .b_step = turn % 3 > 0};
        size_t b_count = p.b_step ? count : count > 0, a_count = a_step ? count : count > 0;
        float *a = check_floats(a_count), *b = check_floats(b_count);
        fill_any(a, a_count);
        fill_any(b, b_count);
        for (size_t i = 0; i < a_count && i < b_count; i += 3)
            b[i] = a[i];
        p.a = a;
        p.b = b;
        p.count = count;
        p.out = check_buffer(count, 1);
        FUNCTION(compare_f32)(&p);
        for (size_t i = 0; i < count; i++)
            if (p.out[i] != compared(p.kind, a[i * a_step], b[i * p.b_step]))
                check_fail("kind %d of %g and %g gives %d", (int)p.kind, (double)a[i * a_step],
                           (double)b[i * p.b_step], p.out[i]);
        check_reset();
    }
}

/* The integer that `x` becomes. */
static int64_t saturated(float x, dtype to)
{
    if (x != x)
        return 0;
    double low = to == DTYPE_U8 ? 0 : to == DTYPE_I8 ? -128 : to == DTYPE_I32 ? -0x1p31 : -0x1p63;
    double high = to == DTYPE_U8    ? 255
                  : to == DTYPE_I8  ? 127
                  : to == DTYPE_I32 ? 0x1p31 - 1
                                    : 0x1p63;
    if ((double)x <= low)
        return (int64_t)low;
    if ((double)x >= high)
        return to == DTYPE_I64 ? INT64_MAX : (int64_t)high;
    return (int64_t)x;
}

static int64_t integer_at(dtype type, const void *data, size_t i)
{
    return type == DTYPE_I8    ? ((const int8_t *)data)[i]
           : type == DTYPE_I32 ? ((const int32_t *)data)[i]
           : type == DTYPE_I64 ? ((const int64_t *)data)[i]
                               : ((const uint8_t *)data)[i];
}

static void check_floats_to(const variant *v, dtype to, size_t count)
{
    float *in = check_floats(count);
    void *out = check_buffer(count * dtype_bytes(to), dtype_bytes(to));
    fill_any(in, count);
    FUNCTION(convert_line)(&(convert_line){DTYPE_F32, to, in, out, count});
    for (size_t i = 0; i < count; i++) {
        if (to == DTYPE_F64) {
            check_close("f64", i, ((double *)out)[i], (double)in[i], 0);
            continue;
        }
        int64_t want = to == DTYPE_BOOL ? in[i] != 0 : saturated(in[i], to);
        if (integer_at(to, out, i) != want)
            check_fail("%g to %s gives %lld", (double)in[i], dtype_name(to),
                       (long long)integer_at(to, out, i));
    }
    check_reset();
}

static void check_floats_of(const variant *v, dtype from, size_t count)
{
    void *in = check_buffer(count * dtype_bytes(from), dtype_bytes(from));
    float *out = check_floats(count);
    check_fill_bytes(in, count * dtype_bytes(from));
    for (size_t i = 0; i < count && from == DTYPE_F64; i++)
        ((double *)in)[i] = (double)check_random_float(-3e38f, 3e38f) * (i % 5 ? 1 : 1e-30);
    FUNCTION(convert_line)(&(convert_line){from, DTYPE_F32, in, out, count});
    for (size_t i = 0; i < count; i++) {
        float want = from == DTYPE_F64 ? (float)((double *)in)[i] : (float)integer_at(from, in, i);
        if (memcmp(&out[i], &want, sizeof want))
            check_fail("%s %zu becomes %g, not %g", dtype_name(from), i, (double)out[i],
                       (double)want);
    }
    check_reset();
}

static void check_convert(const variant *v)
{
    static const dtype types[] = {DTYPE_BOOL, DTYPE_U8, DTYPE_I8, DTYPE_I32, DTYPE_I64, DTYPE_F64};
    for (size_t turn = 0; turn < 90; turn++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            size_t count = turn < 70 ? turn : check_random_below(900);
            check_floats_to(v, types[t], count);
            check_floats_of(v, types[t], count);
        }
    for (size_t count = 0; count < 80; count++) {
        int64_t *wide = check_buffer(count * 8, 8), *back = check_buffer(count * 8, 8);
        int32_t *narrow = check_buffer(count * 4, 4);
        check_fill_bytes(wide, count * 8);
        FUNCTION(convert_line)(&(convert_line){DTYPE_I64, DTYPE_I32, wide, narrow, count});
        FUNCTION(convert_line)(&(convert_line){DTYPE_I32, DTYPE_I64, narrow, back, count});
        for (size_t i = 0; i < count; i++)
            if (narrow[i] != (int32_t)(uint32_t)(uint64_t)wide[i] || back[i] != narrow[i])
                check_fail("i64 %zu becomes i32 %d", i, narrow[i]);
        check_reset();
    }
}

static float folded(fold_kind kind, float sum, float x)
{
    switch (kind) {
    case FOLD_SUM:
        return sum + x;
    case FOLD_SUM_SQUARE:
        return sum + x * x;
    case FOLD_MAX:
        return isnan(sum) || isnan(x) ? NAN : fmaxf(sum, x);
    case FOLD_MIN:
        return isnan(sum) || isnan(x) ? NAN : fminf(sum, x);
    }
    return sum;
}

static void fill_some(float *x, size_t count, size_t turn)
{
    check_fill_floats(x, count, -3, 3);
    for (size_t i = turn % 7; turn % 2 && i < count; i += 29)
        x[i] = i % 3 ? NAN : INFINITY;
}

static void check_fold_line(const variant *v)
{
    static const fold_kind kinds[] = {FOLD_SUM, FOLD_MAX, FOLD_MIN};
    for (size_t turn = 0; turn < 150; turn++) {
        fold_windows_f32 p = {.kind = kinds[turn % 3],
                              .stride = 1 + turn % 4,
                              .rows = 1 + check_random_below(4),
                              .taps = 1 + check_random_below(5),
                              .dilation = 1 + check_random_below(3),
                              .count = turn < 60 ? turn : check_random_below(1300)};
        size_t line = p.count ? (p.count - 1) * p.stride + (p.taps - 1) * p.dilation + 1 : 0;
        p.row_stride = line / 2 + turn % 3;
        size_t length = line ? (p.rows - 1) * p.row_stride + line : 0;
        float *in = check_floats(length);
        fill_some(in, length, turn);
        p.in = in;
        p.out = check_floats(p.count);
        FUNCTION(fold_windows_f32)(&p);
        for (size_t i = 0; i < p.count; i++) {
            float want = in[i * p.stride];
            for (size_t t = 1; t < p.rows * p.taps; t++)
                want =
                    folded(p.kind, want,
                           in[t / p.taps * p.row_stride + i * p.stride + t % p.taps * p.dilation]);
            check_close("line", i, (double)p.out[i], (double)want, 0);
        }
        check_reset();
    }
}

static void check_fold_rows(const variant *v)
{
    for (size_t turn = 0; turn < 150; turn++) {
        fold_rows_f32 p = {.kind = (fold_kind)(turn % 4),
                           .rows = check_random_below(12),
                           .width = turn < 60 ? turn : check_random_below(300)};
        p.stride = p.width + turn % 3;
        size_t length = p.rows ? (p.rows - 1) * p.stride + p.width : 0;
        float *in = check_floats(length), *want = check_floats(p.width);
        fill_some(in, length, turn);
        p.in = in;
        p.out = check_floats(p.width);
        check_fill_floats(p.out, p.width, -1, 1);
        memcpy(want, p.out, p.width * sizeof *want);
        FUNCTION(fold_rows_f32)(&p);
        for (size_t j = 0; j < p.width; j++) {
            for (size_t i = 0; i < p.rows; i++)
                want[j] = folded(p.kind, want[j], in[i * p.stride + j]);
            check_close("column", j, (double)p.out[j], (double)want[j], 0);
        }
        check_reset();
    }
}

static void check_gather_sum(const variant *v)
{
    for (size_t turn = 0; turn < 120; turn++) {
        gather_sum_f32 p = {.taps = turn % 5 ? turn % 5 : 1,
                            .count = turn < 60 ? turn : check_random_below(300)};
        size_t width = 1 + check_random_below(50), all = p.taps * p.count;
        int32_t *index = check_buffer(all * sizeof *index, sizeof *index);
        float *weights = turn % 5 ? check_floats(all) : NULL, *row = check_floats(width);
        check_fill_floats(row, width, -2, 2);
        row[0] = INFINITY; /* its weight is 0 */
        for (size_t i = 0; i < all; i++) {
            index[i] = (int32_t)check_random_below(width);
            if (weights)
                weights[i] = index[i] ? check_random_float(-1, 1) : 0;
        }
        p.index = index;
        p.weights = weights;
        p.row = row;
        p.out = check_floats(p.count);
        FUNCTION(gather_sum_f32)(&p);
        for (size_t i = 0; i < p.count; i++) {
            float want = weights ? 0 : row[index[i]];
            for (size_t t = 0; weights && t < p.taps; t++)
                want += index[t * p.count + i]
                            ? weights[t * p.count + i] * row[index[t * p.count + i]]
                            : 0;
            check_close("sum", i, (double)p.out[i], (double)want, 0);
        }
        check_reset();
    }
}

static void check_repeat(const variant *v)
{
    for (size_t turn = 0; turn < 160; turn++) {
        repeat_f32 p = {.count = turn < 80 ? turn : check_random_below(300), .times = 1 + turn % 6};
        float *in = check_floats(p.count);
        check_fill_floats(in, p.count, -2, 2);
        p.in = in;
        p.out = check_floats(p.count * p.times);
        FUNCTION(repeat_f32)(&p);
        for (size_t i = 0; i < p.count * p.times; i++)
            check_close("repeated", i, (double)p.out[i], (double)in[i / p.times], 0);
        check_reset();
    }
}

const check checks_lines[] = {
    {"compare_f32", check_compare, NULL},
    {"convert_line", check_convert, NULL},
    {"fold_windows_f32", check_fold_line, NULL},
    {"fold_rows_f32", check_fold_rows, NULL},
    {"gather_sum_f32", check_gather_sum, NULL},
    {"repeat_f32", check_repeat, NULL},
    {NULL, NULL, NULL},
};
