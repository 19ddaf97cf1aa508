#ifndef GRAPH_SCALES_H
#define GRAPH_SCALES_H

#include "graph/graph.h"

/* Counts the nodes that quantise or dequantise with a constant scale that is infinite or NaN;
 * *first is the name of the first one (borrowed from the graph; untouched when there is none).
 * Calibration makes such scales where a mask adds the lowest float. Results computed with them are
 * meaningless, here and in other runtimes. */
int graph_count_nonfinite_scales(const graph *g, const char **first);

#endif
