#ifndef GRAPH_SPECIALISE_FUSE_BATCH_NORM_H
#define GRAPH_SPECIALISE_FUSE_BATCH_NORM_H

#include "graph/graph.h"

/* Passes over a symbolic graph, once per model: every specialisation shares what they make. Not
 * while specialisations of `g` are being made. */

/* Folds each BatchNormalization into the weights and bias of the Conv before it, when all are f32
 * constants and nobody else sees the Conv's result. Changes answers by rounding only. Returns how
 * many it folded. */
int graph_fuse_batch_norms(graph *g);

#endif
