#include <math.h>

#include "graph/onnx/rewrite/rewrite.h"

/* Operators of domain ai.onnx.ml (onnx/docs/Operators-ml.md) that prepare columns of numbers and
 * strings, rewritten to standard ones. */

/* A list of numbers or strings that the node has. */
typedef struct item_list {
    size_t count;            /* 0: it has none */
    graph_value_index value; /* a constant of rank 1 */
    dtype type;
    const float *floats; /* of DTYPE_F32 */
} item_list;

/* Takes `attribute` where it is a list with items. */
static status take_items(onnx_node *n, const char *name, item_list *out)
{
    const graph_attribute *a = onnx_pop_attribute(n, name);
    int64_t count = a != NULL ? (int64_t)a->count : 0;
    if (count == 0 || out->count > 0)
        return STATUS_OK;
    *out = (item_list){.count = a->count, .type = DTYPE_I64};
    if (a->kind == GRAPH_ATTRIBUTE_INTS) {
        out->value = graph_add_constant_i64(n->graph, n->name, 1, &count, a->ints);
    } else if (a->kind == GRAPH_ATTRIBUTE_FLOATS) {
        out->type = DTYPE_F32;
        out->floats = a->floats;
        out->value = graph_add_constant_f32(n->graph, n->name, 1, &count, a->floats);
    } else if (a->kind == GRAPH_ATTRIBUTE_STRINGS) {
        out->type = DTYPE_BYTES;
        return onnx_add_strings(n, a, &out->value);
    } else {
        return onnx_fail(n, STATUS_CORRUPT, "attribute '%s' is no list", name);
    }
    return STATUS_OK;
}

/* Takes a tensor as a list. */
static status take_tensor(onnx_node *n, const char *name, item_list *out)
{
    const graph_attribute *a = onnx_pop_attribute(n, name);
    if (a == NULL || out->count > 0)
        return STATUS_OK;
    if (a->kind != GRAPH_ATTRIBUTE_TENSOR || a->t->rank > 1)
        return onnx_fail(n, STATUS_CORRUPT, "attribute '%s' is no list", name);
    tensor list = *a->t;
    list.rank = 1;
    list.dims[0] = tensor_count(a->t);
    *out = (item_list){.count = (size_t)list.dims[0],
                       .type = list.dtype,
                       .floats = list.dtype == DTYPE_F32 ? list.data : NULL,
                       .value = graph_add_constant(n->graph, n->name, &list)};
    return STATUS_OK;
}

/* The one list of these attributes that the node has; an empty one if it has none. */
static status take_list(onnx_node *n, const char *floats, const char *ints, const char *strings,
                        item_list *out)
{
    *out = (item_list){.value = GRAPH_NO_VALUE};
    status s = take_items(n, floats, out);
    if (!s)
        s = take_items(n, ints, out);
    return s || strings == NULL ? s : take_items(n, strings, out);
}

/* x > threshold, as 0 or 1. */
status onnx_rewrite_binarizer(onnx_node *n)
{
    graph_value_index x = n->inputs[0];
    graph_value_index threshold = onnx_float_like(n, onnx_pop_float(n, "threshold", 0), x);
    graph_value_index is_above = onnx_binary(n, GRAPH_OP_GREATER, x, threshold);
    onnx_finish_as(n, onnx_binary(n, GRAPH_OP_CAST_LIKE, is_above, x));
    return onnx_check_no_attributes(n);
}

/* The value of its column in place of each element that is missing. */
status onnx_rewrite_imputer(onnx_node *n)
{
    item_list values;
    status s = take_list(n, "imputed_value_floats", "imputed_value_int64s", NULL, &values);
    float mark = onnx_pop_float(n, "replaced_value_float", 0);
    int64_t mark_int = onnx_pop_int(n, "replaced_value_int64", 0);
    graph_value_index x = n->inputs[0], is_missing;
    if (s)
        return s;
    if (values.count == 0)
        return onnx_fail(n, STATUS_CORRUPT, "its values are missing");
    if (values.type == DTYPE_I64)
        is_missing = onnx_binary(n, GRAPH_OP_EQUAL, x, onnx_int(n, mark_int));
    else if (isnan(mark))
        is_missing = onnx_unary(n, GRAPH_OP_IS_NAN, x);
    else
        is_missing = onnx_binary(n, GRAPH_OP_EQUAL, x, onnx_float_like(n, mark, x));
    graph_value_index inputs[] = {is_missing, values.value, x};
    onnx_finish(n, GRAPH_OP_WHERE, 3, inputs, 0, NULL);
    return onnx_check_no_attributes(n);
}

/* Whether each element is each of the keys: one more dim. */
static graph_value_index compare(onnx_node *n, graph_value_index x, graph_value_index keys)
{
    int64_t last = -1;
    x = onnx_binary(n, GRAPH_OP_UNSQUEEZE, x, onnx_ints(n, 1, &last));
    return onnx_cast(n, onnx_binary(n, GRAPH_OP_EQUAL, x, keys), dtype_to_onnx(DTYPE_F32));
}

/* An element of no category gives zeros, also where the file would rather fail (zeros=0): other
 * rows of the batch are other people's. */
status onnx_rewrite_one_hot_encoder(onnx_node *n)
{
    item_list categories;
    status s = take_list(n, "cats_floats", "cats_int64s", "cats_strings", &categories);
    onnx_pop_attribute(n, "zeros");
    if (s)
        return s;
    if (categories.count == 0)
        return onnx_fail(n, STATUS_CORRUPT, "its categories are missing");
    graph_value_index x = n->inputs[0];
    if (categories.type != DTYPE_BYTES)
        x = onnx_cast(n, x, dtype_to_onnx(categories.type));
    onnx_finish_as(n, compare(n, x, categories.value));
    return onnx_check_no_attributes(n);
}

static bool has_nan(const item_list *keys)
{
    for (size_t i = 0; keys->floats != NULL && i < keys->count; i++)
        if (isnan(keys->floats[i]))
            return true;
    return false;
}

/* The value beside the first key that an element equals, or `other`. */
static status finish_look_up(onnx_node *n, const item_list *keys, const item_list *values,
                             graph_value_index other)
{
    graph_attribute along[] = {graph_make_int("axis", -1), graph_make_int("keepdims", 0)};
    int64_t last = -1;
    graph_value_index is_key = compare(n, n->inputs[0], keys->value);
    graph_value_index reduced[] = {is_key, onnx_ints(n, 1, &last)};
    graph_value_index is_found = graph_add(n->graph, GRAPH_OP_REDUCE_MAX, 2, reduced, 1, &along[1]);
    graph_value_index key = graph_add(n->graph, GRAPH_OP_ARG_MAX, 1, &is_key, 2, along);
    graph_value_index found[] = {values->value, key};
    graph_value_index inputs[] = {onnx_cast(n, is_found, dtype_to_onnx(DTYPE_BOOL)),
                                  graph_add(n->graph, GRAPH_OP_GATHER, 2, found, 0, NULL), other};
    onnx_finish(n, GRAPH_OP_WHERE, 3, inputs, 0, NULL);
    return onnx_check_no_attributes(n);
}

/* What a node has for an element that it does not know: a list of one. */
typedef struct defaults {
    float number;
    int64_t integer;
    const char *string;
    item_list given; /* default_tensor */
} defaults;

static status take_defaults(onnx_node *n, defaults *out)
{
    *out = (defaults){onnx_pop_float(n, "default_float", -0.0f),
                      onnx_pop_int(n, "default_int64", -1),
                      onnx_pop_string(n, "default_string", "_Unused"),
                      {.value = GRAPH_NO_VALUE}};
    return take_tensor(n, "default_tensor", &out->given);
}

static status default_of(onnx_node *n, const defaults *d, dtype type, graph_value_index *out)
{
    if (d->given.count > 0) {
        *out = d->given.value;
        return d->given.count == 1 && d->given.type == type
                   ? STATUS_OK
                   : onnx_fail(n, STATUS_CORRUPT, "default_tensor is not one of its values");
    }
    const graph_attribute string = {
        .kind = GRAPH_ATTRIBUTE_STRINGS, .count = 1, .strings = &d->string};
    switch (type) {
    case DTYPE_BYTES:
        return onnx_add_strings(n, &string, out);
    case DTYPE_I64:
        *out = onnx_int(n, d->integer);
        return STATUS_OK;
    default:
        *out = onnx_float(n, d->number);
        *out = type == DTYPE_F32 ? *out : onnx_cast(n, *out, dtype_to_onnx(type));
        return STATUS_OK;
    }
}

status onnx_rewrite_label_encoder(onnx_node *n)
{
    item_list keys, values;
    defaults d;
    graph_value_index other = GRAPH_NO_VALUE;
    status s = take_list(n, "keys_floats", "keys_int64s", "keys_strings", &keys);
    if (!s)
        s = take_tensor(n, "keys_tensor", &keys);
    if (!s)
        s = take_list(n, "values_floats", "values_int64s", "values_strings", &values);
    if (!s)
        s = take_tensor(n, "values_tensor", &values);
    if (!s)
        s = take_defaults(n, &d);
    if (s)
        return s;
    if (keys.count == 0 || has_nan(&keys))
        return onnx_fail(n, STATUS_UNSUPPORTED,
                         "its keys are missing, or one is NaN; supported: integers, strings and "
                         "numbers other than NaN");
    if (keys.count != values.count)
        return onnx_fail(n, STATUS_CORRUPT, "%zu keys and %zu values", keys.count, values.count);
    s = default_of(n, &d, values.type, &other);
    return s ? s : finish_look_up(n, &keys, &values, other);
}

/* From integers to strings or back, as the output has the type. */
status onnx_rewrite_category_mapper(onnx_node *n)
{
    item_list numbers = {.value = GRAPH_NO_VALUE}, names = {.value = GRAPH_NO_VALUE};
    defaults d;
    graph_value_index other = GRAPH_NO_VALUE;
    status s = take_items(n, "cats_int64s", &numbers);
    if (!s)
        s = take_items(n, "cats_strings", &names);
    if (!s)
        s = take_defaults(n, &d);
    if (s)
        return s;
    if (numbers.count == 0 || numbers.count != names.count || names.type != DTYPE_BYTES)
        return onnx_fail(n, STATUS_CORRUPT, "%zu integers and %zu strings", numbers.count,
                         names.count);
    const graph_value *x = &n->graph->values[n->inputs[0]];
    if (!x->has_dtype)
        return onnx_fail(n, STATUS_UNSUPPORTED,
                         "the type of its input is unknown; supported: an input of the model");
    bool is_string = x->dtype == DTYPE_BYTES;
    s = default_of(n, &d, is_string ? DTYPE_I64 : DTYPE_BYTES, &other);
    if (s)
        return s;
    return is_string ? finish_look_up(n, &names, &numbers, other)
                     : finish_look_up(n, &numbers, &names, other);
}
