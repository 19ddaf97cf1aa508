#ifndef GRAPH_STABLEHLO_EMIT_H
#define GRAPH_STABLEHLO_EMIT_H

#include "graph/graph.h"
#include "graph/stablehlo/program.h"

/* A specialised graph (graph/specialise/specialise.h) as StableHLO text for XLA compilers, in
 * conservative operators only (no chlo). The caller disposes of `*out`. STATUS_UNSUPPORTED: the
 * message names the node and its operator, which has no StableHLO form here. */
status graph_emit_stablehlo(const graph *g, const stablehlo_options *options,
                            stablehlo_program *out) MUST_CHECK;

#endif
