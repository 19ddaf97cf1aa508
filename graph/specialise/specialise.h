#ifndef GRAPH_SPECIALISE_SPECIALISE_H
#define GRAPH_SPECIALISE_SPECIALISE_H

#include "graph/graph.h"

/* Computes one node whose inputs are all known, for constant folding. Given from outside
 * (devices/cpu/evaluate.h), because graph/ does not know how a CPU computes. `outputs[i]` has
 * dtype, shape and data set by the caller; data is NULL for unwanted outputs. `inputs[i]` is NULL
 * where an optional input is absent. Errors: STATUS_UNSUPPORTED. */
typedef status (*graph_evaluate_fn)(const graph_node *node, const tensor *const *inputs,
                                    tensor *outputs);

/* What is fixed about the inputs. `inputs[i]` belongs to graph input i: its dims are always set
 * (every one non-negative); where `data` is non-NULL the input becomes that constant (for models
 * whose shapes depend on an input's value). */
typedef struct graph_binding {
    const tensor *inputs;
} graph_binding;

/* A new graph for those shapes: every value has dtype and constant dims, nodes whose inputs are
 * known are gone, unreachable nodes are gone; inputs and outputs keep their order and names.
 * Constants are shared with `source`, which must outlive it. Errors: STATUS_INVALID_ARGUMENT when
 * shapes do not fit (names the node and both shapes), STATUS_UNSUPPORTED when a shape depends on a
 * value that is not known (names the input to bind). */
status graph_specialise(const graph *source, const graph_binding *binding,
                        graph_evaluate_fn evaluate, graph **out) MUST_CHECK;

/* Folds in place what depends on constants alone (weights stored as f16, gathered weights), so that
 * it is done once per model and shared by every specialisation. Nodes that cannot be folded, or are
 * wrong, stay. Not folded: what would grow a lot, DequantizeLinear (the passes want to see
 * quantised weights), and matrices that are only transposed. Not while specialisations of `g` are
 * being made.
 */
void graph_fold_constants(graph *g, graph_evaluate_fn evaluate);

/* Folds the transposed matrices as well. A recognised encoder packs them from where they lie,
 * perhaps in a mapped file that is never read where packed weights are cached; everybody else wants
 * them folded, once per model. False: there was none. */
bool graph_fold_transposed(graph *g, graph_evaluate_fn evaluate);

/* The binding of (B, S) for a graph whose input dims are all known: writes g->input_count tensors
 * without data. INVALID_ARGUMENT where a dim follows neither or a size is out of range. */
status graph_bind(const graph *g, int64_t batch, int64_t sequence, tensor *inputs) MUST_CHECK;

/* Folds constants (graph_fold_constants) and batch normalisations (fuse.h), then finds every
 * output's symbolic shape: specialises at probe points of (B, S), fits each output's dims as
 * constant + b*B + s*S + bs*B*S, and checks the fit at a further point. Sets
 * g->values[output].shape and dtype of all graph outputs (is_unknown where no fit exists). */
status graph_infer_symbolic(graph *g, graph_evaluate_fn evaluate) MUST_CHECK;

#endif
