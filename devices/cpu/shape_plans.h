#ifndef DEVICES_CPU_SHAPE_PLANS_H
#define DEVICES_CPU_SHAPE_PLANS_H

#include "devices/cpu/plan/plan.h"
#include "graph/cost/cost.h"

/* Plans of one model at the shapes that its requests have: made when a shape is first asked for,
 * and kept while they are among the last used. Any thread. */

typedef struct cpu_shape_plans cpu_shape_plans;

/* What is kept; a plan in use stays beyond it. The bytes are those of the specialised graphs, which
 * grow where constants are made for a shape. */
#define CPU_SHAPE_PLANS_MAX 32
#define CPU_SHAPE_PLANS_BYTES_MAX ((size_t)64 << 20)

typedef struct cpu_shape_plan {
    struct cpu_shape_plan *next;
    graph *specialised;
    cpu_plan *plan;
    size_t bytes;
    uint64_t used; /* larger is more recent */
    int users;
} cpu_shape_plan;

/* `source` is symbolic and borrowed; `weights` is borrowed; `budget` (NULL: graph_budget_default)
 * bounds each plan; up to `threads` threads work on a run. NULL when memory is out. */
cpu_shape_plans *cpu_shape_plans_create(const graph *source, const kernels *table,
                                        cpu_weights *weights, const graph_budget *budget,
                                        int threads) MUST_CHECK;
void cpu_shape_plans_destroy(cpu_shape_plans *p); /* no plan in use; accepts NULL */

/* The plan for inputs of exactly these shapes, until it is released; their data is not read.
 * `*is_new`: it was made, by this call. Errors: STATUS_INVALID_ARGUMENT: the graph does not accept
 * the shapes; the message names the node. STATUS_TOO_LARGE: over the budget. Those of
 * cpu_plan_create(). */
status cpu_shape_plans_acquire(cpu_shape_plans *p, const tensor *inputs, cpu_shape_plan **out,
                               bool *is_new) MUST_CHECK;
void cpu_shape_plans_release(cpu_shape_plans *p, cpu_shape_plan *plan);

/* Of all outputs. */
size_t cpu_shape_plan_output_bytes(const cpu_shape_plan *plan);
/* Gives outputs the shapes of the plan, and memory of `results`. STATUS_OUT_OF_MEMORY. */
status cpu_shape_plan_allocate(const cpu_shape_plan *plan, tensor *outputs,
                               arena *results) MUST_CHECK;

#endif
