#include <string.h>

#include "graph/onnx/rewrite/rewrite.h"

/* Operators of domain ai.onnx.ml (onnx/docs/Operators-ml.md) that are dense arithmetic, as the
 * converter of scikit-learn writes them, rewritten to standard ones. */

const graph_attribute *onnx_take_floats(onnx_node *n, const char *name)
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
    const graph_attribute *offset = onnx_take_floats(n, "offset"),
                          *scale = onnx_take_floats(n, "scale");
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
    const graph_attribute *weights = onnx_take_floats(n, "coefficients");
    const graph_attribute *intercepts = onnx_take_floats(n, "intercepts");
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

static status rewrite_linear_regressor(onnx_node *n)
{
    onnx_transform after = ONNX_TRANSFORM_NONE;
    int64_t targets = onnx_pop_int(n, "targets", 1);
    graph_value_index y;
    status s = onnx_read_transform(n, &after);
    if (s == STATUS_OK)
        s = multiply(n, targets, &y);
    if (s == STATUS_OK)
        onnx_finish_as(n, targets > 1 ? onnx_apply_transform(n, after, y) : y);
    return s;
}

status onnx_add_strings(onnx_node *n, const graph_attribute *strings, graph_value_index *out)
{
    int64_t count = (int64_t)strings->count;
    tensor t = {0};
    if (tensor_allocate(&t, &n->graph->memory, DTYPE_BYTES, 1, &count))
        return onnx_fail_memory();
    for (int64_t i = 0; i < count; i++)
        ((tensor_string *)t.data)[i] =
            (tensor_string){(const uint8_t *)strings->strings[i], strlen(strings->strings[i])};
    *out = graph_add_constant(n->graph, n->name, &t);
    return STATUS_OK;
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
    return onnx_add_strings(n, strings, out);
}

static bool has_one_intercept(const onnx_node *n)
{
    for (int i = 0; i < n->attribute_count; i++)
        if (strcmp(n->attributes[i].name, "intercepts") == 0)
            return n->attributes[i].kind == GRAPH_ATTRIBUTE_FLOATS && n->attributes[i].count == 1;
    return false;
}

/* Two classes and one score: that of the second. */
static void finish_one_score(onnx_node *n, graph_value_index labels, onnx_transform after,
                             graph_value_index score)
{
    graph_value_index label = onnx_is_above(n, score, 0, 0);
    graph_value_index first = after == ONNX_TRANSFORM_LOGISTIC
                                  ? onnx_unary(n, GRAPH_OP_NEG, score)
                                  : onnx_binary(n, GRAPH_OP_SUB, onnx_float(n, 1), score);
    graph_value_index both = onnx_join_columns(n, first, score);
    after = after == ONNX_TRANSFORM_LOGISTIC ? after : ONNX_TRANSFORM_NONE;
    onnx_finish_classes(n, labels, label, after, both);
}

/* Output 0: the label of the largest score; output 1: the scores, transformed. */
static status rewrite_linear_classifier(onnx_node *n)
{
    onnx_transform after = ONNX_TRANSFORM_NONE;
    graph_value_index labels = GRAPH_NO_VALUE, scores;
    int64_t count;
    onnx_pop_attribute(n, "multi_class");
    status s = onnx_read_transform(n, &after);
    if (s == STATUS_OK)
        s = onnx_take_class_labels(n, &labels, &count);
    if (s)
        return s;
    bool is_one = count == 2 && has_one_intercept(n);
    s = multiply(n, is_one ? 1 : count, &scores);
    if (s)
        return s;
    if (is_one)
        finish_one_score(n, labels, after, scores);
    else
        onnx_finish_classes(n, labels, onnx_best_column(n, scores), after, scores);
    return STATUS_OK;
}

/* Divides each row by its maximum, where that is not zero. */
static void finish_by_maximum(onnx_node *n, graph_value_index x)
{
    int64_t last = -1;
    graph_value_index most = onnx_binary(n, GRAPH_OP_REDUCE_MAX, x, onnx_ints(n, 1, &last));
    graph_value_index is_zero = onnx_binary(n, GRAPH_OP_EQUAL, most, onnx_float(n, 0));
    graph_value_index choose[] = {is_zero, onnx_float(n, 1), most};
    most = graph_add(n->graph, GRAPH_OP_WHERE, 3, choose, 0, NULL);
    onnx_finish_as(n, onnx_binary(n, GRAPH_OP_DIV, x, most));
}

/* Divides each row by its maximum, its L1 norm or its L2 norm; zeros stay zeros. */
static status rewrite_normalizer(onnx_node *n)
{
    const char *norm = onnx_pop_string(n, "norm", "MAX");
    bool is_l1 = strcmp(norm, "L1") == 0;
    int64_t last = -1;
    graph_value_index x = as_float(n, n->inputs[0]);
    if (strcmp(norm, "MAX") == 0) {
        finish_by_maximum(n, x);
        return STATUS_OK;
    }
    if (!is_l1 && strcmp(norm, "L2") != 0)
        return onnx_fail(n, STATUS_UNSUPPORTED, "norm '%s'; supported: MAX, L1, L2", norm);
    graph_value_index size =
        onnx_binary(n, is_l1 ? GRAPH_OP_REDUCE_L1 : GRAPH_OP_REDUCE_L2, x, onnx_ints(n, 1, &last));
    size = onnx_binary(n, GRAPH_OP_MAX, size, onnx_float(n, 1e-30f));
    onnx_finish_as(n, onnx_binary(n, GRAPH_OP_DIV, x, size));
    return STATUS_OK;
}

/* The inputs side by side, as FP32. */
static status rewrite_feature_vectorizer(onnx_node *n)
{
    const graph_attribute *widths = onnx_pop_attribute(n, "inputdimensions");
    if (widths != NULL && widths->count != (size_t)n->input_count)
        return onnx_fail(n, STATUS_CORRUPT, "%zu widths for %d inputs", widths->count,
                         n->input_count);
    for (int i = 0; i < n->input_count; i++) {
        if (n->inputs[i] == GRAPH_NO_VALUE)
            return onnx_fail(n, STATUS_CORRUPT, "its input %d is missing", i);
        n->inputs[i] = as_float(n, n->inputs[i]);
    }
    graph_attribute axis = graph_make_int("axis", 1);
    onnx_finish(n, GRAPH_OP_CONCAT, n->input_count, n->inputs, 1, &axis);
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
    {"CategoryMapper", onnx_rewrite_category_mapper},
    {"FeatureVectorizer", rewrite_feature_vectorizer},
    {"Imputer", onnx_rewrite_imputer},
    {"LabelEncoder", onnx_rewrite_label_encoder},
    {"LinearClassifier", rewrite_linear_classifier},
    {"LinearRegressor", rewrite_linear_regressor},
    {"Normalizer", rewrite_normalizer},
    {"OneHotEncoder", onnx_rewrite_one_hot_encoder},
    {"SVMClassifier", onnx_rewrite_svm_classifier},
    {"SVMRegressor", onnx_rewrite_svm_regressor},
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
