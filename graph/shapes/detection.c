#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/shapes/rules.h"

/* Operators of detectors: NonMaxSuppression, RoiAlign, DeformConv. */

status infer_non_max_suppression(const graph_node *node, const tensor *const *in, tensor *out)
{
    int64_t dims[] = {0, 3};
    status s = graph_select_boxes(node, in, NULL, &dims[0]);
    return s ? s : infer_set(out, DTYPE_I64, 2, dims);
}

status infer_roi_align(const graph_node *node, const tensor *const *in, tensor *out)
{
    static const char *const modes[] = {"avg", "max", NULL};
    static const char *const coordinates[] = {"half_pixel", "output_half_pixel", NULL};
    const tensor *x = in[0], *rois = in[1];
    status s = infer_expect_choice(node, "mode", modes);
    if (!s)
        s = infer_expect_choice(node, "coordinate_transformation_mode", coordinates);
    if (!s)
        s = infer_expect_same_type(x, rois);
    if (s)
        return s;
    if (x->rank != 4 || rois->rank != 2 || rois->dims[1] != 4)
        return status_fail(STATUS_INVALID_ARGUMENT, "regions %s of %s", infer_text(rois),
                           infer_text(x));
    if ((s = infer_expect_type(in[2], 2, INFER_TYPE(DTYPE_I64))) ||
        (s = infer_expect_vector(in[2], 2, rois->dims[0])))
        return s;
    int64_t dims[] = {rois->dims[0], x->dims[1], graph_attribute_int(node, "output_height", 1),
                      graph_attribute_int(node, "output_width", 1)};
    if (dims[2] < 1 || dims[3] < 1 || graph_attribute_int(node, "sampling_ratio", 0) < 0 ||
        graph_attribute_int(node, "sampling_ratio", 0) > 1024)
        return status_fail(STATUS_INVALID_ARGUMENT, "output_height %lld, output_width %lld",
                           (long long)dims[2], (long long)dims[3]);
    return infer_set(out, x->dtype, 4, dims);
}

static int64_t number_at(const graph_node *node, const char *name, int i, int64_t otherwise)
{
    size_t count;
    const int64_t *list = infer_ints(node, name, &count);
    return (size_t)i < count ? list[i] : otherwise;
}

status infer_deform_conv(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0], *w = in[1], *offset = in[2], *bias = in[3], *mask = in[4];
    int64_t group = graph_attribute_int(node, "group", 1);
    int64_t offsets = graph_attribute_int(node, "offset_group", 1);
    if (x->rank != 4 || w->rank != 4)
        return status_fail(STATUS_UNSUPPORTED, "%s by %s; supported: images", infer_text(x),
                           infer_text(w));
    if (group < 1 || offsets < 1 || x->dims[1] % group != 0 || w->dims[0] % group != 0 ||
        w->dims[1] != x->dims[1] / group || x->dims[1] % offsets != 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s by %s in %lld groups, %lld of offsets",
                           infer_text(x), infer_text(w), (long long)group, (long long)offsets);
    int64_t dims[4] = {x->dims[0], w->dims[0]};
    for (int d = 0; d < 2; d++) {
        int64_t stride = number_at(node, "strides", d, 1), reach;
        int64_t pads = number_at(node, "pads", d, 0) + number_at(node, "pads", d + 2, 0);
        if (stride < 1 || w->dims[2 + d] < 1 || number_at(node, "dilations", d, 1) < 1 ||
            number_at(node, "kernel_shape", d, w->dims[2 + d]) != w->dims[2 + d] ||
            __builtin_mul_overflow(w->dims[2 + d] - 1, number_at(node, "dilations", d, 1), &reach))
            return status_fail(STATUS_INVALID_ARGUMENT, "strides, dilations or kernel_shape of %s",
                               infer_text(w));
        if (pads < 0 || pads > INT32_MAX || x->dims[2 + d] + pads <= reach)
            return status_fail(STATUS_INVALID_ARGUMENT, "a window of %lld in %s", (long long)reach,
                               infer_text(x));
        dims[2 + d] = (x->dims[2 + d] + pads - reach - 1) / stride + 1;
    }
    int64_t taps = w->dims[2] * w->dims[3];
    const int64_t wanted[] = {x->dims[0], 2 * offsets * taps, dims[2], dims[3]};
    tensor shape = {.dtype = x->dtype};
    status s = infer_set(&shape, x->dtype, 4, wanted);
    if (s)
        return s;
    if (!tensor_same_shape(offset, &shape) || offset->dtype != x->dtype)
        return status_fail(STATUS_INVALID_ARGUMENT, "offsets %s; they should be %s",
                           infer_text(offset), infer_text(&shape));
    shape.dims[1] /= 2;
    if (mask != NULL && (!tensor_same_shape(mask, &shape) || mask->dtype != x->dtype))
        return status_fail(STATUS_INVALID_ARGUMENT, "a mask %s; it should be %s", infer_text(mask),
                           infer_text(&shape));
    if (bias != NULL && (s = infer_expect_vector(bias, 3, w->dims[0])))
        return s;
    return infer_set(out, x->dtype, 4, dims);
}
