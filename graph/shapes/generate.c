#include <math.h>
#include <string.h>

#include "graph/shapes/rules.h"

status infer_constant_of_shape(const graph_node *node, const tensor *const *in, tensor *out)
{
    int64_t dims[TENSOR_RANK_MAX];
    int rank;
    status s = infer_known_ints(in, 0, TENSOR_RANK_MAX, dims, &rank);
    if (s)
        return s;
    const graph_attribute *value = graph_find_attribute(node, "value");
    if (value != NULL &&
        (value->t == NULL || tensor_count(value->t) != 1 || value->t->dtype == DTYPE_BYTES))
        return status_fail(STATUS_INVALID_ARGUMENT, "attribute value is not one number");
    return infer_set(out, value != NULL ? value->t->dtype : DTYPE_F32, rank, dims);
}

status infer_eye_like(const graph_node *node, const tensor *const *in, tensor *out)
{
    dtype type = in[0]->dtype;
    if (in[0]->rank != 2)
        return status_fail(STATUS_INVALID_ARGUMENT, "input %s is no matrix", infer_text(in[0]));
    if (graph_find_attribute(node, "dtype") != NULL) {
        int64_t wanted = graph_attribute_int(node, "dtype", 0);
        if (wanted < 0 || wanted > 255 || !dtype_from_onnx((int)wanted, &type) ||
            type == DTYPE_BYTES)
            return status_fail(STATUS_UNSUPPORTED, "of ONNX data type %lld", (long long)wanted);
    }
    return infer_set_like(out, type, in[0]);
}

static int64_t range_of_integers(int64_t start, int64_t limit, int64_t delta)
{
    __int128 span = (__int128)limit - start;
    if (span == 0 || (span > 0) != (delta > 0))
        return 0;
    __int128 step = delta;
    __int128 n = (span + step - (delta > 0 ? 1 : -1)) / step;
    return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

status infer_range(const graph_node *node, const tensor *const *in, tensor *out)
{
    (void)node;
    for (int i = 0; i < 3; i++) {
        status s = infer_expect_same_type(in[0], in[i]);
        if (s)
            return s;
        if (tensor_count(in[i]) != 1)
            return status_fail(STATUS_INVALID_ARGUMENT, "input %d is %s, not a scalar", i,
                               infer_text(in[i]));
        if (!infer_is_known(in[i]))
            return infer_unknown(i);
    }
    if (tensor_get_number(in[2], 0) == 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "delta is zero");
    int64_t n;
    if (dtype_is_float(in[0]->dtype)) {
        double count = ceil((tensor_get_number(in[1], 0) - tensor_get_number(in[0], 0)) /
                            tensor_get_number(in[2], 0));
        if (!(count < 0x1p40)) /* also NaN */
            return status_fail(STATUS_INVALID_ARGUMENT, "the range is infinite or too long");
        n = count > 0 ? (int64_t)count : 0;
    } else {
        n = range_of_integers(tensor_get_integer(in[0], 0), tensor_get_integer(in[1], 0),
                              tensor_get_integer(in[2], 0));
    }
    return infer_set(out, in[0]->dtype, 1, &n);
}

status infer_one_hot(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0], *depth = in[1], *values = in[2];
    status s = infer_expect_type(depth, 1, INFER_NUMBERS);
    if (s)
        return s;
    if ((s = infer_expect_type(values, 2, INFER_NO_STRINGS)))
        return s;
    if ((s = infer_expect_vector(values, 2, 2)))
        return s;
    if (depth->rank > 1 || tensor_count(depth) != 1)
        return status_fail(STATUS_INVALID_ARGUMENT, "depth %s is not a scalar", infer_text(depth));
    if (!infer_is_known(depth))
        return infer_unknown(1);
    double wide = tensor_get_number(depth, 0);
    if (!(wide >= 0 && wide < 0x1p40))
        return status_fail(STATUS_INVALID_ARGUMENT, "depth %g", wide);
    if (x->rank >= TENSOR_RANK_MAX)
        return status_fail(STATUS_UNSUPPORTED, "of %s: up to rank %d is supported", infer_text(x),
                           TENSOR_RANK_MAX);
    int axis;
    if ((s = infer_axis("axis", graph_attribute_int(node, "axis", -1), x->rank + 1, &axis)))
        return s;
    int64_t dims[TENSOR_RANK_MAX];
    for (int i = 0, from = 0; i <= x->rank; i++)
        dims[i] = i == axis ? (int64_t)wide : x->dims[from++];
    return infer_set(out, values->dtype, x->rank + 1, dims);
}
