#include <string.h>

#include "graph/onnx/rewrite/rewrite.h"

/* Operators of domain ai.onnx.ml (onnx/docs/Operators-ml.md) that are dense arithmetic, as the
 * converter of scikit-learn writes them, rewritten to standard ones. */

static const graph_attribute *take_floats(onnx_node *n, const char *name)
{
    const graph_attribute *a = onnx_pop_attribute(n, name);
    return a != NULL && a->kind == GRAPH_ATTRIBUTE_FLOATS && a->count > 0 ? a : NULL;
}

static graph_value_index floats(onnx_node *n, const graph_attribute *a)
{
    int64_t count = (int64_t)a->count;
    return graph_add_constant_f32(n->graph, n->name, 1, &count, a->floats);
}

static graph_value_index as_float(onnx_node *n, graph_value_index x)
{
    return onnx_cast(n, x, dtype_to_onnx(DTYPE_F32));
}

/* (x - offset) * scale */
static status rewrite_scaler(onnx_node *n)
{
    const graph_attribute *offset = take_floats(n, "offset"), *scale = take_floats(n, "scale");
    if (offset == NULL || scale == NULL)
        return onnx_fail(n, STATUS_CORRUPT, "offset or scale is missing");
    graph_value_index x = as_float(n, n->inputs[0]);
    x = onnx_binary(n, GRAPH_OP_SUB, x, floats(n, offset));
    graph_value_index inputs[] = {x, floats(n, scale)};
    onnx_finish(n, GRAPH_OP_MUL, 2, inputs, 0, NULL);
    return STATUS_OK;
}

/* x [B,C] times the transpose of `coefficients` [rows,C], plus intercepts. */
static status multiply(onnx_node *n, int64_t rows, graph_value_index *out)
{
    const graph_attribute *weights = take_floats(n, "coefficients");
    const graph_attribute *intercepts = take_floats(n, "intercepts");
    if (weights == NULL || rows < 1 || weights->count % (size_t)rows != 0 ||
        (intercepts != NULL && intercepts->count != (size_t)rows))
        return onnx_fail(n, STATUS_UNSUPPORTED,
                         "%zu coefficients and %zu intercepts for %lld results; supported: a row "
                         "of coefficients and an intercept for each",
                         weights != NULL ? weights->count : 0,
                         intercepts != NULL ? intercepts->count : 0, (long long)rows);
    int64_t dims[] = {rows, (int64_t)weights->count / rows};
    graph_value_index inputs[] = {
        as_float(n, n->inputs[0]),
        graph_add_constant_f32(n->graph, n->name, 2, dims, weights->floats), GRAPH_NO_VALUE};
    if (intercepts != NULL)
        inputs[2] = floats(n, intercepts);
    graph_attribute turned = graph_make_int("transB", 1);
    *out = graph_add(n->graph, GRAPH_OP_GEMM, intercepts != NULL ? 3 : 2, inputs, 1, &turned);
    return STATUS_OK;
}

static status read_post_transform(onnx_node *n, graph_op *op)
{
    const char *name = onnx_pop_string(n, "post_transform", "NONE");
    if (strcmp(name, "NONE") == 0)
        *op = GRAPH_OP_IDENTITY;
    else if (strcmp(name, "SOFTMAX") == 0)
        *op = GRAPH_OP_SOFTMAX;
    else if (strcmp(name, "LOGISTIC") == 0)
        *op = GRAPH_OP_SIGMOID;
    else
        return onnx_fail(n, STATUS_UNSUPPORTED,
                         "post_transform '%s'; supported: NONE, SOFTMAX, LOGISTIC", name);
    return STATUS_OK;
}

static status rewrite_linear_regressor(onnx_node *n)
{
    graph_op after = GRAPH_OP_IDENTITY;
    graph_value_index y;
    status s = read_post_transform(n, &after);
    if (s == STATUS_OK)
        s = multiply(n, onnx_pop_int(n, "targets", 1), &y);
    if (s == STATUS_OK)
        onnx_finish(n, after, 1, &y, 0, NULL);
    return s;
}

status onnx_take_class_labels(onnx_node *n, graph_value_index *out, int64_t *count)
{
    const graph_attribute *ints = onnx_pop_attribute(n, "classlabels_ints");
    if (ints == NULL)
        ints = onnx_pop_attribute(n, "classlabels_int64s");
    const graph_attribute *strings = onnx_pop_attribute(n, "classlabels_strings");
    if (ints != NULL && ints->kind == GRAPH_ATTRIBUTE_INTS && ints->count > 0) {
        *count = (int64_t)ints->count;
        *out = onnx_ints(n, *count, ints->ints);
        return STATUS_OK;
    }
    if (strings == NULL || strings->kind != GRAPH_ATTRIBUTE_STRINGS || strings->count == 0)
        return onnx_fail(n, STATUS_CORRUPT, "its class labels are missing");
    *count = (int64_t)strings->count;
    tensor t = {0};
    if (tensor_allocate(&t, &n->graph->memory, DTYPE_BYTES, 1, count))
        return onnx_fail_memory();
    for (int64_t i = 0; i < *count; i++)
        ((tensor_string *)t.data)[i] =
            (tensor_string){(const uint8_t *)strings->strings[i], strlen(strings->strings[i])};
    *out = graph_add_constant(n->graph, n->name, &t);
    return STATUS_OK;
}

/* Output 0: the label of the largest score; output 1: the scores, transformed. */
static status rewrite_linear_classifier(onnx_node *n)
{
    graph_op after = GRAPH_OP_IDENTITY;
    graph_value_index labels = GRAPH_NO_VALUE, scores;
    int64_t count;
    onnx_pop_attribute(n, "multi_class");
    status s = read_post_transform(n, &after);
    if (s == STATUS_OK)
        s = onnx_take_class_labels(n, &labels, &count);
    if (s == STATUS_OK)
        s = multiply(n, count, &scores);
    if (s)
        return s;
    graph_attribute along[] = {graph_make_int("axis", -1), graph_make_int("keepdims", 0)};
    if (onnx_has_output(n, 0)) {
        graph_value_index inputs[] = {labels,
                                      graph_add(n->graph, GRAPH_OP_ARG_MAX, 1, &scores, 2, along)};
        graph_add_node_to(n->graph, GRAPH_OP_GATHER, n->name, 2, inputs, 1, &n->outputs[0], 0,
                          NULL);
    }
    if (onnx_has_output(n, 1))
        graph_add_node_to(n->graph, after, n->name, 1, &scores, 1, &n->outputs[1],
                          after == GRAPH_OP_SOFTMAX ? 1 : 0, along);
    n->is_emitted = true;
    return STATUS_OK;
}

/* Divides each row by its maximum, its L1 norm or its L2 norm; zeros stay zeros. */
static status rewrite_normalizer(onnx_node *n)
{
    const char *norm = onnx_pop_string(n, "norm", "MAX");
    graph_op op = strcmp(norm, "L1") == 0   ? GRAPH_OP_REDUCE_L1
                  : strcmp(norm, "L2") == 0 ? GRAPH_OP_REDUCE_L2
                                            : GRAPH_OP_REDUCE_MAX;
    if (op == GRAPH_OP_REDUCE_MAX)
        return onnx_fail(n, STATUS_UNSUPPORTED, "norm '%s'; supported: L1, L2", norm);
    int64_t last = -1;
    graph_value_index x = as_float(n, n->inputs[0]);
    graph_value_index size = onnx_binary(n, op, x, onnx_ints(n, 1, &last));
    size = onnx_binary(n, GRAPH_OP_MAX, size, onnx_float(n, 1e-30f));
    graph_value_index inputs[] = {x, size};
    onnx_finish(n, GRAPH_OP_DIV, 2, inputs, 0, NULL);
    return STATUS_OK;
}

/* The columns of x that a list of indices selects; a vector is one row. */
static status rewrite_array_feature_extractor(onnx_node *n)
{
    if (n->input_count != 2 || n->inputs[1] == GRAPH_NO_VALUE)
        return onnx_fail(n, STATUS_CORRUPT, "its indices are missing");
    const int64_t flat[] = {-1}, front[] = {0};
    const tensor *x = n->graph->values[n->inputs[0]].constant;
    graph_value_index rows = n->inputs[0];
    if (x != NULL && x->rank == 1)
        rows = onnx_binary(n, GRAPH_OP_UNSQUEEZE, rows, onnx_ints(n, 1, front));
    graph_value_index inputs[] = {
        rows, onnx_binary(n, GRAPH_OP_RESHAPE, n->inputs[1], onnx_ints(n, 1, flat))};
    graph_attribute axis = graph_make_int("axis", -1);
    onnx_finish(n, GRAPH_OP_GATHER, 2, inputs, 1, &axis);
    return STATUS_OK;
}

/* A list of maps from label to score: the scores as they are, in the order of the labels. */
static status rewrite_zip_map(onnx_node *n)
{
    onnx_pop_attribute(n, "classlabels_int64s");
    onnx_pop_attribute(n, "classlabels_strings");
    onnx_finish_as(n, n->inputs[0]);
    if (!onnx_has_output(n, 0))
        return STATUS_OK;
    /* The file declares maps. */
    graph_value *scores = &n->graph->values[n->outputs[0]];
    const graph_dim any = {.is_unknown = true};
    scores->dtype = DTYPE_F32;
    scores->has_dtype = true;
    scores->shape = (graph_shape){.rank = 2, .dims = {any, any}};
    return STATUS_OK;
}

static const onnx_rewriting rewritings[] = {
    {"ArrayFeatureExtractor", rewrite_array_feature_extractor},
    {"Binarizer", onnx_rewrite_binarizer},
    {"Imputer", onnx_rewrite_imputer},
    {"LabelEncoder", onnx_rewrite_label_encoder},
    {"LinearClassifier", rewrite_linear_classifier},
    {"LinearRegressor", rewrite_linear_regressor},
    {"Normalizer", rewrite_normalizer},
    {"OneHotEncoder", onnx_rewrite_one_hot_encoder},
    {"Scaler", rewrite_scaler},
    {"TreeEnsemble", onnx_rewrite_tree_ensemble},
    {"TreeEnsembleClassifier", onnx_rewrite_tree_classifier},
    {"TreeEnsembleRegressor", onnx_rewrite_tree_regressor},
    {"ZipMap", rewrite_zip_map},
};

onnx_normalise_fn onnx_find_ml(const char *op_type)
{
    return onnx_find_rewriting(rewritings, sizeof rewritings / sizeof rewritings[0], op_type);
}

const char *onnx_list_ml(char *text, size_t text_bytes)
{
    return onnx_list_rewritings(rewritings, sizeof rewritings / sizeof rewritings[0], "ai.onnx.ml",
                                text, text_bytes);
}
