#ifndef GRAPH_SPECIALISE_INTERNAL_H
#define GRAPH_SPECIALISE_INTERNAL_H

#include "graph/specialise/specialise.h"

/* What the specialise_*.c files share. */

/* A constant up to this size is folded whatever it is made from. */
#define FOLD_BYTES_ALWAYS 65536
/* A larger one only while it is not much larger than its inputs (4: bytes to f32). */
#define FOLD_GROWTH_MAX 4

/* The output holds the very elements of input 0, in their order: only the shape may differ. */
bool specialise_is_view(const graph_node *node, const tensor *const *in, const tensor *out);

/* Bit i: the shape of an output depends on the value of input i. */
uint32_t specialise_shape_inputs(graph_op op);

/* A large matrix of weights, transposed: left to graph_fold_transposed. */
bool specialise_is_transposed_matrix(const graph_node *node, const tensor *const *in);

/* Folding this node pays. Constants that only repeat a small input stay as nodes, or forty buckets
 * would each hold their own copy. Weights that are stored quantised stay quantised: the fusing
 * passes and the integer kernels want to see them. */
bool specialise_pays(const graph_node *node, const tensor *const *in, const tensor *outputs);

/* Computes a node whose inputs are all known. Output data is taken from `memory`; outputs that are
 * not wanted keep NULL. */
status specialise_evaluate(const graph_node *node, const tensor *const *in, tensor *outputs,
                           graph_evaluate_fn evaluate, arena *memory) MUST_CHECK;

/* The tensors of a node's inputs; NULL where absent. `values` is indexed by value. */
void specialise_gather(const graph_node *node, const tensor *values, const tensor **in);

#endif
