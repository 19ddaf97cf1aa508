#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/quantise/internal.h"

/* Nodes between fused convolutions that run with the channels last as well, so that nothing is
 * transposed there and back: elementwise ones, those along an axis (Concat, Split, Softmax), and
 * those with numbers for each axis (Resize, Pad, reductions). */

#define OPERANDS_MAX 9

bool fusion_is_elementwise(graph_op op)
{
    switch (op) {
    case GRAPH_OP_RELU:
    case GRAPH_OP_SIGMOID:
    case GRAPH_OP_TANH:
    case GRAPH_OP_HARD_SWISH:
    case GRAPH_OP_HARD_SIGMOID:
    case GRAPH_OP_LEAKY_RELU:
    case GRAPH_OP_ELU:
    case GRAPH_OP_CELU:
    case GRAPH_OP_SELU:
    case GRAPH_OP_PRELU:
    case GRAPH_OP_CLIP:
    case GRAPH_OP_GELU:
    case GRAPH_OP_MISH:
    case GRAPH_OP_SOFTPLUS:
    case GRAPH_OP_SOFTSIGN:
    case GRAPH_OP_THRESHOLDED_RELU:
    case GRAPH_OP_RECIPROCAL:
    case GRAPH_OP_FLOOR:
    case GRAPH_OP_CEIL:
    case GRAPH_OP_ROUND:
    case GRAPH_OP_SIGN:
    case GRAPH_OP_LOG:
    case GRAPH_OP_POW:
    case GRAPH_OP_ABS:
    case GRAPH_OP_NEG:
    case GRAPH_OP_SQRT:
    case GRAPH_OP_EXP:
    case GRAPH_OP_ERF:
    case GRAPH_OP_ADD:
    case GRAPH_OP_SUB:
    case GRAPH_OP_MUL:
    case GRAPH_OP_DIV:
    case GRAPH_OP_MAX:
    case GRAPH_OP_MIN:
    case GRAPH_OP_SUM:
    case GRAPH_OP_MEAN:
        return true;
    default:
        return false;
    }
}

/* A constant that broadcasts the same way with the channels last: one number, or one per channel.
 * Writes its dims there. */
static bool moves_along(const fusion *w, graph_value_index v, int *rank, int64_t dims[4])
{
    int from = fusion_rank(w, v);
    *rank = 0;
    if (fusion_count(w, v) == 1)
        return true;
    if (from < 3 || from > 4 || fusion_count(w, v) != fusion_dim(w, v, from - 3))
        return false;
    *rank = 1;
    dims[0] = fusion_count(w, v);
    return true;
}

static bool is_computed_image(const fusion *w, graph_value_index v)
{
    return !w->g->values[v].constant && fusion_rank(w, v) == 4;
}

/* Whether an elementwise node runs with the channels last, because its inputs are there: the large
 * ones, where others are repeated (the factors of channels). */
static bool is_elementwise_last(const fusion *w, const graph_node *n)
{
    bool has_last = false, has_part_last = false, has_first = false;
    int rank;
    int64_t dims[4];
    if (!fusion_is_elementwise(n->op) || n->output_count != 1 || fusion_rank(w, n->outputs[0]) != 4)
        return false;
    for (int i = 0; i < n->input_count; i++) {
        graph_value_index v = n->inputs[i];
        if (v == GRAPH_NO_VALUE)
            continue;
        bool is_whole = fusion_count(w, v) == fusion_count(w, n->outputs[0]);
        has_last |= is_whole && fusion_is_only_last(w, v);
        has_part_last |= !is_whole && fusion_is_only_last(w, v);
        has_first |= is_whole && w->made_values[v][LAYOUT_LAST] == GRAPH_NO_VALUE;
        if (!is_computed_image(w, v) &&
            !(w->g->values[v].constant && moves_along(w, v, &rank, dims)))
            return false;
    }
    return (has_last || (has_part_last && !has_first)) && n->input_count <= OPERANDS_MAX;
}

static void write_elementwise(fusion *w, const graph_node *n)
{
    graph_value_index in[OPERANDS_MAX];
    for (int i = 0; i < n->input_count; i++) {
        graph_value_index v = n->inputs[i];
        int rank;
        int64_t dims[4];
        if (v == GRAPH_NO_VALUE || is_computed_image(w, v)) {
            in[i] = fusion_get_value(w, v, LAYOUT_LAST);
            continue;
        }
        bool is_moved = moves_along(w, v, &rank, dims);
        assert(is_moved);
        tensor t = *w->g->values[v].constant;
        t.rank = rank;
        t.dims[0] = rank ? dims[0] : 1;
        in[i] = graph_add_constant(w->made, NULL, &t);
    }
    fusion_write_node(w, n->op, n->name, n->input_count, in, n->outputs[0], LAYOUT_LAST,
                      n->attribute_count, n->attributes);
}

/* Where an axis of [N,C,H,W] is in [N,H,W,C]. */
static int64_t axis_last(int64_t axis)
{
    static const int64_t to[4] = {0, 3, 1, 2};
    return to[(axis + 4) % 4];
}

/* All operands that are images are computed ones, and one at least is only there. */
static bool has_images_last(const fusion *w, const graph_node *n, int images)
{
    bool has_last = false;
    for (int i = 0; i < images; i++) {
        if (n->inputs[i] == GRAPH_NO_VALUE || !is_computed_image(w, n->inputs[i]))
            return false;
        has_last |= fusion_is_only_last(w, n->inputs[i]);
    }
    return has_last;
}

static bool is_along_axis(const fusion *w, const graph_node *n)
{
    bool is_concat = n->op == GRAPH_OP_CONCAT;
    if (!is_concat && n->op != GRAPH_OP_SPLIT && n->op != GRAPH_OP_SOFTMAX)
        return false;
    for (int i = 0; i < n->output_count; i++)
        if (n->outputs[i] != GRAPH_NO_VALUE && fusion_rank(w, n->outputs[i]) != 4)
            return false;
    return has_images_last(w, n, is_concat ? n->input_count : 1);
}

static status write_along_axis(fusion *w, const graph_node *n)
{
    int count = n->input_count, all = n->attribute_count;
    bool is_concat = n->op == GRAPH_OP_CONCAT;
    graph_value_index *in = calloc((size_t)(count + n->output_count) + 1, sizeof in[0]);
    graph_attribute *attributes = calloc((size_t)all + 1, sizeof attributes[0]);
    if (!in || !attributes) {
        free(in);
        free(attributes);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to fuse \"%s\"", w->g->name);
    }
    for (int i = 0; i < count; i++)
        in[i] = fusion_get_value(w, n->inputs[i], is_concat || i == 0 ? LAYOUT_LAST : LAYOUT_FIRST);
    int64_t axis = graph_attribute_int(n, "axis", n->op == GRAPH_OP_SOFTMAX ? -1 : 0);
    int made = 0;
    for (int i = 0; i < all; i++)
        if (strcmp(n->attributes[i].name, "axis") != 0)
            attributes[made++] = n->attributes[i];
    attributes[made++] = graph_make_int("axis", axis_last(axis));
    graph_value_index *out = in + count;
    for (int i = 0; i < n->output_count; i++) {
        out[i] = GRAPH_NO_VALUE;
        if (n->outputs[i] == GRAPH_NO_VALUE)
            continue;
        out[i] = graph_add_value(w->made, NULL);
        fusion_describe(w, out[i], n->outputs[i], LAYOUT_LAST);
        w->made_values[n->outputs[i]][LAYOUT_LAST] = out[i];
    }
    graph_add_node_to(w->made, n->op, n->name, count, in, n->output_count, out, made, attributes);
    free(in);
    free(attributes);
    return STATUS_OK;
}

/* A constant with one number per axis (or `sets` of them), or absent. */
static bool is_per_axis(const fusion *w, graph_value_index v, int sets)
{
    return v == GRAPH_NO_VALUE || fusion_count(w, v) == 0 ||
           (fusion_constant(w, v) && fusion_count(w, v) == 4 * sets);
}

/* Resize by scales or sizes of all axes; Pad of all axes; reductions that keep their axes. */
static bool is_by_axes(const fusion *w, const graph_node *n)
{
    if (n->output_count != 1 || n->input_count < 1 || fusion_rank(w, n->outputs[0]) != 4 ||
        !has_images_last(w, n, 1))
        return false;
    switch (n->op) {
    case GRAPH_OP_RESIZE:
        return !graph_find_attribute(n, "axes") &&
               strcmp(graph_attribute_string(n, "coordinate_transformation_mode", ""),
                      "tf_crop_and_resize") != 0 &&
               is_per_axis(w, graph_input_of(n, 2), 1) && is_per_axis(w, graph_input_of(n, 3), 1);
    case GRAPH_OP_PAD:
        return graph_input_of(n, 1) != GRAPH_NO_VALUE && graph_input_of(n, 3) == GRAPH_NO_VALUE &&
               fusion_count(w, n->inputs[1]) == 8 && is_per_axis(w, n->inputs[1], 2);
    case GRAPH_OP_REDUCE_MEAN:
    case GRAPH_OP_REDUCE_MAX:
    case GRAPH_OP_REDUCE_SUM:
        return graph_attribute_int(n, "keepdims", 1) && graph_input_of(n, 1) != GRAPH_NO_VALUE &&
               fusion_constant(w, n->inputs[1]) && fusion_count(w, n->inputs[1]) > 0;
    default:
        return false;
    }
}

/* Constant `v` for the other order of axes: its numbers moved, or, where they are axes, renamed. */
static graph_value_index write_moved(fusion *w, graph_value_index v, bool holds_axes)
{
    const tensor *t = fusion_constant(w, v);
    tensor moved;
    if (!t || tensor_count(t) == 0)
        return fusion_get_value(w, v, LAYOUT_FIRST);
    if (tensor_allocate(&moved, &w->made->memory, t->dtype, t->rank, t->dims))
        return graph_lack_memory(w->made);
    for (int64_t i = 0; i < tensor_count(t); i++) {
        int64_t to = holds_axes ? i : i / 4 * 4 + axis_last(i % 4);
        tensor_set_number(&moved, to,
                          holds_axes ? (double)axis_last(tensor_get_integer(t, i))
                                     : tensor_get_number(t, i));
    }
    return graph_add_constant(w->made, NULL, &moved);
}

static void write_by_axes(fusion *w, const graph_node *n)
{
    graph_value_index in[OPERANDS_MAX];
    bool is_resize = n->op == GRAPH_OP_RESIZE, is_pad = n->op == GRAPH_OP_PAD;
    assert(n->input_count <= OPERANDS_MAX);
    in[0] = fusion_get_value(w, n->inputs[0], LAYOUT_LAST);
    for (int i = 1; i < n->input_count; i++) {
        bool is_moved = is_resize ? i >= 2 : i == 1;
        in[i] = is_resize && i == 1 ? GRAPH_NO_VALUE /* roi: not read */
                : is_moved          ? write_moved(w, n->inputs[i], !is_resize && !is_pad)
                                    : fusion_get_value(w, n->inputs[i], LAYOUT_FIRST);
    }
    fusion_write_node(w, n->op, n->name, n->input_count, in, n->outputs[0], LAYOUT_LAST,
                      n->attribute_count, n->attributes);
}

/* DynamicQuantizeLinear: one scale for the whole tensor, wherever its channels are. */
static bool is_quantised_last(const fusion *w, const graph_node *n)
{
    return n->op == GRAPH_OP_DYNAMIC_QUANTIZE_LINEAR && n->outputs[0] != GRAPH_NO_VALUE &&
           fusion_rank(w, n->outputs[0]) == 4 && has_images_last(w, n, 1);
}

static void write_quantised(fusion *w, const graph_node *n)
{
    graph_value_index in = fusion_get_value(w, n->inputs[0], LAYOUT_LAST), out[3];
    assert(n->output_count <= 3);
    for (int i = 0; i < n->output_count; i++) {
        channel_layout layout = i == 0 ? LAYOUT_LAST : LAYOUT_FIRST;
        out[i] = n->outputs[i];
        if (out[i] == GRAPH_NO_VALUE)
            continue;
        out[i] = graph_add_value(w->made, NULL);
        fusion_describe(w, out[i], n->outputs[i], layout);
        w->made_values[n->outputs[i]][layout] = out[i];
    }
    graph_add_node_to(w->made, n->op, n->name, 1, &in, n->output_count, out, 0, NULL);
}

static bool is_normalised_last(const fusion *w, const graph_node *n)
{
    bool fits = n->op == GRAPH_OP_BATCH_NORMALIZATION && n->input_count == 5 &&
                graph_attribute_int(n, "training_mode", 0) == 0 &&
                fusion_rank(w, n->inputs[0]) == 4 && has_images_last(w, n, 1);
    for (int i = 1; fits && i < 5; i++) {
        const tensor *t = fusion_constant(w, n->inputs[i]);
        fits = t && t->dtype == DTYPE_F32 && tensor_count(t) == fusion_dim(w, n->inputs[0], 1);
    }
    for (int i = 1; fits && i < n->output_count; i++)
        fits = n->outputs[i] == GRAPH_NO_VALUE;
    return fits;
}

/* x * factor + shift, as folded into a convolution (graph/specialise/fuse_batch_norm.c). */
static status write_normalised(fusion *w, const graph_node *n)
{
    const float *c[5] = {NULL};
    int64_t channels = fusion_dim(w, n->inputs[0], 1);
    double epsilon = (double)graph_attribute_float(n, "epsilon", 1e-5f);
    tensor factor, shift;
    status s = tensor_allocate(&factor, &w->made->memory, DTYPE_F32, 1, &channels);
    if (!s)
        s = tensor_allocate(&shift, &w->made->memory, DTYPE_F32, 1, &channels);
    if (s)
        return s;
    for (int i = 1; i < 5; i++) /* scale, bias, mean, variance */
        c[i] = fusion_constant(w, n->inputs[i])->data;
    for (int64_t m = 0; m < channels; m++) {
        double f = (double)c[1][m] / sqrt((double)c[4][m] + epsilon);
        ((float *)factor.data)[m] = (float)f;
        ((float *)shift.data)[m] = (float)((double)c[2][m] - (double)c[3][m] * f);
    }
    graph_value_index in[2] = {fusion_get_value(w, n->inputs[0], LAYOUT_LAST),
                               graph_add_constant(w->made, NULL, &factor)};
    graph_value_index product = graph_add_value(w->made, NULL);
    fusion_describe(w, product, n->outputs[0], LAYOUT_LAST);
    graph_add_node_to(w->made, GRAPH_OP_MUL, n->name, 2, in, 1, &product, 0, NULL);
    in[0] = product;
    in[1] = graph_add_constant(w->made, NULL, &shift);
    fusion_write_node(w, GRAPH_OP_ADD, n->name, 2, in, n->outputs[0], LAYOUT_LAST, 0, NULL);
    return STATUS_OK;
}

bool fusion_runs_last(const fusion *w, const graph_node *n)
{
    return is_elementwise_last(w, n) || is_along_axis(w, n) || is_by_axes(w, n) ||
           is_quantised_last(w, n) || is_normalised_last(w, n);
}

status fusion_write_last(fusion *w, const graph_node *n)
{
    if (is_along_axis(w, n))
        return write_along_axis(w, n);
    if (is_normalised_last(w, n))
        return write_normalised(w, n);
    if (is_by_axes(w, n))
        write_by_axes(w, n);
    else if (is_quantised_last(w, n))
        write_quantised(w, n);
    else
        write_elementwise(w, n);
    return STATUS_OK;
}
