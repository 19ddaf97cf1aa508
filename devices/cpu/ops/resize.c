#include <math.h>
#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/tensor_loops/walk.h"

/* Resize, Upsample and GridSample, in F32. Resize is separable: for each axis a table says which
 * input indices an output index is made of, with weights; an output is the sum over their product.
 * Formulas: onnx Operators.md, Resize. */

#define CANCEL_OUTPUTS 1024 /* between checks for cancellation */

typedef struct tap {
    int64_t offset; /* of the input index, in elements */
    double weight;
} tap;

typedef struct resize_axis {
    int64_t in, out, tap_count;
    double scale, roi_start, roi_end;
    tap *taps;        /* [out][tap_count] */
    bool *is_outside; /* [out]: takes the extrapolation value */
} resize_axis;

typedef enum resize_mode { RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC } resize_mode;

static resize_mode mode_of(const graph_node *node)
{
    const char *mode = graph_attribute_string(node, "mode", "nearest");
    return mode[0] == 'l' || mode[0] == 'b' ? RESIZE_LINEAR
           : mode[0] == 'c'                 ? RESIZE_CUBIC
                                            : RESIZE_NEAREST;
}

static const tensor *optional_input(const tensor *const *inputs, const graph_node *node, int i)
{
    const tensor *t = cpu_input(inputs, node, i);
    return t && tensor_count(t) > 0 ? t : NULL;
}

/* Scale of each axis: from the input, or from the sizes. */
static void find_axes(const graph_node *node, const tensor *const *inputs, const tensor *out,
                      resize_axis axes[TENSOR_RANK_MAX])
{
    const tensor *in = inputs[0];
    bool is_upsample = node->op == GRAPH_OP_UPSAMPLE;
    const tensor *roi = is_upsample ? NULL : optional_input(inputs, node, 1);
    const tensor *scales = optional_input(inputs, node, is_upsample ? 1 : 2);
    const tensor *sizes = is_upsample ? NULL : optional_input(inputs, node, 3);
    const graph_attribute *list = graph_find_attribute(node, "axes");
    const char *policy = graph_attribute_string(node, "keep_aspect_ratio_policy", "stretch");
    int listed = list ? (int)list->count : in->rank;
    double common = 0;
    for (int i = 0; i < in->rank; i++)
        axes[i] = (resize_axis){.in = in->dims[i], .out = out->dims[i], .scale = 1, .roi_end = 1};
    for (int i = 0; i < listed; i++) {
        resize_axis *a = &axes[list ? cpu_axis(list->ints[i], in->rank) : i];
        double of_size = sizes ? tensor_get_number(sizes, i) / (double)a->in : 1;
        a->scale = scales ? tensor_get_number(scales, i) : of_size;
        if (sizes && (i == 0 || (policy[4] == 'l' ? of_size < common : of_size > common)))
            common = of_size;
        if (roi) {
            a->roi_start = tensor_get_number(roi, i);
            a->roi_end = tensor_get_number(roi, i + listed);
        }
    }
    for (int i = 0; sizes && policy[0] == 'n' && i < listed; i++)
        axes[list ? cpu_axis(list->ints[i], in->rank) : i].scale = common;
}

static double coordinate(const char *how, const resize_axis *a, int64_t out)
{
    double x = (double)out, in = (double)a->in, n = (double)a->out;
    if (strcmp(how, "asymmetric") == 0)
        return x / a->scale;
    if (strcmp(how, "align_corners") == 0)
        return a->out == 1 ? 0 : x * (in - 1) / (n - 1);
    if (strcmp(how, "tf_crop_and_resize") == 0)
        return a->out > 1
                   ? a->roi_start * (in - 1) + x * (a->roi_end - a->roi_start) * (in - 1) / (n - 1)
                   : 0.5 * (a->roi_start + a->roi_end) * (in - 1);
    double half = (x + 0.5) / a->scale - 0.5;
    if (strcmp(how, "pytorch_half_pixel") == 0)
        return a->out > 1 ? half : 0;
    if (strcmp(how, "half_pixel_symmetric") == 0)
        return in / 2 * (1 - n / (a->scale * in)) + half;
    return half;
}

static double cubic(double x, double a)
{
    x = fabs(x);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static double nearest(const char *how, double x)
{
    if (strcmp(how, "floor") == 0)
        return floor(x);
    if (strcmp(how, "ceil") == 0)
        return ceil(x);
    return strcmp(how, "round_prefer_ceil") == 0 ? floor(x + 0.5) : ceil(x - 0.5);
}

/* How far a filter reaches, and the taps it needs. With antialiasing it is as wide as the step. */
static double filter_scale(const graph_node *node, const resize_axis *a)
{
    return graph_attribute_int(node, "antialias", 0) && a->scale < 1 ? a->scale : 1;
}

static int64_t tap_count_of(const graph_node *node, const resize_axis *a)
{
    resize_mode mode = mode_of(node);
    if (mode == RESIZE_NEAREST || (a->scale == 1 && a->in == a->out))
        return 1;
    double start = floor(-(mode == RESIZE_LINEAR ? 1 : 2) / filter_scale(node, a)) + 1;
    return (int64_t)(2 - 2 * start);
}

static void fill_taps(const graph_node *node, resize_axis *a, int64_t stride)
{
    bool is_upsample = node->op == GRAPH_OP_UPSAMPLE;
    const char *how =
        is_upsample ? "asymmetric"
                    : graph_attribute_string(node, "coordinate_transformation_mode", "half_pixel");
    const char *rounding =
        is_upsample ? "floor" : graph_attribute_string(node, "nearest_mode", "round_prefer_floor");
    double coefficient = (double)graph_attribute_float(node, "cubic_coeff_a", -0.75f);
    bool excludes = graph_attribute_int(node, "exclude_outside", 0) != 0;
    bool is_crop = strcmp(how, "tf_crop_and_resize") == 0;
    resize_mode mode = mode_of(node);
    double scale = filter_scale(node, a);
    for (int64_t o = 0; o < a->out; o++) {
        double x = coordinate(how, a, o), sum = 0;
        a->is_outside[o] = is_crop && (x < 0 || x > (double)(a->in - 1));
        bool is_plain = mode != RESIZE_NEAREST && a->tap_count == 1; /* an untouched axis */
        double base = is_plain                 ? (double)o
                      : mode == RESIZE_NEAREST ? nearest(rounding, x)
                                               : floor(x) - (double)(a->tap_count / 2 - 1);
        for (int64_t t = 0; t < a->tap_count; t++) {
            double at = base + (double)t, weight = 1;
            if (!is_plain && mode == RESIZE_LINEAR)
                weight = fmax(0, 1 - fabs(at - x) * scale);
            else if (!is_plain && mode == RESIZE_CUBIC)
                weight = cubic((at - x) * scale, coefficient);
            if (excludes && (at < 0 || at > (double)(a->in - 1)))
                weight = 0;
            double inside = fmin(fmax(at, 0), (double)(a->in - 1));
            a->taps[o * a->tap_count + t] = (tap){(int64_t)inside * stride, weight};
            sum += weight;
        }
        for (int64_t t = 0; t < a->tap_count && sum != 0; t++)
            a->taps[o * a->tap_count + t].weight /= sum;
    }
}

static status prepare_resize(cpu_prepare *p)
{
    const tensor *in = p->inputs[0], *out = &p->outputs[0];
    if (in->dtype != DTYPE_F32)
        return cpu_op_fail_dtype(p->node, in->dtype);
    for (int i = 1; i < p->node->input_count; i++)
        if (p->inputs[i] && tensor_count(p->inputs[i]) > 0 && !p->inputs[i]->data)
            return status_fail(STATUS_UNSUPPORTED, "input %d must be constant", i);
    resize_axis *axes = arena_allocate_zeroed(p->memory, TENSOR_RANK_MAX, sizeof *axes);
    if (!axes)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    find_axes(p->node, p->inputs, out, axes);
    int64_t strides[TENSOR_RANK_MAX];
    cpu_dense_strides(in->rank, in->dims, strides);
    for (int i = 0; i < in->rank && tensor_count(out) > 0; i++) {
        resize_axis *a = &axes[i];
        a->tap_count = tap_count_of(p->node, a);
        a->taps = arena_allocate_zeroed(p->memory, (size_t)(a->out * a->tap_count), sizeof(tap));
        a->is_outside = arena_allocate_zeroed(p->memory, (size_t)a->out, sizeof(bool));
        if (!a->taps || !a->is_outside)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
        fill_taps(p->node, a, strides[i]);
    }
    p->state = axes;
    return STATUS_OK;
}

/* The weighted sum over the taps of axes [axis, rank). */
static double sum_taps(const resize_axis *axes, int rank, int axis, const int64_t *at,
                       const float *from)
{
    if (axis == rank)
        return (double)*from;
    const resize_axis *a = &axes[axis];
    const tap *taps = &a->taps[at[axis] * a->tap_count];
    if (a->tap_count == 1)
        return sum_taps(axes, rank, axis + 1, at, from + taps[0].offset);
    double sum = 0;
    for (int64_t t = 0; t < a->tap_count; t++)
        if (taps[t].weight != 0)
            sum += taps[t].weight * sum_taps(axes, rank, axis + 1, at, from + taps[t].offset);
    return sum;
}

static status run_resize(const cpu_call *c)
{
    const resize_axis *axes = c->state;
    const tensor *in = c->inputs[0], *out = &c->outputs[0];
    float extrapolation = graph_attribute_float(c->node, "extrapolation_value", 0);
    int64_t at[TENSOR_RANK_MAX] = {0}, count = tensor_count(out);
    for (int64_t i = 0; i < count; i++) {
        status end = i % CANCEL_OUTPUTS == 0 ? cancel_check(c->cancel) : STATUS_OK;
        if (end)
            return end;
        bool is_outside = false;
        for (int d = 0; d < out->rank; d++)
            is_outside |= axes[d].is_outside[at[d]];
        ((float *)out->data)[i] =
            is_outside ? extrapolation : (float)sum_taps(axes, out->rank, 0, at, in->data);
        for (int d = out->rank - 1; d >= 0 && ++at[d] == out->dims[d]; d--)
            at[d] = 0;
    }
    return STATUS_OK;
}

/* GridSample of images [n, c, h, w] at grid [n, h', w', 2] of (x, y) in -1 .. 1. */
typedef enum grid_padding { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION } grid_padding;

typedef struct grid_sampler {
    resize_mode mode;
    grid_padding padding;
    bool aligns_corners;
    int64_t h, w;
} grid_sampler;

static double reflect(double x, double low, double high)
{
    double range = high - low;
    if (range <= 0)
        return low;
    double away = fmod(fabs(x - low), 2 * range);
    return low + (away > range ? 2 * range - away : away);
}

/* Pixel (x, y) of the plane, padded; 0 outside. */
static double pixel(const grid_sampler *g, const float *plane, double x, double y)
{
    double size[2] = {(double)g->w, (double)g->h}, at[2] = {x, y};
    for (int d = 0; d < 2; d++) {
        if (!(fabs(at[d]) < 1e15)) /* NaN and what cannot be an index */
            at[d] = g->padding == GRID_ZEROS                 ? -1
                    : at[d] > 0 && g->padding == GRID_BORDER ? size[d] - 1
                                                             : 0;
        if (g->padding == GRID_REFLECTION)
            at[d] = g->aligns_corners ? reflect(at[d], 0, size[d] - 1)
                                      : reflect(at[d], -0.5, size[d] - 0.5);
        if (g->padding == GRID_ZEROS && (at[d] < 0 || at[d] > size[d] - 1))
            return 0;
        at[d] = fmin(fmax(nearbyint(at[d]), 0), size[d] - 1);
    }
    return (double)plane[(int64_t)at[1] * g->w + (int64_t)at[0]];
}

static double sample(const grid_sampler *g, const float *plane, double x, double y)
{
    if (g->mode == RESIZE_NEAREST)
        return pixel(g, plane, nearbyint(x), nearbyint(y));
    double x0 = floor(x), y0 = floor(y), sum = 0;
    int first = g->mode == RESIZE_LINEAR ? 0 : -1, end = g->mode == RESIZE_LINEAR ? 2 : 3;
    for (int j = first; j < end; j++)
        for (int i = first; i < end; i++) {
            double dx = x - (x0 + i), dy = y - (y0 + j);
            double weight = g->mode == RESIZE_LINEAR ? (1 - fabs(dx)) * (1 - fabs(dy))
                                                     : cubic(dx, -0.75) * cubic(dy, -0.75);
            sum += weight * pixel(g, plane, x0 + i, y0 + j);
        }
    return sum;
}

static status prepare_grid_sample(cpu_prepare *p)
{
    if (p->inputs[0]->dtype != DTYPE_F32)
        return cpu_op_fail_dtype(p->node, p->inputs[0]->dtype);
    if (p->inputs[0]->rank != 4)
        return status_fail(STATUS_UNSUPPORTED, "inputs of rank %d; rank 4 is supported",
                           p->inputs[0]->rank);
    return STATUS_OK;
}

static status run_grid_sample(const cpu_call *c)
{
    const tensor *in = c->inputs[0], *grid = c->inputs[1], *out = &c->outputs[0];
    const char *padding = graph_attribute_string(c->node, "padding_mode", "zeros");
    const char *mode = graph_attribute_string(c->node, "mode", "linear");
    grid_sampler g = {.mode = mode[0] == 'n'          ? RESIZE_NEAREST
                              : strstr(mode, "cubic") ? RESIZE_CUBIC
                                                      : RESIZE_LINEAR,
                      .padding = padding[0] == 'b'   ? GRID_BORDER
                                 : padding[0] == 'r' ? GRID_REFLECTION
                                                     : GRID_ZEROS,
                      .aligns_corners = graph_attribute_int(c->node, "align_corners", 0) != 0,
                      .h = in->dims[2],
                      .w = in->dims[3]};
    int64_t points = out->dims[2] * out->dims[3];
    double w = (double)g.w, h = (double)g.h;
    for (int64_t i = 0; i < out->dims[0] * out->dims[1]; i++)
        for (int64_t p = 0; p < points; p++) {
            const float *at = (const float *)grid->data + (i / out->dims[1] * points + p) * 2;
            double x = (double)at[0], y = (double)at[1];
            x = g.aligns_corners ? (x + 1) / 2 * (w - 1) : ((x + 1) * w - 1) / 2;
            y = g.aligns_corners ? (y + 1) / 2 * (h - 1) : ((y + 1) * h - 1) / 2;
            ((float *)out->data)[i * points + p] =
                in->dims[2] > 0 && in->dims[3] > 0
                    ? (float)sample(&g, (const float *)in->data + i * g.h * g.w, x, y)
                    : 0;
        }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_RESIZE, prepare_resize, run_resize, CPU_WIDEN_FLOATS | CPU_WIDEN_BYTE, false},
    {GRAPH_OP_UPSAMPLE, prepare_resize, run_resize, CPU_WIDEN_FLOATS | CPU_WIDEN_BYTE, false},
    {GRAPH_OP_GRID_SAMPLE, prepare_grid_sample, run_grid_sample, CPU_WIDEN_FLOATS, false},
};

const cpu_op_family cpu_ops_resize = {table, sizeof table / sizeof table[0]};
