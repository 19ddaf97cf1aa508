#include "devices/cpu/dynamic/islands.h"

#include <stdlib.h>

#include "devices/cpu/ops/op.h"

/* A branch that must be taken before a node is needed: branch 0 or 1 of an If. Number 0 is no
 * branch; an If at node n has the numbers 1 + 2 * n and 2 + 2 * n. */
typedef struct walk {
    const graph *g;
    int32_t *parent, *depth; /* by branch: that of its If */
    int32_t *needed_by;      /* branch, by value; NOBODY */
    int32_t *branch, *stage; /* by node */
    int32_t *made;           /* stage, by value */
} walk;

#define NOBODY (-1)

static bool is_known(const graph *g, const graph_value_index *values, int count)
{
    for (int i = 0; i < count; i++) {
        if (values[i] == GRAPH_NO_VALUE || g->values[values[i]].constant)
            continue;
        const graph_value *v = &g->values[values[i]];
        if (!v->has_dtype || v->shape.rank < 0)
            return false;
        for (int d = 0; d < v->shape.rank; d++)
            if (!graph_dim_is_constant(v->shape.dims[d]))
                return false;
    }
    return true;
}

static bool can_be_planned(const graph *g, const graph_node *node)
{
    return cpu_op_find(node->op) && is_known(g, node->inputs, node->input_count) &&
           is_known(g, node->outputs, node->output_count);
}

/* Behind which branch both `a` and `b` lie. */
static int32_t common(const walk *w, int32_t a, int32_t b)
{
    if (a == NOBODY || b == NOBODY)
        return a == NOBODY ? b : a;
    while (a != b) {
        if (w->depth[a] >= w->depth[b])
            a = w->parent[a];
        else
            b = w->parent[b];
    }
    return a;
}

static void need(walk *w, graph_value_index v, int32_t branch)
{
    if (v != GRAPH_NO_VALUE)
        w->needed_by[v] = common(w, w->needed_by[v], branch);
}

static void find_branches(walk *w)
{
    const graph *g = w->g;
    for (int32_t v = 0; v < g->value_count; v++)
        w->needed_by[v] = NOBODY;
    for (int i = 0; i < g->output_count; i++)
        need(w, g->outputs[i], 0);
    for (int32_t n = g->node_count - 1; n >= 0; n--) {
        const graph_node *node = &g->nodes[n];
        int32_t branch = NOBODY;
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != GRAPH_NO_VALUE)
                branch = common(w, branch, w->needed_by[node->outputs[i]]);
        w->branch[n] = branch;
        if (branch == NOBODY)
            continue;
        bool is_if = node->op == GRAPH_OP_IF;
        for (int b = 1; is_if && b <= 2; b++) {
            w->parent[2 * n + b] = branch;
            w->depth[2 * n + b] = w->depth[branch] + 1;
        }
        for (int i = 0; i < node->input_count; i++) {
            int of = is_if && i > 0 ? (i - 1) / node->output_count : -1;
            bool is_wanted = of < 0 || node->outputs[(i - 1) % node->output_count] >= 0;
            if (is_wanted)
                need(w, node->inputs[i], of < 0 ? branch : 2 * n + 1 + of);
        }
    }
}

/* A node that runs alone ends a stage: what reads its outputs lies in a later one. */
static void find_stages(walk *w, const int32_t *island_of)
{
    const graph *g = w->g;
    for (int32_t n = 0; n < g->node_count; n++) {
        const graph_node *node = &g->nodes[n];
        int32_t stage = 0;
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i] != GRAPH_NO_VALUE && w->made[node->inputs[i]] > stage)
                stage = w->made[node->inputs[i]];
        w->stage[n] = stage;
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != GRAPH_NO_VALUE)
                w->made[node->outputs[i]] = island_of[n] < 0 ? stage + 1 : stage;
    }
}

/* Numbers the islands by their first nodes. */
static void number(const walk *w, int32_t *island_of, int32_t *count)
{
    const graph *g = w->g;
    int32_t *firsts = w->needed_by; /* not read any more; there are as many values as nodes */
    *count = 0;
    for (int32_t n = 0; n < g->node_count; n++) {
        int32_t k = 0;
        if (island_of[n] < 0)
            continue;
        while (k < *count &&
               (w->stage[firsts[k]] != w->stage[n] || w->branch[firsts[k]] != w->branch[n]))
            k++;
        if (k == *count)
            firsts[(*count)++] = n;
        island_of[n] = k;
    }
}

status dynamic_find_islands(const graph *g, int32_t *island_of, int32_t *count)
{
    size_t nodes = (size_t)g->node_count, values = (size_t)g->value_count;
    int32_t *memory =
        calloc(2 * (2 * nodes + 1) + 2 * nodes + 2 * (values + nodes) + 1, sizeof memory[0]);
    if (!memory)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to divide \"%s\"", g->name);
    walk w = {.g = g, .parent = memory};
    w.depth = w.parent + 2 * nodes + 1;
    w.branch = w.depth + 2 * nodes + 1;
    w.stage = w.branch + nodes;
    w.needed_by = w.stage + nodes;
    w.made = w.needed_by + values + nodes;
    find_branches(&w);
    for (int32_t n = 0; n < g->node_count; n++)
        island_of[n] = w.branch[n] != NOBODY && can_be_planned(g, &g->nodes[n]) ? 0 : -1;
    find_stages(&w, island_of);
    number(&w, island_of, count);
    free(memory);
    return STATUS_OK;
}
