#include "graph/cost/cost.h"

#include <stdio.h>
#include <stdlib.h>

#include "graph/cost/operations.h"

const graph_budget graph_budget_default = {
    .activation_bytes_max = (int64_t)4 << 30,
    .operations_max = INT64_C(100000000000000),
};

int64_t graph_cost_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

const char *graph_cost_bytes_text(char text[32], int64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        value /= 1024;
    snprintf(text, 32, unit == 0 ? "%.0f %s" : "%.3g %s", value, units[unit]);
    return text;
}

static status fail_bytes(const graph_node *node, const char *what, int64_t bytes, int64_t limit)
{
    char cost[32], most[32];
    return status_fail(STATUS_TOO_LARGE, "node \"%s\" (%s): %s %s; the limit is %s", node->name,
                       graph_op_title(node->op), graph_cost_bytes_text(cost, bytes), what,
                       graph_cost_bytes_text(most, limit));
}

static status fail_operations(const graph_node *node, int64_t operations, int64_t limit)
{
    return status_fail(STATUS_TOO_LARGE,
                       "node \"%s\" (%s): with it, one run takes %.3g operations; the limit is "
                       "%.3g",
                       node->name, graph_op_title(node->op), (double)operations, (double)limit);
}

status graph_cost_charge(const graph_budget *budget, const graph_node *node,
                         const tensor *const *inputs, const tensor *outputs, graph_spent *spent)
{
    if (budget == NULL)
        budget = &graph_budget_default;
    status s = cancel_check(budget->cancel);
    if (s)
        return s;
    graph_spent sum = *spent;
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != GRAPH_NO_VALUE)
            sum.bytes = graph_cost_add(sum.bytes, (int64_t)tensor_bytes(&outputs[i]));
    sum.operations = graph_cost_add(sum.operations, graph_operations(node, inputs, outputs));
    if (sum.bytes > budget->activation_bytes_max)
        return fail_bytes(node, "of folded constants", sum.bytes, budget->activation_bytes_max);
    if (sum.operations > budget->operations_max)
        return fail_operations(node, sum.operations, budget->operations_max);
    *spent = sum;
    return STATUS_OK;
}

/* A value of the graph that is checked. */
typedef struct cost_value {
    tensor shape;  /* with the data of a constant */
    int64_t bytes; /* of an activation; 0 for constants and for views */
    int32_t root;  /* the value whose memory it shares, or itself */
    int32_t last;  /* the last node that reads it; node_count for graph outputs; -1: none */
} cost_value;

typedef struct cost_walk {
    const graph *g;
    cost_value *values;
    const tensor **in;
    tensor *out;
} cost_walk;

static bool is_view(graph_op op)
{
    return op == GRAPH_OP_IDENTITY || op == GRAPH_OP_RESHAPE || op == GRAPH_OP_FLATTEN ||
           op == GRAPH_OP_SQUEEZE || op == GRAPH_OP_UNSQUEEZE;
}

static status open_walk(cost_walk *w)
{
    const graph *g = w->g;
    int widest = 1;
    for (int32_t n = 0; n < g->node_count; n++) {
        const graph_node *node = &g->nodes[n];
        widest = node->input_count > widest ? node->input_count : widest;
        widest = node->output_count > widest ? node->output_count : widest;
    }
    w->values = calloc((size_t)g->value_count + 1, sizeof w->values[0]);
    w->in = calloc((size_t)widest, sizeof w->in[0]);
    w->out = calloc((size_t)widest, sizeof w->out[0]);
    if (w->values == NULL || w->in == NULL || w->out == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to estimate the cost of \"%s\"",
                           g->name);
    return STATUS_OK;
}

static void close_walk(cost_walk *w)
{
    free(w->values);
    free(w->in);
    free(w->out);
}

static void describe_values(cost_walk *w)
{
    const graph *g = w->g;
    for (int32_t v = 0; v < g->value_count; v++) {
        const graph_value *value = &g->values[v];
        cost_value *c = &w->values[v];
        c->root = v;
        c->last = -1;
        if (value->constant != NULL) {
            c->shape = *value->constant;
            continue;
        }
        c->shape = (tensor){.dtype = value->dtype, .rank = value->shape.rank};
        for (int i = 0; i < c->shape.rank; i++)
            c->shape.dims[i] = value->shape.dims[i].constant;
        c->bytes = (int64_t)tensor_bytes(&c->shape);
    }
    for (int32_t n = 0; n < g->node_count; n++) {
        const graph_node *node = &g->nodes[n];
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i] != GRAPH_NO_VALUE)
                w->values[w->values[node->inputs[i]].root].last = n;
        if (!is_view(node->op) || node->outputs[0] == GRAPH_NO_VALUE)
            continue;
        w->values[node->outputs[0]].root = w->values[node->inputs[0]].root;
        w->values[node->outputs[0]].bytes = 0;
    }
    for (int i = 0; i < g->output_count; i++)
        w->values[w->values[g->outputs[i]].root].last = g->node_count;
    /* Inputs are the caller's tensors: alive all the time. */
    for (int i = 0; i < g->input_count; i++)
        w->values[g->inputs[i]].last = g->node_count;
}

static void gather_node(cost_walk *w, const graph_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        w->in[i] = node->inputs[i] == GRAPH_NO_VALUE ? NULL : &w->values[node->inputs[i]].shape;
    for (int i = 0; i < node->output_count; i++)
        w->out[i] = node->outputs[i] == GRAPH_NO_VALUE ? (tensor){.dtype = DTYPE_F32}
                                                       : w->values[node->outputs[i]].shape;
}

/* Bytes that are not read after node `n`. A value that nothing reads dies where it is made. */
static int64_t bytes_that_die(cost_walk *w, const graph_node *node, int32_t n)
{
    int64_t dead = 0;
    for (int i = 0; i < node->input_count + node->output_count; i++) {
        graph_value_index v =
            i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
        if (v == GRAPH_NO_VALUE)
            continue;
        cost_value *root = &w->values[w->values[v].root];
        if (root->last > n)
            continue;
        dead += root->bytes;
        root->bytes = 0; /* once, though several inputs share it */
    }
    return dead;
}

static status check_nodes(cost_walk *w, const graph_budget *budget, graph_spent *cost)
{
    const graph *g = w->g;
    int64_t alive = 0, most = 0, operations = 0;
    for (int i = 0; i < g->input_count; i++)
        alive = graph_cost_add(alive, w->values[g->inputs[i]].bytes);
    for (int32_t n = 0; n < g->node_count; n++) {
        const graph_node *node = &g->nodes[n];
        gather_node(w, node);
        operations = graph_cost_add(operations, graph_operations(node, w->in, w->out));
        if (operations > budget->operations_max)
            return fail_operations(node, operations, budget->operations_max);
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != GRAPH_NO_VALUE)
                alive = graph_cost_add(alive, w->values[node->outputs[i]].bytes);
        if (alive > budget->activation_bytes_max)
            return fail_bytes(node, "of activations at one time", alive,
                              budget->activation_bytes_max);
        most = alive > most ? alive : most;
        alive -= bytes_that_die(w, node, n);
    }
    *cost = (graph_spent){.bytes = most, .operations = operations};
    return STATUS_OK;
}

status graph_cost_check(const graph *specialised, const graph_budget *budget)
{
    graph_spent cost;
    return graph_cost_measure(specialised, budget, &cost);
}

status graph_cost_measure(const graph *specialised, const graph_budget *budget, graph_spent *cost)
{
    cost_walk w = {.g = specialised};
    status s = open_walk(&w);
    if (s == STATUS_OK) {
        describe_values(&w);
        s = check_nodes(&w, budget != NULL ? budget : &graph_budget_default, cost);
    }
    close_walk(&w);
    return s;
}
