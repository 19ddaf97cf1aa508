#include <string.h>

#include "graph/onnx/rewrite/rewrite.h"

/* post_transform of ai.onnx.ml: what becomes of rows of scores. Source: onnx/docs/Operators-ml.md,
 * and ONNX Runtime where it is silent. */

status onnx_read_transform(onnx_node *n, onnx_transform *out)
{
    static const char *const names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"};
    const char *name = onnx_pop_string(n, "post_transform", "NONE");
    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (onnx_transform)i;
            return STATUS_OK;
        }
    return onnx_fail(n, STATUS_UNSUPPORTED,
                     "post_transform '%s'; supported: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO", name);
}

/* exp(x - max) / sum of each row, where elements at zero stay zero. */
static graph_value_index softmax_zero(onnx_node *n, graph_value_index x)
{
    int64_t last = -1;
    graph_value_index axis = onnx_ints(n, 1, &last), least = onnx_float_like(n, 1e-7f, x);
    graph_value_index high = onnx_binary(n, GRAPH_OP_REDUCE_MAX, x, axis);
    graph_value_index e = onnx_unary(n, GRAPH_OP_EXP, onnx_binary(n, GRAPH_OP_SUB, x, high));
    graph_value_index is_there =
        onnx_binary(n, GRAPH_OP_GREATER, onnx_unary(n, GRAPH_OP_ABS, x), least);
    graph_value_index choose[] = {is_there, e, onnx_float_like(n, 0, x)};
    e = graph_add(n->graph, GRAPH_OP_WHERE, 3, choose, 0, NULL);
    return onnx_binary(n, GRAPH_OP_DIV, e, onnx_binary(n, GRAPH_OP_REDUCE_SUM, e, axis));
}

graph_value_index onnx_apply_transform(onnx_node *n, onnx_transform t, graph_value_index x)
{
    graph_attribute axis = graph_make_int("axis", -1);
    switch (t) {
    case ONNX_TRANSFORM_SOFTMAX:
        return graph_add(n->graph, GRAPH_OP_SOFTMAX, 1, &x, 1, &axis);
    case ONNX_TRANSFORM_LOGISTIC:
        return onnx_unary(n, GRAPH_OP_SIGMOID, x);
    case ONNX_TRANSFORM_SOFTMAX_ZERO:
        return softmax_zero(n, x);
    default:
        return x;
    }
}

graph_value_index onnx_join_columns(onnx_node *n, graph_value_index a, graph_value_index b)
{
    graph_attribute axis = graph_make_int("axis", 1);
    graph_value_index inputs[] = {a, b};
    return graph_add(n->graph, GRAPH_OP_CONCAT, 2, inputs, 1, &axis);
}

graph_value_index onnx_is_above(onnx_node *n, graph_value_index scores, int64_t column, float limit)
{
    graph_attribute axis = graph_make_int("axis", 1);
    graph_value_index inputs[] = {scores, onnx_int(n, column)};
    graph_value_index x = graph_add(n->graph, GRAPH_OP_GATHER, 2, inputs, 1, &axis);
    return onnx_cast(n, onnx_binary(n, GRAPH_OP_GREATER, x, onnx_float(n, limit)),
                     dtype_to_onnx(DTYPE_I64));
}

graph_value_index onnx_best_column(onnx_node *n, graph_value_index scores)
{
    graph_attribute along[] = {graph_make_int("axis", 1), graph_make_int("keepdims", 0)};
    return graph_add(n->graph, GRAPH_OP_ARG_MAX, 1, &scores, 2, along);
}

void onnx_finish_classes(onnx_node *n, graph_value_index labels, graph_value_index index,
                         onnx_transform t, graph_value_index scores)
{
    graph_value_index inputs[] = {labels, index};
    if (onnx_has_output(n, 0))
        graph_add_node_to(n->graph, GRAPH_OP_GATHER, n->name, 2, inputs, 1, &n->outputs[0], 0,
                          NULL);
    if (onnx_has_output(n, 1)) {
        scores = onnx_apply_transform(n, t, scores);
        graph_add_node_to(n->graph, GRAPH_OP_IDENTITY, n->name, 1, &scores, 1, &n->outputs[1], 0,
                          NULL);
    }
    n->is_emitted = true;
}
