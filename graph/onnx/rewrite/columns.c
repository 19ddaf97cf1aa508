#include <math.h>

#include "graph/onnx/rewrite/rewrite.h"

/* Operators of domain ai.onnx.ml (onnx/docs/Operators-ml.md) that prepare columns of numbers,
 * rewritten to standard ones. */

typedef struct number_list {
    const graph_attribute *attribute; /* NULL: the node has none */
    graph_value_index value;          /* a constant of rank 1 */
    bool is_float;
} number_list;

/* The list of floats or the list of INT64 that the node has. */
static number_list take_list(onnx_node *n, const char *floats, const char *ints)
{
    number_list out = {.value = GRAPH_NO_VALUE};
    const graph_attribute *f = onnx_pop_attribute(n, floats), *i = onnx_pop_attribute(n, ints);
    if (f != NULL && f->kind == GRAPH_ATTRIBUTE_FLOATS && f->count > 0) {
        int64_t count = (int64_t)f->count;
        out =
            (number_list){f, graph_add_constant_f32(n->graph, n->name, 1, &count, f->floats), true};
    } else if (i != NULL && i->kind == GRAPH_ATTRIBUTE_INTS && i->count > 0) {
        int64_t count = (int64_t)i->count;
        out =
            (number_list){i, graph_add_constant_i64(n->graph, n->name, 1, &count, i->ints), false};
    }
    return out;
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
    number_list values = take_list(n, "imputed_value_floats", "imputed_value_int64s");
    float mark = onnx_pop_float(n, "replaced_value_float", 0);
    int64_t mark_int = onnx_pop_int(n, "replaced_value_int64", 0);
    graph_value_index x = n->inputs[0], is_missing;
    if (values.attribute == NULL)
        return onnx_fail(n, STATUS_CORRUPT, "its values are missing");
    if (!values.is_float)
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
    number_list categories = take_list(n, "cats_floats", "cats_int64s");
    onnx_pop_attribute(n, "zeros");
    if (categories.attribute == NULL)
        return onnx_fail(n, STATUS_UNSUPPORTED,
                         "its categories are no list of integers; "
                         "supported: cats_int64s");
    graph_value_index x = onnx_cast(n, n->inputs[0], dtype_to_onnx(DTYPE_I64));
    onnx_finish_as(n, compare(n, x, categories.value));
    return onnx_check_no_attributes(n);
}

static bool has_nan(const number_list *keys)
{
    for (size_t i = 0; keys->is_float && i < keys->attribute->count; i++)
        if (isnan(keys->attribute->floats[i]))
            return true;
    return false;
}

/* The value beside the first key that an element equals, or a default. */
status onnx_rewrite_label_encoder(onnx_node *n)
{
    number_list keys = take_list(n, "keys_floats", "keys_int64s");
    number_list values = take_list(n, "values_floats", "values_int64s");
    int64_t other_int = onnx_pop_int(n, "default_int64", -1);
    float other_float = onnx_pop_float(n, "default_float", -0.0f);
    onnx_pop_attribute(n, "default_string");
    if (keys.attribute == NULL || values.attribute == NULL || has_nan(&keys))
        return onnx_fail(n, STATUS_UNSUPPORTED,
                         "its keys or values are no lists of numbers; supported: keys_int64s, "
                         "keys_floats without NaN, values_int64s, values_floats");
    if (keys.attribute->count != values.attribute->count)
        return onnx_fail(n, STATUS_CORRUPT, "%zu keys and %zu values", keys.attribute->count,
                         values.attribute->count);
    graph_attribute along[] = {graph_make_int("axis", -1), graph_make_int("keepdims", 0)};
    int64_t last = -1;
    graph_value_index is_key = compare(n, n->inputs[0], keys.value);
    graph_value_index reduced[] = {is_key, onnx_ints(n, 1, &last)};
    graph_value_index is_found = graph_add(n->graph, GRAPH_OP_REDUCE_MAX, 2, reduced, 1, &along[1]);
    graph_value_index key = graph_add(n->graph, GRAPH_OP_ARG_MAX, 1, &is_key, 2, along);
    graph_value_index found[] = {values.value, key};
    graph_value_index other = values.is_float ? onnx_float(n, other_float) : onnx_int(n, other_int);
    graph_value_index inputs[] = {onnx_cast(n, is_found, dtype_to_onnx(DTYPE_BOOL)),
                                  graph_add(n->graph, GRAPH_OP_GATHER, 2, found, 0, NULL), other};
    onnx_finish(n, GRAPH_OP_WHERE, 3, inputs, 0, NULL);
    return onnx_check_no_attributes(n);
}
