#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/onnx/rewrite/rewrite.h"

/* Standard operators of older and newer opsets, rewritten to opset 21 (onnx Changelog.md). A
 * function changes the node to its opset-21 version, or rejects it. */

static status axes_to_input(onnx_node *n)
{
    onnx_ints_to_input(n, "axes", 1);
    return STATUS_OK;
}

static status normalise_batch_normalization(onnx_node *n)
{
    onnx_pop_attribute(n, "momentum");
    if (onnx_pop_int(n, "training_mode", 0) != 0)
        return onnx_fail(n, STATUS_UNSUPPORTED, "training_mode; supported: inference");
    if (onnx_pop_int(n, "spatial", 1) != 1)
        return onnx_fail(n, STATUS_UNSUPPORTED, "spatial = 0; supported: 1");
    return STATUS_OK;
}

static status normalise_cast(onnx_node *n)
{
    /* Only for targets of 8-bit float types, which are not supported. */
    onnx_pop_attribute(n, "saturate");
    onnx_pop_attribute(n, "round_mode");
    return STATUS_OK;
}

static status normalise_clip(onnx_node *n)
{
    static const char *const names[] = {"min", "max"};
    for (int i = 0; i < 2; i++) {
        const graph_attribute *a = onnx_pop_attribute(n, names[i]);
        if (a != NULL && a->kind == GRAPH_ATTRIBUTE_FLOAT)
            onnx_set_input(n, i + 1, onnx_float_like(n, a->f, n->inputs[0]));
    }
    return STATUS_OK;
}

/* Before opset 20 the axis is an attribute. */
static status normalise_dft(onnx_node *n)
{
    int64_t axis = onnx_pop_int(n, "axis", 1);
    if (n->opset < 20)
        onnx_set_input(n, 2, onnx_int(n, axis));
    return STATUS_OK;
}

/* Whether the value is absent, or a constant of one element that is zero or false. */
static bool is_absent_or_zero(const onnx_node *n, int input)
{
    graph_value_index value = onnx_input(n, input);
    if (value == GRAPH_NO_VALUE)
        return true;
    const tensor *t = n->graph->values[value].constant;
    return t != NULL && t->dtype != DTYPE_BYTES && tensor_count(t) == 1 &&
           tensor_get_number(t, 0) == 0;
}

static status normalise_dropout(onnx_node *n)
{
    bool has_ratio = onnx_input(n, 1) != GRAPH_NO_VALUE;
    if (!is_absent_or_zero(n, 2) && !(has_ratio && is_absent_or_zero(n, 1)))
        return onnx_fail(n, STATUS_UNSUPPORTED, "training mode; supported: inference");
    if (onnx_has_output(n, 1)) { /* the mask: nothing is dropped */
        tensor one = {0};
        int64_t count = 1;
        status s = tensor_allocate(&one, &n->graph->memory, DTYPE_BOOL, 1, &count);
        if (s)
            return s;
        *(uint8_t *)one.data = 1;
        graph_value_index shape = onnx_unary(n, GRAPH_OP_SHAPE, n->inputs[0]);
        graph_attribute value = {
            .name = "value",
            .kind = GRAPH_ATTRIBUTE_TENSOR,
            .t = n->graph->values[graph_add_constant(n->graph, n->name, &one)].constant};
        graph_add_node_to(n->graph, GRAPH_OP_CONSTANT_OF_SHAPE, n->name, 1, &shape, 1,
                          &n->outputs[1], 1, &value);
    }
    if (onnx_has_output(n, 0))
        onnx_finish_as(n, n->inputs[0]);
    n->is_emitted = true;
    return STATUS_OK;
}

static status normalise_grid_sample(onnx_node *n)
{
    const char *mode = onnx_pop_string(n, "mode", "linear");
    if (strcmp(mode, "bilinear") == 0)
        mode = "linear";
    else if (strcmp(mode, "bicubic") == 0)
        mode = "cubic";
    onnx_add_attribute(n, graph_make_string("mode", mode));
    return STATUS_OK;
}

/* Before opset 21 scale and bias were per group; now they are per channel. */
static status normalise_group_normalization(onnx_node *n)
{
    if (n->opset >= 21 || n->input_count != 3)
        return STATUS_OK;
    int64_t groups = 0, one = 1, minus_one = -1;
    for (int i = 0; i < n->attribute_count; i++)
        if (strcmp(n->attributes[i].name, "num_groups") == 0)
            groups = n->attributes[i].i;
    if (groups <= 0)
        return onnx_fail(n, STATUS_CORRUPT, "num_groups must be positive");
    graph_value_index shape = onnx_unary(n, GRAPH_OP_SHAPE, n->inputs[0]);
    graph_value_index channels = onnx_binary(n, GRAPH_OP_GATHER, shape, onnx_ints(n, 1, &one));
    graph_value_index group_count = onnx_ints(n, 1, &groups);
    graph_value_index parts[] = {group_count, onnx_binary(n, GRAPH_OP_DIV, channels, group_count)};
    graph_attribute axis = graph_make_int("axis", 0);
    graph_value_index wide = graph_add(n->graph, GRAPH_OP_CONCAT, 2, parts, 1, &axis);
    for (int i = 1; i < 3; i++) {
        graph_value_index x =
            onnx_binary(n, GRAPH_OP_UNSQUEEZE, n->inputs[i], onnx_ints(n, 1, &one));
        x = onnx_binary(n, GRAPH_OP_EXPAND, x, wide);
        n->inputs[i] = onnx_binary(n, GRAPH_OP_RESHAPE, x, onnx_ints(n, 1, &minus_one));
    }
    return STATUS_OK;
}

static status normalise_pad(onnx_node *n)
{
    onnx_ints_to_input(n, "pads", 1);
    const graph_attribute *value = onnx_pop_attribute(n, "value");
    if (value != NULL && value->kind == GRAPH_ATTRIBUTE_FLOAT && n->input_count < 3)
        onnx_set_input(n, 2, onnx_float_like(n, value->f, n->inputs[0]));
    return STATUS_OK;
}

static status normalise_quantize(onnx_node *n)
{
    onnx_pop_attribute(n, "saturate"); /* 8-bit floats only */
    if (onnx_pop_int(n, "precision", 0) > 1)
        return onnx_fail(n, STATUS_UNSUPPORTED, "precision other than FLOAT");
    return STATUS_OK;
}

static void drop_empty_constant(onnx_node *n, int input)
{
    graph_value_index value = onnx_input(n, input);
    if (value == GRAPH_NO_VALUE)
        return;
    const tensor *t = n->graph->values[value].constant;
    if (t != NULL && tensor_count(t) == 0)
        n->inputs[input] = GRAPH_NO_VALUE;
}

static status normalise_resize(onnx_node *n)
{
    if (n->opset == 10 && n->input_count == 2) {
        onnx_set_input(n, 2, n->inputs[1]);
        n->inputs[1] = GRAPH_NO_VALUE;
        onnx_add_attribute(n, graph_make_string("coordinate_transformation_mode", "asymmetric"));
        onnx_add_attribute(n, graph_make_string("nearest_mode", "floor"));
    }
    /* In opset 11 empty tensors stand for absent inputs. */
    for (int i = 1; i < n->input_count; i++)
        drop_empty_constant(n, i);
    while (n->input_count > 0 && n->inputs[n->input_count - 1] == GRAPH_NO_VALUE)
        n->input_count--;
    return STATUS_OK;
}

/* Upsample is Resize with asymmetric coordinates. */
static status normalise_upsample(onnx_node *n)
{
    const graph_attribute *scales = onnx_pop_attribute(n, "scales");
    graph_value_index value = onnx_input(n, 1);
    if (scales != NULL && scales->kind == GRAPH_ATTRIBUTE_FLOATS) {
        int64_t count = (int64_t)scales->count;
        value = graph_add_constant_f32(n->graph, n->name, 1, &count, scales->floats);
    }
    if (value == GRAPH_NO_VALUE || n->input_count < 1)
        return onnx_fail(n, STATUS_CORRUPT, "its scales are missing");
    onnx_set_input(n, 2, value);
    n->inputs[1] = GRAPH_NO_VALUE;
    onnx_add_attribute(n, graph_make_string("coordinate_transformation_mode", "asymmetric"));
    onnx_add_attribute(n, graph_make_string("nearest_mode", "floor"));
    n->op_type = "Resize";
    return STATUS_OK;
}

/* Before opset 16 a region's corners are not shifted by half a pixel. */
static status normalise_roi_align(onnx_node *n)
{
    if (n->opset < 16)
        onnx_add_attribute(
            n, graph_make_string("coordinate_transformation_mode", "output_half_pixel"));
    return STATUS_OK;
}

static status normalise_scatter(onnx_node *n)
{
    n->op_type = "ScatterElements";
    return STATUS_OK;
}

static status normalise_slice(onnx_node *n)
{
    onnx_ints_to_input(n, "starts", 1);
    onnx_ints_to_input(n, "ends", 2);
    onnx_ints_to_input(n, "axes", 3);
    return STATUS_OK;
}

/* Before opset 13 the input is viewed as a matrix of [dims before axis, dims from axis on]. With
 * the last axis that equals opset 21; otherwise the node is put between two Reshapes. */
static status normalise_softmax(onnx_node *n)
{
    if (n->opset >= 13 || n->input_count != 1)
        return STATUS_OK;
    int64_t axis = onnx_pop_int(n, "axis", 1);
    int32_t rank;
    const char *name = n->graph->values[n->inputs[0]].name;
    const graph_shape *shape = &n->graph->values[n->inputs[0]].shape;
    bool is_last = axis == -1 || (shape->rank >= 0 && axis == shape->rank - 1) ||
                   (name_map_get(&n->importer->ranks, name, &rank) && axis == rank - 1);
    graph_op op = GRAPH_OP_SOFTMAX;
    if (!graph_op_from_name(n->op_type, &op))
        return onnx_reject_operator(n);
    if (is_last) {
        onnx_add_attribute(n, graph_make_int("axis", -1));
        return STATUS_OK;
    }
    graph_attribute from = graph_make_int("axis", axis), last = graph_make_int("axis", -1);
    graph_value_index matrix = graph_add(n->graph, GRAPH_OP_FLATTEN, 1, &n->inputs[0], 1, &from);
    graph_value_index result = graph_add(n->graph, op, 1, &matrix, 1, &last);
    graph_value_index inputs[] = {result, onnx_unary(n, GRAPH_OP_SHAPE, n->inputs[0])};
    graph_attribute allow = graph_make_int("allowzero", 1);
    onnx_finish(n, GRAPH_OP_RESHAPE, 2, inputs, 1, &allow);
    return STATUS_OK;
}

static status normalise_split(onnx_node *n)
{
    onnx_ints_to_input(n, "split", 1);
    if (n->opset < 18 && onnx_input(n, 1) == GRAPH_NO_VALUE) {
        onnx_pop_attribute(n, "num_outputs");
        onnx_add_attribute(n, graph_make_int("num_outputs", (int64_t)n->proto->n_output));
    }
    /* Absent trailing outputs count as parts. */
    n->output_count = (int)n->proto->n_output;
    return STATUS_OK;
}

/* Of two, as older exporters write residuals: Add. */
static status normalise_sum(onnx_node *n)
{
    if (n->input_count != 2)
        return STATUS_OK;
    status s = onnx_check_inputs(n, 2, 2);
    if (!s)
        s = onnx_check_no_attributes(n);
    if (!s)
        onnx_finish(n, GRAPH_OP_ADD, 2, n->inputs, 0, NULL);
    return s;
}

static status normalise_top_k(onnx_node *n)
{
    const graph_attribute *k = onnx_pop_attribute(n, "k");
    if (k != NULL && k->kind == GRAPH_ATTRIBUTE_INT)
        onnx_set_input(n, 1, onnx_ints(n, 1, &k->i));
    return STATUS_OK;
}

/* Operators newer than opset 21, composed of operators of opset 21. */

static status normalise_swish(onnx_node *n)
{
    float alpha = onnx_pop_float(n, "alpha", 1);
    if (n->input_count != 1)
        return onnx_fail(n, STATUS_CORRUPT, "it has %d inputs; 1 is allowed", n->input_count);
    graph_value_index x = n->inputs[0], scaled = x;
    if (alpha != 1)
        scaled = onnx_binary(n, GRAPH_OP_MUL, x, onnx_float_like(n, alpha, x));
    graph_value_index inputs[] = {x, onnx_unary(n, GRAPH_OP_SIGMOID, scaled)};
    onnx_finish(n, GRAPH_OP_MUL, 2, inputs, 0, NULL);
    return STATUS_OK;
}

/* y = x / sqrt(mean(x^2) + epsilon) * scale over the axes from `axis` on. Only a negative `axis`
 * gives their number here. */
static status normalise_rms_normalization(onnx_node *n)
{
    int64_t axis = onnx_pop_int(n, "axis", -1);
    float epsilon = onnx_pop_float(n, "epsilon", 1e-5f);
    onnx_pop_attribute(n, "stash_type");
    if (n->input_count != 2 || n->output_count != 1)
        return onnx_fail(n, STATUS_UNSUPPORTED, "%d inputs and %d outputs; supported: 2 and 1",
                         n->input_count, n->output_count);
    int32_t rank = n->graph->values[n->inputs[0]].shape.rank;
    if (axis >= 0 && rank >= 0)
        axis -= rank;
    if (axis >= 0 || axis < -TENSOR_RANK_MAX)
        return onnx_fail(n, STATUS_UNSUPPORTED, "axis %lld; supported: -%d to -1", (long long)axis,
                         TENSOR_RANK_MAX);
    int64_t axes[TENSOR_RANK_MAX];
    for (int64_t i = 0; i < -axis; i++)
        axes[i] = axis + i;
    int float32 = dtype_to_onnx(DTYPE_F32);
    graph_value_index x = onnx_cast(n, n->inputs[0], float32);
    graph_value_index square = onnx_binary(n, GRAPH_OP_MUL, x, x);
    graph_value_index mean =
        onnx_binary(n, GRAPH_OP_REDUCE_MEAN, square, onnx_ints(n, -axis, axes));
    graph_value_index sum = onnx_binary(n, GRAPH_OP_ADD, mean, onnx_float(n, epsilon));
    graph_value_index normal = onnx_binary(n, GRAPH_OP_DIV, x, onnx_unary(n, GRAPH_OP_SQRT, sum));
    graph_value_index inputs[] = {onnx_binary(n, GRAPH_OP_CAST_LIKE, normal, n->inputs[1]),
                                  n->inputs[1]};
    onnx_finish(n, GRAPH_OP_MUL, 2, inputs, 0, NULL);
    return STATUS_OK;
}

/* ONNX Runtime's optimiser writes these in the standard domain. */
static status normalise_as_contrib(onnx_node *n)
{
    onnx_normalise_fn rewrite = onnx_find_contrib(n->op_type);
    return rewrite != NULL ? rewrite(n) : STATUS_OK;
}

onnx_normalise_fn onnx_find_rewriting(const onnx_rewriting *table, size_t count,
                                      const char *op_type)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].op_type, op_type) == 0)
            return table[i].rewrite;
    return NULL;
}

const char *onnx_list_rewritings(const onnx_rewriting *table, size_t count, const char *domain,
                                 char *text, size_t text_bytes)
{
    size_t used = (size_t)snprintf(text, text_bytes, "%zu operators of %s: ", count, domain);
    for (size_t i = 0; i < count && used < text_bytes; i++)
        used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", i ? ", " : "",
                                 table[i].op_type);
    return text;
}

static const onnx_rewriting rewritings[] = {
    {"Attention", onnx_rewrite_standard_attention},
    {"BatchNormalization", normalise_batch_normalization},
    {"Cast", normalise_cast},
    {"CastLike", normalise_cast},
    {"CenterCropPad", onnx_rewrite_center_crop_pad},
    {"Clip", normalise_clip},
    {"DFT", normalise_dft},
    {"DequantizeLinear", normalise_quantize},
    {"Dropout", normalise_dropout},
    {"GridSample", normalise_grid_sample},
    {"GroupNormalization", normalise_group_normalization},
    {"Hardmax", normalise_softmax},
    {"LogSoftmax", normalise_softmax},
    {"NegativeLogLikelihoodLoss", onnx_rewrite_nll_loss},
    {"Pad", normalise_pad},
    {"QuantizeLinear", normalise_quantize},
    {"RMSNormalization", normalise_rms_normalization},
    {"ReduceL1", axes_to_input},
    {"ReduceL2", axes_to_input},
    {"ReduceLogSum", axes_to_input},
    {"ReduceLogSumExp", axes_to_input},
    {"ReduceMax", axes_to_input},
    {"ReduceMean", axes_to_input},
    {"ReduceMin", axes_to_input},
    {"ReduceProd", axes_to_input},
    {"ReduceSum", axes_to_input},
    {"ReduceSumSquare", axes_to_input},
    {"Resize", normalise_resize},
    {"RoiAlign", normalise_roi_align},
    {"RotaryEmbedding", onnx_rewrite_rotary_embedding},
    {"Scatter", normalise_scatter},
    {"SimplifiedLayerNormalization", normalise_as_contrib},
    {"Slice", normalise_slice},
    {"Softmax", normalise_softmax},
    {"SoftmaxCrossEntropyLoss", onnx_rewrite_softmax_loss},
    {"Split", normalise_split},
    {"Squeeze", axes_to_input},
    {"Sum", normalise_sum},
    {"SwiGLU", onnx_rewrite_swiglu},
    {"Swish", normalise_swish},
    {"TensorScatter", onnx_rewrite_tensor_scatter},
    {"TopK", normalise_top_k},
    {"Unsqueeze", axes_to_input},
    {"Upsample", normalise_upsample},
};

static onnx_normalise_fn find_rewriting(const onnx_node *n)
{
    if (strcmp(n->domain, "com.microsoft") == 0)
        return onnx_find_contrib(n->op_type);
    if (strcmp(n->domain, "ai.onnx.ml") == 0)
        return onnx_find_ml(n->op_type);
    if (n->domain[0] != 0)
        return NULL;
    return onnx_find_rewriting(rewritings, sizeof rewritings / sizeof rewritings[0], n->op_type);
}

status onnx_normalise(onnx_node *n)
{
    onnx_normalise_fn rewrite = find_rewriting(n);
    if (rewrite == NULL)
        return STATUS_OK;
    /* Every rewrite reads input 0. */
    if (onnx_input(n, 0) == GRAPH_NO_VALUE)
        return onnx_fail(n, STATUS_CORRUPT, "its input 0 is missing");
    status s = rewrite(n);
    /* A file may ask for outputs that the operator does not have. */
    for (int i = 0; s == STATUS_OK && n->is_emitted && i < n->output_count; i++)
        if (n->outputs[i] != GRAPH_NO_VALUE && n->graph->values[n->outputs[i]].producer < 0)
            s = onnx_fail(n, STATUS_CORRUPT, "nothing computes its output %d", i);
    return s;
}
