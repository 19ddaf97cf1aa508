#include "tests/unit/graph/onnx/builder.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/scales.h"

/* Older forms of operators come out as those of opset 21. */

static onnx_builder *begin(int64_t opset)
{
    onnx_builder *b = onnx_begin(opset);
    onnx_add_input(b, "x", NAMES("batch", "4", "6"));
    onnx_add_output(b, "y");
    return b;
}

static graph *import_one(int64_t opset, const char *op, int ints_count, const char *ints_name,
                         const int64_t *ints)
{
    onnx_builder *b = begin(opset);
    Onnx__Node *n = onnx_add(b, op, NAMES("x"), NAMES("y"));
    if (ints_name != NULL)
        onnx_set_ints(n, ints_name, ints_count, ints);
    return onnx_expect(b);
}

Test(import_onnx_normalise, turns_axes_into_inputs)
{
    static const char *const operators[] = {"Squeeze",    "Unsqueeze",       "ReduceSum",
                                            "ReduceMean", "ReduceMax",       "ReduceMin",
                                            "ReduceL1",   "ReduceL2",        "ReduceLogSum",
                                            "ReduceProd", "ReduceSumSquare", "ReduceLogSumExp"};
    int64_t axes[] = {1, 2};
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        graph *g = import_one(11, operators[i], 2, "axes", axes);
        cr_assert_str_eq(onnx_operators(g), operators[i]);
        cr_assert_str_eq(onnx_constant_text(g, g->nodes[0].inputs[1]), "1,2");
        cr_assert_eq(g->nodes[0].attribute_count, 0);
        graph_destroy(g);
    }
    graph *g = import_one(13, "ReduceMean", 0, NULL, NULL);
    cr_assert_eq(g->nodes[0].input_count, 1);
    graph_destroy(g);
}

Test(import_onnx_normalise, splits_evenly_or_as_told)
{
    int64_t parts[] = {1, 3};
    onnx_builder *b = begin(11);
    Onnx__Node *n = onnx_add(b, "Split", NAMES("x"), NAMES("y", "z"));
    onnx_set_int(n, "axis", 1);
    onnx_set_ints(n, "split", 2, parts);
    graph *g = onnx_expect(b);
    cr_assert_str_eq(onnx_constant_text(g, g->nodes[0].inputs[1]), "1,3");
    cr_assert_null(graph_find_attribute(&g->nodes[0], "num_outputs"));
    graph_destroy(g);
    b = begin(13);
    onnx_add(b, "Split", NAMES("x"), NAMES("y", "z", ""));
    g = onnx_expect(b);
    cr_assert_eq(g->nodes[0].input_count, 1);
    cr_assert_eq(graph_attribute_int(&g->nodes[0], "num_outputs", 0), 3);
    cr_assert_eq(g->nodes[0].output_count, 3);
    cr_assert_eq(g->nodes[0].outputs[2], GRAPH_NO_VALUE);
    graph_destroy(g);
}

Test(import_onnx_normalise, turns_clip_pad_slice_and_top_k_attributes_into_inputs)
{
    int64_t pads[] = {0, 0, 1, 0, 0, 1}, starts[] = {1}, ends[] = {3}, axes[] = {2};
    onnx_builder *b = begin(10);
    Onnx__Node *n = onnx_add(b, "Clip", NAMES("x"), NAMES("y"));
    onnx_set_float(n, "max", 6);
    graph *g = onnx_expect(b);
    const graph_node *clip = onnx_node_of(g, GRAPH_OP_CLIP);
    cr_assert_eq(clip->inputs[1], GRAPH_NO_VALUE);
    const graph_node *limit = &g->nodes[g->values[clip->inputs[2]].producer];
    cr_assert_eq(limit->op, GRAPH_OP_CAST_LIKE);
    cr_assert_str_eq(onnx_constant_text(g, limit->inputs[0]), "6");
    graph_destroy(g);

    b = begin(10);
    n = onnx_add(b, "Pad", NAMES("x"), NAMES("y"));
    onnx_set_ints(n, "pads", 6, pads);
    onnx_set_float(n, "value", 1.5f);
    onnx_set_string(n, "mode", "constant");
    g = onnx_expect(b);
    const graph_node *pad = onnx_node_of(g, GRAPH_OP_PAD);
    cr_assert_str_eq(onnx_constant_text(g, pad->inputs[1]), "0,0,1,0,0,1");
    cr_assert_eq(pad->input_count, 3);
    cr_assert_eq(pad->attribute_count, 1);
    graph_destroy(g);

    b = begin(9);
    n = onnx_add(b, "Slice", NAMES("x"), NAMES("y"));
    onnx_set_ints(n, "starts", 1, starts);
    onnx_set_ints(n, "ends", 1, ends);
    onnx_set_ints(n, "axes", 1, axes);
    g = onnx_expect(b);
    cr_assert_eq(g->nodes[0].input_count, 4);
    cr_assert_str_eq(onnx_constant_text(g, g->nodes[0].inputs[1]), "1");
    cr_assert_str_eq(onnx_constant_text(g, g->nodes[0].inputs[2]), "3");
    cr_assert_str_eq(onnx_constant_text(g, g->nodes[0].inputs[3]), "2");
    graph_destroy(g);

    b = begin(9);
    n = onnx_add(b, "TopK", NAMES("x"), NAMES("y", "i"));
    onnx_set_int(n, "k", 3);
    g = onnx_expect(b);
    cr_assert_str_eq(onnx_constant_text(g, g->nodes[0].inputs[1]), "3");
    graph_destroy(g);
}

Test(import_onnx_normalise, old_softmax_sees_a_matrix)
{
    static const char *const operators[] = {"Softmax", "LogSoftmax", "Hardmax"};
    for (int i = 0; i < 3; i++) {
        char want[100];
        onnx_builder *b = begin(11);
        snprintf(want, sizeof want, "Relu Flatten %s Shape Reshape", operators[i]);
        onnx_add(b, "Relu", NAMES("x"), NAMES("r")); /* its rank is not known at import */
        onnx_add(b, operators[i], NAMES("r"), NAMES("y"));
        graph *g = onnx_expect(b);
        cr_assert_str_eq(onnx_operators(g), want);
        cr_assert_eq(graph_attribute_int(&g->nodes[1], "axis", 9), 1);
        cr_assert_eq(graph_attribute_int(&g->nodes[2], "axis", 9), -1);
        graph_destroy(g);

        b = begin(11); /* the input's rank is 3 */
        onnx_set_int(onnx_add(b, operators[i], NAMES("x"), NAMES("y")), "axis", 2);
        g = onnx_expect(b);
        cr_assert_str_eq(onnx_operators(g), operators[i]);
        cr_assert_eq(graph_attribute_int(&g->nodes[0], "axis", 9), -1);
        graph_destroy(g);

        b = begin(13);
        onnx_set_int(onnx_add(b, operators[i], NAMES("x"), NAMES("y")), "axis", 1);
        g = onnx_expect(b);
        cr_assert_str_eq(onnx_operators(g), operators[i]);
        cr_assert_eq(graph_attribute_int(&g->nodes[0], "axis", 9), 1);
        graph_destroy(g);
    }
}

Test(import_onnx_normalise, dropout_is_nothing_at_inference)
{
    onnx_builder *b = begin(11);
    onnx_set_float(onnx_add(b, "Dropout", NAMES("x"), NAMES("y")), "ratio", 0.5f);
    graph *g = onnx_expect(b);
    cr_assert_str_eq(onnx_operators(g), "Identity");
    graph_destroy(g);
    b = begin(13);
    onnx_add_output(b, "mask");
    onnx_add(b, "Dropout", NAMES("x"), NAMES("y", "mask"));
    g = onnx_expect(b);
    cr_assert_str_eq(onnx_operators(g), "Shape ConstantOfShape Identity");
    cr_assert_eq(onnx_node_of(g, GRAPH_OP_CONSTANT_OF_SHAPE)->attributes[0].t->dtype, DTYPE_BOOL);
    graph_destroy(g);
    b = begin(13);
    onnx_add_floats(b, "on", 1, &(float){1});
    onnx_add(b, "Dropout", NAMES("x", "", "on"), NAMES("y"));
    onnx_expect_failure(b, STATUS_UNSUPPORTED, NAMES("'y'", "Dropout", "training"));
}

Test(import_onnx_normalise, batch_normalization_is_that_of_inference)
{
    for (int training = 0; training < 2; training++) {
        onnx_builder *b = begin(15);
        static const char *const names[] = {"s", "b", "m", "v"};
        for (int i = 0; i < 4; i++)
            onnx_add_floats(b, names[i], 4, (float[]){1, 1, 1, 1});
        Onnx__Node *n =
            onnx_add(b, "BatchNormalization", NAMES("x", "s", "b", "m", "v"), NAMES("y"));
        onnx_set_float(n, "momentum", 0.9f);
        onnx_set_int(n, "training_mode", training);
        if (training) {
            onnx_expect_failure(b, STATUS_UNSUPPORTED, NAMES("training_mode"));
            continue;
        }
        graph *g = onnx_expect(b);
        cr_assert_eq(g->nodes[0].attribute_count, 0);
        graph_destroy(g);
    }
}

Test(import_onnx_normalise, upsample_and_old_resize_are_resize)
{
    float scales[] = {1, 1, 2};
    for (int opset = 9; opset <= 11; opset++) {
        onnx_builder *b = begin(opset);
        onnx_add_floats(b, "s", 3, scales);
        onnx_add_floats(b, "none", 0, scales);
        Onnx__Node *n = opset == 9    ? onnx_add(b, "Upsample", NAMES("x", "s"), NAMES("y"))
                        : opset == 10 ? onnx_add(b, "Resize", NAMES("x", "s"), NAMES("y"))
                                      : onnx_add(b, "Resize", NAMES("x", "none", "s"), NAMES("y"));
        onnx_set_string(n, "mode", "nearest");
        graph *g = onnx_expect(b);
        const graph_node *resize = onnx_node_of(g, GRAPH_OP_RESIZE);
        cr_assert_eq(resize->inputs[1], GRAPH_NO_VALUE);
        cr_assert_str_eq(onnx_constant_text(g, resize->inputs[2]), "1,1,2");
        cr_assert_str_eq(
            graph_attribute_string(resize, "coordinate_transformation_mode", "half_pixel"),
            opset == 11 ? "half_pixel" : "asymmetric");
        graph_destroy(g);
    }
}

Test(import_onnx_normalise, later_operators_are_made_of_standard_ones)
{
    onnx_builder *b = begin(24);
    onnx_add(b, "Swish", NAMES("x"), NAMES("y"));
    graph *g = onnx_expect(b);
    cr_assert_str_eq(onnx_operators(g), "Sigmoid Mul");
    graph_destroy(g);
    b = begin(23);
    onnx_add_floats(b, "s", 6, (float[]){1, 1, 1, 1, 1, 1});
    onnx_add(b, "RMSNormalization", NAMES("x", "s"), NAMES("y"));
    g = onnx_expect(b);
    cr_assert_str_eq(onnx_operators(g), "Cast Mul ReduceMean Add Sqrt Div CastLike Mul");
    graph_destroy(g);
    b = begin(18);
    onnx_add_floats(b, "s", 2, (float[]){1, 1});
    onnx_set_int(onnx_add(b, "GroupNormalization", NAMES("x", "s", "s"), NAMES("y")), "num_groups",
                 2);
    g = onnx_expect(b);
    cr_assert_eq(g->nodes[g->node_count - 1].op, GRAPH_OP_GROUP_NORMALIZATION);
    cr_assert_eq(g->values[g->nodes[g->node_count - 1].inputs[1]].constant, NULL);
    graph_destroy(g);
    b = begin(16);
    onnx_add(b, "Scatter", NAMES("x", "x", "x"), NAMES("y"));
    g = onnx_expect(b);
    cr_assert_str_eq(onnx_operators(g), "ScatterElements");
    graph_destroy(g);
}

static onnx_builder *begin_contrib(const char *op, const char *const *inputs)
{
    onnx_builder *b = begin(17);
    onnx_import_domain(b, "com.microsoft", 1);
    for (const char *const *name = inputs; *name != NULL; name++)
        if (strcmp(*name, "x") != 0 && (*name)[0] != 0)
            onnx_add_floats(b, *name, 6, (float[]){1, 2, 3, 4, 5, 6});
    onnx_add(b, op, inputs, NAMES("y"))->domain = "com.microsoft";
    return b;
}

static void check_contrib(const char *op, const char *const *inputs, const char *want)
{
    graph *g = onnx_expect(begin_contrib(op, inputs));
    cr_assert_str_eq(onnx_operators(g), want, "%s", op);
    cr_assert_str_eq(g->values[g->outputs[0]].name, "y");
    graph_destroy(g);
}

Test(import_onnx_normalise, rewrites_operators_of_onnx_runtime)
{
    check_contrib("Gelu", NAMES("x"), "Gelu");
    check_contrib("BiasGelu", NAMES("x", "b"), "Add Gelu");
    check_contrib("FastGelu", NAMES("x"), "Gelu");
    check_contrib("QuickGelu", NAMES("x"), "CastLike Mul Sigmoid Mul");
    check_contrib("SkipLayerNormalization", NAMES("x", "x", "g", "b"), "Add LayerNormalization");
    check_contrib("SkipLayerNormalization", NAMES("x", "x", "g", "b", "c"),
                  "Add Add LayerNormalization");
    check_contrib("SimplifiedLayerNormalization", NAMES("x", "g"),
                  "Mul ReduceMean CastLike Add Sqrt Div Mul");
    check_contrib("FusedMatMul", NAMES("x", "b"), "MatMul");
    check_contrib("QLinearAdd", NAMES("x", "a", "b", "x", "c", "d", "e", "f"),
                  "DequantizeLinear DequantizeLinear Add QuantizeLinear");
    check_contrib("QLinearSigmoid", NAMES("x", "a", "b", "c", "d"),
                  "DequantizeLinear Sigmoid QuantizeLinear");
    check_contrib("QLinearConcat", NAMES("a", "b", "x", "c", "d", "x", "e", "f"),
                  "DequantizeLinear DequantizeLinear Concat QuantizeLinear");
    check_contrib("DynamicQuantizeMatMul", NAMES("x", "b", "s", "z", "c"),
                  "DynamicQuantizeLinear Mul MatMulInteger Cast Mul Add");
    check_contrib("DynamicQuantizeLSTM",
                  NAMES("x", "w", "r", "", "", "", "", "", "s", "z", "t", "u"),
                  "Unsqueeze Cast Unsqueeze Cast Sub Mul Transpose Unsqueeze Cast Unsqueeze Cast "
                  "Sub Mul Transpose DynamicQuantizeLinear DequantizeLinear penstock.LSTM");
    check_contrib("MatMulIntegerToFloat", NAMES("x", "b", "s", "t", "", "", "c"),
                  "Mul MatMulInteger Cast Mul Add");
    check_contrib("EmbedLayerNormalization", NAMES("x", "i", "w", "p", "s", "g", "b"),
                  "Shape Gather Range Gather Gather Add Gather Add LayerNormalization");
    check_contrib("QGemm", NAMES("x", "s", "z", "b", "t", "u"),
                  "DequantizeLinear DequantizeLinear Gemm");
    check_contrib("QGemm", NAMES("x", "s", "z", "b", "t", "u", "c", "v", "w"),
                  "DequantizeLinear DequantizeLinear Mul Cast Mul Gemm QuantizeLinear");
    graph *g = onnx_expect(begin_contrib("FastGelu", NAMES("x")));
    cr_assert_str_eq(graph_attribute_string(&g->nodes[0], "approximate", ""), "tanh");
    graph_destroy(g);
    onnx_builder *b = begin_contrib("FusedMatMul", NAMES("x", "b"));
    onnx_set_int(b->graph.node[0], "transB", 1);
    onnx_set_float(b->graph.node[0], "alpha", 0.5f);
    g = onnx_expect(b);
    cr_assert_str_eq(onnx_operators(g), "CastLike Mul Einsum");
    cr_assert_str_eq(graph_attribute_string(&g->nodes[2], "equation", ""), "...mk,...nk->...mn");
    graph_destroy(g);
    b = begin_contrib("FusedConv", NAMES("x", "b"));
    onnx_set_string(b->graph.node[0], "activation", "Relu");
    g = onnx_expect(b);
    cr_assert_str_eq(onnx_operators(g), "Conv Relu");
    graph_destroy(g);
    b = begin_contrib("FusedConv", NAMES("x", "b"));
    onnx_set_string(b->graph.node[0], "activation", "Odd");
    onnx_expect_failure(b, STATUS_UNSUPPORTED, NAMES("FusedConv", "'Odd'", "Relu"));
}

Test(import_onnx_normalise, fused_convolutions_add_and_clip)
{
    onnx_builder *b = begin_contrib("FusedConv", NAMES("x", "b"));
    onnx_set_string(b->graph.node[0], "activation", "Clip");
    onnx_set_floats(b->graph.node[0], "activation_params", 2, (float[]){0, 6});
    graph *g = onnx_expect(b);
    cr_assert_str_eq(onnx_operators(g), "Conv CastLike CastLike Clip");
    cr_assert_str_eq(onnx_constant_text(g, g->nodes[2].inputs[0]), "6");
    graph_destroy(g);
    b = begin_contrib("FusedConv", NAMES("x", "b"));
    onnx_set_string(b->graph.node[0], "activation", "Clip");
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("FusedConv", "activation_params", "two bounds"));
    b = begin_contrib("FusedConv", NAMES("x", "b", "c", "z"));
    onnx_set_string(b->graph.node[0], "activation", "Relu");
    g = onnx_expect(b);
    cr_assert_str_eq(onnx_operators(g), "Conv Add Relu");
    cr_assert_eq(g->nodes[0].input_count, 3);
    graph_destroy(g);
    g = onnx_expect(begin_contrib("FusedConv", NAMES("x", "b", "", "z")));
    cr_assert_str_eq(onnx_operators(g), "Conv Add");
    cr_assert_eq(g->nodes[0].input_count, 2);
    graph_destroy(g);
}

/* What calibration makes of a mask of the lowest float: ONNX Runtime answers 127 throughout. */
Test(import_onnx_normalise, a_softmax_of_an_infinite_scale_is_one)
{
    onnx_builder *b = begin(17);
    onnx_import_domain(b, "com.microsoft", 1);
    onnx_add_floats(b, "scale", 1, (float[]){INFINITY});
    onnx_add_floats(b, "y_scale", 1, (float[]){1 / 256.0f});
    int64_t one = 1;
    Onnx__Tensor *zero = onnx_add_tensor(b, onnx_make_tensor("zero", 3, 1, &one));
    zero->n_int32_data = 1;
    zero->int32_data = (int32_t[]){-128};
    Onnx__Node *n =
        onnx_add(b, "QLinearSoftmax", NAMES("x", "scale", "zero", "y_scale", "zero"), NAMES("y"));
    n->domain = "com.microsoft";
    onnx_set_int(n, "opset", 17);
    graph *g = onnx_expect(b);
    cr_assert_str_eq(onnx_operators(g),
                     "DequantizeLinear Softmax IsNaN CastLike Where QuantizeLinear");
    const char *first = NULL;
    cr_assert_eq(graph_count_nonfinite_scales(g, &first), 1);
    cr_assert_str_eq(first, g->nodes[0].name);
    graph_destroy(g);
    b = begin_contrib("QLinearSigmoid", NAMES("x", "a", "b", "c", "d"));
    g = onnx_expect(b);
    cr_assert_eq(graph_count_nonfinite_scales(g, &first), 0);
    graph_destroy(g);
}

Test(import_onnx_normalise, rejects_rewritten_operators_without_inputs)
{
    static const char *const operators[] = {"Dropout",  "Clip",  "Softmax",
                                            "Upsample", "Swish", "RMSNormalization",
                                            "Slice",    "Split", "Resize"};
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        onnx_builder *b = begin(11);
        onnx_add(b, operators[i], NAMES(NULL), NAMES("y"));
        onnx_expect_failure(b, STATUS_CORRUPT, NAMES(operators[i], "input 0 is missing"));
        b = begin(11);
        onnx_add(b, operators[i], NAMES("", "x"), NAMES("y"));
        onnx_expect_failure(b, STATUS_CORRUPT, NAMES(operators[i], "input 0 is missing"));
    }
}

/* Attention of two heads with weights [2,6], bias [6] and these further inputs. */
static onnx_builder *begin_attention(const char *const *inputs)
{
    static const int64_t dims[] = {2, 6};
    onnx_builder *b = begin(17);
    onnx_import_domain(b, "com.microsoft", 1);
    Onnx__Tensor *w = onnx_add_floats(b, "w", 12, (float[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    w->n_dims = 2;
    w->dims = (int64_t *)dims;
    onnx_add_floats(b, "bias", 6, (float[]){1, 2, 3, 4, 5, 6});
    onnx_add_input(b, "mask", NAMES("batch", "sequence"));
    onnx_add_input(b, "lengths", NAMES("batch"));
    Onnx__Node *n = onnx_add(b, "Attention", inputs, NAMES("y"));
    n->domain = "com.microsoft";
    onnx_set_int(n, "num_heads", 2);
    return b;
}

Test(import_onnx_normalise, attention_is_products_and_a_softmax)
{
    graph *g = onnx_expect(begin_attention(NAMES("x", "w", "bias")));
    cr_assert_str_eq(onnx_operators(g),
                     "MatMul Add MatMul Add MatMul Add Reshape Transpose Reshape Transpose Reshape "
                     "Transpose MatMul Shape Gather Cast Sqrt CastLike Div Softmax MatMul "
                     "Transpose Reshape");
    const tensor *key = g->values[g->nodes[2].inputs[1]].constant;
    cr_assert_eq(key->dims[1], 2);
    cr_assert_eq(tensor_get_number(key, 0), 3);
    cr_assert_eq(tensor_get_number(key, 3), 10);
    cr_assert_eq(tensor_get_number(g->values[g->nodes[5].inputs[1]].constant, 0), 5);
    graph_destroy(g);
    g = onnx_expect(begin_attention(NAMES("x", "w", "bias", "mask")));
    cr_assert_not_null(strstr(onnx_operators(g), "Unsqueeze CastLike"));
    cr_assert_null(strstr(onnx_operators(g), "Range"));
    graph_destroy(g);
    /* A mask of rank 1 counts the keys that are real. */
    g = onnx_expect(begin_attention(NAMES("x", "w", "bias", "lengths")));
    cr_assert_not_null(strstr(onnx_operators(g), "Unsqueeze Shape Gather Range Less"));
    graph_destroy(g);
}

Test(import_onnx_normalise, rejects_attention_it_does_not_know)
{
    onnx_expect_failure(begin_attention(NAMES("x", "x", "bias")), STATUS_UNSUPPORTED,
                        NAMES("'y'", "Attention", "weights"));
    onnx_expect_failure(begin_attention(NAMES("x", "w", "bias", "", "mask")), STATUS_UNSUPPORTED,
                        NAMES("'y'", "Attention", "past"));
    onnx_builder *b = begin_attention(NAMES("x", "w", "bias"));
    onnx_set_int(b->graph.node[b->graph.n_node - 1], "do_rotary", 1);
    onnx_expect_failure(b, STATUS_UNSUPPORTED, NAMES("do_rotary"));
}

/* A linear model of two results over three columns. */
static onnx_builder *begin_ml(const char *op, Onnx__Node **node)
{
    static float weights[] = {1, 2, 3, 4, 5, 6}, intercepts[] = {7, 8};
    onnx_builder *b = begin(17);
    onnx_import_domain(b, "ai.onnx.ml", 3);
    *node = onnx_add(b, op, NAMES("x"), NAMES("y"));
    (*node)->domain = "ai.onnx.ml";
    Onnx__Attribute *a = onnx_set(*node, "coefficients", ONNX__ATTRIBUTE__TYPE__FLOATS);
    a->n_floats = 6;
    a->floats = weights;
    a = onnx_set(*node, "intercepts", ONNX__ATTRIBUTE__TYPE__FLOATS);
    a->n_floats = 2;
    a->floats = intercepts;
    return b;
}

Test(import_onnx_normalise, linear_models_are_products)
{
    Onnx__Node *n;
    onnx_builder *b = begin_ml("LinearRegressor", &n);
    onnx_set_int(n, "targets", 2);
    graph *g = onnx_expect(b);
    cr_assert_str_eq(onnx_operators(g), "Cast Gemm Identity");
    const tensor *weights = g->values[g->nodes[1].inputs[1]].constant;
    cr_assert_eq(weights->dims[0], 2);
    cr_assert_eq(tensor_get_number(weights, 3), 4);
    graph_destroy(g);
    b = begin_ml("LinearClassifier", &n);
    onnx_set_ints(n, "classlabels_ints", 2, (int64_t[]){10, 20});
    onnx_set_string(n, "post_transform", "SOFTMAX");
    g = onnx_expect(b);
    cr_assert_str_eq(onnx_operators(g), "Cast Gemm ArgMax Gather");
    cr_assert_str_eq(onnx_constant_text(g, g->nodes[3].inputs[0]), "10,20");
    graph_destroy(g);
}

Test(import_onnx_normalise, rejects_linear_models_it_does_not_know)
{
    Onnx__Node *n;
    onnx_builder *b = begin_ml("LinearRegressor", &n);
    onnx_set_int(n, "targets", 4);
    onnx_expect_failure(b, STATUS_UNSUPPORTED, NAMES("'y'", "LinearRegressor", "4 results"));
    b = begin_ml("LinearRegressor", &n);
    onnx_set_int(n, "targets", 2);
    onnx_set_string(n, "post_transform", "PROBIT");
    onnx_expect_failure(b, STATUS_UNSUPPORTED, NAMES("PROBIT", "LOGISTIC"));
    onnx_expect_failure(begin_ml("TfIdfThing", &n), STATUS_UNSUPPORTED,
                        NAMES("TfIdfThing", "ai.onnx.ml"));
}

Test(import_onnx_normalise, rejects_outputs_that_the_operator_does_not_have)
{
    onnx_builder *b = onnx_begin(28);
    onnx_add_input(b, "x", NAMES("batch", "8"));
    onnx_add(b, "SwiGLU", NAMES("x", "x"), NAMES("y", "z"));
    onnx_add_output(b, "z");
    onnx_expect_failure(b, STATUS_CORRUPT, NAMES("'y'", "SwiGLU", "output 1"));
    b = onnx_begin(24);
    onnx_add_input(b, "q", NAMES("batch", "2", "4", "8"));
    onnx_set_int(onnx_add(b, "Attention", NAMES("q", "q", "q"), NAMES("y", "", "", "z")),
                 "qk_matmul_output_mode", 4);
    onnx_add_output(b, "z");
    onnx_expect_failure(b, STATUS_UNSUPPORTED, NAMES("'y'", "qk_matmul_output_mode 4"));
}
