#ifndef GRAPH_COST_COST_H
#define GRAPH_COST_COST_H

#include "base/cancel.h"
#include "graph/graph.h"

/* What a graph costs, estimated from its shapes before anything is allocated or computed: a file of
 * a few kilobytes can ask for terabytes (Pad by a million, Tile, ConstantOfShape). */

/* What may be spent on a model. */
typedef struct graph_budget {
    int64_t activation_bytes_max; /* that one execution holds at one time */
    int64_t operations_max;       /* of one execution; a multiplication and an addition are two */
    const cancel_token *cancel;   /* of the work that this is for; NULL: it is never cancelled */
} graph_budget;

/* 4 GiB, 10^14 operations, never cancelled. */
extern const graph_budget graph_budget_default;

/* Spent so far, or the cost of one execution; begins as zero. Sums saturate. */
typedef struct graph_spent {
    int64_t bytes, operations;
} graph_spent;

/* Before a node is evaluated: adds the bytes of its outputs and its operations to `spent`.
 * `inputs[i]` is NULL where absent, its data NULL where it is not known; of `outputs`, dtype and
 * shape are read. Errors: STATUS_TOO_LARGE: over the budget; the message names the node, what it
 * costs and the limit. STATUS_CANCELLED, STATUS_DEADLINE_EXCEEDED. After a failure `spent` is what
 * it was. `budget` NULL: graph_budget_default. */
status graph_cost_charge(const graph_budget *budget, const graph_node *node,
                         const tensor *const *inputs, const tensor *outputs,
                         graph_spent *spent) MUST_CHECK;

/* Before a specialised graph is compiled for a device that keeps its activations in our memory:
 * compares its operations, and the most bytes of inputs, outputs and intermediate values that are
 * alive at one node, with the budget. Errors: STATUS_TOO_LARGE, as above; STATUS_OUT_OF_MEMORY. */
status graph_cost_check(const graph *specialised, const graph_budget *budget) MUST_CHECK;
/* The same; `*cost` is what was compared. Untouched after a failure. */
status graph_cost_measure(const graph *specialised, const graph_budget *budget,
                          graph_spent *cost) MUST_CHECK;

/* The sum, or INT64_MAX; a and b are not negative. */
int64_t graph_cost_add(int64_t a, int64_t b);

/* "14.9 GiB", "512 bytes"; returns `text`. For messages. */
const char *graph_cost_bytes_text(char text[32], int64_t bytes);

#endif
