#include <math.h>
#include <string.h>

#include "devices/cpu/ops/split.h"
#include "devices/cpu/tensor_loops/walk.h"
#include "kernels/activation.h"
#include "kernels/lines.h"

/* Resize and Upsample, in F32. Resizing is separable: for each axis a table says which
 * input indices an output index is made of, with weights; an output is the sum over their product.
 * With the channels last, an output pixel is a weighted sum of input pixels; with the channels
 * first, rows are blended, then resized; or resized, then blended, where that is less. Formulas:
 * onnx Operators.md, Resize. */

#define PIECE 16384                        /* outputs that one thread computes at a time */
#define INNER_MIN 4                        /* shorter runs are not blended as rows */
#define PLANE_BYTES_MAX ((int64_t)1 << 20) /* of resized rows that wait to be blended */

typedef struct tap {
    int64_t offset; /* of the input index, in elements */
    double weight;
} tap;

typedef struct resize_axis {
    int64_t in, out, tap_count, stride;
    double scale, roi_start, roi_end;
    tap *taps;        /* [out][tap_count] */
    bool *is_outside; /* [out]: takes the extrapolation value */
} resize_axis;

typedef struct resize_state {
    resize_axis axes[TENSOR_RANK_MAX];
    int row_axis;
    bool resizes_rows;
    int64_t inner, in_row, out_row;
    int64_t tap_count; /* of all axes before row_axis */
    int64_t times;     /* each element of a row, one after the other; 0: row_index says which */
    int64_t row_times; /* the same of the rows of a plane, where they are copied */
    bool has_outside;  /* some elements of a row are */
    /* Of row_axis, for gather_sum_f32: [tap][out_row]; no weights: all are 1. */
    int32_t *row_index;
    float *row_weights;
    bool
        are_rows_first; /* the rows of a plane (row_axis - 1, row_axis) are resized, then blended */
    bool are_rows_copied; /* then nothing is blended: each row of the result is one resized row */
} resize_state;

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

static void fill_taps(const graph_node *node, resize_axis *a)
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
            a->taps[o * a->tap_count + t] = (tap){(int64_t)inside * a->stride, weight};
            sum += weight;
        }
        for (int64_t t = 0; t < a->tap_count && sum != 0; t++)
            a->taps[o * a->tap_count + t].weight /= sum;
    }
}

/* Whether the axis is as it was. */
static bool is_untouched(const resize_axis *a)
{
    for (int64_t o = 0; o < a->out; o++)
        if (a->tap_count != 1 || a->in != a->out || a->is_outside[o] || a->taps[o].weight != 1 ||
            a->taps[o].offset != o * a->stride)
            return false;
    return true;
}

/* Axes [0, row_axis) are blended as rows of `row` input elements; then, where the channels are
 * first, axis row_axis is resized within the row. Behind the last resized axis lie `inner`
 * elements. */
static void find_rows(resize_state *s, const tensor *out)
{
    int last = -1;
    for (int i = 0; i < out->rank; i++)
        last = is_untouched(&s->axes[i]) ? last : i;
    s->inner = cpu_dims_product(out->dims, last + 1, out->rank);
    s->resizes_rows = last >= 0 && s->inner < INNER_MIN;
    s->row_axis = s->resizes_rows ? last : last + 1;
    s->in_row = s->resizes_rows ? s->axes[last].in * s->inner : s->inner;
    s->out_row = s->resizes_rows ? s->axes[last].out * s->inner : s->inner;
    s->tap_count = 1;
    for (int i = 0; i < s->row_axis; i++)
        s->tap_count *= s->axes[i].tap_count;
}

/* The taps of row_axis, one after the other. */
static status fill_row_taps(cpu_prepare *p, resize_state *s)
{
    const resize_axis *a = &s->axes[s->row_axis];
    size_t count = (size_t)(a->tap_count * s->out_row);
    s->row_index = arena_allocate(p->memory, count * sizeof *s->row_index);
    float *weights = arena_allocate(p->memory, count * sizeof *weights);
    if (!s->row_index || !weights)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    bool are_ones = a->tap_count == 1;
    for (int64_t x = 0; x < a->out; x++)
        for (int64_t t = 0; t < a->tap_count; t++) {
            tap from = a->taps[x * a->tap_count + t];
            are_ones &= from.weight == 1;
            for (int64_t i = 0; i < s->inner; i++) {
                int64_t to = t * s->out_row + x * s->inner + i;
                s->row_index[to] = (int32_t)(from.offset + i);
                weights[to] = (float)from.weight;
            }
        }
    s->row_weights = are_ones ? NULL : weights;
    return STATUS_OK;
}

/* How often an axis repeats each index, or 0. */
static int64_t times_of(const resize_axis *a)
{
    if (a->tap_count != 1 || a->in == 0 || a->out % a->in != 0)
        return 0;
    int64_t times = a->out / a->in;
    for (int64_t x = 0; x < a->out; x++)
        if (a->is_outside[x] || a->taps[x].weight != 1 ||
            a->taps[x].offset != x / times * a->stride)
            return 0;
    return times;
}

/* Resized first, a row is resized once, not for each result that it is blended into. */
static bool find_order(const resize_state *s)
{
    if (s->row_axis < 1)
        return false;
    const resize_axis *y = &s->axes[s->row_axis - 1];
    if (y->in >= y->out || y->in * s->out_row * (int64_t)sizeof(float) > PLANE_BYTES_MAX)
        return false;
    for (int i = 0; i + 1 < s->row_axis; i++)
        if (!is_untouched(&s->axes[i]))
            return false;
    return true;
}

/* Each output index is one input index, or outside. */
static bool is_nearest(const resize_axis *a)
{
    for (int64_t o = 0; o < a->out; o++)
        if (a->tap_count != 1 || a->taps[o].weight != 1)
            return false;
    return true;
}

static status prepare_rows(cpu_prepare *p, resize_state *s)
{
    if (s->in_row > INT32_MAX)
        return status_fail(STATUS_UNSUPPORTED, "rows of %lld elements", (long long)s->in_row);
    const resize_axis *x = &s->axes[s->row_axis];
    s->times = s->inner == 1 ? times_of(x) : 0;
    for (int64_t i = 0; i < x->out; i++)
        s->has_outside |= x->is_outside[i];
    status result = s->times ? STATUS_OK : fill_row_taps(p, s);
    s->are_rows_first = !result && find_order(s);
    s->are_rows_copied = s->are_rows_first && is_nearest(&s->axes[s->row_axis - 1]);
    s->row_times = s->are_rows_copied && s->times ? times_of(&s->axes[s->row_axis - 1]) : 0;
    p->part_bytes += (size_t)s->in_row * sizeof(float);
    if (s->are_rows_first && !s->are_rows_copied)
        p->part_bytes += (size_t)(s->axes[s->row_axis - 1].in * s->out_row) * sizeof(float);
    return result;
}

static status prepare_resize(cpu_prepare *p)
{
    const tensor *in = p->inputs[0], *out = &p->outputs[0];
    if (in->dtype != DTYPE_F32)
        return cpu_op_fail_dtype(p->node, in->dtype);
    for (int i = 1; i < p->node->input_count; i++)
        if (p->inputs[i] && tensor_count(p->inputs[i]) > 0 && !p->inputs[i]->data)
            return status_fail(STATUS_UNSUPPORTED, "input %d must be constant", i);
    resize_state *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    p->state = s;
    if (tensor_count(out) == 0)
        return STATUS_OK;
    find_axes(p->node, p->inputs, out, s->axes);
    int64_t strides[TENSOR_RANK_MAX];
    cpu_dense_strides(in->rank, in->dims, strides);
    for (int i = 0; i < in->rank; i++) {
        resize_axis *a = &s->axes[i];
        a->stride = strides[i];
        a->tap_count = tap_count_of(p->node, a);
        a->taps = arena_allocate_zeroed(p->memory, (size_t)(a->out * a->tap_count), sizeof(tap));
        a->is_outside = arena_allocate_zeroed(p->memory, (size_t)a->out, sizeof(bool));
        if (!a->taps || !a->is_outside)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
        fill_taps(p->node, a);
    }
    find_rows(s, out);
    p->part_bytes = cpu_scratch_round((size_t)s->tap_count * sizeof(float *)) +
                    cpu_scratch_round((size_t)s->tap_count * sizeof(float));
    return s->resizes_rows ? prepare_rows(p, s) : STATUS_OK;
}

/* The input rows that output row `at` is made of, with their weights; returns how many. */
static size_t collect_rows(const resize_state *s, const int64_t *at, const float *in,
                           const float **rows, float *weights)
{
    size_t count = 1;
    rows[0] = in;
    weights[0] = 1;
    for (int d = 0; d < s->row_axis; d++) {
        const resize_axis *a = &s->axes[d];
        const tap *taps = &a->taps[at[d] * a->tap_count];
        size_t made = count;
        for (int64_t t = a->tap_count - 1; t >= 0; t--) { /* tap 0 last: it is written in place */
            if (t > 0 && taps[t].weight == 0)
                continue;
            size_t to = t > 0 ? made : 0;
            for (size_t i = 0; i < count; i++) {
                rows[to + i] = rows[i] + taps[t].offset;
                weights[to + i] = weights[i] * (float)taps[t].weight;
            }
            made += t > 0 ? count : 0;
        }
        count = made;
    }
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) { /* no weight, no NaN */
        rows[kept] = rows[i];
        weights[kept] = weights[i];
        kept += weights[i] != 0;
    }
    return kept;
}

/* Rows whose elements repeat, each `row_times` times. */
static void repeat_rows(const cpu_call *c, const float *in, size_t rows, size_t row_times,
                        float *out)
{
    const resize_state *s = c->state;
    c->kernels->repeat_plane(&(repeat_plane){.element_bytes = sizeof *in,
                                             .rows = rows,
                                             .row_times = row_times,
                                             .columns = (size_t)s->axes[s->row_axis].in,
                                             .times = (size_t)s->times,
                                             .in = in,
                                             .out = out});
}

/* Axis row_axis of one row. */
static void resize_row(const cpu_call *c, const float *row, float extrapolation, float *out)
{
    const resize_state *s = c->state;
    const resize_axis *a = &s->axes[s->row_axis];
    if (s->times) {
        repeat_rows(c, row, 1, 1, out);
        return;
    }
    c->kernels->gather_sum_f32(&(gather_sum_f32){.taps = (size_t)a->tap_count,
                                                 .count = (size_t)s->out_row,
                                                 .index = s->row_index,
                                                 .weights = s->row_weights,
                                                 .row = row,
                                                 .out = out});
    for (int64_t x = 0; s->has_outside && x < a->out; x++)
        for (int64_t i = 0; a->is_outside[x] && i < s->inner; i++)
            out[x * s->inner + i] = extrapolation;
}

static void run_row(const cpu_call *c, void *memory, const int64_t *at, float extrapolation,
                    float *out)
{
    const resize_state *s = c->state;
    const float **rows = memory;
    float *weights =
        (float *)((char *)memory + cpu_scratch_round((size_t)s->tap_count * sizeof *rows));
    float *blended =
        (float *)((char *)weights + cpu_scratch_round((size_t)s->tap_count * sizeof *weights));
    bool is_outside = false;
    for (int d = 0; d < s->row_axis; d++)
        is_outside |= s->axes[d].is_outside[at[d]];
    for (int64_t i = 0; is_outside && i < s->out_row; i++)
        out[i] = extrapolation;
    if (is_outside)
        return;
    size_t count = collect_rows(s, at, c->inputs[0]->data, rows, weights);
    bool is_copy = count == 1 && weights[0] == 1;
    float *to = s->resizes_rows ? blended : out;
    if (!is_copy)
        c->kernels->weighted_rows_f32(&(weighted_rows_f32){.taps = count,
                                                           .count = (size_t)s->in_row,
                                                           .rows = rows,
                                                           .weights = weights,
                                                           .out = to});
    else if (!s->resizes_rows)
        memcpy(out, rows[0], (size_t)s->out_row * sizeof *out);
    if (s->resizes_rows)
        resize_row(c, is_copy ? rows[0] : blended, extrapolation, out);
}

typedef struct resize_run {
    const cpu_call *call;
    int64_t rows; /* of a unit */
} resize_run;

static void run_some_rows(const void *context, void *memory, size_t unit)
{
    const resize_run *r = context;
    const cpu_call *c = r->call;
    const resize_state *s = c->state;
    const tensor *out = &c->outputs[0];
    float extrapolation = graph_attribute_float(c->node, "extrapolation_value", 0);
    int64_t at[TENSOR_RANK_MAX] = {0}, row = (int64_t)unit * r->rows, left = row;
    int64_t end = tensor_count(out) / s->out_row;
    end = end - row < r->rows ? end : row + r->rows;
    for (int d = s->row_axis - 1; d >= 0; d--) {
        at[d] = left % out->dims[d];
        left /= out->dims[d];
    }
    for (; row < end && !cancel_check(c->cancel); row++) {
        run_row(c, memory, at, extrapolation, (float *)out->data + row * s->out_row);
        for (int d = s->row_axis - 1; d >= 0 && ++at[d] == out->dims[d]; d--)
            at[d] = 0;
    }
}

/* Result row y of a plane whose rows are resized. */
static void blend_row(const cpu_call *c, const float *resized, int64_t y, const float **rows,
                      float *weights, float *out)
{
    const resize_state *s = c->state;
    const resize_axis *a = &s->axes[s->row_axis - 1];
    size_t count = 0;
    for (int64_t t = 0; t < a->tap_count; t++) {
        tap from = a->taps[y * a->tap_count + t];
        if (from.weight == 0)
            continue;
        rows[count] = resized + from.offset / a->stride * s->out_row;
        weights[count++] = (float)from.weight;
    }
    if (count == 1 && weights[0] == 1)
        memcpy(out, rows[0], (size_t)s->out_row * sizeof *out);
    else
        c->kernels->weighted_rows_f32(&(weighted_rows_f32){.taps = count,
                                                           .count = (size_t)s->out_row,
                                                           .rows = rows,
                                                           .weights = weights,
                                                           .out = out});
}

static void fill_line(float *out, int64_t count, float x)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = x;
}

/* A plane of rows that are not blended: one that is the same as the one before is copied. */
static void copy_plane_rows(const cpu_call *c, const float *in, float extrapolation, float *out)
{
    const resize_state *s = c->state;
    const resize_axis *a = &s->axes[s->row_axis - 1];
    for (int64_t y = 0; y < a->out; y++, out += s->out_row) {
        if (a->is_outside[y])
            fill_line(out, s->out_row, extrapolation);
        else if (y > 0 && !a->is_outside[y - 1] && a->taps[y].offset == a->taps[y - 1].offset)
            memcpy(out, out - s->out_row, (size_t)s->out_row * sizeof *out);
        else
            resize_row(c, in + a->taps[y].offset, extrapolation, out);
    }
}

/* Planes first .. first + count - 1. */
static void run_planes(const cpu_call *c, void *memory, size_t first, size_t count)
{
    const resize_state *s = c->state;
    const resize_axis *a = &s->axes[s->row_axis - 1];
    float extrapolation = graph_attribute_float(c->node, "extrapolation_value", 0);
    const float **rows = memory;
    float *weights =
        (float *)((char *)memory + cpu_scratch_round((size_t)s->tap_count * sizeof *rows));
    float *resized =
        (float *)((char *)weights + cpu_scratch_round((size_t)s->tap_count * sizeof *weights));
    for (size_t i = first; i < first + count && !cancel_check(c->cancel); i++) {
        const float *in = (const float *)c->inputs[0]->data + (int64_t)i * a->in * s->in_row;
        float *out = (float *)c->outputs[0].data + (int64_t)i * a->out * s->out_row;
        if (s->row_times) {
            repeat_rows(c, in, (size_t)a->in, (size_t)s->row_times, out);
            continue;
        }
        if (s->are_rows_copied) {
            copy_plane_rows(c, in, extrapolation, out);
            continue;
        }
        for (int64_t y = 0; y < a->in; y++)
            resize_row(c, in + y * s->in_row, extrapolation, resized + y * s->out_row);
        for (int64_t y = 0; y < a->out; y++, out += s->out_row) {
            if (!a->is_outside[y])
                blend_row(c, resized, y, rows, weights, out);
            else
                fill_line(out, s->out_row, extrapolation);
        }
    }
}

static status run_resize(const cpu_call *c)
{
    const resize_state *s = c->state;
    int64_t count = tensor_count(&c->outputs[0]);
    if (count == 0)
        return STATUS_OK;
    if (s->are_rows_first) {
        int64_t plane = s->axes[s->row_axis - 1].out * s->out_row;
        cpu_split_rows(c, (double)(count * s->tap_count) / 4, run_planes, (size_t)(count / plane));
        return cancel_check(c->cancel);
    }
    resize_run r = {c, PIECE / s->out_row + 1};
    int64_t rows = count / s->out_row;
    cpu_split(c, (double)(count * s->tap_count) / 4, run_some_rows, &r,
              (size_t)((rows + r.rows - 1) / r.rows));
    return cancel_check(c->cancel);
}

static const cpu_op table[] = {
    {GRAPH_OP_RESIZE, prepare_resize, run_resize, CPU_WIDEN_FLOATS | CPU_WIDEN_BYTE, false},
    {GRAPH_OP_UPSAMPLE, prepare_resize, run_resize, CPU_WIDEN_FLOATS | CPU_WIDEN_BYTE, false},
};

const cpu_op_family cpu_ops_resize = {table, sizeof table / sizeof table[0]};
