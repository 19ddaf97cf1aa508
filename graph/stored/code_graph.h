#ifndef GRAPH_STORED_CODE_GRAPH_H
#define GRAPH_STORED_CODE_GRAPH_H

#include "graph/graph.h"
#include "graph/stored/coder.h"

/* A graph with its bodies, by a writer or a reader. A reader's `*g` is new, and NULL where it
 * fails; it is sound: indices within bounds, one producer for each value, nodes after those that
 * they read, names unique. */
void code_graph(coder *c, graph **g);

#endif
