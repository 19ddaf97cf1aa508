#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "graph/onnx/rewrite/rewrite.h"

/* Operators of ONNX Runtime's domain com.microsoft (its ContribOperators.md), which its optimiser
 * and quantiser write, rewritten to standard ones. */

static status reject_extra_outputs(const onnx_node *n, int first)
{
    for (int i = first; i < n->output_count; i++)
        if (onnx_has_output(n, i))
            return onnx_fail(n, STATUS_UNSUPPORTED, "its output %d is not supported", i);
    return onnx_has_output(n, 0) ? STATUS_OK
                                 : onnx_fail(n, STATUS_UNSUPPORTED, "output 0 is not used");
}

/* The node is the standard operator of this name. */
static status become_standard(onnx_node *n)
{
    n->domain = "";
    return STATUS_OK;
}

static status finish_gelu(onnx_node *n, const char *approximate, int inputs_max)
{
    status s = onnx_check_inputs(n, 1, inputs_max);
    if (s == STATUS_OK)
        s = onnx_check_no_attributes(n);
    if (s)
        return s;
    graph_value_index x = onnx_add_optional(n, n->inputs[0], onnx_input(n, 1));
    graph_attribute a = graph_make_string("approximate", approximate);
    onnx_finish(n, GRAPH_OP_GELU, 1, &x, 1, &a);
    return STATUS_OK;
}

static status rewrite_gelu(onnx_node *n)
{
    return finish_gelu(n, "none", 1);
}

static status rewrite_bias_gelu(onnx_node *n)
{
    return finish_gelu(n, "none", 2);
}

static status rewrite_fast_gelu(onnx_node *n)
{
    return finish_gelu(n, "tanh", 2);
}

static status rewrite_quick_gelu(onnx_node *n)
{
    float alpha = onnx_pop_float(n, "alpha", 1.702f);
    status s = onnx_check_inputs(n, 1, 1);
    if (s)
        return s;
    graph_value_index x = n->inputs[0];
    graph_value_index scaled = onnx_binary(n, GRAPH_OP_MUL, x, onnx_float_like(n, alpha, x));
    graph_value_index inputs[] = {x, onnx_unary(n, GRAPH_OP_SIGMOID, scaled)};
    onnx_finish(n, GRAPH_OP_MUL, 2, inputs, 0, NULL);
    return STATUS_OK;
}

/* x / sqrt(mean(x^2) + epsilon) * scale over the last axis. */
static void finish_rms(onnx_node *n, graph_value_index x, graph_value_index scale, float epsilon)
{
    int64_t last = -1;
    graph_value_index square = onnx_binary(n, GRAPH_OP_MUL, x, x);
    graph_value_index mean = onnx_binary(n, GRAPH_OP_REDUCE_MEAN, square, onnx_ints(n, 1, &last));
    graph_value_index sum = onnx_binary(n, GRAPH_OP_ADD, mean, onnx_float_like(n, epsilon, mean));
    graph_value_index inputs[] = {
        onnx_binary(n, GRAPH_OP_DIV, x, onnx_unary(n, GRAPH_OP_SQRT, sum)), scale};
    onnx_finish(n, GRAPH_OP_MUL, 2, inputs, 0, NULL);
}

static status rewrite_simplified_layer_normalization(onnx_node *n)
{
    float epsilon = onnx_pop_float(n, "epsilon", 1e-5f);
    onnx_pop_attribute(n, "stash_type");
    status s = onnx_check_inputs(n, 2, 2);
    if (onnx_pop_int(n, "axis", -1) != -1)
        return onnx_fail(n, STATUS_UNSUPPORTED, "axis other than -1");
    if (s == STATUS_OK)
        s = reject_extra_outputs(n, 1);
    if (s == STATUS_OK)
        finish_rms(n, n->inputs[0], n->inputs[1], epsilon);
    return s;
}

/* The sum of a skip connection, also written to output 3 where that is used. */
static status add_skip(onnx_node *n, graph_value_index bias, graph_value_index *out)
{
    if (onnx_has_output(n, 1) || onnx_has_output(n, 2))
        return onnx_fail(n, STATUS_UNSUPPORTED, "outputs 1 and 2 (statistics) are not supported");
    graph_value_index sum = onnx_binary(n, GRAPH_OP_ADD, n->inputs[0], n->inputs[1]);
    sum = onnx_add_optional(n, sum, bias);
    if (onnx_has_output(n, 3))
        graph_add_node_to(n->graph, GRAPH_OP_IDENTITY, n->name, 1, &sum, 1, &n->outputs[3], 0,
                          NULL);
    *out = sum;
    return STATUS_OK;
}

static void finish_layer_normalization(onnx_node *n, graph_value_index x, graph_value_index gamma,
                                       graph_value_index beta, float epsilon)
{
    graph_value_index inputs[] = {x, gamma, beta};
    graph_attribute attributes[] = {graph_make_int("axis", -1),
                                    graph_make_float("epsilon", epsilon)};
    onnx_finish(n, GRAPH_OP_LAYER_NORMALIZATION, beta == GRAPH_NO_VALUE ? 2 : 3, inputs, 2,
                attributes);
}

static status rewrite_skip_layer_normalization(onnx_node *n)
{
    float epsilon = onnx_pop_float(n, "epsilon", 1e-12f);
    graph_value_index sum;
    status s = onnx_check_inputs(n, 3, 5);
    if (s == STATUS_OK)
        s = add_skip(n, onnx_input(n, 4), &sum);
    if (s == STATUS_OK)
        finish_layer_normalization(n, sum, n->inputs[2], onnx_input(n, 3), epsilon);
    return s;
}

static status rewrite_skip_simplified(onnx_node *n)
{
    float epsilon = onnx_pop_float(n, "epsilon", 1e-12f);
    graph_value_index sum;
    status s = onnx_check_inputs(n, 3, 4);
    if (s == STATUS_OK)
        s = add_skip(n, onnx_input(n, 3), &sum);
    if (s == STATUS_OK)
        finish_rms(n, sum, n->inputs[2], epsilon);
    return s;
}

/* The positions 0 .. S-1 of ids [B,S]. */
static graph_value_index make_positions(onnx_node *n, graph_value_index ids)
{
    graph_value_index shape = onnx_unary(n, GRAPH_OP_SHAPE, ids);
    graph_value_index length = onnx_binary(n, GRAPH_OP_GATHER, shape, onnx_int(n, 1));
    graph_value_index range[] = {onnx_int(n, 0), length, onnx_int(n, 1)};
    return graph_add(n->graph, GRAPH_OP_RANGE, 3, range, 0, NULL);
}

/* Output 1: the number of ones in each row of the mask [B,S], as INT32 [B]; zeros without a mask.
 */
static void count_mask(onnx_node *n, graph_value_index mask)
{
    int64_t last = 1;
    int int32 = dtype_to_onnx(DTYPE_I32);
    graph_value_index ones =
        mask == GRAPH_NO_VALUE ? onnx_binary(n, GRAPH_OP_SUB, n->inputs[0], n->inputs[0]) : mask;
    ones = onnx_cast(n, ones, int32);
    if (mask != GRAPH_NO_VALUE) {
        graph_value_index one = onnx_cast(n, onnx_int(n, 1), int32);
        ones = onnx_cast(n, onnx_binary(n, GRAPH_OP_EQUAL, ones, one), int32);
    }
    graph_value_index inputs[] = {ones, onnx_ints(n, 1, &last)};
    graph_attribute drop = graph_make_int("keepdims", 0);
    graph_add_node_to(n->graph, GRAPH_OP_REDUCE_SUM, n->name, 2, inputs, 1, &n->outputs[1], 1,
                      &drop);
}

/* Inputs: ids, segments?, word, position, segment?, gamma, beta, mask?, position ids?. */
static status rewrite_embed_layer_normalization(onnx_node *n)
{
    float epsilon = onnx_pop_float(n, "epsilon", 1e-12f);
    if (onnx_pop_int(n, "mask_index_type", 0) != 0)
        return onnx_fail(n, STATUS_UNSUPPORTED, "mask_index_type other than 0");
    if (n->input_count < 7 || n->inputs[0] == GRAPH_NO_VALUE || n->inputs[2] == GRAPH_NO_VALUE ||
        n->inputs[3] == GRAPH_NO_VALUE || n->inputs[5] == GRAPH_NO_VALUE)
        return onnx_fail(n, STATUS_CORRUPT, "an input is missing");
    if (onnx_has_output(n, 1))
        count_mask(n, onnx_input(n, 7));
    graph_value_index positions = onnx_input(n, 8);
    if (positions == GRAPH_NO_VALUE)
        positions = make_positions(n, n->inputs[0]);
    graph_value_index sum =
        onnx_binary(n, GRAPH_OP_ADD, onnx_binary(n, GRAPH_OP_GATHER, n->inputs[2], n->inputs[0]),
                    onnx_binary(n, GRAPH_OP_GATHER, n->inputs[3], positions));
    if (n->inputs[1] != GRAPH_NO_VALUE && n->inputs[4] != GRAPH_NO_VALUE)
        sum = onnx_binary(n, GRAPH_OP_ADD, sum,
                          onnx_binary(n, GRAPH_OP_GATHER, n->inputs[4], n->inputs[1]));
    if (onnx_has_output(n, 2))
        graph_add_node_to(n->graph, GRAPH_OP_IDENTITY, n->name, 1, &sum, 1, &n->outputs[2], 0,
                          NULL);
    finish_layer_normalization(n, sum, n->inputs[5], n->inputs[6], epsilon);
    return STATUS_OK;
}

/* alpha * A x B, either with its last two dims swapped. */
static status rewrite_fused_matmul(onnx_node *n)
{
    float alpha = onnx_pop_float(n, "alpha", 1);
    bool swaps_a = onnx_pop_int(n, "transA", 0) != 0, swaps_b = onnx_pop_int(n, "transB", 0) != 0;
    if (onnx_pop_int(n, "transBatchA", 0) != 0 || onnx_pop_int(n, "transBatchB", 0) != 0)
        return onnx_fail(n, STATUS_UNSUPPORTED, "transBatchA and transBatchB are not supported");
    status s = onnx_check_inputs(n, 2, 2);
    if (s)
        return s;
    graph_value_index a = n->inputs[0], inputs[] = {a, n->inputs[1]};
    if (alpha != 1)
        inputs[0] = onnx_binary(n, GRAPH_OP_MUL, a, onnx_float_like(n, alpha, a));
    if (!swaps_a && !swaps_b) {
        onnx_finish(n, GRAPH_OP_MATMUL, 2, inputs, 0, NULL);
        return STATUS_OK;
    }
    /* The ranks are unknown here, so a Transpose cannot have a permutation. */
    graph_attribute equation =
        graph_make_string("equation", swaps_a && swaps_b ? "...km,...nk->...mn"
                                      : swaps_a          ? "...km,...kn->...mn"
                                                         : "...mk,...nk->...mn");
    onnx_finish(n, GRAPH_OP_EINSUM, 2, inputs, 1, &equation);
    return STATUS_OK;
}

static const struct {
    const char *name;
    graph_op op;
    const char *parameters[2]; /* the attributes of activation_params, in order */
} activations[] = {
    {"Relu", GRAPH_OP_RELU, {0}},
    {"Tanh", GRAPH_OP_TANH, {0}},
    {"Sigmoid", GRAPH_OP_SIGMOID, {0}},
    {"LeakyRelu", GRAPH_OP_LEAKY_RELU, {"alpha"}},
    {"HardSigmoid", GRAPH_OP_HARD_SIGMOID, {"alpha", "beta"}},
};

/* Output 0 of `n` is the activation of x with these parameters. */
static status finish_activation(onnx_node *n, graph_value_index x, const char *name,
                                const float parameters[2])
{
    if (strcmp(name, "Clip") == 0) {
        graph_value_index inputs[] = {x, onnx_float_like(n, parameters[0], x),
                                      onnx_float_like(n, parameters[1], x)};
        onnx_finish(n, GRAPH_OP_CLIP, 3, inputs, 0, NULL);
        return STATUS_OK;
    }
    for (size_t i = 0; i < sizeof activations / sizeof activations[0]; i++) {
        if (strcmp(activations[i].name, name) != 0)
            continue;
        graph_attribute attributes[2];
        int count = 0;
        for (; count < 2 && activations[i].parameters[count] != NULL; count++)
            attributes[count] =
                graph_make_float(activations[i].parameters[count], parameters[count]);
        onnx_finish(n, activations[i].op, 1, &x, count, attributes);
        return STATUS_OK;
    }
    return onnx_fail(
        n, STATUS_UNSUPPORTED,
        "activation '%s'; supported: Relu, Tanh, Sigmoid, LeakyRelu, HardSigmoid, Clip", name);
}

/* A Conv or Gemm, plus `added` unless that is GRAPH_NO_VALUE, with an activation behind. The
 * parameters are an attribute list (FusedConv) or activation_alpha and activation_beta (FusedGemm).
 */
static status finish_with_activation(onnx_node *n, graph_op op, graph_value_index added)
{
    const char *name = onnx_pop_string(n, "activation", "");
    const graph_attribute *list = onnx_pop_attribute(n, "activation_params");
    float given[2] = {onnx_pop_float(n, "activation_alpha", 0.01f),
                      onnx_pop_float(n, "activation_beta", 0)};
    bool has_list = list != NULL && list->kind == GRAPH_ATTRIBUTE_FLOATS;
    for (size_t i = 0; has_list && i < 2; i++)
        given[i] = i < list->count ? list->floats[i] : given[i];
    onnx_pop_attribute(n, "activation_gamma");
    if (strcmp(name, "Clip") == 0 && (!has_list || list->count < 2))
        return onnx_fail(n, STATUS_CORRUPT, "activation_params of Clip must be its two bounds");
    n->op_type = graph_op_name(op);
    n->domain = "";
    if (name[0] == 0 && added == GRAPH_NO_VALUE)
        return STATUS_OK;
    status s = onnx_check_schema(n, op);
    if (s)
        return s;
    graph_value_index x =
        graph_add(n->graph, op, n->input_count, n->inputs, n->attribute_count, n->attributes);
    if (name[0] != 0)
        return finish_activation(n, onnx_add_optional(n, x, added), name, given);
    graph_value_index sum[] = {x, added};
    onnx_finish(n, GRAPH_OP_ADD, 2, sum, 0, NULL);
    return STATUS_OK;
}

/* Inputs: x, weights, bias?, z?; z is added before the activation. */
static status rewrite_fused_conv(onnx_node *n)
{
    status s = onnx_check_inputs(n, 2, 4);
    graph_value_index z = onnx_input(n, 3);
    n->input_count = n->input_count > 3 ? 3 : n->input_count;
    if (n->input_count == 3 && n->inputs[2] == GRAPH_NO_VALUE)
        n->input_count = 2;
    return s ? s : finish_with_activation(n, GRAPH_OP_CONV, z);
}

static status rewrite_fused_gemm(onnx_node *n)
{
    status s = onnx_check_inputs(n, 2, 3);
    return s ? s : finish_with_activation(n, GRAPH_OP_GEMM, GRAPH_NO_VALUE);
}

/* The distance of each row of x and each row of y. */
static status rewrite_cdist(onnx_node *n)
{
    const char *metric = onnx_pop_string(n, "metric", "sqeuclidean");
    bool is_root = strcmp(metric, "euclidean") == 0;
    status s = onnx_check_inputs(n, 2, 2);
    if (s)
        return s;
    if (!is_root && strcmp(metric, "sqeuclidean") != 0)
        return onnx_fail(n, STATUS_UNSUPPORTED, "metric '%s'; supported: euclidean, sqeuclidean",
                         metric);
    graph_value_index d = onnx_binary(n, GRAPH_OP_SQUARED_DISTANCE, n->inputs[0], n->inputs[1]);
    onnx_finish_as(n, is_root ? onnx_unary(n, GRAPH_OP_SQRT, d) : d);
    return onnx_check_no_attributes(n);
}

static const onnx_rewriting rewritings[] = {
    {"Attention", onnx_rewrite_attention},
    {"BiasGelu", rewrite_bias_gelu},
    {"CDist", rewrite_cdist},
    {"DequantizeLinear", become_standard},
    {"DynamicQuantizeLSTM", onnx_rewrite_dynamic_quantize_lstm},
    {"DynamicQuantizeMatMul", onnx_rewrite_dynamic_quantize_matmul},
    {"EmbedLayerNormalization", rewrite_embed_layer_normalization},
    {"FastGelu", rewrite_fast_gelu},
    {"FusedConv", rewrite_fused_conv},
    {"FusedGemm", rewrite_fused_gemm},
    {"FusedMatMul", rewrite_fused_matmul},
    {"Gelu", rewrite_gelu},
    {"MatMulIntegerToFloat", onnx_rewrite_matmul_integer_to_float},
    {"MultiHeadAttention", onnx_rewrite_multi_head_attention},
    {"QGemm", onnx_rewrite_qgemm},
    {"QLinearAdd", onnx_rewrite_qlinear_binary},
    {"QLinearAveragePool", onnx_rewrite_qlinear_unary},
    {"QLinearConcat", onnx_rewrite_qlinear_concat},
    {"QLinearGlobalAveragePool", onnx_rewrite_qlinear_unary},
    {"QLinearLeakyRelu", onnx_rewrite_qlinear_unary},
    {"QLinearMul", onnx_rewrite_qlinear_binary},
    {"QLinearSigmoid", onnx_rewrite_qlinear_unary},
    {"QLinearSoftmax", onnx_rewrite_qlinear_unary},
    {"QuantizeLinear", become_standard},
    {"QuickGelu", rewrite_quick_gelu},
    {"SimplifiedLayerNormalization", rewrite_simplified_layer_normalization},
    {"SkipLayerNormalization", rewrite_skip_layer_normalization},
    {"SkipSimplifiedLayerNormalization", rewrite_skip_simplified},
};

onnx_normalise_fn onnx_find_contrib(const char *op_type)
{
    return onnx_find_rewriting(rewritings, sizeof rewritings / sizeof rewritings[0], op_type);
}

const char *onnx_list_contrib(char *text, size_t text_bytes)
{
    return onnx_list_rewritings(rewritings, sizeof rewritings / sizeof rewritings[0],
                                "com.microsoft", text, text_bytes);
}
