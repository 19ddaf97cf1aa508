#include <math.h>
#include <string.h>

#include "graph/onnx/rewrite/rewrite.h"

/* The quantised operators of ONNX Runtime's domain com.microsoft (its ContribOperators.md), which
 * its quantiser writes, as DequantizeLinear, the float operator and QuantizeLinear, or as integer
 * matrix multiplications. */

static graph_value_index dequantize(onnx_node *n, graph_value_index x, graph_value_index scale,
                                    graph_value_index zero)
{
    graph_value_index inputs[] = {x, scale, zero};
    return graph_add(n->graph, GRAPH_OP_DEQUANTIZE_LINEAR, zero == GRAPH_NO_VALUE ? 2 : 3, inputs,
                     0, NULL);
}

static void finish_quantized(onnx_node *n, graph_value_index x, graph_value_index scale,
                             graph_value_index zero)
{
    graph_value_index inputs[] = {x, scale, zero};
    onnx_finish(n, GRAPH_OP_QUANTIZE_LINEAR, zero == GRAPH_NO_VALUE ? 2 : 3, inputs, 0, NULL);
}

/* Inputs: a, a scale, a zero, b, b scale, b zero, result scale, result zero. */
status onnx_rewrite_qlinear_binary(onnx_node *n)
{
    status s = onnx_check_inputs(n, 7, 8);
    for (int i = 0; i < 7; i++)
        if (s == STATUS_OK && i != 2 && i != 5 && n->inputs[i] == GRAPH_NO_VALUE)
            s = onnx_fail(n, STATUS_CORRUPT, "its input %d is missing", i);
    if (s)
        return s;
    graph_value_index y =
        onnx_binary(n, strcmp(n->op_type, "QLinearMul") == 0 ? GRAPH_OP_MUL : GRAPH_OP_ADD,
                    dequantize(n, n->inputs[0], n->inputs[1], n->inputs[2]),
                    dequantize(n, n->inputs[3], n->inputs[4], n->inputs[5]));
    finish_quantized(n, y, n->inputs[6], onnx_input(n, 7));
    return STATUS_OK;
}

/* Inputs: a, a scale, a zero, b, b scale, b zero, bias (INT32)?, y scale?, y zero?; the result is
 * float without a y scale. Source: ONNX Runtime, ContribOperators.md, com.microsoft.QGemm. */
status onnx_rewrite_qgemm(onnx_node *n)
{
    float alpha = onnx_pop_float(n, "alpha", 1);
    int64_t swaps_a = onnx_pop_int(n, "transA", 0), swaps_b = onnx_pop_int(n, "transB", 0);
    status s = n->input_count < 6 ? onnx_fail(n, STATUS_CORRUPT, "an input is missing")
                                  : onnx_check_inputs(n, 2, 9);
    if (s == STATUS_OK)
        s = onnx_check_no_attributes(n);
    if (s == STATUS_OK && (n->inputs[3] == GRAPH_NO_VALUE || n->inputs[4] == GRAPH_NO_VALUE))
        s = onnx_fail(n, STATUS_CORRUPT, "an input is missing");
    if (s)
        return s;
    graph_value_index b_inputs[] = {n->inputs[3], n->inputs[4], n->inputs[5]};
    graph_attribute along[] = {graph_make_int("axis", swaps_b ? 0 : 1)};
    graph_value_index inputs[] = {dequantize(n, n->inputs[0], n->inputs[1], n->inputs[2]),
                                  graph_add(n->graph, GRAPH_OP_DEQUANTIZE_LINEAR,
                                            n->inputs[5] == GRAPH_NO_VALUE ? 2 : 3, b_inputs, 1,
                                            along),
                                  onnx_input(n, 6)};
    if (inputs[2] != GRAPH_NO_VALUE) {
        graph_value_index scale = onnx_binary(n, GRAPH_OP_MUL, n->inputs[1], n->inputs[4]);
        if (alpha != 1)
            scale = onnx_binary(n, GRAPH_OP_MUL, scale, onnx_float_like(n, alpha, scale));
        inputs[2] =
            onnx_binary(n, GRAPH_OP_MUL, onnx_cast(n, inputs[2], dtype_to_onnx(DTYPE_F32)), scale);
    }
    graph_attribute attributes[] = {graph_make_float("alpha", alpha),
                                    graph_make_int("transA", swaps_a),
                                    graph_make_int("transB", swaps_b)};
    int count = inputs[2] == GRAPH_NO_VALUE ? 2 : 3;
    if (onnx_input(n, 7) == GRAPH_NO_VALUE) {
        onnx_finish(n, GRAPH_OP_GEMM, count, inputs, 3, attributes);
        return STATUS_OK;
    }
    graph_value_index y = graph_add(n->graph, GRAPH_OP_GEMM, count, inputs, 3, attributes);
    finish_quantized(n, y, n->inputs[7], onnx_input(n, 8));
    return STATUS_OK;
}

/* Calibration makes an infinite scale where a mask adds the lowest float: the softmax of that is
 * NaN, which ONNX Runtime quantises to the largest int8 (and to 0 in uint8, as QuantizeLinear
 * does). */
static graph_value_index fill_undefined_softmax(onnx_node *n, graph_value_index y)
{
    const tensor *scale = n->graph->values[n->inputs[1]].constant;
    const tensor *zero =
        onnx_input(n, 4) == GRAPH_NO_VALUE ? NULL : n->graph->values[n->inputs[4]].constant;
    if (scale == NULL || zero == NULL || scale->dtype != DTYPE_F32 || zero->dtype != DTYPE_I8 ||
        tensor_count(scale) != 1 || isfinite(*(const float *)scale->data))
        return y;
    graph_value_index inputs[] = {onnx_unary(n, GRAPH_OP_IS_NAN, y), onnx_float_like(n, 1, y), y};
    return graph_add(n->graph, GRAPH_OP_WHERE, 3, inputs, 0, NULL);
}

/* Inputs: x, x scale, x zero, y scale, y zero; the attributes are those of the float operator. */
status onnx_rewrite_qlinear_unary(onnx_node *n)
{
    static const struct {
        const char *name;
        graph_op op;
    } table[] = {
        {"QLinearSigmoid", GRAPH_OP_SIGMOID},
        {"QLinearLeakyRelu", GRAPH_OP_LEAKY_RELU},
        {"QLinearSoftmax", GRAPH_OP_SOFTMAX},
        {"QLinearGlobalAveragePool", GRAPH_OP_GLOBAL_AVERAGE_POOL},
        {"QLinearAveragePool", GRAPH_OP_AVERAGE_POOL},
    };
    if (n->input_count < 4 || n->input_count > 5 || n->inputs[0] == GRAPH_NO_VALUE ||
        n->inputs[1] == GRAPH_NO_VALUE || n->inputs[3] == GRAPH_NO_VALUE)
        return onnx_fail(n, STATUS_CORRUPT, "an input is missing");
    if (onnx_pop_int(n, "channels_last", 0) != 0)
        return onnx_fail(n, STATUS_UNSUPPORTED, "channels_last = 1; supported: 0");
    if (strcmp(n->op_type, "QLinearSoftmax") == 0 && onnx_pop_int(n, "opset", 13) < 13)
        return onnx_fail(n, STATUS_UNSUPPORTED, "opset below 13; supported: 13 and later");
    graph_op op = GRAPH_OP_SIGMOID;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].name, n->op_type) == 0)
            op = table[i].op;
    graph_value_index x = dequantize(n, n->inputs[0], n->inputs[1], n->inputs[2]);
    graph_value_index y = graph_add(n->graph, op, 1, &x, n->attribute_count, n->attributes);
    if (op == GRAPH_OP_SOFTMAX)
        y = fill_undefined_softmax(n, y);
    finish_quantized(n, y, n->inputs[3], onnx_input(n, 4));
    return STATUS_OK;
}

/* Inputs: y scale, y zero, then (x, scale, zero) of each part. */
status onnx_rewrite_qlinear_concat(onnx_node *n)
{
    if (n->input_count < 5 || (n->input_count - 2) % 3 != 0)
        return onnx_fail(n, STATUS_CORRUPT, "it has %d inputs", n->input_count);
    for (int i = 0; i < n->input_count; i++)
        if (n->inputs[i] == GRAPH_NO_VALUE)
            return onnx_fail(n, STATUS_CORRUPT, "its input %d is missing", i);
    int count = (n->input_count - 2) / 3;
    graph_value_index *parts =
        arena_allocate_zeroed(&n->importer->scratch, (size_t)count, sizeof parts[0]);
    if (parts == NULL)
        return onnx_fail_memory();
    for (int i = 0; i < count; i++)
        parts[i] = dequantize(n, n->inputs[2 + 3 * i], n->inputs[3 + 3 * i], n->inputs[4 + 3 * i]);
    graph_attribute axis = graph_make_int("axis", onnx_pop_int(n, "axis", 0));
    graph_value_index y = graph_add(n->graph, GRAPH_OP_CONCAT, count, parts, 1, &axis);
    finish_quantized(n, y, n->inputs[0], n->inputs[1]);
    return STATUS_OK;
}

/* An integer matrix multiplication with a float result: (A - a_zero) x (B - b_zero) * scale + bias.
 */
static void finish_integer_matmul(onnx_node *n, const graph_value_index operands[4],
                                  graph_value_index scale, graph_value_index bias)
{
    int count = operands[3] != GRAPH_NO_VALUE ? 4 : operands[2] != GRAPH_NO_VALUE ? 3 : 2;
    graph_value_index matmul =
        graph_add(n->graph, GRAPH_OP_MATMUL_INTEGER, count, operands, 0, NULL);
    graph_value_index y = onnx_cast(n, matmul, dtype_to_onnx(DTYPE_F32));
    if (bias != GRAPH_NO_VALUE) {
        graph_value_index sum[] = {onnx_binary(n, GRAPH_OP_MUL, y, scale), bias};
        onnx_finish(n, GRAPH_OP_ADD, 2, sum, 0, NULL);
        return;
    }
    graph_value_index scaled[] = {y, scale};
    onnx_finish(n, GRAPH_OP_MUL, 2, scaled, 0, NULL);
}

/* Inputs: A, B, a scale, b scale, a zero?, b zero?, bias?. */
status onnx_rewrite_matmul_integer_to_float(onnx_node *n)
{
    status s = onnx_check_inputs(n, 4, 7);
    if (s)
        return s;
    graph_value_index operands[] = {n->inputs[0], n->inputs[1], onnx_input(n, 4), onnx_input(n, 5)};
    finish_integer_matmul(n, operands, onnx_binary(n, GRAPH_OP_MUL, n->inputs[2], n->inputs[3]),
                          onnx_input(n, 6));
    return STATUS_OK;
}

/* Inputs: A (float), B, b scale, b zero?, bias?. */
status onnx_rewrite_dynamic_quantize_matmul(onnx_node *n)
{
    status s = onnx_check_inputs(n, 3, 5);
    if (s)
        return s;
    int32_t node = graph_add_node(n->graph, GRAPH_OP_DYNAMIC_QUANTIZE_LINEAR, n->name, 1,
                                  &n->inputs[0], 3, 0, NULL);
    const graph_value_index *quantized = n->graph->nodes[node].outputs;
    graph_value_index scale = onnx_binary(n, GRAPH_OP_MUL, quantized[1], n->inputs[2]);
    quantized = n->graph->nodes[node].outputs;
    graph_value_index operands[] = {quantized[0], n->inputs[1], quantized[2], onnx_input(n, 3)};
    finish_integer_matmul(n, operands, scale, onnx_input(n, 4));
    return STATUS_OK;
}

/* Element (direction, column) of a scale or zero point of read_recurrent_weights(). */
static double part_at(const tensor *t, int64_t direction, int64_t column, double otherwise)
{
    if (t == NULL)
        return otherwise;
    int64_t count = tensor_count(t), columns = t->rank == 2 ? t->dims[1] : 1;
    int64_t at = count == 1 ? 0 : direction * columns + (columns == 1 ? 0 : column);
    return tensor_get_number(t, at);
}

static const tensor *constant_of(const onnx_node *n, int input)
{
    graph_value_index v = onnx_input(n, input);
    return v == GRAPH_NO_VALUE ? NULL : n->graph->values[v].constant;
}

/* Whether a scale or zero point has one number, or one for each direction, or for each of its
 * columns too. */
static bool fits_weights(const tensor *part, const tensor *w)
{
    if (part == NULL || tensor_count(part) == 1)
        return true;
    return part->rank >= 1 && part->rank <= 2 && part->dims[0] == w->dims[0] &&
           (part->rank == 1 || part->dims[1] == 1 || part->dims[1] == w->dims[2]);
}

/* What read_recurrent_weights() returns, of constants: computed at once, so that no intermediate
 * values, four times as large as the weights, stay. NULL: they are not all constants. */
static const tensor *make_recurrent_weights(onnx_node *n, int weights, int scale)
{
    const tensor *w = constant_of(n, weights), *factor = constant_of(n, scale);
    const tensor *zero = constant_of(n, scale + 1);
    if (w == NULL || (zero == NULL && onnx_input(n, scale + 1) != GRAPH_NO_VALUE) || w->rank != 3 ||
        (w->dtype != DTYPE_I8 && w->dtype != DTYPE_U8) || factor->dtype != DTYPE_F32 ||
        !fits_weights(factor, w) || !fits_weights(zero, w))
        return NULL;
    int64_t rows = w->dims[1], columns = w->dims[2];
    tensor *made = arena_allocate_zeroed(&n->graph->memory, 1, sizeof *made);
    if (made == NULL || tensor_allocate(made, &n->graph->memory, DTYPE_F32, 3,
                                        (int64_t[]){w->dims[0], columns, rows})) {
        graph_lack_memory(n->graph);
        return NULL;
    }
    float *out = made->data;
    for (int64_t d = 0; d < w->dims[0]; d++)
        for (int64_t j = 0; j < columns; j++) {
            float by = (float)part_at(factor, d, j, 1), from = (float)part_at(zero, d, j, 0);
            for (int64_t i = 0; i < rows; i++) {
                int64_t at = (d * rows + i) * columns + j;
                float x = w->dtype == DTYPE_U8 ? (float)((const uint8_t *)w->data)[at]
                                               : (float)((const int8_t *)w->data)[at];
                *out++ = (x - from) * by;
            }
        }
    return made;
}

/* (w - zero) * scale, with scale and zero [directions] or [directions, columns] of a w
 * [directions, rows, columns]; transposed to [directions, columns, rows]. */
static status read_recurrent_weights(onnx_node *n, int weights, int scale, graph_value_index *out)
{
    const tensor *constant = n->graph->values[n->inputs[scale]].constant;
    if (constant == NULL || constant->rank > 2)
        return onnx_fail(
            n, STATUS_UNSUPPORTED,
            "a scale that is not a constant of rank 0 to 2; supported: such constants");
    const tensor *made = make_recurrent_weights(n, weights, scale);
    if (made != NULL) {
        *out = graph_add_constant(n->graph, NULL, made);
        return STATUS_OK;
    }
    int64_t axes[] = {1, 2}, perm[] = {0, 2, 1};
    int added = constant->rank == 0 ? 0 : 3 - constant->rank;
    graph_value_index parts[] = {n->inputs[scale], onnx_input(n, scale + 1)};
    for (int i = 0; i < 2; i++) {
        if (parts[i] == GRAPH_NO_VALUE)
            continue;
        if (i == 1)
            parts[i] = onnx_cast(n, parts[i], dtype_to_onnx(DTYPE_F32));
        if (added > 0)
            parts[i] = onnx_binary(n, GRAPH_OP_UNSQUEEZE, parts[i], onnx_ints(n, added, axes));
    }
    graph_value_index w = onnx_cast(n, n->inputs[weights], dtype_to_onnx(DTYPE_F32));
    if (parts[1] != GRAPH_NO_VALUE)
        w = onnx_binary(n, GRAPH_OP_SUB, w, parts[1]);
    w = onnx_binary(n, GRAPH_OP_MUL, w, parts[0]);
    graph_attribute order[] = {graph_make_ints(n->graph, "perm", 3, perm)};
    *out = graph_add(n->graph, GRAPH_OP_TRANSPOSE, 1, &w, 1, order);
    return STATUS_OK;
}

/* x as 8 bits hold it, with a scale of all rows and steps. */
static graph_value_index round_input(onnx_node *n, graph_value_index x)
{
    graph *g = n->graph;
    int32_t node = graph_add_node(g, GRAPH_OP_DYNAMIC_QUANTIZE_LINEAR, n->name, 1, &x, 3, 0, NULL);
    return graph_add(g, GRAPH_OP_DEQUANTIZE_LINEAR, 3, g->nodes[node].outputs, 0, NULL);
}

/* An LSTM whose matrices are stored in 8 bits, and which rounds its input and its states to 8 bits.
 * ONNX Runtime multiplies bytes; products of the same numbers as floats are the same. With many
 * rows it may give some of them a scale of their own, by its number of threads; here all rows of a
 * request share one. Inputs: x, w, r, bias?, lengths?, h?, c?, peepholes?, w scale, w zero, r
 * scale, r zero. Source: ONNX Runtime, ContribOperators.md, com.microsoft.DynamicQuantizeLSTM. */
status onnx_rewrite_dynamic_quantize_lstm(onnx_node *n)
{
    static const int needed[] = {0, 1, 2, 8, 10};
    status s = onnx_check_inputs(n, 3, 12);
    for (int i = 0; i < 5 && !s; i++)
        if (onnx_input(n, needed[i]) == GRAPH_NO_VALUE)
            s = onnx_fail(n, STATUS_CORRUPT, "its input %d is missing", needed[i]);
    graph_value_index w, r;
    if (!s)
        s = read_recurrent_weights(n, 1, 8, &w);
    if (!s)
        s = read_recurrent_weights(n, 2, 10, &r);
    if (s)
        return s;
    n->inputs[1] = w;
    n->inputs[2] = r;
    n->input_count = 8;
    while (n->inputs[n->input_count - 1] == GRAPH_NO_VALUE)
        n->input_count--;
    n->inputs[0] = round_input(n, n->inputs[0]);
    s = onnx_check_schema(n, GRAPH_OP_LSTM);
    if (s)
        return s;
    graph_add_node_to(n->graph, GRAPH_OP_ROUNDED_LSTM, n->name, n->input_count, n->inputs,
                      n->output_count, n->outputs, n->attribute_count, n->attributes);
    n->is_emitted = true;
    return STATUS_OK;
}
