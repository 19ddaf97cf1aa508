#ifndef GRAPH_QUANTISE_INTERNAL_H
#define GRAPH_QUANTISE_INTERNAL_H

#include "graph/quantise/fuse.h"

/* What the quantised*.c files share. "First" and "last" say where the channels are. */

typedef enum quantised_layout { LAYOUT_FIRST, LAYOUT_LAST, LAYOUT_COUNT } quantised_layout;

/* A tensor of bytes with the scale and zero point that its DequantizeLinear or QuantizeLinear node
 * gives it; the zero point is that of u8. */
typedef struct quantised_tensor {
    graph_value_index bytes; /* of the source */
    float scale;
    int32_t zero;
} quantised_tensor;

/* A product and the nodes that its epilogue takes over. Values are the source's. */
typedef struct quantised_product {
    graph_op op;
    const graph_node *anchor;
    graph_value_index x, weights, bias, residual, out;
    const tensor *weights_made, *bias_made; /* instead of the values, where not NULL */
    const tensor *weights_rest; /* what weights_made lacks of weights beyond i8, or NULL: x is
                                   multiplied by both, and the products are added */
    const char *activation;     /* NULL: none */
    bool is_transposed;         /* of Dense */
    bool is_quantised, has_quantised_result;
    quantised_tensor x_is, y_is;                /* `bytes` not used */
    graph_value_index x_scale, x_zero, w_scale; /* when they are computed; else */
    const tensor *w_scale_is;                   /* x_is, and this */
} quantised_product;

/* A sum of two quantised tensors that is quantised again. */
typedef struct quantised_sum {
    quantised_tensor a, b, y;
    bool has_relu;
} quantised_sum;

/* What becomes of a node. */
typedef struct quantised_role {
    bool is_absorbed; /* computed by another node */
    quantised_product *product;
    quantised_sum *sum;
    graph_value_index moved; /* QuantizeLinear of moved bytes with the same scale: the bytes that
                                the node before moves, or GRAPH_NO_VALUE */
} quantised_role;

typedef struct quantised_work {
    const graph *g;
    graph *made;
    graph_value_index (*forms)[LAYOUT_COUNT]; /* by value of g: the values of `made` */
    int32_t *uses, *reader;                   /* by value: how many readers, and the last of them */
    bool *is_shifted;                         /* by value: i8 kept as u8 */
    quantised_role *roles;                    /* by node */
    fused_facts facts;
} quantised_work;

/* quantised_match.c: fills uses, reader, is_shifted and roles. */
status quantised_match(quantised_work *w) MUST_CHECK;

/* quantised_shift.c: fills is_shifted. */
void quantised_find_shifted(quantised_work *w);

/* quantised_product.c: each looks at one node of its kind, and gives the last node that the product
 * takes over a role; nothing where it is another thing. STATUS_OUT_OF_MEMORY. */
/* Conv, MatMul, Gemm. */
status quantised_match_product(quantised_work *w, int32_t at) MUST_CHECK;
/* MatMulInteger, ConvInteger. */
status quantised_match_dynamic(quantised_work *w, int32_t at) MUST_CHECK;
/* QLinearConv, QLinearMatMul. */
status quantised_match_qlinear(quantised_work *w, int32_t at) MUST_CHECK;

/* quantised_ask.c */
/* The node that makes `v`, or NULL. */
const graph_node *quantised_producer(const quantised_work *w, graph_value_index v);
dtype quantised_type(const quantised_work *w, graph_value_index v);
/* NULL when it is none, or `v` is GRAPH_NO_VALUE. */
const tensor *quantised_constant(const quantised_work *w, graph_value_index v);
int64_t quantised_dim(const quantised_work *w, graph_value_index v, int axis);
int quantised_rank(const quantised_work *w, graph_value_index v);
int64_t quantised_count(const quantised_work *w, graph_value_index v);
/* The scale and zero point of a QuantizeLinear or DequantizeLinear node that has one constant scale
 * for its whole tensor; false otherwise. */
bool quantised_parameters(const quantised_work *w, const graph_node *n, quantised_tensor *out);
/* The bytes that DequantizeLinear makes `v` from; false when there are none, or not as u8. */
bool quantised_bytes_of(const quantised_work *w, graph_value_index v, quantised_tensor *out);

/* Does the operator only move bytes, or take the largest, so that the scale stays? */
bool quantised_is_move(const graph_node *n);

/* quantised_layout.c: writes the nodes of `made`. */
status quantised_emit(quantised_work *w) MUST_CHECK;

#endif
