#ifndef DEVICES_CPU_DYNAMIC_DYNAMIC_H
#define DEVICES_CPU_DYNAMIC_DYNAMIC_H

#include "devices/cpu/ops/weights.h"
#include "graph/cost/cost.h"

/* Runs a symbolic graph node by node, for models whose shapes or ways depend on values: NonZero,
 * NonMaxSuppression, If, Loop, Scan, sequences. Each node's shapes are found when its inputs are
 * there; memory is allocated as it is needed. */

typedef struct cpu_dynamic {
    const graph *graph; /* borrowed */
    const kernels *kernels;
    cpu_weights *weights; /* of that graph, borrowed; NULL: constants are not packed */
    graph_budget budget;
} cpu_dynamic;

/* Computes all outputs. `inputs`: one per graph input, of the graph's dtypes and ranks. The outputs
 * get dtype, shape and data in `results`. Any number of threads at once, each with its own results.
 * Errors: STATUS_INVALID_ARGUMENT: the inputs' shapes or values do not fit a node; its message
 * names it. STATUS_UNSUPPORTED: the CPU has no such operator. STATUS_TOO_LARGE: more than the
 * budget. STATUS_OUT_OF_MEMORY; those of cancel_check(). */
status cpu_dynamic_run(const cpu_dynamic *program, const tensor *inputs, tensor *outputs,
                       arena *results) MUST_CHECK;

/* Whether the CPU has every operator of the graph and of its bodies. STATUS_UNSUPPORTED names the
 * node. */
status cpu_dynamic_check(const graph *g) MUST_CHECK;

#endif
