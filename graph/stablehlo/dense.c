#include <assert.h>
#include <string.h>

#include "graph/stablehlo/operators.h"

/* Matrix multiplications and convolutions, in which a device spends its time. */

/* Rounds a dense operand to what the device multiplies; sums stay f32. */
static ssa operand(emitter *e, ssa x)
{
    return e->precision == STABLEHLO_FP32 || x.dtype != DTYPE_F32 ? x
                                                                  : hlo_convert(e, x, DTYPE_BF16);
}

/* x [..., K] f32 by a constant weight in s8. Each row of x has its own scale, max|x| / 127, so that
 * the result of a row does not depend on other rows of the batch: q = round(x / scale),
 * y = (q . w) * scale * weight_scale. */
static ssa dense_s8(emitter *e, ssa x, const tensor *weight, int weight_k_axis)
{
    bool last[TENSOR_RANK_MAX] = {false};
    last[x.rank - 1] = true;
    ssa largest = hlo_reduce_keep(e, "maximum", hlo_unary(e, "abs", x), 0, last);
    largest = hlo_scalar_binary(e, "maximum", largest, 1e-30);
    ssa scale = hlo_scalar_binary(e, "multiply", largest, 1.0 / 127);
    /* One division per row instead of one per element. */
    ssa inverse = hlo_binary(e, "divide", hlo_splat_like(e, &largest, 127), largest);
    int identity[TENSOR_RANK_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
    ssa scaled = hlo_binary(e, "multiply", x, hlo_broadcast(e, inverse, x.rank, x.dims, identity));
    ssa q = hlo_convert(e, hlo_unary(e, "round_nearest_even", scaled), DTYPE_I8);
    int channel_axis = 1 - weight_k_axis;
    ssa w = emit_weight(e, weight, STABLEHLO_TO_S8, channel_axis);
    ssa weight_scale = emit_weight(e, weight, STABLEHLO_TO_S8_SCALES, channel_axis);
    ssa sums = hlo_convert(e, hlo_dot(e, q, w, 0, x.rank - 1, weight_k_axis, DTYPE_I32), DTYPE_F32);
    ssa by_row =
        hlo_binary(e, "multiply", sums, hlo_broadcast(e, scale, sums.rank, sums.dims, identity));
    e->program->dense_int8_count++;
    return hlo_binary(e, "multiply", by_row,
                      hlo_broadcast_along(e, weight_scale, &sums, sums.rank - 1));
}

/* The same with scales known beforehand: q = round(x * factors - offsets), y = (q . (w / factors)
 * in s8) * weight_scale + shifts. What comes before rounds, what comes after multiplies and adds:
 * nothing is reduced, so that both become part of the products around. `*shift`: [N], what is still
 * to be added, or number 0. */
static ssa dense_s8_static(emitter *e, ssa x, const tensor *weight, int weight_k_axis,
                           const quantise_channels *channels, ssa *shift)
{
    ssa factors = emit_weight(e, channels->factors, STABLEHLO_AS_IS, 0);
    ssa scaled = hlo_binary(e, "multiply", x, hlo_broadcast_along(e, factors, &x, x.rank - 1));
    if (channels->offsets != NULL) {
        ssa offsets = emit_weight(e, channels->offsets, STABLEHLO_AS_IS, 0);
        offsets = hlo_broadcast_along(e, offsets, &x, x.rank - 1);
        scaled = hlo_binary(e, "subtract", scaled, offsets);
    }
    ssa rounded = hlo_unary(e, "round_nearest_even", scaled);
    ssa q = hlo_convert(e, hlo_clamp(e, rounded, -127, 127), DTYPE_I8);
    int axis = 1 - weight_k_axis;
    bool turns = weight_k_axis == 1 && e->options.are_weights_turned;
    stablehlo_transform to = turns ? STABLEHLO_TO_S8_TURNED : STABLEHLO_TO_S8;
    ssa w = emit_weight_for(e, weight, to, axis, channels);
    ssa scale = emit_weight_for(e, weight, STABLEHLO_TO_S8_SCALES, axis, channels);
    if (channels->offsets != NULL)
        *shift = emit_weight_for(e, weight, STABLEHLO_TO_S8_SHIFTS, axis, channels);
    ssa sums = hlo_dot(e, q, w, 0, x.rank - 1, turns ? 0 : weight_k_axis, DTYPE_I32);
    sums = hlo_convert(e, sums, DTYPE_F32);
    e->program->dense_int8_count++;
    e->program->dense_static_count++;
    return hlo_binary(e, "multiply", sums, hlo_broadcast_along(e, scale, &sums, sums.rank - 1));
}

/* How a product with static scales rounds what it reads, or NULL. */
static const quantise_channels *channels_of(const emitter *e, const graph_node *n)
{
    int64_t at = graph_attribute_int(n, GRAPH_LINEAR_NUMBER, -1);
    bool is_static = at >= 0 && at < e->options.channels_count;
    return is_static && e->options.channels[at].factors != NULL ? &e->options.channels[at] : NULL;
}

/* x [..., K] by a constant 2-D weight whose K lies on `weight_k_axis`, for node `n`. `*shift`: as
 * above. */
static ssa dense_layer(emitter *e, const graph_node *n, ssa x, const tensor *weight,
                       int weight_k_axis, ssa *shift)
{
    const quantise_channels *channels = channels_of(e, n);
    *shift = (ssa){0};
    e->program->dense_count++;
    if (channels != NULL && x.dtype == DTYPE_F32)
        return dense_s8_static(e, x, weight, weight_k_axis, channels, shift);
    if (e->precision == STABLEHLO_INT8 && x.dtype == DTYPE_F32)
        return dense_s8(e, x, weight, weight_k_axis);
    bool is_rounded = e->precision == STABLEHLO_BF16 && x.dtype == DTYPE_F32;
    stablehlo_transform transform = is_rounded ? STABLEHLO_TO_BF16 : STABLEHLO_AS_IS;
    if (is_rounded && weight_k_axis == 1 && e->options.are_weights_turned) {
        transform = STABLEHLO_TO_BF16_TURNED;
        weight_k_axis = 0;
    }
    return hlo_dot(e, operand(e, x), emit_weight(e, weight, transform, 1 - weight_k_axis), 0,
                   x.rank - 1, weight_k_axis, x.dtype);
}

/* numpy.matmul of computed operands of one element type. */
static ssa matmul(emitter *e, ssa a, ssa b, dtype result)
{
    bool is_a_vector = a.rank == 1, is_b_vector = b.rank == 1;
    if (is_a_vector)
        a = hlo_reshape(e, a, 2, (int64_t[]){1, a.dims[0]});
    if (is_b_vector)
        b = hlo_reshape(e, b, 2, (int64_t[]){b.dims[0], 1});
    ssa v;
    if (b.rank == 2) {
        v = hlo_dot(e, a, b, 0, a.rank - 1, 0, result);
    } else {
        int rank = a.rank > b.rank ? a.rank : b.rank, batch = rank - 2;
        int64_t a_dims[TENSOR_RANK_MAX], b_dims[TENSOR_RANK_MAX];
        for (int i = 0; i < batch; i++) {
            int64_t x = i < rank - a.rank ? 1 : a.dims[i - rank + a.rank];
            int64_t y = i < rank - b.rank ? 1 : b.dims[i - rank + b.rank];
            a_dims[i] = b_dims[i] = x == 1 ? y : x;
        }
        memcpy(a_dims + batch, a.dims + a.rank - 2, 2 * sizeof *a_dims);
        memcpy(b_dims + batch, b.dims + b.rank - 2, 2 * sizeof *b_dims);
        v = hlo_dot(e, hlo_broadcast_to(e, a, rank, a_dims), hlo_broadcast_to(e, b, rank, b_dims),
                    batch, rank - 1, rank - 2, result);
    }
    if (!is_a_vector && !is_b_vector)
        return v;
    int64_t dims[TENSOR_RANK_MAX];
    int kept = 0;
    for (int i = 0; i < v.rank; i++)
        if (!(is_a_vector && i == v.rank - 2) && !(is_b_vector && i == v.rank - 1))
            dims[kept++] = v.dims[i];
    return hlo_reshape(e, v, kept, dims);
}

static bool is_dense_weight(const tensor *w)
{
    return w != NULL && w->rank == 2 && w->dtype == DTYPE_F32 && tensor_count(w) > 0;
}

/* The weight that input 1 is, as it is stored; `*k_axis` as the node sees it, flipped where a node
 * transposes the weight first (Hugging Face stores them so). NULL: a computed operand. */
static const tensor *dense_weight(const emitter *e, const graph_node *n, int *k_axis)
{
    const tensor *stored = emit_transposed_constant(e, n, 1);
    if (stored != NULL)
        *k_axis = 1 - *k_axis;
    else
        stored = emit_constant(e, n, 1);
    return is_dense_weight(stored) ? stored : NULL;
}

static status emit_matmul(emitter *e, const graph_node *n)
{
    ssa a = emit_input(e, n, 0), v, shift;
    int k_axis = 0;
    const tensor *weight = dense_weight(e, n, &k_axis);
    if (weight != NULL && a.rank >= 2) {
        v = dense_layer(e, n, a, weight, k_axis, &shift);
        if (shift.number != 0)
            v = hlo_binary(e, "add", v, hlo_broadcast_along(e, shift, &v, v.rank - 1));
    } else {
        v = matmul(e, operand(e, a), operand(e, emit_input(e, n, 1)), a.dtype);
        if (e->options.are_scores_bf16)
            v = emit_rounded(e, v);
    }
    const ssa *divisor = &e->divisors[n->inputs[0]];
    if (divisor->number != 0)
        v = hlo_broadcast_binary(e, "divide", v, *divisor);
    emit_output(e, n, 0, v);
    return STATUS_OK;
}

/* The place of `letter` in the `count` letters of a term, or -1. */
static int place_of(const char *term, int count, char letter)
{
    for (int i = 0; i < count; i++)
        if (term[i] == letter)
            return i;
    return -1;
}

/* "ab,bc->ac" as one dot_general: each letter is in two of the three terms. */
static status emit_einsum(emitter *e, const graph_node *n)
{
    const char *terms[3] = {graph_attribute_string(n, "equation", "")};
    const char *comma = strchr(terms[0], ','), *arrow = strstr(terms[0], "->");
    if (n->input_count != 2 || comma == NULL || arrow == NULL || strpbrk(terms[0], ". ") != NULL)
        return status_fail(STATUS_UNSUPPORTED, "only two operands, a result and letters");
    terms[1] = comma + 1;
    terms[2] = arrow + 2;
    const int counts[] = {(int)(comma - terms[0]), (int)(arrow - terms[1]), (int)strlen(terms[2])};
    hlo_pairs batch = {0}, contract = {0};
    char made[TENSOR_RANK_MAX], rest[TENSOR_RANK_MAX];
    int made_count = 0, rest_count = 0, order[TENSOR_RANK_MAX];
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < counts[t]; i++) {
            char letter = terms[t][i];
            int other = place_of(terms[1 - t], counts[1 - t], letter);
            bool is_kept = place_of(terms[2], counts[2], letter) >= 0;
            if (place_of(terms[t], i, letter) >= 0 || (other < 0 && !is_kept))
                return status_fail(STATUS_UNSUPPORTED,
                                   "a letter that is in one term only, or twice");
            if (other < 0)
                rest[rest_count++] = letter;
            if (other < 0 || t == 1)
                continue;
            hlo_pairs *pairs = is_kept ? &batch : &contract;
            pairs->a[pairs->count] = i;
            pairs->b[pairs->count++] = other;
            if (is_kept)
                made[made_count++] = letter;
        }
    memcpy(made + made_count, rest, (size_t)rest_count);
    ssa a = emit_input(e, n, 0), b = emit_input(e, n, 1);
    const tensor *constant = emit_constant(e, n, 1);
    bool is_rounded = e->precision != STABLEHLO_FP32 && b.dtype == DTYPE_F32;
    if (constant != NULL && is_rounded)
        b = emit_weight(e, constant, STABLEHLO_TO_BF16, 0);
    ssa v = hlo_dot_general(e, operand(e, a), operand(e, b), &batch, &contract, a.dtype);
    bool is_ordered = true;
    for (int i = 0; i < counts[2]; i++) {
        order[i] = place_of(made, made_count + rest_count, terms[2][i]);
        is_ordered &= order[i] == i;
    }
    emit_output(e, n, 0, is_ordered ? v : hlo_transpose(e, v, order));
    return STATUS_OK;
}

/* alpha * v + beta * C of a Gemm; `shift` is added to v first, or to C where that is one vector for
 * all rows. */
static ssa finish_gemm(emitter *e, const graph_node *n, ssa v, ssa shift)
{
    ssa type = emit_output_type(e, n, 0);
    float alpha = graph_attribute_float(n, "alpha", 1), beta = graph_attribute_float(n, "beta", 1);
    bool has_c = emit_has_input(n, 2) && beta != 0;
    ssa c = has_c ? emit_input(e, n, 2) : (ssa){0};
    if (shift.number != 0 && has_c && alpha == 1 && beta == 1 && c.rank == 1 &&
        c.dims[0] == shift.dims[0])
        c = hlo_binary(e, "add", c, shift);
    else if (shift.number != 0)
        v = hlo_binary(e, "add", v, hlo_broadcast_along(e, shift, &v, v.rank - 1));
    if (alpha != 1)
        v = hlo_scalar_binary(e, "multiply", v, (double)alpha);
    if (has_c) {
        c = hlo_broadcast_to(e, c, type.rank, type.dims);
        v = hlo_binary(e, "add", v,
                       beta == 1 ? c : hlo_scalar_binary(e, "multiply", c, (double)beta));
    }
    return v;
}

static status emit_gemm(emitter *e, const graph_node *n)
{
    ssa a = emit_input(e, n, 0), v, shift = {0};
    const int b_k_axis = graph_attribute_int(n, "transB", 0) != 0;
    if (graph_attribute_int(n, "transA", 0))
        a = hlo_transpose(e, a, (int[]){1, 0});
    int k_axis = b_k_axis;
    const tensor *weight = dense_weight(e, n, &k_axis);
    if (weight != NULL)
        v = dense_layer(e, n, a, weight, k_axis, &shift);
    else
        v = hlo_dot(e, operand(e, a), operand(e, emit_input(e, n, 1)), 0, 1, b_k_axis, a.dtype);
    v = finish_gemm(e, n, v, shift);
    emit_output(e, n, 0, e->options.are_sums_bf16 ? emit_rounded(e, v) : v);
    return STATUS_OK;
}

/* x [N,C,spatial...] by w [M,C/group,kernel...], with the attributes of `n`. */
static ssa convolution(emitter *e, const graph_node *n, ssa x, ssa w, dtype result)
{
    int spatial = x.rank - 2;
    hlo_window window = {.strides = {0}};
    ssa type = emit_output_type(e, n, 0);
    type.dtype = result;
    emit_ints(n, "strides", spatial, 1, window.strides);
    emit_ints(n, "dilations", spatial, 1, window.dilations);
    emit_window_pads(n, spatial, x.dims + 2, type.dims + 2, w.dims + 2, window.strides,
                     window.dilations, window.low, window.high);
    return hlo_convolution(e, x, w, &window, graph_attribute_int(n, "group", 1), type);
}

static status emit_conv(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0);
    const tensor *weight = emit_constant(e, n, 1);
    bool is_rounded = e->precision != STABLEHLO_FP32 && x.dtype == DTYPE_F32;
    ssa w = weight != NULL && is_rounded ? emit_weight(e, weight, STABLEHLO_TO_BF16, 0)
                                         : operand(e, emit_input(e, n, 1));
    ssa v = convolution(e, n, operand(e, x), w, x.dtype);
    if (emit_has_input(n, 2))
        v = hlo_binary(e, "add", v, hlo_broadcast_along(e, emit_input(e, n, 2), &v, 1));
    emit_output(e, n, 0, v);
    return STATUS_OK;
}

/* An int8 or uint8 operand as s32, less its zero point: integer sums are exact. */
static ssa minus_zero_point(emitter *e, const graph_node *n, int operand_index, int zero_index,
                            int axis)
{
    ssa x = hlo_convert(e, emit_input(e, n, operand_index), DTYPE_I32);
    if (!emit_has_input(n, zero_index))
        return x;
    ssa zero = hlo_convert(e, emit_input(e, n, zero_index), DTYPE_I32);
    return hlo_binary(e, "subtract", x, hlo_broadcast_along(e, zero, &x, axis));
}

static status emit_matmul_integer(emitter *e, const graph_node *n)
{
    ssa a = minus_zero_point(e, n, 0, 2, emit_input(e, n, 0).rank - 2);
    ssa b = minus_zero_point(e, n, 1, 3, emit_input(e, n, 1).rank - 1);
    emit_output(e, n, 0, matmul(e, a, b, DTYPE_I32));
    return STATUS_OK;
}

static status emit_conv_integer(emitter *e, const graph_node *n)
{
    ssa x = minus_zero_point(e, n, 0, 2, 0), w = minus_zero_point(e, n, 1, 3, 0);
    emit_output(e, n, 0, convolution(e, n, x, w, DTYPE_I32));
    return STATUS_OK;
}

emit_fn emit_find_dense(graph_op op)
{
    switch (op) {
    case GRAPH_OP_MATMUL:
        return emit_matmul;
    case GRAPH_OP_GEMM:
        return emit_gemm;
    case GRAPH_OP_EINSUM:
        return emit_einsum;
    case GRAPH_OP_CONV:
        return emit_conv;
    case GRAPH_OP_MATMUL_INTEGER:
        return emit_matmul_integer;
    case GRAPH_OP_CONV_INTEGER:
        return emit_conv_integer;
    default:
        return NULL;
    }
}
