#include <assert.h>
#include <string.h>

#include "graph/stablehlo/operators.h"

/* QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear as in ONNX: round half to even, saturate.
 */

static ssa along_axis(emitter *e, const graph_node *n, int i, const ssa *like, dtype type)
{
    return hlo_broadcast_along(e, hlo_convert(e, emit_input(e, n, i), type), like,
                               emit_axis(n, "axis", 1, like->rank));
}

static status reject_blocks(const graph_node *n)
{
    if (graph_attribute_int(n, "block_size", 0) != 0)
        return status_fail(STATUS_UNSUPPORTED, "blocked quantisation is not supported");
    return STATUS_OK;
}

static ssa saturate(emitter *e, ssa rounded, dtype type)
{
    double low = (double)dtype_integer_min(type), high = (double)dtype_integer_max(type);
    return hlo_convert(e, hlo_clamp(e, rounded, low, high), type);
}

static status emit_quantize(emitter *e, const graph_node *n)
{
    status s = reject_blocks(n);
    if (s)
        return s;
    ssa x = emit_input(e, n, 0), type = emit_output_type(e, n, 0);
    if (!dtype_is_integer(type.dtype) || dtype_bytes(type.dtype) > 2)
        return status_fail(STATUS_UNSUPPORTED, "only 8- and 16-bit integers are supported");
    ssa wide = hlo_convert(e, x, DTYPE_F32);
    ssa q = hlo_binary(e, "divide", wide, along_axis(e, n, 1, &wide, DTYPE_F32));
    q = hlo_unary(e, "round_nearest_even", q);
    if (emit_has_input(n, 2))
        q = hlo_binary(e, "add", q, along_axis(e, n, 2, &q, DTYPE_F32));
    emit_output(e, n, 0, saturate(e, q, type.dtype));
    return STATUS_OK;
}

static status emit_dequantize(emitter *e, const graph_node *n)
{
    status s = reject_blocks(n);
    if (s)
        return s;
    ssa x = hlo_convert(e, emit_input(e, n, 0), DTYPE_I32), type = emit_output_type(e, n, 0);
    if (emit_has_input(n, 2))
        x = hlo_binary(e, "subtract", x, along_axis(e, n, 2, &x, DTYPE_I32));
    ssa wide = hlo_convert(e, x, DTYPE_F32);
    wide = hlo_binary(e, "multiply", wide, along_axis(e, n, 1, &wide, DTYPE_F32));
    emit_output(e, n, 0, hlo_convert(e, wide, type.dtype));
    return STATUS_OK;
}

/* scale = (max(x,0) - min(x,0)) / 255, zero = round(-min / scale), y = round(x / scale) + zero
 * (onnx DynamicQuantizeLinear). */
static status emit_dynamic_quantize(emitter *e, const graph_node *n)
{
    ssa x = emit_input(e, n, 0);
    bool all[TENSOR_RANK_MAX];
    memset(all, true, sizeof all);
    if (x.rank == 0)
        return status_fail(STATUS_UNSUPPORTED, "a scalar input is not supported");
    ssa high = hlo_reduce(e, "maximum", x, 0, all), low = hlo_reduce(e, "minimum", x, 0, all);
    ssa scale = hlo_scalar_binary(e, "divide", hlo_binary(e, "subtract", high, low), 255);
    ssa is_zero = hlo_compare(e, "EQ", scale, hlo_splat_like(e, &scale, 0));
    ssa divisor = hlo_select(e, is_zero, hlo_splat_like(e, &scale, 1), scale);
    ssa zero = hlo_unary(e, "negate", hlo_binary(e, "divide", low, divisor));
    zero = hlo_unary(e, "round_nearest_even", hlo_clamp(e, zero, 0, 255));
    ssa q = hlo_binary(e, "divide", x, hlo_broadcast_to(e, divisor, x.rank, x.dims));
    q = hlo_unary(e, "round_nearest_even", q);
    q = hlo_binary(e, "add", q, hlo_broadcast_to(e, zero, x.rank, x.dims));
    emit_output(e, n, 0, saturate(e, q, DTYPE_U8));
    emit_output(e, n, 1, scale);
    emit_output(e, n, 2, hlo_convert(e, zero, DTYPE_U8));
    return STATUS_OK;
}

emit_fn emit_find_quantise(graph_op op)
{
    switch (op) {
    case GRAPH_OP_QUANTIZE_LINEAR:
        return emit_quantize;
    case GRAPH_OP_DEQUANTIZE_LINEAR:
        return emit_dequantize;
    case GRAPH_OP_DYNAMIC_QUANTIZE_LINEAR:
        return emit_dynamic_quantize;
    default:
        return NULL;
    }
}
