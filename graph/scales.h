#ifndef GRAPH_SCALES_H
#define GRAPH_SCALES_H

#include "graph/graph.h"

/* How many nodes quantise or dequantise with a constant scale that is infinite or no number; the
 * name of the first one to *first (the graph's; untouched when there is none). Calibration makes
 * such scales where it sees a mask of the lowest float added to something: what is computed with
 * them means nothing, here and elsewhere. */
int graph_count_nonfinite_scales(const graph *g, const char **first);

#endif
