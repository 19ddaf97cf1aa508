#include "graph/stored/code_graph.h"

#include <stdlib.h>
#include <string.h>

#include "graph/name_map.h"

#define DEPTH_MAX 64 /* of bodies within bodies */

static void code_dim(coder *c, graph_dim *d)
{
    coder_i64(c, &d->constant);
    coder_i64(c, &d->batch);
    coder_i64(c, &d->sequence);
    coder_i64(c, &d->batch_sequence);
    coder_bool(c, &d->is_unknown);
}

/* A constant that nothing reads any more (it was folded, fused or transposed) is left out. */
static void code_value(coder *c, graph_value *v, bool is_read)
{
    const tensor *constant = is_read ? v->constant : NULL;
    int type = v->dtype;
    coder_text(c, &v->name);
    coder_int(c, &type, 0, DTYPE_COUNT - 1);
    if (c->is_reading)
        v->dtype = (dtype)type;
    coder_bool(c, &v->has_dtype);
    coder_int(c, &v->shape.rank, -1, TENSOR_RANK_MAX);
    for (int d = 0; d < v->shape.rank; d++)
        code_dim(c, &v->shape.dims[d]);
    coder_tensor(c, &constant);
    if (c->is_reading)
        v->constant = constant;
    bool has_names = v->dim_names != NULL;
    coder_bool(c, &has_names);
    if (has_names)
        coder_texts(c, &v->dim_names, v->shape.rank > 0 ? (size_t)v->shape.rank : 0);
    if (v->name == NULL || v->name[0] == 0)
        coder_fail(c);
}

/* Its number among the bodies of `g`, from 1. */
static int number_of(const graph *g, const graph *body)
{
    int number = 1;
    for (const graph *b = g->bodies; b != body; b = b->next_body)
        number++;
    return number;
}

static void code_body(coder *c, const graph *g, graph_attribute *a)
{
    int number = !c->is_reading && a->graph ? number_of(g, a->graph) : 0;
    coder_int(c, &number, 0, INT32_MAX);
    if (!c->is_reading || number == 0)
        return;
    const graph *body = g->bodies;
    while (body != NULL && --number > 0)
        body = body->next_body;
    if (body == NULL)
        coder_fail(c);
    a->graph = body;
}

static void code_attribute(coder *c, const graph *g, graph_attribute *a)
{
    int kind = (int)a->kind;
    coder_text(c, &a->name);
    coder_int(c, &kind, 0, GRAPH_ATTRIBUTE_GRAPH);
    if (c->is_reading)
        a->kind = (graph_attribute_kind)kind;
    switch (a->kind) {
    case GRAPH_ATTRIBUTE_INT:
        coder_i64(c, &a->i);
        break;
    case GRAPH_ATTRIBUTE_FLOAT:
        coder_float(c, &a->f);
        break;
    case GRAPH_ATTRIBUTE_STRING:
        coder_text(c, &a->s);
        break;
    case GRAPH_ATTRIBUTE_INTS:
        coder_count(c, &a->count, CODER_WORD_BYTES);
        coder_bytes(c, (const void **)&a->ints, a->count * sizeof a->ints[0]);
        break;
    case GRAPH_ATTRIBUTE_FLOATS:
        coder_count(c, &a->count, sizeof a->floats[0]);
        coder_bytes(c, (const void **)&a->floats, a->count * sizeof a->floats[0]);
        break;
    case GRAPH_ATTRIBUTE_STRINGS:
        coder_count(c, &a->count, CODER_WORD_BYTES);
        coder_texts(c, &a->strings, a->count);
        break;
    case GRAPH_ATTRIBUTE_TENSOR:
        coder_tensor(c, &a->t);
        break;
    case GRAPH_ATTRIBUTE_GRAPH:
        code_body(c, g, a);
        break;
    }
    bool has_string = a->kind != GRAPH_ATTRIBUTE_STRING || a->s != NULL;
    for (size_t i = 0; a->kind == GRAPH_ATTRIBUTE_STRINGS && i < a->count && !c->has_failed; i++)
        has_string &= a->strings[i] != NULL;
    if (a->name == NULL || !has_string || (a->kind == GRAPH_ATTRIBUTE_TENSOR && !a->t) ||
        (a->kind == GRAPH_ATTRIBUTE_GRAPH && !a->graph))
        coder_fail(c);
}

/* A list of indices of values. */
static void code_indices(coder *c, const graph *g, graph_value_index **list, int *count)
{
    size_t length = (size_t)*count;
    coder_count(c, &length, CODER_WORD_BYTES);
    if (c->is_reading)
        *list = coder_allocate(c, length, sizeof **list);
    for (size_t i = 0; i < length && !c->has_failed; i++)
        coder_int(c, &(*list)[i], GRAPH_NO_VALUE, g->value_count - 1);
    if (c->is_reading)
        *count = c->has_failed ? 0 : (int)length;
}

static void code_node(coder *c, const graph *g, graph_node *n)
{
    int op = (int)n->op;
    size_t attributes = (size_t)n->attribute_count;
    coder_int(c, &op, 0, GRAPH_OP_COUNT - 1);
    if (c->is_reading)
        n->op = (graph_op)op;
    coder_text(c, &n->name);
    code_indices(c, g, &n->inputs, &n->input_count);
    code_indices(c, g, &n->outputs, &n->output_count);
    coder_count(c, &attributes, CODER_WORD_BYTES);
    if (c->is_reading)
        n->attributes = coder_allocate(c, attributes, sizeof n->attributes[0]);
    for (size_t i = 0; i < attributes && !c->has_failed; i++)
        code_attribute(c, g, &n->attributes[i]);
    if (c->is_reading)
        n->attribute_count = c->has_failed ? 0 : (int)attributes;
    if (n->name == NULL)
        coder_fail(c);
}

/* What a node reads is there before it; what it computes is nothing else. */
static bool add_producers(graph *g, int32_t index)
{
    const graph_node *n = &g->nodes[index];
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] != GRAPH_NO_VALUE && g->values[n->inputs[i]].producer >= index)
            return false;
    for (int i = 0; i < n->output_count; i++) {
        if (n->outputs[i] == GRAPH_NO_VALUE)
            continue;
        graph_value *v = &g->values[n->outputs[i]];
        if (v->producer != -1 || v->constant != NULL)
            return false;
        v->producer = index;
    }
    return true;
}

static bool is_complete(const graph_value_index *list, int count)
{
    for (int i = 0; i < count; i++)
        if (list[i] == GRAPH_NO_VALUE)
            return false;
    return true;
}

/* Producers and names of a graph that was read. */
static void finish(coder *c, graph *g)
{
    int32_t other;
    for (int32_t i = 0; i < g->value_count && !c->has_failed; i++)
        if (name_map_get(g->names, g->values[i].name, &other) ||
            !name_map_put(g->names, g->values[i].name, i))
            coder_fail(c);
    for (int32_t i = 0; i < g->node_count && !c->has_failed; i++)
        if (!add_producers(g, i))
            coder_fail(c);
    for (int i = 0; i < g->input_count && !c->has_failed; i++)
        if (g->inputs[i] == GRAPH_NO_VALUE || g->values[g->inputs[i]].producer != -1)
            coder_fail(c);
    if (!is_complete(g->outputs, g->output_count))
        coder_fail(c);
}

/* The list and its spare item, as builders expect it. */
static void make_lists(coder *c, graph *g, size_t values, size_t nodes)
{
    if (!c->is_reading)
        return;
    graph_value *value_list = coder_allocate(c, values + 2, sizeof g->values[0]);
    graph_node *node_list = coder_allocate(c, nodes + 2, sizeof g->nodes[0]);
    if (c->has_failed || values > INT32_MAX / 2 || nodes > INT32_MAX / 2) {
        coder_fail(c);
        return;
    }
    g->values = value_list;
    g->nodes = node_list;
    g->value_capacity = (int32_t)values + 2;
    g->node_capacity = (int32_t)nodes + 2;
    g->value_count = (int32_t)values;
    g->node_count = (int32_t)nodes;
    for (size_t i = 0; i < values; i++)
        g->values[i] = (graph_value){.shape.rank = -1, .producer = -1};
}

static void code_values(coder *c, graph *g)
{
    size_t count = (size_t)g->value_count;
    bool *is_read = c->is_reading ? NULL : malloc((count + 1) * sizeof is_read[0]);
    if (is_read != NULL)
        graph_mark_read(g, is_read);
    else if (!c->is_reading)
        coder_fail(c);
    for (size_t i = 0; i < count && !c->has_failed; i++)
        code_value(c, &g->values[i], c->is_reading || is_read[i]);
    free(is_read);
}

static void code_content(coder *c, graph *g, int depth);

/* In the order of the list. */
static void code_bodies(coder *c, graph *g, int depth)
{
    size_t count = 0;
    for (const graph *b = g->bodies; !c->is_reading && b; b = b->next_body)
        count++;
    coder_count(c, &count, CODER_WORD_BYTES);
    graph **link = &g->bodies;
    arena *outer = c->memory;
    for (size_t i = 0; i < count && !c->has_failed; i++) {
        if (c->is_reading && (depth >= DEPTH_MAX || (*link = graph_create(NULL)) == NULL)) {
            coder_fail(c);
            break;
        }
        c->memory = &(*link)->memory;
        code_content(c, *link, depth + 1);
        link = &(*link)->next_body;
    }
    c->memory = outer;
}

static void code_content(coder *c, graph *g, int depth)
{
    size_t values = (size_t)g->value_count, nodes = (size_t)g->node_count;
    coder_text(c, &g->name);
    coder_text(c, &g->source);
    coder_bool(c, &g->is_dynamic);
    coder_i64(c, &g->sequence_max);
    code_bodies(c, g, depth);
    coder_count(c, &values, 6 * CODER_WORD_BYTES);
    coder_count(c, &nodes, 5 * CODER_WORD_BYTES);
    make_lists(c, g, values, nodes);
    code_values(c, g);
    code_indices(c, g, &g->inputs, &g->input_count);
    code_indices(c, g, &g->outputs, &g->output_count);
    for (size_t i = 0; i < nodes && !c->has_failed; i++)
        code_node(c, g, &g->nodes[i]);
    if (c->is_reading && (g->name == NULL || g->source == NULL))
        coder_fail(c);
    if (c->is_reading && !c->has_failed)
        finish(c, g);
}

void code_graph(coder *c, graph **g)
{
    if (c->is_reading && (*g = graph_create(NULL)) == NULL) {
        coder_fail(c);
        return;
    }
    c->memory = &(*g)->memory;
    code_content(c, *g, 0);
    if (c->is_reading && c->has_failed) {
        graph_destroy(*g);
        *g = NULL;
    }
}
