#include <math.h>
#include <string.h>

#include "kernels/kernels_list.h"
#include "kernels/lines.h"
#include "tests/kernels/harness.h"

#define FUNCTION(entry) ((__typeof__(((kernels *)0)->entry))v->function)

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
    for (size_t turn = 0; turn < 240; turn++) {
        size_t bytes = (size_t)1 << turn % 4;
        repeat_plane p = {.element_bytes = bytes,
                          .rows = check_random_below(4),
                          .row_times = 1 + check_random_below(4),
                          .columns = turn < 80 ? turn : check_random_below(90),
                          .times = turn % 16 ? 1 + check_random_below(6) : 150};
        size_t in_count = p.rows * p.columns, row = p.columns * p.times;
        size_t out_count = p.rows * p.row_times * row;
        char *in = check_buffer(in_count * bytes, bytes),
             *out = check_buffer(out_count * bytes, bytes);
        check_fill_bytes(in, in_count * bytes);
        p.in = in;
        p.out = out;
        FUNCTION(repeat_plane)(&p);
        for (size_t i = 0; i < out_count; i++) {
            size_t from = i / row / p.row_times * p.columns + i % row / p.times;
            if (memcmp(out + i * bytes, in + from * bytes, bytes)) {
                check_fail("%zu rows %zu times, %zu columns %zu times, of %zu bytes: wrong at %zu",
                           p.rows, p.row_times, p.columns, p.times, bytes, i);
                break;
            }
        }
        check_reset();
    }
}

static void check_transpose(const variant *v)
{
    for (size_t turn = 0; turn < 400; turn++) {
        size_t bytes = (size_t)1 << turn % 4;
        transpose_plane p = {.element_bytes = bytes,
                             .rows = check_random_below(turn % 3 ? 50 : 6),
                             .columns = check_random_below(turn % 5 ? 70 : 6)};
        p.in_stride = p.rows + (turn % 7 ? 0 : 3);
        p.out_stride = p.columns + (turn % 11 ? 0 : 5);
        if (turn % 13 == 0)
            p.out_stride = 2048 / bytes;
        size_t in_count = p.rows && p.columns ? (p.columns - 1) * p.in_stride + p.rows : 0;
        size_t out_count = p.rows && p.columns ? (p.rows - 1) * p.out_stride + p.columns : 0;
        char *in = check_buffer(in_count * bytes, bytes),
             *out = check_buffer(out_count * bytes, bytes);
        check_fill_bytes(in, in_count * bytes);
        memset(out, 7, out_count * bytes);
        p.in = in;
        p.out = out;
        FUNCTION(transpose_plane)(&p);
        for (size_t at = 0; at < out_count; at++) {
            size_t i = at / p.out_stride, j = at % p.out_stride;
            static const char untouched[8] = {7, 7, 7, 7, 7, 7, 7, 7};
            const char *want = j < p.columns ? in + (i + j * p.in_stride) * bytes : untouched;
            if (memcmp(out + at * bytes, want, bytes)) {
                check_fail("%zu x %zu of %zu bytes: wrong at %zu, %zu", p.rows, p.columns, bytes, i,
                           j);
                break;
            }
        }
        check_reset();
    }
}

const check checks_line_moves[] = {
    {"gather_sum_f32", check_gather_sum, NULL},
    {"repeat_plane", check_repeat, NULL},
    {"transpose_plane", check_transpose, NULL},
    {NULL, NULL, NULL},
};
