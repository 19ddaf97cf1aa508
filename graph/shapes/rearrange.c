#include <string.h>

#include "graph/shapes/rules.h"

status infer_expand(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    tensor target = {.dtype = in[0]->dtype};
    int64_t dims[TENSOR_RANK_MAX];
    int rank;
    status s = infer_known_ints(in, 1, TENSOR_RANK_MAX, dims, &rank);
    if (s)
        return s;
    if ((s = infer_set(&target, in[0]->dtype, rank, dims)))
        return s;
    if ((s = graph_broadcast(in[0], &target, &rank, dims)))
        return s;
    return infer_set(out, in[0]->dtype, rank, dims);
}

status infer_tile(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    const tensor *x = in[0];
    int64_t repeats[TENSOR_RANK_MAX], dims[TENSOR_RANK_MAX];
    int count;
    status s = infer_known_ints(in, 1, TENSOR_RANK_MAX, repeats, &count);
    if (s)
        return s;
    if (count != x->rank)
        return status_fail(STATUS_INVALID_ARGUMENT, "%d repeats for %s", count, infer_text(x));
    for (int i = 0; i < count; i++)
        if (repeats[i] < 0 || __builtin_mul_overflow(x->dims[i], repeats[i], &dims[i]))
            return status_fail(STATUS_INVALID_ARGUMENT, "%lld repeats of axis %d of %s",
                               (long long)repeats[i], i, infer_text(x));
    return infer_set(out, x->dtype, count, dims);
}

status infer_concat(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0];
    if (graph_find_attribute(node, "axis") == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "attribute axis is missing");
    int axis;
    status s = infer_axis("axis", graph_attribute_int(node, "axis", 0), x->rank, &axis);
    if (s)
        return s;
    int64_t dims[TENSOR_RANK_MAX];
    memcpy(dims, x->dims, sizeof dims);
    for (int k = 1; k < node->input_count; k++) {
        const tensor *y = in[k];
        if ((s = infer_expect_same_type(x, y)))
            return s;
        bool fits = y->rank == x->rank;
        for (int i = 0; fits && i < x->rank; i++)
            fits = i == axis || y->dims[i] == x->dims[i];
        if (!fits || __builtin_add_overflow(dims[axis], y->dims[axis], &dims[axis]))
            return status_fail(STATUS_INVALID_ARGUMENT, "%s and %s do not join at axis %d",
                               infer_text(x), infer_text(y), axis);
    }
    return infer_set(out, x->dtype, x->rank, dims);
}

static status set_part(const tensor *x, int axis, int64_t size, tensor *out)
{
    int64_t dims[TENSOR_RANK_MAX];
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = size;
    return infer_set(out, x->dtype, x->rank, dims);
}

static status split_by_sizes(const graph_node *node, const tensor *const *in, int axis, tensor *out)
{
    const tensor *x = in[0], *sizes = in[1];
    status s = infer_expect_type(sizes, 1, INFER_TYPE(DTYPE_I64));
    if (s)
        return s;
    if ((s = infer_expect_vector(sizes, 1, node->output_count)))
        return s;
    if (!infer_is_known(sizes))
        return infer_unknown(1);
    int64_t left = x->dims[axis];
    for (int k = 0; k < node->output_count; k++) {
        int64_t size = tensor_get_integer(sizes, k);
        if (size < 0 || size > left)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "part %d of %lld does not fit axis %d of %s", k, (long long)size,
                               axis, infer_text(x));
        left -= size;
        if ((s = set_part(x, axis, size, &out[k])))
            return s;
    }
    if (left != 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "the parts leave %lld of axis %d of %s",
                           (long long)left, axis, infer_text(x));
    return STATUS_OK;
}

status infer_split(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0];
    int axis;
    status s = infer_axis("axis", graph_attribute_int(node, "axis", 0), x->rank, &axis);
    if (s)
        return s;
    if (in[1] != NULL)
        return split_by_sizes(node, in, axis, out);
    int64_t parts = graph_attribute_int(node, "num_outputs", node->output_count);
    if (parts < 1 || parts != node->output_count)
        return status_fail(STATUS_INVALID_ARGUMENT, "num_outputs is %lld, the node has %d",
                           (long long)parts, node->output_count);
    int64_t size = (x->dims[axis] + parts - 1) / parts, left = x->dims[axis];
    for (int k = 0; k < node->output_count; k++) {
        int64_t taken = size < left ? size : left;
        left -= taken;
        if ((s = set_part(x, axis, taken, &out[k])))
            return s;
    }
    return STATUS_OK;
}

/* The number of indices in start:end:step along a dim (numpy's rules, onnx Slice-13). */
static int64_t slice_length(int64_t dim, int64_t start, int64_t end, int64_t step)
{
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
    if (start < 0)
        start += dim;
    if (end < 0)
        end = end < -dim ? low : end + dim;
    start = start < (step > 0 ? 0 : low + 1) ? (step > 0 ? 0 : low) : start > high ? high : start;
    end = end < low ? low : end > dim ? dim : end;
    if (step > 0)
        return end > start ? (end - start - 1) / step + 1 : 0;
    uint64_t stride = 0 - (uint64_t)step; /* INT64_MIN cannot be negated */
    return start > end ? (int64_t)((uint64_t)(start - end - 1) / stride) + 1 : 0;
}

status infer_slice(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    const tensor *x = in[0];
    int64_t starts[TENSOR_RANK_MAX], ends[TENSOR_RANK_MAX], axes[TENSOR_RANK_MAX],
        steps[TENSOR_RANK_MAX];
    int count, end_count, axis_count, step_count;
    status s = infer_known_ints(in, 1, x->rank, starts, &count);
    if (s)
        return s;
    if ((s = infer_known_ints(in, 2, x->rank, ends, &end_count)))
        return s;
    axis_count = step_count = count;
    for (int i = 0; i < count; i++) {
        axes[i] = i;
        steps[i] = 1;
    }
    if (in[3] != NULL && (s = infer_known_ints(in, 3, x->rank, axes, &axis_count)))
        return s;
    if (in[4] != NULL && (s = infer_known_ints(in, 4, x->rank, steps, &step_count)))
        return s;
    if (end_count != count || axis_count != count || step_count != count)
        return status_fail(STATUS_INVALID_ARGUMENT, "%d starts, %d ends, %d axes, %d steps", count,
                           end_count, axis_count, step_count);
    int64_t dims[TENSOR_RANK_MAX];
    memcpy(dims, x->dims, sizeof dims);
    bool used[TENSOR_RANK_MAX] = {false};
    for (int i = 0; i < count; i++) {
        int axis;
        if ((s = infer_axis("axis", axes[i], x->rank, &axis)))
            return s;
        if (steps[i] == 0 || used[axis])
            return status_fail(STATUS_INVALID_ARGUMENT, "step 0 or axis %d given twice", axis);
        used[axis] = true;
        dims[axis] = slice_length(x->dims[axis], starts[i], ends[i], steps[i]);
    }
    return infer_set(out, x->dtype, x->rank, dims);
}

static status pad_axis(const char *mode, const tensor *x, int axis, int64_t before, int64_t after,
                       int64_t *dim)
{
    int64_t n = x->dims[axis];
    if (__builtin_add_overflow(n, before, dim) || __builtin_add_overflow(*dim, after, dim) ||
        *dim < 0 || before < -n || after < -n)
        return status_fail(STATUS_INVALID_ARGUMENT, "pads %lld and %lld at axis %d of %s",
                           (long long)before, (long long)after, axis, infer_text(x));
    int64_t most = before > after ? before : after;
    bool is_reflect = strcmp(mode, "reflect") == 0;
    if (most > 0 && strcmp(mode, "constant") != 0 && (n == 0 || (is_reflect && most >= n)))
        return status_fail(STATUS_INVALID_ARGUMENT, "%s by %lld at axis %d of %s", mode,
                           (long long)most, axis, infer_text(x));
    return STATUS_OK;
}

status infer_pad(const graph_node *node, const tensor *const *in, tensor *out)
{
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap", NULL};
    const tensor *x = in[0];
    int64_t pads[2 * TENSOR_RANK_MAX], axes[TENSOR_RANK_MAX], dims[TENSOR_RANK_MAX];
    int pad_count, axis_count = x->rank;
    status s = infer_expect_choice(node, "mode", modes);
    if (s)
        return s;
    if ((s = infer_known_ints(in, 1, 2 * TENSOR_RANK_MAX, pads, &pad_count)))
        return s;
    for (int i = 0; i < x->rank; i++)
        axes[i] = i;
    if (in[3] != NULL && (s = infer_known_ints(in, 3, TENSOR_RANK_MAX, axes, &axis_count)))
        return s;
    if (pad_count != 2 * axis_count)
        return status_fail(STATUS_INVALID_ARGUMENT, "%d pads for %d axes", pad_count, axis_count);
    if (in[2] != NULL && (in[2]->dtype != x->dtype || tensor_count(in[2]) != 1))
        return status_fail(STATUS_INVALID_ARGUMENT, "constant_value %s for %s", infer_text(in[2]),
                           infer_text(x));
    memcpy(dims, x->dims, sizeof dims);
    bool used[TENSOR_RANK_MAX] = {false};
    for (int i = 0; i < axis_count; i++) {
        int axis;
        if ((s = infer_axis("axis", axes[i], x->rank, &axis)))
            return s;
        if (used[axis])
            return status_fail(STATUS_INVALID_ARGUMENT, "axis %d is given twice", axis);
        used[axis] = true;
        if ((s = pad_axis(graph_attribute_string(node, "mode", "constant"), x, axis, pads[i],
                          pads[i + axis_count], &dims[axis])))
            return s;
    }
    return infer_set(out, x->dtype, x->rank, dims);
}
