#include <math.h>
#include <string.h>

#include "graph/shapes/rules.h"

/* A scaled dim, computed in f32 as the definition of the operator requires. */
static status scaled_dim(double scaled, int64_t *dim)
{
    if (!(scaled >= 0 && scaled < 0x1p40))
        return status_fail(STATUS_INVALID_ARGUMENT, "a dimension of %g", scaled);
    *dim = (int64_t)scaled;
    return STATUS_OK;
}

static status known_floats(const tensor *const *in, int position, int64_t count)
{
    status s = infer_expect_type(in[position], position, INFER_FLOATS);
    if (s)
        return s;
    if ((s = infer_expect_vector(in[position], position, count)))
        return s;
    return infer_is_known(in[position]) ? STATUS_OK : infer_unknown(position);
}

static bool is_given(const tensor *t)
{
    return t != NULL && tensor_count(t) > 0;
}

static status resize_by_scales(const graph_node *node, const tensor *const *in, int count,
                               const int *axes, int64_t *dims)
{
    status s = known_floats(in, 2, count);
    if (s)
        return s;
    const char *mode = graph_attribute_string(node, "coordinate_transformation_mode", "half_pixel");
    bool is_crop = strcmp(mode, "tf_crop_and_resize") == 0;
    for (int i = 0; i < count; i++) {
        float scale = (float)tensor_get_number(in[2], i);
        if (!(scale > 0))
            return status_fail(STATUS_INVALID_ARGUMENT, "scale %g", (double)scale);
        float part =
            is_crop ? (float)(tensor_get_number(in[1], i + count) - tensor_get_number(in[1], i))
                    : 1;
        if ((s = scaled_dim(floor((double)((float)dims[axes[i]] * part * scale)), &dims[axes[i]])))
            return s;
    }
    return STATUS_OK;
}

static status resize_by_sizes(const graph_node *node, const tensor *const *in, int count,
                              const int *axes, int64_t *dims)
{
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller", NULL};
    int64_t sizes[TENSOR_RANK_MAX];
    int size_count;
    status s = infer_expect_choice(node, "keep_aspect_ratio_policy", policies);
    if (s)
        return s;
    if ((s = infer_known_ints(in, 3, TENSOR_RANK_MAX, sizes, &size_count)))
        return s;
    if (size_count != count)
        return status_fail(STATUS_INVALID_ARGUMENT, "%d sizes for %d axes", size_count, count);
    const char *policy = graph_attribute_string(node, "keep_aspect_ratio_policy", "stretch");
    double scale = 0;
    for (int i = 0; i < count; i++) {
        if (sizes[i] < 1 || dims[axes[i]] < 1)
            return status_fail(STATUS_INVALID_ARGUMENT, "size %lld for axis %d of %s",
                               (long long)sizes[i], axes[i], infer_text(in[0]));
        double ratio = (double)sizes[i] / (double)dims[axes[i]];
        bool is_tighter = strcmp(policy, "not_larger") == 0 ? ratio < scale : ratio > scale;
        if (i == 0 || is_tighter)
            scale = ratio;
    }
    for (int i = 0; i < count; i++) {
        if (strcmp(policy, "stretch") == 0)
            dims[axes[i]] = sizes[i];
        else if ((s = scaled_dim(floor(scale * (double)dims[axes[i]] + 0.5), &dims[axes[i]])))
            return s;
    }
    return STATUS_OK;
}

static status check_resize_modes(const graph_node *node)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil", NULL};
    static const char *const coordinates[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",   "align_corners",
        "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn", NULL};
    status s = infer_expect_choice(node, "mode", modes);
    if (s)
        return s;
    if ((s = infer_expect_choice(node, "nearest_mode", roundings)))
        return s;
    return infer_expect_choice(node, "coordinate_transformation_mode", coordinates);
}

status infer_resize(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *x = in[0];
    int axes[TENSOR_RANK_MAX], count = x->rank;
    size_t listed;
    const int64_t *list = infer_ints(node, "axes", &listed);
    status s = check_resize_modes(node);
    if (s)
        return s;
    if (listed > (size_t)x->rank)
        return status_fail(STATUS_INVALID_ARGUMENT, "%zu axes for %s", listed, infer_text(x));
    bool used[TENSOR_RANK_MAX] = {false};
    for (int i = 0; i < (list ? (int)listed : count); i++) {
        if ((s = infer_axis("axes", list ? list[i] : i, x->rank, &axes[i])))
            return s;
        if (used[axes[i]])
            return status_fail(STATUS_INVALID_ARGUMENT, "axis %d is given twice", axes[i]);
        used[axes[i]] = true;
    }
    if (list != NULL)
        count = (int)listed;
    if (is_given(in[2]) == is_given(in[3]))
        return status_fail(STATUS_INVALID_ARGUMENT, "needs either scales or sizes");
    const char *mode = graph_attribute_string(node, "coordinate_transformation_mode", "half_pixel");
    if (strcmp(mode, "tf_crop_and_resize") == 0) {
        if (in[1] == NULL)
            return status_fail(STATUS_INVALID_ARGUMENT, "tf_crop_and_resize needs roi");
        if ((s = known_floats(in, 1, 2 * count)))
            return s;
    }
    int64_t dims[TENSOR_RANK_MAX];
    memcpy(dims, x->dims, sizeof dims);
    s = is_given(in[2]) ? resize_by_scales(node, in, count, axes, dims)
                        : resize_by_sizes(node, in, count, axes, dims);
    if (s)
        return s;
    if ((s = infer_set(out, x->dtype, x->rank, dims)))
        return s;
    if (tensor_count(x) == 0 && tensor_count(out) != 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s has nothing to sample", infer_text(x));
    return STATUS_OK;
}

status infer_upsample(const graph_node *node, const tensor *const *in, tensor *out)
{
    static const char *const modes[] = {"nearest", "linear", NULL};
    const tensor *x = in[0];
    status s = infer_expect_choice(node, "mode", modes);
    if (s)
        return s;
    if ((s = known_floats(in, 1, x->rank)))
        return s;
    int64_t dims[TENSOR_RANK_MAX];
    for (int i = 0; i < x->rank; i++) {
        float scale = (float)tensor_get_number(in[1], i);
        if (!(scale >= 1))
            return status_fail(STATUS_INVALID_ARGUMENT, "scale %g is below 1", (double)scale);
        if ((s = scaled_dim(floor((double)((float)x->dims[i] * scale)), &dims[i])))
            return s;
    }
    return infer_set(out, x->dtype, x->rank, dims);
}

status infer_grid_sample(const graph_node *node, const tensor *const *in, tensor *out)
{
    /* bilinear and bicubic are the names of opset 16. */
    static const char *const modes[] = {"linear", "nearest", "cubic", "bilinear", "bicubic", NULL};
    static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
    const tensor *x = in[0], *grid = in[1];
    status s = infer_expect_choice(node, "mode", modes);
    if (s)
        return s;
    if ((s = infer_expect_choice(node, "padding_mode", paddings)))
        return s;
    if ((s = infer_expect_type(grid, 1, INFER_FLOATS)))
        return s;
    if (x->rank < 3 || grid->rank != x->rank || grid->dims[0] != x->dims[0] ||
        grid->dims[grid->rank - 1] != x->rank - 2)
        return status_fail(STATUS_INVALID_ARGUMENT, "grid %s does not fit %s", infer_text(grid),
                           infer_text(x));
    int64_t dims[TENSOR_RANK_MAX] = {x->dims[0], x->dims[1]};
    for (int i = 2; i < x->rank; i++)
        dims[i] = grid->dims[i - 1];
    if ((s = infer_set(out, x->dtype, x->rank, dims)))
        return s;
    if (tensor_count(x) == 0 && tensor_count(out) != 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s has nothing to sample", infer_text(x));
    return STATUS_OK;
}
