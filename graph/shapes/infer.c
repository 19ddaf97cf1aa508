#include "graph/shapes/infer.h"

#include <assert.h>

#include "graph/shapes/rules.h"

/* Importers have checked names and kinds of attributes.
 * Per operator: rule, required and allowed inputs, outputs, dtypes of input 0. Sources: onnx
 * Operators.md and Changelog.md at opset 21. */
static const infer_rule rules[GRAPH_OP_COUNT] = {
    [GRAPH_OP_ABS] = {infer_same, 1, 1, 1, INFER_NUMBERS},
    [GRAPH_OP_ACOS] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_ACOSH] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_ADD] = {infer_broadcast, 2, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_AND] = {infer_broadcast, 2, 2, 1, INFER_BOOLS},
    [GRAPH_OP_ARG_MAX] = {infer_arg_reduce, 1, 1, 1, INFER_NUMBERS},
    [GRAPH_OP_ARG_MIN] = {infer_arg_reduce, 1, 1, 1, INFER_NUMBERS},
    [GRAPH_OP_ASIN] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_ASINH] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_ATAN] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_ATANH] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_AVERAGE_POOL] = {infer_pool, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_BATCH_NORMALIZATION] = {infer_batch_normalization, 5, 5, 3, INFER_FLOATS},
    [GRAPH_OP_BIT_CAST] = {infer_bit_cast, 1, 1, 1, INFER_NO_STRINGS},
    [GRAPH_OP_BIT_SHIFT] = {infer_bit_shift, 2, 2, 1, INFER_INTEGERS},
    [GRAPH_OP_BITWISE_AND] = {infer_broadcast, 2, 2, 1, INFER_INTEGERS},
    [GRAPH_OP_BITWISE_NOT] = {infer_same, 1, 1, 1, INFER_INTEGERS},
    [GRAPH_OP_BITWISE_OR] = {infer_broadcast, 2, 2, 1, INFER_INTEGERS},
    [GRAPH_OP_BITWISE_XOR] = {infer_broadcast, 2, 2, 1, INFER_INTEGERS},
    [GRAPH_OP_BLACKMAN_WINDOW] = {infer_window, 1, 1, 1, INFER_INDICES},
    [GRAPH_OP_CAST] = {infer_cast, 1, 1, 1, INFER_NO_STRINGS},
    [GRAPH_OP_CAST_LIKE] = {infer_cast_like, 2, 2, 1, INFER_NO_STRINGS},
    [GRAPH_OP_CEIL] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_CELU] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_CLIP] = {infer_clip, 1, 3, 1, INFER_NUMBERS},
    [GRAPH_OP_COMPRESS] = {infer_compress, 2, 2, 1, INFER_NO_STRINGS},
    [GRAPH_OP_CONCAT] = {infer_concat, 1, INFER_VARIADIC, 1, INFER_ALL},
    [GRAPH_OP_CONSTANT_OF_SHAPE] = {infer_constant_of_shape, 1, 1, 1, INFER_INDICES},
    [GRAPH_OP_CONV] = {infer_conv, 2, 3, 1, INFER_FLOATS},
    [GRAPH_OP_CONV_INTEGER] = {infer_conv_integer, 2, 4, 1, INFER_8BIT_INTEGERS},
    [GRAPH_OP_CONV_TRANSPOSE] = {infer_conv_transpose, 2, 3, 1, INFER_FLOATS},
    [GRAPH_OP_COS] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_COSH] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_CUM_PROD] = {infer_cum_sum, 2, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_CUM_SUM] = {infer_cum_sum, 2, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_DFT] = {infer_dft, 1, 3, 1, INFER_FLOATS},
    [GRAPH_OP_DEFORM_CONV] = {infer_deform_conv, 3, 5, 1, INFER_FLOATS},
    [GRAPH_OP_DEPTH_TO_SPACE] = {infer_depth_to_space, 1, 1, 1, INFER_NO_STRINGS},
    [GRAPH_OP_DEQUANTIZE_LINEAR] = {infer_dequantize_linear, 2, 3, 1, INFER_INTEGERS},
    [GRAPH_OP_DET] = {infer_det, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_DIV] = {infer_broadcast, 2, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_DYNAMIC_QUANTIZE_LINEAR] = {infer_dynamic_quantize_linear, 1, 1, 3,
                                          INFER_TYPE(DTYPE_F32)},
    [GRAPH_OP_EINSUM] = {infer_einsum, 1, INFER_VARIADIC, 1, INFER_NUMBERS},
    [GRAPH_OP_ELU] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_EQUAL] = {infer_compare, 2, 2, 1, INFER_ALL},
    [GRAPH_OP_ERF] = {infer_same, 1, 1, 1, INFER_NUMBERS},
    [GRAPH_OP_EXP] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_EXPAND] = {infer_expand, 2, 2, 1, INFER_NO_STRINGS},
    [GRAPH_OP_EYE_LIKE] = {infer_eye_like, 1, 1, 1, INFER_NO_STRINGS},
    [GRAPH_OP_FLATTEN] = {infer_flatten, 1, 1, 1, INFER_ALL},
    [GRAPH_OP_FLOOR] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_GATHER] = {infer_gather, 2, 2, 1, INFER_ALL},
    [GRAPH_OP_GATHER_ELEMENTS] = {infer_gather_elements, 2, 2, 1, INFER_NO_STRINGS},
    [GRAPH_OP_GATHER_ND] = {infer_gather_nd, 2, 2, 1, INFER_NO_STRINGS},
    [GRAPH_OP_GELU] = {infer_gelu, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_GEMM] = {infer_gemm, 2, 3, 1, INFER_NUMBERS},
    [GRAPH_OP_GLOBAL_AVERAGE_POOL] = {infer_global_pool, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_GLOBAL_LP_POOL] = {infer_global_pool, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_GLOBAL_MAX_POOL] = {infer_global_pool, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_GREATER] = {infer_compare, 2, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_GREATER_OR_EQUAL] = {infer_compare, 2, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_GRID_SAMPLE] = {infer_grid_sample, 2, 2, 1, INFER_NO_STRINGS},
    [GRAPH_OP_GRU] = {infer_recurrent, 3, 6, 2, INFER_FLOATS},
    [GRAPH_OP_GROUP_NORMALIZATION] = {infer_group_normalization, 3, 3, 1, INFER_FLOATS},
    [GRAPH_OP_HAMMING_WINDOW] = {infer_window, 1, 1, 1, INFER_INDICES},
    [GRAPH_OP_HANN_WINDOW] = {infer_window, 1, 1, 1, INFER_INDICES},
    [GRAPH_OP_HARD_SIGMOID] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_HARD_SWISH] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_HARDMAX] = {infer_along_axis, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_IDENTITY] = {infer_same, 1, 1, 1, INFER_ALL},
    [GRAPH_OP_INSTANCE_NORMALIZATION] = {infer_instance_normalization, 3, 3, 1, INFER_FLOATS},
    [GRAPH_OP_IS_INF] = {infer_to_bool, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_IS_NAN] = {infer_to_bool, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_LRN] = {infer_lrn, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_LSTM] = {infer_recurrent, 3, 8, 3, INFER_FLOATS},
    [GRAPH_OP_LAYER_NORMALIZATION] = {infer_layer_normalization, 2, 3, 3, INFER_FLOATS},
    [GRAPH_OP_LEAKY_RELU] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_LESS] = {infer_compare, 2, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_LESS_OR_EQUAL] = {infer_compare, 2, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_LOG] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_LOG_SOFTMAX] = {infer_along_axis, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_LP_NORMALIZATION] = {infer_lp_normalization, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_LP_POOL] = {infer_pool, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_MATMUL] = {infer_matmul, 2, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_MATMUL_INTEGER] = {infer_matmul_integer, 2, 4, 1, INFER_8BIT_INTEGERS},
    [GRAPH_OP_MAX] = {infer_broadcast, 1, INFER_VARIADIC, 1, INFER_NUMBERS},
    [GRAPH_OP_MAX_POOL] = {infer_pool, 1, 1, 2, INFER_FLOATS | INFER_8BIT_INTEGERS},
    [GRAPH_OP_MEAN] = {infer_broadcast, 1, INFER_VARIADIC, 1, INFER_FLOATS},
    [GRAPH_OP_MEAN_VARIANCE_NORMALIZATION] = {infer_mean_variance_normalization, 1, 1, 1,
                                              INFER_FLOATS},
    [GRAPH_OP_MEL_WEIGHT_MATRIX] = {infer_mel_weight_matrix, 5, 5, 1, INFER_INDICES},
    [GRAPH_OP_MIN] = {infer_broadcast, 1, INFER_VARIADIC, 1, INFER_NUMBERS},
    [GRAPH_OP_MISH] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_MOD] = {infer_broadcast, 2, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_MUL] = {infer_broadcast, 2, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_NEG] = {infer_same, 1, 1, 1, INFER_FLOATS | INFER_SIGNED},
    [GRAPH_OP_NON_MAX_SUPPRESSION] = {infer_non_max_suppression, 2, 5, 1, INFER_TYPE(DTYPE_F32)},
    [GRAPH_OP_NON_ZERO] = {infer_non_zero, 1, 1, 1, INFER_NO_STRINGS},
    [GRAPH_OP_NOT] = {infer_same, 1, 1, 1, INFER_BOOLS},
    [GRAPH_OP_ONE_HOT] = {infer_one_hot, 3, 3, 1, INFER_NUMBERS},
    [GRAPH_OP_OR] = {infer_broadcast, 2, 2, 1, INFER_BOOLS},
    [GRAPH_OP_PRELU] = {infer_prelu, 2, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_PAD] = {infer_pad, 2, 4, 1, INFER_NO_STRINGS},
    [GRAPH_OP_POW] = {infer_pow, 2, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_QLINEAR_CONV] = {infer_qlinear_conv, 8, 9, 1, INFER_8BIT_INTEGERS},
    [GRAPH_OP_QLINEAR_MATMUL] = {infer_qlinear_matmul, 8, 8, 1, INFER_8BIT_INTEGERS},
    [GRAPH_OP_QUANTIZE_LINEAR] = {infer_quantize_linear, 2, 3, 1,
                                  INFER_FLOATS | INFER_TYPE(DTYPE_I32)},
    [GRAPH_OP_RNN] = {infer_recurrent, 3, 6, 2, INFER_FLOATS},
    [GRAPH_OP_RANGE] = {infer_range, 3, 3, 1, INFER_NUMBERS},
    [GRAPH_OP_RECIPROCAL] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_REDUCE_L1] = {infer_reduce, 1, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_REDUCE_L2] = {infer_reduce, 1, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_REDUCE_LOG_SUM] = {infer_reduce, 1, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_REDUCE_LOG_SUM_EXP] = {infer_reduce, 1, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_REDUCE_MAX] = {infer_reduce, 1, 2, 1, INFER_NO_STRINGS},
    [GRAPH_OP_REDUCE_MEAN] = {infer_reduce, 1, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_REDUCE_MIN] = {infer_reduce, 1, 2, 1, INFER_NO_STRINGS},
    [GRAPH_OP_REDUCE_PROD] = {infer_reduce, 1, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_REDUCE_SUM] = {infer_reduce, 1, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_REDUCE_SUM_SQUARE] = {infer_reduce, 1, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_RELU] = {infer_same, 1, 1, 1, INFER_FLOATS | INFER_SIGNED},
    [GRAPH_OP_RESHAPE] = {infer_reshape, 2, 2, 1, INFER_ALL},
    [GRAPH_OP_RESIZE] = {infer_resize, 1, 4, 1, INFER_NUMBERS},
    [GRAPH_OP_REVERSE_SEQUENCE] = {infer_reverse_sequence, 2, 2, 1, INFER_NO_STRINGS},
    [GRAPH_OP_ROI_ALIGN] = {infer_roi_align, 3, 3, 1, INFER_FLOATS},
    [GRAPH_OP_ROUND] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_ROUNDED_LSTM] = {infer_recurrent, 3, 8, 3, INFER_FLOATS},
    [GRAPH_OP_STFT] = {infer_stft, 2, 4, 1, INFER_FLOATS},
    [GRAPH_OP_SCATTER_ELEMENTS] = {infer_scatter_elements, 3, 3, 1, INFER_NO_STRINGS},
    [GRAPH_OP_SCATTER_ND] = {infer_scatter_nd, 3, 3, 1, INFER_NO_STRINGS},
    [GRAPH_OP_SELU] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_SHAPE] = {infer_shape, 1, 1, 1, INFER_ALL},
    [GRAPH_OP_SHRINK] = {infer_same, 1, 1, 1, INFER_NUMBERS},
    [GRAPH_OP_SIGMOID] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_SIGN] = {infer_same, 1, 1, 1, INFER_NUMBERS},
    [GRAPH_OP_SIN] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_SINH] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_SIZE] = {infer_size, 1, 1, 1, INFER_ALL},
    [GRAPH_OP_SLICE] = {infer_slice, 3, 5, 1, INFER_ALL},
    [GRAPH_OP_SOFTMAX] = {infer_along_axis, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_SOFTPLUS] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_SOFTSIGN] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_SPACE_TO_DEPTH] = {infer_space_to_depth, 1, 1, 1, INFER_NO_STRINGS},
    [GRAPH_OP_SPLIT] = {infer_split, 1, 2, INFER_VARIADIC, INFER_ALL},
    [GRAPH_OP_SQRT] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_SQUEEZE] = {infer_squeeze, 1, 2, 1, INFER_ALL},
    [GRAPH_OP_SUB] = {infer_broadcast, 2, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_SUM] = {infer_broadcast, 1, INFER_VARIADIC, 1, INFER_FLOATS},
    [GRAPH_OP_TAN] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_TANH] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_THRESHOLDED_RELU] = {infer_same, 1, 1, 1, INFER_FLOATS},
    [GRAPH_OP_TILE] = {infer_tile, 2, 2, 1, INFER_NO_STRINGS},
    [GRAPH_OP_TOP_K] = {infer_top_k, 2, 2, 2, INFER_NUMBERS},
    [GRAPH_OP_TRANSPOSE] = {infer_transpose, 1, 1, 1, INFER_NO_STRINGS},
    [GRAPH_OP_SQUARED_DISTANCE] = {infer_squared_distance, 2, 2, 1,
                                   INFER_TYPE(DTYPE_F32) | INFER_TYPE(DTYPE_F64)},
    [GRAPH_OP_COUPLE] = {infer_couple, 1, 1, 1, INFER_TYPE(DTYPE_F32)},
    [GRAPH_OP_TREES] = {infer_trees, 6, 6, 1, INFER_FLOATS | INFER_SIGNED},
    [GRAPH_OP_TRILU] = {infer_trilu, 1, 2, 1, INFER_NO_STRINGS},
    [GRAPH_OP_UNIQUE] = {infer_unique, 1, 1, 4, INFER_NO_STRINGS},
    [GRAPH_OP_UNSQUEEZE] = {infer_unsqueeze, 2, 2, 1, INFER_ALL},
    [GRAPH_OP_UPSAMPLE] = {infer_upsample, 2, 2, 1, INFER_NUMBERS},
    [GRAPH_OP_WHERE] = {infer_where, 3, 3, 1, INFER_BOOLS},
    [GRAPH_OP_XOR] = {infer_broadcast, 2, 2, 1, INFER_BOOLS},
};

static status check_size(const tensor *t)
{
    tensor same;
    return infer_set(&same, t->dtype, t->rank, t->dims);
}

static status check_inputs(const graph_node *node, const infer_rule *rule, const tensor *const *in)
{
    if (rule->inputs_max != INFER_VARIADIC && node->input_count > rule->inputs_max)
        return status_fail(STATUS_INVALID_ARGUMENT, "%d inputs; %d are allowed", node->input_count,
                           rule->inputs_max);
    if (rule->outputs_max != INFER_VARIADIC && node->output_count > rule->outputs_max)
        return status_fail(STATUS_INVALID_ARGUMENT, "%d outputs; %d are allowed",
                           node->output_count, rule->outputs_max);
    int required = rule->inputs_max == INFER_VARIADIC && node->input_count > rule->inputs_min
                       ? node->input_count
                       : rule->inputs_min;
    for (int i = 0; i < required; i++)
        if (i >= node->input_count || in[i] == NULL)
            return status_fail(STATUS_INVALID_ARGUMENT, "input %d is missing", i);
    for (int i = 0; i < node->input_count; i++) {
        status s = in[i] ? check_size(in[i]) : STATUS_OK;
        if (s)
            return status_prefix(s, "input %d", i);
    }
    return infer_expect_type(in[0], 0, rule->types);
}

static status infer(const graph_node *node, const tensor *const *inputs, tensor *outputs)
{
    const infer_rule *rule = &rules[node->op];
    if (rule->infer == NULL)
        return status_fail(STATUS_UNSUPPORTED,
                           "the shapes of its outputs are not known before it has run");
    status s = check_inputs(node, rule, inputs);
    if (s)
        return s;
    const tensor *padded[INFER_INPUTS_MAX] = {NULL};
    if (rule->inputs_max != INFER_VARIADIC) {
        for (int i = 0; i < node->input_count; i++)
            padded[i] = inputs[i];
        inputs = padded;
    }
    if (rule->outputs_max == INFER_VARIADIC)
        return rule->infer(node, inputs, outputs);
    tensor made[INFER_OUTPUTS_MAX] = {0};
    if ((s = rule->infer(node, inputs, made)))
        return s;
    for (int i = 0; i < node->output_count; i++) {
        made[i].data = outputs[i].data;
        outputs[i] = made[i];
    }
    return STATUS_OK;
}

status graph_infer_node(const graph_node *node, const tensor *const *inputs, tensor *outputs)
{
    assert((unsigned)node->op < GRAPH_OP_COUNT);
    status s = infer(node, inputs, outputs);
    return s ? status_prefix(s, "node \"%s\" (%s)", node->name, graph_op_title(node->op)) : s;
}
