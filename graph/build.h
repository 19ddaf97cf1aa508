#ifndef GRAPH_BUILD_H
#define GRAPH_BUILD_H

#include "graph/graph.h"

/* Nodes without a name, for code that builds a graph of its own: each adds one, its constants
 * included, and gives its value. As graph_add, the owner of the graph alone may call these, and
 * nothing fails. (The importer names its nodes after those it reads: graph/onnx/rewrite/rewrite.h.)
 */

graph_value_index graph_unary(graph *g, graph_op op, graph_value_index x);
graph_value_index graph_binary(graph *g, graph_op op, graph_value_index x, graph_value_index y);
graph_value_index graph_where(graph *g, graph_value_index condition, graph_value_index x,
                              graph_value_index y);
graph_value_index graph_cast(graph *g, graph_value_index x, dtype type);
graph_value_index graph_reshape(graph *g, graph_value_index x, int rank, const int64_t *dims);
graph_value_index graph_transpose(graph *g, graph_value_index x, int rank, const int64_t *order);
/* `op` is one of GRAPH_OP_REDUCE_*; the axis goes, or becomes 1. */
graph_value_index graph_reduce(graph *g, graph_op op, graph_value_index x, int64_t axis,
                               bool keeps_dim);
/* Slices of `x` along `axis`, as the integers `at` say. */
graph_value_index graph_gather(graph *g, graph_value_index x, graph_value_index at, int64_t axis);

/* Constants: a float, and a list of integers. */
graph_value_index graph_number(graph *g, float f);
graph_value_index graph_ints(graph *g, int count, const int64_t *ints);

#endif
