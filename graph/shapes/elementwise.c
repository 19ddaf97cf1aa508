#include <string.h>

#include "graph/shapes/rules.h"

status infer_same(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    return infer_set_like(out, in[0]->dtype, in[0]);
}

status infer_to_bool(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    return infer_set_like(out, DTYPE_BOOL, in[0]);
}

static status broadcast_to_type(const tensor *const *in, int count, dtype type, tensor *out)
{
    tensor all = *in[0];
    for (int i = 1; i < count; i++) {
        int rank;
        int64_t dims[TENSOR_RANK_MAX];
        status s = graph_broadcast(&all, in[i], &rank, dims);
        if (s)
            return s;
        if ((s = infer_set(&all, type, rank, dims)))
            return s;
    }
    return infer_set_like(out, type, &all);
}

static status expect_one_type(const tensor *const *in, int count)
{
    for (int i = 1; i < count; i++) {
        status s = infer_expect_same_type(in[0], in[i]);
        if (s)
            return s;
    }
    return STATUS_OK;
}

status infer_broadcast(const graph_node *node, const tensor *const *in, tensor *out)
{
    status s = expect_one_type(in, node->input_count);
    return s ? s : broadcast_to_type(in, node->input_count, in[0]->dtype, out);
}

status infer_compare(const graph_node *node, const tensor *const *in, tensor *out)
{
    status s = expect_one_type(in, node->input_count);
    return s ? s : broadcast_to_type(in, node->input_count, DTYPE_BOOL, out);
}

status infer_bit_shift(const graph_node *node, const tensor *const *in, tensor *out)
{
    static const char *const directions[] = {"LEFT", "RIGHT", NULL};
    if (graph_find_attribute(node, "direction") == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "attribute direction is missing");
    status s = infer_expect_choice(node, "direction", directions);
    return s ? s : infer_broadcast(node, in, out);
}

status infer_pow(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    status s = infer_expect_type(in[1], 1, INFER_NUMBERS);
    return s ? s : broadcast_to_type(in, 2, in[0]->dtype, out);
}

status infer_prelu(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    status s = infer_expect_same_type(in[0], in[1]);
    if (s)
        return s;
    if (!infer_broadcasts_to(in[1], in[0]))
        return status_fail(STATUS_INVALID_ARGUMENT, "slope %s does not broadcast to %s",
                           infer_text(in[1]), infer_text(in[0]));
    return infer_set_like(out, in[0]->dtype, in[0]);
}

status infer_where(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    status s = infer_expect_same_type(in[1], in[2]);
    if (s)
        return s;
    return broadcast_to_type(in, 3, in[1]->dtype, out);
}

status infer_clip(const graph_node *node, const tensor *const *in, tensor *out)
{
    for (int i = 1; i <= 2; i++) {
        if (in[i] == NULL)
            continue;
        status s = infer_expect_same_type(in[0], in[i]);
        if (s)
            return s;
        if (tensor_count(in[i]) != 1)
            return status_fail(STATUS_INVALID_ARGUMENT, "bound %s is not a scalar",
                               infer_text(in[i]));
    }
    return infer_same(node, in, out);
}

status infer_gelu(const graph_node *node, const tensor *const *in, tensor *out)
{
    static const char *const kinds[] = {"none", "tanh", NULL};
    status s = infer_expect_choice(node, "approximate", kinds);
    return s ? s : infer_same(node, in, out);
}

status infer_cast(const graph_node *node, const tensor *const *in, tensor *out)
{
    int64_t to = graph_attribute_int(node, "to", 0);
    dtype type;
    if (to < 0 || to > 255 || !dtype_from_onnx((int)to, &type) || type == DTYPE_BYTES)
        return status_fail(STATUS_UNSUPPORTED, "to ONNX data type %lld", (long long)to);
    return infer_set_like(out, type, in[0]);
}

status infer_bit_cast(const graph_node *node, const tensor *const *in, tensor *out)
{
    status s = infer_cast(node, in, out);
    if (!s && dtype_bytes(out->dtype) != dtype_bytes(in[0]->dtype))
        s = status_fail(STATUS_INVALID_ARGUMENT, "%s to %s: their elements differ in size",
                        infer_text(in[0]), dtype_name(out->dtype));
    return s;
}

status infer_cast_like(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    status s = infer_expect_type(in[1], 1, INFER_NO_STRINGS);
    return s ? s : infer_set_like(out, in[1]->dtype, in[0]);
}

status infer_along_axis(const graph_node *node, const tensor *const *in, tensor *out)
{
    int axis;
    status s = infer_axis("axis", graph_attribute_int(node, "axis", -1), in[0]->rank, &axis);
    return s ? s : infer_same(node, in, out);
}

status infer_cum_sum(const graph_node *node, const tensor *const *in, tensor *out)
{
    status s = infer_expect_type(in[1], 1, INFER_INDICES);
    if (s)
        return s;
    if (in[1]->rank > 1 || tensor_count(in[1]) != 1)
        return status_fail(STATUS_INVALID_ARGUMENT, "axis %s is not a scalar", infer_text(in[1]));
    int axis;
    if (infer_is_known(in[1]) &&
        (s = infer_axis("axis", tensor_get_integer(in[1], 0), in[0]->rank, &axis)))
        return s;
    return infer_same(node, in, out);
}

status infer_trilu(const graph_node *node, const tensor *const *in, tensor *out)
{
    if (in[0]->rank < 2)
        return status_fail(STATUS_INVALID_ARGUMENT, "input %s has no matrices", infer_text(in[0]));
    if (in[1] != NULL && (in[1]->dtype != DTYPE_I64 || tensor_count(in[1]) != 1))
        return status_fail(STATUS_INVALID_ARGUMENT, "k is %s, not an i64 scalar",
                           infer_text(in[1]));
    return infer_same(node, in, out);
}
