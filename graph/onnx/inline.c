#include <assert.h>
#include <string.h>

#include "graph/onnx/importer.h"

static const char *text(const char *s)
{
    return s != NULL ? s : "";
}

/* NULL: out of memory. */
static const char *function_key(arena *memory, const char *domain, const char *name,
                                const char *overload)
{
    if (strcmp(domain, "ai.onnx") == 0)
        domain = "";
    return arena_format(memory, "%s\n%s\n%s", domain, name, overload);
}

status onnx_index_functions(onnx_importer *m)
{
    m->functions.memory = &m->scratch;
    for (size_t i = 0; i < m->model->n_functions; i++) {
        const Onnx__Function *f = m->model->functions[i];
        int32_t other;
        const char *key =
            function_key(&m->scratch, text(f->domain), text(f->name), text(f->overload));
        if (key != NULL && name_map_get(&m->functions, key, &other))
            return status_fail(STATUS_CORRUPT, "function '%s' is defined twice", text(f->name));
        if (key == NULL || !name_map_put(&m->functions, key, (int32_t)i))
            return onnx_fail_memory();
    }
    return STATUS_OK;
}

status onnx_find_function(const onnx_importer *m, const onnx_node *n, const Onnx__Function **out)
{
    *out = NULL;
    if (m->model->n_functions == 0)
        return STATUS_OK;
    int32_t index;
    const char *key =
        function_key(&n->importer->scratch, n->domain, n->op_type, text(n->proto->overload));
    if (key == NULL)
        return onnx_fail_memory();
    if (name_map_get(&m->functions, key, &index))
        *out = m->model->functions[index];
    return STATUS_OK;
}

/* The value `inner` of a body becomes `outer` in the caller's scope. */
static status export_value(onnx_scope *scope, const onnx_node *n, const onnx_scope *body,
                           const char *inner, const char *outer)
{
    graph_value_index value;
    if (outer == NULL || outer[0] == 0)
        return STATUS_OK;
    if (inner == NULL || !onnx_scope_find(body, inner, &value) || value == GRAPH_NO_VALUE)
        return onnx_fail(n, STATUS_CORRUPT, "its body does not produce the output '%s'",
                         text(inner));
    return onnx_scope_define(scope, outer, value);
}

static status check_depth(const onnx_scope *scope, const onnx_node *n)
{
    if (scope->depth >= ONNX_NESTING_MAX)
        return onnx_fail(n, STATUS_CORRUPT,
                         "function calls are nested deeper than %d, or recursive",
                         ONNX_NESTING_MAX);
    return STATUS_OK;
}

status onnx_inline_function(onnx_scope *scope, const onnx_node *n, const Onnx__Function *f)
{
    status s = check_depth(scope, n);
    if (s)
        return s;
    if ((size_t)n->input_count > f->n_input || n->proto->n_output > f->n_output)
        return onnx_fail(n, STATUS_CORRUPT,
                         "%d inputs and %zu outputs; the function has %zu and %zu", n->input_count,
                         n->proto->n_output, f->n_input, f->n_output);
    onnx_scope body = {
        .importer = n->importer,
        .values = {.memory = &n->importer->scratch},
        .prefix = arena_format(&n->importer->scratch, "%s/", n->name),
        .opsets = f->n_opset_import > 0 ? f->opset_import : scope->opsets,
        .opset_count = f->n_opset_import > 0 ? f->n_opset_import : scope->opset_count,
        .function = f,
        .call_attributes = n->attributes,
        .call_attribute_count = n->attribute_count,
        .depth = scope->depth + 1,
    };
    if (body.prefix == NULL)
        return onnx_fail_memory();
    for (size_t i = 0; s == STATUS_OK && i < f->n_input; i++)
        s = onnx_scope_define(&body, text(f->input[i]),
                              i < (size_t)n->input_count ? n->inputs[i] : GRAPH_NO_VALUE);
    if (s == STATUS_OK)
        s = onnx_emit_nodes(&body, f->node, f->n_node);
    for (size_t i = 0; s == STATUS_OK && i < n->proto->n_output; i++)
        s = export_value(scope, n, &body, f->output[i], n->proto->output[i]);
    return s;
}

/* The value of a scalar that is computed from constants. Exporters leave conditions of a few
 * comparisons behind; longer chains are left to graph_specialise(). */
static bool constant_number(const graph *g, graph_value_index value, int depth, double *out)
{
    if (value == GRAPH_NO_VALUE || depth > 16)
        return false;
    const graph_value *v = &g->values[value];
    if (v->constant != NULL) {
        if (tensor_count(v->constant) != 1 || v->constant->dtype == DTYPE_BYTES)
            return false;
        *out = tensor_get_number(v->constant, 0);
        return true;
    }
    if (v->producer < 0)
        return false;
    const graph_node *n = &g->nodes[v->producer];
    double a = 0, b = 0;
    if (!constant_number(g, graph_input_of(n, 0), depth + 1, &a))
        return false;
    bool has_b = n->input_count == 2 && constant_number(g, n->inputs[1], depth + 1, &b);
    switch (n->op) {
    case GRAPH_OP_IDENTITY:
    case GRAPH_OP_SQUEEZE:
    case GRAPH_OP_UNSQUEEZE:
    case GRAPH_OP_RESHAPE:
        *out = a;
        return true;
    case GRAPH_OP_CAST:
        if (graph_attribute_int(n, "to", 0) != dtype_to_onnx(DTYPE_BOOL))
            return false;
        *out = a != 0;
        return true;
    case GRAPH_OP_NOT:
        *out = a == 0;
        return true;
    case GRAPH_OP_AND:
        *out = a != 0 && b != 0;
        return has_b;
    case GRAPH_OP_OR:
        *out = a != 0 || b != 0;
        return has_b;
    case GRAPH_OP_EQUAL:
        *out = a == b;
        return has_b;
    case GRAPH_OP_LESS:
        *out = a < b;
        return has_b;
    case GRAPH_OP_GREATER:
        *out = a > b;
        return has_b;
    default:
        return false;
    }
}

static const Onnx__Graph *find_branch(const onnx_node *n, const char *name)
{
    for (size_t i = 0; i < n->proto->n_attribute; i++) {
        const Onnx__Attribute *a = n->proto->attribute[i];
        if (a->name != NULL && strcmp(a->name, name) == 0)
            return a->g;
    }
    return NULL;
}

/* Adds the nodes of one branch; `body` is its scope. */
static status emit_branch(onnx_scope *scope, const onnx_node *n, const char *name,
                          const char *suffix, onnx_scope *body, const Onnx__Graph **out)
{
    const Onnx__Graph *branch = find_branch(n, name);
    if (branch == NULL || branch->n_output < n->proto->n_output)
        return onnx_fail(n, STATUS_CORRUPT, "%s is missing or has too few outputs", name);
    *body = *scope;
    body->outer = scope;
    body->closure = NULL; /* of the same graph */
    body->values = (name_map){.memory = &n->importer->scratch};
    body->prefix = arena_format(&n->importer->scratch, "%s/%s", n->name, suffix);
    body->depth++;
    *out = branch;
    if (body->prefix == NULL)
        return onnx_fail_memory();
    status s = onnx_add_initializers(body, branch);
    return s ? s : onnx_emit_nodes(body, branch->node, branch->n_node);
}

/* Adds both branches and an If node, of which graph_specialise() selects one branch: conditions on
 * shapes are constants then. */
static status emit_both(onnx_scope *scope, const onnx_node *n)
{
    int count = (int)n->proto->n_output;
    static const char *const names[2][2] = {{"then_branch", "then/"}, {"else_branch", "else/"}};
    if (count > ONNX_INPUTS_MAX / 2)
        return onnx_fail(n, STATUS_TOO_LARGE, "%d outputs", count);
    arena *scratch = &n->importer->scratch;
    graph_value_index *inputs =
        arena_allocate_zeroed(scratch, 2 * (size_t)count + 1, sizeof inputs[0]);
    graph_value_index *outputs =
        arena_allocate_zeroed(scratch, (size_t)count + 1, sizeof outputs[0]);
    if (inputs == NULL || outputs == NULL)
        return onnx_fail_memory();
    inputs[0] = n->inputs[0];
    for (int b = 0; b < 2; b++) {
        onnx_scope body;
        const Onnx__Graph *branch;
        status s = emit_branch(scope, n, names[b][0], names[b][1], &body, &branch);
        if (s)
            return s;
        for (int i = 0; i < count; i++) {
            const char *name = text(branch->output[i]->name);
            if (!onnx_scope_find(&body, name, &inputs[1 + b * count + i]) ||
                inputs[1 + b * count + i] == GRAPH_NO_VALUE)
                return onnx_fail(n, STATUS_CORRUPT, "its %s does not produce the output '%s'",
                                 names[b][0], name);
        }
    }
    for (int i = 0; i < count; i++) {
        const char *name = text(n->proto->output[i]);
        outputs[i] = GRAPH_NO_VALUE;
        if (name[0] == 0)
            continue;
        outputs[i] = graph_add_value(n->graph, onnx_scope_name(scope, name));
        status s = onnx_scope_define(scope, name, outputs[i]);
        if (s)
            return s;
    }
    graph_add_node_to(n->graph, GRAPH_OP_IF, n->name, 1 + 2 * count, inputs, count, outputs, 0,
                      NULL);
    return STATUS_OK;
}

status onnx_inline_if(onnx_scope *scope, const onnx_node *n)
{
    double condition;
    status s = check_depth(scope, n);
    if (s)
        return s;
    if (n->input_count != 1 || n->attribute_count != 0)
        return onnx_fail(n, STATUS_CORRUPT, "an If has a condition and two branches");
    if (!constant_number(n->graph, n->inputs[0], 0, &condition))
        return emit_both(scope, n);
    onnx_scope body;
    const Onnx__Graph *branch;
    s = emit_branch(scope, n, condition != 0 ? "then_branch" : "else_branch", "", &body, &branch);
    for (size_t i = 0; s == STATUS_OK && i < n->proto->n_output; i++)
        s = export_value(scope, n, &body, branch->output[i]->name, n->proto->output[i]);
    return s;
}
