#ifndef DEVICES_CPU_DYNAMIC_DYNAMIC_H
#define DEVICES_CPU_DYNAMIC_DYNAMIC_H

#include "devices/cpu/dynamic/options.h"

/* Runs a symbolic graph whose shapes or ways depend on values: NonZero, NonMaxSuppression, If,
 * Loop, Scan, sequences. What the shapes of the inputs decide runs as plans; the other nodes one by
 * one, their shapes found when their inputs are there. */

struct cpu_team; /* devices/cpu/ops/split.h */

typedef struct cpu_dynamic cpu_dynamic;

/* STATUS_UNSUPPORTED: the CPU lacks an operator of the graph or of its bodies; names the node.
 * STATUS_OUT_OF_MEMORY. */
status cpu_dynamic_create(const cpu_dynamic_options *options, cpu_dynamic **out) MUST_CHECK;
void cpu_dynamic_destroy(cpu_dynamic *p); /* nothing runs; accepts NULL */

/* What a run works in, kept by its caller for the next one; begins as zero. Of one thread. */
typedef struct cpu_dynamic_memory {
    void *workspace;
    size_t bytes;
} cpu_dynamic_memory;

/* Frees it if it is larger than `keep_bytes`. */
void cpu_dynamic_memory_trim(cpu_dynamic_memory *m, size_t keep_bytes);

/* Who runs, and how. */
typedef struct cpu_dynamic_caller {
    cpu_dynamic_memory *memory;
    const struct cpu_team *team; /* the caller's own; NULL: nobody helps */
    const cancel_token *cancel;  /* or NULL */
} cpu_dynamic_caller;

/* Computes all outputs. `inputs`: one per graph input, of the graph's dtypes and ranks. The outputs
 * get dtype, shape and data in `results`. Any number of threads at once, each with its own caller
 * and results. Errors: STATUS_INVALID_ARGUMENT: the inputs' shapes or values do not fit a node; its
 * message names it. STATUS_UNSUPPORTED: the CPU has no such operator. STATUS_TOO_LARGE: more than
 * the budget. STATUS_OUT_OF_MEMORY; those of cancel_check(). */
status cpu_dynamic_run(cpu_dynamic *p, const tensor *inputs, tensor *outputs, arena *results,
                       const cpu_dynamic_caller *caller) MUST_CHECK;

/* Whether the CPU has every operator of the graph and of its bodies. STATUS_UNSUPPORTED names the
 * node. */
status cpu_dynamic_check(const graph *g) MUST_CHECK;

/* For tests and measuring: what the inputs' shapes make of the graph. */
typedef struct cpu_dynamic_facts {
    int plan_count, planned_node_count; /* nodes before they are fused */
    int single_node_count;              /* run one by one */
} cpu_dynamic_facts;

status cpu_dynamic_describe(cpu_dynamic *p, const tensor *inputs,
                            cpu_dynamic_facts *out) MUST_CHECK;

#endif
