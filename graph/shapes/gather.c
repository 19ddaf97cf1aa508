#include <string.h>

#include "graph/shapes/rules.h"

status infer_gather(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0], *indices = in[1];
    status s = infer_expect_type(indices, 1, INFER_INDICES);
    if (s)
        return s;
    int axis;
    if ((s = infer_axis("axis", graph_attribute_int(node, "axis", 0), x->rank, &axis)))
        return s;
    int64_t dims[2 * TENSOR_RANK_MAX];
    int rank = 0;
    for (int i = 0; i < axis; i++)
        dims[rank++] = x->dims[i];
    for (int i = 0; i < indices->rank; i++)
        dims[rank++] = indices->dims[i];
    for (int i = axis + 1; i < x->rank; i++)
        dims[rank++] = x->dims[i];
    return infer_set(out, x->dtype, rank, dims);
}

/* Indices address `x` element by element: equal ranks, and no larger off the axis. */
static status check_element_indices(const tensor *x, const tensor *indices, int axis)
{
    status s = infer_expect_type(indices, 1, INFER_INDICES);
    if (s)
        return s;
    bool fits = indices->rank == x->rank;
    for (int i = 0; fits && i < x->rank; i++)
        fits = i == axis || indices->dims[i] <= x->dims[i];
    if (!fits)
        return status_fail(STATUS_INVALID_ARGUMENT, "indices %s do not fit %s", infer_text(indices),
                           infer_text(x));
    return STATUS_OK;
}

status infer_gather_elements(const graph_node *node, const tensor *const *in, tensor *out)
{
    int axis;
    status s = infer_axis("axis", graph_attribute_int(node, "axis", 0), in[0]->rank, &axis);
    if (s)
        return s;
    if ((s = check_element_indices(in[0], in[1], axis)))
        return s;
    return infer_set_like(out, in[0]->dtype, in[1]);
}

status infer_gather_nd(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0], *indices = in[1];
    int64_t batch_dims = graph_attribute_int(node, "batch_dims", 0);
    status s = infer_expect_type(indices, 1, INFER_TYPE(DTYPE_I64));
    if (s)
        return s;
    bool fits = x->rank >= 1 && indices->rank >= 1 && batch_dims >= 0 && batch_dims < x->rank &&
                batch_dims < indices->rank;
    for (int i = 0; fits && i < batch_dims; i++)
        fits = x->dims[i] == indices->dims[i];
    int64_t depth = fits ? indices->dims[indices->rank - 1] : 0;
    if (!fits || depth < 1 || depth > x->rank - batch_dims)
        return status_fail(STATUS_INVALID_ARGUMENT, "indices %s with batch_dims %lld do not fit %s",
                           infer_text(indices), (long long)batch_dims, infer_text(x));
    int64_t dims[2 * TENSOR_RANK_MAX];
    int rank = 0;
    for (int i = 0; i < indices->rank - 1; i++)
        dims[rank++] = indices->dims[i];
    for (int i = (int)(batch_dims + depth); i < x->rank; i++)
        dims[rank++] = x->dims[i];
    return infer_set(out, x->dtype, rank, dims);
}

static const char *const reductions[] = {"none", "add", "mul", "min", "max", NULL};

status infer_scatter_elements(const graph_node *node, const tensor *const *in, tensor *out)
{
    int axis;
    status s = infer_expect_choice(node, "reduction", reductions);
    if (s)
        return s;
    if ((s = infer_expect_same_type(in[0], in[2])))
        return s;
    if ((s = infer_axis("axis", graph_attribute_int(node, "axis", 0), in[0]->rank, &axis)))
        return s;
    if ((s = check_element_indices(in[0], in[1], axis)))
        return s;
    if (!tensor_same_shape(in[1], in[2]))
        return status_fail(STATUS_INVALID_ARGUMENT, "indices %s and updates %s differ",
                           infer_text(in[1]), infer_text(in[2]));
    return infer_set_like(out, in[0]->dtype, in[0]);
}

status infer_scatter_nd(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0], *indices = in[1], *updates = in[2];
    status s = infer_expect_choice(node, "reduction", reductions);
    if (s)
        return s;
    if ((s = infer_expect_type(indices, 1, INFER_TYPE(DTYPE_I64))))
        return s;
    if ((s = infer_expect_same_type(x, updates)))
        return s;
    int64_t depth = indices->rank >= 1 ? indices->dims[indices->rank - 1] : 0;
    bool fits = x->rank >= 1 && depth >= 1 && depth <= x->rank;
    int rank = 0;
    int64_t dims[2 * TENSOR_RANK_MAX];
    for (int i = 0; fits && i < indices->rank - 1; i++)
        dims[rank++] = indices->dims[i];
    for (int i = (int)depth; fits && i < x->rank; i++)
        dims[rank++] = x->dims[i];
    fits = fits && updates->rank == rank &&
           memcmp(updates->dims, dims, (size_t)rank * sizeof dims[0]) == 0;
    if (!fits)
        return status_fail(STATUS_INVALID_ARGUMENT, "indices %s and updates %s do not fit %s",
                           infer_text(indices), infer_text(updates), infer_text(x));
    return infer_set_like(out, x->dtype, x);
}
