#include "devices/cpu/plan/plan.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/ops/weights.h"
#include "devices/cpu/plan/memory.h"
#include "graph/quantise/fuse.h"
#include "graph/quantise/lines.h"
#include "graph/quantise/widen.h"
#include "graph/shapes/infer.h"

#define PARTS_MAX 16 /* threads that may work on one run */

typedef enum place {
    PLACE_NONE, /* not wanted */
    PLACE_CONSTANT,
    PLACE_INPUT,
    PLACE_OUTPUT,
    PLACE_WORKSPACE,
} place;

typedef struct plan_value {
    tensor shape; /* data only when PLACE_CONSTANT */
    place place;
    int index;     /* of the graph input or output */
    size_t offset; /* in the workspace */
    int32_t root;  /* the value whose memory this one shares; itself when none */
} plan_value;

typedef struct plan_step {
    const graph_node *node;
    const void *state;
    const tensor *outputs; /* shapes, where some are not wanted; NULL: those of its values */
} plan_step;

struct cpu_plan {
    arena memory;
    graph *wide;  /* the specialised graph without half precision; NULL: it has none */
    graph *lines; /* that with lines as images; NULL: it has none */
    graph *graph; /* the same, its layers fused */
    const kernels *kernels;
    cpu_weights *weights;
    plan_value *values;
    plan_step *steps;
    int step_count;
    struct plan_copy {
        int32_t value;
        int output;
    } * copies;
    int copy_count;
    /* The workspace: operands of the running step, its scratch, that of each thread, then the
     * buffers. */
    int operands_max;
    size_t scratch_offset, parts_offset, part_stride, buffers_offset, workspace_bytes;
    int threads; /* parts of scratch */
    cpu_plan_facts facts;
};

static bool is_view(const cpu_plan *p, const graph_node *node)
{
    const cpu_op *op = cpu_op_find(node->op);
    return op && op->is_view && node->inputs[0] != GRAPH_NO_VALUE &&
           node->outputs[0] != GRAPH_NO_VALUE && p->graph->values[node->inputs[0]].has_dtype;
}

/* Where the memory of each value is. A graph output is computed directly in the caller's tensor,
 * unless it shares memory with an input, a constant or another output: then it is copied at the
 * end. */
static void place_values(cpu_plan *p)
{
    const graph *g = p->graph;
    for (int32_t v = 0; v < g->value_count; v++) {
        plan_value *value = &p->values[v];
        value->root = v;
        if (g->values[v].constant) {
            value->shape = *g->values[v].constant;
            value->place = PLACE_CONSTANT;
        }
    }
    for (int i = 0; i < g->input_count; i++) {
        plan_value *value = &p->values[g->inputs[i]];
        if (value->place == PLACE_NONE) {
            value->shape = graph_value_tensor(&g->values[g->inputs[i]]);
            value->place = PLACE_INPUT;
            value->index = i;
        }
    }
    for (int32_t n = 0; n < g->node_count; n++) {
        const graph_node *node = &g->nodes[n];
        for (int o = 0; o < node->output_count; o++) {
            if (node->outputs[o] == GRAPH_NO_VALUE)
                continue;
            plan_value *value = &p->values[node->outputs[o]];
            value->shape = graph_value_tensor(&g->values[node->outputs[o]]);
            value->place = PLACE_WORKSPACE;
        }
        if (is_view(p, node))
            p->values[node->outputs[0]].root = p->values[node->inputs[0]].root;
    }
    for (int i = 0; i < g->output_count; i++) {
        plan_value *root = &p->values[p->values[g->outputs[i]].root];
        if (root->place == PLACE_WORKSPACE) {
            root->place = PLACE_OUTPUT;
            root->index = i;
        } else {
            p->copies[p->copy_count++] = (struct plan_copy){g->outputs[i], i};
        }
    }
}

/* Operators find where a part lies by the shapes of all parts, also of those not wanted, which are
 * no values of the graph. */
static status infer_unwanted(cpu_plan *p, const graph_node *node, const tensor *const *inputs,
                             tensor *outputs, plan_step *step)
{
    bool is_complete = true;
    for (int i = 0; i < node->output_count; i++)
        is_complete &= node->outputs[i] != GRAPH_NO_VALUE;
    if (is_complete)
        return STATUS_OK;
    tensor *found = arena_allocate_zeroed(&p->memory, (size_t)node->output_count, sizeof found[0]);
    if (!found)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    status s = graph_infer_node(node, inputs, found);
    for (int i = 0; !s && i < node->output_count; i++)
        if (node->outputs[i] == GRAPH_NO_VALUE)
            outputs[i] = found[i];
    step->outputs = s ? NULL : found;
    return s;
}

static status prepare_step(cpu_plan *p, const graph_node *node, tensor *operands,
                           const tensor **inputs, size_t *scratch)
{
    tensor *outputs = operands + node->input_count;
    for (int i = 0; i < node->input_count; i++) {
        inputs[i] = NULL;
        if (node->inputs[i] == GRAPH_NO_VALUE)
            continue;
        const plan_value *value = &p->values[node->inputs[i]];
        const plan_value *root = &p->values[value->root];
        operands[i] = value->shape;
        operands[i].data = root->place == PLACE_CONSTANT ? root->shape.data : NULL;
        inputs[i] = &operands[i];
    }
    for (int i = 0; i < node->output_count; i++)
        outputs[i] = node->outputs[i] == GRAPH_NO_VALUE ? (tensor){.dtype = DTYPE_F32}
                                                        : p->values[node->outputs[i]].shape;
    plan_step step = {.node = node};
    status s = infer_unwanted(p, node, inputs, outputs, &step);
    if (s)
        return s;
    cpu_prepare prepare = {.node = node,
                           .inputs = inputs,
                           .outputs = outputs,
                           .kernels = p->kernels,
                           .memory = &p->memory,
                           .weights = p->weights};
    if ((s = cpu_op_prepare(&prepare)))
        return s;
    step.state = prepare.state;
    if (prepare.scratch_bytes > *scratch)
        *scratch = prepare.scratch_bytes;
    if (prepare.part_bytes > p->part_stride)
        p->part_stride = cpu_scratch_round(prepare.part_bytes);
    p->steps[p->step_count++] = step;
    return STATUS_OK;
}

static int operand_count_max(const graph *g)
{
    int most = 1;
    for (int32_t n = 0; n < g->node_count; n++) {
        int count = g->nodes[n].input_count + g->nodes[n].output_count;
        most = count > most ? count : most;
    }
    return most;
}

static size_t operands_bytes(const cpu_plan *p)
{
    return cpu_scratch_round((size_t)p->operands_max * (sizeof(tensor) + sizeof(tensor *)));
}

static status prepare_steps(cpu_plan *p)
{
    const graph *g = p->graph;
    tensor *operands = calloc((size_t)p->operands_max, sizeof *operands);
    const tensor **inputs = calloc((size_t)p->operands_max, sizeof *inputs);
    status s = STATUS_OK;
    if (!operands || !inputs)
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    for (int32_t n = 0; !s && n < g->node_count; n++) {
        if (is_view(p, &g->nodes[n]))
            p->facts.view_count++;
        else
            s = prepare_step(p, &g->nodes[n], operands, inputs, &p->facts.scratch_bytes);
    }
    free(operands);
    free(inputs);
    return s;
}

/* When each buffer is first written and last read, by step; then offsets with reuse. */
static status place_buffers(cpu_plan *p)
{
    const graph *g = p->graph;
    cpu_memory_buffer *buffers = calloc((size_t)g->value_count + 1, sizeof *buffers);
    if (!buffers)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    for (int s = 0; s < p->step_count; s++) {
        const graph_node *node = p->steps[s].node;
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != GRAPH_NO_VALUE)
                buffers[node->outputs[i]].first = buffers[node->outputs[i]].last = s;
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i] != GRAPH_NO_VALUE)
                buffers[p->values[node->inputs[i]].root].last = s;
    }
    for (int32_t v = 0; v < g->value_count; v++)
        if (p->values[v].place == PLACE_WORKSPACE && p->values[v].root == v) {
            buffers[v].bytes = cpu_scratch_round(tensor_bytes(&p->values[v].shape));
            p->facts.total_bytes += buffers[v].bytes;
        }
    status result = cpu_memory_place(buffers, (size_t)g->value_count, &p->facts.buffer_bytes);
    for (int32_t v = 0; v < g->value_count; v++)
        p->values[v].offset = buffers[v].offset;
    free(buffers);
    return result;
}

static const float *widen_constant(void *context, const tensor *half)
{
    static const float none = 0;
    const cpu_plan *p = context;
    if (tensor_count(half) == 0)
        return &none;
    return cpu_weights_find(p->weights, p->kernels,
                            &(cpu_weights_key){.constant = half, .format = CPU_WEIGHTS_F32});
}

status cpu_plan_create(const graph *specialised, const kernels *table, cpu_weights *weights,
                       cpu_plan **out)
{
    return cpu_plan_create_for(specialised, table, weights, 1, out);
}

status cpu_plan_create_for(const graph *specialised, const kernels *table, cpu_weights *weights,
                           int threads, cpu_plan **out)
{
    assert(threads > 0);
    cpu_plan *p = calloc(1, sizeof *p);
    if (!p)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    arena_init(&p->memory, 0);
    p->kernels = table;
    p->threads = threads < PARTS_MAX ? threads : PARTS_MAX;
    fused_facts fused;
    status s = STATUS_OK;
    if (weights)
        cpu_weights_retain(weights);
    p->weights = weights ? weights : cpu_weights_create(NULL);
    if (!p->weights)
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    if (s || (s = graph_widen_halves(specialised, widen_constant, p, &p->wide)))
        goto fail;
    specialised = p->wide ? p->wide : specialised;
    if ((s = graph_lift_lines(specialised, &p->lines)) ||
        (s = graph_fuse_layers(p->lines ? p->lines : specialised, &p->graph, &fused)))
        goto fail;
    specialised = p->graph;
    p->facts.fused_layer_count = fused.fused_layer_count;
    p->facts.quantised_layer_count = fused.quantised_layer_count;
    size_t nodes = (size_t)specialised->node_count + 1,
           values = (size_t)specialised->value_count + 1;
    p->values = arena_allocate_zeroed(&p->memory, values, sizeof p->values[0]);
    p->steps = arena_allocate_zeroed(&p->memory, nodes, sizeof p->steps[0]);
    p->copies = arena_allocate_zeroed(&p->memory, (size_t)specialised->output_count + 1,
                                      sizeof p->copies[0]);
    if (!p->values || !p->steps || !p->copies) {
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
        goto fail;
    }
    p->operands_max = operand_count_max(specialised);
    place_values(p);
    s = prepare_steps(p);
    if (s)
        goto fail;
    s = place_buffers(p);
    if (s)
        goto fail;
    p->facts.step_count = p->step_count;
    p->facts.copy_count = p->copy_count;
    p->scratch_offset = operands_bytes(p);
    p->parts_offset = p->scratch_offset + cpu_scratch_round(p->facts.scratch_bytes);
    p->facts.scratch_bytes += p->part_stride * (size_t)p->threads;
    p->buffers_offset = p->parts_offset + p->part_stride * (size_t)p->threads;
    p->workspace_bytes = p->buffers_offset + p->facts.buffer_bytes;
    *out = p;
    return STATUS_OK;
fail:
    cpu_plan_destroy(p);
    return s;
}

void cpu_plan_destroy(cpu_plan *p)
{
    if (!p)
        return;
    cpu_weights_release(p->weights);
    graph_destroy(p->graph);
    graph_destroy(p->lines);
    graph_destroy(p->wide);
    arena_dispose(&p->memory);
    free(p);
}

size_t cpu_plan_workspace_bytes(const cpu_plan *p)
{
    return p->workspace_bytes;
}

void cpu_plan_describe(const cpu_plan *p, cpu_plan_facts *out)
{
    *out = p->facts;
}

static void *data_of(const cpu_plan *p, const plan_value *value, const tensor *inputs,
                     const tensor *outputs, char *workspace)
{
    const plan_value *root = &p->values[value->root];
    switch (root->place) {
    case PLACE_CONSTANT:
        return root->shape.data;
    case PLACE_INPUT:
        return inputs[root->index].data;
    case PLACE_OUTPUT:
        return outputs[root->index].data;
    case PLACE_WORKSPACE:
        return workspace + p->buffers_offset + root->offset;
    case PLACE_NONE:
        break;
    }
    assert(!"a value that nothing computes");
    return NULL;
}

static status check_tensor(const char *what, const char *name, const tensor *actual,
                           const tensor *expected)
{
    char a[TENSOR_SHAPE_TEXT_BYTES], b[TENSOR_SHAPE_TEXT_BYTES];
    if (actual->dtype != expected->dtype || !tensor_same_shape(actual, expected))
        return status_fail(
            STATUS_INVALID_ARGUMENT, "%s \"%s\" is %s %s, the program's is %s %s", what, name,
            dtype_name(actual->dtype), tensor_shape_text(a, actual->rank, actual->dims),
            dtype_name(expected->dtype), tensor_shape_text(b, expected->rank, expected->dims));
    if (!actual->data && tensor_count(actual) > 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s \"%s\" has no data", what, name);
    return STATUS_OK;
}

static status check_tensors(const cpu_plan *p, const tensor *inputs, const tensor *outputs)
{
    const graph *g = p->graph;
    for (int i = 0; i < g->input_count; i++) {
        const plan_value *value = &p->values[g->inputs[i]];
        if (value->place != PLACE_INPUT) /* bound to a constant */
            continue;
        status s = check_tensor("input", g->values[g->inputs[i]].name, &inputs[i], &value->shape);
        if (s)
            return s;
    }
    for (int i = 0; i < g->output_count; i++) {
        status s = check_tensor("output", g->values[g->outputs[i]].name, &outputs[i],
                                &p->values[g->outputs[i]].shape);
        if (s)
            return s;
    }
    return STATUS_OK;
}

typedef struct run_options {
    const cpu_team *team;
    const cancel_token *cancel;
} run_options;

static status run_step(const cpu_plan *p, const plan_step *step, const tensor *inputs,
                       tensor *outputs, char *workspace, const run_options *o)
{
    const graph_node *node = step->node;
    status s = cancel_check(o->cancel);
    if (s)
        return s;
    tensor *operands = (tensor *)workspace;
    const tensor **in = (const tensor **)(operands + p->operands_max);
    for (int i = 0; i < node->input_count + node->output_count; i++) {
        bool is_input = i < node->input_count;
        graph_value_index v = is_input ? node->inputs[i] : node->outputs[i - node->input_count];
        if (is_input)
            in[i] = v == GRAPH_NO_VALUE ? NULL : &operands[i];
        if (v == GRAPH_NO_VALUE) {
            operands[i] =
                is_input ? (tensor){.dtype = DTYPE_F32} : step->outputs[i - node->input_count];
            operands[i].data = NULL;
            continue;
        }
        operands[i] = p->values[v].shape;
        operands[i].data = data_of(p, &p->values[v], inputs, outputs, workspace);
    }
    return cpu_op_run(&(cpu_call){.node = node,
                                  .inputs = in,
                                  .outputs = operands + node->input_count,
                                  .kernels = p->kernels,
                                  .state = step->state,
                                  .scratch = workspace + p->scratch_offset,
                                  .parts = workspace + p->parts_offset,
                                  .part_stride = p->part_stride,
                                  .team = o->team,
                                  .cancel = o->cancel});
}

int cpu_plan_step_count(const cpu_plan *p)
{
    return p->step_count;
}

status cpu_plan_run_step(const cpu_plan *p, int step, const tensor *inputs, tensor *outputs,
                         void *workspace, const cpu_team *team)
{
    assert(step >= 0 && step < p->step_count);
    assert(!team || team->threads <= p->threads);
    return run_step(p, &p->steps[step], inputs, outputs, workspace, &(run_options){team, NULL});
}

const char *cpu_plan_step_text(const cpu_plan *p, int step, char *text, size_t bytes)
{
    const graph_node *node = p->steps[step].node;
    int first = 0;
    while (node->outputs[first] == GRAPH_NO_VALUE)
        first++;
    const tensor *out = &p->values[node->outputs[first]].shape;
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    snprintf(text, bytes, "%s \"%s\" %s %s", graph_op_name(node->op), node->name,
             dtype_name(out->dtype), tensor_shape_text(shape, out->rank, out->dims));
    return text;
}

status cpu_plan_run(const cpu_plan *p, const tensor *inputs, tensor *outputs, void *workspace,
                    const cancel_token *cancel)
{
    return cpu_plan_run_with(p, inputs, outputs, workspace, NULL, cancel);
}

status cpu_plan_run_with(const cpu_plan *p, const tensor *inputs, tensor *outputs, void *workspace,
                         const cpu_team *team, const cancel_token *cancel)
{
    cpu_team some;
    if (team && team->threads > p->threads) {
        some = *team;
        some.threads = p->threads;
        team = p->threads > 1 ? &some : NULL;
    }
    const run_options options = {team, cancel};
    assert(((uintptr_t)workspace & (CPU_PLAN_WORKSPACE_ALIGNMENT - 1)) == 0);
    status s = check_tensors(p, inputs, outputs);
    for (int i = 0; !s && i < p->step_count; i++)
        s = run_step(p, &p->steps[i], inputs, outputs, workspace, &options);
    for (int i = 0; !s && i < p->copy_count; i++) {
        const plan_value *value = &p->values[p->copies[i].value];
        size_t bytes = tensor_bytes(&value->shape);
        if (bytes)
            memcpy(outputs[p->copies[i].output].data, data_of(p, value, inputs, outputs, workspace),
                   bytes);
    }
    return s;
}
