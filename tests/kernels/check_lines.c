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

static int64_t integer_at(dtype type, const void *data, size_t i)
{
    return type == DTYPE_I8    ? ((const int8_t *)data)[i]
           : type == DTYPE_I32 ? ((const int32_t *)data)[i]
           : type == DTYPE_I64 ? ((const int64_t *)data)[i]
                               : ((const uint8_t *)data)[i];
}

static bool is_less(dtype type, const void *a, const void *b)
{
    return type == DTYPE_F32   ? *(const float *)a < *(const float *)b
           : type == DTYPE_F64 ? *(const double *)a < *(const double *)b
                               : integer_at(type, a, 0) < integer_at(type, b, 0);
}

static bool is_equal(dtype type, const void *a, const void *b)
{
    if (type == DTYPE_BOOL)
        return !*(const uint8_t *)a == !*(const uint8_t *)b;
    return type == DTYPE_F32   ? *(const float *)a == *(const float *)b
           : type == DTYPE_F64 ? *(const double *)a == *(const double *)b
                               : integer_at(type, a, 0) == integer_at(type, b, 0);
}

static bool truth(combine_kind kind, dtype type, const void *a, const void *b)
{
    bool x = *(const uint8_t *)a, y = *(const uint8_t *)b;
    switch (kind) {
    case COMBINE_AND:
        return x && y;
    case COMBINE_OR:
        return x || y;
    case COMBINE_XOR:
        return x != y;
    case COMBINE_EQUAL:
        return is_equal(type, a, b);
    case COMBINE_NOT_EQUAL:
        return !is_equal(type, a, b);
    case COMBINE_LESS:
        return is_less(type, a, b);
    case COMBINE_LESS_OR_EQUAL:
        return is_less(type, a, b) || is_equal(type, a, b);
    case COMBINE_GREATER:
        return is_less(type, b, a);
    default:
        return is_less(type, b, a) || is_equal(type, a, b);
    }
}

/* The low bytes of it are what an integer type keeps. */
static uint64_t combined(combine_kind kind, int64_t a, int64_t b)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (kind) {
    case COMBINE_ADD:
        return x + y;
    case COMBINE_SUB:
        return x - y;
    case COMBINE_MUL:
        return x * y;
    case COMBINE_MAX:
        return a > b ? x : y;
    case COMBINE_MIN:
        return a < b ? x : y;
    case COMBINE_BIT_AND:
        return x & y;
    case COMBINE_BIT_OR:
        return x | y;
    case COMBINE_SHIFT_LEFT: /* of bytes */
        return y < 64 ? x << y : 0;
    case COMBINE_SHIFT_RIGHT:
        return y < 64 ? x >> y : 0;
    case COMBINE_DIVIDE: /* of 32 bits at most */
        return b ? (uint64_t)(a / b) : 0;
    default:
        return x ^ y;
    }
}

static double combined_doubles(combine_kind kind, double a, double b)
{
    switch (kind) {
    case COMBINE_ADD:
        return a + b;
    case COMBINE_SUB:
        return a - b;
    case COMBINE_MUL:
        return a * b;
    case COMBINE_MAX:
        return isnan(a) || isnan(b) ? (double)NAN : fmax(a, b);
    default:
        return isnan(a) || isnan(b) ? (double)NAN : fmin(a, b);
    }
}

static void fill_type(dtype type, void *x, size_t count)
{
    check_fill_bytes(x, count * dtype_bytes(type));
    for (size_t i = 0; i < count && type == DTYPE_F64; i++)
        ((double *)x)[i] = i % 9 ? (double)check_random_float(-2, 2) : NAN;
    if (type == DTYPE_F32)
        fill_any(x, count);
}

/* Counts of bits; divisors that are 0, -1 and small, numbers that are the least. */
static void fill_small(dtype type, combine_kind kind, char *a, size_t a_count, char *b,
                       size_t b_count)
{
    size_t bytes = dtype_bytes(type);
    for (size_t i = 0; i < b_count; i++) {
        int32_t x = (int32_t)check_random_below(12) - (kind == COMBINE_DIVIDE ? 3 : 0);
        if (i % 3)
            memcpy(b + i * bytes, &x, bytes);
    }
    for (size_t i = 0; kind == COMBINE_DIVIDE && i < a_count; i += 5) {
        int32_t least = bytes == 1 ? -128 : INT32_MIN;
        memcpy(a + i * bytes, &least, bytes);
    }
}

static void check_combine_kind(const variant *v, combine_kind kind, dtype type, size_t turn)
{
    size_t count = turn < 40 ? turn : check_random_below(2000), bytes = dtype_bytes(type);
    combine_line p = {
        .kind = kind, .type = type, .a_step = turn % 4 > 0, .b_step = turn % 3 > 0, .count = count};
    size_t a_count = p.a_step ? count : count > 0, b_count = p.b_step ? count : count > 0;
    size_t out_bytes = kind >= COMBINE_TRUTH ? 1 : bytes;
    char *a = check_buffer(a_count * bytes, bytes), *b = check_buffer(b_count * bytes, bytes);
    uint8_t *out = check_buffer(count * out_bytes, out_bytes);
    fill_type(type, a, a_count);
    fill_type(type, b, b_count);
    if (kind >= COMBINE_SHIFT_LEFT && kind <= COMBINE_DIVIDE)
        fill_small(type, kind, a, a_count, b, b_count);
    for (size_t i = 0; i < a_count && i < b_count; i += 3)
        memcpy(b + i * bytes, a + i * bytes, bytes);
    p.a = a;
    p.b = b;
    p.out = out;
    FUNCTION(combine_line)(&p);
    for (size_t i = 0; i < count; i++) {
        const char *x = a + i * bytes * p.a_step, *y = b + i * bytes * p.b_step;
        if (type == DTYPE_F64 && kind < COMBINE_TRUTH) {
            check_close("f64", i, ((double *)out)[i],
                        combined_doubles(kind, *(const double *)x, *(const double *)y), 0);
            continue;
        }
        uint64_t want = kind >= COMBINE_TRUTH
                            ? truth(kind, type, x, y)
                            : combined(kind, integer_at(type, x, 0), integer_at(type, y, 0));
        if (memcmp(out + i * out_bytes, &want, out_bytes)) {
            check_fail("kind %d of %s differs at %zu of %zu", (int)kind, dtype_name(type), i,
                       count);
            break;
        }
    }
    check_reset();
}

static void check_combine(const variant *v)
{
    for (int type = 0; type < DTYPE_BYTES; type++)
        for (int kind = 0; kind < COMBINE_COUNT; kind++)
            for (size_t turn = 0; turn < 50 && combine_line_has((combine_kind)kind, (dtype)type);
                 turn++)
                check_combine_kind(v, (combine_kind)kind, (dtype)type, turn);
}

static void check_choose(const variant *v)
{
    for (size_t turn = 0; turn < 320; turn++) {
        size_t bytes = (size_t)1 << turn % 4,
               count = turn < 240 ? turn / 4 : check_random_below(1500);
        choose_line p = {
            .element_bytes = bytes, .a_step = turn % 5 > 0, .b_step = turn % 3 > 0, .count = count};
        size_t a_count = p.a_step ? count : count > 0, b_count = p.b_step ? count : count > 0;
        uint8_t *choice = check_buffer(count, 1), *out = check_buffer(count * bytes, bytes);
        char *a = check_buffer(a_count * bytes, bytes), *b = check_buffer(b_count * bytes, bytes);
        check_fill_bytes(a, a_count * bytes);
        check_fill_bytes(b, b_count * bytes);
        for (size_t i = 0; i < count; i++)
            choice[i] = (uint8_t)check_random_below(3);
        p.choice = choice;
        p.a = a;
        p.b = b;
        p.out = out;
        FUNCTION(choose_line)(&p);
        for (size_t i = 0; i < count; i++)
            if (memcmp(out + i * bytes,
                       choice[i] ? a + i * bytes * p.a_step : b + i * bytes * p.b_step, bytes))
                check_fail("element %zu of %zu, of %zu bytes, is the other one", i, count, bytes);
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

static void check_integers_to(const variant *v, dtype from, dtype to, size_t count)
{
    void *in = check_buffer(count * dtype_bytes(from), dtype_bytes(from));
    char *out = check_buffer(count * dtype_bytes(to), dtype_bytes(to));
    check_fill_bytes(in, count * dtype_bytes(from));
    FUNCTION(convert_line)(&(convert_line){from, to, in, out, count});
    for (size_t i = 0; i < count; i++) {
        int64_t x = integer_at(from, in, i);
        double wide = (double)x;
        x = to == DTYPE_BOOL ? x != 0 : x;
        if (memcmp(out + i * dtype_bytes(to), to == DTYPE_F64 ? (void *)&wide : (void *)&x,
                   dtype_bytes(to)))
            check_fail("%s %lld becomes another %s", dtype_name(from), (long long)x,
                       dtype_name(to));
    }
    check_reset();
}

static void check_doubles_to(const variant *v, dtype to, size_t count)
{
    static const double special[] = {
        0x1p63, -0x1p63, 9223372036854774784.0, 0x1p31, 2147483647.5, -2147483648.5, 1e300, -1e300};
    double *in = check_buffer(count * sizeof *in, sizeof *in);
    void *out = check_buffer(count * dtype_bytes(to), dtype_bytes(to));
    for (size_t i = 0; i < count; i++)
        in[i] = i % 7 == 0   ? (double)NAN
                : i % 5 == 0 ? special[check_random_below(8)]
                             : (double)check_random_float(-300, 300);
    FUNCTION(convert_line)(&(convert_line){DTYPE_F64, to, in, out, count});
    for (size_t i = 0; i < count; i++) {
        double low = to == DTYPE_U8    ? 0
                     : to == DTYPE_I8  ? -128
                     : to == DTYPE_I32 ? -0x1p31
                                       : -0x1p63;
        double high = to == DTYPE_U8    ? 255
                      : to == DTYPE_I8  ? 127
                      : to == DTYPE_I32 ? 0x1p31 - 1
                                        : 0x1p63;
        double x = in[i] != in[i] ? 0 : fmin(fmax(in[i], low), high);
        int64_t want = to == DTYPE_BOOL ? in[i] != 0 : x >= 0x1p63 ? INT64_MAX : (int64_t)x;
        if (integer_at(to, out, i) != want)
            check_fail("%g to %s gives %lld", in[i], dtype_name(to),
                       (long long)integer_at(to, out, i));
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
    static const dtype integers[] = {DTYPE_BOOL, DTYPE_U8, DTYPE_I8, DTYPE_I32, DTYPE_I64};
    for (size_t turn = 0; turn < 600; turn++) {
        dtype from = integers[turn % 5], to = types[turn / 5 % 6];
        if (from != to)
            check_integers_to(v, from, to, turn < 400 ? turn / 10 : check_random_below(600));
        if (turn / 5 % 6 < 5)
            check_doubles_to(v, to, turn < 400 ? turn / 10 : check_random_below(600));
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
    case FOLD_SUM_ABS:
        return sum + fabsf(x);
    case FOLD_PRODUCT:
        return sum * x;
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

static void check_fold_each(const variant *v)
{
    for (size_t turn = 0; turn < 400; turn++) {
        fold_each_f32 p = {.kind = (fold_kind)(turn % 6),
                           .rows = check_random_below(5),
                           .width = 1 + (turn < 300 ? turn / 6 : check_random_below(600))};
        p.stride = p.width + turn % 3;
        size_t length = p.rows ? (p.rows - 1) * p.stride + p.width : 0;
        float *in = check_floats(length);
        fill_some(in, length, turn);
        p.in = in;
        p.out = check_floats(p.rows);
        FUNCTION(fold_each_f32)(&p);
        for (size_t r = 0; r < p.rows; r++) {
            bool is_extreme = p.kind == FOLD_MAX || p.kind == FOLD_MIN;
            double want = p.kind == FOLD_PRODUCT ? 1 : 0, size = 0;
            float extreme = in[r * p.stride];
            for (size_t i = 0; i < p.width; i++) {
                float x = in[r * p.stride + i];
                double term = p.kind == FOLD_SUM_SQUARE ? (double)x * (double)x
                              : p.kind == FOLD_SUM_ABS  ? fabs((double)x)
                                                        : (double)x;
                want = p.kind == FOLD_PRODUCT ? want * term : want + term;
                size += isfinite(term) ? fabs(term) : 0;
                extreme = is_extreme ? folded(p.kind, extreme, x) : extreme;
            }
            double bound = p.kind == FOLD_PRODUCT ? 1e-7 * fabs(want) + FLT_MIN
                                                  : (double)p.width * 0x1p-24 * size;
            check_close("fold", r, (double)p.out[r],
                        is_extreme ? (double)extreme : (double)(float)want, is_extreme ? 0 : bound);
        }
        check_reset();
    }
}

/* Whether `x`, which comes after `best`, takes its place. */
static bool takes_place(const arg_rows_f32 *p, float best, float x)
{
    if (isnan(best) || isnan(x))
        return !isnan(best);
    return (p->is_max ? x > best : x < best) || (p->is_last && x == best);
}

static void check_arg_rows(const variant *v)
{
    for (size_t turn = 0; turn < 200; turn++) {
        arg_rows_f32 p = {.is_max = turn % 2,
                          .is_last = turn / 2 % 2,
                          .rows = 1 + check_random_below(20),
                          .width = turn < 80 ? turn : check_random_below(400)};
        p.stride = p.width + turn % 3;
        size_t length = p.width ? (p.rows - 1) * p.stride + p.width : 0;
        float *in = check_floats(length);
        for (size_t i = 0; i < length; i++)
            in[i] = check_random_below(60) ? (float)check_random_below(9) : NAN;
        p.in = in;
        p.best = check_floats(p.width);
        p.out = check_buffer(p.width * sizeof *p.out, sizeof *p.out);
        FUNCTION(arg_rows_f32)(&p);
        for (size_t j = 0; j < p.width; j++) {
            size_t want = 0;
            for (size_t i = 1; i < p.rows; i++)
                want = takes_place(&p, in[want * p.stride + j], in[i * p.stride + j]) ? i : want;
            if (p.out[j] != (int32_t)want)
                check_fail("column %zu of %zu: %d, not %zu", j, p.width, p.out[j], want);
        }
        check_reset();
    }
}

static void check_cumulate(const variant *v)
{
    for (size_t turn = 0; turn < 200; turn++) {
        cumulate_f32 p = {.lines = turn < 100 ? turn % 40 : check_random_below(700),
                          .count = check_random_below(20),
                          .is_exclusive = turn / 2 % 2,
                          .is_reverse = turn / 4 % 2};
        p.line_stride = turn % 2 ? 1 : p.count + turn % 3;
        p.step = turn % 2 ? p.lines + turn % 3 : 1;
        size_t length =
            p.lines && p.count ? (p.lines - 1) * p.line_stride + (p.count - 1) * p.step + 1 : 0;
        float *in = check_floats(length);
        check_fill_floats(in, length, -3, 3);
        p.in = in;
        p.out = check_floats(length);
        FUNCTION(cumulate_f32)(&p);
        for (size_t l = 0; l < p.lines; l++) {
            double sum = 0;
            for (size_t i = 0; i < p.count; i++) {
                size_t at = l * p.line_stride + (p.is_reverse ? p.count - 1 - i : i) * p.step;
                double before = sum;
                sum += (double)in[at];
                check_close("running sum", at, (double)p.out[at],
                            (double)(float)(p.is_exclusive ? before : sum), 0);
            }
        }
        check_reset();
    }
}

const check checks_lines[] = {
    {"combine_line", check_combine, NULL},
    {"choose_line", check_choose, NULL},
    {"convert_line", check_convert, NULL},
    {"fold_windows_f32", check_fold_line, NULL},
    {"fold_rows_f32", check_fold_rows, NULL},
    {"fold_each_f32", check_fold_each, NULL},
    {"arg_rows_f32", check_arg_rows, NULL},
    {"cumulate_f32", check_cumulate, NULL},
    {NULL, NULL, NULL},
};
