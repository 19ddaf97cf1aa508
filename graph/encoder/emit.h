#ifndef GRAPH_ENCODER_EMIT_H
#define GRAPH_ENCODER_EMIT_H

#include "graph/encoder/encoder.h"

/* Adds what `e` describes to a graph that has its inputs ([batch, sequence] each) and, as
 * constants, every tensor that `e` refers to: the nodes from the token ids to the outputs, which
 * get the names `outputs[i]`. Nodes are named after their weights. Sets g->described to a copy of
 * `e` in g->memory; what `e` points to must live as long as the graph. */
status encoder_emit(const encoder *e, graph *g, const char *const *outputs);

/* The nodes of an activation of `x`, for all that build encoders. */
graph_value_index encoder_activate(graph *g, encoder_activation a, graph_value_index x);
graph_value_index encoder_activate_head(graph *g, encoder_head_activation a, graph_value_index x);

#endif
