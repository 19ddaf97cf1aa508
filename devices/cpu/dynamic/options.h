#ifndef DEVICES_CPU_DYNAMIC_OPTIONS_H
#define DEVICES_CPU_DYNAMIC_OPTIONS_H

#include "devices/cpu/ops/weights.h"
#include "graph/specialise/specialise.h"

/* What a dynamic program is made of. */
typedef struct cpu_dynamic_options {
    const graph *graph; /* borrowed, as all of these */
    const kernels *kernels;
    cpu_weights *weights;       /* of that graph; NULL: constants are not packed */
    const graph_budget *budget; /* copied, without its `cancel`; NULL: graph_budget_default */
    int threads;                /* that may work on a run */
    graph_evaluate_fn evaluate; /* for folding */
} cpu_dynamic_options;

#endif
