#ifndef GRAPH_SPECIALISE_SPECIALISE_H
#define GRAPH_SPECIALISE_SPECIALISE_H

#include "graph/cost/cost.h"
#include "graph/graph.h"

/* Evaluates one node whose inputs are all known, for constant folding. The caller passes it in
 * (devices/cpu/evaluate.h), because graph/ does not know how a CPU computes. The caller sets dtype,
 * shape and data of `outputs[i]`; data is NULL for absent outputs. `inputs[i]` is NULL where an
 * optional input is absent. `cancel` (or NULL) ends a long evaluation early. Errors:
 * STATUS_UNSUPPORTED, and those of cancel_check(). */
typedef status (*graph_evaluate_fn)(const graph_node *node, const tensor *const *inputs,
                                    tensor *outputs, const cancel_token *cancel);

/* The shapes of the inputs. `inputs[i]` belongs to graph input i: its dims are set and not
 * negative. Where `data` is not NULL the input becomes that constant (for models whose shapes
 * depend on the value of an input). `budget` bounds what is folded (NULL: graph_budget_default);
 * what runs is for graph_cost_check(). */
typedef struct graph_binding {
    const tensor *inputs;
    const graph_budget *budget;
} graph_binding;

/* A new graph for those shapes. Every value has a dtype and constant dims; nodes whose inputs are
 * known are folded, and nodes that no output needs are removed; inputs and outputs keep their order
 * and names. Constants are shared with `source`, which must outlive it. STATUS_INVALID_ARGUMENT:
 * shapes do not fit (the message names the node and both shapes). STATUS_UNSUPPORTED: a shape
 * depends on an unknown value (the message names the input to bind). STATUS_TOO_LARGE: folding
 * costs more than the budget allows. STATUS_CANCELLED, STATUS_DEADLINE_EXCEEDED. */
status graph_specialise(const graph *source, const graph_binding *binding,
                        graph_evaluate_fn evaluate, graph **out) MUST_CHECK;

/* The same for graphs whose shapes or ways depend on values: nodes that do not fit or whose shapes
 * are not known yet stay, and their outputs have no dtype and rank -1; an If on values stays, its
 * outputs have the shape of both branches. Bound data is not copied: it must outlive the result.
 * Errors: STATUS_OUT_OF_MEMORY, STATUS_CANCELLED, STATUS_DEADLINE_EXCEEDED, and
 * STATUS_INVALID_ARGUMENT where the inputs have other ranks than the graph's. */
status graph_specialise_partly(const graph *source, const graph_binding *binding,
                               graph_evaluate_fn evaluate, graph **out) MUST_CHECK;

/* What specialising finds out about every value of the source graph, without making a graph. */
typedef struct graph_trace {
    tensor *values; /* by value: dtype and shape; data where the value follows from constants and
                       shapes, and is small or decides a shape; rank -1: nothing needs the value */
    graph *owner;   /* of the data that is not a constant of the source */
} graph_trace;

/* The same steps and errors as graph_specialise(). `out` is disposed by the caller, before the
 * source. */
status graph_trace_values(const graph *source, const graph_binding *binding,
                          graph_evaluate_fn evaluate, graph_trace *out) MUST_CHECK;
/* Accepts a zeroed trace. */
void graph_trace_dispose(graph_trace *t);

/* Bit i: the shape of an output depends on the value of input i. */
uint32_t specialise_shape_inputs(graph_op op);

/* Folds in place what depends on constants alone (weights stored as f16, gathered weights): once
 * per model, before it is specialised, so that every specialisation shares the result. Stay: nodes
 * that cannot be folded or do not fit their inputs, results much larger than their inputs,
 * quantised weights (the fusion pass reads them), transposed weight matrices, and what is over the
 * budget. */
void graph_fold_constants(graph *g, const graph_budget *budget, graph_evaluate_fn evaluate);

/* Folds the transposed weight matrices as well. Not for a recognised encoder: it packs them from
 * where they are, perhaps in a mapped file that is never read when the packed weights are cached.
 * False: there was none. */
bool graph_fold_transposed(graph *g, const graph_budget *budget, graph_evaluate_fn evaluate);

/* The binding of (B, S) for a graph whose input dims are all known: writes g->input_count tensors
 * without data. INVALID_ARGUMENT where a dim follows neither or a size is out of range. */
status graph_bind(const graph *g, int64_t batch, int64_t sequence, tensor *inputs) MUST_CHECK;

/* Once per model, before anything else: folds constants (graph_fold_constants) and batch
 * normalisations (fuse_batch_norm.h). */
status graph_prepare(graph *g, const graph_budget *budget, graph_evaluate_fn evaluate) MUST_CHECK;

/* Prepares the graph, then finds every output's symbolic shape: specialises at probe points of (B,
 * S), fits each output's dims as constant + b*B + s*S + bs*B*S, and checks the fit at further
 * points. Sets g->values[output].shape and dtype of all graph outputs (is_unknown where no fit
 * exists). Errors: those of graph_specialise(). */
status graph_infer_symbolic(graph *g, const graph_budget *budget,
                            graph_evaluate_fn evaluate) MUST_CHECK;

#endif
