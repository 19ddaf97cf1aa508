#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/gemm_f32.h"
#include "kernels/kernels_list.h"
#include "tests/kernels/harness.h"

typedef __typeof__(((kernels *)0)->gemm_f32) gemm_fn;
typedef __typeof__(((kernels *)0)->gemm_unpacked_f32) gemm_unpacked_fn;
typedef __typeof__(((kernels *)0)->gemm_pack_f32) pack_fn;

static const size_t sizes[][3] = {
    {1, 1, 1},     {1, 10, 7},   {2, 33, 5},    {7, 32, 64},   {12, 16, 31}, {13, 65, 3},
    {25, 100, 17}, {97, 40, 20}, {5, 31, 1030}, {100, 8, 515}, {3, 64, 0},   {37, 96, 128},
    {200, 1, 9},   {0, 8, 8},    {11, 17, 300}, {1, 224, 40},  {2, 200, 9},
};

static double activate(kernels_activation activation, double x)
{
    switch (activation) {
    case KERNELS_RELU:
        return x < 0 ? 0 : x;
    case KERNELS_GELU:
        return 0.5 * x * (1 + erf(x * M_SQRT1_2));
    case KERNELS_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case KERNELS_TANH:
        return tanh(x);
    case KERNELS_SIGMOID:
        return 1 / (1 + exp(-x));
    case KERNELS_SILU:
        return x / (1 + exp(-x));
    default:
        return x;
    }
}

/* One GEMM in double precision against C, with the bound of gemm_f32.h. */
static void compare(const gemm_f32_unpacked *g, const float *residual)
{
    double scale = g->epilogue.scale == 0 ? 1 : g->epilogue.scale;
    for (size_t m = 0; m < g->m; m++) {
        for (size_t n = 0; n < g->n; n++) {
            double sum = 0, magnitude = 0;
            for (size_t k = 0; k < g->k; k++) {
                double p = (double)g->a[m * g->a_stride + k] *
                           g->b[k * g->b_row_stride + n * g->b_column_stride];
                sum += p;
                magnitude += fabs(p);
            }
            double x = sum * scale;
            x += g->epilogue.bias ? g->epilogue.bias[n] : 0;
            x += residual ? residual[m * g->epilogue.residual_stride + n] : 0;
            double bound = (double)g->k * 0x1p-24 * magnitude * fabs(scale) + 4e-7 * fabs(x);
            double want = activate(g->epilogue.activation, x);
            bound = bound * 1.2 + 1e-6 * fmax(1, fabs(want)) + 1e-6;
            if (!check_close("product", m * g->n + n, g->c[m * g->c_stride + n], want, bound)) {
                printf("  m %zu n %zu k %zu at (%zu, %zu), activation %d\n", g->m, g->n, g->k, m, n,
                       (int)g->epilogue.activation);
                return;
            }
        }
    }
}

/* A random problem of that size; `is_transposed`: B lies as [n, k]. */
static gemm_f32_unpacked make_problem(const size_t size[3], bool is_transposed, unsigned turn)
{
    gemm_f32_unpacked g = {.m = size[0], .n = size[1], .k = size[2]};
    g.a_stride = g.k + turn % 3;
    g.c_stride = g.n + turn % 2;
    float *a = check_floats(g.m ? (g.m - 1) * g.a_stride + g.k : 0);
    float *b = check_floats(g.k * g.n);
    g.c = check_floats(g.m ? (g.m - 1) * g.c_stride + g.n : 0);
    check_fill_floats(a, g.m ? (g.m - 1) * g.a_stride + g.k : 0, -1, 1);
    check_fill_floats(b, g.k * g.n, -1, 1);
    g.a = a;
    g.b = b;
    g.b_row_stride = is_transposed ? 1 : g.n;
    g.b_column_stride = is_transposed ? g.k : 1;
    g.epilogue.scale = turn % 3 == 1 ? 0.125f : 0;
    g.epilogue.activation = (kernels_activation)(turn % KERNELS_ACTIVATION_COUNT);
    if (turn % 2) {
        float *bias = check_floats(g.n);
        check_fill_floats(bias, g.n, -1, 1);
        g.epilogue.bias = bias;
    }
    return g;
}

/* A residual of its own, or C itself; returns a copy for the comparison. */
static const float *add_residual(gemm_f32_unpacked *g, unsigned turn)
{
    if (turn % 4 < 2 || g->m == 0)
        return NULL;
    size_t count = (g->m - 1) * g->c_stride + g->n;
    float *residual = turn % 4 == 2 ? g->c : check_floats(count), *copy = check_floats(count);
    check_fill_floats(residual, count, -1, 1);
    memcpy(copy, residual, count * sizeof *copy);
    g->epilogue.residual = residual;
    g->epilogue.residual_stride = g->c_stride;
    return copy;
}

static void check_unpacked(const variant *v)
{
    gemm_unpacked_fn run = (gemm_unpacked_fn)v->function;
    for (unsigned turn = 0; turn < 3 * sizeof sizes / sizeof *sizes; turn++) {
        const size_t *size = sizes[turn % (sizeof sizes / sizeof *sizes)];
        gemm_f32_unpacked g = make_problem(size, turn / 3 % 2, turn);
        const float *residual = add_residual(&g, turn);
        run(&g);
        compare(&g, residual);
        check_reset();
    }
}

static gemm_f32 packed_problem(const gemm_f32_unpacked *u)
{
    float *packed = check_buffer(gemm_f32_packed_count(u->k, u->n) * sizeof(float), 4);
    gemm_pack_f32_scalar(u->b, u->b_row_stride, u->b_column_stride, u->k, u->n, packed);
    return (gemm_f32){.m = u->m,
                      .n = u->n,
                      .k = u->k,
                      .a = u->a,
                      .a_stride = u->a_stride,
                      .b = packed,
                      .c = u->c,
                      .c_stride = u->c_stride,
                      .epilogue = u->epilogue};
}

/* Each row alone must give the bits it gave among the others. */
static void check_rows_alone(gemm_fn run, const gemm_f32 *g)
{
    float *row = check_floats(g->n);
    for (size_t m = 0; m < g->m; m++) {
        gemm_f32 one = *g;
        one.m = 1;
        one.a = g->a + m * g->a_stride;
        one.c = row;
        run(&one);
        if (memcmp(row, g->c + m * g->c_stride, g->n * sizeof *row) != 0) {
            check_fail("row %zu of %zu x %zu x %zu has other bits alone", m, g->m, g->n, g->k);
            return;
        }
    }
}

/* How A lies for check_segments: rows in runs, in segments that have gaps between them. */
typedef struct arrangement {
    size_t pieces, segment, run, left_out; /* left_out: of the pieces */
} arrangement;

/* Copies row `m` of `g` to where `other` has it; what is left out becomes zero in `g`. */
static void arrange_row(const gemm_f32 *g, const gemm_f32 *other, const arrangement *is, size_t m,
                        float *a)
{
    float *from = (float *)(uintptr_t)g->a + m * g->a_stride;
    for (size_t s = 0; s < other->a_segment_count; s++)
        memcpy(a + gemm_f32_row_offset(other, m) + other->a_segments[s].a,
               from + other->a_segments[s].k, is->segment * sizeof *a);
    if (is->left_out < is->pieces)
        memset(from + is->left_out * is->segment, 0, is->segment * sizeof *a);
}

/* A in runs and segments must give the same bits as A in whole rows. */
static void check_segments(gemm_fn run, const gemm_f32 *g, const arrangement *is)
{
    gemm_f32_segment segments[3];
    gemm_f32 other = *g;
    size_t runs = (g->m + is->run - 1) / is->run, count = 0;
    other.a_stride = is->segment + 1;
    other.a_run = is->run;
    other.a_run_stride = is->run * other.a_stride + 5;
    for (size_t s = 0; s < is->pieces; s++)
        if (s != is->left_out)
            segments[count++] = (gemm_f32_segment){
                .a = (is->pieces - s) * runs * other.a_run_stride, .k = s * is->segment};
    other.a_segments = segments;
    other.a_segment = is->segment;
    other.a_segment_count = count;
    float *a = check_floats((is->pieces + 1) * runs * other.a_run_stride);
    for (size_t m = 0; m < g->m; m++)
        arrange_row(g, &other, is, m, a);
    other.a = a;
    other.c = check_floats((g->m - 1) * g->c_stride + g->n);
    run(g);
    run(&other);
    for (size_t m = 0; m < g->m; m++)
        if (memcmp(other.c + m * g->c_stride, g->c + m * g->c_stride, g->n * sizeof *a) != 0) {
            check_fail("row %zu of %zu x %zu x %zu has other bits in %zu segments without %zu", m,
                       g->m, g->n, g->k, is->pieces, is->left_out);
            return;
        }
}

static void check_arrangements(gemm_fn run, const gemm_f32 *g, unsigned turn)
{
    size_t pieces = g->k % 3 == 0 ? 3 : g->k % 2 == 0 ? 2 : 1;
    if (g->k == 0 || g->m == 0 || g->n == 0)
        return;
    const size_t runs[] = {g->m, 1, 7, 17};
    arrangement is = {pieces, g->k / pieces, runs[turn % 4], pieces};
    check_segments(run, g, &is);
    is.left_out = turn % pieces;
    check_segments(run, g, &is);
}

static void check_packed(const variant *v)
{
    gemm_fn run = (gemm_fn)v->function;
    for (unsigned turn = 0; turn < 3 * sizeof sizes / sizeof *sizes; turn++) {
        gemm_f32_unpacked u = make_problem(sizes[turn % (sizeof sizes / sizeof *sizes)], 0, turn);
        const float *residual = add_residual(&u, turn);
        gemm_f32 g = packed_problem(&u);
        run(&g);
        compare(&u, residual);
        if (!residual) {
            check_rows_alone(run, &g);
            check_arrangements(run, &g, turn / 4);
        }
        check_reset();
    }
}

static void check_pack(const variant *v)
{
    pack_fn run = (pack_fn)v->function;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int transposed = 0; transposed < 2; transposed++) {
            size_t n = sizes[i][1], k = sizes[i][2], count = gemm_f32_packed_count(k, n);
            float *b = check_floats(n * k), *want = check_floats(count), *got = check_floats(count);
            check_fill_floats(b, n * k, -1, 1);
            size_t row = transposed ? 1 : n, column = transposed ? k : 1;
            gemm_pack_f32_scalar(b, row, column, k, n, want);
            run(b, row, column, k, n, got);
            if (memcmp(want, got, count * sizeof *got) != 0)
                check_fail("n %zu, k %zu, transposed %d", n, k, transposed);
            check_reset();
        }
    }
}

static void run_packed(void *context)
{
    void **both = context;
    ((gemm_fn)(uintptr_t)both[0])(both[1]);
}

static void bench_packed(const variant *v)
{
    static const size_t shapes[][3] = {
        {128, 384, 384}, {128, 1536, 384}, {128, 384, 1536}, {32, 384, 384}, {1, 384, 384}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        gemm_f32_unpacked u = make_problem(shapes[i], 0, 0);
        gemm_f32 g = packed_problem(&u);
        float *aligned = check_buffer(gemm_f32_packed_count(g.k, g.n) * 4, 64);
        memcpy(aligned, g.b, gemm_f32_packed_count(g.k, g.n) * 4);
        g.b = aligned;
        void *both[2] = {(void *)(uintptr_t)v->function, &g};
        double seconds = bench_seconds(run_packed, both);
        char what[64];
        snprintf(what, sizeof what, "%zu x %zu x %zu", g.m, g.n, g.k);
        bench_line(what, 2e-9 * (double)(g.m * g.n * g.k) / seconds, "GFLOP/s", bench_peak("f32"));
        check_reset();
    }
}

static void bench_unpacked(const variant *v)
{
    static const size_t shapes[][3] = {
        {128, 128, 32}, {128, 32, 128}, {32, 32, 32}, {128, 384, 384}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        gemm_f32_unpacked g = make_problem(shapes[i], i % 2 == 0, 0);
        void *both[2] = {(void *)(uintptr_t)v->function, &g};
        double seconds = bench_seconds(run_packed, both);
        char what[64];
        snprintf(what, sizeof what, "%zu x %zu x %zu%s", g.m, g.n, g.k, i % 2 ? "" : " transposed");
        bench_line(what, 2e-9 * (double)(g.m * g.n * g.k) / seconds, "GFLOP/s", bench_peak("f32"));
        check_reset();
    }
}

const check checks_gemm_f32[] = {
    {"gemm_pack_f32", check_pack, NULL},
    {"gemm_f32", check_packed, bench_packed},
    {"gemm_unpacked_f32", check_unpacked, bench_unpacked},
    {NULL, NULL, NULL},
};
