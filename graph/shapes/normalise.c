#include <string.h>

#include "graph/shapes/rules.h"

/* Inputs first .. last are floats, one number for each channel of input 0. */
static status expect_channels(const tensor *const *in, int first, int last)
{
    const tensor *x = in[0];
    if (x->rank < 2)
        return status_fail(STATUS_INVALID_ARGUMENT, "input %s is not [N,C,...]", infer_text(x));
    for (int i = first; i <= last; i++) {
        status s = infer_expect_type(in[i], i, INFER_FLOATS);
        if (s)
            return s;
        if ((s = infer_expect_vector(in[i], i, x->dims[1])))
            return s;
    }
    return STATUS_OK;
}

status infer_batch_normalization(const graph_node *node, const tensor *const *in, tensor *out)
{
    status s = expect_channels(in, 1, 4);
    if (s)
        return s;
    if (graph_attribute_int(node, "training_mode", 0) != 0) {
        for (int i = 1; i <= 2; i++)
            if ((s = infer_set_like(&out[i], in[3]->dtype, in[3])))
                return s;
    } else {
        for (int i = 1; i < node->output_count; i++) {
            if (node->outputs[i] != GRAPH_NO_VALUE)
                return status_fail(STATUS_INVALID_ARGUMENT, "output %d exists only in training", i);
            out[i] = (tensor){.dtype = in[3]->dtype, .rank = 1};
        }
    }
    return infer_same(node, in, out);
}

status infer_instance_normalization(const graph_node *node, const tensor *const *in, tensor *out)
{
    if (in[0]->rank < 3)
        return status_fail(STATUS_INVALID_ARGUMENT, "input %s has no spatial dims",
                           infer_text(in[0]));
    status s = expect_channels(in, 1, 2);
    return s ? s : infer_same(node, in, out);
}

status infer_group_normalization(const graph_node *node, const tensor *const *in, tensor *out)
{
    status s = expect_channels(in, 1, 2);
    if (s)
        return s;
    int64_t groups = graph_attribute_int(node, "num_groups", 0);
    if (groups < 1 || in[0]->dims[1] % groups != 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "num_groups %lld does not divide %s",
                           (long long)groups, infer_text(in[0]));
    return infer_same(node, in, out);
}

status infer_layer_normalization(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0];
    int axis;
    status s = infer_axis("axis", graph_attribute_int(node, "axis", -1), x->rank, &axis);
    if (s)
        return s;
    tensor part = {.dtype = x->dtype, .rank = x->rank - axis};
    memcpy(part.dims, x->dims + axis, (size_t)part.rank * sizeof part.dims[0]);
    for (int i = 1; i <= 2; i++) {
        if (in[i] == NULL)
            continue;
        if ((s = infer_expect_type(in[i], i, INFER_FLOATS)))
            return s;
        if (!infer_broadcasts_to(in[i], &part))
            return status_fail(STATUS_INVALID_ARGUMENT, "input %d, %s, does not fit axis %d of %s",
                               i, infer_text(in[i]), axis, infer_text(x));
    }
    int64_t dims[TENSOR_RANK_MAX];
    for (int i = 0; i < x->rank; i++)
        dims[i] = i < axis ? x->dims[i] : 1;
    int64_t stash = graph_attribute_int(node, "stash_type", 1);
    dtype type;
    if (stash < 0 || stash > 255 || !dtype_from_onnx((int)stash, &type) || !dtype_is_float(type))
        return status_fail(STATUS_UNSUPPORTED, "stash_type %lld", (long long)stash);
    for (int i = 1; i <= 2; i++)
        if ((s = infer_set(&out[i], type, x->rank, dims)))
            return s;
    return infer_same(node, in, out);
}

status infer_lrn(const graph_node *node, const tensor *const *in, tensor *out)
{
    int64_t size = graph_attribute_int(node, "size", 0);
    if (size < 1 || in[0]->rank < 2)
        return status_fail(STATUS_INVALID_ARGUMENT, "size %lld over %s", (long long)size,
                           infer_text(in[0]));
    return infer_same(node, in, out);
}

status infer_mean_variance_normalization(const graph_node *node, const tensor *const *in,
                                         tensor *out)
{
    static const int64_t usual[] = {0, 2, 3};
    size_t count;
    const int64_t *axes = infer_ints(node, "axes", &count);
    if (axes == NULL) {
        axes = usual;
        count = 3;
    }
    for (size_t i = 0; i < count; i++) {
        int axis;
        status s = infer_axis("axes", axes[i], in[0]->rank, &axis);
        if (s)
            return s;
    }
    return infer_same(node, in, out);
}

status infer_lp_normalization(const graph_node *node, const tensor *const *in, tensor *out)
{
    int64_t p = graph_attribute_int(node, "p", 2);
    if (p != 1 && p != 2)
        return status_fail(STATUS_INVALID_ARGUMENT, "p %lld is neither 1 nor 2", (long long)p);
    return infer_along_axis(node, in, out);
}
