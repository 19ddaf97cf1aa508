#ifndef GRAPH_SPECIALISE_FUSE_BATCH_NORM_H
#define GRAPH_SPECIALISE_FUSE_BATCH_NORM_H

#include "graph/graph.h"

/* Folds each BatchNormalization of a symbolic graph, and each Mul and Add of a number or of numbers
 * by channel, into the weights and bias of the Conv before it, where all parameters are f32
 * constants and nothing else reads the result of the Conv. Results
 * change by rounding only. Runs once per model, before `g` is specialised: every specialisation
 * shares the folded weights. Returns how many it folded; graph_check_memory() says whether that is
 * all. */
int graph_fuse_batch_norms(graph *g);

#endif
