#ifndef GRAPH_ONNX_REWRITE_REWRITE_H
#define GRAPH_ONNX_REWRITE_REWRITE_H

#include "graph/onnx/importer.h"

/* Helpers for rewrites. Only the files of graph/onnx/rewrite may include this. */

/* Removes an attribute from the node and returns it; NULL: it is absent. */
const graph_attribute *onnx_pop_attribute(onnx_node *n, const char *name);
int64_t onnx_pop_int(onnx_node *n, const char *name, int64_t otherwise);
float onnx_pop_float(onnx_node *n, const char *name, float otherwise);
const char *onnx_pop_string(onnx_node *n, const char *name, const char *otherwise);
void onnx_add_attribute(onnx_node *n, graph_attribute a);

graph_value_index onnx_input(const onnx_node *n, int i);
void onnx_set_input(onnx_node *n, int i, graph_value_index value); /* i < proto inputs + 8 */
/* Moves an int-list attribute to input `i` (INT64 vector), if it is present and the input is not.
 */
void onnx_ints_to_input(onnx_node *n, const char *name, int i);

graph_value_index onnx_ints(onnx_node *n, int64_t count, const int64_t *ints);
graph_value_index onnx_int(onnx_node *n, int64_t i);
graph_value_index onnx_float(onnx_node *n, float f);
/* A float scalar of the element type of `like`. */
graph_value_index onnx_float_like(onnx_node *n, float f, graph_value_index like);

/* New nodes of one output, before the node. */
graph_value_index onnx_unary(onnx_node *n, graph_op op, graph_value_index x);
graph_value_index onnx_binary(onnx_node *n, graph_op op, graph_value_index a, graph_value_index b);
graph_value_index onnx_cast(onnx_node *n, graph_value_index x, int onnx_type);
/* Adds the node that writes output 0 of `n` and ends its import. */
void onnx_finish(onnx_node *n, graph_op op, int input_count, const graph_value_index *inputs,
                 int attribute_count, const graph_attribute *attributes);
void onnx_finish_as(onnx_node *n, graph_value_index value); /* Identity */
bool onnx_has_output(const onnx_node *n, int output);
/* x + term, or x where term is GRAPH_NO_VALUE. */
graph_value_index onnx_add_optional(onnx_node *n, graph_value_index x, graph_value_index term);

/* STATUS_UNSUPPORTED unless the node has at_least to at_most inputs; STATUS_CORRUPT when one of the
 * first `at_least` is absent. */
status onnx_check_inputs(const onnx_node *n, int at_least, int at_most) MUST_CHECK;
/* STATUS_UNSUPPORTED names an attribute that is left on the node. */
status onnx_check_no_attributes(const onnx_node *n) MUST_CHECK;

/* attention.c: com.microsoft::Attention and MultiHeadAttention. */
status onnx_rewrite_attention(onnx_node *n) MUST_CHECK;
status onnx_rewrite_multi_head_attention(onnx_node *n) MUST_CHECK;

/* loss.c, standard_attention.c: NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss; Attention of
 * the standard domain. */
status onnx_rewrite_nll_loss(onnx_node *n) MUST_CHECK;
status onnx_rewrite_softmax_loss(onnx_node *n) MUST_CHECK;
status onnx_rewrite_standard_attention(onnx_node *n) MUST_CHECK;

/* newer.c: functions of the standard, and operators after opset 21. */
status onnx_rewrite_center_crop_pad(onnx_node *n) MUST_CHECK;
status onnx_rewrite_rotary_embedding(onnx_node *n) MUST_CHECK;
status onnx_rewrite_swiglu(onnx_node *n) MUST_CHECK;
status onnx_rewrite_tensor_scatter(onnx_node *n) MUST_CHECK;

/* transform.c: what follows the scores of ai.onnx.ml. The values are rows of scores in FP32. */
typedef enum onnx_transform {
    ONNX_TRANSFORM_NONE,
    ONNX_TRANSFORM_SOFTMAX,
    ONNX_TRANSFORM_LOGISTIC,
    ONNX_TRANSFORM_SOFTMAX_ZERO
} onnx_transform;

status onnx_read_transform(onnx_node *n, onnx_transform *out) MUST_CHECK;
/* Of rows of two scores and more. */
graph_value_index onnx_apply_transform(onnx_node *n, onnx_transform t, graph_value_index x);
graph_value_index onnx_join_columns(onnx_node *n, graph_value_index a, graph_value_index b);
/* 1 where column `column` of the scores is above `limit`, else 0. */
graph_value_index onnx_is_above(onnx_node *n, graph_value_index scores, int64_t column,
                                float limit);
/* The column of each row's largest score; the first one of equals. */
graph_value_index onnx_best_column(onnx_node *n, graph_value_index scores);
/* Output 0: labels[index]; output 1: the scores, transformed; those that the node has. */
void onnx_finish_classes(onnx_node *n, graph_value_index labels, graph_value_index index,
                         onnx_transform t, graph_value_index scores);

/* ml.c, trees.c, columns.c, svm.c: domain ai.onnx.ml. A list of FP32, or NULL. The labels of a
 * classifier as a constant list. */
const graph_attribute *onnx_take_floats(onnx_node *n, const char *name);
/* A list of strings as a constant of rank 1; the strings themselves are not copied. */
status onnx_add_strings(onnx_node *n, const graph_attribute *strings,
                        graph_value_index *out) MUST_CHECK;
status onnx_take_class_labels(onnx_node *n, graph_value_index *out, int64_t *count) MUST_CHECK;
status onnx_rewrite_tree_classifier(onnx_node *n) MUST_CHECK;
status onnx_rewrite_tree_regressor(onnx_node *n) MUST_CHECK;
status onnx_rewrite_tree_ensemble(onnx_node *n) MUST_CHECK;

/* svm.c */
status onnx_rewrite_svm_classifier(onnx_node *n) MUST_CHECK;
status onnx_rewrite_svm_regressor(onnx_node *n) MUST_CHECK;

/* columns.c */
status onnx_rewrite_binarizer(onnx_node *n) MUST_CHECK;
status onnx_rewrite_category_mapper(onnx_node *n) MUST_CHECK;
status onnx_rewrite_imputer(onnx_node *n) MUST_CHECK;
status onnx_rewrite_label_encoder(onnx_node *n) MUST_CHECK;
status onnx_rewrite_one_hot_encoder(onnx_node *n) MUST_CHECK;

/* quantised.c: com.microsoft::QLinear..., QGemm and integer matrix multiplications. */
status onnx_rewrite_qlinear_binary(onnx_node *n) MUST_CHECK;
status onnx_rewrite_qgemm(onnx_node *n) MUST_CHECK;
status onnx_rewrite_qlinear_unary(onnx_node *n) MUST_CHECK;
status onnx_rewrite_qlinear_concat(onnx_node *n) MUST_CHECK;
status onnx_rewrite_matmul_integer_to_float(onnx_node *n) MUST_CHECK;
status onnx_rewrite_dynamic_quantize_matmul(onnx_node *n) MUST_CHECK;
status onnx_rewrite_dynamic_quantize_lstm(onnx_node *n) MUST_CHECK;

#endif
