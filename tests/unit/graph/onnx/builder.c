#include "tests/unit/graph/onnx/builder.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything a test builds, kept to the end of its process and reachable to the leak checker. */
static arena kept;

static void *append(void *list, size_t count, void *item)
{
    void **longer = arena_allocate_zeroed(&kept, count + 1, sizeof longer[0]);
    if (count > 0)
        memcpy(longer, list, count * sizeof longer[0]);
    longer[count] = item;
    return longer;
}

#define APPEND(list, count, item) ((list) = append((list), (count), (item)), (count)++)

#define NEW(variable, type, prefix)                                                                \
    type *variable = arena_allocate_zeroed(&kept, 1, sizeof *variable);                            \
    prefix##__init(variable)

static void *copy(const void *data, size_t bytes)
{
    void *p = arena_allocate(&kept, bytes + 1);
    if (bytes > 0)
        memcpy(p, data, bytes);
    return p;
}

onnx_builder *onnx_begin(int64_t opset)
{
    onnx_builder *b = arena_allocate_zeroed(&kept, 1, sizeof *b);
    onnx__model__init(&b->model);
    onnx__graph__init(&b->graph);
    onnx__operator_set__init(&b->opset);
    b->opset.domain = "";
    b->opset.has_version = 1;
    b->opset.version = opset;
    b->opsets[0] = &b->opset;
    b->model.has_ir_version = 1;
    b->model.ir_version = 8;
    b->model.graph = &b->graph;
    b->model.opset_import = b->opsets;
    b->model.n_opset_import = 1;
    b->model.producer_name = "penstock-tests";
    b->graph.name = "test";
    return b;
}

void onnx_import_domain(onnx_builder *b, const char *domain, int64_t version)
{
    NEW(set, Onnx__OperatorSet, onnx__operator_set);
    set->domain = (char *)domain;
    set->has_version = 1;
    set->version = version;
    b->opsets[b->model.n_opset_import++] = set;
}

void onnx_add_input(onnx_builder *b, const char *name, const char *const *dims)
{
    NEW(info, Onnx__ValueInfo, onnx__value_info);
    NEW(type, Onnx__Type, onnx__type);
    NEW(tensor_type, Onnx__Type__Tensor, onnx__type__tensor);
    NEW(shape, Onnx__Shape, onnx__shape);
    info->name = (char *)name;
    info->type = type;
    type->tensor_type = tensor_type;
    tensor_type->has_elem_type = 1;
    tensor_type->elem_type = 1;
    tensor_type->shape = shape;
    for (; *dims != NULL; dims++) {
        NEW(dim, Onnx__Shape__Dimension, onnx__shape__dimension);
        if ((*dims)[0] >= '0' && (*dims)[0] <= '9') {
            dim->has_dim_value = 1;
            dim->dim_value = atoll(*dims);
        } else if (strcmp(*dims, "?") != 0) {
            dim->dim_param = (char *)*dims;
        }
        APPEND(shape->dim, shape->n_dim, dim);
    }
    APPEND(b->graph.input, b->graph.n_input, info);
}

void onnx_add_output(onnx_builder *b, const char *name)
{
    NEW(info, Onnx__ValueInfo, onnx__value_info);
    info->name = (char *)name;
    APPEND(b->graph.output, b->graph.n_output, info);
}

Onnx__Node *onnx_make_node(const char *op_type, const char *const *inputs,
                           const char *const *outputs)
{
    NEW(n, Onnx__Node, onnx__node);
    n->op_type = (char *)op_type;
    for (; *inputs != NULL; inputs++)
        APPEND(n->input, n->n_input, (char *)*inputs);
    for (; *outputs != NULL; outputs++)
        APPEND(n->output, n->n_output, (char *)*outputs);
    return n;
}

Onnx__Node *onnx_add(onnx_builder *b, const char *op_type, const char *const *inputs,
                     const char *const *outputs)
{
    Onnx__Node *n = onnx_make_node(op_type, inputs, outputs);
    APPEND(b->graph.node, b->graph.n_node, n);
    return n;
}

Onnx__Tensor *onnx_make_tensor(const char *name, int type, int rank, const int64_t *dims)
{
    NEW(t, Onnx__Tensor, onnx__tensor);
    t->name = (char *)name;
    t->has_data_type = 1;
    t->data_type = type;
    t->n_dims = (size_t)rank;
    t->dims = copy(dims, (size_t)rank * sizeof dims[0]);
    return t;
}

Onnx__Tensor *onnx_add_tensor(onnx_builder *b, Onnx__Tensor *t)
{
    APPEND(b->graph.initializer, b->graph.n_initializer, t);
    return t;
}

static void set_raw(Onnx__Tensor *t, const void *data, size_t bytes)
{
    t->has_raw_data = 1;
    t->raw_data.data = copy(data, bytes);
    t->raw_data.len = bytes;
}

Onnx__Tensor *onnx_add_floats(onnx_builder *b, const char *name, int count, const float *data)
{
    int64_t dim = count;
    Onnx__Tensor *t = onnx_make_tensor(name, 1, 1, &dim);
    set_raw(t, data, (size_t)count * 4);
    return onnx_add_tensor(b, t);
}

Onnx__Tensor *onnx_add_ints(onnx_builder *b, const char *name, int count, const int64_t *data)
{
    int64_t dim = count;
    Onnx__Tensor *t = onnx_make_tensor(name, 7, 1, &dim);
    set_raw(t, data, (size_t)count * 8);
    return onnx_add_tensor(b, t);
}

void onnx_set_external(Onnx__Tensor *t, const char *key, const char *value)
{
    NEW(e, Onnx__StringEntry, onnx__string_entry);
    e->key = (char *)key;
    e->value = (char *)value;
    APPEND(t->external_data, t->n_external_data, e);
}

Onnx__Attribute *onnx_set(Onnx__Node *n, const char *name, int type)
{
    NEW(a, Onnx__Attribute, onnx__attribute);
    a->name = (char *)name;
    a->has_type = 1;
    a->type = type;
    APPEND(n->attribute, n->n_attribute, a);
    return a;
}

void onnx_set_int(Onnx__Node *n, const char *name, int64_t i)
{
    Onnx__Attribute *a = onnx_set(n, name, ONNX__ATTRIBUTE__TYPE__INT);
    a->has_i = 1;
    a->i = i;
}

void onnx_set_float(Onnx__Node *n, const char *name, float f)
{
    Onnx__Attribute *a = onnx_set(n, name, ONNX__ATTRIBUTE__TYPE__FLOAT);
    a->has_f = 1;
    a->f = f;
}

void onnx_set_string(Onnx__Node *n, const char *name, const char *s)
{
    Onnx__Attribute *a = onnx_set(n, name, ONNX__ATTRIBUTE__TYPE__STRING);
    a->has_s = 1;
    a->s.data = (uint8_t *)s;
    a->s.len = strlen(s);
}

void onnx_set_floats(Onnx__Node *n, const char *name, int count, const float *floats)
{
    Onnx__Attribute *a = onnx_set(n, name, ONNX__ATTRIBUTE__TYPE__FLOATS);
    a->n_floats = (size_t)count;
    a->floats = copy(floats, (size_t)count * sizeof floats[0]);
}

void onnx_set_ints(Onnx__Node *n, const char *name, int count, const int64_t *ints)
{
    Onnx__Attribute *a = onnx_set(n, name, ONNX__ATTRIBUTE__TYPE__INTS);
    a->n_ints = (size_t)count;
    a->ints = copy(ints, (size_t)count * sizeof ints[0]);
}

void onnx_set_reference(Onnx__Node *n, const char *name, int type, const char *refers_to)
{
    onnx_set(n, name, type)->ref_attr_name = (char *)refers_to;
}

Onnx__Function *onnx_add_function(onnx_builder *b, const char *domain, const char *name,
                                  const char *const *inputs, const char *const *outputs,
                                  int node_count, Onnx__Node **nodes)
{
    NEW(f, Onnx__Function, onnx__function);
    f->domain = (char *)domain;
    f->name = (char *)name;
    for (; *inputs != NULL; inputs++)
        APPEND(f->input, f->n_input, (char *)*inputs);
    for (; *outputs != NULL; outputs++)
        APPEND(f->output, f->n_output, (char *)*outputs);
    for (int i = 0; i < node_count; i++)
        APPEND(f->node, f->n_node, nodes[i]);
    APPEND(b->model.functions, b->model.n_functions, f);
    return f;
}

uint8_t *onnx_pack(const onnx_builder *b, size_t *bytes)
{
    *bytes = onnx__model__get_packed_size(&b->model);
    uint8_t *data = arena_allocate(&kept, *bytes + 1);
    onnx__model__pack(&b->model, data);
    return data;
}

status onnx_import(const onnx_builder *b, graph **out)
{
    size_t bytes;
    uint8_t *data = onnx_pack(b, &bytes);
    status s = graph_import_onnx_bytes(data, bytes, b->folder, NULL, out);
    /* The importer may not lean on the caller's bytes. */
    memset(data, 0xee, bytes);
    return s;
}

graph *onnx_expect(const onnx_builder *b)
{
    graph *g = NULL;
    status s = onnx_import(b, &g);
    cr_assert_eq(s, STATUS_OK, "%s: %s", status_name(s), status_message());
    return g;
}

void onnx_expect_failure(const onnx_builder *b, status code, const char *const *words)
{
    graph *g = NULL;
    status s = onnx_import(b, &g);
    cr_assert_eq(s, code, "%s: %s", status_name(s), s ? status_message() : "it was imported");
    cr_assert_null(g);
    for (; *words != NULL; words++)
        cr_assert(strstr(status_message(), *words) != NULL, "'%s' lacks '%s'", status_message(),
                  *words);
}

const char *onnx_operators(const graph *g)
{
    static char text[4000];
    size_t used = 0;
    text[0] = 0;
    for (int32_t i = 0; i < g->node_count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "",
                                 graph_op_name(g->nodes[i].op));
    return text;
}

const graph_node *onnx_node_of(const graph *g, graph_op op)
{
    for (int32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].op == op)
            return &g->nodes[i];
    cr_assert(false, "there is no %s among %s", graph_op_name(op), onnx_operators(g));
    return NULL;
}

const char *onnx_constant_text(const graph *g, graph_value_index value)
{
    static char text[1000];
    size_t used = 0;
    if (value == GRAPH_NO_VALUE || g->values[value].constant == NULL)
        return "?";
    const tensor *t = g->values[value].constant;
    text[0] = 0;
    for (int64_t i = 0; i < tensor_count(t); i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%g", i ? "," : "",
                                 tensor_get_number(t, i));
    return text;
}
