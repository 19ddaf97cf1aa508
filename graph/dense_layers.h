#ifndef GRAPH_DENSE_LAYERS_H
#define GRAPH_DENSE_LAYERS_H

#include "graph/graph.h"

/* A dense layer: a matrix multiplication of [rows, depth] by [depth, width]. */
typedef struct graph_dense_layer {
    const char *name; /* of the node */
    int64_t rows, depth, width;
} graph_dense_layer;

/* The matrix multiplications of a specialised graph whose second operand is one matrix, in the
 * order of the graph. Returns how many there are; writes at most `capacity`. */
int graph_find_dense_layers(const graph *specialised, graph_dense_layer *out, int capacity);

/* The fraction of a systolic array of tile x tile that idles because each dim is padded to a
 * multiple of `tile`: 1 - real / padded multiplications. */
double graph_dense_waste(const graph_dense_layer *layer, int64_t tile);

#endif
