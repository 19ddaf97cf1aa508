#include <string.h>

#include "graph/onnx/importer.h"

/* Bodies of Loop and Scan. A body becomes a graph of its own, whose inputs are those of the file
 * and then one for each value that it reads of the graphs around it; the node gets those values as
 * further inputs. Constants around it are shared instead. */

#define CAPTURES_MAX (ONNX_INPUTS_MAX / 2)

struct onnx_closure {
    graph *outer, *body;
    graph_value_index *captured; /* values of `outer`, in the order of the body's inputs */
    int captured_count, captured_max;
    name_map inner; /* name in `outer`, number: value in `body` */
};

bool onnx_closure_capture(struct onnx_closure *c, graph_value_index outer, graph_value_index *inner)
{
    const graph_value *v = &c->outer->values[outer];
    if (name_map_get(&c->inner, v->name, inner))
        return true;
    if (v->constant != NULL) {
        *inner = graph_add_constant(c->body, v->name, v->constant);
    } else if (c->captured_count == c->captured_max) {
        return false;
    } else {
        *inner = graph_add_input(c->body, NULL, DTYPE_F32, 0, NULL);
        c->body->values[*inner].has_dtype = false;
        c->body->values[*inner].shape.rank = -1;
        c->captured[c->captured_count++] = outer;
    }
    if (!name_map_put(&c->inner, v->name, *inner))
        graph_lack_memory(c->body);
    return true;
}

static const Onnx__Graph *find_body(const onnx_node *n)
{
    for (size_t i = 0; i < n->proto->n_attribute; i++) {
        const Onnx__Attribute *a = n->proto->attribute[i];
        if (a->name != NULL && strcmp(a->name, "body") == 0)
            return a->g;
    }
    return NULL;
}

static status add_body_inputs(onnx_scope *scope, const onnx_node *n, const Onnx__Graph *proto)
{
    graph *g = scope->importer->graph;
    for (size_t i = 0; i < proto->n_input; i++) {
        const char *name = proto->input[i]->name;
        if (name == NULL || name[0] == 0)
            return onnx_fail(n, STATUS_CORRUPT, "input %zu of its body has no name", i);
        graph_value_index value = graph_add_input(g, name, DTYPE_F32, 0, NULL);
        g->values[value].has_dtype = false;
        g->values[value].shape.rank = -1;
        status s = onnx_scope_define(scope, name, value);
        if (s)
            return s;
    }
    return STATUS_OK;
}

static status add_body_outputs(onnx_scope *scope, const onnx_node *n, const Onnx__Graph *proto)
{
    graph *g = scope->importer->graph;
    for (size_t i = 0; i < proto->n_output; i++) {
        const char *name = proto->output[i]->name;
        graph_value_index value;
        if (name == NULL || !onnx_scope_find(scope, name, &value) || value == GRAPH_NO_VALUE)
            return onnx_fail(n, STATUS_CORRUPT, "its body does not produce the output '%s'",
                             name != NULL ? name : "");
        graph_add_output(g, value, NULL);
        status s = graph_check_memory(g);
        if (s)
            return s;
        onnx_declare_type(g, g->outputs[i], proto->output[i]);
    }
    return STATUS_OK;
}

/* Builds the body while the importer writes to it, and not to the graph around it. */
static status build_body(onnx_scope *scope, const onnx_node *n, struct onnx_closure *c)
{
    const Onnx__Graph *proto = find_body(n);
    if (proto == NULL)
        return onnx_fail(n, STATUS_CORRUPT, "its body is missing");
    onnx_importer *m = n->importer;
    onnx_scope body = *scope;
    body.outer = scope;
    body.closure = c;
    body.values = (name_map){.memory = &m->scratch};
    body.prefix = "";
    body.depth++;
    m->graph = c->body;
    status s = add_body_inputs(&body, n, proto);
    if (s == STATUS_OK)
        s = onnx_add_initializers(&body, proto);
    if (s == STATUS_OK)
        s = onnx_emit_nodes(&body, proto->node, proto->n_node);
    if (s == STATUS_OK)
        s = add_body_outputs(&body, n, proto);
    if (s == STATUS_OK)
        s = graph_check_memory(c->body);
    m->graph = c->outer;
    return s;
}

status onnx_attach_body(onnx_scope *scope, onnx_node *n)
{
    if (scope->depth >= ONNX_NESTING_MAX)
        return onnx_fail(n, STATUS_CORRUPT, "bodies are nested deeper than %d", ONNX_NESTING_MAX);
    if (strcmp(n->op_type, "Scan") == 0 && n->opset < 9)
        return onnx_fail(n, STATUS_UNSUPPORTED, "supported: opset 9 and later");
    for (int i = 0; i < n->attribute_count; i++)
        if (strcmp(n->attributes[i].name, "body") == 0 ||
            strcmp(n->attributes[i].name, "captured") == 0)
            return onnx_fail(n, STATUS_CORRUPT, "attribute '%s' is not a graph",
                             n->attributes[i].name);
    struct onnx_closure c = {.outer = n->graph,
                             .body = graph_create(n->name),
                             .captured_max = CAPTURES_MAX,
                             .inner = {.memory = &n->importer->scratch}};
    if (c.body == NULL)
        return onnx_fail_memory();
    graph_own_body(n->graph, c.body);
    c.captured = arena_allocate(&n->importer->scratch, CAPTURES_MAX * sizeof c.captured[0]);
    if (c.captured == NULL)
        return onnx_fail_memory();
    status s = build_body(scope, n, &c);
    if (s)
        return s;
    int own = n->input_count;
    graph_value_index *inputs = arena_allocate(
        &n->importer->scratch, (size_t)(own + c.captured_count + 8) * sizeof inputs[0]);
    if (inputs == NULL)
        return onnx_fail_memory();
    for (int i = 0; i < own; i++)
        inputs[i] = n->inputs[i];
    for (int i = 0; i < c.captured_count; i++)
        inputs[own + i] = c.captured[i];
    n->inputs = inputs;
    n->input_count = own + c.captured_count;
    n->attributes[n->attribute_count++] =
        (graph_attribute){.name = "body", .kind = GRAPH_ATTRIBUTE_GRAPH, .graph = c.body};
    n->attributes[n->attribute_count++] = graph_make_int("captured", c.captured_count);
    return STATUS_OK;
}
