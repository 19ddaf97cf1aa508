#ifndef GRAPH_ENCODER_INTERNAL_H
#define GRAPH_ENCODER_INTERNAL_H

#include "graph/encoder/encoder.h"
#include "graph/encoder/match.h"

/* The state of encoder_recognise(), and what its parts call of each other. Only the files of
 * graph/encoder may include this; everybody else includes encoder.h. The parts read the graph from
 * its outputs back to its inputs:
 * output, layer, norm, activation, attention (matmul, bias), linear, embeddings. */

typedef struct encoder_recogniser {
    match m;             /* the graph, specialised for one (batch, length) */
    const graph *source; /* symbolic; its constants are borrowed by the encoder */
    const graph_budget *budget;
    graph_evaluate_fn evaluate;
    int64_t batch, length;
    encoder *e;         /* being filled */
    bool is_mask_known; /* e->mask_input is final; -1: attention uses no mask */
    bool is_for_bias;   /* read only the relative bias of the last layer, at a longer length */
    graph_value_index counted_term; /* in `source`: what becomes the constant position embeddings */
    const tensor *counted_table;    /* the table that has their rows */
    uint64_t random;                /* of xorshift64_next() */
} encoder_recogniser;

/* A pseudo-random number in [-1, 1). */
double recogniser_draw_number(encoder_recogniser *r);
/* A new tensor of the value's type and shape in `memory`, of numbers in [-reach, reach).
 * STATUS_OUT_OF_MEMORY. */
status recogniser_draw_tensor(encoder_recogniser *r, arena *memory, graph_value_index v,
                              double reach, tensor *out) MUST_CHECK;
/* Zeros and ones for a [batch, length] input, at least one 1 in each row; all ones when `is_full`.
 */
status recogniser_draw_mask(encoder_recogniser *r, arena *memory, graph_value_index v, bool is_full,
                            tensor *out) MUST_CHECK;
/* The error that rounding may cause in an experiment on values of this type, relative to 1. */
double recogniser_tolerance(const encoder_recogniser *r, graph_value_index v);
/* Returns STATUS_UNSUPPORTED with the message "node "name" (Op): ..." for the node that makes `v`.
 */
status recogniser_reject(const encoder_recogniser *r, graph_value_index v, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Records that `reader` reads graph inputs `inputs` (bits) as its mask. Rejects the graph when they
 * are not one input, or not the one that other parts use. */
status recogniser_set_mask(encoder_recogniser *r, uint32_t inputs,
                           graph_value_index reader) MUST_CHECK;

/* linear.c: x @ weight + bias, as found. */
typedef struct found_linear {
    graph_value_index x;
    const tensor *weight, *bias; /* of any float type; bias may be NULL */
    bool is_transposed;
    double weight_scale, bias_scale; /* alpha and beta of Gemm */
} found_linear;
bool recogniser_find_linear(const encoder_recogniser *r, graph_value_index v, found_linear *out);
int64_t found_linear_columns(const found_linear *f);
int64_t found_linear_rows(const found_linear *f);
/* Stores the layer in the encoder's form. columns[i] (rows[i]) is the column (row) of the found
 * weight that becomes number i; NULL: as they are. Everything is multiplied by `scale`. */
status recogniser_keep_linear(encoder_recogniser *r, const found_linear *f, int64_t column_count,
                              const int64_t *columns, const int64_t *rows, double scale,
                              encoder_linear *out) MUST_CHECK;
/* Stores a float tensor as f32, its last `rank` dims (those before are 1): borrowed from the source
 * graph where it lies there as f32, otherwise a copy in e->memory. */
status recogniser_keep_tensor(encoder_recogniser *r, const tensor *t, int rank,
                              const tensor **out) MUST_CHECK;

/* norm.c: y = norm(x), as LayerNormalization or as single operators. False: `y` is none. */
bool recogniser_find_norm(encoder_recogniser *r, graph_value_index y, graph_value_index *x,
                          encoder_norm *out);

/* matmul.c: C = A x B of computed values, batched over rows and heads, by MatMul or Einsum. A term
 * names the dims of A, B and C in their order: r rows, h heads, m of A and C, n of B and C, k
 * summed over. */
typedef struct found_matmul {
    graph_value_index operands[2], result;
    char terms[3][5];
} found_matmul;
typedef struct matmul_sizes {
    int64_t of[5]; /* of r, h, m, n, k; or indices along them */
} matmul_sizes;
typedef enum operand_place { PLACE_QUERIES, PLACE_KEYS, PLACE_VALUES } operand_place;
bool recogniser_find_matmul(const encoder_recogniser *r, graph_value_index v, found_matmul *out);
/* The same result with A and B exchanged, and so m and n. */
void found_matmul_swap(found_matmul *p);
bool recogniser_fits_matmul(const encoder_recogniser *r, const found_matmul *p, matmul_sizes sizes);
int64_t matmul_offset(const char *term, matmul_sizes sizes, matmul_sizes at);

/* attention.c: `y` is the input of the output projection, [batch, length, hidden]. Fills query, key
 * and value of the layer; *x is what they read; rows[i] is the element of y that holds number i of
 * the concatenated heads. */
status recogniser_read_attention(encoder_recogniser *r, graph_value_index y, encoder_layer *layer,
                                 graph_value_index *x, int64_t *rows) MUST_CHECK;

/* bias.c: `bias` is what attention adds to scores, [heads, length, length], or NULL. Every layer
 * must add the same: one table read by relative position. */
status recogniser_read_relative_bias(encoder_recogniser *r, graph_value_index scores, int64_t heads,
                                     const double *bias) MUST_CHECK;

/* layer.c: all layers below `top`, from the last to the first; *x: what the first reads. */
status recogniser_read_layers(encoder_recogniser *r, graph_value_index top,
                              graph_value_index *x) MUST_CHECK;

/* activation.c: the activation that makes `a` from the dense layer `up`. */
status recogniser_read_activation(encoder_recogniser *r, graph_value_index a, found_linear *up,
                                  encoder_activation *out) MUST_CHECK;
/* The same for the activations of heads. */
status recogniser_read_head_activation(encoder_recogniser *r, graph_value_index a, found_linear *up,
                                       encoder_head_activation *out) MUST_CHECK;

/* embeddings.c: the sum of embeddings `x`, with the norm and the projection behind it. */
status recogniser_read_embeddings(encoder_recogniser *r, graph_value_index x) MUST_CHECK;

/* output.c: how output `v` is made from the hidden states `hidden`. */
status recogniser_read_output(encoder_recogniser *r, graph_value_index v, graph_value_index hidden,
                              encoder_output *out) MUST_CHECK;

#endif
