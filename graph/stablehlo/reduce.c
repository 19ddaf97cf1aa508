#include <assert.h>
#include <math.h>
#include <string.h>

#include "graph/stablehlo/operators.h"

/* Reductions, and what is made of them: softmax, normalisations, pooling, arg max, running sums. */

/* Of a TPU's matrix unit. */
#define SUM_COLUMNS 128

static void mark(bool *is_reduced, int rank, int64_t axis)
{
    is_reduced[axis < 0 ? axis + rank : axis] = true;
}

static status emit_reduce(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0), type = emit_output_type(e, n, 0);
    const tensor *axes = emit_constant(e, n, 1);
    bool is_reduced[TENSOR_RANK_MAX] = {false};
    if (emit_has_input(n, 1) && axes == NULL)
        return status_fail(STATUS_UNSUPPORTED, "its axes are computed");
    int64_t axis_count = axes ? tensor_count(axes) : 0, reduced_count = 1;
    if (axis_count == 0 && graph_attribute_int(n, "noop_with_empty_axes", 0)) {
        emit_output(e, n, 0, x);
        return STATUS_OK;
    }
    for (int i = 0; i < x.rank; i++)
        is_reduced[i] = axis_count == 0;
    for (int64_t i = 0; i < axis_count; i++)
        mark(is_reduced, x.rank, tensor_get_integer(axes, i));
    for (int i = 0; i < x.rank; i++)
        reduced_count *= is_reduced[i] ? x.dims[i] : 1;
    ssa v;
    switch (n->op) {
    case GRAPH_OP_REDUCE_MAX:
    case GRAPH_OP_REDUCE_MIN: {
        bool is_max = n->op == GRAPH_OP_REDUCE_MAX;
        double start = dtype_is_float(x.dtype) ? (is_max ? -INFINITY : INFINITY)
                       : x.dtype == DTYPE_BOOL ? !is_max
                       : is_max                ? (double)dtype_integer_min(x.dtype)
                                : (double)(int64_t)(dtype_integer_max(x.dtype) / 2 * 2 + 1);
        v = hlo_reduce(e,
                       x.dtype == DTYPE_BOOL ? (is_max ? "or" : "and")
                       : is_max              ? "maximum"
                                             : "minimum",
                       x, start, is_reduced);
        break;
    }
    case GRAPH_OP_REDUCE_PROD:
        v = hlo_reduce(e, "multiply", x, 1, is_reduced);
        break;
    case GRAPH_OP_REDUCE_L1:
        v = hlo_reduce(e, "add", hlo_unary(e, "abs", x), 0, is_reduced);
        break;
    case GRAPH_OP_REDUCE_L2:
    case GRAPH_OP_REDUCE_SUM_SQUARE:
        v = hlo_reduce(e, "add", hlo_binary(e, "multiply", x, x), 0, is_reduced);
        if (n->op == GRAPH_OP_REDUCE_L2)
            v = hlo_unary(e, "sqrt", v);
        break;
    case GRAPH_OP_REDUCE_LOG_SUM:
        v = hlo_unary(e, "log", hlo_reduce(e, "add", x, 0, is_reduced));
        break;
    case GRAPH_OP_REDUCE_LOG_SUM_EXP: {
        ssa top = hlo_reduce_keep(e, "maximum", x, -INFINITY, is_reduced);
        ssa moved = hlo_broadcast_binary(e, "subtract", x, top);
        ssa sum = hlo_reduce_keep(e, "add", hlo_unary(e, "exponential", moved), 0, is_reduced);
        v = hlo_binary(e, "add", hlo_unary(e, "log", sum), top);
        break;
    }
    default:
        v = hlo_reduce(e, "add", x, 0, is_reduced);
        if (n->op == GRAPH_OP_REDUCE_MEAN)
            v = hlo_scalar_binary(e, "divide", v, (double)reduced_count);
    }
    emit_output(e, n, 0, hlo_reshape(e, v, type.rank, type.dims));
    return STATUS_OK;
}

/* Whether a matrix multiplication alone reads the value, as its first operand. */
static bool is_left_factor(const emitter *e, graph_value_index v)
{
    int readers = 0;
    for (int i = 0; i < e->graph->output_count; i++)
        readers += 2 * (e->graph->outputs[i] == v);
    for (int32_t i = 0; i < e->graph->node_count && readers < 2; i++) {
        const graph_node *n = &e->graph->nodes[i];
        for (int k = 0; k < n->input_count; k++)
            if (n->inputs[k] == v)
                readers += n->op == GRAPH_OP_MATMUL && k == 0 ? 1 : 2;
    }
    return readers == 1;
}

static status emit_softmax(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0);
    bool is_reduced[TENSOR_RANK_MAX] = {false};
    is_reduced[emit_axis(n, "axis", -1, x.rank)] = true;
    ssa top = hlo_reduce_keep(e, "maximum", x, -INFINITY, is_reduced);
    ssa moved = hlo_broadcast_binary(e, "subtract", x, top);
    ssa raised = hlo_unary(e, "exponential", moved);
    ssa sum = hlo_reduce_keep(e, "add", raised, 0, is_reduced);
    if (e->options.is_softmax_late && n->op == GRAPH_OP_SOFTMAX && is_reduced[x.rank - 1] &&
        x.rank > 2 && is_left_factor(e, n->outputs[0])) {
        emit_output(e, n, 0, raised);
        e->divisors[n->outputs[0]] = sum;
        return STATUS_OK;
    }
    emit_output(e, n, 0,
                n->op == GRAPH_OP_SOFTMAX
                    ? hlo_broadcast_binary(e, "divide", raised, sum)
                    : hlo_broadcast_binary(e, "subtract", moved, hlo_unary(e, "log", sum)));
    return STATUS_OK;
}

/* Over the marked dimensions, which stay with size 1. */
typedef ssa (*sum_fn)(emitter *e, ssa x, const bool *is_reduced);

static ssa sum_by_reduction(emitter *e, ssa x, const bool *is_reduced)
{
    return hlo_reduce_keep(e, "add", x, 0, is_reduced);
}

/* Over the last dimension, by the matrix unit: of x rounded to bf16. The sums are computed for all
 * columns of the unit: XLA makes a reduction of a product with one column. */
static ssa sum_by_product(emitter *e, ssa x, const bool *is_reduced)
{
    int last = x.rank - 1;
    int64_t starts[TENSOR_RANK_MAX] = {0}, limits[TENSOR_RANK_MAX], strides[TENSOR_RANK_MAX];
    assert(is_reduced[last]);
    ssa ones = hlo_splat(e, DTYPE_BF16, 2, (int64_t[]){x.dims[last], SUM_COLUMNS}, 1);
    ssa sums = hlo_dot(e, hlo_convert(e, x, DTYPE_BF16), ones, 0, last, 0, DTYPE_F32);
    for (int i = 0; i <= last; i++) {
        limits[i] = i < last ? x.dims[i] : 1;
        strides[i] = 1;
    }
    return hlo_slice(e, sums, starts, limits, strides);
}

/* (x - mean) / sqrt(variance + epsilon) over the marked dimensions. */
static ssa standardise(emitter *e, ssa x, const bool *is_reduced, sum_fn sum, double epsilon,
                       ssa *mean_out, ssa *inverse_out)
{
    double count = 1;
    for (int i = 0; i < x.rank; i++)
        count *= is_reduced[i] ? (double)x.dims[i] : 1;
    ssa mean = hlo_scalar_binary(e, "divide", sum(e, x, is_reduced), count);
    ssa moved = hlo_broadcast_binary(e, "subtract", x, mean);
    ssa from = e->options.is_norm_one_pass ? x : moved;
    ssa squares = sum(e, hlo_binary(e, "multiply", from, from), is_reduced);
    ssa variance = hlo_scalar_binary(e, "divide", squares, count);
    if (e->options.is_norm_one_pass) {
        variance = hlo_binary(e, "subtract", variance, hlo_binary(e, "multiply", mean, mean));
        variance = hlo_scalar_binary(e, "maximum", variance, 0);
    }
    ssa inverse = hlo_unary(e, "rsqrt", hlo_scalar_binary(e, "add", variance, epsilon));
    if (mean_out != NULL) {
        *mean_out = mean;
        *inverse_out = inverse;
    }
    return hlo_broadcast_binary(e, "multiply", moved, inverse);
}

/* Whether one dense layer and an addition read the value, and nothing else. */
static bool has_layer_and_residual(const emitter *e, graph_value_index v)
{
    int layers = 0, additions = 0, others = 0;
    for (int i = 0; i < e->graph->output_count; i++)
        others += e->graph->outputs[i] == v;
    for (int32_t i = 0; i < e->graph->node_count; i++) {
        const graph_node *n = &e->graph->nodes[i];
        for (int k = 0; k < n->input_count; k++)
            if (n->inputs[k] == v) {
                layers += n->op == GRAPH_OP_GEMM || n->op == GRAPH_OP_MATMUL;
                additions += n->op == GRAPH_OP_ADD;
                others +=
                    n->op != GRAPH_OP_GEMM && n->op != GRAPH_OP_MATMUL && n->op != GRAPH_OP_ADD;
            }
    }
    return layers == 1 && additions == 1 && others == 0;
}

/* f32, computed before its readers; bf16 between them where the stream is. */
static ssa kept(emitter *e, ssa v)
{
    bool is_rounded = e->options.is_stream_bf16 && v.dtype == DTYPE_F32;
    return is_rounded ? emit_rounded_apart(e, v) : hlo_barrier(e, v);
}

/* A sum of bf16 values loses what a variance needs where one is far larger than the others; the
 * builder of an encoder asks for it where the compiler cannot sum in passing. */
static sum_fn sum_of(const emitter *e, const graph_node *n, int axis, int rank)
{
    bool is_asked = graph_attribute_int(n, "sums_by_product", 0) && axis == rank - 1;
    return is_asked && e->precision != STABLEHLO_FP32 ? sum_by_product : sum_by_reduction;
}

static status emit_layer_normalization(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0), mean, inverse;
    int axis = emit_axis(n, "axis", -1, x.rank);
    if (e->options.is_norm_apart)
        x = hlo_barrier(e, x);
    bool is_reduced[TENSOR_RANK_MAX] = {false};
    for (int i = axis; i < x.rank; i++)
        is_reduced[i] = true;
    ssa v = standardise(e, hlo_convert(e, x, DTYPE_F32), is_reduced, sum_of(e, n, axis, x.rank),
                        (double)graph_attribute_float(n, "epsilon", 1e-5f), &mean, &inverse);
    v = hlo_broadcast_binary(e, "multiply", hlo_convert(e, v, x.dtype), emit_input(e, n, 1));
    if (emit_has_input(n, 2))
        v = hlo_broadcast_binary(e, "add", v, emit_input(e, n, 2));
    if (e->options.is_stream_bf16)
        v = emit_rounded(e, v);
    if (e->options.is_norm_kept && has_layer_and_residual(e, n->outputs[0]))
        v = kept(e, v);
    emit_output(e, n, 0, v);
    emit_output(e, n, 1, mean);
    emit_output(e, n, 2, inverse);
    return STATUS_OK;
}

static ssa scale_channels(emitter *e, ssa v, ssa scale, ssa bias)
{
    v = hlo_binary(e, "multiply", v, hlo_broadcast_along(e, scale, &v, 1));
    return hlo_binary(e, "add", v, hlo_broadcast_along(e, bias, &v, 1));
}

static status emit_batch_normalization(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0), variance = emit_input(e, n, 4);
    double epsilon = (double)graph_attribute_float(n, "epsilon", 1e-5f);
    ssa inverse = hlo_unary(e, "rsqrt", hlo_scalar_binary(e, "add", variance, epsilon));
    ssa v = hlo_binary(e, "subtract", x, hlo_broadcast_along(e, emit_input(e, n, 3), &x, 1));
    v = hlo_binary(e, "multiply", v, hlo_broadcast_along(e, inverse, &v, 1));
    emit_output(e, n, 0, scale_channels(e, v, emit_input(e, n, 1), emit_input(e, n, 2)));
    return STATUS_OK;
}

static status emit_instance_normalization(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0);
    bool is_reduced[TENSOR_RANK_MAX] = {false};
    for (int i = 2; i < x.rank; i++)
        is_reduced[i] = true;
    ssa v = standardise(e, x, is_reduced, sum_by_reduction,
                        (double)graph_attribute_float(n, "epsilon", 1e-5f), NULL, NULL);
    emit_output(e, n, 0, scale_channels(e, v, emit_input(e, n, 1), emit_input(e, n, 2)));
    return STATUS_OK;
}

static status emit_group_normalization(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0);
    int64_t groups = graph_attribute_int(n, "num_groups", 1);
    bool last[TENSOR_RANK_MAX] = {false, false, true};
    int64_t split[3] = {x.dims[0], groups, ssa_count(&x) / (x.dims[0] * groups)};
    ssa v = standardise(e, hlo_reshape(e, x, 3, split), last, sum_by_reduction,
                        (double)graph_attribute_float(n, "epsilon", 1e-5f), NULL, NULL);
    v = hlo_reshape(e, v, x.rank, x.dims);
    emit_output(e, n, 0, scale_channels(e, v, emit_input(e, n, 1), emit_input(e, n, 2)));
    return STATUS_OK;
}

static status emit_lp_normalization(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0), norm;
    bool is_reduced[TENSOR_RANK_MAX] = {false};
    is_reduced[emit_axis(n, "axis", -1, x.rank)] = true;
    if (graph_attribute_int(n, "p", 2) == 1)
        norm = hlo_reduce_keep(e, "add", hlo_unary(e, "abs", x), 0, is_reduced);
    else
        norm = hlo_unary(e, "sqrt",
                         hlo_reduce_keep(e, "add", hlo_binary(e, "multiply", x, x), 0, is_reduced));
    emit_output(e, n, 0, hlo_broadcast_binary(e, "divide", x, norm));
    return STATUS_OK;
}

static status emit_global_pool(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0), v;
    bool is_reduced[TENSOR_RANK_MAX] = {false};
    double count = 1;
    for (int i = 2; i < x.rank; i++) {
        is_reduced[i] = true;
        count *= (double)x.dims[i];
    }
    if (n->op == GRAPH_OP_GLOBAL_MAX_POOL)
        v = hlo_reduce_keep(e, "maximum", x, -INFINITY, is_reduced);
    else
        v = hlo_scalar_binary(e, "divide", hlo_reduce_keep(e, "add", x, 0, is_reduced), count);
    emit_output(e, n, 0, v);
    return STATUS_OK;
}

static status emit_pool(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0), type = emit_output_type(e, n, 0);
    int spatial = x.rank - 2;
    int64_t window[TENSOR_RANK_MAX] = {1, 1}, strides[TENSOR_RANK_MAX] = {1, 1},
            dilations[TENSOR_RANK_MAX] = {1, 1}, low[TENSOR_RANK_MAX] = {0},
            high[TENSOR_RANK_MAX] = {0};
    if (n->output_count > 1 && n->outputs[1] != GRAPH_NO_VALUE)
        return status_fail(STATUS_UNSUPPORTED, "no indices output");
    emit_ints(n, "kernel_shape", spatial, 1, window + 2);
    emit_ints(n, "strides", spatial, 1, strides + 2);
    emit_ints(n, "dilations", spatial, 1, dilations + 2);
    emit_window_pads(n, spatial, x.dims + 2, type.dims + 2, window + 2, strides + 2, dilations + 2,
                     low + 2, high + 2);
    int64_t declared_high[TENSOR_RANK_MAX];
    memcpy(declared_high, high, sizeof high);
    for (int i = 2; i < x.rank; i++) /* ceil_mode: the last window may hang over */
        high[i] = (type.dims[i] - 1) * strides[i] + (window[i] - 1) * dilations[i] + 1 - x.dims[i] -
                  low[i];
    if (n->op == GRAPH_OP_MAX_POOL) {
        double least = dtype_is_float(x.dtype) ? -INFINITY : (double)dtype_integer_min(x.dtype);
        emit_output(
            e, n, 0,
            hlo_reduce_window(e, "maximum", x, least, window, strides, dilations, low, high));
        return STATUS_OK;
    }
    ssa sum = hlo_reduce_window(e, "add", x, 0, window, strides, dilations, low, high);
    /* How many elements each window really holds: sum a field of ones the same way. Overhang by
     * ceil_mode never counts. */
    int64_t dims[TENSOR_RANK_MAX], left[TENSOR_RANK_MAX], right[TENSOR_RANK_MAX];
    bool has_padding_counted = graph_attribute_int(n, "count_include_pad", 0) != 0;
    for (int i = 0; i < x.rank; i++) {
        dims[i] = i < 2 ? 1 : x.dims[i] + (has_padding_counted ? low[i] + declared_high[i] : 0);
        left[i] = has_padding_counted ? 0 : low[i];
        right[i] = i < 2 ? 0 : x.dims[i] + low[i] + high[i] - dims[i] - left[i];
    }
    ssa ones = hlo_splat(e, x.dtype, x.rank, dims, 1);
    ssa count = hlo_reduce_window(e, "add", ones, 0, window, strides, dilations, left, right);
    emit_output(e, n, 0, hlo_broadcast_binary(e, "divide", sum, count));
    return STATUS_OK;
}

static status emit_cum_sum(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0);
    const tensor *axis_in = emit_constant(e, n, 1);
    if (axis_in == NULL)
        return status_fail(STATUS_UNSUPPORTED, "its axis is computed");
    int64_t axis = tensor_get_integer(axis_in, 0);
    axis += axis < 0 ? x.rank : 0;
    bool is_reverse = graph_attribute_int(n, "reverse", 0),
         is_exclusive = graph_attribute_int(n, "exclusive", 0);
    int64_t window[TENSOR_RANK_MAX], ones[TENSOR_RANK_MAX], low[TENSOR_RANK_MAX] = {0},
                                                            high[TENSOR_RANK_MAX] = {0};
    for (int i = 0; i < x.rank; i++)
        window[i] = ones[i] = 1;
    window[axis] = x.dims[axis];
    /* A window as long as the axis, hanging over the side that is already summed; exclusive moves
     * it by one and drops the end. */
    int64_t *over = is_reverse ? high : low, *other = is_reverse ? low : high;
    over[axis] = x.dims[axis] - 1 + is_exclusive;
    other[axis] = -(int64_t)is_exclusive;
    emit_output(e, n, 0, hlo_reduce_window(e, "add", x, 0, window, ones, ones, low, high));
    return STATUS_OK;
}

/* The first (or last) index of the largest element: the least index among those equal to the
 * maximum. */
static status emit_arg(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0), type = emit_output_type(e, n, 0);
    int axis = emit_axis(n, "axis", 0, x.rank);
    bool is_reduced[TENSOR_RANK_MAX] = {false},
         is_last = graph_attribute_int(n, "select_last_index", 0) != 0;
    is_reduced[axis] = true;
    if (!dtype_is_float(x.dtype))
        return status_fail(STATUS_UNSUPPORTED, "only floating-point inputs");
    bool is_max = n->op == GRAPH_OP_ARG_MAX;
    ssa best = hlo_reduce_keep(e, is_max ? "maximum" : "minimum", x, is_max ? -INFINITY : INFINITY,
                               is_reduced);
    ssa is_best = hlo_compare(e, "EQ", x, hlo_broadcast_to(e, best, x.rank, x.dims));
    ssa place = hlo_iota(e, DTYPE_I64, x.rank, x.dims, axis);
    double none = is_last ? -1 : (double)x.dims[axis];
    ssa candidates = hlo_select(e, is_best, place, hlo_splat_like(e, &place, none));
    ssa v = hlo_reduce(e, is_last ? "maximum" : "minimum", candidates, none, is_reduced);
    emit_output(e, n, 0, hlo_reshape(e, v, type.rank, type.dims));
    return STATUS_OK;
}

emit_fn emit_find_reduce(graph_op op)
{
    switch (op) {
    case GRAPH_OP_REDUCE_MAX:
    case GRAPH_OP_REDUCE_MIN:
    case GRAPH_OP_REDUCE_PROD:
    case GRAPH_OP_REDUCE_SUM:
    case GRAPH_OP_REDUCE_MEAN:
    case GRAPH_OP_REDUCE_L1:
    case GRAPH_OP_REDUCE_L2:
    case GRAPH_OP_REDUCE_SUM_SQUARE:
    case GRAPH_OP_REDUCE_LOG_SUM:
    case GRAPH_OP_REDUCE_LOG_SUM_EXP:
        return emit_reduce;
    case GRAPH_OP_SOFTMAX:
    case GRAPH_OP_LOG_SOFTMAX:
        return emit_softmax;
    case GRAPH_OP_LAYER_NORMALIZATION:
        return emit_layer_normalization;
    case GRAPH_OP_BATCH_NORMALIZATION:
        return emit_batch_normalization;
    case GRAPH_OP_INSTANCE_NORMALIZATION:
        return emit_instance_normalization;
    case GRAPH_OP_GROUP_NORMALIZATION:
        return emit_group_normalization;
    case GRAPH_OP_LP_NORMALIZATION:
        return emit_lp_normalization;
    case GRAPH_OP_GLOBAL_AVERAGE_POOL:
    case GRAPH_OP_GLOBAL_MAX_POOL:
        return emit_global_pool;
    case GRAPH_OP_MAX_POOL:
    case GRAPH_OP_AVERAGE_POOL:
        return emit_pool;
    case GRAPH_OP_CUM_SUM:
        return emit_cum_sum;
    case GRAPH_OP_ARG_MAX:
    case GRAPH_OP_ARG_MIN:
        return emit_arg;
    default:
        return NULL;
    }
}
