#include <assert.h>
#include <math.h>
#include <string.h>

#include "devices/cpu/elementwise/binary_blocks.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/tensor_loops/block.h"
#include "devices/cpu/tensor_loops/walk.h"
#include "kernels/activation.h"
#include "kernels/lines.h"

/* Operators of two (or more) broadcast inputs. */

#define PIECE 16384 /* elements that one thread computes at a time */

static const cpu_binary_block *const blocks_of[CPU_COMPUTE_COUNT] = {
    [CPU_COMPUTE_F32] = cpu_binary_blocks_f32,
    [CPU_COMPUTE_F64] = cpu_binary_blocks_f64,
    [CPU_COMPUTE_I64] = cpu_binary_blocks_i64,
    [CPU_COMPUTE_U64] = cpu_binary_blocks_u64,
};

/* What a node computes; Mod and BitShift say which of two by an attribute. */
static cpu_binary binary_of(const graph_node *node)
{
    switch (node->op) {
    case GRAPH_OP_ADD:
    case GRAPH_OP_SUM:
    case GRAPH_OP_MEAN:
        return CPU_BINARY_ADD;
    case GRAPH_OP_SUB:
        return CPU_BINARY_SUB;
    case GRAPH_OP_MUL:
        return CPU_BINARY_MUL;
    case GRAPH_OP_DIV:
        return CPU_BINARY_DIV;
    case GRAPH_OP_MAX:
        return CPU_BINARY_MAX;
    case GRAPH_OP_MIN:
        return CPU_BINARY_MIN;
    case GRAPH_OP_PRELU:
        return CPU_BINARY_PRELU;
    case GRAPH_OP_MOD:
        return graph_attribute_int(node, "fmod", 0) ? CPU_BINARY_FMOD : CPU_BINARY_MOD;
    case GRAPH_OP_POW:
        return CPU_BINARY_POW;
    case GRAPH_OP_BITWISE_AND:
        return CPU_BINARY_BITWISE_AND;
    case GRAPH_OP_BITWISE_OR:
        return CPU_BINARY_BITWISE_OR;
    case GRAPH_OP_BITWISE_XOR:
        return CPU_BINARY_BITWISE_XOR;
    case GRAPH_OP_BIT_SHIFT:
        return graph_attribute_string(node, "direction", "LEFT")[0] == 'R' ? CPU_BINARY_SHIFT_RIGHT
                                                                           : CPU_BINARY_SHIFT_LEFT;
    case GRAPH_OP_AND:
        return CPU_BINARY_AND;
    case GRAPH_OP_OR:
        return CPU_BINARY_OR;
    case GRAPH_OP_XOR:
        return CPU_BINARY_XOR;
    case GRAPH_OP_EQUAL:
        return CPU_BINARY_EQUAL;
    case GRAPH_OP_LESS:
        return CPU_BINARY_LESS;
    case GRAPH_OP_LESS_OR_EQUAL:
        return CPU_BINARY_LESS_OR_EQUAL;
    case GRAPH_OP_GREATER:
        return CPU_BINARY_GREATER;
    default:
        assert(node->op == GRAPH_OP_GREATER_OR_EQUAL);
        return CPU_BINARY_GREATER_OR_EQUAL;
    }
}

typedef struct binary_state {
    cpu_binary_block block;
    cpu_compute compute;
    kernels_binary_f32 kernel; /* NULL, or what computes F32 */
    combine_kind combine;      /* COMBINE_COUNT, or what the kernel for lines computes */
    bool is_compare;
} binary_state;

static kernels_binary_f32 kernel_of(const kernels *k, graph_op op)
{
    switch (op) {
    case GRAPH_OP_ADD:
    case GRAPH_OP_SUM:
    case GRAPH_OP_MEAN:
        return k->add_f32;
    case GRAPH_OP_SUB:
        return k->sub_f32;
    case GRAPH_OP_MUL:
        return k->mul_f32;
    case GRAPH_OP_DIV:
        return k->div_f32;
    case GRAPH_OP_MAX:
        return k->max_f32;
    case GRAPH_OP_MIN:
        return k->min_f32;
    case GRAPH_OP_PRELU:
        return k->prelu_f32;
    default:
        return NULL;
    }
}

/* As kinds of kernels/lines.h. */
static combine_kind combine_of(cpu_binary binary, dtype type)
{
    static const combine_kind kinds[CPU_BINARY_COUNT] = {
        [CPU_BINARY_ADD] = COMBINE_ADD,
        [CPU_BINARY_SUB] = COMBINE_SUB,
        [CPU_BINARY_MUL] = COMBINE_MUL,
        [CPU_BINARY_DIV] = COMBINE_DIVIDE,
        [CPU_BINARY_MAX] = COMBINE_MAX,
        [CPU_BINARY_MIN] = COMBINE_MIN,
        [CPU_BINARY_PRELU] = COMBINE_COUNT,
        [CPU_BINARY_MOD] = COMBINE_COUNT,
        [CPU_BINARY_FMOD] = COMBINE_COUNT,
        [CPU_BINARY_POW] = COMBINE_COUNT,
        [CPU_BINARY_BITWISE_AND] = COMBINE_BIT_AND,
        [CPU_BINARY_BITWISE_OR] = COMBINE_BIT_OR,
        [CPU_BINARY_BITWISE_XOR] = COMBINE_BIT_XOR,
        [CPU_BINARY_SHIFT_LEFT] = COMBINE_SHIFT_LEFT,
        [CPU_BINARY_SHIFT_RIGHT] = COMBINE_SHIFT_RIGHT,
        [CPU_BINARY_AND] = COMBINE_AND,
        [CPU_BINARY_OR] = COMBINE_OR,
        [CPU_BINARY_XOR] = COMBINE_XOR,
        [CPU_BINARY_EQUAL] = COMBINE_EQUAL,
        [CPU_BINARY_LESS] = COMBINE_LESS,
        [CPU_BINARY_LESS_OR_EQUAL] = COMBINE_LESS_OR_EQUAL,
        [CPU_BINARY_GREATER] = COMBINE_GREATER,
        [CPU_BINARY_GREATER_OR_EQUAL] = COMBINE_GREATER_OR_EQUAL,
    };
    return combine_line_has(kinds[binary], type) ? kinds[binary] : COMBINE_COUNT;
}

static bool is_float_block(cpu_compute c)
{
    return c == CPU_COMPUTE_F32 || c == CPU_COMPUTE_F64;
}

/* Whether elements of the type are those of the blocks. */
static bool is_native(cpu_compute compute, dtype type)
{
    return (compute == CPU_COMPUTE_I64 && type == DTYPE_I64) ||
           (compute == CPU_COMPUTE_U64 && type == DTYPE_U64) ||
           (compute == CPU_COMPUTE_F64 && type == DTYPE_F64) ||
           (compute == CPU_COMPUTE_F32 && type == DTYPE_F32);
}

static status prepare_binary(cpu_prepare *p)
{
    const graph_node *node = p->node;
    dtype type = p->inputs[0]->dtype;
    if (type >= DTYPE_BYTES)
        return cpu_op_fail_dtype(node, type);
    cpu_compute compute = cpu_compute_of(type);
    if (node->op == GRAPH_OP_POW) { /* its exponent has a type of its own */
        cpu_compute other = cpu_compute_of(p->inputs[1]->dtype);
        if (!is_float_block(compute) && is_float_block(other))
            compute = CPU_COMPUTE_F64;
    }
    if (node->op == GRAPH_OP_BIT_SHIFT && compute == CPU_COMPUTE_I64 &&
        dtype_integer_min(type) >= 0)
        compute = CPU_COMPUTE_U64; /* 8 to 32 unsigned bits */
    cpu_binary binary = binary_of(node);
    cpu_binary_block block = blocks_of[compute][binary];
    if (node->op == GRAPH_OP_MEAN && !is_float_block(compute))
        block = NULL;
    if (!block)
        return cpu_op_fail_dtype(node, type);
    binary_state *state = arena_allocate(p->memory, sizeof *state);
    if (!state)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    *state = (binary_state){.block = block,
                            .compute = compute,
                            .kernel = type == DTYPE_F32 ? kernel_of(p->kernels, node->op) : NULL,
                            .combine = combine_of(binary, type),
                            .is_compare = binary >= CPU_BINARY_COMPARE};
    p->state = state;
    return STATUS_OK;
}

/* Runs of elements that a kernel combines, in pieces of `items` of one dim. */
typedef struct pair_walk {
    const cpu_call *call;
    cpu_walk walk;
    int axis;
    int64_t items;
    dtype type;
    const char *a, *b;
    char *out;
    size_t bytes, out_bytes; /* of an element */
} pair_walk;

static void combine_run(const pair_walk *r, const char *a, size_t a_step, const char *b,
                        size_t b_step, char *out, size_t count)
{
    const binary_state *state = r->call->state;
    if (state->kernel)
        state->kernel((const float *)a, a_step, (const float *)b, b_step, (float *)out, count);
    else
        r->call->kernels->combine_line(
            &(combine_line){state->combine, r->type, a, a_step, b, b_step, out, count});
}

/* Rows too short for a kernel, of which one operand has the same row again and again (the factors
 * of three colours): several rows at a time, with that row repeated. */
#define REPEATED_RUN_MAX 64
#define REPEATED_ELEMENTS_MAX 512

/* The operand, 1 or 2, whose row is the same along the last dim but one, while the other's follow
 * each other; 0: none. */
static int find_repeated(const cpu_walk *w)
{
    int rows = w->rank - 2;
    int64_t run = cpu_walk_run(w);
    if (rows < 0 || run < 1 || run > REPEATED_RUN_MAX || w->dims[rows] < 4 ||
        w->strides[0][rows] != run)
        return 0;
    for (int o = 1; o <= 2; o++)
        if (w->strides[o][rows] == 0 && w->strides[3 - o][rows] == run &&
            cpu_walk_step(w, 1) == 1 && cpu_walk_step(w, 2) == 1)
            return o;
    return 0;
}

static void walk_repeated(const pair_walk *r, const cpu_walk *rows, int repeated)
{
    char pattern[REPEATED_ELEMENTS_MAX * sizeof(int64_t)];
    cpu_walk w = *rows;
    int64_t run = cpu_walk_run(rows), count = rows->dims[rows->rank - 2] * run;
    int64_t most = REPEATED_ELEMENTS_MAX / run * run, made_of = -1;
    most = most < count ? most : count;
    w.rank--; /* its last dim is the rows, which are not looked at */
    cpu_cursor at;
    for (bool more = cpu_walk_start(&w, &at); more; more = cpu_walk_next(&w, &at)) {
        const char *a = r->a + at.offsets[1] * (int64_t)r->bytes;
        const char *b = r->b + at.offsets[2] * (int64_t)r->bytes;
        char *out = r->out + at.offsets[0] * (int64_t)r->out_bytes;
        size_t row_bytes = (size_t)run * r->bytes;
        for (int64_t i = 0; made_of != at.offsets[repeated] && i < most / run; i++)
            memcpy(pattern + (size_t)i * row_bytes, repeated == 1 ? a : b, row_bytes);
        made_of = at.offsets[repeated];
        for (int64_t i = 0; i < count; i += most) {
            size_t n = (size_t)(count - i < most ? count - i : most);
            const char *x = repeated == 1 ? pattern : a + (size_t)i * r->bytes;
            const char *y = repeated == 2 ? pattern : b + (size_t)i * r->bytes;
            combine_run(r, x, 1, y, 1, out + (size_t)i * r->out_bytes, n);
        }
    }
}

static void walk_piece(const void *context, void *memory, size_t unit)
{
    (void)memory;
    const pair_walk *r = context;
    cpu_walk w = r->walk;
    int64_t first = (int64_t)unit * r->items, left = w.dims[r->axis] - first;
    w.dims[r->axis] = left < r->items ? left : r->items;
    pair_walk part = *r;
    part.out += first * w.strides[0][r->axis] * (int64_t)r->out_bytes;
    part.a += first * w.strides[1][r->axis] * (int64_t)r->bytes;
    part.b += first * w.strides[2][r->axis] * (int64_t)r->bytes;
    size_t run = (size_t)cpu_walk_run(&w), a_step = (size_t)cpu_walk_step(&w, 1);
    size_t b_step = (size_t)cpu_walk_step(&w, 2);
    assert((a_step | b_step | 1) == 1); /* dense inputs: along a run they step by one or repeat */
    int repeated = find_repeated(&w);
    if (repeated) {
        walk_repeated(&part, &w, repeated);
        return;
    }
    cpu_cursor at;
    for (bool more = cpu_walk_start(&w, &at); more; more = cpu_walk_next(&w, &at))
        combine_run(&part, part.a + at.offsets[1] * (int64_t)r->bytes, a_step,
                    part.b + at.offsets[2] * (int64_t)r->bytes, b_step,
                    part.out + at.offsets[0] * (int64_t)r->out_bytes, run);
}

static void run_kernel(const cpu_call *c, const cpu_walk *w, const tensor *a, const tensor *b,
                       tensor *out)
{
    pair_walk r = {.call = c,
                   .walk = *w,
                   .type = a->dtype,
                   .a = a->data,
                   .b = b->data,
                   .out = out->data,
                   .bytes = dtype_bytes(a->dtype),
                   .out_bytes = dtype_bytes(out->dtype)};
    for (int i = 1; i < w->rank - 1; i++)
        r.axis = w->dims[i] > w->dims[r.axis] ? i : r.axis;
    size_t count = (size_t)w->dims[r.axis];
    r.items = w->rank > 1 ? (int64_t)cpu_split_items(c, count, count, 1) : PIECE;
    if (count > 0)
        cpu_split(c, (double)tensor_count(out) / 4, walk_piece, &r,
                  (count + (size_t)r.items - 1) / (size_t)r.items);
}

/* `n` elements as the block functions take them: where they are, if they are of the type to compute
 * in and lie side by side, else converted to `spare`. */
static const cpu_block *operand(cpu_compute compute, const tensor *t, int64_t at, int64_t step,
                                size_t n, cpu_block *spare)
{
    if (step == 1 && is_native(compute, t->dtype))
        return (const cpu_block *)((const char *)t->data + at * (int64_t)dtype_bytes(t->dtype));
    cpu_load(compute, t->dtype, t->data, at, step, n, spare);
    return spare;
}

static void run_pair(const cpu_call *c, const tensor *a, const tensor *b, tensor *out)
{
    const binary_state *state = c->state;
    cpu_walk w;
    cpu_walk_broadcast(&w, out, 2, (const tensor *const[]){a, b});
    bool is_in_place = out->data == a->data || out->data == b->data; /* sums of several tensors */
    if (state->kernel || (state->combine != COMBINE_COUNT && !is_in_place)) {
        run_kernel(c, &w, a, b, out);
        return;
    }
    int64_t run = cpu_walk_run(&w), a_step = cpu_walk_step(&w, 1), b_step = cpu_walk_step(&w, 2);
    cpu_cursor at;
    for (bool more = cpu_walk_start(&w, &at); more; more = cpu_walk_next(&w, &at)) {
        cpu_block x, y, z;
        const cpu_block *p = NULL, *q = NULL;
        for (int64_t i = 0; i < run; i += CPU_BLOCK_ELEMENTS) {
            size_t n = (size_t)(run - i < CPU_BLOCK_ELEMENTS ? run - i : CPU_BLOCK_ELEMENTS);
            if (!p || a_step) /* one value for all is loaded once */
                p = operand(state->compute, a, at.offsets[1] + i * a_step, a_step, n, &x);
            if (!q || b_step)
                q = operand(state->compute, b, at.offsets[2] + i * b_step, b_step, n, &y);
            state->block(p, q, &z, n);
            if (state->is_compare)
                memcpy((uint8_t *)out->data + at.offsets[0] + i, z.u8, n);
            else
                cpu_store(state->compute, out->dtype, &z, out->data, at.offsets[0] + i, 1, n);
        }
    }
}

static bool strings_equal(const tensor_string *a, const tensor_string *b)
{
    return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

/* Equal of strings: the one operator on pairs that takes them. */
static void run_equal_strings(const tensor *a, const tensor *b, tensor *out)
{
    cpu_walk w;
    cpu_walk_broadcast(&w, out, 2, (const tensor *const[]){a, b});
    cpu_cursor c;
    const tensor_string *x = a->data, *y = b->data;
    for (bool more = cpu_walk_start(&w, &c); more; more = cpu_walk_next(&w, &c))
        for (int64_t i = 0; i < cpu_walk_run(&w); i++)
            ((uint8_t *)out->data)[c.offsets[0] + i] =
                strings_equal(&x[c.offsets[1] + i * cpu_walk_step(&w, 1)],
                              &y[c.offsets[2] + i * cpu_walk_step(&w, 2)]);
}

static status prepare_equal(cpu_prepare *p)
{
    return p->inputs[0]->dtype == DTYPE_BYTES ? STATUS_OK : prepare_binary(p);
}

/* The power where it is a product: 2, and 3 of F32 (normalisations, GELU by tanh); else 0. */
static int product_of(const cpu_call *c)
{
    const tensor *a = c->inputs[0], *b = c->inputs[1];
    if (c->node->op != GRAPH_OP_POW || tensor_count(b) != 1 ||
        tensor_count(a) != tensor_count(&c->outputs[0]))
        return 0;
    double power = tensor_get_number(b, 0);
    if (power == 3 && a->dtype == DTYPE_F32)
        return 3;
    return power == 2 && (a->dtype == DTYPE_F32 || combine_line_has(COMBINE_MUL, a->dtype)) ? 2 : 0;
}

static void multiply_some(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    dtype type = c->inputs[0]->dtype;
    const char *x = (const char *)c->inputs[0]->data + first * dtype_bytes(type);
    char *out = (char *)c->outputs[0].data + first * dtype_bytes(type);
    if (type != DTYPE_F32) {
        c->kernels->combine_line(&(combine_line){COMBINE_MUL, type, x, 1, x, 1, out, count});
        return;
    }
    bool is_cube = product_of(c) == 3;
    for (size_t i = 0, n; i < count; i += n) { /* in pieces that stay in the L1 cache */
        n = count - i < CPU_BLOCK_ELEMENTS || !is_cube ? count - i : CPU_BLOCK_ELEMENTS;
        const float *from = (const float *)x + i;
        float *to = (float *)out + i;
        c->kernels->mul_f32(from, 1, from, 1, to, n);
        if (is_cube)
            c->kernels->mul_f32(to, 1, from, 1, to, n);
    }
}

static status run_binary(const cpu_call *c)
{
    size_t count = (size_t)tensor_count(c->inputs[0]);
    if (count > 0 && product_of(c)) {
        cpu_split_rows(c, (double)count / 4, multiply_some, count);
        return STATUS_OK;
    }
    if (c->inputs[0]->dtype == DTYPE_BYTES)
        run_equal_strings(c->inputs[0], c->inputs[1], &c->outputs[0]);
    else
        run_pair(c, c->inputs[0], c->inputs[1], &c->outputs[0]);
    return STATUS_OK;
}

static void broadcast_copy(const kernels *k, const tensor *in, tensor *out)
{
    cpu_walk w;
    cpu_walk_broadcast(&w, out, 1, &in);
    cpu_cursor c;
    size_t bytes = dtype_bytes(in->dtype);
    for (bool more = cpu_walk_start(&w, &c); more; more = cpu_walk_next(&w, &c)) {
        int64_t step = cpu_walk_step(&w, 1), run = cpu_walk_run(&w);
        const char *from = (const char *)in->data + c.offsets[1] * (int64_t)bytes;
        char *to = (char *)out->data + c.offsets[0] * (int64_t)bytes;
        cpu_copy_strided(k, bytes, 1, &run, from, &step, to, &(int64_t){1});
    }
}

/* Sum, Mean, Max, Min of any number of inputs: out = in0, then out = out op in1, and so on. */
static status run_variadic(const cpu_call *c)
{
    tensor *out = &c->outputs[0];
    int count = c->node->input_count;
    if (count == 1)
        broadcast_copy(c->kernels, c->inputs[0], out);
    else
        run_pair(c, c->inputs[0], c->inputs[1], out);
    for (int i = 2; i < count; i++)
        run_pair(c, out, c->inputs[i], out);
    if (c->node->op != GRAPH_OP_MEAN)
        return STATUS_OK;
    cpu_block x;
    int64_t total = tensor_count(out);
    for (int64_t i = 0; i < total; i += CPU_BLOCK_ELEMENTS) {
        size_t n = (size_t)(total - i < CPU_BLOCK_ELEMENTS ? total - i : CPU_BLOCK_ELEMENTS);
        cpu_load(CPU_COMPUTE_F64, out->dtype, out->data, i, 1, n, &x);
        for (size_t j = 0; j < n; j++)
            x.f64[j] /= count;
        cpu_store(CPU_COMPUTE_F64, out->dtype, &x, out->data, i, 1, n);
    }
    return STATUS_OK;
}

static status run_where(const cpu_call *c)
{
    const tensor *condition = c->inputs[0], *x = c->inputs[1], *y = c->inputs[2];
    tensor *out = &c->outputs[0];
    cpu_walk w;
    cpu_walk_broadcast(&w, out, 3, c->inputs);
    int64_t run = cpu_walk_run(&w);
    int64_t steps[] = {cpu_walk_step(&w, 1), cpu_walk_step(&w, 2), cpu_walk_step(&w, 3)};
    size_t bytes = dtype_bytes(out->dtype);
    cpu_cursor at;
    for (bool more = cpu_walk_start(&w, &at); more; more = cpu_walk_next(&w, &at)) {
        const uint8_t *choose = (const uint8_t *)condition->data + at.offsets[1];
        const char *a = (const char *)x->data + at.offsets[2] * (int64_t)bytes;
        const char *b = (const char *)y->data + at.offsets[3] * (int64_t)bytes;
        char *to = (char *)out->data + at.offsets[0] * (int64_t)bytes;
        if (!steps[0]) { /* one choice for the run */
            cpu_copy_strided(c->kernels, bytes, 1, &run, *choose ? a : b, &steps[*choose ? 1 : 2],
                             to, &(int64_t){1});
            continue;
        }
        if (bytes <= sizeof(uint64_t)) {
            c->kernels->choose_line(&(choose_line){bytes, choose, a, (size_t)steps[1], b,
                                                   (size_t)steps[2], to, (size_t)run});
            continue;
        }
        for (int64_t i = 0; i < run; i++)
            memcpy(to + i * (int64_t)bytes,
                   choose[i] ? a + i * steps[1] * (int64_t)bytes
                             : b + i * steps[2] * (int64_t)bytes,
                   bytes);
    }
    return STATUS_OK;
}

/* Clip is Min(Max(x, low), high) with scalar bounds. */
static status prepare_clip(cpu_prepare *p)
{
    if (p->inputs[0]->dtype >= DTYPE_BOOL + 1 && p->inputs[0]->dtype < DTYPE_BYTES)
        return STATUS_OK;
    return cpu_op_fail_dtype(p->node, p->inputs[0]->dtype);
}

static void clip_some(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    const tensor *low = cpu_input(c->inputs, c->node, 1), *high = cpu_input(c->inputs, c->node, 2);
    activation_f32 p = {.kind = ACTIVATION_CLIP,
                        .a = low ? *(const float *)low->data : -INFINITY,
                        .b = high ? *(const float *)high->data : INFINITY,
                        .in = (const float *)c->inputs[0]->data + first,
                        .out = (float *)c->outputs[0].data + first,
                        .count = count};
    c->kernels->activation_f32(&p);
}

/* Integers, by lines. */
static void clip_integers(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    const tensor *in = c->inputs[0], *low = cpu_input(c->inputs, c->node, 1),
                 *high = cpu_input(c->inputs, c->node, 2);
    size_t bytes = dtype_bytes(in->dtype);
    const char *from = (const char *)in->data + first * bytes;
    char *out = (char *)c->outputs[0].data + first * bytes;
    cpu_block some;
    const size_t most = sizeof some / bytes;
    for (size_t i = 0, n; i < count; i += n) {
        n = count - i < most ? count - i : most;
        const void *x = from + i * bytes;
        void *raised = high ? (void *)&some : out + i * bytes;
        combine_line raise = {COMBINE_MAX, in->dtype, x, 1, NULL, 0, raised, n};
        combine_line lower = {COMBINE_MIN, in->dtype, low ? raised : x, 1,
                              NULL,        0,         out + i * bytes,  n};
        raise.b = low ? low->data : NULL;
        lower.b = high ? high->data : NULL;
        if (low)
            c->kernels->combine_line(&raise);
        if (high)
            c->kernels->combine_line(&lower);
        if (!low && !high)
            memcpy(out + i * bytes, x, n * bytes);
    }
}

static status run_clip(const cpu_call *c)
{
    const tensor *in = c->inputs[0],
                 *bounds[2] = {cpu_input(c->inputs, c->node, 1), cpu_input(c->inputs, c->node, 2)};
    tensor *out = &c->outputs[0];
    bool is_f32 = in->dtype == DTYPE_F32;
    if (is_f32 || (in->dtype != DTYPE_F64 && combine_line_has(COMBINE_MAX, in->dtype))) {
        size_t count = (size_t)tensor_count(in);
        cpu_split_rows(c, (double)count / 8, is_f32 ? clip_some : clip_integers, count);
        return STATUS_OK;
    }
    cpu_compute compute = cpu_compute_of(in->dtype);
    cpu_binary_block max = blocks_of[compute][CPU_BINARY_MAX];
    cpu_binary_block min = blocks_of[compute][CPU_BINARY_MIN];
    cpu_block x, low, high;
    if (bounds[0])
        cpu_load(compute, in->dtype, bounds[0]->data, 0, 0, CPU_BLOCK_ELEMENTS, &low);
    if (bounds[1])
        cpu_load(compute, in->dtype, bounds[1]->data, 0, 0, CPU_BLOCK_ELEMENTS, &high);
    int64_t total = tensor_count(in);
    for (int64_t i = 0; i < total; i += CPU_BLOCK_ELEMENTS) {
        size_t n = (size_t)(total - i < CPU_BLOCK_ELEMENTS ? total - i : CPU_BLOCK_ELEMENTS);
        cpu_load(compute, in->dtype, in->data, i, 1, n, &x);
        if (bounds[0])
            max(&x, &low, &x, n);
        if (bounds[1])
            min(&x, &high, &x, n);
        cpu_store(compute, out->dtype, &x, out->data, i, 1, n);
    }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_ADD, prepare_binary, run_binary, 0, false},
    {GRAPH_OP_SUB, prepare_binary, run_binary, 0, false},
    {GRAPH_OP_MUL, prepare_binary, run_binary, 0, false},
    {GRAPH_OP_DIV, prepare_binary, run_binary, 0, false},
    {GRAPH_OP_PRELU, prepare_binary, run_binary, 0, false},
    {GRAPH_OP_MOD, prepare_binary, run_binary, 0, false},
    {GRAPH_OP_POW, prepare_binary, run_binary, 0, false},
    {GRAPH_OP_AND, prepare_binary, run_binary, 0, false},
    {GRAPH_OP_OR, prepare_binary, run_binary, 0, false},
    {GRAPH_OP_XOR, prepare_binary, run_binary, 0, false},
    {GRAPH_OP_BITWISE_AND, prepare_binary, run_binary, 0, false},
    {GRAPH_OP_BITWISE_OR, prepare_binary, run_binary, 0, false},
    {GRAPH_OP_BITWISE_XOR, prepare_binary, run_binary, 0, false},
    {GRAPH_OP_BIT_SHIFT, prepare_binary, run_binary, 0, false},
    {GRAPH_OP_LESS, prepare_binary, run_binary, 0, false},
    {GRAPH_OP_LESS_OR_EQUAL, prepare_binary, run_binary, 0, false},
    {GRAPH_OP_GREATER, prepare_binary, run_binary, 0, false},
    {GRAPH_OP_GREATER_OR_EQUAL, prepare_binary, run_binary, 0, false},
    {GRAPH_OP_SUM, prepare_binary, run_variadic, 0, false},
    {GRAPH_OP_MEAN, prepare_binary, run_variadic, 0, false},
    {GRAPH_OP_MAX, prepare_binary, run_variadic, 0, false},
    {GRAPH_OP_MIN, prepare_binary, run_variadic, 0, false},
    {GRAPH_OP_EQUAL, prepare_equal, run_binary, 0, false},
    {GRAPH_OP_WHERE, NULL, run_where, 0, false},
    {GRAPH_OP_CLIP, prepare_clip, run_clip, 0, false},
};

const cpu_op_family cpu_ops_binary = {table, sizeof table / sizeof table[0]};
