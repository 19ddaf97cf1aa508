#ifndef GRAPH_BUILD_H
#define GRAPH_BUILD_H

#include "graph/graph.h"

/* Helpers for code that builds a graph: each adds one unnamed node with its constants and returns
 * its output. Like graph_add(), they are for the thread that owns the graph, and abort when memory
 * is out. (The ONNX importer names its nodes after those of the file:
 * graph/onnx/rewrite/rewrite.h.) */

graph_value_index graph_unary(graph *g, graph_op op, graph_value_index x);
graph_value_index graph_binary(graph *g, graph_op op, graph_value_index x, graph_value_index y);
graph_value_index graph_where(graph *g, graph_value_index condition, graph_value_index x,
                              graph_value_index y);
graph_value_index graph_cast(graph *g, graph_value_index x, dtype type);
graph_value_index graph_reshape(graph *g, graph_value_index x, int rank, const int64_t *dims);
graph_value_index graph_transpose(graph *g, graph_value_index x, int rank, const int64_t *order);
/* `op` is one of GRAPH_OP_REDUCE_*; the axis is removed, or becomes 1. */
graph_value_index graph_reduce(graph *g, graph_op op, graph_value_index x, int64_t axis,
                               bool keeps_dim);
/* The slices of `x` along `axis` that the integers `at` select. */
graph_value_index graph_gather(graph *g, graph_value_index x, graph_value_index at, int64_t axis);

/* Constants: a float, and a list of integers. */
graph_value_index graph_number(graph *g, float f);
graph_value_index graph_ints(graph *g, int count, const int64_t *ints);

#endif
