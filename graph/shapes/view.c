#include <string.h>

#include "graph/shapes/rules.h"

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

status infer_shape(const graph_node *node, const tensor *const *in, tensor *out)
{
    int64_t rank = in[0]->rank;
    int64_t start = graph_attribute_int(node, "start", 0),
            end = graph_attribute_int(node, "end", rank);
    start = clamp(start < 0 ? start + rank : start, 0, rank);
    end = clamp(end < 0 ? end + rank : end, 0, rank);
    int64_t n = end > start ? end - start : 0;
    return infer_set(out, DTYPE_I64, 1, &n);
}

status infer_size(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    (void)in;
    return infer_set(out, DTYPE_I64, 0, NULL);
}

static status does_not_fit(const tensor *x, int rank, const int64_t *dims)
{
    char text[TENSOR_SHAPE_TEXT_BYTES];
    return status_fail(STATUS_INVALID_ARGUMENT, "%s cannot be viewed as %s", infer_text(x),
                       tensor_shape_text(text, rank, dims));
}

status infer_reshape(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0];
    int64_t wanted[TENSOR_RANK_MAX], dims[TENSOR_RANK_MAX], product = 1;
    int rank, inferred = -1;
    status s = infer_known_ints(in, 1, TENSOR_RANK_MAX, wanted, &rank);
    if (s)
        return s;
    bool allow_zero = graph_attribute_int(node, "allowzero", 0) != 0;
    for (int i = 0; i < rank; i++) {
        dims[i] = wanted[i];
        if (wanted[i] == 0 && !allow_zero) {
            if (i >= x->rank)
                return does_not_fit(x, rank, wanted);
            dims[i] = x->dims[i];
        }
        if (wanted[i] == -1) {
            if (inferred != -1)
                return does_not_fit(x, rank, wanted);
            inferred = i;
        } else if (dims[i] < 0 || __builtin_mul_overflow(product, dims[i], &product)) {
            return does_not_fit(x, rank, wanted);
        }
    }
    int64_t count = tensor_count(x);
    if (inferred != -1) {
        if (product == 0 || count % product != 0)
            return does_not_fit(x, rank, wanted);
        dims[inferred] = count / product;
    } else if (product != count) {
        return does_not_fit(x, rank, wanted);
    }
    return infer_set(out, x->dtype, rank, dims);
}

status infer_flatten(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0];
    int64_t axis = graph_attribute_int(node, "axis", 1);
    if (axis < -x->rank || axis > x->rank)
        return status_fail(STATUS_INVALID_ARGUMENT, "axis %lld is out of range for %s",
                           (long long)axis, infer_text(x));
    if (axis < 0)
        axis += x->rank;
    int64_t dims[2] = {1, 1};
    for (int i = 0; i < x->rank; i++)
        dims[i >= axis] *= x->dims[i];
    return infer_set(out, x->dtype, 2, dims);
}

/* Marks in `marked` the axes that input 1 lists, for a tensor of that rank. */
static status mark_axes(const tensor *const *in, int rank, bool *marked, int *count)
{
    int64_t axes[TENSOR_RANK_MAX];
    status s = infer_known_ints(in, 1, TENSOR_RANK_MAX, axes, count);
    if (s)
        return s;
    for (int i = 0; i < *count; i++) {
        int axis;
        if ((s = infer_axis("axis", axes[i], rank, &axis)))
            return s;
        if (marked[axis])
            return status_fail(STATUS_INVALID_ARGUMENT, "axis %d is given twice", axis);
        marked[axis] = true;
    }
    return STATUS_OK;
}

status infer_squeeze(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    const tensor *x = in[0];
    bool is_removed[TENSOR_RANK_MAX] = {false};
    int count = 0;
    if (in[1] != NULL) {
        status s = mark_axes(in, x->rank, is_removed, &count);
        if (s)
            return s;
    } else {
        for (int i = 0; i < x->rank; i++)
            is_removed[i] = x->dims[i] == 1;
    }
    int64_t dims[TENSOR_RANK_MAX];
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        if (!is_removed[i])
            dims[rank++] = x->dims[i];
        else if (x->dims[i] != 1)
            return status_fail(STATUS_INVALID_ARGUMENT, "axis %d of %s is not 1", i, infer_text(x));
    }
    return infer_set(out, x->dtype, rank, dims);
}

status infer_unsqueeze(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    const tensor *x = in[0];
    int64_t axes[TENSOR_RANK_MAX];
    int count;
    status s = infer_known_ints(in, 1, TENSOR_RANK_MAX, axes, &count);
    if (s)
        return s;
    int rank = x->rank + count;
    if (rank > TENSOR_RANK_MAX)
        return status_fail(STATUS_UNSUPPORTED, "to rank %d; up to %d is supported", rank,
                           TENSOR_RANK_MAX);
    bool fresh[TENSOR_RANK_MAX] = {false};
    if ((s = mark_axes(in, rank, fresh, &count)))
        return s;
    int64_t dims[TENSOR_RANK_MAX];
    for (int i = 0, from = 0; i < rank; i++)
        dims[i] = fresh[i] ? 1 : x->dims[from++];
    return infer_set(out, x->dtype, rank, dims);
}

status infer_transpose(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0];
    size_t count;
    const int64_t *perm = infer_ints(node, "perm", &count);
    if (perm != NULL && count != (size_t)x->rank)
        return status_fail(STATUS_INVALID_ARGUMENT, "perm has %zu axes, the input is %s", count,
                           infer_text(x));
    int64_t dims[TENSOR_RANK_MAX];
    bool used[TENSOR_RANK_MAX] = {false};
    for (int i = 0; i < x->rank; i++) {
        int64_t from = perm != NULL ? perm[i] : x->rank - 1 - i;
        if (from < 0 || from >= x->rank || used[from])
            return status_fail(STATUS_INVALID_ARGUMENT, "perm is not a permutation of %d axes",
                               x->rank);
        used[from] = true;
        dims[i] = x->dims[from];
    }
    return infer_set(out, x->dtype, x->rank, dims);
}

static status read_block_size(const graph_node *node, const tensor *x, int64_t *block)
{
    *block = graph_attribute_int(node, "blocksize", 0);
    if (x->rank != 4)
        return status_fail(STATUS_INVALID_ARGUMENT, "input %s is not [N,C,H,W]", infer_text(x));
    if (*block < 1 || *block > 65536)
        return status_fail(STATUS_INVALID_ARGUMENT, "blocksize %lld", (long long)*block);
    return STATUS_OK;
}

status infer_depth_to_space(const graph_node *node, const tensor *const *in, tensor *out)
{
    static const char *const modes[] = {"DCR", "CRD", NULL};
    const tensor *x = in[0];
    int64_t block;
    status s = read_block_size(node, x, &block);
    if (s)
        return s;
    if ((s = infer_expect_choice(node, "mode", modes)))
        return s;
    if (x->dims[1] % (block * block) != 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "channels of %s are no multiple of %lld",
                           infer_text(x), (long long)(block * block));
    int64_t dims[4] = {x->dims[0], x->dims[1] / (block * block), x->dims[2] * block,
                       x->dims[3] * block};
    return infer_set(out, x->dtype, 4, dims);
}

status infer_space_to_depth(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0];
    int64_t block;
    static const char *const modes[] = {"DCR", "CRD", NULL};
    status s = read_block_size(node, x, &block);
    if (!s)
        s = infer_expect_choice(node, "mode", modes);
    if (s)
        return s;
    if (x->dims[2] % block != 0 || x->dims[3] % block != 0)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "height and width of %s are no multiple of %lld", infer_text(x),
                           (long long)block);
    int64_t channels;
    if (__builtin_mul_overflow(x->dims[1], block * block, &channels))
        return status_fail(STATUS_TOO_LARGE, "%s with blocksize %lld", infer_text(x),
                           (long long)block);
    int64_t dims[4] = {x->dims[0], channels, x->dims[2] / block, x->dims[3] / block};
    return infer_set(out, x->dtype, 4, dims);
}

status infer_reverse_sequence(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0];
    int64_t batch_axis = graph_attribute_int(node, "batch_axis", 1),
            time_axis = graph_attribute_int(node, "time_axis", 0);
    if (x->rank < 2 || batch_axis < 0 || batch_axis > 1 || time_axis != 1 - batch_axis)
        return status_fail(STATUS_INVALID_ARGUMENT, "batch_axis %lld and time_axis %lld of %s",
                           (long long)batch_axis, (long long)time_axis, infer_text(x));
    status s = infer_expect_type(in[1], 1, INFER_TYPE(DTYPE_I64));
    if (s)
        return s;
    if ((s = infer_expect_vector(in[1], 1, x->dims[batch_axis])))
        return s;
    return infer_set_like(out, x->dtype, x);
}
