#include <string.h>

#include "graph/shapes/rules.h"

#define SPATIAL_MAX (TENSOR_RANK_MAX - 2)
#define STEP_MAX                                                                                   \
    ((int64_t)1 << 31) /* of strides, dilations, kernels, pads: keeps multiplications small        \
                        */

/* The window of a convolution or pooling, one entry for each spatial dim. */
typedef struct window {
    int spatial;
    int64_t kernel[SPATIAL_MAX], strides[SPATIAL_MAX], dilations[SPATIAL_MAX];
    int64_t begin[SPATIAL_MAX], end[SPATIAL_MAX]; /* pads; zero unless auto_pad is NOTSET */
    bool is_same, is_ceil;
} window;

static status read_list(const graph_node *node, const char *name, int count, int64_t least,
                        int64_t otherwise, int64_t *values)
{
    size_t listed;
    const int64_t *list = infer_ints(node, name, &listed);
    if (list != NULL && listed != (size_t)count)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s has %zu values; %d are expected", name,
                           listed, count);
    for (int i = 0; i < count; i++) {
        values[i] = list != NULL ? list[i] : otherwise;
        if (values[i] < least || values[i] > STEP_MAX)
            return status_fail(STATUS_INVALID_ARGUMENT, "%s contains %lld", name,
                               (long long)values[i]);
    }
    return STATUS_OK;
}

/* `weight_dims`: the spatial dims of the weights; NULL for poolings. */
static status read_window(const graph_node *node, int rank, const int64_t *weight_dims, window *w)
{
    static const char *const paddings[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", NULL};
    *w = (window){.spatial = rank - 2, .is_ceil = graph_attribute_int(node, "ceil_mode", 0) != 0};
    size_t listed;
    if (weight_dims == NULL && infer_ints(node, "kernel_shape", &listed) == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "attribute kernel_shape is missing");
    status s = read_list(node, "kernel_shape", w->spatial, 1, 1, w->kernel);
    if (s)
        return s;
    for (int i = 0; weight_dims != NULL && i < w->spatial; i++) {
        bool is_given = infer_ints(node, "kernel_shape", &listed) != NULL;
        if ((is_given && w->kernel[i] != weight_dims[i]) || weight_dims[i] < 1)
            return status_fail(STATUS_INVALID_ARGUMENT, "kernel_shape and the weights differ");
        w->kernel[i] = weight_dims[i];
    }
    if ((s = read_list(node, "strides", w->spatial, 1, 1, w->strides)))
        return s;
    if ((s = read_list(node, "dilations", w->spatial, 1, 1, w->dilations)))
        return s;
    if ((s = infer_expect_choice(node, "auto_pad", paddings)))
        return s;
    const char *padding = graph_attribute_string(node, "auto_pad", "NOTSET");
    w->is_same = strncmp(padding, "SAME", 4) == 0;
    if (strcmp(padding, "NOTSET") != 0)
        return STATUS_OK;
    int64_t pads[2 * SPATIAL_MAX];
    if ((s = read_list(node, "pads", 2 * w->spatial, 0, 0, pads)))
        return s;
    memcpy(w->begin, pads, (size_t)w->spatial * sizeof pads[0]);
    memcpy(w->end, pads + w->spatial, (size_t)w->spatial * sizeof pads[0]);
    return STATUS_OK;
}

static int64_t window_extent(const window *w, int i)
{
    return (w->kernel[i] - 1) * w->dilations[i] + 1; /* at most 2^62 */
}

/* dims[2 ..] of the result of sliding `w` over `x`. */
static status slide(const window *w, const tensor *x, int64_t *dims)
{
    for (int i = 0; i < w->spatial; i++) {
        int64_t n = x->dims[2 + i], stride = w->strides[i];
        if (w->is_same) {
            dims[2 + i] = (n + stride - 1) / stride;
            continue;
        }
        int64_t room = n + w->begin[i] + w->end[i] - window_extent(w, i);
        if (room < 0)
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "a window of %lld does not fit axis %d of %s",
                               (long long)window_extent(w, i), 2 + i, infer_text(x));
        int64_t count = (room + (w->is_ceil ? stride - 1 : 0)) / stride + 1;
        /* Pool-19: a window that starts in the padding behind the data does not count. */
        if (w->is_ceil && (count - 1) * stride >= n + w->begin[i])
            count--;
        dims[2 + i] = count;
    }
    return STATUS_OK;
}

static status expect_images(const tensor *x)
{
    if (x->rank >= 3)
        return STATUS_OK;
    return status_fail(STATUS_INVALID_ARGUMENT, "input %s has no spatial dims", infer_text(x));
}

/* x [N, C, ...], weights [M, C/group, ...] */
static status convolve(const graph_node *node, const tensor *x, const tensor *weights, dtype type,
                       tensor *out)
{
    status s = expect_images(x);
    if (s)
        return s;
    int64_t groups = graph_attribute_int(node, "group", 1), channels;
    if (weights->rank != x->rank || groups < 1 || weights->dims[0] % groups != 0 ||
        __builtin_mul_overflow(weights->dims[1], groups, &channels) || channels != x->dims[1])
        return status_fail(STATUS_INVALID_ARGUMENT, "weights %s with %lld groups do not fit %s",
                           infer_text(weights), (long long)groups, infer_text(x));
    window w;
    if ((s = read_window(node, x->rank, weights->dims + 2, &w)))
        return s;
    int64_t dims[TENSOR_RANK_MAX] = {x->dims[0], weights->dims[0]};
    if ((s = slide(&w, x, dims)))
        return s;
    return infer_set(out, type, x->rank, dims);
}

status infer_conv(const graph_node *node, const tensor *const *in, tensor *out)
{
    status s = infer_expect_same_type(in[0], in[1]);
    if (s)
        return s;
    if ((s = convolve(node, in[0], in[1], in[0]->dtype, out)))
        return s;
    if (in[2] == NULL)
        return STATUS_OK;
    if ((s = infer_expect_same_type(in[0], in[2])))
        return s;
    return infer_expect_vector(in[2], 2, in[1]->dims[0]);
}

/* One value, or one for each of `n` output channels. */
static status expect_per_channel(const tensor *t, int position, int64_t n)
{
    return tensor_count(t) == 1 ? STATUS_OK : infer_expect_vector(t, position, n);
}

static status expect_scalar(const tensor *t, int position)
{
    if (tensor_count(t) == 1)
        return STATUS_OK;
    return status_fail(STATUS_INVALID_ARGUMENT, "input %d, %s, is not a scalar", position,
                       infer_text(t));
}

status infer_conv_integer(const graph_node *node, const tensor *const *in, tensor *out)
{
    status s = infer_expect_type(in[1], 1, INFER_8BIT_INTEGERS);
    if (s)
        return s;
    if ((s = convolve(node, in[0], in[1], DTYPE_I32, out)))
        return s;
    if (in[2] != NULL) {
        if ((s = infer_expect_same_type(in[0], in[2])))
            return s;
        if ((s = expect_scalar(in[2], 2)))
            return s;
    }
    if (in[3] == NULL)
        return STATUS_OK;
    if ((s = infer_expect_same_type(in[1], in[3])))
        return s;
    return expect_per_channel(in[3], 3, in[1]->dims[0]);
}

status infer_qlinear_conv(const graph_node *node, const tensor *const *in, tensor *out)
{
    status s = infer_expect_type(in[3], 3, INFER_8BIT_INTEGERS);
    if (s)
        return s;
    if ((s = infer_expect_type(in[7], 7, INFER_8BIT_INTEGERS)))
        return s;
    static const int scales[] = {1, 4, 6}, scalars[] = {1, 2, 6, 7};
    for (int i = 0; i < 3; i++)
        if ((s = infer_expect_type(in[scales[i]], scales[i], INFER_TYPE(DTYPE_F32))))
            return s;
    for (int i = 0; i < 4; i++)
        if ((s = expect_scalar(in[scalars[i]], scalars[i])))
            return s;
    if ((s = infer_expect_same_type(in[0], in[2])))
        return s;
    if ((s = infer_expect_same_type(in[3], in[5])))
        return s;
    if ((s = convolve(node, in[0], in[3], in[7]->dtype, out)))
        return s;
    for (int i = 4; i <= 5; i++)
        if ((s = expect_per_channel(in[i], i, in[3]->dims[0])))
            return s;
    if (in[8] == NULL)
        return STATUS_OK;
    if ((s = infer_expect_type(in[8], 8, INFER_TYPE(DTYPE_I32))))
        return s;
    return infer_expect_vector(in[8], 8, in[3]->dims[0]);
}

/* dims[2 ..] such that sliding `w` over them gives `x` (ConvTranspose-11). */
static status spread(const graph_node *node, const window *w, const tensor *x, int64_t *dims)
{
    int64_t extra[SPATIAL_MAX], wanted[SPATIAL_MAX];
    size_t listed;
    bool is_given = infer_ints(node, "output_shape", &listed) != NULL;
    status s = read_list(node, "output_padding", w->spatial, 0, 0, extra);
    if (s)
        return s;
    if ((s = read_list(node, "output_shape", w->spatial, 1, 1, wanted)))
        return s;
    for (int i = 0; i < w->spatial; i++) {
        int64_t n = x->dims[2 + i];
        if (extra[i] >= w->strides[i] && extra[i] >= w->dilations[i])
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "output_padding %lld is not below stride or dilation",
                               (long long)extra[i]);
        if (n < 1)
            return status_fail(STATUS_INVALID_ARGUMENT, "%s is empty", infer_text(x));
        if (is_given) {
            dims[2 + i] = wanted[i];
        } else if (__builtin_mul_overflow(w->is_same ? n : n - 1, w->strides[i], &dims[2 + i])) {
            return status_fail(STATUS_TOO_LARGE, "axis %d of %s", 2 + i, infer_text(x));
        } else if (!w->is_same &&
                   __builtin_add_overflow(dims[2 + i],
                                          extra[i] + window_extent(w, i) - w->begin[i] - w->end[i],
                                          &dims[2 + i])) {
            return status_fail(STATUS_TOO_LARGE, "axis %d of %s", 2 + i, infer_text(x));
        }
        if (dims[2 + i] < 1)
            return status_fail(STATUS_INVALID_ARGUMENT, "the pads leave nothing of axis %d of %s",
                               2 + i, infer_text(x));
    }
    return STATUS_OK;
}

status infer_conv_transpose(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0], *weights = in[1];
    status s = expect_images(x);
    if (s)
        return s;
    if ((s = infer_expect_same_type(x, weights)))
        return s;
    int64_t groups = graph_attribute_int(node, "group", 1), channels;
    if (weights->rank != x->rank || groups < 1 || weights->dims[0] != x->dims[1] ||
        x->dims[1] % groups != 0 || __builtin_mul_overflow(weights->dims[1], groups, &channels))
        return status_fail(STATUS_INVALID_ARGUMENT, "weights %s with %lld groups do not fit %s",
                           infer_text(weights), (long long)groups, infer_text(x));
    window w;
    if ((s = read_window(node, x->rank, weights->dims + 2, &w)))
        return s;
    int64_t dims[TENSOR_RANK_MAX] = {x->dims[0], channels};
    if ((s = spread(node, &w, x, dims)))
        return s;
    if ((s = infer_set(out, x->dtype, x->rank, dims)))
        return s;
    if (in[2] == NULL)
        return STATUS_OK;
    if ((s = infer_expect_same_type(x, in[2])))
        return s;
    return infer_expect_vector(in[2], 2, channels);
}

status infer_pool(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0];
    status s = expect_images(x);
    if (s)
        return s;
    window w;
    if ((s = read_window(node, x->rank, NULL, &w)))
        return s;
    for (int i = 0; i < w.spatial; i++)
        if (w.begin[i] >= window_extent(&w, i) || w.end[i] >= window_extent(&w, i))
            return status_fail(STATUS_INVALID_ARGUMENT, "pads of axis %d hide a whole window",
                               2 + i);
    if (graph_attribute_int(node, "p", 2) < 1)
        return status_fail(STATUS_INVALID_ARGUMENT, "p is below 1");
    int64_t dims[TENSOR_RANK_MAX] = {x->dims[0], x->dims[1]};
    if ((s = slide(&w, x, dims)))
        return s;
    if ((s = infer_set(&out[0], x->dtype, x->rank, dims)))
        return s;
    return node->op == GRAPH_OP_MAX_POOL ? infer_set(&out[1], DTYPE_I64, x->rank, dims) : STATUS_OK;
}

status infer_global_pool(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0];
    if (x->rank < 2)
        return status_fail(STATUS_INVALID_ARGUMENT, "input %s is not [N,C,...]", infer_text(x));
    if (graph_attribute_int(node, "p", 2) < 1)
        return status_fail(STATUS_INVALID_ARGUMENT, "p is below 1");
    int64_t dims[TENSOR_RANK_MAX] = {x->dims[0], x->dims[1]};
    for (int i = 2; i < x->rank; i++)
        dims[i] = 1;
    return infer_set(out, x->dtype, x->rank, dims);
}
