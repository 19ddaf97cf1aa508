#ifndef DEVICES_CPU_DYNAMIC_FORM_H
#define DEVICES_CPU_DYNAMIC_FORM_H

#include "devices/cpu/dynamic/item.h"
#include "devices/cpu/dynamic/options.h"
#include "devices/cpu/plan/plan.h"

/* How a graph or body runs: as units, which are single nodes, or plans of many. Constant when made;
 * any thread. */

/* Nodes whose shapes are known and that one run needs together. */
typedef struct dynamic_island {
    graph *graph;
    cpu_plan *plan;
    int64_t operations; /* of a run */
    int32_t node_count; /* of the graph that it was cut from */
} dynamic_island;

/* Values are numbered by slot; -1: absent, or not wanted. */
typedef struct dynamic_unit {
    const graph_node *node;       /* NULL: */
    const dynamic_island *island; /* its inputs and outputs are those of its graph */
    int input_count, output_count;
    const int32_t *inputs, *outputs;
} dynamic_unit;

typedef struct dynamic_form {
    struct dynamic_form *next; /* in the list of its source */
    arena memory;
    const graph *graph; /* of the units' nodes */
    graph *owned;       /* the same, or NULL: the source's */
    dynamic_unit *units;
    dynamic_island *islands;
    int unit_count, island_count, slot_count, widest; /* operands of the widest unit */
    /* By slot. */
    item *initial; /* constants */
    int32_t *readers, *producers;
    const char **names;
    const int32_t *inputs, *outputs; /* slots of the graph's */
    tensor *shapes;                  /* of its inputs, with the data of constants; NULL: any */
    uint64_t used;
    int users;
    size_t bytes;
} dynamic_form;

/* Every node a unit: for inputs of any shapes. STATUS_OUT_OF_MEMORY. */
status dynamic_form_create_single(const graph *g, dynamic_form **out) MUST_CHECK;
/* For inputs of these shapes. Errors: STATUS_OUT_OF_MEMORY, and those of cancel_check() and
 * graph_specialise_partly(). */
status dynamic_form_create(const graph *g, const cpu_dynamic_options *options, const tensor *inputs,
                           dynamic_form **out) MUST_CHECK;
void dynamic_form_destroy(dynamic_form *f); /* accepts NULL */

/* Whether the form is for these inputs. */
bool dynamic_form_is_for(const dynamic_form *f, const tensor *inputs);

#endif
