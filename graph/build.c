#include "graph/build.h"

graph_value_index graph_unary(graph *g, graph_op op, graph_value_index x)
{
    return graph_add(g, op, 1, &x, 0, NULL);
}

graph_value_index graph_binary(graph *g, graph_op op, graph_value_index x, graph_value_index y)
{
    graph_value_index inputs[] = {x, y};
    return graph_add(g, op, 2, inputs, 0, NULL);
}

graph_value_index graph_where(graph *g, graph_value_index condition, graph_value_index x,
                              graph_value_index y)
{
    graph_value_index inputs[] = {condition, x, y};
    return graph_add(g, GRAPH_OP_WHERE, 3, inputs, 0, NULL);
}

graph_value_index graph_cast(graph *g, graph_value_index x, dtype type)
{
    graph_attribute to = graph_make_int("to", dtype_to_onnx(type));
    return graph_add(g, GRAPH_OP_CAST, 1, &x, 1, &to);
}

graph_value_index graph_reshape(graph *g, graph_value_index x, int rank, const int64_t *dims)
{
    return graph_binary(g, GRAPH_OP_RESHAPE, x, graph_ints(g, rank, dims));
}

graph_value_index graph_transpose(graph *g, graph_value_index x, int rank, const int64_t *order)
{
    graph_attribute perm = graph_make_ints(g, "perm", (size_t)rank, order);
    return graph_add(g, GRAPH_OP_TRANSPOSE, 1, &x, 1, &perm);
}

graph_value_index graph_reduce(graph *g, graph_op op, graph_value_index x, int64_t axis,
                               bool keeps_dim)
{
    graph_value_index inputs[] = {x, graph_ints(g, 1, &axis)};
    graph_attribute keep = graph_make_int("keepdims", keeps_dim);
    return graph_add(g, op, 2, inputs, 1, &keep);
}

graph_value_index graph_gather(graph *g, graph_value_index x, graph_value_index at, int64_t axis)
{
    graph_value_index inputs[] = {x, at};
    graph_attribute a = graph_make_int("axis", axis);
    return graph_add(g, GRAPH_OP_GATHER, 2, inputs, 1, &a);
}

graph_value_index graph_number(graph *g, float f)
{
    return graph_add_constant_f32(g, NULL, 0, NULL, &f);
}

graph_value_index graph_ints(graph *g, int count, const int64_t *ints)
{
    int64_t length = count;
    return graph_add_constant_i64(g, NULL, 1, &length, ints);
}
