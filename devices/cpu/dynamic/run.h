#ifndef DEVICES_CPU_DYNAMIC_RUN_H
#define DEVICES_CPU_DYNAMIC_RUN_H

#include "devices/cpu/dynamic/dynamic.h"
#include "devices/cpu/dynamic/item.h"

/* What the files of this folder share; only they include this. */

/* One run of a program. */
typedef struct dynamic_run {
    const cpu_dynamic *program;
    item_memory memory;
    graph_spent spent;
    int64_t nodes; /* that were run */
    void *scratch;
    size_t scratch_bytes;
    arena prepared; /* state of the node that runs */
} dynamic_run;

/* frame.c: runs a graph or body. `inputs` are borrowed; `outputs` are new references, and ITEM_NONE
 * after a failure. */
status dynamic_run_graph(dynamic_run *r, const graph *g, const item *inputs,
                         item *outputs) MUST_CHECK;

/* `inputs`: one per input of the node, ITEM_NONE where absent. `outputs`: ITEM_NONE, to be set;
 * whatever is set is released by the caller, also after a failure. */
typedef status (*dynamic_fn)(dynamic_run *r, const graph_node *node, const item *inputs,
                             item *outputs);

/* operator.c: operators on tensors, by the tables of ops/. */
status dynamic_run_operator(dynamic_run *r, const graph_node *node, const item *inputs,
                            item *outputs) MUST_CHECK;
/* The same for a node that a caller makes up: inputs and outputs are numbered from 0. */
status dynamic_run_made(dynamic_run *r, graph_op op, int input_count, const item *inputs,
                        int attribute_count, graph_attribute *attributes, item *output) MUST_CHECK;
/* loop.c */
status dynamic_run_loop(dynamic_run *r, const graph_node *node, const item *inputs,
                        item *outputs) MUST_CHECK;
status dynamic_run_scan(dynamic_run *r, const graph_node *node, const item *inputs,
                        item *outputs) MUST_CHECK;
/* sequence.c: NULL: not an operator on sequences or optionals. */
dynamic_fn dynamic_find_sequence(graph_op op);

/* Fails unless the input is a tensor. */
status dynamic_expect_tensor(const graph_node *node, const item *inputs, int i) MUST_CHECK;
/* The one integer, or truth value, of a tensor. */
status dynamic_read_integer(const graph_node *node, const item *inputs, int i,
                            int64_t *out) MUST_CHECK;

#endif
