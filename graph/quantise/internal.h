#ifndef GRAPH_QUANTISE_INTERNAL_H
#define GRAPH_QUANTISE_INTERNAL_H

#include "graph/quantise/fuse.h"

/* The state of one fusion pass. Only the files of graph/quantise may include this; everybody else
 * includes fuse.h. */

/* Where a value of rank 4 has its channels: [N,C,H,W] or [N,H,W,C]. */
typedef enum channel_layout { LAYOUT_FIRST, LAYOUT_LAST, LAYOUT_COUNT } channel_layout;

/* An int8 or uint8 tensor with the scale and zero point that its DequantizeLinear or QuantizeLinear
 * node gives it. The zero point is that of uint8: 128 more than the model's for int8. */
typedef struct quantised_tensor {
    graph_value_index value; /* of the source graph */
    float scale;
    int32_t zero;
} quantised_tensor;

/* A dense layer or a convolution, with the nodes that its epilogue absorbs. Values belong to the
 * source graph. */
typedef struct fused_layer {
    graph_op op;
    const graph_node *anchor; /* the MatMul, Gemm or Conv */
    graph_value_index x, weights, bias, residual, out;
    const tensor *weights_made, *bias_made; /* used instead of the values where not NULL */
    int32_t weights_shift;      /* to be added to each of the weights, which then exceed int8 */
    const tensor *weights_rest; /* where zero points differ and the weights exceed int8:
                                   weights_made + weights_rest are the weights, and the results of
                                   both are added; else NULL */
    const char *activation;     /* NULL: none */
    float a, b;                 /* its parameters, where it has them */
    float scale, shift;         /* of its result, where `is_late` */
    bool is_late;               /* of kernels/activation.h: computed behind the GEMM */
    bool adds_last;             /* the residual is added to the result of the activation */
    bool is_transposed;         /* of Dense */
    bool is_quantised, has_quantised_result;
    quantised_tensor x_is, y_is;                /* `value` not used */
    graph_value_index x_scale, x_zero, w_scale; /* where the model computes them; where it does
                                                   not: x_is, and */
    const tensor *w_scale_is;                   /* this */
} fused_layer;

/* A sum of two quantised tensors that is quantised again. */
typedef struct fused_sum {
    quantised_tensor a, b, y;
    bool has_relu;
} fused_sum;

/* What becomes of a node of the source graph. */
typedef struct fusion_role {
    bool is_absorbed; /* computed by another node */
    fused_layer *layer;
    fused_sum *sum;
    graph_value_index moved; /* of a QuantizeLinear that keeps the scale of what the node before it
                                moves: the uint8 value that is moved, or GRAPH_NO_VALUE */
    bool is_silu;            /* the product of x * Sigmoid(x), where x is of no layer */
} fusion_role;

typedef struct fusion {
    const graph *g;
    graph *made;
    graph_value_index (*made_values)[LAYOUT_COUNT]; /* by value of g: its copies in `made` */
    int32_t *uses;                                  /* by value: how many readers */
    int32_t *first_reader, *reader; /* by value: the first and the last of them, or -1 */
    bool *is_shifted;               /* by value: an int8 tensor kept as uint8 */
    fusion_role *roles;             /* by node */
    fused_facts facts;
} fusion;

/* match.c: fills uses, reader, is_shifted and roles. */
status fusion_match(fusion *w) MUST_CHECK;

/* shift.c: fills is_shifted. */
void fusion_find_shifted(fusion *w);

/* layer.c: each function recognises one kind of layer at node `at` and records it in the role of
 * the last node that the layer absorbs; no layer: nothing changes. Error: STATUS_OUT_OF_MEMORY. */
/* Conv, ConvTranspose, MatMul, Gemm. */
status fusion_match_layer(fusion *w, int32_t at) MUST_CHECK;
/* Whether the node is a QLinearConv or QLinearMatMul that becomes a layer, of int8 weights without
 * zero points: its int8 activations may be kept as uint8. */
bool fusion_is_qlinear_layer(const fusion *w, const graph_node *n);
/* MatMulInteger, ConvInteger. */
status fusion_match_dynamic_layer(fusion *w, int32_t at) MUST_CHECK;
/* QLinearConv, QLinearMatMul. */
status fusion_match_qlinear_layer(fusion *w, int32_t at) MUST_CHECK;

/* The output channels of the layer at `n`. */
int64_t fusion_layer_width(const fusion *w, const graph_node *n);
/* The floats of a constant, or of a constant behind DequantizeLinear; NULL otherwise. */
const tensor *fusion_float_constant(fusion *w, graph_value_index v);
/* False when `v` is no constant that can be the layer's bias. */
bool fusion_set_bias(fusion *w, fused_layer *l, graph_value_index v);

/* epilogue.c: absorbs the nodes behind l->out that an epilogue can compute; `last` is the layer's
 * last node so far. Returns the last of all. */
int32_t fusion_absorb_epilogue(fusion *w, fused_layer *l, int32_t last);

/* query.c */
/* The node that makes `v`, or NULL. */
const graph_node *fusion_producer(const fusion *w, graph_value_index v);
dtype fusion_type(const fusion *w, graph_value_index v);
/* NULL when it is none, or `v` is GRAPH_NO_VALUE. */
const tensor *fusion_constant(const fusion *w, graph_value_index v);
int64_t fusion_dim(const fusion *w, graph_value_index v, int axis);
int fusion_rank(const fusion *w, graph_value_index v);
int64_t fusion_count(const fusion *w, graph_value_index v);
/* The scale and zero point of a QuantizeLinear or DequantizeLinear node that has one constant scale
 * for its whole tensor; false otherwise. */
bool fusion_read_parameters(const fusion *w, const graph_node *n, quantised_tensor *out);
/* The quantised tensor that DequantizeLinear makes `v` from; false when there is none, or when it
 * is not kept as uint8. */
bool fusion_find_uint8(const fusion *w, graph_value_index v, quantised_tensor *out);
/* Whether the operator only moves elements, or takes the largest, so that the scale stays. */
bool fusion_is_move(const graph_node *n);

/* layout.c: writes the nodes of `made`. */
status fusion_emit(fusion *w) MUST_CHECK;
/* The value of the made graph for `v` in that layout; writes what is missing. */
graph_value_index fusion_get_value(fusion *w, graph_value_index v, channel_layout layout);
/* A node that computes `v` in that layout. Inputs are values of the made graph. */
graph_value_index fusion_write_node(fusion *w, graph_op op, const char *name, int input_count,
                                    const graph_value_index *inputs, graph_value_index v,
                                    channel_layout layout, int attribute_count,
                                    const graph_attribute *attributes);
/* Type and dims of `v` in that layout for value `at` of the made graph. */
void fusion_describe(fusion *w, graph_value_index at, graph_value_index v, channel_layout layout);
/* Computed with the channels last, and so far only there. */
bool fusion_is_only_last(const fusion *w, graph_value_index v);

/* channels_last.c: whether a node that is not fused runs with the channels last because its inputs
 * are there; and writes it so. */
bool fusion_runs_last(const fusion *w, const graph_node *n);
status fusion_write_last(fusion *w, const graph_node *n) MUST_CHECK;
/* Operators that treat every element alike. */
bool fusion_is_elementwise(graph_op op);

#endif
