#include <string.h>

#include "graph/onnx/rewrite/rewrite.h"

/* Losses, composed of operators of opset 21. Models exported with their loss have them. */

typedef struct loss {
    bool has_ignored;
    int64_t ignored;
    const char *reduction;
} loss;

static graph_value_index zero_like(onnx_node *n, graph_value_index like)
{
    return onnx_binary(n, GRAPH_OP_CAST_LIKE, onnx_int(n, 0), like);
}

static graph_value_index where(onnx_node *n, graph_value_index condition, graph_value_index yes,
                               graph_value_index no)
{
    graph_value_index inputs[] = {condition, yes, no};
    return graph_add(n->graph, GRAPH_OP_WHERE, 3, inputs, 0, NULL);
}

/* Over all elements. */
static graph_value_index reduce(onnx_node *n, graph_op op, graph_value_index x)
{
    graph_attribute flat = graph_make_int("keepdims", 0);
    return graph_add(n->graph, op, 1, &x, 1, &flat);
}

static status pop_loss(onnx_node *n, loss *out)
{
    const graph_attribute *ignored = onnx_pop_attribute(n, "ignore_index");
    out->has_ignored = ignored != NULL;
    out->ignored = ignored != NULL ? ignored->i : 0;
    out->reduction = onnx_pop_string(n, "reduction", "mean");
    if (strcmp(out->reduction, "none") != 0 && strcmp(out->reduction, "sum") != 0 &&
        strcmp(out->reduction, "mean") != 0)
        return onnx_fail(n, STATUS_UNSUPPORTED, "reduction '%s'; supported: none, sum, mean",
                         out->reduction);
    return STATUS_OK;
}

/* -log_probabilities[target] * weight[target], and 0 where the target is ignored; then reduced. The
 * mean divides by the weights that count. Writes output 0. */
static void finish_loss(onnx_node *n, const loss *l, graph_value_index log_probabilities,
                        graph_value_index target, graph_value_index weights)
{
    graph_value_index one = onnx_int(n, 1), axis = onnx_ints(n, 1, &(int64_t){1});
    graph_value_index ignored = GRAPH_NO_VALUE;
    target = onnx_cast(n, target, dtype_to_onnx(DTYPE_I64));
    if (l->has_ignored) {
        ignored = onnx_binary(n, GRAPH_OP_EQUAL, target, onnx_int(n, l->ignored));
        target = where(n, ignored, onnx_int(n, 0), target);
    }
    graph_value_index gather[] = {log_probabilities,
                                  onnx_binary(n, GRAPH_OP_UNSQUEEZE, target, axis)};
    graph_attribute along = graph_make_int("axis", 1);
    graph_value_index found = graph_add(n->graph, GRAPH_OP_GATHER_ELEMENTS, 2, gather, 1, &along);
    found = onnx_unary(n, GRAPH_OP_NEG, onnx_binary(n, GRAPH_OP_SQUEEZE, found, axis));
    graph_value_index weight = GRAPH_NO_VALUE;
    if (weights != GRAPH_NO_VALUE)
        weight = onnx_binary(n, GRAPH_OP_GATHER, weights, target);
    else if (ignored != GRAPH_NO_VALUE)
        weight = onnx_binary(n, GRAPH_OP_CAST_LIKE, one, found);
    if (ignored != GRAPH_NO_VALUE)
        weight = where(n, ignored, zero_like(n, found), weight);
    if (weight != GRAPH_NO_VALUE)
        found = onnx_binary(n, GRAPH_OP_MUL, found, weight);
    if (ignored != GRAPH_NO_VALUE) /* also where the product is not a number */
        found = where(n, ignored, zero_like(n, found), found);
    if (strcmp(l->reduction, "none") == 0) {
        onnx_finish_as(n, found);
        return;
    }
    graph_op op = l->reduction[0] == 's' || weight != GRAPH_NO_VALUE ? GRAPH_OP_REDUCE_SUM
                                                                     : GRAPH_OP_REDUCE_MEAN;
    graph_value_index sum = reduce(n, op, found);
    if (l->reduction[0] == 's' || weight == GRAPH_NO_VALUE) {
        onnx_finish_as(n, sum);
        return;
    }
    graph_value_index inputs[] = {sum, reduce(n, GRAPH_OP_REDUCE_SUM, weight)};
    onnx_finish(n, GRAPH_OP_DIV, 2, inputs, 0, NULL);
}

status onnx_rewrite_nll_loss(onnx_node *n)
{
    loss l;
    status s = onnx_check_inputs(n, 2, 3);
    if (!s)
        s = pop_loss(n, &l);
    if (!s)
        finish_loss(n, &l, n->inputs[0], n->inputs[1], onnx_input(n, 2));
    return s;
}

status onnx_rewrite_softmax_loss(onnx_node *n)
{
    loss l;
    status s = onnx_check_inputs(n, 2, 3);
    if (!s)
        s = pop_loss(n, &l);
    if (s)
        return s;
    graph_attribute along = graph_make_int("axis", 1);
    graph_value_index logs = graph_add(n->graph, GRAPH_OP_LOG_SOFTMAX, 1, &n->inputs[0], 1, &along);
    if (onnx_has_output(n, 1))
        graph_add_node_to(n->graph, GRAPH_OP_IDENTITY, n->name, 1, &logs, 1, &n->outputs[1], 0,
                          NULL);
    finish_loss(n, &l, logs, n->inputs[1], onnx_input(n, 2));
    return STATUS_OK;
}
