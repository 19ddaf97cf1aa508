#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/quantise/internal.h"

/* Dense layers and convolutions: their operands (floats, or int8 and uint8), and the epilogue that
 * absorbs the nodes behind them. */

static bool all_equal(const tensor *t, int64_t value)
{
    for (int64_t i = 0; t && i < tensor_count(t); i++)
        if (tensor_get_integer(t, i) != value)
            return false;
    return true;
}

static const tensor *keep_tensor(fusion *w, dtype type, int rank, const int64_t *dims)
{
    tensor *t = arena_allocate_zeroed(&w->made->memory, 1, sizeof *t);
    if (!t || tensor_allocate(t, &w->made->memory, type, rank, dims)) {
        graph_lack_memory(w->made);
        return NULL;
    }
    return t;
}

static int output_axis(const graph_node *n)
{
    if (n->op == GRAPH_OP_CONV || n->op == GRAPH_OP_CONV_INTEGER || n->op == GRAPH_OP_QLINEAR_CONV)
        return 0;
    return n->op == GRAPH_OP_GEMM && graph_attribute_int(n, "transB", 0) ? 0 : 1;
}

static int32_t int8_at(const tensor *t, int64_t i)
{
    return t->dtype == DTYPE_U8 ? ((const uint8_t *)t->data)[i] : ((const int8_t *)t->data)[i];
}

/* Weights less their zero points, for the caller to free; `inner`: weights between one of the
 * `channels` and the next. NULL when memory is out. */
static int16_t *subtract_zeros(fusion *w, const tensor *t, const tensor *zero, int64_t channels,
                               int64_t inner)
{
    int64_t count = tensor_count(t), zeros = zero ? tensor_count(zero) : 0;
    int16_t *out = malloc((size_t)count * sizeof *out + 1);
    if (!out)
        graph_lack_memory(w->made);
    for (int64_t i = 0, c = 0; out && i < count; c = c + 1 < channels ? c + 1 : 0) {
        int32_t from = zeros == 0 ? 0 : int8_at(zero, zeros == 1 ? 0 : c);
        for (int64_t end = i + inner; i < end; i++)
            out[i] = (int16_t)(int8_at(t, i) - from);
    }
    return out;
}

static bool exceeds_int8(const int16_t *x, int64_t count)
{
    int16_t low = 0, high = 0;
    for (int64_t i = 0; i < count; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    return low < INT8_MIN || high > INT8_MAX;
}

/* The weights among the inputs. */
static int weights_input(const graph_node *n)
{
    return n->op == GRAPH_OP_QLINEAR_CONV || n->op == GRAPH_OP_QLINEAR_MATMUL ? 3 : 1;
}

/* Sets weights_made to `x` as int8. Where `x` exceeds int8, weights_made has one half of each
 * weight and weights_rest the other. */
static bool make_weights(fusion *w, fused_layer *l, const tensor *t, const int16_t *x)
{
    int64_t count = tensor_count(t);
    bool is_far = exceeds_int8(x, count);
    for (int64_t i = 0; i < count; i++)
        if (x[i] > 2 * INT8_MAX)
            return false;
    const tensor *made = keep_tensor(w, DTYPE_I8, t->rank, t->dims);
    const tensor *rest = is_far ? keep_tensor(w, DTYPE_I8, t->rank, t->dims) : NULL;
    if (!made || (is_far && !rest))
        return false;
    int8_t *first = made->data, *second = rest ? rest->data : NULL;
    for (int64_t i = 0; i < count; i++) {
        int16_t half = second ? (int16_t)(x[i] / 2) : 0;
        first[i] = (int8_t)(x[i] - half);
        if (second)
            second[i] = (int8_t)half;
    }
    l->weights_made = made;
    l->weights_rest = rest;
    return true;
}

static void widen_range(uint8_t x, uint8_t *low, uint8_t *high)
{
    *low = x < *low ? x : *low;
    *high = x > *high ? x : *high;
}

/* Whether uint8 weights less one zero exceed int8. In blocks of a constant size: by vectors. */
static bool bytes_exceed_int8(const tensor *t, int32_t zero)
{
    enum { BLOCK = 64 };
    const uint8_t *p = t->data;
    int64_t count = tensor_count(t), i = 0;
    uint8_t low[BLOCK], high[BLOCK];
    memset(low, UINT8_MAX, sizeof low);
    memset(high, 0, sizeof high);
    for (; i + BLOCK <= count; i += BLOCK)
        for (int k = 0; k < BLOCK; k++)
            widen_range(p[i + k], &low[k], &high[k]);
    for (; i < count; i++)
        widen_range(p[i], &low[0], &high[0]);
    for (int k = 1; k < BLOCK; k++) {
        low[0] = low[k] < low[0] ? low[k] : low[0];
        high[0] = high[k] > high[0] ? high[k] : high[0];
    }
    return count > 0 && (low[0] - zero < INT8_MIN || high[0] - zero > INT8_MAX);
}

/* Whether the layer's operators add a shift: not those that are no GEMM. */
static bool can_shift(const fusion *w, const graph_node *n)
{
    bool is_conv =
        n->op == GRAPH_OP_CONV || n->op == GRAPH_OP_CONV_INTEGER || n->op == GRAPH_OP_QLINEAR_CONV;
    return !is_conv || fusion_dim(w, n->inputs[weights_input(n)], 1) > 1 ||
           graph_attribute_int(n, "group", 1) == 1;
}

/* False when `v` is no int8 or uint8 constant. `zero`: NULL, one, or one per output channel. */
static bool set_weights(fusion *w, fused_layer *l, graph_value_index v, const tensor *zero)
{
    const tensor *t = fusion_constant(w, v);
    if (!t || (t->dtype != DTYPE_I8 && t->dtype != DTYPE_U8))
        return false;
    l->weights = v;
    if (t->dtype == DTYPE_I8 && all_equal(zero, 0))
        return true;
    int axis = output_axis(l->anchor);
    int64_t inner = 1, zeros = zero ? tensor_count(zero) : 0;
    for (int d = axis + 1; d < t->rank; d++)
        inner *= t->dims[d];
    if ((zero && zero->dtype != t->dtype) || (zeros > 1 && zeros != t->dims[axis]))
        return false;
    int32_t one_zero = zeros > 0 ? int8_at(zero, 0) : 0;
    if (t->dtype == DTYPE_U8 && all_equal(zero, one_zero) && can_shift(w, l->anchor) &&
        bytes_exceed_int8(t, one_zero)) {
        l->weights_shift = 128 - one_zero; /* kept as they are; packing takes 128 from uint8 */
        return true;
    }
    int16_t *x = subtract_zeros(w, t, zero, t->dims[axis], inner);
    bool is_shifted = x && exceeds_int8(x, tensor_count(t)) && all_equal(zero, one_zero) &&
                      can_shift(w, l->anchor);
    if (is_shifted) /* kept as they are */
        l->weights_shift = (t->dtype == DTYPE_U8 ? 128 : 0) - one_zero;
    bool is_made = is_shifted || (x && make_weights(w, l, t, x));
    free(x);
    return is_made;
}

int64_t fusion_layer_width(const fusion *w, const graph_node *n)
{
    return fusion_dim(w, n->inputs[1], output_axis(n));
}

const tensor *fusion_float_constant(fusion *w, graph_value_index v)
{
    const tensor *t = fusion_constant(w, v);
    if (t)
        return t->dtype == DTYPE_F32 ? t : NULL;
    const graph_node *n = fusion_producer(w, v);
    if (!n || n->op != GRAPH_OP_DEQUANTIZE_LINEAR || graph_attribute_int(n, "block_size", 0) != 0)
        return NULL;
    const tensor *x = fusion_constant(w, n->inputs[0]), *scale = fusion_constant(w, n->inputs[1]);
    const tensor *zero = fusion_constant(w, graph_input_of(n, 2));
    if (!x || !scale || scale->dtype != DTYPE_F32 || fusion_type(w, v) != DTYPE_F32 ||
        (graph_input_of(n, 2) != GRAPH_NO_VALUE && !zero))
        return NULL;
    int64_t scales = tensor_count(scale), inner = 1;
    int64_t axis = graph_attribute_int(n, "axis", 1);
    axis += axis < 0 ? x->rank : 0;
    for (int64_t d = axis + 1; d < x->rank; d++)
        inner *= x->dims[d];
    const tensor *made = keep_tensor(w, DTYPE_F32, x->rank, x->dims);
    for (int64_t i = 0; made && i < tensor_count(x); i++) {
        int64_t s = scales == 1 ? 0 : i / inner % scales;
        int64_t from = zero ? tensor_get_integer(zero, tensor_count(zero) == 1 ? 0 : s) : 0;
        ((float *)made->data)[i] =
            (float)(tensor_get_integer(x, i) - from) * ((const float *)scale->data)[s];
    }
    return made;
}

/* A dequantised i32 bias in units of x_scale * w_scale stays i32, so that the sum is exact. */
static const tensor *integer_bias(const fusion *w, const fused_layer *l, graph_value_index v)
{
    const graph_node *n = fusion_producer(w, v);
    const tensor *x =
        n && n->op == GRAPH_OP_DEQUANTIZE_LINEAR ? fusion_constant(w, n->inputs[0]) : NULL;
    const tensor *scale = x ? fusion_constant(w, n->inputs[1]) : NULL;
    if (!scale || x->dtype != DTYPE_I32 || scale->dtype != DTYPE_F32 || !l->w_scale_is ||
        !all_equal(fusion_constant(w, graph_input_of(n, 2)), 0))
        return NULL;
    int64_t count = tensor_count(x), scales = tensor_count(scale);
    int64_t weights = tensor_count(l->w_scale_is);
    for (int64_t i = 0; i < count; i++) {
        float unit = l->x_is.scale * ((const float *)l->w_scale_is->data)[weights == 1 ? 0 : i];
        float given = ((const float *)scale->data)[scales == 1 ? 0 : i];
        if (!(fabsf(given - unit) <= 1e-5f * fabsf(unit)))
            return NULL;
    }
    return x;
}

bool fusion_set_bias(fusion *w, fused_layer *l, graph_value_index v)
{
    int64_t n = fusion_layer_width(w, l->anchor);
    const tensor *t = l->is_quantised ? integer_bias(w, l, v) : NULL;
    t = t ? t : fusion_float_constant(w, v);
    if (!t || tensor_count(t) != n)
        return false;
    l->bias_made = t;
    return true;
}

/* The operands of DequantizeLinear(x), DequantizeLinear(weights). */
static bool match_quantised_operands(fusion *w, fused_layer *l)
{
    const graph_node *n = l->anchor, *dequantise = fusion_producer(w, n->inputs[1]);
    if (!fusion_find_uint8(w, n->inputs[0], &l->x_is) || !dequantise ||
        dequantise->op != GRAPH_OP_DEQUANTIZE_LINEAR ||
        graph_attribute_int(dequantise, "block_size", 0) != 0)
        return false;
    const tensor *scale = fusion_constant(w, dequantise->inputs[1]);
    graph_value_index zero = graph_input_of(dequantise, 2);
    int rank = fusion_rank(w, n->inputs[1]);
    int64_t axis = graph_attribute_int(dequantise, "axis", 1);
    if (!scale || scale->dtype != DTYPE_F32 ||
        (zero != GRAPH_NO_VALUE && !fusion_constant(w, zero)) ||
        (tensor_count(scale) != 1 && axis + (axis < 0 ? rank : 0) != output_axis(n)))
        return false;
    l->w_scale_is = scale;
    l->x = l->x_is.value;
    l->is_quantised = true;
    return set_weights(w, l, dequantise->inputs[0], fusion_constant(w, zero));
}

static bool match_float_operands(fusion *w, fused_layer *l)
{
    const graph_node *n = l->anchor;
    if (fusion_type(w, n->inputs[0]) != DTYPE_F32 || fusion_constant(w, n->inputs[0]))
        return false;
    l->is_quantised = false;
    l->x = n->inputs[0];
    l->weights = n->inputs[1];
    l->weights_made =
        fusion_constant(w, n->inputs[1]) ? NULL : fusion_float_constant(w, n->inputs[1]);
    const tensor *t = fusion_constant(w, n->inputs[1]);
    return l->weights_made || (t && t->dtype == DTYPE_F32);
}

/* Without groups, and with pads that say where the output begins. */
static bool is_plain_transpose(const graph_node *n)
{
    return graph_attribute_int(n, "group", 1) == 1 && !graph_find_attribute(n, "output_shape") &&
           strncmp(graph_attribute_string(n, "auto_pad", "NOTSET"), "SAME", 4) != 0;
}

/* The weights of a ConvTranspose, [C,M,h,w], as [C,h,w,M]. */
static bool make_transposed_weights(fusion *w, fused_layer *l)
{
    const tensor *t = l->weights_made ? l->weights_made : fusion_constant(w, l->weights);
    if (!t)
        return false;
    const tensor *made =
        keep_tensor(w, DTYPE_F32, 4, (int64_t[]){t->dims[0], t->dims[2], t->dims[3], t->dims[1]});
    int64_t taps = t->dims[2] * t->dims[3], channels = t->dims[1];
    for (int64_t i = 0; made && i < tensor_count(t); i++) {
        int64_t row = i / (taps * channels), channel = i / taps % channels;
        ((float *)made->data)[(row * taps + i % taps) * channels + channel] =
            ((const float *)t->data)[i];
    }
    l->weights_made = made;
    return made != NULL;
}

/* Whether the fused operators support the shapes. */
static bool has_supported_shape(const fusion *w, const graph_node *n)
{
    int x = fusion_rank(w, n->inputs[0]), b = fusion_rank(w, n->inputs[1]);
    if (fusion_count(w, n->outputs[0]) == 0)
        return false;
    if (n->op == GRAPH_OP_CONV)
        return x == 4 && fusion_count(w, n->inputs[0]) > 0;
    if (n->op == GRAPH_OP_CONV_TRANSPOSE)
        return x == 4 && fusion_count(w, n->inputs[0]) > 0 && is_plain_transpose(n);
    if (n->op == GRAPH_OP_MATMUL)
        return x >= 2 && b == 2 && fusion_dim(w, n->inputs[1], 0) > 0;
    return n->op == GRAPH_OP_GEMM && !graph_attribute_int(n, "transA", 0) &&
           graph_attribute_float(n, "alpha", 1) == 1 && graph_attribute_float(n, "beta", 1) == 1 &&
           fusion_dim(w, n->inputs[0], 1) > 0;
}

static fused_layer *new_layer(fusion *w, const graph_node *n, graph_op op)
{
    fused_layer *l = arena_allocate_zeroed(&w->made->memory, 1, sizeof *l);
    if (l) {
        l->op = op;
        l->anchor = n;
        l->weights = l->bias = l->residual = l->x_scale = l->x_zero = l->w_scale = GRAPH_NO_VALUE;
        l->out = n->outputs[0];
    }
    return l;
}

static status keep_layer(fusion *w, fused_layer *l, int32_t at)
{
    w->roles[fusion_absorb_epilogue(w, l, at)].layer = l;
    w->facts.fused_layer_count++;
    w->facts.quantised_layer_count += l->is_quantised;
    return STATUS_OK;
}

status fusion_match_layer(fusion *w, int32_t at)
{
    const graph_node *n = &w->g->nodes[at];
    if (!has_supported_shape(w, n))
        return STATUS_OK;
    bool is_back = n->op == GRAPH_OP_CONV_TRANSPOSE;
    fused_layer *l = new_layer(w, n,
                               is_back                  ? GRAPH_OP_FUSED_CONV_TRANSPOSE
                               : n->op == GRAPH_OP_CONV ? GRAPH_OP_FUSED_CONV
                                                        : GRAPH_OP_FUSED_DENSE);
    if (!l)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to fuse \"%s\"", w->g->name);
    bool is_quantised = !is_back && match_quantised_operands(w, l);
    if (!is_quantised && !match_float_operands(w, l))
        return STATUS_OK;
    if (is_back && !make_transposed_weights(w, l))
        return STATUS_OK;
    l->is_transposed = l->op == GRAPH_OP_FUSED_DENSE && output_axis(n) == 0;
    graph_value_index bias = graph_input_of(n, 2);
    if (bias != GRAPH_NO_VALUE &&
        (fusion_rank(w, bias) == 0 ||
         fusion_dim(w, bias, fusion_rank(w, bias) - 1) != fusion_layer_width(w, n) ||
         !fusion_set_bias(w, l, bias)))
        return STATUS_OK;
    return keep_layer(w, l, at);
}

/* The only reader of `v`, or -1. */
static int32_t only_reader(const fusion *w, graph_value_index v)
{
    return w->uses[v] == 1 ? w->reader[v] : -1;
}

/* Whether `scale` is one number, or one for each output channel, on the right axis. */
static bool is_scale_of(const fusion *w, const graph_node *n, graph_value_index scale)
{
    int64_t scales = fusion_count(w, scale), width = fusion_layer_width(w, n);
    int rank = fusion_rank(w, scale);
    int axis = rank - (n->op == GRAPH_OP_CONV_INTEGER ? 3 : 1);
    return rank <= fusion_rank(w, n->outputs[0]) &&
           (scales == 1 || (scales == width && axis >= 0 && fusion_dim(w, scale, axis) == width));
}

static bool has_supported_dynamic_shape(const fusion *w, const graph_node *n)
{
    int x = fusion_rank(w, n->inputs[0]), b = fusion_rank(w, n->inputs[1]);
    bool is_conv = n->op == GRAPH_OP_CONV_INTEGER;
    return fusion_type(w, n->inputs[0]) == DTYPE_U8 && fusion_count(w, n->outputs[0]) > 0 &&
           (is_conv ? x == 4 && fusion_count(w, n->inputs[0]) > 0
                    : x >= 2 && b == 2 && fusion_dim(w, n->inputs[1], 0) > 0);
}

/* An Add of one i32 per output channel behind the integer layer at `at`: the value of those
 * numbers, or GRAPH_NO_VALUE. */
static graph_value_index integer_sum(const fusion *w, int32_t at, int32_t add_at)
{
    const graph_node *n = &w->g->nodes[at], *add = add_at < 0 ? NULL : &w->g->nodes[add_at];
    if (!add || add->op != GRAPH_OP_ADD || fusion_type(w, add->outputs[0]) != DTYPE_I32)
        return GRAPH_NO_VALUE;
    graph_value_index other = add->inputs[add->inputs[0] == n->outputs[0]];
    int64_t width = fusion_layer_width(w, n);
    int rank = fusion_rank(w, other), axis = rank - (n->op == GRAPH_OP_CONV_INTEGER ? 3 : 1);
    bool fits = rank <= fusion_rank(w, n->outputs[0]) && fusion_count(w, other) == width &&
                axis >= 0 && fusion_dim(w, other, axis) == width;
    return fits ? other : GRAPH_NO_VALUE;
}

/* MatMulInteger or ConvInteger(x, weights, x_zero) -> Add of a bias in i32, or not -> Cast to f32
 * -> Mul by a scale: what dynamic quantisation makes. */
status fusion_match_dynamic_layer(fusion *w, int32_t at)
{
    const graph *g = w->g;
    const graph_node *n = &g->nodes[at];
    int32_t cast_at = has_supported_dynamic_shape(w, n) ? only_reader(w, n->outputs[0]) : -1;
    int32_t add_at = cast_at;
    graph_value_index bias = integer_sum(w, at, add_at);
    if (bias != GRAPH_NO_VALUE)
        cast_at = only_reader(w, g->nodes[add_at].outputs[0]);
    if (cast_at < 0 || g->nodes[cast_at].op != GRAPH_OP_CAST ||
        fusion_type(w, g->nodes[cast_at].outputs[0]) != DTYPE_F32)
        return STATUS_OK;
    graph_value_index floats = g->nodes[cast_at].outputs[0];
    int32_t last = only_reader(w, floats);
    if (last < 0 || g->nodes[last].op != GRAPH_OP_MUL)
        return STATUS_OK;
    const graph_node *mul = &g->nodes[last];
    graph_value_index scale = mul->inputs[mul->inputs[0] == floats];
    graph_value_index zero = graph_input_of(n, 2), b_zero = graph_input_of(n, 3);
    if (!is_scale_of(w, n, scale) || (zero != GRAPH_NO_VALUE && fusion_count(w, zero) != 1) ||
        (b_zero != GRAPH_NO_VALUE && !fusion_constant(w, b_zero)))
        return STATUS_OK;
    fused_layer *l = new_layer(
        w, n, n->op == GRAPH_OP_CONV_INTEGER ? GRAPH_OP_FUSED_CONV : GRAPH_OP_FUSED_DENSE);
    if (!l)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to fuse \"%s\"", g->name);
    if (!set_weights(w, l, n->inputs[1], fusion_constant(w, b_zero)))
        return STATUS_OK;
    l->is_quantised = true;
    l->x = n->inputs[0];
    l->x_zero = zero;
    l->w_scale = scale;
    l->bias = bias;
    w->roles[at].is_absorbed = w->roles[cast_at].is_absorbed = true;
    w->roles[add_at].is_absorbed = true; /* the same node where there is no bias */
    l->out = mul->outputs[0];
    return keep_layer(w, l, last);
}

static bool is_byte(dtype type)
{
    return type == DTYPE_U8 || type == DTYPE_I8;
}

/* Whether all but the activations are constants of the supported kinds. */
static bool has_qlinear_constants(const fusion *w, const graph_node *n)
{
    bool is_conv = n->op == GRAPH_OP_QLINEAR_CONV;
    if (!is_conv && n->op != GRAPH_OP_QLINEAR_MATMUL)
        return false;
    for (int i = 1; i < 8; i++) {
        const tensor *t = fusion_constant(w, n->inputs[i]);
        bool is_scale = i == 1 || i == 4 || i == 6, is_one = i != 3 && i != 4 && i != 5;
        if (!t || (is_one && tensor_count(t) != 1) || (is_scale && t->dtype != DTYPE_F32))
            return false;
    }
    int rank = fusion_rank(w, n->inputs[0]), b_rank = fusion_rank(w, n->inputs[3]);
    graph_value_index bias = is_conv ? graph_input_of(n, 8) : GRAPH_NO_VALUE;
    if ((is_conv ? rank != 4 : rank < 2 || b_rank != 2) ||
        (bias != GRAPH_NO_VALUE && !fusion_constant(w, bias)))
        return false;
    int64_t width = fusion_dim(w, n->inputs[3], is_conv ? 0 : 1);
    int64_t scales = fusion_count(w, n->inputs[4]);
    return (scales == 1 || scales == width) && is_byte(fusion_type(w, n->inputs[0])) &&
           is_byte(fusion_type(w, n->outputs[0])) && fusion_count(w, n->outputs[0]) > 0 &&
           fusion_count(w, n->inputs[0]) > 0;
}

bool fusion_is_qlinear_layer(const fusion *w, const graph_node *n)
{
    return has_qlinear_constants(w, n) && fusion_type(w, n->inputs[3]) == DTYPE_I8 &&
           all_equal(fusion_constant(w, n->inputs[5]), 0);
}

/* The zero point of uint8: 128 more than that of int8. */
static quantised_tensor qlinear_tensor(const fusion *w, graph_value_index v,
                                       graph_value_index scale, graph_value_index zero)
{
    int32_t shift = fusion_type(w, v) == DTYPE_I8 ? 128 : 0;
    return (quantised_tensor){v, *(const float *)fusion_constant(w, scale)->data,
                              (int32_t)tensor_get_integer(fusion_constant(w, zero), 0) + shift};
}

/* QLinearConv and QLinearMatMul of constants are the same thing in one node. */
status fusion_match_qlinear_layer(fusion *w, int32_t at)
{
    const graph_node *n = &w->g->nodes[at];
    bool is_conv = n->op == GRAPH_OP_QLINEAR_CONV;
    if (!has_qlinear_constants(w, n))
        return STATUS_OK;
    fused_layer *l = new_layer(w, n, is_conv ? GRAPH_OP_FUSED_CONV : GRAPH_OP_FUSED_DENSE);
    if (!l)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to fuse \"%s\"", w->g->name);
    if (!set_weights(w, l, n->inputs[3], fusion_constant(w, n->inputs[5])))
        return STATUS_OK;
    l->is_quantised = l->has_quantised_result = true;
    l->x = n->inputs[0];
    l->w_scale_is = fusion_constant(w, n->inputs[4]);
    l->x_is = qlinear_tensor(w, l->x, n->inputs[1], n->inputs[2]);
    l->y_is = qlinear_tensor(w, l->out, n->inputs[6], n->inputs[7]);
    if (is_conv && graph_input_of(n, 8) != GRAPH_NO_VALUE)
        l->bias_made = fusion_constant(w, n->inputs[8]);
    w->roles[at].layer = l;
    w->facts.fused_layer_count++;
    w->facts.quantised_layer_count++;
    return STATUS_OK;
}
