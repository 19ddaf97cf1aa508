#include <assert.h>
#include <string.h>

#include "graph/onnx/importer.h"

/* Old exporters omit the type: then it is that of the field that is present. */
static int type_of(const Onnx__Attribute *p)
{
    if (p->has_type && p->type != ONNX__ATTRIBUTE__TYPE__UNDEFINED)
        return p->type;
    if (p->has_f)
        return ONNX__ATTRIBUTE__TYPE__FLOAT;
    if (p->has_i)
        return ONNX__ATTRIBUTE__TYPE__INT;
    if (p->has_s)
        return ONNX__ATTRIBUTE__TYPE__STRING;
    if (p->t != NULL)
        return ONNX__ATTRIBUTE__TYPE__TENSOR;
    if (p->g != NULL)
        return ONNX__ATTRIBUTE__TYPE__GRAPH;
    if (p->n_floats > 0)
        return ONNX__ATTRIBUTE__TYPE__FLOATS;
    if (p->n_strings > 0)
        return ONNX__ATTRIBUTE__TYPE__STRINGS;
    return ONNX__ATTRIBUTE__TYPE__INTS;
}

/* "" without memory, which the graph lacks then. */
static const char *copy_bytes(graph *g, ProtobufCBinaryData bytes)
{
    const char *copy = arena_copy_string(&g->memory, bytes.data ? (const char *)bytes.data : "",
                                         bytes.data ? bytes.len : 0);
    if (copy == NULL)
        graph_lack_memory(g);
    return copy != NULL ? copy : "";
}

static status read_attribute(const onnx_node *n, const Onnx__Attribute *p, graph_attribute *out)
{
    graph_attribute a = {.name = p->name};
    switch (type_of(p)) {
    case ONNX__ATTRIBUTE__TYPE__FLOAT:
        a.kind = GRAPH_ATTRIBUTE_FLOAT;
        a.f = p->f;
        break;
    case ONNX__ATTRIBUTE__TYPE__INT:
        a.kind = GRAPH_ATTRIBUTE_INT;
        a.i = p->i;
        break;
    case ONNX__ATTRIBUTE__TYPE__STRING:
        a.kind = GRAPH_ATTRIBUTE_STRING;
        a.s = copy_bytes(n->graph, p->s);
        break;
    case ONNX__ATTRIBUTE__TYPE__TENSOR: {
        if (p->t == NULL)
            return onnx_fail(n, STATUS_CORRUPT, "the tensor of attribute '%s' is missing", p->name);
        tensor *t = arena_allocate_zeroed(&n->graph->memory, 1, sizeof *t);
        if (t == NULL)
            return onnx_fail_memory();
        status s = onnx_read_tensor(n->importer, p->t, "the tensor", t);
        if (s)
            return onnx_fail(n, s, "attribute '%s': %s", p->name, status_message());
        a.kind = GRAPH_ATTRIBUTE_TENSOR;
        a.t = t;
        break;
    }
    case ONNX__ATTRIBUTE__TYPE__FLOATS:
        a.kind = GRAPH_ATTRIBUTE_FLOATS;
        a.count = p->n_floats;
        a.floats = p->floats;
        break;
    case ONNX__ATTRIBUTE__TYPE__INTS:
        a.kind = GRAPH_ATTRIBUTE_INTS;
        a.count = p->n_ints;
        a.ints = p->ints;
        break;
    case ONNX__ATTRIBUTE__TYPE__STRINGS: {
        const char **strings =
            arena_allocate_zeroed(&n->graph->memory, p->n_strings + 1, sizeof strings[0]);
        if (strings == NULL)
            return onnx_fail_memory();
        for (size_t i = 0; i < p->n_strings; i++)
            strings[i] = copy_bytes(n->graph, p->strings[i]);
        a.kind = GRAPH_ATTRIBUTE_STRINGS;
        a.count = p->n_strings;
        a.strings = strings;
        break;
    }
    default:
        return onnx_fail(n, STATUS_UNSUPPORTED,
                         "attribute '%s' is of type %d; supported: numbers, strings, lists of them "
                         "and dense tensors",
                         p->name, type_of(p));
    }
    *out = a;
    return STATUS_OK;
}

/* Resolves a reference in a function body: the caller's attribute, or the function's default; with
 * neither, the attribute is absent. */
static status resolve_reference(const onnx_scope *scope, const onnx_node *n,
                                const Onnx__Attribute *p, graph_attribute *out, bool *is_present)
{
    const Onnx__Function *f = scope->function;
    if (f == NULL)
        return onnx_fail(n, STATUS_CORRUPT, "attribute '%s' refers to '%s' outside a function",
                         p->name, p->ref_attr_name);
    for (int i = 0; i < scope->call_attribute_count; i++) {
        if (strcmp(scope->call_attributes[i].name, p->ref_attr_name) == 0) {
            *out = scope->call_attributes[i];
            out->name = p->name;
            *is_present = true;
            return STATUS_OK;
        }
    }
    for (size_t i = 0; i < f->n_attribute_proto; i++) {
        const Onnx__Attribute *given = f->attribute_proto[i];
        if (given->name == NULL || strcmp(given->name, p->ref_attr_name) != 0)
            continue;
        status s = read_attribute(n, given, out);
        if (s)
            return s;
        out->name = p->name;
        *is_present = true;
        return STATUS_OK;
    }
    *is_present = false;
    return STATUS_OK;
}

static bool has_body(const char *op_type)
{
    return strcmp(op_type, "If") == 0 || strcmp(op_type, "Loop") == 0 ||
           strcmp(op_type, "Scan") == 0;
}

status onnx_read_attributes(const onnx_scope *scope, onnx_node *n)
{
    const Onnx__Node *proto = n->proto;
    n->attributes =
        arena_allocate_zeroed(&n->graph->memory, proto->n_attribute + 8, sizeof n->attributes[0]);
    if (n->attributes == NULL)
        return onnx_fail_memory();
    for (size_t i = 0; i < proto->n_attribute; i++) {
        const Onnx__Attribute *p = proto->attribute[i];
        if (p->name == NULL || p->name[0] == 0)
            return onnx_fail(n, STATUS_CORRUPT, "an attribute has no name");
        for (int j = 0; j < n->attribute_count; j++)
            if (strcmp(n->attributes[j].name, p->name) == 0)
                return onnx_fail(n, STATUS_CORRUPT, "attribute '%s' is given twice", p->name);
        status s;
        bool is_present = true;
        graph_attribute *a = &n->attributes[n->attribute_count];
        if (p->ref_attr_name != NULL && p->ref_attr_name[0] != 0)
            s = resolve_reference(scope, n, p, a, &is_present);
        else if (p->g != NULL && has_body(n->op_type))
            continue; /* read by onnx_inline_if() or onnx_attach_body() */
        else
            s = read_attribute(n, p, a);
        if (s)
            return s;
        n->attribute_count += is_present;
    }
    return STATUS_OK;
}
