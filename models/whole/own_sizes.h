#ifndef MODELS_WHOLE_OWN_SIZES_H
#define MODELS_WHOLE_OWN_SIZES_H

#include "graph/cost/cost.h"
#include "graph/graph.h"

/* The importer takes every free first dim for the rows, and a free second dim for their tokens.
 * That does not hold for a graph of nodes and edges, or for two lists that are compared: their
 * sizes have nothing to do with each other. */

/* Before shapes are inferred. Where the sizes of the inputs are no rows and tokens, makes all of
 * them free (is_unknown). That is so where no input has both rows and tokens, though some have
 * tokens, or where the file gives the rows several names and the graph accepts a size of its own
 * for each. `*why`: in words, from `memory`; NULL: the sizes stay. STATUS_OUT_OF_MEMORY, those of
 * cancel_check(). */
status own_sizes_examine(graph *g, const graph_budget *budget, arena *memory,
                         const char **why) MUST_CHECK;

#endif
