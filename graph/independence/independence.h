#ifndef GRAPH_INDEPENDENCE_INDEPENDENCE_H
#define GRAPH_INDEPENDENCE_INDEPENDENCE_H

#include "graph/specialise/specialise.h"

/* Do the rows of a batch influence each other? The answer is a proof from the graph, operator by
 * operator, not an experiment: for every value it is derived how a run of b rows relates to b runs
 * of one row each. A row is one element along axis 0 of every input. */

typedef enum graph_independence_verdict {
    GRAPH_INDEPENDENT, /* proved: each row of each output is what the row gives alone */
    GRAPH_MIXED,       /* an operator combines rows, or depends on how many there are */
    GRAPH_UNDECIDED,   /* an operator without a rule, or a layout that no rule follows */
} graph_independence_verdict;

typedef struct graph_independence {
    graph_independence_verdict verdict;
    /* Unless GRAPH_INDEPENDENT: where the proof ends. */
    const char *node; /* its name; borrowed from the graph; NULL: no node, the graph as a whole */
    graph_op op;
    const char *reason; /* "reduces over the rows"; static; of tokens too it says "rows" */
    bool is_of_tokens;  /* made by graph_examine_tokens() */
} graph_independence;

/* Examines `batch` rows (at least 2) of `sequence` tokens. The verdict holds for these sizes: where
 * shapes are computed from shapes, other sizes can take other ways. GRAPH_MIXED is a statement
 * about the operators: a later one may cancel what an earlier one mixes. `budget` (NULL: the
 * default) bounds what is folded. Any thread. Errors: those of graph_trace_values(): the graph does
 * not accept one row, or so many rows. */
status graph_examine_independence(const graph *g, int64_t batch, int64_t sequence,
                                  const graph_budget *budget, graph_evaluate_fn evaluate,
                                  graph_independence *out) MUST_CHECK;

/* The same question of the tokens of one row: is each token's part of the outputs what a row of
 * this token alone gives? Then padding changes nothing. `sequence` is at least 2; inputs without a
 * sequence axis are the same for all tokens, and outputs without one must not depend on them. */
status graph_examine_tokens(const graph *g, int64_t sequence, const graph_budget *budget,
                            graph_evaluate_fn evaluate, graph_independence *out) MUST_CHECK;

/* "node "max" (ReduceMax) reduces over the rows"; returns `text`. For notes; "" where it is
 * independent. */
const char *graph_independence_text(char text[512], const graph_independence *found);

#endif
