#include <assert.h>
#include <string.h>

#include "devices/cpu/ops/integer/integer.h"
#include "devices/cpu/tensor_loops/walk.h"
#include "devices/cpu/tensor_loops/window.h"
#include "kernels/tensor_u8.h"

/* Matrix multiplication and convolution of int8 and uint8 tensors, with exact 32-bit sums
 * (wrapping, as ONNX Runtime's), plain or requantised. What integer.h has no GEMM for are plain
 * loops here; zero points are subtracted while unpacking to I32. */

static const tensor *role(const cpu_call *c, int index)
{
    return integer_role(c->inputs, c->node, index);
}

static bool is_byte(dtype type)
{
    return type == DTYPE_U8 || type == DTYPE_I8;
}

static void load_i32(const tensor *t, int64_t at, int64_t n, int32_t zero, int32_t *out)
{
    const uint8_t *u = (const uint8_t *)t->data + at;
    if (t->dtype == DTYPE_U8)
        for (int64_t i = 0; i < n; i++)
            out[i] = u[i] - zero;
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = (int8_t)u[i] - zero;
}

#define REQUANTISED 256 /* at a time */

/* Requantises n sums to `out` at `at`; `column` is the index of the first one's scale, which is
 * the same for all unless `step` is 1. */
static void requantise(const cpu_call *c, const integer_roles *r, const int32_t *sums, int64_t at,
                       int64_t n, int64_t row, int64_t column, int64_t step)
{
    tensor *out = &c->outputs[0];
    float x[REQUANTISED], a = integer_scale_at(role(c, r->a_scale), row),
                          y = integer_scale_at(role(c, r->y_scale), 0);
    float scale = a * integer_scale_at(role(c, r->b_scale), column) / y;
    assert(is_byte(out->dtype));
    for (int64_t i = 0, count; i < n; i += count) {
        count = n - i < REQUANTISED ? n - i : REQUANTISED;
        for (int64_t j = 0; step == 0 && j < count; j++)
            x[j] = (float)sums[i + j] * scale;
        for (int64_t j = 0; step != 0 && j < count; j++)
            x[j] = (float)sums[i + j] *
                   (a * integer_scale_at(role(c, r->b_scale), column + i + j) / y);
        c->kernels->quantise_tensor_u8(
            &(quantise_tensor_u8){.x = x,
                                  .count = (size_t)count,
                                  .scale = 1,
                                  .zero = integer_zero_at(role(c, r->y_zero), 0),
                                  .is_signed = out->dtype == DTYPE_I8,
                                  .out = (uint8_t *)out->data + at + i});
    }
}

static status check_8_bit(cpu_prepare *p, const integer_roles *r)
{
    if (!is_byte(p->inputs[r->a]->dtype))
        return cpu_op_fail_dtype(p->node, p->inputs[r->a]->dtype);
    if (!is_byte(p->inputs[r->b]->dtype))
        return cpu_op_fail_dtype(p->node, p->inputs[r->b]->dtype);
    return STATUS_OK;
}

/* Scratch of a matmul: one row of sums, one of B. */
static status prepare_integer_matmul(cpu_prepare *p)
{
    integer_roles r = integer_roles_of(p->node->op);
    const tensor *b = p->inputs[r.b];
    int64_t n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    const matmul_integer *fast = NULL;
    status s = check_8_bit(p, &r);
    if (!s)
        s = matmul_integer_prepare(p, &fast);
    p->state = fast;
    if (!s && !fast)
        p->scratch_bytes = 2 * cpu_scratch_round((size_t)n * sizeof(int32_t));
    return s;
}

typedef struct plain_gemm {
    const cpu_call *call;
    integer_roles roles;
    int64_t m, n, k;
} plain_gemm;

/* One matrix multiplication: a at a_at, b at b_at, out at out_at (elements). */
static status multiply(const plain_gemm *p, int64_t a_at, int64_t b_at, int64_t out_at)
{
    const cpu_call *c = p->call;
    const tensor *a = role(c, p->roles.a), *b = role(c, p->roles.b);
    const tensor *b_zero = role(c, p->roles.b_zero);
    int32_t *sums = c->scratch;
    int32_t *row = (int32_t *)((char *)c->scratch + cpu_scratch_round((size_t)p->n * sizeof *row));
    int64_t row0 = p->k ? a_at / p->k : 0, column0 = p->k ? b_at / p->k : 0;
    bool is_per_column = b_zero && tensor_count(b_zero) > 1;
    for (int64_t i = 0; i < p->m; i++) {
        status end = cancel_check(c->cancel);
        if (end)
            return end;
        int32_t a_zero = integer_zero_at(role(c, p->roles.a_zero), row0 + i);
        memset(sums, 0, (size_t)p->n * sizeof *sums);
        for (int64_t k = 0; k < p->k; k++) {
            int32_t x;
            load_i32(a, a_at + i * p->k + k, 1, a_zero, &x);
            load_i32(b, b_at + k * p->n, p->n, is_per_column ? 0 : integer_zero_at(b_zero, 0), row);
            for (int64_t j = 0; is_per_column && j < p->n; j++)
                row[j] -= integer_zero_at(b_zero, column0 + j);
            for (int64_t j = 0; j < p->n; j++)
                sums[j] = (int32_t)((uint32_t)sums[j] + (uint32_t)(x * row[j]));
        }
        if (p->roles.y_scale >= 0)
            requantise(c, &p->roles, sums, out_at + i * p->n, p->n, row0 + i, column0, 1);
        else
            memcpy((int32_t *)c->outputs[0].data + out_at + i * p->n, sums,
                   (size_t)p->n * sizeof *sums);
    }
    return STATUS_OK;
}

void integer_walk_matrices(cpu_walk *w, const tensor *a, const tensor *b, const tensor *out)
{
    tensor shapes[3] = {{.rank = 0}, {.rank = 0}, {.rank = 0}};
    const tensor *from[2] = {a, b};
    for (int t = 0; t < 2; t++)
        for (int d = 0; d + 2 < from[t]->rank; d++)
            shapes[1 + t].dims[shapes[1 + t].rank++] = from[t]->dims[d];
    int rank = shapes[1].rank > shapes[2].rank ? shapes[1].rank : shapes[2].rank;
    for (int d = 0; d < rank; d++)
        shapes[0].dims[shapes[0].rank++] = out->dims[d];
    cpu_walk_broadcast(w, &shapes[0], 2, (const tensor *const[]){&shapes[1], &shapes[2]});
}

static status run_integer_matmul(const cpu_call *c)
{
    if (c->state)
        return matmul_integer_run(c->state, c);
    plain_gemm p = {.call = c, .roles = integer_roles_of(c->node->op)};
    const tensor *a = role(c, p.roles.a), *b = role(c, p.roles.b), *out = &c->outputs[0];
    p.m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    p.k = a->dims[a->rank - 1];
    p.n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    cpu_walk w;
    integer_walk_matrices(&w, a, b, out);
    cpu_cursor at;
    status end = STATUS_OK;
    for (bool more = cpu_walk_start(&w, &at); more && !end; more = cpu_walk_next(&w, &at))
        for (int64_t i = 0; i < cpu_walk_run(&w) && !end; i++)
            end = multiply(&p, (at.offsets[1] + i * cpu_walk_step(&w, 1)) * p.m * p.k,
                           (at.offsets[2] + i * cpu_walk_step(&w, 2)) * p.k * p.n,
                           (at.offsets[0] + i * cpu_walk_step(&w, 0)) * p.m * p.n);
    return end;
}

typedef struct plain_conv {
    cpu_window window;
    const conv_integer *fast; /* runs it; or NULL */
} plain_conv;

/* Scratch of a convolution: the sums of one output plane, and one unpacked input plane. */
static status prepare_integer_conv(cpu_prepare *p)
{
    integer_roles r = integer_roles_of(p->node->op);
    plain_conv *plain = arena_allocate_zeroed(p->memory, 1, sizeof *plain);
    if (!plain)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    cpu_window *w = &plain->window;
    status s = check_8_bit(p, &r);
    if (!s)
        s = cpu_window_init(w, p->node, p->inputs[r.a], &p->outputs[0], p->inputs[r.b]->dims + 2);
    if (!s)
        s = conv_integer_prepare(p, w, &plain->fast);
    p->state = plain;
    if (s || plain->fast)
        return s;
    p->scratch_bytes = cpu_scratch_round((size_t)w->out_plane * sizeof(int32_t)) +
                       cpu_scratch_round((size_t)w->in_plane * sizeof(int32_t));
    return STATUS_OK;
}

typedef struct plane {
    const int32_t *x;
    const tensor *weights;
    int64_t weights_at;
    int32_t zero; /* of the weights */
    int32_t *sums;
} plane;

static inline void accumulate_run(void *context, const cpu_window_run *r)
{
    const plane *p = context;
    const int32_t *x = p->x + r->in;
    int32_t *sums = p->sums + r->out, weight;
    load_i32(p->weights, p->weights_at + r->tap, 1, p->zero, &weight);
    for (int64_t i = 0; i < r->count; i++)
        sums[i] = (int32_t)((uint32_t)sums[i] + (uint32_t)(weight * x[i * r->stride]));
}

static status run_integer_conv(const cpu_call *c)
{
    const plain_conv *plain = c->state;
    const cpu_window *w = &plain->window;
    if (plain->fast)
        return conv_integer_run(plain->fast, c);
    integer_roles r = integer_roles_of(c->node->op);
    const tensor *x = role(c, r.a), *weights = role(c, r.b), *bias = role(c, r.bias);
    int64_t groups = graph_attribute_int(c->node, "group", 1);
    int64_t in_channels = weights->dims[1], all_out = weights->dims[0],
            out_channels = all_out / groups;
    int32_t *sums = c->scratch;
    int32_t *unpacked =
        (int32_t *)((char *)c->scratch + cpu_scratch_round((size_t)w->out_plane * sizeof *sums));
    int32_t x_zero = integer_zero_at(role(c, r.a_zero), 0);
    for (int64_t i = 0; i < x->dims[0] * all_out; i++) {
        int64_t image = i / all_out, o = i % all_out, group = o / out_channels;
        for (int64_t j = 0; j < w->out_plane; j++)
            sums[j] = bias ? ((const int32_t *)bias->data)[o] : 0;
        for (int64_t ch = 0; ch < in_channels; ch++) {
            status end = cancel_check(c->cancel);
            if (end)
                return end;
            int64_t from = (image * groups + group) * in_channels + ch;
            load_i32(x, from * w->in_plane, w->in_plane, x_zero, unpacked);
            plane p = {.x = unpacked,
                       .weights = weights,
                       .weights_at = (o * in_channels + ch) * w->taps,
                       .zero = integer_zero_at(role(c, r.b_zero), o),
                       .sums = sums};
            /* Padding is the zero point, so it adds nothing. */
            cpu_window_each_run(w, accumulate_run, &p);
        }
        if (r.y_scale >= 0)
            requantise(c, &r, sums, i * w->out_plane, w->out_plane, 0, o, 0);
        else
            memcpy((int32_t *)c->outputs[0].data + i * w->out_plane, sums,
                   (size_t)w->out_plane * sizeof *sums);
    }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_MATMUL_INTEGER, prepare_integer_matmul, run_integer_matmul, 0, false},
    {GRAPH_OP_QLINEAR_MATMUL, prepare_integer_matmul, run_integer_matmul, 0, false},
    {GRAPH_OP_CONV_INTEGER, prepare_integer_conv, run_integer_conv, 0, false},
    {GRAPH_OP_QLINEAR_CONV, prepare_integer_conv, run_integer_conv, 0, false},
};

const cpu_op_family cpu_ops_integer = {table, sizeof table / sizeof table[0]};
