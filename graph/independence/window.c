#include <string.h>

#include "graph/independence/rules.h"

static const char reason_window[] = "moves a window over the rows";

static int64_t list_item(const graph_node *node, const char *name, size_t index, int64_t otherwise)
{
    const graph_attribute *list = graph_find_attribute(node, name);
    return list != NULL && index < list->count ? list->ints[index] : otherwise;
}

/* The spatial axes on which a window has one element and moves by one: bits. */
static uint32_t pointwise_axes(const graph_node *node, int rank, const int64_t *kernel)
{
    const char *auto_pad = graph_attribute_string(node, "auto_pad", "NOTSET");
    uint32_t axes = 0;
    for (int i = 2; i < rank; i++) {
        size_t at = (size_t)(i - 2), spatial = (size_t)(rank - 2);
        bool is_padded = list_item(node, "pads", at, 0) != 0 ||
                         list_item(node, "pads", at + spatial, 0) != 0 ||
                         list_item(node, "output_padding", at, 0) != 0 ||
                         graph_find_attribute(node, "output_shape") != NULL ||
                         (strcmp(auto_pad, "NOTSET") != 0 && strcmp(auto_pad, "VALID") != 0);
        if (kernel[i] == 1 && list_item(node, "strides", at, 1) == 1 && !is_padded)
            axes |= 1u << i;
    }
    return axes;
}

/* Conv, ConvInteger, QLinearConv, ConvTranspose: with the same weights for all rows. */
row_relation independence_conv(const row_call *c, int output)
{
    const row_value *x = c->in[0], *weight = c->in[c->node->op == GRAPH_OP_QLINEAR_CONV ? 3 : 1];
    if (rows_is_same(x) || !rows_others_same(c, 1))
        return rows_mixed(rows_reason_parameter);
    uint32_t allowed = 1u | pointwise_axes(c->node, x->one.rank, weight->one.dims);
    return rows_keep(c, x, ~allowed, &c->out[output], reason_window);
}

/* AveragePool, LpPool, MaxPool: every channel on its own. The second output of MaxPool has indices
 * that count through the whole tensor. */
row_relation independence_pool(const row_call *c, int output)
{
    const row_value *x = c->in[0];
    int64_t kernel[TENSOR_RANK_MAX] = {0};
    if (output > 0)
        return rows_mixed(rows_reason_count);
    for (int i = 2; i < x->one.rank; i++)
        kernel[i] = list_item(c->node, "kernel_shape", (size_t)(i - 2), 0);
    uint32_t allowed = 3u | pointwise_axes(c->node, x->one.rank, kernel);
    return rows_keep(c, x, ~allowed, &c->out[output], reason_window);
}

row_relation independence_global_pool(const row_call *c, int output)
{
    return rows_keep(c, c->in[0], ~3u, &c->out[output], "reduces over the rows");
}

/* Whether axis `axis` keeps its elements: it is not resized, or by a scale of exactly 1. */
static bool keeps_axis(const row_call *c, int axis)
{
    bool is_upsample = c->node->op == GRAPH_OP_UPSAMPLE;
    const row_value *scales = rows_input(c, is_upsample ? 1 : 2);
    const graph_attribute *axes = graph_find_attribute(c->node, "axes");
    int rank = c->in[0]->one.rank, at = axis;
    if (axes != NULL && axes->count > 0) {
        at = -1;
        for (size_t i = 0; i < axes->count; i++)
            if ((axes->ints[i] < 0 ? axes->ints[i] + rank : axes->ints[i]) == axis)
                at = (int)i;
        if (at < 0)
            return true;
    }
    if (c->in[0]->one.dims[axis] != c->out[0].one.dims[axis])
        return false;
    if (scales == NULL || tensor_count(&scales->one) == 0)
        return true; /* by sizes */
    return scales->one.data != NULL && at < tensor_count(&scales->one) &&
           tensor_get_number(&scales->one, at) == 1;
}

row_relation independence_resize(const row_call *c, int output)
{
    const row_value *x = c->in[0];
    bool is_upsample = c->node->op == GRAPH_OP_UPSAMPLE;
    const char *mode =
        graph_attribute_string(c->node, "coordinate_transformation_mode", "half_pixel");
    const char *policy = graph_attribute_string(c->node, "keep_aspect_ratio_policy", "stretch");
    row_axis at;
    /* The sizes, input 3, may name the number of rows. */
    if (!rows_others_same(c, is_upsample ? 1u : 1u | 1u << 3))
        return rows_mixed(rows_reason_parameter);
    if (rows_is_same(x))
        return rows_keep(c, x, 0, &c->out[output], rows_reason_shape);
    if (!rows_find(c, x, &at))
        return rows_undecided(rows_reason_shape);
    if (strncmp(mode, "tf_", 3) == 0 || strcmp(policy, "stretch") != 0)
        return rows_undecided("resizes in a way that is not followed");
    if (!keeps_axis(c, at.axis))
        return rows_mixed("resizes the axis of the rows");
    return rows_split(c, &c->out[output], at);
}

row_relation independence_grid_sample(const row_call *c, int output)
{
    row_axis at;
    if (!rows_find(c, c->in[0], &at) || at.axis != 0 || !rows_lie(c, c->in[1], at))
        return rows_mixed(rows_reason_pairs);
    return rows_split(c, &c->out[output], at);
}
