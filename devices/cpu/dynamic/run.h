#ifndef DEVICES_CPU_DYNAMIC_RUN_H
#define DEVICES_CPU_DYNAMIC_RUN_H

#include "devices/cpu/dynamic/dynamic.h"
#include "devices/cpu/dynamic/forms.h"
#include "devices/cpu/dynamic/item.h"

/* What the files of this folder share; only they include this. */

struct cpu_dynamic {
    cpu_dynamic_options options;
    graph_budget budget;
    dynamic_forms *forms; /* of the graph, then of all bodies */
    int forms_count;
};

/* One run of a program. */
typedef struct dynamic_run {
    cpu_dynamic *program;
    const cpu_dynamic_caller *caller;
    cpu_dynamic_options options; /* the program's, for forms that this run makes: */
    graph_budget budget;         /* with the caller's `cancel` */
    item_memory memory;
    graph_spent spent;
    int64_t nodes;       /* that were run */
    arena prepared;      /* state of the node that runs */
    tensor *operands;    /* of the unit that runs */
    size_t operands_max; /* tensors */
} dynamic_run;

/* frame.c: runs a graph or body. `inputs` are borrowed; `outputs` are new references, and ITEM_NONE
 * after a failure. */
status dynamic_run_form(dynamic_run *r, const dynamic_form *f, const item *inputs,
                        item *outputs) MUST_CHECK;

/* dynamic.c: the forms of a graph or body of the program. */
dynamic_forms *dynamic_forms_of(const cpu_dynamic *p, const graph *g);
/* The form for these inputs, to be released; NULL: the one for any inputs is to be used. From
 * `fixed` on the inputs are the same tensors in all runs of the form: constants are packed. Errors:
 * STATUS_OUT_OF_MEMORY, and those of cancel_check(). */
status dynamic_find_form(dynamic_run *r, dynamic_forms *of, const item *inputs, int fixed,
                         dynamic_form **out) MUST_CHECK;
/* Makes the caller's workspace that large. STATUS_TOO_LARGE, STATUS_OUT_OF_MEMORY. */
status dynamic_reserve(dynamic_run *r, size_t bytes) MUST_CHECK;

/* `inputs`: one per input of the node, ITEM_NONE where absent. `outputs`: ITEM_NONE, to be set;
 * whatever is set is released by the caller, also after a failure. */
typedef status (*dynamic_fn)(dynamic_run *r, const graph_node *node, const item *inputs,
                             item *outputs);

/* operator.c: makes r->operands that many. STATUS_OUT_OF_MEMORY. */
status dynamic_reserve_operands(dynamic_run *r, size_t count) MUST_CHECK;
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
