#include "devices/cpu/ops/op.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "devices/cpu/ops/weights.h"
#include "devices/cpu/tensor_loops/block.h"

/* Operators that widen have at most this many inputs and outputs. */
#define WIDEN_OPERANDS_MAX 12

static const cpu_op_family *const families[] = {
    &cpu_ops_unary,          &cpu_ops_binary,      &cpu_ops_cast,       &cpu_ops_move,
    &cpu_ops_generate,       &cpu_ops_gather,      &cpu_ops_scatter,    &cpu_ops_select,
    &cpu_ops_reduce,         &cpu_ops_softmax,     &cpu_ops_normalise,  &cpu_ops_matmul,
    &cpu_ops_einsum,         &cpu_ops_conv,        &cpu_ops_pool,       &cpu_ops_quantise,
    &cpu_ops_integer,        &cpu_ops_resize,      &cpu_ops_conv_dense, &cpu_ops_pool_add,
    &cpu_ops_recurrent,      &cpu_ops_fourier,     &cpu_ops_windows,    &cpu_ops_detect,
    &cpu_ops_conv_transpose, &cpu_ops_grid_sample, &cpu_ops_trees,      &cpu_ops_vectors,
};

static const cpu_op *rows[GRAPH_OP_COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_rows(void)
{
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++)
        for (size_t i = 0; i < families[f]->count; i++) {
            const cpu_op *row = &families[f]->rows[i];
            assert(rows[row->op] == NULL);
            rows[row->op] = row;
        }
}

const cpu_op *cpu_op_find(graph_op op)
{
    assert(op >= 0 && op < GRAPH_OP_COUNT);
    pthread_once(&once, fill_rows);
    return rows[op];
}

status cpu_op_fail_dtype(const graph_node *node, dtype type)
{
    return status_fail(STATUS_UNSUPPORTED, "%s of %s is not supported on the CPU",
                       graph_op_title(node->op), dtype_name(type));
}

status cpu_op_prepare_numbers(cpu_prepare *p)
{
    dtype type = p->inputs[0]->dtype;
    return type < DTYPE_BYTES ? STATUS_OK : cpu_op_fail_dtype(p->node, type);
}

static bool is_widened(unsigned widen, dtype type)
{
    switch (type) {
    case DTYPE_F16:
    case DTYPE_BF16:
        return widen & CPU_WIDEN_HALF;
    case DTYPE_F64:
        return widen & CPU_WIDEN_DOUBLE;
    case DTYPE_U8:
    case DTYPE_I8:
        return widen & CPU_WIDEN_BYTE;
    default:
        return false;
    }
}

/* Whether the node runs on copies. Input 0 decides, not I64 side inputs. */
static bool runs_widened(const cpu_op *op, const graph_node *node, const tensor *const *inputs)
{
    return op->widen && node->input_count > 0 && inputs[0] &&
           is_widened(op->widen, inputs[0]->dtype);
}

typedef struct widened {
    const void *state; /* the operator's own */
    size_t scratch_offset;
    const float *constants[WIDEN_OPERANDS_MAX]; /* inputs widened once, or NULL */
} widened;

static size_t widened_bytes(const tensor *t)
{
    return cpu_scratch_round((size_t)tensor_count(t) * sizeof(float));
}

static status prepare_widened(const cpu_op *op, cpu_prepare *p)
{
    const graph_node *node = p->node;
    assert(node->input_count <= WIDEN_OPERANDS_MAX && node->output_count <= WIDEN_OPERANDS_MAX);
    tensor in[WIDEN_OPERANDS_MAX], out[WIDEN_OPERANDS_MAX];
    const tensor *inputs[WIDEN_OPERANDS_MAX] = {0};
    size_t bytes = 0;
    widened *w = arena_allocate_zeroed(p->memory, 1, sizeof *w);
    if (!w)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    for (int i = 0; i < node->input_count; i++) {
        inputs[i] = p->inputs[i];
        if (!p->inputs[i] || !is_widened(op->widen, p->inputs[i]->dtype))
            continue;
        in[i] = *p->inputs[i];
        in[i].dtype = DTYPE_F32;
        in[i].data = NULL;
        inputs[i] = &in[i];
        if (p->weights && p->inputs[i]->data && dtype_is_float(p->inputs[i]->dtype)) {
            w->constants[i] = cpu_weights_find(
                p->weights, p->kernels,
                &(cpu_weights_key){.constant = p->inputs[i], .format = CPU_WEIGHTS_F32});
            if (!w->constants[i])
                return status_fail(STATUS_OUT_OF_MEMORY, "no memory to widen weights");
            in[i].data = (void *)(uintptr_t)w->constants[i];
        } else {
            bytes += widened_bytes(&in[i]);
        }
    }
    for (int i = 0; i < node->output_count; i++) {
        out[i] = p->outputs[i];
        if (is_widened(op->widen, out[i].dtype)) {
            out[i].dtype = DTYPE_F32;
            bytes += widened_bytes(&out[i]);
        }
    }
    cpu_prepare inner = *p;
    inner.inputs = inputs;
    inner.outputs = out;
    if (op->prepare) {
        status s = op->prepare(&inner);
        if (s)
            return s;
    }
    w->state = inner.state;
    w->scratch_offset = bytes;
    p->state = w;
    p->scratch_bytes = bytes + inner.scratch_bytes;
    p->part_bytes = inner.part_bytes;
    return STATUS_OK;
}

static void convert(const tensor *from, const tensor *to)
{
    assert(from->dtype == DTYPE_F32 || to->dtype == DTYPE_F32);
    int64_t count = tensor_count(from);
    if (to->dtype == DTYPE_F32)
        cpu_load(CPU_COMPUTE_F32, from->dtype, from->data, 0, 1, (size_t)count, to->data);
    else
        cpu_store(CPU_COMPUTE_F32, to->dtype, from->data, to->data, 0, 1, (size_t)count);
}

static status run_widened(const cpu_op *op, const cpu_call *c)
{
    const graph_node *node = c->node;
    const widened *w = c->state;
    tensor in[WIDEN_OPERANDS_MAX], out[WIDEN_OPERANDS_MAX];
    const tensor *inputs[WIDEN_OPERANDS_MAX] = {0};
    char *scratch = c->scratch;
    for (int i = 0; i < node->input_count; i++) {
        inputs[i] = c->inputs[i];
        if (c->inputs[i] && is_widened(op->widen, c->inputs[i]->dtype)) {
            in[i] = *c->inputs[i];
            in[i].dtype = DTYPE_F32;
            inputs[i] = &in[i];
            if (w->constants[i]) {
                in[i].data = (void *)(uintptr_t)w->constants[i];
                continue;
            }
            in[i].data = scratch;
            scratch += widened_bytes(&in[i]);
            convert(c->inputs[i], &in[i]);
        }
    }
    for (int i = 0; i < node->output_count; i++) {
        out[i] = c->outputs[i];
        if (is_widened(op->widen, out[i].dtype) && out[i].data) {
            out[i].dtype = DTYPE_F32;
            out[i].data = scratch;
            scratch += widened_bytes(&out[i]);
        }
    }
    cpu_call inner = *c;
    inner.inputs = inputs;
    inner.outputs = out;
    inner.state = w->state;
    inner.scratch = (char *)c->scratch + w->scratch_offset;
    status s = op->run(&inner);
    if (s)
        return s;
    for (int i = 0; i < node->output_count; i++)
        if (c->outputs[i].data && out[i].data != c->outputs[i].data)
            convert(&out[i], &c->outputs[i]);
    return STATUS_OK;
}

static status name_node(status s, const graph_node *node)
{
    return status_prefix(s, "%s node \"%s\"", graph_op_title(node->op),
                         node->name ? node->name : "");
}

status cpu_op_prepare(cpu_prepare *p)
{
    const cpu_op *op = cpu_op_find(p->node->op);
    p->state = NULL;
    p->scratch_bytes = p->part_bytes = 0;
    if (!op)
        return name_node(status_fail(STATUS_UNSUPPORTED, "the CPU has no such operator"), p->node);
    status s = STATUS_OK;
    if (runs_widened(op, p->node, p->inputs))
        s = prepare_widened(op, p);
    else if (op->prepare)
        s = op->prepare(p);
    return s ? name_node(s, p->node) : STATUS_OK;
}

status cpu_op_run(const cpu_call *c)
{
    const cpu_op *op = cpu_op_find(c->node->op);
    assert(op);
    status s = runs_widened(op, c->node, c->inputs) ? run_widened(op, c) : op->run(c);
    return s ? name_node(s, c->node) : STATUS_OK;
}
