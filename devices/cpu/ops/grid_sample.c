#include <math.h>
#include <string.h>

#include "devices/cpu/ops/split.h"
#include "kernels/lines.h"

/* GridSample in F32: images [n, c, h, w] at grid [n, h', w', 2] of (x, y) in -1 .. 1, and volumes
 * [n, c, d, h, w] at (x, y, z). Where some points read, and with which weights, is found once for
 * all channels. Formulas: onnx Operators.md, GridSample. */

#define GRID_AXES_MAX 3
#define POINTS 256 /* at a time */

typedef enum grid_padding { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION } grid_padding;
typedef enum grid_mode { GRID_NEAREST, GRID_LINEAR, GRID_CUBIC } grid_mode;

typedef struct grid_sampler {
    grid_mode mode;
    grid_padding padding;
    bool aligns_corners;
    int axes, taps;              /* taps: of a point */
    int64_t size[GRID_AXES_MAX]; /* w, h, d */
    int64_t elements;            /* of one image or volume */
    int64_t points;              /* of one grid */
} grid_sampler;

static double reflect(double x, double low, double high)
{
    double range = high - low;
    if (range <= 0)
        return low;
    double away = fmod(fabs(x - low), 2 * range);
    return low + (away > range ? 2 * range - away : away);
}

/* The index along axis d of the element at `x`, a whole number, padded; -1: outside. */
static int64_t index_at(const grid_sampler *g, int d, double x)
{
    double last = (double)g->size[d] - 1;
    if (!(fabs(x) < 1e15)) /* NaN and what cannot be an index */
        x = g->padding == GRID_ZEROS ? -1 : x > 0 && g->padding == GRID_BORDER ? last : 0;
    if (g->padding == GRID_REFLECTION)
        x = g->aligns_corners ? reflect(x, 0, last) : reflect(x, -0.5, last + 0.5);
    if (g->padding == GRID_ZEROS && (x < 0 || x > last))
        return -1;
    return (int64_t)(x < 0 ? 0 : x > last ? last : x);
}

static double cubic(double x)
{
    const double a = -0.75;
    x = fabs(x);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Along axis d: the taps of place `x`; returns how many. */
static int find_taps(const grid_sampler *g, int d, double x, int64_t index[4], double weights[4])
{
    if (g->mode == GRID_NEAREST) {
        index[0] = index_at(g, d, nearbyint(x));
        weights[0] = 1;
        return 1;
    }
    int first = g->mode == GRID_LINEAR ? 0 : -1, taps = g->mode == GRID_LINEAR ? 2 : 4;
    double low = fabs(x) < 1e15 ? (double)(int64_t)x : x; /* floor is a call */
    low -= low > x;
    for (int t = 0; t < taps; t++) {
        double place = low + first + t, away = x - place;
        index[t] = index_at(g, d, place);
        weights[t] = g->mode == GRID_LINEAR ? 1 - fabs(away) : cubic(away);
    }
    return taps;
}

/* The taps of point `i` of some, `stride` apart. What is outside has no weight. */
static void place_point(const grid_sampler *g, const float *given, size_t stride, size_t i,
                        int32_t *index, float *weights)
{
    int64_t at[GRID_AXES_MAX][4];
    double share[GRID_AXES_MAX][4];
    int taps = 1;
    for (int d = 0; d < g->axes; d++) {
        double size = (double)g->size[d], x = (double)given[d];
        x = g->aligns_corners ? (x + 1) / 2 * (size - 1) : ((x + 1) * size - 1) / 2;
        taps = find_taps(g, d, x, at[d], share[d]);
    }
    for (int t = 0; t < g->taps; t++) {
        int64_t element = 0, step = 1;
        double weight = 1;
        bool is_outside = false;
        for (int d = 0, left = t; d < g->axes; d++, left /= taps) {
            is_outside |= at[d][left % taps] < 0;
            element += at[d][left % taps] * step;
            weight *= share[d][left % taps];
            step *= g->size[d];
        }
        index[(size_t)t * stride + i] = is_outside ? 0 : (int32_t)element;
        weights[(size_t)t * stride + i] = is_outside ? 0 : (float)weight;
    }
}

static status prepare_grid_sample(cpu_prepare *p)
{
    const tensor *in = p->inputs[0];
    int axes = in->rank - 2;
    if (in->dtype != DTYPE_F32)
        return cpu_op_fail_dtype(p->node, in->dtype);
    if (axes < 1 || axes > GRID_AXES_MAX)
        return status_fail(STATUS_UNSUPPORTED, "inputs of rank %d; ranks 3 to 5 are supported",
                           in->rank);
    grid_sampler *g = arena_allocate_zeroed(p->memory, 1, sizeof *g);
    if (!g)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    const char *padding = graph_attribute_string(p->node, "padding_mode", "zeros");
    const char *mode = graph_attribute_string(p->node, "mode", "linear");
    *g = (grid_sampler){.mode = mode[0] == 'n'          ? GRID_NEAREST
                                : strstr(mode, "cubic") ? GRID_CUBIC
                                                        : GRID_LINEAR,
                        .padding = padding[0] == 'b'   ? GRID_BORDER
                                   : padding[0] == 'r' ? GRID_REFLECTION
                                                       : GRID_ZEROS,
                        .aligns_corners = graph_attribute_int(p->node, "align_corners", 0) != 0,
                        .axes = axes,
                        .taps = 1,
                        .elements = 1,
                        .points = cpu_dims_product(p->outputs[0].dims, 2, in->rank)};
    for (int d = 0; d < axes; d++) {
        g->size[d] = in->dims[in->rank - 1 - d];
        g->elements *= g->size[d];
        g->taps *= g->mode == GRID_NEAREST ? 1 : g->mode == GRID_LINEAR ? 2 : 4;
    }
    if (g->elements > INT32_MAX)
        return status_fail(STATUS_UNSUPPORTED, "images of %lld elements", (long long)g->elements);
    p->state = g;
    p->part_bytes = (size_t)g->taps * POINTS * (sizeof(int32_t) + sizeof(float));
    return STATUS_OK;
}

/* POINTS points of one image, in all channels. */
static void sample_points(const void *context, void *memory, size_t unit)
{
    const cpu_call *c = context;
    const grid_sampler *g = c->state;
    const tensor *out = &c->outputs[0];
    size_t units = ((size_t)g->points + POINTS - 1) / POINTS, all = (size_t)g->points;
    size_t image = unit / units, first = unit % units * POINTS;
    size_t count = all - first < POINTS ? all - first : POINTS, channels = (size_t)out->dims[1];
    const float *given =
        (const float *)c->inputs[1]->data + (image * all + first) * (size_t)g->axes;
    int32_t *index = memory;
    float *weights = (float *)(index + (size_t)g->taps * POINTS);
    for (size_t i = 0; i < count; i++)
        place_point(g, given + i * (size_t)g->axes, count, i, index, weights);
    for (size_t ch = image * channels; ch < (image + 1) * channels; ch++)
        c->kernels->gather_sum_f32(
            &(gather_sum_f32){.taps = (size_t)g->taps,
                              .count = count,
                              .index = index,
                              .weights = weights,
                              .row = (const float *)c->inputs[0]->data + ch * (size_t)g->elements,
                              .out = (float *)out->data + ch * all + first});
}

static status run_grid_sample(const cpu_call *c)
{
    const grid_sampler *g = c->state;
    tensor *out = &c->outputs[0];
    size_t bytes = tensor_bytes(out), units = ((size_t)g->points + POINTS - 1) / POINTS;
    if (bytes && g->elements == 0)
        memset(out->data, 0, bytes);
    else if (bytes)
        cpu_split(c, (double)tensor_count(out) * g->taps / 2, sample_points, c,
                  units * (size_t)out->dims[0]);
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_GRID_SAMPLE, prepare_grid_sample, run_grid_sample, CPU_WIDEN_FLOATS, false},
};

const cpu_op_family cpu_ops_grid_sample = {table, sizeof table / sizeof table[0]};
