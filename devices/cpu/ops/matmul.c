#include <assert.h>
#include <math.h>
#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/ops/weights.h"
#include "devices/cpu/tensor_loops/block.h"
#include "devices/cpu/tensor_loops/walk.h"
#include "kernels/gemm_f32.h"
#include "kernels/lines.h"

/* Matrix multiplication. F32 goes to the GEMM kernels, with B packed once when it is constant; F64
 * and integers to a plain kernel. */

/* Multiplications and additions between two checks for cancellation: at most seconds. */
#define CANCEL_STEPS (INT64_C(1) << 35)
#define CANCEL_ROWS_MIN 256

/* Rows of [m, k] x [k, n] that are computed between two checks. */
static int64_t cancel_rows(int64_t m, int64_t n, int64_t k)
{
    int64_t row = 0, rows = CANCEL_ROWS_MIN;
    if (__builtin_mul_overflow(n > 0 ? n : 1, k > 0 ? k : 1, &row))
        return rows;
    rows = CANCEL_STEPS / row > rows ? CANCEL_STEPS / row : rows;
    return m < rows && m > 0 ? m : rows;
}

typedef struct matmul_state {
    int64_t m, n, k;
    cpu_walk batches;    /* operands: out, a, b, counting matrices in elements */
    const float *packed; /* of the only B, or NULL */
} matmul_state;

/* a [..., m, k] x b [..., k, n]; vectors are matrices of one row or column. */
static void plan_matmul(matmul_state *s, const tensor *a, const tensor *b)
{
    int64_t a_dims[TENSOR_RANK_MAX], b_dims[TENSOR_RANK_MAX], dims[TENSOR_RANK_MAX];
    int64_t strides[3][TENSOR_RANK_MAX] = {{0}};
    int a_rank = a->rank > 2 ? a->rank - 2 : 0, b_rank = b->rank > 2 ? b->rank - 2 : 0;
    int rank = a_rank > b_rank ? a_rank : b_rank;
    s->m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    s->k = a->dims[a->rank - 1];
    s->n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    int64_t steps[3] = {s->m * s->n, s->m * s->k, s->k * s->n};
    for (int i = rank - 1; i >= 0; i--) {
        int ai = i - (rank - a_rank), bi = i - (rank - b_rank);
        a_dims[i] = ai >= 0 ? a->dims[ai] : 1;
        b_dims[i] = bi >= 0 ? b->dims[bi] : 1;
        dims[i] = a_dims[i] == 1 ? b_dims[i] : a_dims[i];
        strides[0][i] = steps[0];
        strides[1][i] = a_dims[i] == 1 ? 0 : steps[1];
        strides[2][i] = b_dims[i] == 1 ? 0 : steps[2];
        steps[0] *= dims[i];
        steps[1] *= a_dims[i];
        steps[2] *= b_dims[i];
    }
    cpu_walk_init(&s->batches, rank, dims, 3,
                  (const int64_t *const[]){strides[0], strides[1], strides[2]});
    /* One B for all of A's matrices: they are one tall matrix. */
    if (s->batches.rank == 1 && s->batches.strides[2][0] == 0 &&
        s->batches.strides[1][0] == s->m * s->k) {
        s->m *= s->batches.dims[0];
        s->batches.dims[0] = 1;
    }
}

static bool is_one_matrix(const matmul_state *s)
{
    return s->batches.rank == 1 && s->batches.dims[0] == 1;
}

static status prepare_matmul(cpu_prepare *p)
{
    const tensor *a = p->inputs[0], *b = p->inputs[1];
    if (a->dtype != DTYPE_F32 && a->dtype != DTYPE_F64 && a->dtype != DTYPE_I32 &&
        a->dtype != DTYPE_U32 && a->dtype != DTYPE_I64 && a->dtype != DTYPE_U64)
        return cpu_op_fail_dtype(p->node, a->dtype);
    matmul_state *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    plan_matmul(s, a, b);
    if (a->dtype == DTYPE_F32 && p->weights && b->data && is_one_matrix(s)) {
        s->packed = cpu_weights_find(p->weights, p->kernels,
                                     &(cpu_weights_key){.constant = b,
                                                        .format = CPU_WEIGHTS_GEMM_F32,
                                                        .k = (size_t)s->k,
                                                        .n = (size_t)s->n,
                                                        .row_stride = (size_t)s->n,
                                                        .column_stride = 1});
        if (!s->packed)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory to pack weights");
    }
    p->state = s;
    return STATUS_OK;
}

/* Some rows and columns of one product. */
typedef struct piece {
    int64_t row, rows, column, columns;
} piece;

static void multiply_piece(const matmul_state *s, const kernels *k, const piece *p, const float *a,
                           const float *b, float *out)
{
    a += p->row * s->k;
    out += p->row * s->n + p->column;
    if (s->packed)
        k->gemm_f32(
            &(gemm_f32){.m = (size_t)p->rows,
                        .n = (size_t)p->columns,
                        .k = (size_t)s->k,
                        .a = a,
                        .a_stride = (size_t)s->k,
                        .b = s->packed + gemm_f32_packed_offset((size_t)s->k, (size_t)p->column),
                        .c = out,
                        .c_stride = (size_t)s->n});
    else
        k->gemm_unpacked_f32(&(gemm_f32_unpacked){.m = (size_t)p->rows,
                                                  .n = (size_t)p->columns,
                                                  .k = (size_t)s->k,
                                                  .a = a,
                                                  .a_stride = (size_t)s->k,
                                                  .b = b + p->column,
                                                  .b_row_stride = (size_t)s->n,
                                                  .b_column_stride = 1,
                                                  .c = out,
                                                  .c_stride = (size_t)s->n});
}

static void multiply_plain(const cpu_call *c, const matmul_state *s, const piece *p,
                           const int64_t *at)
{
    const tensor *a = c->inputs[0], *b = c->inputs[1];
    int64_t bytes = (int64_t)dtype_bytes(a->dtype);
    c->kernels->plain_product(&(plain_product){
        .type = a->dtype,
        .m = (size_t)p->rows,
        .n = (size_t)p->columns,
        .k = (size_t)s->k,
        .a = (const char *)a->data + (at[1] + p->row * s->k) * bytes,
        .b = (const char *)b->data + (at[2] + p->column) * bytes,
        .a_stride = (size_t)s->k,
        .b_stride = (size_t)s->n,
        .c = (char *)c->outputs[0].data + (at[0] + p->row * s->n + p->column) * bytes,
        .c_stride = (size_t)s->n});
}

/* All products, in pieces of `rows` x `columns`. */
typedef struct pieces_run {
    const cpu_call *call;
    int64_t rows, columns, row_pieces, column_pieces;
} pieces_run;

static void multiply_unit(const void *context, void *memory, size_t unit)
{
    (void)memory;
    const pieces_run *r = context;
    const matmul_state *s = r->call->state;
    int64_t at[CPU_WALK_OPERANDS_MAX], index = (int64_t)unit;
    piece p = {.column = index % r->column_pieces * r->columns};
    index /= r->column_pieces;
    p.row = index % r->row_pieces * r->rows;
    cpu_walk_find(&s->batches, index / r->row_pieces, at);
    p.rows = s->m - p.row < r->rows ? s->m - p.row : r->rows;
    p.columns = s->n - p.column < r->columns ? s->n - p.column : r->columns;
    if (cancel_check(r->call->cancel))
        return;
    if (r->call->inputs[0]->dtype == DTYPE_F32)
        multiply_piece(s, r->call->kernels, &p, (const float *)r->call->inputs[0]->data + at[1],
                       (const float *)r->call->inputs[1]->data + at[2],
                       (float *)r->call->outputs[0].data + at[0]);
    else
        multiply_plain(r->call, s, &p, at);
}

#define STEPS_PER_NS 32 /* multiplications and additions, at a usual speed of the kernels */
#define PLAIN_STEPS_PER_NS 8
#define SPLIT_STEPS_MIN ((double)(1 << 18)) /* smaller products are one piece */
#define FEW_ROWS 48                         /* are split by columns */

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* A multiplication of many seconds goes in pieces of rows, with a check between them; others in as
 * many as threads want. */
static status run_pieces(const cpu_call *c)
{
    const matmul_state *s = c->state;
    pieces_run r = {c, cancel_rows(s->m, s->n, s->k), s->n, 1, 1};
    double steps = (double)s->m * (double)s->n * (double)s->k;
    int64_t matrices = cpu_dims_product(s->batches.dims, 0, s->batches.rank);
    size_t threads = cpu_split_threads(c);
    if (threads > 1 && matrices < (int64_t)threads && steps >= SPLIT_STEPS_MIN) {
        if (s->m <= FEW_ROWS)
            r.columns =
                (int64_t)cpu_split_items(c, (size_t)s->n, (size_t)s->n, GEMM_F32_PANEL_COLUMNS);
        else
            r.rows = (int64_t)cpu_split_items(c, (size_t)s->m, (size_t)r.rows, 12);
    }
    r.row_pieces = divide_up(s->m, r.rows);
    r.column_pieces = divide_up(s->n, r.columns);
    int steps_per_ns = c->inputs[0]->dtype == DTYPE_F32 ? STEPS_PER_NS : PLAIN_STEPS_PER_NS;
    cpu_split(c, steps * (double)matrices / steps_per_ns, multiply_unit, &r,
              (size_t)(matrices * r.row_pieces * r.column_pieces));
    return cancel_check(c->cancel);
}

static status run_matmul(const cpu_call *c)
{
    return tensor_count(&c->outputs[0]) > 0 ? run_pieces(c) : STATUS_OK;
}

/* Gemm: alpha * A' B' + beta * C, where C broadcasts to [m, n]. */
typedef struct gemm_state {
    int64_t m, n, k;
    float alpha, beta;
    bool is_a_transposed, is_b_transposed;
    const float *packed;
} gemm_state;

static status prepare_gemm(cpu_prepare *p)
{
    const tensor *a = p->inputs[0], *b = p->inputs[1];
    if (a->dtype != DTYPE_F32)
        return cpu_op_fail_dtype(p->node, a->dtype);
    gemm_state *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    s->is_a_transposed = graph_attribute_int(p->node, "transA", 0) != 0;
    s->is_b_transposed = graph_attribute_int(p->node, "transB", 0) != 0;
    s->alpha = graph_attribute_float(p->node, "alpha", 1);
    s->beta = graph_attribute_float(p->node, "beta", 1);
    s->m = a->dims[s->is_a_transposed];
    s->k = a->dims[!s->is_a_transposed];
    s->n = b->dims[!s->is_b_transposed];
    if (s->is_a_transposed)
        p->scratch_bytes = (size_t)(s->m * s->k) * sizeof(float);
    if (p->weights && b->data) {
        s->packed = cpu_weights_find(
            p->weights, p->kernels,
            &(cpu_weights_key){.constant = b,
                               .format = CPU_WEIGHTS_GEMM_F32,
                               .k = (size_t)s->k,
                               .n = (size_t)s->n,
                               .row_stride = s->is_b_transposed ? 1 : (size_t)s->n,
                               .column_stride = s->is_b_transposed ? (size_t)s->k : 1});
        if (!s->packed)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory to pack weights");
    }
    p->state = s;
    return STATUS_OK;
}

static void add_scaled(const cpu_call *c, const gemm_state *s, const tensor *bias)
{
    cpu_walk w;
    cpu_walk_broadcast(&w, &c->outputs[0], 1, &bias);
    cpu_cursor at;
    for (bool more = cpu_walk_start(&w, &at); more; more = cpu_walk_next(&w, &at)) {
        float *out = (float *)c->outputs[0].data + at.offsets[0];
        const float *from = (const float *)bias->data + at.offsets[1];
        for (int64_t i = 0; i < cpu_walk_run(&w); i++)
            out[i] += s->beta * from[i * cpu_walk_step(&w, 1)];
    }
}

static void multiply_gemm(const cpu_call *c, const gemm_state *s, int64_t rows, const float *a,
                          const gemm_f32_epilogue *epilogue, float *out)
{
    if (s->packed)
        c->kernels->gemm_f32(&(gemm_f32){.m = (size_t)rows,
                                         .n = (size_t)s->n,
                                         .k = (size_t)s->k,
                                         .a = a,
                                         .a_stride = (size_t)s->k,
                                         .b = s->packed,
                                         .c = out,
                                         .c_stride = (size_t)s->n,
                                         .epilogue = *epilogue});
    else
        c->kernels->gemm_unpacked_f32(
            &(gemm_f32_unpacked){.m = (size_t)rows,
                                 .n = (size_t)s->n,
                                 .k = (size_t)s->k,
                                 .a = a,
                                 .a_stride = (size_t)s->k,
                                 .b = c->inputs[1]->data,
                                 .b_row_stride = s->is_b_transposed ? 1 : (size_t)s->n,
                                 .b_column_stride = s->is_b_transposed ? (size_t)s->k : 1,
                                 .c = out,
                                 .c_stride = (size_t)s->n,
                                 .epilogue = *epilogue});
}

static status run_gemm(const cpu_call *c)
{
    const gemm_state *s = c->state;
    const float *a = c->inputs[0]->data;
    float *out = c->outputs[0].data;
    const tensor *bias = cpu_input(c->inputs, c->node, 2);
    status end = STATUS_OK;
    if (s->m == 0 || s->n == 0)
        return STATUS_OK;
    if (s->is_a_transposed) {
        int64_t dims[] = {s->m, s->k}, from[] = {1, s->m}, to[] = {s->k, 1};
        cpu_copy_strided(c->kernels, sizeof(float), 2, dims, a, from, c->scratch, to);
        a = c->scratch;
    }
    /* The kernel multiplies by alpha, where 0 would mean 1, and adds a row of n. */
    bool is_fused = bias && s->beta == 1 && bias->rank > 0 && bias->dims[bias->rank - 1] == s->n &&
                    tensor_count(bias) == s->n;
    gemm_f32_epilogue epilogue = {.scale = s->alpha, .bias = is_fused ? bias->data : NULL};
    if (s->alpha == 0)
        memset(c->outputs[0].data, 0, tensor_bytes(&c->outputs[0]));
    int64_t rows = cancel_rows(s->m, s->n, s->k);
    for (int64_t row = 0; s->alpha != 0 && row < s->m; row += rows) {
        if ((end = cancel_check(c->cancel)))
            return end;
        multiply_gemm(c, s, s->m - row < rows ? s->m - row : rows, a + row * s->k, &epilogue,
                      out + row * s->n);
    }
    if (bias && s->beta != 0 && (!is_fused || s->alpha == 0))
        add_scaled(c, s, bias);
    return STATUS_OK;
}

/* Determinants by elimination with row pivots, in double. */
static status prepare_det(cpu_prepare *p)
{
    const tensor *in = p->inputs[0];
    if (!dtype_is_float(in->dtype))
        return cpu_op_fail_dtype(p->node, in->dtype);
    int64_t n = in->dims[in->rank - 1];
    p->scratch_bytes = (size_t)(n * n) * sizeof(double);
    return STATUS_OK;
}

static double determinant(double *m, int64_t n)
{
    double product = 1;
    for (int64_t i = 0; i < n; i++) {
        int64_t pivot = i;
        for (int64_t r = i + 1; r < n; r++)
            if (fabs(m[r * n + i]) > fabs(m[pivot * n + i]))
                pivot = r;
        if (m[pivot * n + i] == 0)
            return 0;
        for (int64_t j = 0; pivot != i && j < n; j++) {
            double swap = m[i * n + j];
            m[i * n + j] = m[pivot * n + j];
            m[pivot * n + j] = swap;
        }
        product *= pivot == i ? m[i * n + i] : -m[i * n + i];
        for (int64_t r = i + 1; r < n; r++) {
            double factor = m[r * n + i] / m[i * n + i];
            for (int64_t j = i; j < n; j++)
                m[r * n + j] -= factor * m[i * n + j];
        }
    }
    return product;
}

static status run_det(const cpu_call *c)
{
    const tensor *in = c->inputs[0];
    tensor *out = &c->outputs[0];
    int64_t n = in->dims[in->rank - 1], count = tensor_count(out);
    for (int64_t i = 0; i < count; i++) {
        cpu_load(CPU_COMPUTE_F64, in->dtype, in->data, i * n * n, 1, (size_t)(n * n), c->scratch);
        double d = determinant(c->scratch, n);
        cpu_store(CPU_COMPUTE_F64, out->dtype, &d, out->data, i, 1, 1);
    }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_MATMUL, prepare_matmul, run_matmul, CPU_WIDEN_HALF, false},
    {GRAPH_OP_GEMM, prepare_gemm, run_gemm, CPU_WIDEN_FLOATS, false},
    {GRAPH_OP_DET, prepare_det, run_det, 0, false},
};

const cpu_op_family cpu_ops_matmul = {table, sizeof table / sizeof table[0]};
