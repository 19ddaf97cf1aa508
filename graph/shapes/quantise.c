#include "graph/shapes/rules.h"

#define QUANTISED_TYPES (INFER_8BIT_INTEGERS | INFER_TYPE(DTYPE_U16) | INFER_TYPE(DTYPE_I16))

/* A scale is one number, one for each index of the axis, or (block_size > 0) one for each block
 * along the axis (QuantizeLinear-21). The zero point has the scale's shape. */
static status check_scale(const graph_node *node, const tensor *x, const tensor *scale,
                          const tensor *zero)
{
    if (zero != NULL && !tensor_same_shape(scale, zero) &&
        (tensor_count(scale) != 1 || tensor_count(zero) != 1))
        return status_fail(STATUS_INVALID_ARGUMENT, "zero point %s and scale %s differ",
                           infer_text(zero), infer_text(scale));
    int64_t block = graph_attribute_int(node, "block_size", 0);
    if (block < 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "block_size %lld", (long long)block);
    if (block == 0 && tensor_count(scale) == 1 && scale->rank <= 1)
        return STATUS_OK;
    int axis;
    status s = infer_axis("axis", graph_attribute_int(node, "axis", 1), x->rank, &axis);
    if (s)
        return s;
    if (block == 0)
        return infer_expect_vector(scale, 1, x->dims[axis]);
    bool fits = scale->rank == x->rank;
    for (int i = 0; fits && i < x->rank; i++) {
        int64_t n = x->dims[i];
        fits = scale->dims[i] == (i == axis ? n / block + (n % block != 0) : n);
    }
    if (fits)
        return STATUS_OK;
    return status_fail(STATUS_INVALID_ARGUMENT, "scale %s with block_size %lld does not fit %s",
                       infer_text(scale), (long long)block, infer_text(x));
}

status infer_quantize_linear(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0], *scale = in[1], *zero = in[2];
    status s = infer_expect_type(scale, 1, INFER_FLOATS);
    if (s)
        return s;
    dtype type = zero != NULL ? zero->dtype : DTYPE_U8;
    int64_t wanted = graph_attribute_int(node, "output_dtype", 0);
    if (wanted != 0) {
        dtype named;
        if (wanted < 0 || wanted > 255 || !dtype_from_onnx((int)wanted, &named))
            return status_fail(STATUS_UNSUPPORTED,
                               "output type: ONNX data type %lld is not supported",
                               (long long)wanted);
        if (zero != NULL && named != zero->dtype)
            return status_fail(STATUS_INVALID_ARGUMENT, "output_dtype and the zero point differ");
        type = named;
    }
    if (!(QUANTISED_TYPES & INFER_TYPE(type)))
        return status_fail(STATUS_UNSUPPORTED, "output type %s is not supported", dtype_name(type));
    if ((s = check_scale(node, x, scale, zero)))
        return s;
    return infer_set_like(out, type, x);
}

status infer_dequantize_linear(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0], *scale = in[1], *zero = in[2];
    status s = infer_expect_type(x, 0, QUANTISED_TYPES | INFER_TYPE(DTYPE_I32));
    if (s)
        return s;
    if ((s = infer_expect_type(scale, 1, INFER_FLOATS)))
        return s;
    if (zero != NULL && (s = infer_expect_same_type(x, zero)))
        return s;
    if ((s = check_scale(node, x, scale, zero)))
        return s;
    dtype type = scale->dtype;
    int64_t wanted = graph_attribute_int(node, "output_dtype", 0); /* since opset 23 */
    if (wanted != 0 && (wanted < 0 || wanted > 255 || !dtype_from_onnx((int)wanted, &type) ||
                        !dtype_is_float(type)))
        return status_fail(STATUS_UNSUPPORTED, "output type: ONNX data type %lld is not supported",
                           (long long)wanted);
    return infer_set_like(out, type, x);
}

status infer_dynamic_quantize_linear(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    status s = infer_set(&out[1], DTYPE_F32, 0, NULL);
    if (s)
        return s;
    if ((s = infer_set(&out[2], DTYPE_U8, 0, NULL)))
        return s;
    return infer_set_like(&out[0], DTYPE_U8, in[0]);
}
