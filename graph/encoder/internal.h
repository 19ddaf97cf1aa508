#ifndef GRAPH_ENCODER_INTERNAL_H
#define GRAPH_ENCODER_INTERNAL_H

#include "graph/encoder/encoder.h"
#include "graph/encoder/match.h"

/* What the encoder_*.c files share: one look at the graph, specialised for one (batch, length). */
typedef struct look {
    match m;
    const graph *source;   /* symbolic; its constants are borrowed by the encoder */
    int64_t batch, length; /* of this look */
    encoder *e;            /* being filled */
    bool has_mask_answer;  /* e->mask_input says what attention uses, -1 included */
    /* Only the relative bias of one layer is wanted, of a length at which buckets differ. */
    bool is_for_bias;
    graph_value_index
        counted_term;            /* in `source`, what becomes the constant of counted positions */
    const tensor *counted_table; /* the table it has rows of */
    uint64_t random;
} look;

/* Numbers that differ, for experiments: in [-1, 1). */
double look_random(look *l);
/* A new tensor of the value's type and shape in `memory`, of numbers in [-reach, reach); NULL when
 * memory is out. */
status look_random_tensor(look *l, arena *memory, graph_value_index v, double reach,
                          tensor *out) MUST_CHECK;
/* Zeros and ones for a [batch, length] input, with at least a one in each row; all ones when
 * `is_full`. */
status look_random_mask(look *l, arena *memory, graph_value_index v, bool is_full,
                        tensor *out) MUST_CHECK;
/* What rounding may cost in an experiment on values of this type, relative to 1. */
double look_tolerance(const look *l, graph_value_index v);
/* STATUS_UNSUPPORTED: "node "name" (Op): ..." for the node that makes `v`. */
status look_refuse(const look *l, graph_value_index v, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* encoder_linear.c: x @ weight + bias, as found. */
typedef struct found_linear {
    graph_value_index x;
    const tensor *weight, *bias; /* of any float type; bias may be NULL */
    bool is_transposed;
    double weight_scale, bias_scale; /* alpha and beta of Gemm */
} found_linear;
bool look_find_linear(const look *l, graph_value_index v, found_linear *out);
int64_t look_linear_columns(const found_linear *f);
int64_t look_linear_rows(const found_linear *f);
/* The linear as the encoder keeps it. columns[i] (or rows[i]) is the place in the found weight of
 * column (row) i; NULL: as they are. Everything is multiplied by `scale`. */
status look_keep_linear(look *l, const found_linear *f, int64_t column_count,
                        const int64_t *columns, const int64_t *rows, double scale,
                        encoder_linear *out) MUST_CHECK;
/* A float tensor as f32, its last `rank` dims (there are ones before): borrowed from the source
 * graph, or a copy in e->memory. */
status look_keep_tensor(look *l, const tensor *t, int rank, const tensor **out) MUST_CHECK;

/* encoder_norm.c: y = norm(x), fused or not. False: it is none. */
bool look_find_norm(look *l, graph_value_index y, graph_value_index *x, encoder_norm *out);

/* encoder_product.c: C = A x B of computed values, in stacks of rows and heads, by MatMul or
 * Einsum. A term names the dims of an operand in their order: r rows, h heads, m of A and C, n of B
 * and C, k summed over. */
typedef struct found_product {
    graph_value_index operands[2], result;
    char terms[3][5];
} found_product;
typedef struct product_sizes {
    int64_t of[5]; /* of r, h, m, n, k; or places along them */
} product_sizes;
typedef enum operand_place { PLACE_QUERIES, PLACE_KEYS, PLACE_VALUES } operand_place;
bool look_find_product(const look *l, graph_value_index v, found_product *out);
/* The same product said the other way round: A and B, m and n change places. */
void look_swap_product(found_product *p);
bool look_fits_product(const look *l, const found_product *p, product_sizes sizes);
int64_t look_product_offset(const char *term, product_sizes sizes, product_sizes at);

/* encoder_attention.c: `y` is the input of the output projection, [batch, length, hidden]. Fills
 * query, key, value of the layer; *x is what they read; rows[hidden] tells which element of y is
 * number i of the heads side by side. */
status look_attention(look *l, graph_value_index y, encoder_layer *layer, graph_value_index *x,
                      int64_t *rows) MUST_CHECK;

/* encoder_bias.c: `bias` is what attention adds to scores, [heads, length, length], or NULL. Every
 * layer must add the same: one table read by relative position. */
status look_relative_bias(look *l, graph_value_index scores, int64_t heads,
                          const double *bias) MUST_CHECK;

/* encoder_layer.c: all layers below `top`, from the last to the first; *x: what the first reads. */
status look_layers(look *l, graph_value_index top, graph_value_index *x) MUST_CHECK;

/* encoder_activation.c: the activation that makes `a` from the dense layer `up`. */
status look_activation(look *l, graph_value_index a, found_linear *up,
                       encoder_activation *out) MUST_CHECK;
/* The same for tanh as well, for heads: *out is an encoder_head_activation. */
status look_head_activation(look *l, graph_value_index a, found_linear *up,
                            encoder_head_activation *out) MUST_CHECK;

/* encoder_embeddings.c */
status look_embeddings(look *l, graph_value_index x) MUST_CHECK;

/* encoder_output.c: how output `v` is made from the hidden states `hidden`. */
status look_output(look *l, graph_value_index v, graph_value_index hidden,
                   encoder_output *out) MUST_CHECK;

/* Input `i` of the graph is what the encoder calls its mask: remembers it, or refuses a second. */
status look_take_mask(look *l, uint32_t inputs, graph_value_index asker) MUST_CHECK;

#endif
