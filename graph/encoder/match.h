#ifndef GRAPH_ENCODER_MATCH_H
#define GRAPH_ENCODER_MATCH_H

#include "graph/specialise/specialise.h"

/* Looking for structure in a specialised graph, for the passes: small questions about producers
 * and constants, and two kinds of experiment. An experiment computes a part of the graph on values
 * of the asker's choice; it settles what a subgraph means whatever operators it is written with. */

typedef struct match {
    const graph *g; /* specialised: every dim is a constant */
    graph_evaluate_fn evaluate;
    bool *is_hidden; /* by value: made from an embedding (a table of floats read by a computed
                        index), so not a mask, a position or a scale */
} match;

/* Borrows `g` until match_close. */
status match_open(match *m, const graph *g, graph_evaluate_fn evaluate) MUST_CHECK;
void match_close(match *m);

/* The value that `v` renames: back through Identity and casts between float types. */
graph_value_index match_skip_casts(const match *m, graph_value_index v);
/* Also through views that keep the last dim, so the same rows in the same order. */
graph_value_index match_skip_views(const match *m, graph_value_index v);
/* The node that makes `v`, casts skipped; NULL for inputs and constants. */
const graph_node *match_producer(const match *m, graph_value_index v);
/* NULL when it is not known. */
const tensor *match_constant(const match *m, graph_value_index v);
/* A constant of one element. */
bool match_scalar(const match *m, graph_value_index v, double *out);
/* A binary node with one constant operand, on either side: that operand and the other one. */
bool match_one_constant(const match *m, const graph_node *n, const tensor **constant,
                        graph_value_index *other);
int64_t match_dim(const match *m, graph_value_index v, int axis); /* axis may be negative */
int64_t match_count(const match *m, graph_value_index v);

/* Marks what `target` is computed from, stopping at the `cut` values: needed[v] for each value
 * (g->value_count of them). Returns the graph inputs among them as bits, input 31 and later as bit
 * 31. */
uint32_t match_cone(const match *m, graph_value_index target, int cut_count,
                    const graph_value_index *cut, bool *needed);

/* Computes `target` with given[i] standing for value bound[i]. `out` lives in `memory`.
 * UNSUPPORTED: it depends on an input that is not bound, or on an operator that cannot be computed.
 */
status match_experiment(const match *m, arena *memory, int bound_count,
                        const graph_value_index *bound, const tensor *given,
                        graph_value_index target, tensor *out) MUST_CHECK;

/* Where the elements of a value come from, when it only moves (reshapes, transposes, splits,
 * slices, gathers by constants) and scales by a scalar the elements of another value. */
typedef struct match_trace {
    graph_value_index base; /* the first value back that is not a move */
    double scale;
    const int64_t *map; /* element i of the value is element map[i] of the base, times scale */
    int64_t count;
} match_trace;

/* The map lives in `memory`. */
status match_trace_back(const match *m, arena *memory, graph_value_index v,
                        match_trace *out) MUST_CHECK;

#endif
