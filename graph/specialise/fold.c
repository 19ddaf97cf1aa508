#include <stdlib.h>
#include <string.h>

#include "graph/shapes/infer.h"
#include "graph/shapes/rules.h"
#include "graph/specialise/internal.h"

static bool only_repeats(graph_op op)
{
    return op == GRAPH_OP_EXPAND || op == GRAPH_OP_TILE || op == GRAPH_OP_CONSTANT_OF_SHAPE ||
           op == GRAPH_OP_RANGE || op == GRAPH_OP_EYE_LIKE || op == GRAPH_OP_PAD ||
           op == GRAPH_OP_RESIZE || op == GRAPH_OP_GATHER || op == GRAPH_OP_ONE_HOT;
}

bool specialise_is_worth_folding(const graph_node *node, const tensor *const *in,
                                 const tensor *outputs)
{
    if (node->op == GRAPH_OP_DEQUANTIZE_LINEAR)
        return false;
    size_t in_bytes = 0, out_bytes = 0;
    for (int i = 0; i < node->input_count; i++)
        in_bytes += in[i] != NULL ? tensor_bytes(in[i]) : 0;
    for (int i = 0; i < node->output_count; i++)
        out_bytes += tensor_bytes(&outputs[i]);
    return out_bytes <= FOLD_BYTES_ALWAYS || out_bytes / FOLD_GROWTH_MAX <= in_bytes ||
           (out_bytes <= FOLD_BYTES_COMPUTED && !only_repeats(node->op));
}

bool specialise_is_transposed_matrix(const graph_node *node, const tensor *const *in)
{
    return node->op == GRAPH_OP_TRANSPOSE && in[0] != NULL && in[0]->rank == 2 &&
           tensor_bytes(in[0]) > FOLD_BYTES_ALWAYS;
}

/* Shape and Size need no values: they are computed here, without the evaluator. */
static bool evaluate_shape(const graph_node *node, const tensor *x, tensor *out)
{
    if (node->op == GRAPH_OP_SIZE) {
        *(int64_t *)out->data = tensor_count(x);
        return true;
    }
    if (node->op != GRAPH_OP_SHAPE)
        return false;
    int64_t start = graph_attribute_int(node, "start", 0);
    if (start < 0)
        start = start + x->rank < 0 ? 0 : start + x->rank;
    if (out->dims[0] > 0)
        memcpy(out->data, x->dims + start, (size_t)out->dims[0] * sizeof x->dims[0]);
    return true;
}

void specialise_open_folder(specialise_folder *f, const graph *source, const graph_budget *budget,
                            graph_evaluate_fn evaluate, arena *memory)
{
    *f = (specialise_folder){.evaluate = evaluate,
                             .memory = memory,
                             .budget = budget != NULL ? *budget : graph_budget_default};
    int64_t *limit = &f->budget.activation_bytes_max;
    for (int32_t v = 0; v < source->value_count; v++)
        for (int i = 0; source->values[v].constant != NULL && i < FOLD_GROWTH_MAX; i++)
            *limit = graph_cost_add(*limit, (int64_t)tensor_bytes(source->values[v].constant));
}

status specialise_evaluate(specialise_folder *f, const graph_node *node, const tensor *const *in,
                           tensor *outputs)
{
    status s;
    if (node->output_count == 1 && specialise_is_view(node, in, outputs)) {
        outputs[0].data = in[0]->data;
        return STATUS_OK;
    }
    if ((s = graph_cost_charge(&f->budget, node, in, outputs, &f->spent)))
        return s;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == GRAPH_NO_VALUE)
            continue;
        tensor shape = outputs[i];
        if ((s = tensor_allocate(&outputs[i], f->memory, shape.dtype, shape.rank, shape.dims)))
            return s;
    }
    if (evaluate_shape(node, in[0], &outputs[0]))
        return STATUS_OK;
    s = f->evaluate(node, in, outputs, f->budget.cancel);
    for (int i = 0; s && i < node->output_count; i++)
        outputs[i].data = NULL;
    return s;
}

void specialise_gather(const graph_node *node, const tensor *values, const tensor **in)
{
    for (int i = 0; i < node->input_count; i++)
        in[i] = node->inputs[i] == GRAPH_NO_VALUE ? NULL : &values[node->inputs[i]];
}

static bool is_constant_node(const graph *g, const graph_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != GRAPH_NO_VALUE && g->values[node->inputs[i]].constant == NULL)
            return false;
    return true;
}

/* Folds one node in place; false: it stays. */
static bool fold_node(graph *g, const graph_node *node, bool is_for_all, const tensor **in,
                      tensor *outputs, specialise_folder *f)
{
    if (!is_constant_node(g, node))
        return false;
    for (int i = 0; i < node->input_count; i++)
        in[i] = node->inputs[i] == GRAPH_NO_VALUE ? NULL : g->values[node->inputs[i]].constant;
    if (!is_for_all && specialise_is_transposed_matrix(node, in))
        return false;
    memset(outputs, 0, (size_t)node->output_count * sizeof outputs[0]);
    /* A node that does not fit its inputs stays, and is reported when the graph is specialised. */
    if (graph_infer_node(node, in, outputs) || !specialise_is_worth_folding(node, in, outputs))
        return false;
    status s = specialise_evaluate(f, node, in, outputs);
    tensor *constants =
        s ? NULL : arena_allocate(&g->memory, (size_t)node->output_count * sizeof constants[0]);
    if (s == STATUS_OUT_OF_MEMORY || (s == STATUS_OK && constants == NULL))
        graph_lack_memory(g);
    if (constants == NULL)
        return false;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == GRAPH_NO_VALUE)
            continue;
        graph_value *v = &g->values[node->outputs[i]];
        tensor *kept = &constants[i];
        *kept = outputs[i];
        v->constant = kept;
        v->producer = -1;
        v->dtype = kept->dtype;
        v->has_dtype = true;
        v->shape.rank = kept->rank;
        for (int d = 0; d < kept->rank; d++)
            v->shape.dims[d] = graph_dim_constant(kept->dims[d]);
    }
    return true;
}

static bool makes_output(const graph *g, const graph_node *node)
{
    for (int i = 0; i < node->output_count; i++)
        for (int k = 0; k < g->output_count; k++)
            if (node->outputs[i] == g->outputs[k])
                return true;
    return false;
}

/* False: nothing was folded. */
static bool fold(graph *g, bool is_for_all, const graph_budget *budget, graph_evaluate_fn evaluate)
{
    int widest = 1;
    specialise_folder f;
    specialise_open_folder(&f, g, budget, evaluate, &g->memory);
    for (int32_t n = 0; n < g->node_count; n++) {
        const graph_node *node = &g->nodes[n];
        widest = node->input_count > widest ? node->input_count : widest;
        widest = node->output_count > widest ? node->output_count : widest;
    }
    const tensor **in = calloc((size_t)widest, sizeof in[0]);
    tensor *outputs = calloc((size_t)widest, sizeof outputs[0]);
    int32_t kept = 0;
    if (in == NULL || outputs == NULL)
        graph_lack_memory(g);
    for (int32_t n = 0; in != NULL && outputs != NULL && n < g->node_count; n++) {
        graph_node node = g->nodes[n];
        /* Nodes that make graph outputs stay: a constant output would lose its name. */
        if (!makes_output(g, &node) && fold_node(g, &node, is_for_all, in, outputs, &f))
            continue;
        for (int i = 0; i < node.output_count; i++)
            if (node.outputs[i] != GRAPH_NO_VALUE)
                g->values[node.outputs[i]].producer = kept;
        g->nodes[kept++] = node;
    }
    bool is_changed = in != NULL && outputs != NULL && kept < g->node_count;
    if (is_changed)
        g->node_count = kept;
    free(in);
    free(outputs);
    return is_changed;
}

void graph_fold_constants(graph *g, const graph_budget *budget, graph_evaluate_fn evaluate)
{
    fold(g, false, budget, evaluate);
}

bool graph_fold_transposed(graph *g, const graph_budget *budget, graph_evaluate_fn evaluate)
{
    return fold(g, true, budget, evaluate);
}
