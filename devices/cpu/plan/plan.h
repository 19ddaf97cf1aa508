#ifndef DEVICES_CPU_PLAN_PLAN_H
#define DEVICES_CPU_PLAN_PLAN_H

#include "base/cancel.h"
#include "devices/cpu/ops/weights.h"

/* A specialised graph as steps over one workspace: which operator, on which memory, in what order.
 * Constant once made: any number of threads may run one plan, each with a workspace of its own. */

typedef struct cpu_plan cpu_plan;
struct cpu_team; /* devices/cpu/ops/split.h */

#define CPU_PLAN_WORKSPACE_ALIGNMENT 64

/* `specialised` (graph_specialise) is borrowed until the plan is destroyed; `weights` (NULL: none
 * shared) is retained. Errors: STATUS_UNSUPPORTED names node, operator and what is not supported;
 * STATUS_OUT_OF_MEMORY. Any thread. */
status cpu_plan_create(const graph *specialised, const kernels *table, cpu_weights *weights,
                       cpu_plan **out) MUST_CHECK;
/* The same for runs that up to `threads` threads work on: its workspace has scratch for each. */
status cpu_plan_create_for(const graph *specialised, const kernels *table, cpu_weights *weights,
                           int threads, cpu_plan **out) MUST_CHECK;
void cpu_plan_destroy(cpu_plan *p); /* accepts NULL */

/* Bytes of workspace that each run needs, CPU_PLAN_WORKSPACE_ALIGNMENT aligned. */
size_t cpu_plan_workspace_bytes(const cpu_plan *p);

/* Runs all steps on the calling thread, allocating nothing. `inputs` and `outputs`: one per graph
 * input and output, of exactly the plan's dtypes and shapes, with data of natural alignment.
 * Errors: STATUS_INVALID_ARGUMENT: a tensor does not fit the plan, or a value is out of range (an
 * index, mostly; the message names node, index and limit). The errors of cancel_check(), which is
 * asked between steps (`cancel` NULL: never). Outputs are undefined after a failure. */
status cpu_plan_run(const cpu_plan *p, const tensor *inputs, tensor *outputs, void *workspace,
                    const cancel_token *cancel) MUST_CHECK;

/* The same with the help of `team` (NULL: alone), which must be the caller's own. */
status cpu_plan_run_with(const cpu_plan *p, const tensor *inputs, tensor *outputs, void *workspace,
                         const struct cpu_team *team, const cancel_token *cancel) MUST_CHECK;

/* For measuring (bench/models): the steps that cpu_plan_run() runs, one after the other. */
int cpu_plan_step_count(const cpu_plan *p);
status cpu_plan_run_step(const cpu_plan *p, int step, const tensor *inputs, tensor *outputs,
                         void *workspace, const struct cpu_team *team) MUST_CHECK;
/* "Conv \"conv1\" f32 [1,8,8,64]": operator, node, first output. Returns `text`. */
const char *cpu_plan_step_text(const cpu_plan *p, int step, char *text, size_t bytes);

/* For `penstock inspect` and tests. */
typedef struct cpu_plan_facts {
    int fused_layer_count;     /* dense layers and convolutions, fused with what follows them */
    int quantised_layer_count; /* of them, on uint8 activations */
    int step_count;            /* operators run */
    int view_count;      /* operators that cost nothing: their output shares its input's memory */
    int copy_count;      /* outputs copied at the end, because something else is the same memory */
    size_t buffer_bytes; /* intermediate values, with reuse: the peak */
    size_t total_bytes;  /* the same without reuse */
    size_t scratch_bytes;
} cpu_plan_facts;

void cpu_plan_describe(const cpu_plan *p, cpu_plan_facts *out);

#endif
