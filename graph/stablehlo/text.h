#ifndef GRAPH_STABLEHLO_TEXT_H
#define GRAPH_STABLEHLO_TEXT_H

#include <stdarg.h>

#include "graph/graph.h"
#include "graph/stablehlo/program.h"

/* Writes StableHLO text: one function per target operator; each returns the new SSA value with its
 * type. Syntax: the pretty forms of the StableHLO specification, as JAX prints them. Only the files
 * of graph/stablehlo may include this. */

/* An SSA value: "%number", and what it is. Rank 0 to TENSOR_RANK_MAX. */
typedef struct ssa {
    int number;
    dtype dtype;
    int rank;
    int64_t dims[TENSOR_RANK_MAX];
} ssa;

/* Numbers of arguments start here, those of the body's values at 1: the count of arguments is known
 * only at the end. */
#define STABLEHLO_ARGUMENT_NUMBER 1000000

typedef struct emitter {
    const graph *graph;
    stablehlo_precision precision;
    stablehlo_options options; /* the forms are those of FP32 where the precision is */
    stablehlo_program *program;
    char *body; /* text so far, malloc'd */
    size_t body_bytes, body_capacity;
    int last_number;
    ssa *values; /* by graph value; number 0: not emitted yet */
    /* By graph value: what it must still be divided by, number 0: nothing. A softmax leaves that to
     * the matrix multiplication that reads it, which is its only reader. */
    ssa *divisors;
    /* By graph value: the Transpose of a constant matrix that makes it, or NULL. A product reads
     * the matrix as it is stored; the node is emitted when something else wants its result. */
    const graph_node **transposed_weights;
    int argument_capacity;
} emitter;

void stablehlo_append(emitter *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "tensor<2x3xf32>" of that type. */
void stablehlo_append_type(emitter *e, const ssa *v);

ssa ssa_of(dtype type, int rank, const int64_t *dims);
int64_t ssa_count(const ssa *v);

/* %new = stablehlo.<op> %a[, %b] : <type of result>, for operators whose operands and result have
 * the same type. */
ssa hlo_unary(emitter *e, const char *op, ssa a);
ssa hlo_binary(emitter *e, const char *op, ssa a, ssa b);
/* direction: EQ NE LT LE GT GE. Result is BOOL. */
ssa hlo_compare(emitter *e, const char *direction, ssa a, ssa b);
ssa hlo_select(emitter *e, ssa condition, ssa yes, ssa no);
ssa hlo_convert(emitter *e, ssa a, dtype type);
/* Every element is `value`. */
ssa hlo_splat(emitter *e, dtype type, int rank, const int64_t *dims, double value);
ssa hlo_splat_like(emitter *e, const ssa *like, double value);
/* A small constant, written into the text. */
ssa hlo_literal(emitter *e, const tensor *t);
/* broadcast_in_dim: dimension i of `a` becomes dimension map[i]. */
ssa hlo_broadcast(emitter *e, ssa a, int rank, const int64_t *dims, const int *map);
/* numpy broadcasting: dimensions aligned at the right. */
ssa hlo_broadcast_to(emitter *e, ssa a, int rank, const int64_t *dims);
/* A vector along dimension `axis` of a tensor shaped like `like`. */
ssa hlo_broadcast_along(emitter *e, ssa vector, const ssa *like, int axis);
ssa hlo_reshape(emitter *e, ssa a, int rank, const int64_t *dims);
ssa hlo_transpose(emitter *e, ssa a, const int *permutation);
ssa hlo_slice(emitter *e, ssa a, const int64_t *starts, const int64_t *limits,
              const int64_t *strides);
ssa hlo_concatenate(emitter *e, int count, const ssa *parts, int axis);
ssa hlo_reverse(emitter *e, ssa a, int axis);
ssa hlo_iota(emitter *e, dtype type, int rank, const int64_t *dims, int axis);
/* `low` and `high` may be negative. */
ssa hlo_pad(emitter *e, ssa a, double value, const int64_t *low, const int64_t *high);
/* op: add, maximum, minimum, multiply, and, or. The reduced dimensions are dropped. */
ssa hlo_reduce(emitter *e, const char *op, ssa a, double start, const bool *is_reduced);
/* The same; the reduced dimensions are kept with size 1. */
ssa hlo_reduce_keep(emitter *e, const char *op, ssa a, double start, const bool *is_reduced);
ssa hlo_reduce_window(emitter *e, const char *op, ssa a, double start, const int64_t *window,
                      const int64_t *strides, const int64_t *dilations, const int64_t *low,
                      const int64_t *high);
/* Batch dimensions first and equal in both; result [batch..., rest of a, rest of b] of type
 * `result`. */
ssa hlo_dot(emitter *e, ssa a, ssa b, int batch_count, int contract_a, int contract_b,
            dtype result);

/* The same with any dimensions: batch and contracting ones in pairs. Result [batch..., rest of a,
 * rest of b], each in the order of its operand. */
typedef struct hlo_pairs {
    int count;
    int64_t a[TENSOR_RANK_MAX], b[TENSOR_RANK_MAX];
} hlo_pairs;
ssa hlo_dot_general(emitter *e, ssa a, ssa b, const hlo_pairs *batch, const hlo_pairs *contract,
                    dtype result);

/* A binary operator with numpy broadcasting. */
ssa hlo_broadcast_binary(emitter *e, const char *op, ssa a, ssa b);
/* Brings both to their common broadcast shape. */
void hlo_broadcast_pair(emitter *e, ssa *a, ssa *b);

/* x [N,C,spatial...] by w [M,C/groups,kernel...] to `type`. */
typedef struct hlo_window {
    int64_t strides[TENSOR_RANK_MAX], dilations[TENSOR_RANK_MAX], low[TENSOR_RANK_MAX],
        high[TENSOR_RANK_MAX]; /* by spatial dimension */
} hlo_window;
ssa hlo_convolution(emitter *e, ssa x, ssa w, const hlo_window *window, int64_t groups, ssa type);
/* x gathered to `type` by `indices`, whose dimension `index_dim` holds coordinates along the
 * `collapsed` dimensions of x. `offsets`: dimensions of the result that come from slices. */
typedef struct hlo_gather_dims {
    int index_dim, collapsed_count, offset_count;
    const int64_t *collapsed, *offsets, *slice_sizes; /* slice_sizes: x.rank of them */
} hlo_gather_dims;
ssa hlo_gather(emitter *e, ssa x, ssa indices, const hlo_gather_dims *dims, ssa type);

/* The same value, computed before whatever reads it: compilers fuse nothing across it. */
ssa hlo_barrier(emitter *e, ssa a);

/* Composites. x is float. */
ssa hlo_scalar_binary(emitter *e, const char *op, ssa a, double b); /* op(a, b) */
ssa hlo_erf(emitter *e, ssa x);
ssa hlo_clamp(emitter *e, ssa x, double low, double high);

#endif
