#ifndef GRAPH_STABLEHLO_OPERAND_H
#define GRAPH_STABLEHLO_OPERAND_H

#include "graph/stablehlo/text.h"

/* Inputs, outputs and attributes of a node, for the operators of graph/stablehlo, which alone may
 * include this. */

/* Adds graph input `i` to the program's arguments. */
void emit_graph_input(emitter *e, int i);
/* Argument `i` of the program. */
ssa emit_argument(const emitter *e, int i);
/* A value that is an input, a constant or already emitted. */
ssa emit_value(emitter *e, graph_value_index v);
/* Its type and shape; number 0. */
ssa emit_value_type(const emitter *e, graph_value_index v);

/* Input `i` as an SSA value; it must be present. */
ssa emit_input(emitter *e, const graph_node *n, int i);
bool emit_has_input(const graph_node *n, int i);
/* The constant that input `i` is, or NULL when it is computed or absent. */
const tensor *emit_constant(const emitter *e, const graph_node *n, int i);
/* The same, where input `i` is the transpose of a constant matrix: the matrix as it is stored. */
const tensor *emit_transposed_constant(const emitter *e, const graph_node *n, int i);
/* True if `n` transposes a constant matrix: it is kept until something wants its result. */
bool emit_defer_transpose(emitter *e, const graph_node *n);
void emit_output(emitter *e, const graph_node *n, int i, ssa v);
/* Type and shape that output `i` must have. */
ssa emit_output_type(const emitter *e, const graph_node *n, int i);
/* A constant as a program argument, transformed. `axis` is that of output channels for the S8
 * transforms. */
ssa emit_weight(emitter *e, const tensor *constant, stablehlo_transform transform, int axis);
/* The same for x whose channels are rounded so; NULL: emit_weight(). */
ssa emit_weight_for(emitter *e, const tensor *constant, stablehlo_transform transform, int axis,
                    const quantise_channels *channels);
/* An f32 value rounded to bf16, which a device may then store so. */
ssa emit_rounded(emitter *e, ssa v);
/* The same, stored so before its readers are computed. */
ssa emit_rounded_apart(emitter *e, ssa v);
/* The axis attribute `name`; negative axes count from the end. */
int emit_axis(const graph_node *n, const char *name, int64_t otherwise, int rank);

/* An integer list attribute, or `otherwise` everywhere. */
void emit_ints(const graph_node *n, const char *name, int count, int64_t otherwise, int64_t *out);
/* Low and high padding of each spatial dimension, from pads or auto_pad (ONNX Conv). */
void emit_window_pads(const graph_node *n, int spatial, const int64_t *in, const int64_t *out,
                      const int64_t *kernel, const int64_t *strides, const int64_t *dilations,
                      int64_t *low, int64_t *high);

#endif
