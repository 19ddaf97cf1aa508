#include "graph/onnx/rewrite/rewrite.h"

#include <assert.h>
#include <string.h>

const graph_attribute *onnx_pop_attribute(onnx_node *n, const char *name)
{
    for (int i = 0; i < n->attribute_count; i++) {
        if (strcmp(n->attributes[i].name, name) != 0)
            continue;
        graph_attribute *taken = arena_allocate(&n->importer->scratch, sizeof *taken);
        if (taken == NULL) {
            graph_lack_memory(n->graph);
            return NULL;
        }
        *taken = n->attributes[i];
        n->attributes[i] = n->attributes[--n->attribute_count];
        return taken;
    }
    return NULL;
}

int64_t onnx_pop_int(onnx_node *n, const char *name, int64_t otherwise)
{
    const graph_attribute *a = onnx_pop_attribute(n, name);
    return a != NULL && a->kind == GRAPH_ATTRIBUTE_INT ? a->i : otherwise;
}

float onnx_pop_float(onnx_node *n, const char *name, float otherwise)
{
    const graph_attribute *a = onnx_pop_attribute(n, name);
    return a != NULL && a->kind == GRAPH_ATTRIBUTE_FLOAT ? a->f : otherwise;
}

const char *onnx_pop_string(onnx_node *n, const char *name, const char *otherwise)
{
    const graph_attribute *a = onnx_pop_attribute(n, name);
    return a != NULL && a->kind == GRAPH_ATTRIBUTE_STRING ? a->s : otherwise;
}

void onnx_add_attribute(onnx_node *n, graph_attribute a)
{
    assert(n->attribute_count < (int)n->proto->n_attribute + 8);
    n->attributes[n->attribute_count++] = a;
}

graph_value_index onnx_input(const onnx_node *n, int i)
{
    return i < n->input_count ? n->inputs[i] : GRAPH_NO_VALUE;
}

void onnx_set_input(onnx_node *n, int i, graph_value_index value)
{
    assert(i < (int)n->proto->n_input + 8);
    while (n->input_count <= i)
        n->inputs[n->input_count++] = GRAPH_NO_VALUE;
    n->inputs[i] = value;
}

graph_value_index onnx_ints(onnx_node *n, int64_t count, const int64_t *ints)
{
    return graph_add_constant_i64(n->graph, n->name, 1, &count, ints);
}

graph_value_index onnx_int(onnx_node *n, int64_t i)
{
    return graph_add_constant_i64(n->graph, n->name, 0, NULL, &i);
}

void onnx_ints_to_input(onnx_node *n, const char *name, int i)
{
    const graph_attribute *a = onnx_pop_attribute(n, name);
    if (a != NULL && a->kind == GRAPH_ATTRIBUTE_INTS && onnx_input(n, i) == GRAPH_NO_VALUE)
        onnx_set_input(n, i, onnx_ints(n, (int64_t)a->count, a->ints));
}

graph_value_index onnx_float(onnx_node *n, float f)
{
    return graph_add_constant_f32(n->graph, n->name, 0, NULL, &f);
}

graph_value_index onnx_float_like(onnx_node *n, float f, graph_value_index like)
{
    return onnx_binary(n, GRAPH_OP_CAST_LIKE, onnx_float(n, f), like);
}

graph_value_index onnx_unary(onnx_node *n, graph_op op, graph_value_index x)
{
    int32_t node = graph_add_node(n->graph, op, n->name, 1, &x, 1, 0, NULL);
    return n->graph->nodes[node].outputs[0];
}

graph_value_index onnx_binary(onnx_node *n, graph_op op, graph_value_index a, graph_value_index b)
{
    graph_value_index inputs[] = {a, b};
    int32_t node = graph_add_node(n->graph, op, n->name, 2, inputs, 1, 0, NULL);
    return n->graph->nodes[node].outputs[0];
}

graph_value_index onnx_cast(onnx_node *n, graph_value_index x, int onnx_type)
{
    graph_attribute to = graph_make_int("to", onnx_type);
    int32_t node = graph_add_node(n->graph, GRAPH_OP_CAST, n->name, 1, &x, 1, 1, &to);
    return n->graph->nodes[node].outputs[0];
}

void onnx_finish(onnx_node *n, graph_op op, int input_count, const graph_value_index *inputs,
                 int attribute_count, const graph_attribute *attributes)
{
    assert(n->output_count >= 1);
    graph_value_index output = n->outputs[0];
    graph_add_node_to(n->graph, op, n->name, input_count, inputs, 1, &output, attribute_count,
                      attributes);
    n->is_emitted = true;
}

void onnx_finish_as(onnx_node *n, graph_value_index value)
{
    onnx_finish(n, GRAPH_OP_IDENTITY, 1, &value, 0, NULL);
}

bool onnx_has_output(const onnx_node *n, int output)
{
    return output < n->output_count && n->outputs[output] != GRAPH_NO_VALUE;
}

graph_value_index onnx_add_optional(onnx_node *n, graph_value_index x, graph_value_index term)
{
    return term == GRAPH_NO_VALUE ? x : onnx_binary(n, GRAPH_OP_ADD, x, term);
}

status onnx_check_inputs(const onnx_node *n, int at_least, int at_most)
{
    if (n->input_count < at_least || n->input_count > at_most)
        return onnx_fail(n, STATUS_UNSUPPORTED, "%d inputs; supported: %d to %d", n->input_count,
                         at_least, at_most);
    for (int i = 0; i < at_least; i++)
        if (n->inputs[i] == GRAPH_NO_VALUE)
            return onnx_fail(n, STATUS_CORRUPT, "its input %d is missing", i);
    return STATUS_OK;
}

status onnx_check_no_attributes(const onnx_node *n)
{
    if (n->attribute_count > 0)
        return onnx_fail(n, STATUS_UNSUPPORTED, "attribute '%s' is not supported here",
                         n->attributes[0].name);
    return STATUS_OK;
}
