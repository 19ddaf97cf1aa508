#ifndef GRAPH_SPECIALISE_INTERNAL_H
#define GRAPH_SPECIALISE_INTERNAL_H

#include "graph/specialise/specialise.h"

/* Constant folding, shared by the files of graph/specialise, which alone may include this;
 * everybody else includes specialise.h. */

/* A constant up to this size is folded whatever it is computed from. */
#define FOLD_BYTES_ALWAYS 65536
/* Of operators that compute, such as the filters of a resampler: this size. */
#define FOLD_BYTES_COMPUTED ((size_t)1 << 20)
/* A larger one only while it is at most this many times larger than its inputs (4: int8 to f32). */
#define FOLD_GROWTH_MAX 4

/* How nodes are folded: by what, into which memory, for how much. */
typedef struct specialise_folder {
    graph_evaluate_fn evaluate;
    arena *memory;
    graph_budget budget;
    graph_spent spent;
} specialise_folder;

/* What is folded may be as large as `budget` (NULL: the default) allows activations to be, and
 * beyond that FOLD_GROWTH_MAX times as large as the constants of `source`. */
void specialise_open_folder(specialise_folder *f, const graph *source, const graph_budget *budget,
                            graph_evaluate_fn evaluate, arena *memory);

/* Whether the output holds the elements of input 0 in their order: only the shape may differ. */
bool specialise_is_view(const graph_node *node, const tensor *const *in, const tensor *out);

/* Whether the node transposes a large weight matrix: that is left to graph_fold_transposed(). */
bool specialise_is_transposed_matrix(const graph_node *node, const tensor *const *in);

/* Whether folding the node saves more than it costs. Constants that only repeat a small input stay
 * nodes: each bucket would hold its own copy. Quantised weights stay quantised for the fusion pass
 * and the integer kernels. */
bool specialise_is_worth_folding(const graph_node *node, const tensor *const *in,
                                 const tensor *outputs);

/* Evaluates a node whose inputs are all known, if the budget allows it: nothing is allocated before
 * that is checked. Output data is allocated in the folder's memory; absent outputs keep NULL. */
status specialise_evaluate(specialise_folder *f, const graph_node *node, const tensor *const *in,
                           tensor *outputs) MUST_CHECK;

/* The tensors of a node's inputs; NULL where absent. `values` is indexed by value. */
void specialise_gather(const graph_node *node, const tensor *values, const tensor **in);

#endif
