#include <math.h>
#include <string.h>

#include "kernels/kernels_list.h"
#include "kernels/lines.h"
#include "tests/kernels/harness.h"

#define FUNCTION(entry) ((__typeof__(((kernels *)0)->entry))v->function)

static const dtype types[] = {DTYPE_U8, DTYPE_I8, DTYPE_I32, DTYPE_I64, DTYPE_F64};

/* Few different values, and NaN by turns; or any bytes of integers. */
static void *fill(dtype type, size_t count, size_t turn)
{
    size_t bytes = dtype_bytes(type);
    char *x = check_buffer(count * bytes, bytes);
    check_fill_bytes(x, count * bytes);
    for (size_t i = 0; i < count && (type == DTYPE_F64 || turn % 3); i++) {
        int64_t some = (int64_t)check_random_below(turn % 3 == 1 ? 4 : 90) - 2;
        double number = turn % 4 == 3 && check_random_below(40) == 0 ? (double)NAN : (double)some;
        if (type == DTYPE_F64)
            memcpy(x + i * bytes, &number, bytes);
        else
            memcpy(x + i * bytes, &some, bytes);
    }
    return x;
}

/* As a double, or an integer: whether x comes before y where the largest is wanted. */
static bool is_above(dtype type, const void *in, size_t x, size_t y)
{
    switch (type) {
    case DTYPE_U8:
        return ((const uint8_t *)in)[x] > ((const uint8_t *)in)[y];
    case DTYPE_I8:
        return ((const int8_t *)in)[x] > ((const int8_t *)in)[y];
    case DTYPE_I32:
        return ((const int32_t *)in)[x] > ((const int32_t *)in)[y];
    case DTYPE_I64:
        return ((const int64_t *)in)[x] > ((const int64_t *)in)[y];
    default:
        return ((const double *)in)[x] > ((const double *)in)[y];
    }
}

static bool is_nan(dtype type, const void *in, size_t i)
{
    return type == DTYPE_F64 && isnan(((const double *)in)[i]);
}

static size_t place(const place_line *p)
{
    size_t best = 0;
    for (size_t i = 1; i < p->count && !is_nan(p->type, p->in, best); i++) {
        bool is_higher = is_above(p->type, p->in, i, best),
             is_lower = is_above(p->type, p->in, best, i);
        bool is_equal = !is_higher && !is_lower && p->is_last;
        if ((p->is_max ? is_higher : is_lower) || is_equal || is_nan(p->type, p->in, i))
            best = i;
    }
    return best;
}

static void check_place(const variant *v)
{
    for (size_t turn = 0; turn < 600; turn++) {
        size_t count = 1 + (turn < 300 ? turn / 2 : check_random_below(900));
        place_line p = {.is_max = turn % 2,
                        .is_last = turn / 2 % 2,
                        .type = types[turn % 5],
                        .in = fill(types[turn % 5], count, turn / 4),
                        .count = count};
        size_t is = FUNCTION(place_line)(&p), want = place(&p);
        if (is != want)
            check_fail("%s, %zu elements: %zu, not %zu", dtype_name(p.type), count, is, want);
        check_reset();
    }
}

static void check_sum(const variant *v, const double *in, size_t count)
{
    double sums[8] = {0}, want = 0, is;
    for (size_t i = 0; i < count; i++)
        sums[i % 8] += in[i];
    for (size_t i = 0; i < 8; i++)
        want += sums[i];
    FUNCTION(fold_line)(&(fold_line){FOLD_SUM, DTYPE_F64, in, count, &is});
    check_close("sum", count, is, want, 0);
}

static void check_fold(const variant *v)
{
    for (size_t turn = 0; turn < 600; turn++) {
        dtype type = types[turn % 5];
        size_t count = 1 + (turn < 300 ? turn / 2 : check_random_below(900));
        size_t bytes = dtype_bytes(type);
        bool is_max = turn % 2;
        void *in = fill(type, count, turn / 4), *out = check_buffer(bytes, bytes);
        FUNCTION(fold_line)(&(fold_line){is_max ? FOLD_MAX : FOLD_MIN, type, in, count, out});
        size_t at = place(&(place_line){is_max, false, type, in, count});
        if (type == DTYPE_F64)
            check_close("extreme", count, *(double *)out, ((double *)in)[at], 0);
        else if (memcmp(out, (char *)in + at * bytes, bytes))
            check_fail("%s, %zu elements: not that at %zu", dtype_name(type), count, at);
        if (type == DTYPE_F64) {
            for (size_t i = 0; i < count; i++)
                ((double *)in)[i] = (double)check_random_float(-2, 2);
            check_sum(v, in, count);
        }
        check_reset();
    }
}

static uint64_t integer_at(dtype type, const void *in, size_t i)
{
    return type == DTYPE_I64 || type == DTYPE_U64 ? ((const uint64_t *)in)[i]
                                                  : ((const uint32_t *)in)[i];
}

static void check_element(const plain_product *p, size_t m, size_t n)
{
    uint64_t whole = 0;
    double sum = 0;
    for (size_t k = 0; k < p->k; k++) {
        size_t x = m * p->a_stride + k, y = k * p->b_stride + n;
        if (p->type == DTYPE_F64)
            sum += ((const double *)p->a)[x] * ((const double *)p->b)[y];
        else
            whole += integer_at(p->type, p->a, x) * integer_at(p->type, p->b, y);
    }
    size_t bytes = dtype_bytes(p->type);
    const char *is = (const char *)p->c + (m * p->c_stride + n) * bytes;
    if (p->type == DTYPE_F64)
        check_close("product", m * p->n + n, *(const double *)is, sum, 0);
    else if (memcmp(is, &whole, bytes))
        check_fail("%s %zu x %zu x %zu: wrong at %zu, %zu", dtype_name(p->type), p->m, p->n, p->k,
                   m, n);
}

static size_t length(size_t rows, size_t columns, size_t stride)
{
    return rows && columns ? (rows - 1) * stride + columns : 0;
}

static void check_product(const variant *v)
{
    static const dtype kinds[] = {DTYPE_I32, DTYPE_U32, DTYPE_I64, DTYPE_U64, DTYPE_F64};
    for (size_t turn = 0; turn < 250; turn++) {
        plain_product p = {.type = kinds[turn % 5],
                           .m = check_random_below(6),
                           .n = check_random_below(turn % 3 ? 20 : 150),
                           .k = check_random_below(13)};
        p.a_stride = p.k + turn % 2;
        p.b_stride = p.n + turn % 4;
        p.c_stride = p.n + turn % 7;
        size_t bytes = dtype_bytes(p.type), a_length = length(p.m, p.k, p.a_stride),
               b_length = length(p.k, p.n, p.b_stride);
        char *a = check_buffer(a_length * bytes, bytes), *b = check_buffer(b_length * bytes, bytes);
        check_fill_bytes(a, a_length * bytes);
        check_fill_bytes(b, b_length * bytes);
        for (size_t i = 0; i < a_length && p.type == DTYPE_F64; i++)
            ((double *)a)[i] = (double)check_random_float(-1, 1) * 1.1;
        for (size_t i = 0; i < b_length && p.type == DTYPE_F64; i++)
            ((double *)b)[i] = (double)check_random_float(-1, 1) * 1.1;
        p.a = a;
        p.b = b;
        p.c = check_buffer(length(p.m, p.n, p.c_stride) * bytes, bytes);
        FUNCTION(plain_product)(&p);
        for (size_t i = 0; i < p.m * p.n; i++)
            check_element(&p, i / p.n, i % p.n);
        check_reset();
    }
}

const check checks_plain[] = {
    {"fold_line", check_fold, NULL},
    {"place_line", check_place, NULL},
    {"plain_product", check_product, NULL},
    {NULL, NULL, NULL},
};
