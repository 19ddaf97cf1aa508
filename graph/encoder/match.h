#ifndef GRAPH_ENCODER_MATCH_H
#define GRAPH_ENCODER_MATCH_H

#include "graph/specialise/specialise.h"

/* Pattern matching on a specialised graph: queries on producers and constants, and two kinds of
 * experiment. An experiment evaluates a part of the graph on values that the caller chooses: it
 * shows what a subgraph computes, whatever operators it is written with. */

typedef struct match {
    const graph *g;             /* specialised: every dim is a constant */
    const graph_budget *budget; /* of one experiment */
    graph_evaluate_fn evaluate;
    bool *is_hidden; /* by value: computed from an embedding (rows of a float table), hence
                        neither a mask nor a position nor a scale */
} match;

/* Borrows `g` and `budget` until match_close. */
status match_open(match *m, const graph *g, const graph_budget *budget,
                  graph_evaluate_fn evaluate) MUST_CHECK;
void match_close(match *m);

/* The value behind `v`: skips Identity and casts between float types. */
graph_value_index match_skip_casts(const match *m, graph_value_index v);
/* Skips also views that keep the last dim: the same rows in the same order. */
graph_value_index match_skip_views(const match *m, graph_value_index v);
/* The node that makes `v`, casts skipped; NULL for inputs and constants. */
const graph_node *match_producer(const match *m, graph_value_index v);
/* The constant that `v` is, casts skipped; NULL when it is none. */
const tensor *match_constant(const match *m, graph_value_index v);
/* The element of a constant of one element. */
bool match_scalar(const match *m, graph_value_index v, double *out);
/* The constant operand of a binary node, on either side, and the other operand. */
bool match_one_constant(const match *m, const graph_node *n, const tensor **constant,
                        graph_value_index *other);
int64_t match_dim(const match *m, graph_value_index v, int axis); /* axis may be negative */
int64_t match_count(const match *m, graph_value_index v);

/* Marks in needed[g->value_count] the values that `target` is computed from, as far as the `cut`
 * values. Returns the graph inputs among them as bits; input 31 and later as bit 31. */
uint32_t match_cone(const match *m, graph_value_index target, int cut_count,
                    const graph_value_index *cut, bool *needed);

/* Evaluates `target` with given[i] in place of value bound[i]. `out` lives in `memory`.
 * STATUS_UNSUPPORTED: it depends on an input that is not bound, or on an operator that cannot be
 * evaluated. Also the errors of graph_cost_charge(). */
status match_experiment(const match *m, arena *memory, int bound_count,
                        const graph_value_index *bound, const tensor *given,
                        graph_value_index target, tensor *out) MUST_CHECK;

/* Where the elements of a value come from, if it only moves the elements of another value (reshape,
 * transpose, split, slice, gather by constants) and scales them by a scalar. */
typedef struct match_trace {
    graph_value_index base; /* the last value before the moves */
    double scale;
    const int64_t *map; /* element i of the value is element map[i] of the base, times scale */
    int64_t count;
} match_trace;

/* The map lives in `memory`. */
status match_trace_back(const match *m, arena *memory, graph_value_index v,
                        match_trace *out) MUST_CHECK;

#endif
