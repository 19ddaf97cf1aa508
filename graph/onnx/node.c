#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/onnx/importer.h"

status onnx_fail_memory(void)
{
    return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the graph of the model");
}

status onnx_fail(const onnx_node *n, status code, const char *format, ...)
{
    char detail[STATUS_MESSAGE_BYTES_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    /* As in the file: a rewrite may have renamed the operator. */
    const char *op_type = n->proto->op_type, *domain = n->proto->domain;
    domain = domain != NULL && strcmp(domain, "ai.onnx") != 0 ? domain : "";
    return status_fail(code, "node '%s': %s%s%s (opset %lld): %s", n->name, domain,
                       domain[0] ? "::" : "", op_type != NULL ? op_type : "", (long long)n->opset,
                       detail);
}

status onnx_scope_define(onnx_scope *scope, const char *name, graph_value_index value)
{
    int32_t other;
    if (name_map_get(&scope->values, name, &other))
        return status_fail(STATUS_CORRUPT, "the value '%s' is defined twice", name);
    return name_map_put(&scope->values, name, value) ? STATUS_OK : onnx_fail_memory();
}

bool onnx_scope_find(const onnx_scope *scope, const char *name, graph_value_index *value)
{
    for (; scope != NULL; scope = scope->outer) {
        if (name_map_get(&scope->values, name, value))
            return true;
        if (scope->closure != NULL) {
            graph_value_index outer;
            return onnx_scope_find(scope->outer, name, &outer) && outer != GRAPH_NO_VALUE &&
                   onnx_closure_capture(scope->closure, outer, value);
        }
    }
    return false;
}

int64_t onnx_scope_opset(const onnx_scope *scope, const char *domain)
{
    for (size_t i = 0; i < scope->opset_count; i++) {
        const char *name = scope->opsets[i]->domain;
        if (name == NULL || strcmp(name, "ai.onnx") == 0)
            name = "";
        if (strcmp(name, domain) == 0)
            return scope->opsets[i]->version;
    }
    return 0;
}

const char *onnx_scope_name(const onnx_scope *scope, const char *name)
{
    if (scope->prefix[0] == 0)
        return name;
    const char *full = arena_format(&scope->importer->scratch, "%s%s", scope->prefix, name);
    if (full == NULL)
        graph_lack_memory(scope->importer->graph);
    return full;
}

status onnx_add_initializers(onnx_scope *scope, const Onnx__Graph *proto)
{
    if (proto->n_sparse_initializer > 0)
        return status_fail(STATUS_UNSUPPORTED,
                           "the model has sparse initialisers; supported: dense ones");
    for (size_t i = 0; i < proto->n_initializer; i++) {
        const Onnx__Tensor *p = proto->initializer[i];
        char where[300];
        if (p->name == NULL || p->name[0] == 0)
            return status_fail(STATUS_CORRUPT, "initialiser %zu has no name", i);
        snprintf(where, sizeof where, "initialiser '%.250s'", p->name);
        tensor t;
        status s = onnx_read_tensor(scope->importer, p, where, &t);
        if (s)
            return s;
        graph *g = scope->importer->graph;
        const char *name = onnx_scope_name(scope, p->name);
        s = onnx_scope_define(scope, p->name, graph_add_constant(g, name, &t));
        if (s)
            return s;
    }
    return graph_check_memory(scope->importer->graph);
}

static status read_inputs(const onnx_scope *scope, onnx_node *n)
{
    const Onnx__Node *p = n->proto;
    if (p->n_input > ONNX_INPUTS_MAX || p->n_output > ONNX_INPUTS_MAX)
        return onnx_fail(n, STATUS_TOO_LARGE, "%zu inputs and %zu outputs; the limit is %d",
                         p->n_input, p->n_output, ONNX_INPUTS_MAX);
    n->inputs = arena_allocate_zeroed(&n->importer->scratch, p->n_input + 8, sizeof n->inputs[0]);
    if (n->inputs == NULL)
        return onnx_fail_memory();
    for (size_t i = 0; i < p->n_input; i++) {
        n->inputs[i] = GRAPH_NO_VALUE;
        const char *name = p->input[i];
        if (name != NULL && name[0] != 0 && !onnx_scope_find(scope, name, &n->inputs[i]))
            return onnx_fail(n, STATUS_CORRUPT, "its input '%s' is not produced by any node", name);
        if (n->inputs[i] != GRAPH_NO_VALUE)
            n->input_count = (int)i + 1; /* trailing absent inputs are dropped */
    }
    return STATUS_OK;
}

/* Adds the values that the node writes. Bodies of inlined nodes add their own. */
static status make_outputs(onnx_scope *scope, onnx_node *n)
{
    const Onnx__Node *p = n->proto;
    n->outputs =
        arena_allocate_zeroed(&n->importer->scratch, p->n_output + 1, sizeof n->outputs[0]);
    if (n->outputs == NULL)
        return onnx_fail_memory();
    for (size_t i = 0; i < p->n_output; i++) {
        n->outputs[i] = GRAPH_NO_VALUE;
        const char *name = p->output[i];
        if (name == NULL || name[0] == 0)
            continue;
        n->outputs[i] = graph_add_value(n->graph, onnx_scope_name(scope, name));
        n->output_count = (int)i + 1;
        status s = onnx_scope_define(scope, name, n->outputs[i]);
        if (s)
            return s;
    }
    if (n->output_count == 0)
        return onnx_fail(n, STATUS_CORRUPT, "it has no output");
    return STATUS_OK;
}

static status constant_from_attribute(const onnx_node *n, const graph_attribute *a, tensor *t)
{
    arena *memory = &n->graph->memory;
    int64_t count = (int64_t)a->count;
    status s = STATUS_OK;
    if (strcmp(a->name, "value") == 0 && a->kind == GRAPH_ATTRIBUTE_TENSOR) {
        *t = *a->t;
    } else if (strcmp(a->name, "value_float") == 0 && a->kind == GRAPH_ATTRIBUTE_FLOAT) {
        s = tensor_allocate(t, memory, DTYPE_F32, 0, NULL);
        if (s == STATUS_OK)
            *(float *)t->data = a->f;
    } else if (strcmp(a->name, "value_int") == 0 && a->kind == GRAPH_ATTRIBUTE_INT) {
        s = tensor_allocate(t, memory, DTYPE_I64, 0, NULL);
        if (s == STATUS_OK)
            *(int64_t *)t->data = a->i;
    } else if (strcmp(a->name, "value_floats") == 0 && a->kind == GRAPH_ATTRIBUTE_FLOATS) {
        s = tensor_set_shape(t, DTYPE_F32, 1, &count);
        t->data = (void *)a->floats;
    } else if (strcmp(a->name, "value_ints") == 0 && a->kind == GRAPH_ATTRIBUTE_INTS) {
        s = tensor_set_shape(t, DTYPE_I64, 1, &count);
        t->data = (void *)a->ints;
    } else if (strcmp(a->name, "value_string") == 0 && a->kind == GRAPH_ATTRIBUTE_STRING) {
        s = tensor_allocate(t, memory, DTYPE_BYTES, 0, NULL);
        if (s == STATUS_OK)
            *(tensor_string *)t->data = (tensor_string){(const uint8_t *)a->s, strlen(a->s)};
    } else if (strcmp(a->name, "value_strings") == 0 && a->kind == GRAPH_ATTRIBUTE_STRINGS) {
        s = tensor_allocate(t, memory, DTYPE_BYTES, 1, &count);
        for (int64_t i = 0; s == STATUS_OK && i < count; i++)
            ((tensor_string *)t->data)[i] =
                (tensor_string){(const uint8_t *)a->strings[i], strlen(a->strings[i])};
    } else {
        return onnx_fail(n, STATUS_UNSUPPORTED,
                         "attribute '%s'; supported: value (a dense tensor), value_float, "
                         "value_floats, value_int, value_ints, value_string, value_strings",
                         a->name);
    }
    return s;
}

static status emit_constant(onnx_scope *scope, onnx_node *n)
{
    tensor t = {0};
    if (n->attribute_count != 1 || n->proto->n_output != 1 || n->proto->output[0] == NULL)
        return onnx_fail(n, STATUS_CORRUPT, "a Constant has one attribute and one output");
    status s = constant_from_attribute(n, &n->attributes[0], &t);
    if (s)
        return s;
    const char *name = n->proto->output[0];
    return onnx_scope_define(scope, name,
                             graph_add_constant(n->graph, onnx_scope_name(scope, name), &t));
}

static status emit_operator(onnx_scope *scope, onnx_node *n)
{
    status s = make_outputs(scope, n);
    if (s == STATUS_OK)
        s = onnx_normalise(n);
    if (s != STATUS_OK || n->is_emitted)
        return s;
    graph_op op;
    if (n->domain[0] != 0 || !graph_op_from_name(n->op_type, &op))
        return onnx_reject_operator(n);
    s = onnx_check_schema(n, op);
    if (s)
        return s;
    graph_add_node_to(n->graph, op, n->name, n->input_count, n->inputs, n->output_count, n->outputs,
                      n->attribute_count, n->attributes);
    return STATUS_OK;
}

/* NULL: out of memory. */
static const char *name_of_node(const onnx_scope *scope, const Onnx__Node *p)
{
    const char *name = p->name;
    if (name == NULL || name[0] == 0)
        name = p->n_output > 0 && p->output[0] != NULL ? p->output[0] : "";
    return arena_format(&scope->importer->graph->memory, "%s%s", scope->prefix, name);
}

static status emit_node(onnx_scope *scope, const Onnx__Node *p)
{
    onnx_importer *m = scope->importer;
    if (++m->emitted > m->options.nodes_max)
        return status_fail(STATUS_TOO_LARGE, "more than %d nodes", m->options.nodes_max);
    onnx_node n = {.importer = m, .graph = m->graph, .scope = scope, .proto = p};
    if ((n.name = name_of_node(scope, p)) == NULL)
        return onnx_fail_memory();
    n.domain = p->domain != NULL && strcmp(p->domain, "ai.onnx") != 0 ? p->domain : "";
    n.op_type = p->op_type != NULL ? p->op_type : "";
    n.opset = onnx_scope_opset(scope, n.domain);
    if (n.op_type[0] == 0)
        return status_fail(STATUS_CORRUPT, "node '%s' has no operator", n.name);
    status s = onnx_read_attributes(scope, &n);
    if (s == STATUS_OK)
        s = read_inputs(scope, &n);
    if (s)
        return s;
    const Onnx__Function *function;
    if ((s = onnx_find_function(m, &n, &function)))
        return s;
    if (function != NULL)
        return onnx_inline_function(scope, &n, function);
    if (n.opset == 0)
        return onnx_fail(&n, STATUS_CORRUPT, "the model imports no opset of domain '%s'", n.domain);
    if (n.domain[0] == 0 && strcmp(n.op_type, "Constant") == 0)
        return emit_constant(scope, &n);
    if (n.domain[0] == 0 && strcmp(n.op_type, "If") == 0)
        return onnx_inline_if(scope, &n);
    if (n.domain[0] == 0 && (strcmp(n.op_type, "Loop") == 0 || strcmp(n.op_type, "Scan") == 0) &&
        (s = onnx_attach_body(scope, &n)))
        return s;
    return emit_operator(scope, &n);
}

status onnx_emit_nodes(onnx_scope *scope, Onnx__Node *const *nodes, size_t count)
{
    int32_t *order;
    int64_t opset = onnx_scope_opset(scope, "");
    if (opset != 0 && (opset < ONNX_OPSET_MIN || opset > ONNX_OPSET_MAX))
        return status_fail(STATUS_UNSUPPORTED,
                           "opset %lld; supported: %d to %d: export the model again with one of "
                           "these (opset_version)",
                           (long long)opset, ONNX_OPSET_MIN, ONNX_OPSET_MAX);
    status s = onnx_order_nodes(&scope->importer->scratch, nodes, count, &order);
    for (size_t i = 0; s == STATUS_OK && i < count; i++) {
        s = emit_node(scope, nodes[order[i]]);
        /* Also instead of another failure: a rewrite that lacked an attribute may blame the file.
         */
        status of_memory = graph_check_memory(scope->importer->graph);
        s = of_memory ? of_memory : s;
    }
    return s;
}
