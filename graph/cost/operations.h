#ifndef GRAPH_COST_OPERATIONS_H
#define GRAPH_COST_OPERATIONS_H

#include "graph/graph.h"

/* Operations of one node, as graph_budget counts them; INT64_MAX where they are more. An estimate
 * of what a straightforward kernel does, not too low by more than a small factor. Parameters as in
 * graph_infer_node(), whose shapes are in `outputs`. */
int64_t graph_operations(const graph_node *node, const tensor *const *inputs,
                         const tensor *outputs);

#endif
