#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"
#include "graph/onnx/importer.h"

/* One input as the file declares it. */
typedef struct declared {
    const char *input;
    const Onnx__Shape *shape;
} declared;

/* Which symbols of the inputs' dims are batch and sequence. Exporters name them freely ("batch",
 * "N", "unk__1", "s0") or not at all, so the axis decides: the symbol of a first dim is the batch;
 * the first other symbol of a second dim is the sequence. */
typedef struct symbols {
    const char *batch, *sequence; /* names, NULL while not known */
} symbols;

static bool is_symbol(const Onnx__Shape__Dimension *d)
{
    /* Some exporters write 0 or -1 for an unknown dim. */
    return !d->has_dim_value || d->dim_value < 0 || (d->dim_value == 0 && d->dim_param != NULL);
}

/* "?" is of no size in particular: two of them are two sizes. */
static const char *symbol_name(const Onnx__Shape__Dimension *d)
{
    return d->dim_param != NULL && d->dim_param[0] != 0 && strcmp(d->dim_param, "?") != 0
               ? d->dim_param
               : NULL;
}

static bool is_same(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

#define PLACE_BYTES_MAX 300

/* What a dim is called in "dims": its symbol, or without one its place, as "x[2]". */
static const char *fixing_name(const declared *d, size_t axis, char place[PLACE_BYTES_MAX])
{
    const char *name = symbol_name(d->shape->dim[axis]);
    if (name != NULL)
        return name;
    snprintf(place, PLACE_BYTES_MAX, "%.250s[%zu]", d->input, axis);
    return place;
}

static bool find_fixed(const onnx_importer *m, const declared *d, size_t axis, int64_t *size)
{
    char place[PLACE_BYTES_MAX];
    const char *name = fixing_name(d, axis, place);
    for (int i = 0; i < m->options.fixed_dim_count; i++) {
        if (strcmp(m->options.fixed_dims[i].symbol, name) == 0) {
            *size = m->options.fixed_dims[i].size;
            return true;
        }
    }
    return false;
}

static bool is_free_symbol(const onnx_importer *m, const declared *d, size_t axis)
{
    int64_t size;
    return is_symbol(d->shape->dim[axis]) && !find_fixed(m, d, axis, &size);
}

static symbols find_symbols(const onnx_importer *m, const declared *inputs, size_t count)
{
    symbols found = {0};
    for (size_t i = 0; i < count && found.batch == NULL; i++)
        if (inputs[i].shape->n_dim >= 2 && is_free_symbol(m, &inputs[i], 0))
            found.batch = symbol_name(inputs[i].shape->dim[0]);
    for (size_t i = 0; i < count && found.batch == NULL; i++)
        if (inputs[i].shape->n_dim >= 1 && is_free_symbol(m, &inputs[i], 0))
            found.batch = symbol_name(inputs[i].shape->dim[0]);
    for (size_t i = 0; i < count; i++) {
        if (inputs[i].shape->n_dim < 2 || !is_free_symbol(m, &inputs[i], 1))
            continue;
        const char *name = symbol_name(inputs[i].shape->dim[1]);
        if (name != NULL && found.sequence == NULL && !is_same(name, found.batch))
            found.sequence = name;
    }
    return found;
}

static graph_dim read_dim(const onnx_importer *m, const symbols *known, const declared *input,
                          size_t axis)
{
    const Onnx__Shape__Dimension *d = input->shape->dim[axis];
    if (!is_symbol(d))
        return graph_dim_constant(d->dim_value);
    const char *name = symbol_name(d);
    int64_t size;
    if (find_fixed(m, input, axis, &size))
        return graph_dim_constant(size);
    if (is_same(name, known->sequence))
        return (graph_dim){.sequence = 1};
    if (axis == 0 || is_same(name, known->batch))
        return (graph_dim){.batch = 1};
    if (name == NULL && axis == 1)
        return (graph_dim){.sequence = 1};
    return (graph_dim){.is_unknown = true};
}

#define NAMES_MAX 64

/* What "dims" may fix, each name once. From `scratch`. */
static status list_names(const declared *inputs, size_t count, arena *scratch,
                         const char *names[NAMES_MAX], size_t *name_count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < inputs[i].shape->n_dim && *name_count < NAMES_MAX; j++) {
            char place[PLACE_BYTES_MAX];
            if (!is_symbol(inputs[i].shape->dim[j]))
                continue;
            const char *name = fixing_name(&inputs[i], j, place);
            size_t k = 0;
            while (k < *name_count && strcmp(names[k], name) != 0)
                k++;
            if (k < *name_count)
                continue;
            if ((names[k] = arena_copy_string(scratch, name, strlen(name))) == NULL)
                return onnx_fail_memory();
            *name_count += 1;
        }
    }
    return STATUS_OK;
}

/* A fixed dim that no input has is a typing error, or meant for another model. */
static status check_fixed_dims(onnx_importer *m, const declared *inputs, size_t count)
{
    const char *names[NAMES_MAX];
    size_t name_count = 0;
    status failure = STATUS_OK;
    if (m->options.fixed_dim_count > 0)
        failure = list_names(inputs, count, &m->scratch, names, &name_count);
    if (failure)
        return failure;
    for (int i = 0; i < m->options.fixed_dim_count; i++) {
        const char *name = m->options.fixed_dims[i].symbol;
        size_t k = 0;
        while (k < name_count && strcmp(names[k], name) != 0)
            k++;
        if (k < name_count || name_count == NAMES_MAX)
            continue;
        const char *nearest = nearest_find(name, names, name_count);
        const char *all = "";
        for (k = 0; all != NULL && k < name_count; k++)
            all = arena_format(&m->scratch, "%s%s\"%s\"", all, k > 0 ? ", " : "", names[k]);
        if (all == NULL)
            return onnx_fail_memory();
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "dims: no input has an open dim named \"%s\"%s%s%s; open dims: %s", name,
                           nearest ? " (did you mean \"" : "", nearest ? nearest : "",
                           nearest ? "\"?)" : "", name_count > 0 ? all : "none");
    }
    return STATUS_OK;
}

/* Keeps the names of an input's dims, for people; constant dims have none. */
static status keep_names(const onnx_importer *m, graph_value *v, const declared *input)
{
    const Onnx__Shape *shape = input->shape;
    bool has_any = false;
    const char **names =
        arena_allocate_zeroed(&m->graph->memory, shape->n_dim + 1, sizeof names[0]);
    if (names == NULL)
        return onnx_fail_memory();
    for (size_t j = 0; j < shape->n_dim; j++) {
        int64_t size;
        const char *name = is_symbol(shape->dim[j]) ? symbol_name(shape->dim[j]) : NULL;
        if (name == NULL || find_fixed(m, input, j, &size))
            continue;
        if ((names[j] = arena_copy_string(&m->graph->memory, name, strlen(name))) == NULL)
            return onnx_fail_memory();
        has_any = true;
    }
    v->dim_names = has_any ? names : NULL;
    return STATUS_OK;
}

status onnx_add_inputs(onnx_scope *scope)
{
    onnx_importer *m = scope->importer;
    const Onnx__Graph *proto = m->model->graph;
    declared *inputs = arena_allocate_zeroed(&m->scratch, proto->n_input + 1, sizeof inputs[0]);
    const Onnx__ValueInfo **infos =
        arena_allocate_zeroed(&m->scratch, proto->n_input + 1, sizeof infos[0]);
    if (inputs == NULL || infos == NULL)
        return onnx_fail_memory();
    size_t count = 0;
    for (size_t i = 0; i < proto->n_input; i++) {
        const Onnx__ValueInfo *info = proto->input[i];
        graph_value_index value;
        if (info->name == NULL || info->name[0] == 0)
            return status_fail(STATUS_CORRUPT, "input %zu has no name", i);
        /* An input with an initialiser is optional: it is imported as that constant. */
        if (onnx_scope_find(scope, info->name, &value) && m->graph->values[value].constant != NULL)
            continue;
        if (info->type == NULL || info->type->tensor_type == NULL)
            return status_fail(STATUS_UNSUPPORTED,
                               "input '%s' is not a dense tensor; supported: dense tensors",
                               info->name);
        if (info->type->tensor_type->shape == NULL)
            return status_fail(STATUS_UNSUPPORTED, "input '%s' is declared without a shape",
                               info->name);
        const Onnx__Shape *shape = info->type->tensor_type->shape;
        if (shape->n_dim > TENSOR_RANK_MAX)
            return status_fail(STATUS_UNSUPPORTED, "input '%s' has rank %zu; the limit is %d",
                               info->name, shape->n_dim, TENSOR_RANK_MAX);
        inputs[count] = (declared){.input = info->name, .shape = shape};
        infos[count++] = info;
    }
    symbols known = find_symbols(m, inputs, count);
    status failure = check_fixed_dims(m, inputs, count);
    if (failure)
        return failure;
    for (size_t i = 0; i < count; i++) {
        dtype type;
        graph_dim dims[TENSOR_RANK_MAX];
        char where[200];
        snprintf(where, sizeof where, "input '%.150s'", infos[i]->name);
        status s = onnx_read_dtype(infos[i]->type->tensor_type->elem_type, where, &type);
        if (s)
            return s;
        size_t rank = inputs[i].shape->n_dim;
        for (size_t j = 0; j < rank; j++)
            dims[j] = read_dim(m, &known, &inputs[i], j);
        graph_value_index value = graph_add_input(m->graph, infos[i]->name, type, (int)rank, dims);
        s = keep_names(m, &m->graph->values[value], &inputs[i]);
        if (s)
            return s;
        s = onnx_scope_define(scope, infos[i]->name, value);
        if (s)
            return s;
    }
    return graph_check_memory(m->graph);
}

void onnx_declare_type(graph *g, graph_value_index value, const Onnx__ValueInfo *info)
{
    const Onnx__Type__Tensor *type = info->type != NULL ? info->type->tensor_type : NULL;
    graph_value *v = &g->values[value];
    dtype element;
    if (type == NULL || type->elem_type < 0 || type->elem_type > 255 ||
        !dtype_from_onnx(type->elem_type, &element) || v->constant != NULL)
        return;
    v->dtype = element;
    v->has_dtype = true;
    if (type->shape == NULL || type->shape->n_dim > TENSOR_RANK_MAX)
        return;
    v->shape.rank = (int)type->shape->n_dim;
    for (size_t i = 0; i < type->shape->n_dim; i++)
        v->shape.dims[i] = is_symbol(type->shape->dim[i])
                               ? (graph_dim){.is_unknown = true}
                               : graph_dim_constant(type->shape->dim[i]->dim_value);
}
