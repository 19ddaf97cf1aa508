#include "graph/quantise/fuse.h"

#include <stdlib.h>

#include "graph/quantise/internal.h"

static status open_work(fusion *w)
{
    size_t values = (size_t)w->g->value_count + 1, nodes = (size_t)w->g->node_count + 1;
    w->made = graph_create(w->g->name);
    w->made_values = malloc(values * sizeof w->made_values[0]);
    w->uses = calloc(values, sizeof w->uses[0]);
    w->reader = malloc(values * sizeof w->reader[0]);
    w->first_reader = malloc(values * sizeof w->first_reader[0]);
    w->is_shifted = calloc(values, sizeof w->is_shifted[0]);
    w->roles = calloc(nodes, sizeof w->roles[0]);
    if (!w->made || !w->made_values || !w->uses || !w->reader || !w->first_reader ||
        !w->is_shifted || !w->roles)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to fuse \"%s\"", w->g->name);
    for (size_t v = 0; v < values; v++) {
        w->made_values[v][LAYOUT_FIRST] = w->made_values[v][LAYOUT_LAST] = GRAPH_NO_VALUE;
        w->reader[v] = w->first_reader[v] = -1;
    }
    w->made->source = w->g->source;
    w->made->sequence_max = w->g->sequence_max;
    return STATUS_OK;
}

status graph_fuse_layers(const graph *g, graph **out, fused_facts *facts)
{
    fusion w = {.g = g};
    status s = open_work(&w);
    if (s)
        goto fail;
    if ((s = fusion_match(&w)))
        goto fail;
    if ((s = fusion_emit(&w)))
        goto fail;
    if (facts)
        *facts = w.facts;
    *out = w.made;
    w.made = NULL;
fail:
    free(w.made_values);
    free(w.uses);
    free(w.reader);
    free(w.first_reader);
    free(w.is_shifted);
    free(w.roles);
    graph_destroy(w.made);
    return s;
}
