#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "kernels/gemm_scaled.h"
#include "kernels/kernels_list.h"
#include "tests/kernels/harness.h"
#include "tests/kernels/operands.h"

/* GEMMs of quantised operands against the scalar kernels, and those against plain loops. */

typedef __typeof__(((kernels *)0)->gemm_u8s8) u8s8_fn;
typedef __typeof__(((kernels *)0)->gemm_s16) s16_fn;
typedef __typeof__(((kernels *)0)->gemm_bf16) bf16_fn;
typedef __typeof__(((kernels *)0)->gemm_pack_u8s8) pack_u8s8_fn;
typedef __typeof__(((kernels *)0)->gemm_pack_s16) pack_s16_fn;

static const size_t sizes[][3] = {
    {1, 1, 1},   {1, 10, 7},    {2, 33, 5},    {7, 64, 64},    {12, 16, 31},
    {13, 65, 3}, {25, 100, 17}, {49, 40, 20},  {5, 129, 1030}, {37, 96, 128},
    {100, 1, 9}, {0, 8, 8},     {11, 17, 300}, {33, 192, 192}, {70, 70, 256},
    {3, 64, 0},  {16, 64, 64},  {32, 33, 320}, {47, 70, 1100}, {290, 40, 70},
};
#define SIZES (sizeof sizes / sizeof *sizes)

static bool is_too_slow(const size_t size[3])
{
    return check_is_slow() && size[0] * size[1] * size[2] > 40000;
}

static size_t span(size_t rows, size_t stride, size_t width)
{
    return rows ? (rows - 1) * stride + width : 0;
}

/* What the three GEMMs have in common; `sum_size` is about how large sums get. */
static gemm_scaled_epilogue make_epilogue(size_t m, size_t n, size_t c_stride, float sum_size,
                                          unsigned turn)
{
    gemm_scaled_epilogue e = {.activation = (kernels_activation)(turn % KERNELS_ACTIVATION_COUNT)};
    float scale = 4 / sqrtf(sum_size);
    e.row_scale = turn % 5 != 4 ? operand_floats(m, scale / 2, scale) : NULL;
    e.column_scale = turn % 7 != 6 ? operand_floats(n, scale / 2, scale) : NULL;
    e.bias = turn % 3 ? operand_floats(n, -1, 1) : NULL;
    if (turn % 4 == 1) {
        e.residual = operand_floats(span(m, c_stride, n), -1, 1);
        e.residual_stride = c_stride;
    }
    if (turn % 2) {
        e.row_low = operand_floats(m, 0, 0);
        e.row_high = operand_floats(m, 0, 0);
    }
    return e;
}

/* What the GELU of a GEMM may add to the error of the rest. */
#define GELU_U8S8 1e-4
#define GELU_S16 0
#define GELU_BF16 1e-5

/* How far apart two right results may be. */
static double bound_of(const gemm_scaled_epilogue *e, double want, double size, double gelu)
{
    return (e->activation == KERNELS_GELU ? gelu : 0) + 2e-6 + 2e-6 * fabs(want) + 3e-6 * size;
}

typedef struct outputs {
    gemm_output kind;
    size_t m, n, stride;
    const void *want, *got;
    double size; /* the largest |x| before the activation */
} outputs;

static void compare(const outputs *o, const gemm_scaled_epilogue *e, double gelu)
{
    for (size_t m = 0; m < o->m; m++) {
        for (size_t n = 0; n < o->n; n++) {
            size_t at = m * o->stride + n;
            if (o->kind == GEMM_S32) {
                int32_t want = ((const int32_t *)o->want)[at], got = ((const int32_t *)o->got)[at];
                if (want != got)
                    check_fail("sum (%zu, %zu) is %d, not %d", m, n, got, want);
            } else if (o->kind == GEMM_F32) {
                float want = ((const float *)o->want)[at], got = ((const float *)o->got)[at];
                check_close("result", at, got, want, bound_of(e, want, o->size, gelu));
            } else {
                int want = ((const uint8_t *)o->want)[at], got = ((const uint8_t *)o->got)[at];
                if (abs(want - got) > 1)
                    check_fail("byte (%zu, %zu) is %d, not %d", m, n, got, want);
            }
        }
    }
}

static void compare_ranges(const gemm_scaled_epilogue *want, const gemm_scaled_epilogue *got,
                           size_t m, double size)
{
    for (size_t i = 0; want->row_low && i < m; i++) {
        check_close("row low", i, got->row_low[i], want->row_low[i],
                    bound_of(got, want->row_low[i], size, GELU_U8S8));
        check_close("row high", i, got->row_high[i], want->row_high[i],
                    bound_of(got, want->row_high[i], size, GELU_U8S8));
    }
}

static gemm_u8s8 make_u8s8(const size_t size[3], unsigned turn)
{
    gemm_u8s8 g = {.m = size[0], .n = size[1], .k = size[2]};
    g.a_stride = g.k + turn % 3;
    g.c_stride = g.n + turn % 2;
    uint8_t *a = check_buffer(span(g.m, g.a_stride, g.k), 1);
    check_fill_bytes(a, span(g.m, g.a_stride, g.k));
    if (turn % 11 == 10)
        memset(a, 0xff, span(g.m, g.a_stride, g.k));
    g.a = a;
    g.b = operand_packed_u8s8(g.k, g.n, turn);
    if (turn % 3 == 1) {
        int32_t *zero = check_buffer(g.m * 4, 4);
        for (size_t i = 0; i < g.m; i++)
            zero[i] = (int32_t)check_random_below(256);
        g.a_zero = zero;
    }
    if (turn % 4 == 2) {
        int32_t *start = check_buffer(g.n * 4, 4);
        check_fill_bytes(start, g.n * 4);
        for (size_t i = 0; i < g.n && turn % 8 != 2; i++)
            start[i] >>= 16;
        g.start = start;
    }
    if (turn % 5 == 3) {
        int32_t *row_start = check_buffer(g.m * 4, 4);
        for (size_t i = 0; i < g.m; i++)
            row_start[i] = (int32_t)check_random_below(1 << 20) - (1 << 19);
        g.row_start = row_start;
    }
    g.output = (gemm_output)(turn / 2 % 3);
    g.c_zero = (int32_t)check_random_below(256);
    g.epilogue = make_epilogue(g.m, g.n, g.c_stride, 5000 * sqrtf((float)g.k + 1), turn);
    if (g.start && g.output != GEMM_S32 && turn % 8 == 2)
        g.start = NULL;
    return g;
}

/* The largest |x| of the problem: results before their activation. */
static double size_of(const gemm_u8s8 *g)
{
    gemm_u8s8 plain = *g;
    plain.output = GEMM_F32;
    plain.epilogue.activation = KERNELS_IDENTITY;
    plain.epilogue.row_low = plain.epilogue.row_high = NULL;
    plain.c = check_floats(span(g->m, g->c_stride, g->n));
    gemm_u8s8_scalar(&plain);
    double size = 20;
    for (size_t m = 0; m < g->m; m++) {
        for (size_t n = 0; n < g->n; n++)
            size = fmax(size, fabs(((float *)plain.c)[m * g->c_stride + n]));
    }
    return size;
}

/* Runs the scalar kernel and `run` on the same problem. */
static void compare_u8s8(u8s8_fn run, bool is_tiled, gemm_u8s8 *g)
{
    bool had_failed = check_has_failed();
    size_t bytes = span(g->m, g->c_stride, g->n) * (g->output == GEMM_U8 ? 1 : 4);
    void *want = check_buffer(bytes, 1), *got = check_buffer(bytes, 1);
    gemm_u8s8 w = *g;
    w.c = want;
    if (g->epilogue.row_low) {
        w.epilogue.row_low = operand_floats(g->m, 0, 0);
        w.epilogue.row_high = operand_floats(g->m, 0, 0);
    }
    gemm_u8s8_scalar(&w);
    double size = size_of(g);
    if (g->epilogue.residual && g->output == GEMM_F32) { /* in place */
        memcpy(got, g->epilogue.residual, bytes);
        g->epilogue.residual = got;
    }
    g->c = got;
    g->b = is_tiled ? operand_tiled_u8s8(g->b, g->k, g->n) : g->b;
    run(g);
    outputs o = {g->output, g->m, g->n, g->c_stride, want, got, size};
    compare(&o, &g->epilogue, GELU_U8S8);
    if (g->output != GEMM_S32)
        compare_ranges(&w.epilogue, &g->epilogue, g->m, size);
    if (check_has_failed() && !had_failed)
        printf("  m %zu, n %zu, k %zu, output %d, activation %d\n", g->m, g->n, g->k,
               (int)g->output, (int)g->epilogue.activation);
}

static void compare_rows_alone(u8s8_fn run, const gemm_u8s8 *g)
{
    size_t item = g->output == GEMM_U8 ? 1 : 4;
    uint8_t *row = check_buffer(g->n * item, 1);
    for (size_t m = 0; m < g->m; m++) {
        gemm_u8s8 one = *g;
        one.m = 1;
        one.a = g->a + m * g->a_stride;
        one.a_zero = g->a_zero ? g->a_zero + m : NULL;
        one.row_start = g->row_start ? g->row_start + m : NULL;
        one.c = row;
        one.epilogue.row_scale = g->epilogue.row_scale ? g->epilogue.row_scale + m : NULL;
        one.epilogue.row_low = one.epilogue.row_high = NULL;
        run(&one);
        if (memcmp(row, (uint8_t *)g->c + m * g->c_stride * item, g->n * item) != 0) {
            check_fail("row %zu of %zu x %zu x %zu has other bits alone", m, g->m, g->n, g->k);
            return;
        }
    }
}

/* GELU at 12,288 points of [-8, 8] against erf() itself: bounds of gemm_scaled.h. */
static void check_gelu_point(double x, double got, double absolute, double relative)
{
    double want = x / 2 * (1 + erf(x / sqrt(2)));
    if (fabs(got - want) > absolute + relative * fabs(x))
        check_fail("gelu(%.9g) is %.9g, not %.9g", x, got, want);
}

static void check_gelu_u8s8(u8s8_fn run, bool is_tiled)
{
    enum { M = 48, N = 256 };
    gemm_u8s8 g = {.m = M, .n = N, .k = 1, .a_stride = 1, .output = GEMM_F32, .c_stride = N};
    uint8_t *a = check_buffer(M, 1);
    int8_t *w = check_buffer(N, 1);
    void *packed = check_buffer(gemm_u8s8_packed_bytes(1, N), 64);
    float *c = check_floats((size_t)M * N), *scales = check_floats(N);
    for (int i = 0; i < M; i++)
        a[i] = (uint8_t)(128 + 2 * i + 33);
    for (int j = 0; j < N; j++) {
        w[j] = (int8_t)(j - 128);
        scales[j] = 8.0f / (127 * 128);
    }
    gemm_pack_u8s8_scalar(w, N, 1, 1, N, packed);
    g.a = a;
    g.b = is_tiled ? operand_tiled_u8s8(packed, 1, N) : packed;
    g.c = c;
    g.epilogue = (gemm_scaled_epilogue){.column_scale = scales, .activation = KERNELS_GELU};
    run(&g);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            check_gelu_point((double)((float)((a[i] - 128) * w[j]) * scales[j]), c[i * N + j],
                             GELU_U8S8, 3e-6);
}

/* What kernels have loops of their own for: every combination on whole panels. */
static void check_common_u8s8(u8s8_fn run, bool is_tiled)
{
    static const kernels_activation activations[] = {KERNELS_IDENTITY, KERNELS_RELU, KERNELS_GELU};
    for (unsigned i = 0; i < 3 * 2 * 2 * 2; i++) {
        gemm_u8s8 g = make_u8s8((const size_t[]){37, 128, 192}, 0);
        bool has_range = i / 3 % 2, has_zeros = i / 6 % 2;
        g.output = i / 12 ? GEMM_U8 : GEMM_F32;
        g.epilogue.activation = activations[i % 3];
        if (has_range) {
            g.epilogue.row_low = operand_floats(g.m, 0, 0);
            g.epilogue.row_high = operand_floats(g.m, 0, 0);
        }
        int32_t *zero = check_buffer(g.m * 4, 4);
        for (size_t row = 0; row < g.m; row++)
            zero[row] = (int32_t)check_random_below(256);
        g.a_zero = has_zeros ? zero : NULL;
        compare_u8s8(run, is_tiled, &g);
        check_reset();
    }
}

static void check_u8s8(const variant *v)
{
    u8s8_fn run = (u8s8_fn)v->function;
    check_gelu_u8s8(run, v->level == KERNELS_AMX);
    check_reset();
    check_common_u8s8(run, v->level == KERNELS_AMX);
    for (unsigned turn = 0; turn < 8 * SIZES; turn++) {
        if (is_too_slow(sizes[turn % SIZES]))
            continue;
        gemm_u8s8 g = make_u8s8(sizes[turn % SIZES], turn + turn / SIZES);
        compare_u8s8(run, v->level == KERNELS_AMX, &g);
        if (!g.epilogue.residual)
            compare_rows_alone(run, &g);
        check_reset();
    }
}

static void check_s16(const variant *v)
{
    s16_fn run = (s16_fn)v->function;
    static const size_t more[][3] = {{7, 70, 2048}, {8, 33, 2049}, {3, 64, 5000}};
    for (unsigned turn = 0; turn < 4 * SIZES + 6; turn++) {
        const size_t *size = turn < 6 ? more[turn % 3] : sizes[turn % SIZES];
        if (is_too_slow(size))
            continue;
        gemm_s16 g = {.m = size[0], .n = size[1], .k = size[2]};
        g.a_stride = g.k + turn % 3;
        g.c_stride = g.n + turn % 2;
        int16_t *a = operand_s16(span(g.m, g.a_stride, g.k), GEMM_S16_LIMIT);
        int16_t *w = operand_s16(g.k * g.n, GEMM_S16_LIMIT);
        for (size_t i = 0; turn < 3 && i < g.k * g.n; i++) /* the largest sums there are */
            w[i] = GEMM_S16_LIMIT;
        for (size_t i = 0; turn < 3 && i < span(g.m, g.a_stride, g.k); i++)
            a[i] = GEMM_S16_LIMIT;
        void *packed = check_buffer(gemm_s16_packed_bytes(g.k, g.n), 64);
        gemm_pack_s16_scalar(w, turn % 2 ? 1 : g.n, turn % 2 ? g.k : 1, g.k, g.n, packed);
        g.a = a;
        g.b = packed;
        g.output = turn % 2 ? GEMM_F32 : GEMM_U8;
        g.epilogue = make_epilogue(g.m, g.n, g.c_stride, 4e5f * sqrtf((float)g.k + 1), turn);
        size_t bytes = span(g.m, g.c_stride, g.n) * (g.output == GEMM_U8 ? 1 : 4);
        void *want = check_buffer(bytes, 1), *got = check_buffer(bytes, 1);
        g.c = want;
        gemm_s16_scalar(&g);
        g.c = got;
        run(&g);
        outputs o = {g.output, g.m, g.n, g.c_stride, want, got, 50};
        compare(&o, &g.epilogue, GELU_S16);
        check_reset();
    }
}

static void compare_bf16_rows_alone(bf16_fn run, const gemm_bf16 *g)
{
    size_t item = g->output == GEMM_U8 ? 1 : 4;
    uint8_t *row = check_buffer(g->n * item, 1);
    for (size_t m = 0; m < g->m; m++) {
        gemm_bf16 one = *g;
        one.m = 1;
        one.a = g->a + m * g->a_stride;
        one.c = row;
        one.epilogue.row_low = one.epilogue.row_high = NULL;
        run(&one);
        if (memcmp(row, (uint8_t *)g->c + m * g->c_stride * item, g->n * item) != 0) {
            check_fail("row %zu of %zu x %zu x %zu has other bits alone", m, g->m, g->n, g->k);
            return;
        }
    }
}

static void check_gelu_bf16(bf16_fn run, bool is_tiled)
{
    enum { M = 48, N = 256 };
    gemm_bf16 g = {.m = M, .n = N, .k = 1, .a_stride = 1, .output = GEMM_F32, .c_stride = N};
    uint16_t *a = check_buffer(M * 2, 2), *w = check_buffer(N * 2, 2);
    void *packed = check_buffer(gemm_s16_packed_bytes(1, N), 64);
    float *c = check_floats((size_t)M * N);
    for (int i = 0; i < M; i++)
        a[i] = dtype_f32_to_bf16((float)(i + 16) / 64);
    for (int j = 0; j < N; j++)
        w[j] = dtype_f32_to_bf16((float)(j - 128) / 16);
    gemm_pack_s16_scalar((const int16_t *)w, N, 1, 1, N, packed);
    g.a = a;
    g.b = is_tiled ? operand_tiled_bf16(packed, 1, N) : packed;
    g.c = c;
    g.epilogue.activation = KERNELS_GELU;
    run(&g);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            check_gelu_point((double)(dtype_bf16_to_f32(a[i]) * dtype_bf16_to_f32(w[j])),
                             c[i * N + j], GELU_BF16, 1e-6);
}

static void check_bf16(const variant *v)
{
    bf16_fn run = (bf16_fn)v->function;
    check_gelu_bf16(run, v->level == KERNELS_AMX);
    check_reset();
    for (unsigned turn = 0; turn < 4 * SIZES; turn++) {
        const size_t *size = sizes[turn % SIZES];
        gemm_bf16 g = {.m = size[0], .n = size[1], .k = size[2]};
        g.a_stride = g.k + turn % 3;
        g.c_stride = g.n + turn % 2;
        uint16_t *w = operand_bf16(g.k * g.n);
        void *packed = check_buffer(gemm_s16_packed_bytes(g.k, g.n), 64);
        gemm_pack_s16_scalar((const int16_t *)w, g.n, 1, g.k, g.n, packed);
        g.a = operand_bf16(span(g.m, g.a_stride, g.k));
        g.b = packed;
        g.output = turn % 2 ? GEMM_F32 : GEMM_U8;
        g.epilogue = make_epilogue(g.m, g.n, g.c_stride, sqrtf((float)g.k + 1), turn);
        g.epilogue.row_scale = NULL;
        size_t bytes = span(g.m, g.c_stride, g.n) * (g.output == GEMM_U8 ? 1 : 4);
        void *want = check_buffer(bytes, 1), *got = check_buffer(bytes, 1);
        g.c = want;
        gemm_bf16_scalar(&g);
        g.c = got;
        g.b = v->level == KERNELS_AMX ? operand_tiled_bf16(packed, g.k, g.n) : packed;
        run(&g);
        outputs o = {g.output, g.m, g.n, g.c_stride, want, got, 50};
        compare(&o, &g.epilogue, GELU_BF16);
        if (!g.epilogue.residual)
            compare_bf16_rows_alone(run, &g);
        check_reset();
    }
}

static void check_pack_u8s8(const variant *v)
{
    pack_u8s8_fn run = (pack_u8s8_fn)v->function;
    for (unsigned turn = 0; turn < 2 * SIZES; turn++) {
        size_t n = sizes[turn / 2][1], k = sizes[turn / 2][2];
        size_t bytes = gemm_u8s8_packed_bytes(k, n), row = turn % 2 ? n : 1,
               column = turn % 2 ? 1 : k;
        const int8_t *w = operand_weights(k * n, turn);
        uint8_t *want = check_buffer(bytes, 64), *got = check_buffer(bytes, 64);
        gemm_pack_u8s8_scalar(w, row, column, k, n, want);
        run(w, row, column, k, n, got);
        for (size_t j = 0; j < n; j++) { /* the definition */
            const uint8_t *panel = want + j / 64 * gemm_u8s8_panel_bytes(k);
            int32_t sum = 0;
            for (size_t i = 0; i < k; i++) {
                sum -= w[i * row + j * column];
                if ((int8_t)panel[256 + i / 4 * 256 + j % 64 * 4 + i % 4] !=
                    w[i * row + j * column])
                    check_fail("scalar packing misplaces (%zu, %zu)", i, j);
            }
            if (sum != ((const int32_t *)panel)[j % 64])
                check_fail("scalar packing has a wrong sum of column %zu", j);
        }
        want = v->level == KERNELS_AMX ? operand_tiled_u8s8(want, k, n) : want;
        if (memcmp(want, got, bytes) != 0)
            check_fail("n %zu, k %zu, transposed %d", n, k, turn % 2 == 0);
        check_reset();
    }
}

/* Of gemm_pack_bf16 too. */
static void check_pack_s16(const variant *v)
{
    pack_s16_fn run = (pack_s16_fn)v->function;
    for (unsigned turn = 0; turn < 2 * SIZES; turn++) {
        size_t n = sizes[turn / 2][1], k = sizes[turn / 2][2];
        size_t bytes = gemm_s16_packed_bytes(k, n), row = turn % 2 ? n : 1,
               column = turn % 2 ? 1 : k;
        const int16_t *w = operand_s16(k * n, GEMM_S16_LIMIT);
        void *want = check_buffer(bytes, 64), *got = check_buffer(bytes, 64);
        gemm_pack_s16_scalar(w, row, column, k, n, want);
        run(w, row, column, k, n, got);
        want = v->level == KERNELS_AMX ? operand_tiled_bf16(want, k, n) : want;
        if (memcmp(want, got, bytes) != 0)
            check_fail("n %zu, k %zu, transposed %d", n, k, turn % 2 == 0);
        check_reset();
    }
}

typedef struct bench_job {
    kernel_function run;
    void *arguments;
} bench_job;

static void run_job(void *context)
{
    bench_job *job = context;
    ((void (*)(const void *))job->run)(job->arguments);
}

static const size_t shapes[][3] = {{128, 384, 384},  {128, 1152, 384}, {128, 1536, 384},
                                   {128, 384, 1536}, {32, 384, 384},   {1, 384, 384}};

static void bench_shape(const variant *v, void *arguments, const size_t shape[3], const char *note,
                        const char *type)
{
    char what[64];
    bench_job job = {v->function, arguments};
    double seconds = bench_seconds(run_job, &job);
    snprintf(what, sizeof what, "%zu x %zu x %zu%s", shape[0], shape[1], shape[2], note);
    bench_line(what, 2e-9 * (double)(shape[0] * shape[1] * shape[2]) / seconds, "Gop/s",
               bench_peak(type));
}

static void bench_u8s8(const variant *v)
{
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++) {
        const size_t *s = shapes[i / 2];
        bool has_gelu = i % 2;
        if (has_gelu && s[1] != 1536)
            continue;
        uint8_t *a = check_buffer(s[0] * s[2], 64);
        check_fill_bytes(a, s[0] * s[2]);
        gemm_u8s8 g = {.m = s[0], .n = s[1], .k = s[2], .a = a, .a_stride = s[2]};
        g.b = operand_packed_u8s8(g.k, g.n, 0);
        g.b = v->level == KERNELS_AMX ? operand_tiled_u8s8(g.b, g.k, g.n) : g.b;
        g.output = GEMM_F32;
        g.c = check_buffer(g.m * g.n * 4, 64);
        g.c_stride = g.n;
        g.epilogue.row_scale = operand_floats(g.m, 0, 0.01f);
        g.epilogue.column_scale = operand_floats(g.n, 0, 0.01f);
        g.epilogue.bias = operand_floats(g.n, 0, 1);
        if (has_gelu) {
            g.epilogue.activation = KERNELS_GELU;
            g.epilogue.row_low = operand_floats(g.m, 0, 0);
            g.epilogue.row_high = operand_floats(g.m, 0, 0);
        }
        bench_shape(v, &g, s, has_gelu ? " gelu, range" : " bias", "u8s8");
        check_reset();
    }
}

typedef struct pack_job {
    pack_u8s8_fn run;
    const int8_t *weights;
    void *packed;
    bool is_transposed;
} pack_job;

static void run_pack(void *context)
{
    pack_job *p = context;
    p->run(p->weights, p->is_transposed ? 1 : 1536, p->is_transposed ? 384 : 1, 384, 1536,
           p->packed);
}

static void bench_pack(const variant *v)
{
    pack_job p = {(pack_u8s8_fn)v->function, operand_weights(384 * 1536, 0), NULL, false};
    p.packed = check_buffer(gemm_u8s8_packed_bytes(384, 1536), 64);
    bench_line("[k][n] 384 x 1536", 384 * 1536 * 1e-6 / bench_seconds(run_pack, &p), "MB/s", 0);
    p.is_transposed = true;
    bench_line("[n][k] 384 x 1536", 384 * 1536 * 1e-6 / bench_seconds(run_pack, &p), "MB/s", 0);
    check_reset();
}

static void bench_s16(const variant *v)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const size_t *s = shapes[i];
        int16_t *a = check_buffer(s[0] * s[2] * 2, 64), *w = operand_s16(s[1] * s[2], 1023);
        memset(a, 1, s[0] * s[2] * 2);
        gemm_s16 g = {.m = s[0], .n = s[1], .k = s[2], .a = a, .a_stride = s[2]};
        void *packed = check_buffer(gemm_s16_packed_bytes(g.k, g.n), 64);
        gemm_pack_s16_scalar(w, g.n, 1, g.k, g.n, packed);
        g.b = v->level == KERNELS_AMX ? operand_tiled_bf16(packed, g.k, g.n) : packed;
        g.output = GEMM_F32;
        g.c = check_buffer(g.m * g.n * 4, 64);
        g.c_stride = g.n;
        g.epilogue.row_scale = operand_floats(g.m, 0, 0.01f);
        g.epilogue.column_scale = operand_floats(g.n, 0, 0.01f);
        bench_shape(v, &g, s, "", strncmp(v->entry, "gemm_s16", 8) == 0 ? "s16" : "bf16");
        check_reset();
    }
}

const check checks_gemm_scaled[] = {
    {"gemm_pack_u8s8", check_pack_u8s8, bench_pack},
    {"gemm_pack_s16", check_pack_s16, NULL},
    {"gemm_pack_bf16", check_pack_s16, NULL},
    {"gemm_u8s8", check_u8s8, bench_u8s8},
    {"gemm_s16", check_s16, bench_s16},
    {"gemm_bf16", check_bf16, bench_s16},
    {NULL, NULL, NULL},
};
