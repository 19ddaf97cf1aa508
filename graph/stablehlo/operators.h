#ifndef GRAPH_STABLEHLO_OPERATORS_H
#define GRAPH_STABLEHLO_OPERATORS_H

#include "graph/stablehlo/operand.h"

/* The operators by family, one file each; only the files of graph/stablehlo may include this. An
 * emit_fn writes the node's outputs, or returns STATUS_UNSUPPORTED with the reason (emit.c adds
 * node and operator). graph_infer_node() has checked shapes and attributes. */
typedef status (*emit_fn)(emitter *e, const graph_node *n);

/* The function of an operator, or NULL: it belongs to another family or is not supported. */
emit_fn emit_find_elementwise(graph_op op);
emit_fn emit_find_shape(graph_op op);
emit_fn emit_find_dense(graph_op op);
emit_fn emit_find_reduce(graph_op op);
emit_fn emit_find_quantise(graph_op op);

#endif
