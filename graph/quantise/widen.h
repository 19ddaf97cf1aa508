#ifndef GRAPH_QUANTISE_WIDEN_H
#define GRAPH_QUANTISE_WIDEN_H

#include "graph/graph.h"

/* Rewrites a specialised graph so that values in half precision (F16, BF16) are computed and kept
 * as F32: for a device that has no arithmetic in half precision, and would convert the operands of
 * each node. Values are rounded to half precision where the model itself casts to it, and where
 * they leave the graph; otherwise they are more precise than the model asks for. */

/* The floats of a constant in half precision, in its order; they outlive the graph. NULL: no
 * memory. */
typedef const float *(*graph_widen_constant)(void *context, const tensor *half);

/* `g` is specialised and must outlive `*out`, which has the same inputs and outputs; `*out` is NULL
 * where `g` has no halves. Errors: STATUS_OUT_OF_MEMORY. */
status graph_widen_halves(const graph *g, graph_widen_constant widen, void *context,
                          graph **out) MUST_CHECK;

#endif
