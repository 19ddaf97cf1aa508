#include <string.h>

#include "graph/onnx/rewrite/rewrite.h"

/* Operators that are functions in the standard, or newer than opset 21, composed of operators of
 * opset 21: CenterCropPad, RotaryEmbedding, SwiGLU, TensorScatter. */

static graph_value_index along(onnx_node *n, graph_op op, int count,
                               const graph_value_index *inputs, int64_t axis)
{
    graph_attribute a = graph_make_int("axis", axis);
    return graph_add(n->graph, op, count, inputs, 1, &a);
}

static graph_value_index join(onnx_node *n, int64_t axis, graph_value_index a, graph_value_index b)
{
    graph_value_index parts[] = {a, b};
    return along(n, GRAPH_OP_CONCAT, 2, parts, axis);
}

static graph_value_index reshape(onnx_node *n, graph_value_index x, int count, const int64_t *dims)
{
    return onnx_binary(n, GRAPH_OP_RESHAPE, x, onnx_ints(n, count, dims));
}

static graph_value_index slice(onnx_node *n, graph_value_index x, graph_value_index start,
                               graph_value_index end, graph_value_index axes)
{
    graph_value_index inputs[] = {x, start, end, axes};
    return graph_add(n->graph, GRAPH_OP_SLICE, 4, inputs, 0, NULL);
}

status onnx_rewrite_swiglu(onnx_node *n)
{
    float alpha = onnx_pop_float(n, "alpha", 1);
    status s = onnx_check_inputs(n, 2, 2);
    if (s)
        return s;
    graph_value_index x = n->inputs[0], scaled = x;
    if (alpha != 1)
        scaled = onnx_binary(n, GRAPH_OP_MUL, x, onnx_float_like(n, alpha, x));
    x = onnx_binary(n, GRAPH_OP_MUL, x, onnx_unary(n, GRAPH_OP_SIGMOID, scaled));
    graph_value_index inputs[] = {x, n->inputs[1]};
    onnx_finish(n, GRAPH_OP_MUL, 2, inputs, 0, NULL);
    return STATUS_OK;
}

/* What is left of an axis after cutting or padding both of its ends: the odd element comes off, or
 * is added at, the end. */
status onnx_rewrite_center_crop_pad(onnx_node *n)
{
    const graph_attribute *listed = onnx_pop_attribute(n, "axes");
    status s = onnx_check_inputs(n, 2, 2);
    if (s)
        return s;
    graph_value_index x = n->inputs[0], axes = GRAPH_NO_VALUE, zero = onnx_int(n, 0);
    graph_value_index is = onnx_unary(n, GRAPH_OP_SHAPE, x), two = onnx_int(n, 2);
    if (listed != NULL) {
        axes = onnx_ints(n, (int64_t)listed->count, listed->ints);
        is = onnx_binary(n, GRAPH_OP_GATHER, is, axes);
    }
    graph_value_index to = onnx_cast(n, n->inputs[1], dtype_to_onnx(DTYPE_I64));
    graph_value_index less = onnx_binary(n, GRAPH_OP_SUB, is, to);
    graph_value_index more = onnx_binary(n, GRAPH_OP_SUB, to, is);
    less = onnx_binary(n, GRAPH_OP_MAX, less, zero);
    more = onnx_binary(n, GRAPH_OP_MAX, more, zero);
    graph_value_index start = onnx_binary(n, GRAPH_OP_DIV, less, two);
    graph_value_index end =
        onnx_binary(n, GRAPH_OP_ADD, start, onnx_binary(n, GRAPH_OP_MIN, is, to));
    x = slice(n, x, start, end, axes);
    graph_value_index before = onnx_binary(n, GRAPH_OP_DIV, more, two);
    graph_value_index pads = join(n, 0, before, onnx_binary(n, GRAPH_OP_SUB, more, before));
    graph_value_index inputs[] = {x, pads, GRAPH_NO_VALUE, axes};
    onnx_finish(n, GRAPH_OP_PAD, 4, inputs, 0, NULL);
    return STATUS_OK;
}

/* Element `index` of the last axis, which goes. */
static graph_value_index pick(onnx_node *n, graph_value_index x, int64_t index)
{
    graph_value_index inputs[] = {x, onnx_int(n, index)};
    return along(n, GRAPH_OP_GATHER, 2, inputs, -1);
}

/* Turns the pairs of x [batch, length, heads, size] by the angles of `cosine` and `sine`. */
static graph_value_index rotate(onnx_node *n, graph_value_index x, bool is_interleaved,
                                graph_value_index cosine, graph_value_index sine)
{
    graph_value_index first, second, last = onnx_ints(n, 1, &(int64_t){-1});
    if (is_interleaved) {
        x = reshape(n, x, 5, (int64_t[]){0, 0, 0, -1, 2});
        first = pick(n, x, 0);
        second = pick(n, x, 1);
    } else {
        graph_attribute halves[] = {graph_make_int("axis", -1), graph_make_int("num_outputs", 2)};
        int32_t split = graph_add_node(n->graph, GRAPH_OP_SPLIT, n->name, 1, &x, 2, 2, halves);
        first = n->graph->nodes[split].outputs[0];
        second = n->graph->nodes[split].outputs[1];
    }
    graph_value_index real =
        onnx_binary(n, GRAPH_OP_SUB, onnx_binary(n, GRAPH_OP_MUL, cosine, first),
                    onnx_binary(n, GRAPH_OP_MUL, sine, second));
    graph_value_index imaginary =
        onnx_binary(n, GRAPH_OP_ADD, onnx_binary(n, GRAPH_OP_MUL, sine, first),
                    onnx_binary(n, GRAPH_OP_MUL, cosine, second));
    if (!is_interleaved)
        return join(n, -1, real, imaginary);
    x = join(n, -1, onnx_binary(n, GRAPH_OP_UNSQUEEZE, real, last),
             onnx_binary(n, GRAPH_OP_UNSQUEEZE, imaginary, last));
    return reshape(n, x, 4, (int64_t[]){0, 0, 0, -1});
}

static graph_value_index swap_heads(onnx_node *n, graph_value_index x)
{
    graph_attribute perm = graph_make_ints(n->graph, "perm", 4, (int64_t[]){0, 2, 1, 3});
    return graph_add(n->graph, GRAPH_OP_TRANSPOSE, 1, &x, 1, &perm);
}

status onnx_rewrite_rotary_embedding(onnx_node *n)
{
    bool is_interleaved = onnx_pop_int(n, "interleaved", 0) != 0;
    int64_t turned = onnx_pop_int(n, "rotary_embedding_dim", 0);
    int64_t heads = onnx_pop_int(n, "num_heads", 0);
    status s = onnx_check_inputs(n, 3, 4);
    if (s)
        return s;
    int32_t rank = n->graph->values[n->inputs[0]].shape.rank;
    bool is_flat = heads > 0 && rank != 4;
    graph_value_index x = n->inputs[0], angles[2], three = onnx_ints(n, 1, &(int64_t){3});
    for (int i = 0; i < 2; i++) {
        angles[i] = n->inputs[1 + i];
        if (onnx_input(n, 3) != GRAPH_NO_VALUE)
            angles[i] = onnx_binary(n, GRAPH_OP_GATHER, angles[i], n->inputs[3]);
        angles[i] = onnx_binary(n, GRAPH_OP_UNSQUEEZE, angles[i], onnx_ints(n, 1, &(int64_t){2}));
    }
    x = is_flat ? reshape(n, x, 4, (int64_t[]){0, 0, heads, -1}) : swap_heads(n, x);
    graph_value_index rest = GRAPH_NO_VALUE;
    if (turned > 0) {
        graph_value_index at = onnx_ints(n, 1, &turned);
        rest = slice(n, x, at, onnx_ints(n, 1, &(int64_t){INT64_MAX}), three);
        x = slice(n, x, onnx_ints(n, 1, &(int64_t){0}), at, three);
    }
    x = rotate(n, x, is_interleaved, angles[0], angles[1]);
    if (rest != GRAPH_NO_VALUE)
        x = join(n, -1, x, rest);
    onnx_finish_as(n, is_flat ? reshape(n, x, 3, (int64_t[]){0, 0, -1}) : swap_heads(n, x));
    return STATUS_OK;
}

/* ScatterElements at write_indices[batch], write_indices[batch] + 1, ... of the axis. */
status onnx_rewrite_tensor_scatter(onnx_node *n)
{
    int64_t axis = onnx_pop_int(n, "axis", -2);
    const char *mode = onnx_pop_string(n, "mode", "linear");
    status s = onnx_check_inputs(n, 2, 3);
    if (s)
        return s;
    int32_t rank = n->graph->values[n->inputs[0]].shape.rank;
    axis = axis < 0 ? axis + rank : axis;
    if (rank < 2 || axis < 1 || axis >= rank)
        return onnx_fail(n, STATUS_UNSUPPORTED, "axis %lld of an input of rank %d", (long long)axis,
                         (int)rank);
    graph_value_index past = n->inputs[0], update = n->inputs[1];
    graph_value_index at = onnx_int(n, axis), shape = onnx_unary(n, GRAPH_OP_SHAPE, update);
    graph_value_index range[] = {onnx_int(n, 0), onnx_binary(n, GRAPH_OP_GATHER, shape, at),
                                 onnx_int(n, 1)};
    graph_value_index places = graph_add(n->graph, GRAPH_OP_RANGE, 3, range, 0, NULL);
    int64_t dims[TENSOR_RANK_MAX], starts[TENSOR_RANK_MAX];
    for (int i = 0; i < rank; i++) {
        dims[i] = i == axis ? -1 : 1;
        starts[i] = i == 0 ? -1 : 1;
    }
    places = reshape(n, places, rank, dims);
    if (onnx_input(n, 2) != GRAPH_NO_VALUE)
        places = onnx_binary(n, GRAPH_OP_ADD, places, reshape(n, n->inputs[2], rank, starts));
    if (strcmp(mode, "circular") == 0) {
        graph_value_index size =
            onnx_binary(n, GRAPH_OP_GATHER, onnx_unary(n, GRAPH_OP_SHAPE, past), at);
        places = onnx_binary(n, GRAPH_OP_MOD, places, size);
    } else if (strcmp(mode, "linear") != 0) {
        return onnx_fail(n, STATUS_UNSUPPORTED, "mode '%s'; supported: linear, circular", mode);
    }
    graph_value_index inputs[] = {past, onnx_binary(n, GRAPH_OP_EXPAND, places, shape), update};
    graph_attribute along_axis = graph_make_int("axis", axis);
    onnx_finish(n, GRAPH_OP_SCATTER_ELEMENTS, 3, inputs, 1, &along_axis);
    return STATUS_OK;
}
