#ifndef GRAPH_STABLEHLO_OPERATORS_H
#define GRAPH_STABLEHLO_OPERATORS_H

#include "graph/stablehlo/text.h"

/* One function per operator family; private to graph/emit_*.c. A function writes the node's outputs
 * or returns STATUS_UNSUPPORTED with the reason (the driver adds node and operator). Shapes and
 * attributes were checked by graph_infer_node. */
typedef status (*emit_fn)(emitter *e, const graph_node *n);

/* Input `i` as an SSA value; it must be present. */
ssa emit_input(emitter *e, const graph_node *n, int i);
bool emit_has_input(const graph_node *n, int i);
/* Its constant, or NULL when it is computed or absent. */
const tensor *emit_constant(const emitter *e, const graph_node *n, int i);
void emit_output(emitter *e, const graph_node *n, int i, ssa v);
/* Type and shape the output must have. */
ssa emit_output_type(const emitter *e, const graph_node *n, int i);
/* A constant as a program argument, transformed. `axis` is that of output channels for the S8
 * transforms. */
ssa emit_weight(emitter *e, const tensor *constant, stablehlo_transform transform, int axis);
int emit_axis(const graph_node *n, const char *name, int64_t otherwise, int rank);

/* An integer list attribute, or `otherwise` everywhere. */
void emit_ints(const graph_node *n, const char *name, int count, int64_t otherwise, int64_t *out);
/* Low and high padding of each spatial dimension, from pads or auto_pad. */
void emit_window_pads(const graph_node *n, int spatial, const int64_t *in, const int64_t *out,
                      const int64_t *kernel, const int64_t *strides, const int64_t *dilations,
                      int64_t *low, int64_t *high);

emit_fn emit_find_elementwise(graph_op op);
emit_fn emit_find_shape(graph_op op);
emit_fn emit_find_dense(graph_op op);
emit_fn emit_find_reduce(graph_op op);
emit_fn emit_find_quantise(graph_op op);

#endif
