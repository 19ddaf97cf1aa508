#include "graph/shapes/rules.h"

/* `reduced[i]`: dim i becomes 1, or is removed. */
static status set_reduced(const tensor *x, const bool *reduced, bool keep, dtype type, tensor *out)
{
    int64_t dims[TENSOR_RANK_MAX];
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        if (!reduced[i])
            dims[rank++] = x->dims[i];
        else if (keep)
            dims[rank++] = 1;
    }
    return infer_set(out, type, rank, dims);
}

status infer_reduce(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0];
    bool reduced[TENSOR_RANK_MAX] = {false};
    int64_t axes[TENSOR_RANK_MAX];
    int count = 0;
    if (in[1] != NULL) {
        status s = infer_known_ints(in, 1, TENSOR_RANK_MAX, axes, &count);
        if (s)
            return s;
    }
    for (int i = 0; i < count; i++) {
        int axis;
        status s = infer_axis("axis", axes[i], x->rank, &axis);
        if (s)
            return s;
        if (reduced[axis])
            return status_fail(STATUS_INVALID_ARGUMENT, "axis %d is given twice", axis);
        reduced[axis] = true;
    }
    if (count == 0 && graph_attribute_int(node, "noop_with_empty_axes", 0) == 0)
        for (int i = 0; i < x->rank; i++)
            reduced[i] = true;
    return set_reduced(x, reduced, graph_attribute_int(node, "keepdims", 1) != 0, x->dtype, out);
}

status infer_arg_reduce(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0];
    int axis;
    status s = infer_axis("axis", graph_attribute_int(node, "axis", 0), x->rank, &axis);
    if (s)
        return s;
    if (x->dims[axis] == 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "axis %d of %s is empty", axis, infer_text(x));
    bool reduced[TENSOR_RANK_MAX] = {false};
    reduced[axis] = true;
    return set_reduced(x, reduced, graph_attribute_int(node, "keepdims", 1) != 0, DTYPE_I64, out);
}
