#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/shapes/rules.h"

/* Operators of detectors: NonMaxSuppression, RoiAlign, DeformConv. */

/* One class of one image, while its boxes are selected. */
typedef struct candidate {
    float score;
    int64_t box;
} candidate;

static int by_score(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->box < y->box ? -1 : x->box > y->box;
}

/* Corners of a box, in order. */
static void read_corners(const float *box, bool is_centered, float out[4])
{
    if (is_centered) { /* x, y, width, height */
        for (int d = 0; d < 2; d++) {
            out[d] = box[1 - d] - box[3 - d] / 2;
            out[2 + d] = box[1 - d] + box[3 - d] / 2;
        }
        return;
    }
    for (int d = 0; d < 2; d++) {
        out[d] = fminf(box[d], box[2 + d]);
        out[2 + d] = fmaxf(box[d], box[2 + d]);
    }
}

static bool overlap(const float *first, const float *second, bool is_centered, float threshold)
{
    float a[4], b[4];
    read_corners(first, is_centered, a);
    read_corners(second, is_centered, b);
    float height = fminf(a[2], b[2]) - fmaxf(a[0], b[0]);
    float width = fminf(a[3], b[3]) - fmaxf(a[1], b[1]);
    if (height <= 0 || width <= 0)
        return false;
    float both = height * width;
    float area_a = (a[2] - a[0]) * (a[3] - a[1]), area_b = (b[2] - b[0]) * (b[3] - b[1]);
    if (area_a <= 0 || area_b <= 0)
        return false;
    return both / (area_a + area_b - both) > threshold;
}

typedef struct selection {
    const float *boxes;
    bool is_centered, has_least_score;
    float overlap_max, score_least;
    int64_t box_count, most;
    candidate *candidates;
    int64_t *kept; /* boxes of the class */
} selection;

/* Boxes by falling score; each that overlaps none of those before it stays. Returns how many. */
static int64_t select_class(selection *s, const float *scores)
{
    int64_t count = 0, kept = 0;
    for (int64_t i = 0; i < s->box_count; i++)
        if (!s->has_least_score || scores[i] > s->score_least)
            s->candidates[count++] = (candidate){scores[i], i};
    qsort(s->candidates, (size_t)count, sizeof s->candidates[0], by_score);
    for (int64_t i = 0; i < count && kept < s->most; i++) {
        const float *box = s->boxes + 4 * s->candidates[i].box;
        bool is_free = true;
        for (int64_t k = 0; k < kept && is_free; k++)
            is_free = !overlap(box, s->boxes + 4 * s->kept[k], s->is_centered, s->overlap_max);
        if (is_free)
            s->kept[kept++] = s->candidates[i].box;
    }
    return kept;
}

static float scalar(const tensor *const *in, int i, float otherwise)
{
    return in[i] != NULL && tensor_count(in[i]) > 0 ? (float)tensor_get_number(in[i], 0)
                                                    : otherwise;
}

status graph_select_boxes(const graph_node *node, const tensor *const *inputs, int64_t *selected,
                          int64_t *count)
{
    const tensor *in[5] = {NULL};
    for (int i = 0; i < node->input_count && i < 5; i++)
        in[i] = inputs[i];
    int64_t images = in[0]->dims[0], boxes = in[0]->dims[1], classes = in[1]->dims[1];
    int64_t most = in[2] != NULL && tensor_count(in[2]) > 0 ? tensor_get_integer(in[2], 0) : 0;
    selection s = {.is_centered = graph_attribute_int(node, "center_point_box", 0) != 0,
                   .has_least_score = in[4] != NULL,
                   .overlap_max = scalar(in, 3, 0),
                   .score_least = scalar(in, 4, 0),
                   .box_count = boxes,
                   .most = most < boxes ? most : boxes};
    *count = 0;
    s.candidates = malloc(((size_t)boxes + 1) * sizeof s.candidates[0]);
    s.kept = malloc(((size_t)boxes + 1) * sizeof s.kept[0]);
    bool has_memory = s.candidates != NULL && s.kept != NULL;
    for (int64_t i = 0; has_memory && i < images; i++)
        for (int64_t c = 0; c < classes; c++) {
            s.boxes = (const float *)in[0]->data + i * boxes * 4;
            int64_t kept = select_class(&s, (const float *)in[1]->data + (i * classes + c) * boxes);
            for (int64_t k = 0; selected != NULL && k < kept; k++) {
                const int64_t row[] = {i, c, s.kept[k]};
                memcpy(selected + 3 * (*count + k), row, sizeof row);
            }
            *count += kept;
        }
    free(s.candidates);
    free(s.kept);
    return has_memory ? STATUS_OK : status_fail(STATUS_OUT_OF_MEMORY, "no memory to select boxes");
}

status infer_non_max_suppression(const graph_node *node, const tensor *const *in, tensor *out)
{
    const tensor *boxes = in[0], *scores = in[1];
    if (boxes->rank != 3 || scores->rank != 3 || scores->dtype != DTYPE_F32 ||
        boxes->dims[2] != 4 || boxes->dims[0] != scores->dims[0] ||
        boxes->dims[1] != scores->dims[2])
        return status_fail(STATUS_INVALID_ARGUMENT, "boxes %s, scores %s", infer_text(boxes),
                           infer_text(scores));
    if (in[2] != NULL && in[2]->dtype != DTYPE_I64)
        return status_fail(STATUS_INVALID_ARGUMENT, "input 2 is %s", infer_text(in[2]));
    for (int i = 0; i < 5; i++) {
        if (in[i] != NULL && i > 2 && in[i]->dtype != DTYPE_F32)
            return status_fail(STATUS_INVALID_ARGUMENT, "input %d is %s", i, infer_text(in[i]));
        if (in[i] != NULL && !infer_is_known(in[i]) && tensor_count(in[i]) > 0)
            return infer_unknown(i);
    }
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
