#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cpu/ops/op.h"
#include "graph/shapes/infer.h"
#include "kernels/gemm_f32.h"

/* NonMaxSuppression, RoiAlign and DeformConv (onnx Operators.md), in F32. */

static status run_non_max_suppression(const cpu_call *c)
{
    int64_t count, *rows = NULL;
    status s = graph_select_boxes(c->node, c->inputs, &rows, &count);
    if (!s && count != c->outputs[0].dims[0])
        s = status_fail(STATUS_INVALID_ARGUMENT, "%lld boxes, expected %lld", (long long)count,
                        (long long)c->outputs[0].dims[0]);
    if (!s && count > 0)
        memcpy(c->outputs[0].data, rows, (size_t)count * 3 * sizeof rows[0]);
    free(rows);
    return s;
}

/* The four pixels around a point of a plane, and their weights: zero beyond the edge. */
typedef struct corners {
    int64_t at[4];
    float weights[4];
} corners;

static corners find_corners(int64_t height, int64_t width, float y, float x)
{
    corners c = {{0}, {0}};
    float top = floorf(y), left = floorf(x);
    for (int i = 0; i < 4; i++) {
        float row = top + (float)(i / 2), column = left + (float)(i % 2);
        if (!(row >= 0 && row < (float)height && column >= 0 && column < (float)width))
            continue;
        c.at[i] = (int64_t)row * width + (int64_t)column;
        c.weights[i] = (1 - fabsf(y - row)) * (1 - fabsf(x - column));
    }
    return c;
}

typedef struct roi_shape {
    int64_t height, width, rows, columns; /* of the image, of the output */
    int64_t samples;                      /* along each axis of a bin; 0: as many as pixels */
    float scale, shift;
    bool is_max;
} roi_shape;

/* A point up to one pixel beyond the edge counts as on it; farther out it is zero. */
static float sample_roi(const roi_shape *s, const float *plane, float y, float x)
{
    if (y < -1 || y > (float)s->height || x < -1 || x > (float)s->width)
        return 0;
    y = fminf(fmaxf(y, 0), (float)(s->height - 1));
    x = fminf(fmaxf(x, 0), (float)(s->width - 1));
    corners c = find_corners(s->height, s->width, y, x);
    float parts[4], sum = 0, most = -INFINITY;
    for (int i = 0; i < 4; i++) {
        parts[i] = c.weights[i] * plane[c.at[i]];
        sum += parts[i];
        most = fmaxf(most, parts[i]);
    }
    return s->is_max ? most : sum;
}

/* One bin: the mean of its samples, or the largest. */
static float pool_bin(const roi_shape *s, const float *plane, const float start[2],
                      const float size[2], const int64_t samples[2])
{
    float sum = 0, most = -INFINITY;
    for (int64_t i = 0; i < samples[0]; i++)
        for (int64_t j = 0; j < samples[1]; j++) {
            float y = start[0] + ((float)i + 0.5f) * size[0] / (float)samples[0];
            float x = start[1] + ((float)j + 0.5f) * size[1] / (float)samples[1];
            float value = sample_roi(s, plane, y, x);
            sum += value;
            most = fmaxf(most, value);
        }
    return s->is_max ? most : sum / (float)(samples[0] * samples[1]);
}

static status pool_roi(const cpu_call *c, const roi_shape *s, int64_t index, const float *roi,
                       const float *image, int64_t channels)
{
    float *out = (float *)c->outputs[0].data + index * channels * s->rows * s->columns;
    float from[2], bin[2];
    int64_t samples[2];
    const int64_t counts[] = {s->rows, s->columns}, limits[] = {s->height, s->width};
    for (int d = 0; d < 2; d++) { /* y, x; a region is x1, y1, x2, y2 */
        from[d] = roi[1 - d] * s->scale - s->shift;
        float extent = roi[3 - d] * s->scale - s->shift - from[d];
        if (s->shift == 0)
            extent = fmaxf(extent, 1);
        bin[d] = extent / (float)counts[d];
        float wanted = s->samples > 0 ? (float)s->samples : ceilf(bin[d]);
        if (!(wanted <= 2 * (float)limits[d] + 1024))
            return status_fail(STATUS_INVALID_ARGUMENT, "region %lld is far larger than the image",
                               (long long)index);
        samples[d] = wanted > 0 ? (int64_t)wanted : 0;
    }
    if (samples[0] * samples[1] == 0) {
        memset(out, 0, (size_t)(channels * s->rows * s->columns) * sizeof *out);
        return STATUS_OK;
    }
    for (int64_t channel = 0; channel < channels; channel++)
        for (int64_t row = 0; row < s->rows; row++)
            for (int64_t column = 0; column < s->columns; column++) {
                const float start[] = {from[0] + (float)row * bin[0],
                                       from[1] + (float)column * bin[1]};
                *out++ = pool_bin(s, image + channel * s->height * s->width, start, bin, samples);
            }
    return STATUS_OK;
}

static status run_roi_align(const cpu_call *c)
{
    const tensor *x = c->inputs[0], *rois = c->inputs[1], *out = &c->outputs[0];
    const char *shift =
        graph_attribute_string(c->node, "coordinate_transformation_mode", "half_pixel");
    roi_shape s = {.height = x->dims[2],
                   .width = x->dims[3],
                   .rows = out->dims[2],
                   .columns = out->dims[3],
                   .samples = graph_attribute_int(c->node, "sampling_ratio", 0),
                   .scale = graph_attribute_float(c->node, "spatial_scale", 1),
                   .shift = shift[0] == 'h' ? 0.5f : 0,
                   .is_max = graph_attribute_string(c->node, "mode", "avg")[0] == 'm'};
    const int64_t *images = c->inputs[2]->data;
    int64_t channels = x->dims[1], image = channels * s.height * s.width;
    for (int64_t i = 0; i < rois->dims[0]; i++) {
        if (images[i] < 0 || images[i] >= x->dims[0])
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "region %lld is of image %lld; there are %lld", (long long)i,
                               (long long)images[i], (long long)x->dims[0]);
        status end = cancel_check(c->cancel);
        if (!end && tensor_count(out) > 0 && image > 0)
            end = pool_roi(c, &s, i, (const float *)rois->data + 4 * i,
                           (const float *)x->data + images[i] * image, channels);
        if (end)
            return end;
    }
    return STATUS_OK;
}

/* Samples of one group of channels, as rows of [channel, tap] and columns of output pixels. */
typedef struct deform_state {
    int64_t group, offset_groups, strides[2], pads[2], dilations[2];
} deform_state;

static int64_t listed(const graph_node *node, const char *name, int i, int64_t otherwise)
{
    const graph_attribute *a = graph_find_attribute(node, name);
    return a && (size_t)i < a->count ? a->ints[i] : otherwise;
}

static status prepare_deform_conv(cpu_prepare *p)
{
    const tensor *x = p->inputs[0], *w = p->inputs[1], *out = p->outputs;
    if (x->dtype != DTYPE_F32)
        return cpu_op_fail_dtype(p->node, x->dtype);
    deform_state *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    s->group = graph_attribute_int(p->node, "group", 1);
    s->offset_groups = graph_attribute_int(p->node, "offset_group", 1);
    for (int d = 0; d < 2; d++) {
        s->strides[d] = listed(p->node, "strides", d, 1);
        s->pads[d] = listed(p->node, "pads", d, 0);
        s->dilations[d] = listed(p->node, "dilations", d, 1);
    }
    p->scratch_bytes = (size_t)(w->dims[1] * w->dims[2] * w->dims[3]) *
                       (size_t)(out->dims[2] * out->dims[3]) * sizeof(float);
    p->state = s;
    return STATUS_OK;
}

/* Row [tap] of one channel: the channel's samples at each output pixel. */
static void sample_taps(const cpu_call *c, const deform_state *s, int64_t image, int64_t channel,
                        float *to)
{
    const tensor *x = c->inputs[0], *w = c->inputs[1], *out = &c->outputs[0];
    const tensor *mask = cpu_input(c->inputs, c->node, 4);
    int64_t taps = w->dims[2] * w->dims[3], pixels = out->dims[2] * out->dims[3];
    int64_t offset_group = channel / (x->dims[1] / s->offset_groups);
    const float *plane =
        (const float *)x->data + (image * x->dims[1] + channel) * x->dims[2] * x->dims[3];
    int64_t first = (image * s->offset_groups + offset_group) * taps;
    const float *offsets = (const float *)c->inputs[2]->data + first * 2 * pixels;
    const float *factors = mask ? (const float *)mask->data + first * pixels : NULL;
    for (int64_t tap = 0; tap < taps; tap++)
        for (int64_t p = 0; p < pixels; p++, to++) {
            float y = (float)(p / out->dims[3] * s->strides[0] - s->pads[0] +
                              tap / w->dims[3] * s->dilations[0]) +
                      offsets[2 * tap * pixels + p];
            float column = (float)(p % out->dims[3] * s->strides[1] - s->pads[1] +
                                   tap % w->dims[3] * s->dilations[1]) +
                           offsets[(2 * tap + 1) * pixels + p];
            corners k = find_corners(x->dims[2], x->dims[3], y, column);
            *to = 0;
            for (int i = 0; i < 4; i++)
                *to += k.weights[i] * plane[k.at[i]];
            if (factors)
                *to *= factors[tap * pixels + p];
        }
}

static status run_deform_conv(const cpu_call *c)
{
    const deform_state *s = c->state;
    const tensor *x = c->inputs[0], *w = c->inputs[1], *out = &c->outputs[0];
    const tensor *bias = cpu_input(c->inputs, c->node, 3);
    int64_t taps = w->dims[2] * w->dims[3], pixels = out->dims[2] * out->dims[3];
    int64_t channels = w->dims[1], made = w->dims[0] / s->group, depth = channels * taps;
    if (tensor_count(out) == 0 || tensor_count(x) == 0)
        return STATUS_OK;
    for (int64_t i = 0; i < x->dims[0] * s->group; i++) {
        int64_t image = i / s->group, group = i % s->group;
        status end = cancel_check(c->cancel);
        if (end)
            return end;
        for (int64_t channel = 0; channel < channels; channel++)
            sample_taps(c, s, image, group * channels + channel,
                        (float *)c->scratch + channel * taps * pixels);
        float *to = (float *)out->data + (image * w->dims[0] + group * made) * pixels;
        c->kernels->gemm_unpacked_f32(
            &(gemm_f32_unpacked){.m = (size_t)made,
                                 .n = (size_t)pixels,
                                 .k = (size_t)depth,
                                 .a = (const float *)w->data + group * made * depth,
                                 .a_stride = (size_t)depth,
                                 .b = c->scratch,
                                 .b_row_stride = (size_t)pixels,
                                 .b_column_stride = 1,
                                 .c = to,
                                 .c_stride = (size_t)pixels});
        for (int64_t k = 0; bias && k < made; k++)
            c->kernels->add_f32(to + k * pixels, 1, (const float *)bias->data + group * made + k, 0,
                                to + k * pixels, (size_t)pixels);
    }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_DEFORM_CONV, prepare_deform_conv, run_deform_conv, CPU_WIDEN_FLOATS, false},
    {GRAPH_OP_NON_MAX_SUPPRESSION, NULL, run_non_max_suppression, 0, false},
    {GRAPH_OP_ROI_ALIGN, NULL, run_roi_align, CPU_WIDEN_FLOATS, false},
};

const cpu_op_family cpu_ops_detect = {table, sizeof table / sizeof table[0]};
