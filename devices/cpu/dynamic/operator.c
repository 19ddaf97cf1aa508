#include <stdlib.h>
#include <string.h>

#include "devices/cpu/dynamic/run.h"
#include "devices/cpu/ops/op.h"
#include "devices/cpu/ops/split.h"
#include "graph/shapes/infer.h"
#include "graph/specialise/specialise.h"

/* One operator on tensors: its shapes from the inputs, which are all there, then its row of the
 * tables of ops/. */

#define PREPARED_KEEP_BYTES 65536

status dynamic_expect_tensor(const graph_node *node, const item *inputs, int i)
{
    if (inputs[i].kind == ITEM_TENSOR)
        return STATUS_OK;
    return status_fail(STATUS_INVALID_ARGUMENT, "node \"%s\" (%s): input %d is no tensor",
                       node->name, graph_op_title(node->op), i);
}

status dynamic_read_integer(const graph_node *node, const item *inputs, int i, int64_t *out)
{
    status s = dynamic_expect_tensor(node, inputs, i);
    if (s)
        return s;
    const tensor *t = &inputs[i].tensor;
    if (tensor_count(t) != 1 || t->dtype == DTYPE_BYTES || dtype_is_float(t->dtype))
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "node \"%s\" (%s): input %d is not one integer or truth value",
                           node->name, graph_op_title(node->op), i);
    *out = tensor_get_integer(t, 0);
    return STATUS_OK;
}

/* What prepare sees: constants with data, which may be packed once for all runs, and other inputs
 * only where they decide a shape. */
static void hide_data(const dynamic_run *r, const graph_node *node, const item *inputs,
                      tensor *hidden, const tensor **shown)
{
    uint32_t shape_inputs = specialise_shape_inputs(node->op);
    for (int i = 0; i < node->input_count; i++) {
        hidden[i] = inputs[i].tensor;
        bool decides = i < 32 && (shape_inputs >> i & 1);
        if (!decides && !cpu_weights_has_constant(r->options.weights, hidden[i].data))
            hidden[i].data = NULL;
        shown[i] = inputs[i].kind == ITEM_NONE ? NULL : &hidden[i];
    }
}

/* An output of unread values has no memory. */
static status allocate_outputs(dynamic_run *r, const graph_node *node, tensor *outputs, item *items)
{
    for (int i = 0; i < node->output_count; i++) {
        outputs[i].data = NULL;
        if (node->outputs[i] == GRAPH_NO_VALUE)
            continue;
        status s = item_allocate(&r->memory, &outputs[i], &items[i]);
        if (s)
            return s;
        outputs[i] = items[i].tensor;
    }
    return STATUS_OK;
}

status dynamic_reserve_operands(dynamic_run *r, size_t count)
{
    if (count + 1 <= r->operands_max)
        return STATUS_OK;
    free(r->operands);
    r->operands = calloc(2 * count + 1, sizeof(tensor));
    r->operands_max = r->operands ? 2 * count + 1 : 0;
    return r->operands ? STATUS_OK
                       : status_fail(STATUS_OUT_OF_MEMORY, "no memory for %zu operands", count);
}

/* Everything but the memory of a node's operands. */
typedef struct operands {
    const tensor **inputs; /* with data */
    const tensor **shown;  /* to prepare */
    tensor *hidden;        /* what `shown` points to */
    tensor *outputs;
} operands;

static status prepare_and_run(dynamic_run *r, const graph_node *node, const item *items, item *made,
                              const operands *o)
{
    hide_data(r, node, items, o->hidden, o->shown);
    arena_reset(&r->prepared, PREPARED_KEEP_BYTES);
    cpu_prepare p = {.node = node,
                     .inputs = o->shown,
                     .outputs = o->outputs,
                     .kernels = r->options.kernels,
                     .memory = &r->prepared,
                     .weights = r->options.weights};
    status s = cpu_op_prepare(&p);
    size_t own = cpu_scratch_round(p.scratch_bytes), stride = cpu_scratch_round(p.part_bytes);
    const cpu_team *team = r->caller->team;
    if (!s)
        s = dynamic_reserve(r, own + stride * (size_t)(team ? team->threads : 1));
    if (!s)
        s = allocate_outputs(r, node, o->outputs, made);
    char *scratch = r->caller->memory->workspace; /* NULL: no operator has needed any */
    return s ? s
             : cpu_op_run(&(cpu_call){.node = node,
                                      .inputs = o->inputs,
                                      .outputs = o->outputs,
                                      .kernels = r->options.kernels,
                                      .state = p.state,
                                      .scratch = scratch,
                                      .parts = scratch ? scratch + own : NULL,
                                      .part_stride = stride,
                                      .team = team,
                                      .cancel = r->caller->cancel});
}

/* NonMaxSuppression: selects once, for its shape and its values. */
static status select_boxes(dynamic_run *r, const graph_node *node, item *made, const operands *o)
{
    int64_t count, *rows = NULL;
    tensor shape = {.dtype = DTYPE_I64, .rank = 2, .dims = {0, 3}};
    status s = STATUS_OK;
    o->outputs[0] = shape;
    r->spent.bytes = r->memory.bytes;
    if (o->inputs[1] && o->inputs[1]->rank == 3)
        s = graph_cost_charge(&r->budget, node, o->inputs, o->outputs, &r->spent);
    if (!s && (s = graph_select_boxes(node, o->inputs, &rows, &count)))
        s = status_prefix(s, "node \"%s\" (%s)", node->name, graph_op_title(node->op));
    if (s)
        return s;
    shape.dims[0] = count;
    s = item_allocate(&r->memory, &shape, &made[0]);
    if (!s && count > 0)
        memcpy(made[0].tensor.data, rows, (size_t)count * 3 * sizeof rows[0]);
    free(rows);
    return s;
}

static status run_with(dynamic_run *r, const graph_node *node, const item *items, item *made,
                       const operands *o)
{
    for (int i = 0; i < node->input_count; i++) {
        o->inputs[i] = items[i].kind == ITEM_NONE ? NULL : &items[i].tensor;
        if (items[i].kind > ITEM_TENSOR)
            return dynamic_expect_tensor(node, items, i);
    }
    if (node->op == GRAPH_OP_NON_MAX_SUPPRESSION)
        return select_boxes(r, node, made, o);
    status s = graph_infer_node(node, o->inputs, o->outputs);
    if (s)
        return s;
    r->spent.bytes = r->memory.bytes;
    s = graph_cost_charge(&r->budget, node, o->inputs, o->outputs, &r->spent);
    if (s)
        return s;
    const cpu_op *op = cpu_op_find(node->op);
    if (!op || !op->is_view)
        return prepare_and_run(r, node, items, made, o);
    made[0] = item_retain(&items[0]);
    o->outputs[0].data = made[0].tensor.data;
    made[0].tensor = o->outputs[0];
    return STATUS_OK;
}

status dynamic_run_operator(dynamic_run *r, const graph_node *node, const item *inputs,
                            item *outputs)
{
    size_t in = (size_t)node->input_count, out = (size_t)node->output_count;
    status s = dynamic_reserve_operands(r, in + out + in); /* pointers are smaller than tensors */
    if (s)
        return s;
    tensor *tensors = r->operands;
    const tensor **pointers = (const tensor **)(tensors + in + out);
    memset(tensors, 0, (in + out) * sizeof *tensors);
    operands o = {pointers, pointers + in, tensors, tensors + in};
    return run_with(r, node, inputs, outputs, &o);
}

status dynamic_run_made(dynamic_run *r, graph_op op, int input_count, const item *inputs,
                        int attribute_count, graph_attribute *attributes, item *output)
{
    graph_value_index *numbers = calloc((size_t)input_count + 1, sizeof numbers[0]), made = 0;
    if (!numbers)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to run %s", graph_op_title(op));
    for (int i = 0; i < input_count; i++)
        numbers[i] = i;
    graph_node node = {.op = op,
                       .name = graph_op_name(op),
                       .input_count = input_count,
                       .output_count = 1,
                       .attribute_count = attribute_count,
                       .inputs = numbers,
                       .outputs = &made,
                       .attributes = attributes};
    *output = (item){0};
    status s = dynamic_run_operator(r, &node, inputs, output);
    if (s)
        item_release(output);
    free(numbers);
    return s;
}
