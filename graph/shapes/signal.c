#include <string.h>

#include "graph/shapes/rules.h"

/* Fourier transforms, and what spectrograms are made with. */

/* The one integer of an input; `otherwise` where it is absent. */
static status known_scalar(const tensor *const *in, int position, int64_t otherwise, int64_t *out)
{
    *out = otherwise;
    if (in[position] == NULL)
        return STATUS_OK;
    int count;
    status s = infer_known_ints(in, position, 1, out, &count);
    if (s)
        return s;
    return count == 1 ? STATUS_OK
                      : status_fail(STATUS_INVALID_ARGUMENT, "input %d is empty", position);
}

static status read_dft(const graph_node *node, const tensor *const *in, graph_fourier *out)
{
    const tensor *x = in[0];
    int64_t axis;
    graph_fourier f = {.is_inverse = graph_attribute_int(node, "inverse", 0) != 0,
                       .is_onesided = graph_attribute_int(node, "onesided", 0) != 0};
    if (x->rank < 2 || (x->dims[x->rank - 1] != 1 && x->dims[x->rank - 1] != 2))
        return status_fail(STATUS_INVALID_ARGUMENT, "input %s is not [..., 1 or 2]", infer_text(x));
    status s = known_scalar(in, 2, -2, &axis);
    if (!s)
        s = infer_axis("axis", axis, x->rank, &f.axis);
    if (s)
        return s;
    if (f.axis == x->rank - 1)
        return status_fail(STATUS_INVALID_ARGUMENT, "axis %d is that of the complex parts", f.axis);
    f.parts_in = (int)x->dims[x->rank - 1];
    if (f.is_onesided && f.parts_in != (f.is_inverse ? 2 : 1))
        return status_fail(STATUS_INVALID_ARGUMENT, "onesided of %s", infer_text(x));
    bool is_to_real = f.is_onesided && f.is_inverse;
    int64_t n = x->dims[f.axis];
    s = known_scalar(in, 1, is_to_real ? 2 * (n - 1) : n, &f.length);
    if (s)
        return s;
    if (f.length < 1 || f.length > INFER_TENSOR_BYTES_MAX)
        return status_fail(STATUS_INVALID_ARGUMENT, "a transform of length %lld",
                           (long long)f.length);
    f.parts_out = is_to_real ? 1 : 2;
    f.bins_out = f.is_onesided && !f.is_inverse ? f.length / 2 + 1 : f.length;
    int64_t most = is_to_real ? f.length / 2 + 1 : f.length;
    f.bins_in = n < most ? n : most;
    *out = f;
    return STATUS_OK;
}

static status read_stft(const graph_node *node, const tensor *const *in, graph_fourier *out)
{
    const tensor *x = in[0], *window = in[2];
    graph_fourier f = {.axis = 1, .is_onesided = graph_attribute_int(node, "onesided", 1) != 0};
    f.parts_in = x->rank == 3 ? (int)x->dims[2] : 1;
    if (x->rank < 2 || x->rank > 3 || (x->rank == 3 && x->dims[2] != 1 && x->dims[2] != 2))
        return status_fail(STATUS_INVALID_ARGUMENT, "signal %s is not [batch, length, 1 or 2]",
                           infer_text(x));
    if (window != NULL && (window->rank != 1 || window->dtype != x->dtype))
        return status_fail(STATUS_INVALID_ARGUMENT, "window %s of signal %s", infer_text(window),
                           infer_text(x));
    if (f.is_onesided && f.parts_in == 2)
        return status_fail(STATUS_INVALID_ARGUMENT, "onesided of the complex signal %s",
                           infer_text(x));
    status s = known_scalar(in, 3, window != NULL ? window->dims[0] : x->dims[1], &f.length);
    if (!s)
        s = known_scalar(in, 1, 0, &f.step);
    if (s)
        return s;
    if (f.length < 1 || f.step < 1 || f.length > x->dims[1])
        return status_fail(STATUS_INVALID_ARGUMENT, "frames of %lld, %lld apart, of %s",
                           (long long)f.length, (long long)f.step, infer_text(x));
    if (window != NULL && window->dims[0] != f.length)
        return status_fail(STATUS_INVALID_ARGUMENT, "window %s of frames of %lld",
                           infer_text(window), (long long)f.length);
    f.frames = (x->dims[1] - f.length) / f.step + 1;
    f.parts_out = 2;
    f.bins_in = f.length;
    f.bins_out = f.is_onesided ? f.length / 2 + 1 : f.length;
    *out = f;
    return STATUS_OK;
}

status graph_read_fourier(const graph_node *node, const tensor *const *inputs, graph_fourier *out)
{
    const tensor *in[4] = {NULL};
    for (int i = 0; i < node->input_count && i < 4; i++)
        in[i] = inputs[i];
    return node->op == GRAPH_OP_STFT ? read_stft(node, in, out) : read_dft(node, in, out);
}

status infer_dft(const graph_node *node, const tensor *const *in, tensor *out)
{
    graph_fourier f;
    status s = read_dft(node, in, &f);
    if (s)
        return s;
    int64_t dims[TENSOR_RANK_MAX];
    memcpy(dims, in[0]->dims, sizeof dims);
    dims[f.axis] = f.bins_out;
    dims[in[0]->rank - 1] = f.parts_out;
    return infer_set(out, in[0]->dtype, in[0]->rank, dims);
}

status infer_stft(const graph_node *node, const tensor *const *in, tensor *out)
{
    graph_fourier f;
    status s = read_stft(node, in, &f);
    if (s)
        return s;
    const int64_t dims[] = {in[0]->dims[0], f.frames, f.bins_out, 2};
    return infer_set(out, in[0]->dtype, 4, dims);
}

static status output_type(const graph_node *node, dtype *type)
{
    int64_t wanted = graph_attribute_int(node, "output_datatype", 1);
    if (wanted < 0 || wanted > 255 || !dtype_from_onnx((int)wanted, type) ||
        !(INFER_NUMBERS & INFER_TYPE(*type)))
        return status_fail(STATUS_UNSUPPORTED, "of ONNX data type %lld", (long long)wanted);
    return STATUS_OK;
}

status infer_window(const graph_node *node, const tensor *const *in, tensor *out)
{
    int64_t size;
    dtype type;
    status s = known_scalar(in, 0, 0, &size);
    if (!s)
        s = output_type(node, &type);
    return s ? s : infer_set(out, type, 1, &size);
}

status infer_mel_weight_matrix(const graph_node *node, const tensor *const *in, tensor *out)
{
    int64_t length, dims[2];
    dtype type;
    status s = known_scalar(in, 0, 0, &dims[1]);
    if (!s)
        s = known_scalar(in, 1, 0, &length);
    if (!s)
        s = output_type(node, &type);
    for (int i = 2; !s && i < 5; i++)
        if (tensor_count(in[i]) != 1)
            s = status_fail(STATUS_INVALID_ARGUMENT, "input %d is %s, not a scalar", i,
                            infer_text(in[i]));
    if (s)
        return s;
    if (length < 1)
        return status_fail(STATUS_INVALID_ARGUMENT, "dft_length is %lld", (long long)length);
    dims[0] = length / 2 + 1;
    return infer_set(out, type, 2, dims);
}
