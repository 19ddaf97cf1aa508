#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/quantise/internal.h"

/* Products with what follows them: their operands as floats or bytes, and the epilogue. */

static bool all_equal(const tensor *t, int64_t value)
{
    for (int64_t i = 0; t && i < tensor_count(t); i++)
        if (tensor_get_integer(t, i) != value)
            return false;
    return true;
}

static const tensor *keep_tensor(quantised_work *w, dtype type, int rank, const int64_t *dims)
{
    tensor *t = arena_allocate_zeroed(&w->made->memory, 1, sizeof *t);
    if (!t || tensor_allocate(t, &w->made->memory, type, rank, dims))
        return NULL;
    return t;
}

static int output_axis(const graph_node *n)
{
    if (n->op == GRAPH_OP_CONV || n->op == GRAPH_OP_CONV_INTEGER || n->op == GRAPH_OP_QLINEAR_CONV)
        return 0;
    return n->op == GRAPH_OP_GEMM && graph_attribute_int(n, "transB", 0) ? 0 : 1;
}

static int32_t byte_at(const tensor *t, int64_t i)
{
    return t->dtype == DTYPE_U8 ? ((const uint8_t *)t->data)[i] : ((const int8_t *)t->data)[i];
}

/* Weights less their zero points, for the caller to free; `inner`: weights between one of the
 * `channels` and the next. NULL when memory is out. */
static int16_t *subtract_zeros(const tensor *t, const tensor *zero, int64_t channels, int64_t inner)
{
    int64_t count = tensor_count(t), zeros = zero ? tensor_count(zero) : 0;
    int16_t *out = malloc((size_t)count * sizeof *out + 1);
    for (int64_t i = 0, c = 0; out && i < count; c = c + 1 < channels ? c + 1 : 0) {
        int32_t from = zeros == 0 ? 0 : byte_at(zero, zeros == 1 ? 0 : c);
        for (int64_t end = i + inner; i < end; i++)
            out[i] = (int16_t)(byte_at(t, i) - from);
    }
    return out;
}

/* Sets weights_made to `x` as i8; where it reaches further to one half of each, with the other half
 * in weights_rest. */
static bool make_weights(quantised_work *w, quantised_product *p, const tensor *t, const int16_t *x)
{
    int64_t count = tensor_count(t);
    int16_t low = 0, high = 0;
    for (int64_t i = 0; i < count; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    bool is_far = low < INT8_MIN || high > INT8_MAX;
    if (high > 2 * INT8_MAX)
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
    p->weights_made = made;
    p->weights_rest = rest;
    return true;
}

/* False when they are no constant bytes. `zero`: NULL, one, or one for each output channel. */
static bool take_weights(quantised_work *w, quantised_product *p, graph_value_index v,
                         const tensor *zero)
{
    const tensor *t = quantised_constant(w, v);
    if (!t || (t->dtype != DTYPE_I8 && t->dtype != DTYPE_U8))
        return false;
    p->weights = v;
    if (t->dtype == DTYPE_I8 && all_equal(zero, 0))
        return true;
    int axis = output_axis(p->anchor);
    int64_t inner = 1, zeros = zero ? tensor_count(zero) : 0;
    for (int d = axis + 1; d < t->rank; d++)
        inner *= t->dims[d];
    if ((zero && zero->dtype != t->dtype) || (zeros > 1 && zeros != t->dims[axis]))
        return false;
    int16_t *x = subtract_zeros(t, zero, t->dims[axis], inner);
    bool is_made = x && make_weights(w, p, t, x);
    free(x);
    return is_made;
}

static int64_t product_width(const quantised_work *w, const graph_node *n)
{
    return quantised_dim(w, n->inputs[1], output_axis(n));
}

/* A constant, or one that DequantizeLinear makes of a constant, as floats. */
static const tensor *floats_of(quantised_work *w, graph_value_index v)
{
    const tensor *t = quantised_constant(w, v);
    if (t)
        return t->dtype == DTYPE_F32 ? t : NULL;
    const graph_node *n = quantised_producer(w, v);
    if (!n || n->op != GRAPH_OP_DEQUANTIZE_LINEAR || graph_attribute_int(n, "block_size", 0) != 0)
        return NULL;
    const tensor *x = quantised_constant(w, n->inputs[0]),
                 *scale = quantised_constant(w, n->inputs[1]);
    const tensor *zero = quantised_constant(w, graph_input_of(n, 2));
    if (!x || !scale || scale->dtype != DTYPE_F32 || quantised_type(w, v) != DTYPE_F32 ||
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

/* A DequantizeLinear'd i32 bias in units of x_scale * w_scale stays an integer: the exact sum. */
static const tensor *integer_bias(const quantised_work *w, const quantised_product *p,
                                  graph_value_index v)
{
    const graph_node *n = quantised_producer(w, v);
    const tensor *x =
        n && n->op == GRAPH_OP_DEQUANTIZE_LINEAR ? quantised_constant(w, n->inputs[0]) : NULL;
    const tensor *scale = x ? quantised_constant(w, n->inputs[1]) : NULL;
    if (!scale || x->dtype != DTYPE_I32 || scale->dtype != DTYPE_F32 || !p->w_scale_is ||
        !all_equal(quantised_constant(w, graph_input_of(n, 2)), 0))
        return NULL;
    int64_t count = tensor_count(x), scales = tensor_count(scale);
    int64_t weights = tensor_count(p->w_scale_is);
    for (int64_t i = 0; i < count; i++) {
        float unit = p->x_is.scale * ((const float *)p->w_scale_is->data)[weights == 1 ? 0 : i];
        float given = ((const float *)scale->data)[scales == 1 ? 0 : i];
        if (!(fabsf(given - unit) <= 1e-5f * fabsf(unit)))
            return NULL;
    }
    return x;
}

static bool take_bias(quantised_work *w, quantised_product *p, graph_value_index v)
{
    int64_t n = product_width(w, p->anchor);
    const tensor *t = p->is_quantised ? integer_bias(w, p, v) : NULL;
    t = t ? t : floats_of(w, v);
    if (!t || tensor_count(t) != n)
        return false;
    p->bias_made = t;
    return true;
}

/* The operands of DequantizeLinear(x), DequantizeLinear(weights). */
static bool take_quantised(quantised_work *w, quantised_product *p)
{
    const graph_node *n = p->anchor, *dequantise = quantised_producer(w, n->inputs[1]);
    if (!quantised_bytes_of(w, n->inputs[0], &p->x_is) || !dequantise ||
        dequantise->op != GRAPH_OP_DEQUANTIZE_LINEAR ||
        graph_attribute_int(dequantise, "block_size", 0) != 0)
        return false;
    const tensor *scale = quantised_constant(w, dequantise->inputs[1]);
    graph_value_index zero = graph_input_of(dequantise, 2);
    int rank = quantised_rank(w, n->inputs[1]);
    int64_t axis = graph_attribute_int(dequantise, "axis", 1);
    if (!scale || scale->dtype != DTYPE_F32 ||
        (zero != GRAPH_NO_VALUE && !quantised_constant(w, zero)) ||
        (tensor_count(scale) != 1 && axis + (axis < 0 ? rank : 0) != output_axis(n)))
        return false;
    p->w_scale_is = scale;
    p->x = p->x_is.bytes;
    p->is_quantised = true;
    return take_weights(w, p, dequantise->inputs[0], quantised_constant(w, zero));
}

static bool take_floats(quantised_work *w, quantised_product *p)
{
    const graph_node *n = p->anchor;
    if (quantised_type(w, n->inputs[0]) != DTYPE_F32 || quantised_constant(w, n->inputs[0]))
        return false;
    p->is_quantised = false;
    p->x = n->inputs[0];
    p->weights = n->inputs[1];
    p->weights_made = quantised_constant(w, n->inputs[1]) ? NULL : floats_of(w, n->inputs[1]);
    const tensor *t = quantised_constant(w, n->inputs[1]);
    return p->weights_made || (t && t->dtype == DTYPE_F32);
}

/* Shapes that penstock.Conv and penstock.Dense know. */
static bool has_known_form(const quantised_work *w, const graph_node *n)
{
    int x = quantised_rank(w, n->inputs[0]), b = quantised_rank(w, n->inputs[1]);
    if (quantised_count(w, n->outputs[0]) == 0)
        return false;
    if (n->op == GRAPH_OP_CONV)
        return x == 4 && quantised_count(w, n->inputs[0]) > 0;
    if (n->op == GRAPH_OP_MATMUL)
        return x >= 2 && b == 2 && quantised_dim(w, n->inputs[1], 0) > 0;
    return n->op == GRAPH_OP_GEMM && !graph_attribute_int(n, "transA", 0) &&
           graph_attribute_float(n, "alpha", 1) == 1 && graph_attribute_float(n, "beta", 1) == 1 &&
           quantised_dim(w, n->inputs[0], 1) > 0;
}

static const char *activation_of(const quantised_work *w, const graph_node *n)
{
    switch (n->op) {
    case GRAPH_OP_RELU:
        return "Relu";
    case GRAPH_OP_TANH:
        return "Tanh";
    case GRAPH_OP_SIGMOID:
        return "Sigmoid";
    case GRAPH_OP_GELU:
        return strcmp(graph_attribute_string(n, "approximate", "none"), "tanh") == 0 ? "GeluTanh"
                                                                                     : "Gelu";
    case GRAPH_OP_CLIP: {
        const tensor *low = quantised_constant(w, graph_input_of(n, 1));
        if (graph_input_of(n, 2) == GRAPH_NO_VALUE && low && low->dtype == DTYPE_F32 &&
            *(const float *)low->data == 0)
            return "Relu";
        return NULL;
    }
    default:
        return NULL;
    }
}

/* Bias of an Add behind a product: one number for each output channel, on the right axis. */
static bool lies_along_channels(const quantised_work *w, const quantised_product *p,
                                graph_value_index v)
{
    int64_t n = product_width(w, p->anchor);
    int rank = quantised_rank(w, v), axis = p->op == GRAPH_OP_FUSED_CONV ? rank - 3 : rank - 1;
    return rank <= quantised_rank(w, p->out) && axis >= 0 && quantised_count(w, v) == n &&
           quantised_dim(w, v, axis) == n;
}

static bool take_add(quantised_work *w, quantised_product *p, const graph_node *n)
{
    graph_value_index other = n->inputs[0] == p->out ? n->inputs[1] : n->inputs[0];
    bool has_bias = p->bias_made || p->bias != GRAPH_NO_VALUE;
    if (!has_bias && p->residual == GRAPH_NO_VALUE && lies_along_channels(w, p, other) &&
        take_bias(w, p, other))
        return true;
    int rank = quantised_rank(w, p->out);
    bool is_same = p->residual == GRAPH_NO_VALUE && !quantised_constant(w, other) &&
                   quantised_rank(w, other) == rank;
    for (int i = 0; is_same && i < rank; i++)
        is_same = quantised_dim(w, other, i) == quantised_dim(w, p->out, i);
    if (is_same)
        p->residual = other;
    return is_same;
}

/* Takes over the nodes behind p->out, as far as an epilogue goes. */
static int32_t take_epilogue(quantised_work *w, quantised_product *p, int32_t last)
{
    const graph *g = w->g;
    while (w->uses[p->out] == 1 && w->reader[p->out] >= 0) {
        int32_t at = w->reader[p->out];
        const graph_node *n = &g->nodes[at];
        if (w->roles[at].is_absorbed || w->roles[at].product || n->output_count != 1)
            break;
        bool is_taken = false;
        if (n->op == GRAPH_OP_ADD && !p->activation)
            is_taken = take_add(w, p, n);
        else if (n->inputs[0] == p->out && !p->activation && activation_of(w, n) &&
                 !(p->is_quantised && n->op == GRAPH_OP_GELU)) { /* coarser there, 1e-4 */
            p->activation = activation_of(w, n);
            is_taken = true;
        } else if (n->op == GRAPH_OP_QUANTIZE_LINEAR && n->inputs[0] == p->out && p->is_quantised &&
                   p->residual == GRAPH_NO_VALUE && quantised_parameters(w, n, &p->y_is) &&
                   (quantised_type(w, n->outputs[0]) == DTYPE_U8 || w->is_shifted[n->outputs[0]])) {
            is_taken = p->has_quantised_result = true;
        }
        if (!is_taken)
            break;
        w->roles[last].is_absorbed = true;
        last = at;
        p->out = n->outputs[0];
        if (p->has_quantised_result)
            break;
    }
    return last;
}

static quantised_product *new_product(quantised_work *w, const graph_node *n, graph_op op)
{
    quantised_product *p = arena_allocate_zeroed(&w->made->memory, 1, sizeof *p);
    if (p) {
        p->op = op;
        p->anchor = n;
        p->weights = p->bias = p->residual = p->x_scale = p->x_zero = p->w_scale = GRAPH_NO_VALUE;
        p->out = n->outputs[0];
    }
    return p;
}

static status set_product(quantised_work *w, quantised_product *p, int32_t at)
{
    w->roles[take_epilogue(w, p, at)].product = p;
    w->facts.fused_layer_count++;
    w->facts.quantised_layer_count += p->is_quantised;
    return STATUS_OK;
}

status quantised_match_product(quantised_work *w, int32_t at)
{
    const graph_node *n = &w->g->nodes[at];
    if (!has_known_form(w, n))
        return STATUS_OK;
    quantised_product *p =
        new_product(w, n, n->op == GRAPH_OP_CONV ? GRAPH_OP_FUSED_CONV : GRAPH_OP_FUSED_DENSE);
    if (!p)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to fuse \"%s\"", w->g->name);
    if (!take_quantised(w, p) && !take_floats(w, p))
        return STATUS_OK;
    p->is_transposed = p->op == GRAPH_OP_FUSED_DENSE && output_axis(n) == 0;
    graph_value_index bias = graph_input_of(n, 2);
    if (bias != GRAPH_NO_VALUE &&
        (quantised_rank(w, bias) == 0 ||
         quantised_dim(w, bias, quantised_rank(w, bias) - 1) != product_width(w, n) ||
         !take_bias(w, p, bias)))
        return STATUS_OK;
    return set_product(w, p, at);
}

/* The only reader of `v`, or -1. */
static int32_t only_reader(const quantised_work *w, graph_value_index v)
{
    return w->uses[v] == 1 ? w->reader[v] : -1;
}

/* Whether `scale` is one number, or one for each output channel, on the right axis. */
static bool is_scale_of(const quantised_work *w, const graph_node *n, graph_value_index scale)
{
    int64_t scales = quantised_count(w, scale), width = product_width(w, n);
    int rank = quantised_rank(w, scale);
    int axis = rank - (n->op == GRAPH_OP_CONV_INTEGER ? 3 : 1);
    return rank <= quantised_rank(w, n->outputs[0]) &&
           (scales == 1 ||
            (scales == width && axis >= 0 && quantised_dim(w, scale, axis) == width));
}

static bool has_dynamic_form(const quantised_work *w, const graph_node *n)
{
    int x = quantised_rank(w, n->inputs[0]), b = quantised_rank(w, n->inputs[1]);
    bool is_conv = n->op == GRAPH_OP_CONV_INTEGER;
    return quantised_type(w, n->inputs[0]) == DTYPE_U8 && quantised_count(w, n->outputs[0]) > 0 &&
           (is_conv ? x == 4 && quantised_count(w, n->inputs[0]) > 0
                    : x >= 2 && b == 2 && quantised_dim(w, n->inputs[1], 0) > 0);
}

/* MatMulInteger or ConvInteger(x, weights, x_zero) -> Cast to f32 -> Mul by a scale: what dynamic
 * quantisation makes. */
status quantised_match_dynamic(quantised_work *w, int32_t at)
{
    const graph *g = w->g;
    const graph_node *n = &g->nodes[at];
    int32_t cast_at = has_dynamic_form(w, n) ? only_reader(w, n->outputs[0]) : -1;
    if (cast_at < 0 || g->nodes[cast_at].op != GRAPH_OP_CAST ||
        quantised_type(w, g->nodes[cast_at].outputs[0]) != DTYPE_F32)
        return STATUS_OK;
    graph_value_index product = g->nodes[cast_at].outputs[0];
    int32_t last = only_reader(w, product);
    if (last < 0 || g->nodes[last].op != GRAPH_OP_MUL)
        return STATUS_OK;
    const graph_node *mul = &g->nodes[last];
    graph_value_index scale = mul->inputs[mul->inputs[0] == product];
    graph_value_index zero = graph_input_of(n, 2), b_zero = graph_input_of(n, 3);
    if (!is_scale_of(w, n, scale) || (zero != GRAPH_NO_VALUE && quantised_count(w, zero) != 1) ||
        (b_zero != GRAPH_NO_VALUE && !quantised_constant(w, b_zero)))
        return STATUS_OK;
    quantised_product *p = new_product(
        w, n, n->op == GRAPH_OP_CONV_INTEGER ? GRAPH_OP_FUSED_CONV : GRAPH_OP_FUSED_DENSE);
    if (!p)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to fuse \"%s\"", g->name);
    if (!take_weights(w, p, n->inputs[1], quantised_constant(w, b_zero)))
        return STATUS_OK;
    p->is_quantised = true;
    p->x = n->inputs[0];
    p->x_zero = zero;
    p->w_scale = scale;
    w->roles[at].is_absorbed = w->roles[cast_at].is_absorbed = true;
    p->out = mul->outputs[0];
    return set_product(w, p, last);
}

/* QLinearConv and QLinearMatMul of constants are the same thing in one node. */
status quantised_match_qlinear(quantised_work *w, int32_t at)
{
    const graph_node *n = &w->g->nodes[at];
    const tensor *c[8];
    for (int i = 1; i < 8; i++)
        c[i] = quantised_constant(w, n->inputs[i]);
    bool is_conv = n->op == GRAPH_OP_QLINEAR_CONV;
    int rank = quantised_rank(w, n->inputs[0]), b_rank = quantised_rank(w, n->inputs[3]);
    if (!c[1] || !c[2] || !c[3] || !c[4] || !c[5] || !c[6] || !c[7] ||
        (is_conv ? rank != 4 : rank < 2 || b_rank != 2) || tensor_count(c[1]) != 1 ||
        tensor_count(c[2]) != 1 || tensor_count(c[6]) != 1 || tensor_count(c[7]) != 1 ||
        c[1]->dtype != DTYPE_F32 || c[4]->dtype != DTYPE_F32 || c[6]->dtype != DTYPE_F32 ||
        quantised_type(w, n->inputs[0]) != DTYPE_U8 ||
        quantised_type(w, n->outputs[0]) != DTYPE_U8 || quantised_count(w, n->outputs[0]) == 0 ||
        quantised_count(w, n->inputs[0]) == 0)
        return STATUS_OK;
    quantised_product *p = new_product(w, n, is_conv ? GRAPH_OP_FUSED_CONV : GRAPH_OP_FUSED_DENSE);
    if (!p)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to fuse \"%s\"", w->g->name);
    int64_t width = quantised_dim(w, n->inputs[3], is_conv ? 0 : 1), scales = tensor_count(c[4]);
    if ((scales != 1 && scales != width) || !take_weights(w, p, n->inputs[3], c[5]))
        return STATUS_OK;
    p->is_quantised = p->has_quantised_result = true;
    p->x = n->inputs[0];
    p->w_scale_is = c[4];
    p->x_is =
        (quantised_tensor){p->x, *(const float *)c[1]->data, (int32_t)tensor_get_integer(c[2], 0)};
    p->y_is = (quantised_tensor){p->out, *(const float *)c[6]->data,
                                 (int32_t)tensor_get_integer(c[7], 0)};
    if (is_conv && graph_input_of(n, 8) != GRAPH_NO_VALUE) {
        p->bias_made = quantised_constant(w, n->inputs[8]);
        if (!p->bias_made)
            return STATUS_OK;
    }
    w->roles[at].product = p;
    w->facts.fused_layer_count++;
    w->facts.quantised_layer_count++;
    return STATUS_OK;
}
