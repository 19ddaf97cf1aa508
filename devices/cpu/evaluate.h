#ifndef DEVICES_CPU_EVALUATE_H
#define DEVICES_CPU_EVALUATE_H

#include "graph/specialise/specialise.h"

/* Computes one node on the calling thread with the reference kernels; a graph_evaluate_fn. */
status cpu_evaluate_node(const graph_node *node, const tensor *const *inputs, tensor *outputs,
                         const cancel_token *cancel) MUST_CHECK;

#endif
