#ifndef GRAPH_QUANTISE_LINES_H
#define GRAPH_QUANTISE_LINES_H

#include "graph/graph.h"

/* Convolutions and pooling of one dimension as those of images of one line, [N,C,L] as [N,C,1,L],
 * and what lies between them (elementwise nodes, Concat, Pad) likewise: so the passes and kernels
 * for images serve sound and text, too. Results are bit for bit those of images.
 *
 * `g` is specialised and must outlive `*out`, which has the same inputs and outputs, and is NULL
 * where there is nothing to do. Errors: STATUS_OUT_OF_MEMORY. */
status graph_lift_lines(const graph *g, graph **out) MUST_CHECK;

#endif
