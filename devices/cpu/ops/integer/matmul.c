#include <string.h>

#include "devices/cpu/ops/integer/integer.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/ops/weights.h"
#include "devices/cpu/tensor_loops/walk.h"
#include "kernels/gemm_scaled.h"

/* MatMulInteger and QLinearMatMul by integer_gemm: a constant matrix B is packed once, another one
 * in each run. */

#define ROWS_MAX ((size_t)384) /* of A, at a time */

struct matmul_integer {
    size_t m, n, k;                    /* m: of all matrices A where there is one B */
    const void *packed;                /* NULL: in each run: */
    size_t packed_offset, copy_offset; /* in the scratch */
    size_t rows_at_once, zeros_offset, starts_offset; /* in the part of each thread */
};

status matmul_integer_prepare(cpu_prepare *p, const matmul_integer **out)
{
    integer_roles r = integer_roles_of(p->node->op);
    const tensor *a = p->inputs[r.a], *b = p->inputs[r.b];
    *out = NULL;
    if (!integer_gemm_is_fit(p) || tensor_count(a) == 0 || tensor_count(b) == 0)
        return STATUS_OK;
    matmul_integer *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    s->k = (size_t)a->dims[a->rank - 1];
    s->n = b->rank > 1 ? (size_t)b->dims[b->rank - 1] : 1;
    bool is_one = (size_t)tensor_count(b) == s->k * s->n;
    size_t rows = a->rank > 1 ? (size_t)a->dims[a->rank - 2] : 1;
    s->m = is_one ? (size_t)tensor_count(a) / s->k : rows;
    s->rows_at_once = s->m < ROWS_MAX ? s->m : ROWS_MAX;
    s->packed_offset = cpu_scratch_round(s->n * sizeof(float));
    s->zeros_offset = a->dtype == DTYPE_I8 ? cpu_scratch_round(s->rows_at_once * s->k) : 0;
    s->starts_offset = s->zeros_offset + cpu_scratch_round(s->rows_at_once * sizeof(int32_t));
    p->part_bytes = s->starts_offset + s->rows_at_once * sizeof(int32_t);
    p->scratch_bytes = s->packed_offset;
    *out = s;
    if (!is_one || !b->data) {
        s->copy_offset = s->packed_offset + cpu_scratch_round(gemm_u8s8_packed_bytes(s->k, s->n));
        p->scratch_bytes = s->copy_offset + (b->dtype == DTYPE_U8 ? s->k * s->n : 0);
        return STATUS_OK;
    }
    s->packed = cpu_weights_find(p->weights, p->kernels,
                                 &(cpu_weights_key){.constant = b,
                                                    .format = CPU_WEIGHTS_GEMM_U8S8,
                                                    .k = s->k,
                                                    .n = s->n,
                                                    .row_stride = s->n,
                                                    .column_stride = 1});
    return s->packed ? STATUS_OK : status_fail(STATUS_OUT_OF_MEMORY, "no memory to pack weights");
}

/* A matrix A by a matrix B. */
typedef struct matmul_run {
    const matmul_integer *s;
    const cpu_call *call;
    integer_gemm gemm;
    const uint8_t *a;
    size_t row; /* of A, counted over all matrices */
    char *out;
} matmul_run;

static void multiply_rows(const void *context, void *memory, size_t unit)
{
    const matmul_run *r = context;
    const matmul_integer *s = r->s;
    integer_roles roles = integer_roles_of(r->call->node->op);
    size_t first = unit * s->rows_at_once, left = s->m - first;
    size_t count = left < s->rows_at_once ? left : s->rows_at_once;
    const uint8_t *a = r->a + first * s->k;
    dtype type = r->call->inputs[roles.a]->dtype;
    const tensor *zero = integer_role(r->call->inputs, r->call->node, roles.a_zero);
    int32_t *zeros = (int32_t *)((char *)memory + s->zeros_offset);
    int32_t *starts = (int32_t *)((char *)memory + s->starts_offset);
    if (cancel_check(r->call->cancel))
        return;
    if (type == DTYPE_I8) {
        memcpy(memory, a, count * s->k);
        integer_flip(memory, count * s->k);
        a = memory;
    }
    for (size_t i = 0; i < count; i++)
        zeros[i] = integer_zero_at(zero, (int64_t)(r->row + first + i)) + integer_flip_zero(type);
    integer_gemm_rows(&r->gemm, a, s->k, count, zeros, starts,
                      r->out + first * s->n * integer_gemm_item_bytes(&r->gemm));
}

/* The matrix at b, packed in the scratch of the run. */
static const void *pack(const matmul_integer *s, const cpu_call *c, const uint8_t *b, dtype type)
{
    char *packed = (char *)c->scratch + s->packed_offset;
    uint8_t *copy = (uint8_t *)c->scratch + s->copy_offset;
    if (type == DTYPE_U8) {
        memcpy(copy, b, s->k * s->n);
        integer_flip(copy, s->k * s->n);
        b = copy;
    }
    c->kernels->gemm_pack_u8s8((const int8_t *)b, s->n, 1, s->k, s->n, packed);
    return packed;
}

static status multiply(const matmul_integer *s, const cpu_call *c, size_t a_at, size_t b_at,
                       size_t out_at)
{
    integer_roles roles = integer_roles_of(c->node->op);
    const tensor *a = c->inputs[roles.a], *b = c->inputs[roles.b];
    matmul_run r = {.s = s, .call = c, .a = (const uint8_t *)a->data + a_at, .row = a_at / s->k};
    const void *packed =
        s->packed ? s->packed : pack(s, c, (const uint8_t *)b->data + b_at, b->dtype);
    integer_gemm_init(&r.gemm, c, packed, s->k, s->n, b_at / s->k, c->scratch);
    r.out = (char *)c->outputs[0].data + out_at * integer_gemm_item_bytes(&r.gemm);
    cpu_split(c, (double)s->m * (double)(s->k * s->n) / 100, multiply_rows, &r,
              (s->m + s->rows_at_once - 1) / s->rows_at_once);
    return cancel_check(c->cancel);
}

status matmul_integer_run(const matmul_integer *s, const cpu_call *c)
{
    integer_roles roles = integer_roles_of(c->node->op);
    const tensor *a = c->inputs[roles.a], *b = c->inputs[roles.b];
    if ((size_t)tensor_count(b) == s->k * s->n)
        return multiply(s, c, 0, 0, 0);
    cpu_walk w;
    cpu_cursor at;
    status end = STATUS_OK;
    integer_walk_matrices(&w, a, b, &c->outputs[0]);
    for (bool more = cpu_walk_start(&w, &at); more && !end; more = cpu_walk_next(&w, &at))
        for (int64_t i = 0; i < cpu_walk_run(&w) && !end; i++)
            end = multiply(s, c, (size_t)(at.offsets[1] + i * cpu_walk_step(&w, 1)) * s->m * s->k,
                           (size_t)(at.offsets[2] + i * cpu_walk_step(&w, 2)) * s->k * s->n,
                           (size_t)(at.offsets[0] + i * cpu_walk_step(&w, 0)) * s->m * s->n);
    return end;
}
