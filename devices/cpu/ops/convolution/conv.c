#include <assert.h>
#include <string.h>

#include "devices/cpu/ops/convolution/conv_volume.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/ops/weights.h"
#include "devices/cpu/tensor_loops/window.h"
#include "kernels/gemm_f32.h"
#include "kernels/lines.h"

/* Convolution in F32, channels first, of what is no image of two dimensions. The weights [channels
 * out, channels in * taps] are the A of a GEMM whose B is the input unfolded (im2col), some hundred
 * outputs at a time and directly into the GEMM's packed panels; so an output's bits depend on its
 * own window only. Depthwise convolutions need no GEMM. Small planes would fill few columns: there
 * the windows of all images are the rows of A, and the weights, packed, are B; volumes have a way
 * of their own (conv_volume.h). */

#define GEMM_COLUMNS 256 /* outputs per GEMM; a multiple of the panel width */

#define SMALL_PLANE 96 /* outputs of a plane: fewer are rows of A */
#define ROWS_AT_ONCE 96

/* ConvTranspose: sums of channels and taps at a time; channels that make up for a GEMM. */
#define SPREAD_ROWS 192
#define SPREAD_CHANNELS_MIN 4

typedef struct conv_state {
    cpu_window window;
    int64_t batch, groups, in_channels, out_channels; /* channels per group */
    bool is_depthwise, is_pointwise, is_by_gemm;      /* the last: of a ConvTranspose */
    const float *packed; /* of small planes: [channels in * taps, channels out]; else NULL */
    /* Of a ConvTranspose by GEMMs: [channels out * taps][channels in]; NULL: turned in each run. */
    const float *turned;
    const cpu_conv_volume *volume; /* runs the whole convolution; or NULL */
} conv_state;

static status prepare_rows(cpu_prepare *p, conv_state *s)
{
    size_t k = (size_t)(s->in_channels * s->window.taps), n = (size_t)s->out_channels;
    s->packed = cpu_weights_find(p->weights, p->kernels,
                                 &(cpu_weights_key){.constant = p->inputs[1],
                                                    .format = CPU_WEIGHTS_GEMM_F32,
                                                    .k = k,
                                                    .n = n,
                                                    .row_stride = 1,
                                                    .column_stride = k});
    if (!s->packed)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to pack weights");
    p->part_bytes = (k + n) * ROWS_AT_ONCE * sizeof(float);
    return STATUS_OK;
}

static status prepare_conv(cpu_prepare *p)
{
    const tensor *x = p->inputs[0], *weights = p->inputs[1];
    if (x->dtype != DTYPE_F32)
        return cpu_op_fail_dtype(p->node, x->dtype);
    conv_state *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    status result = cpu_window_init(&s->window, p->node, x, &p->outputs[0], weights->dims + 2);
    if (result)
        return result;
    const cpu_window *w = &s->window;
    s->batch = x->dims[0];
    s->groups = graph_attribute_int(p->node, "group", 1);
    s->in_channels = weights->dims[1];
    s->out_channels = weights->dims[0] / s->groups;
    s->is_depthwise = s->in_channels == 1 && s->groups > 1;
    s->is_pointwise = w->taps == 1 && w->in_plane == w->out_plane;
    for (int d = 0; d < CPU_WINDOW_DIMS; d++)
        s->is_pointwise &= w->stride[d] == 1 && w->pad_begin[d] == 0;
    p->state = s;
    if (s->groups == 1 && !s->is_pointwise && x->rank == 5) {
        result = cpu_conv_volume_prepare(p, w, &s->volume);
        if (result || s->volume)
            return result;
    }
    if (s->groups == 1 && w->out_plane < SMALL_PLANE && w->out_plane > 0 && s->in_channels > 0 &&
        p->weights && weights->data)
        return prepare_rows(p, s);
    if (!s->is_depthwise)
        p->part_bytes = (size_t)(s->in_channels * w->taps * GEMM_COLUMNS) * sizeof(float);
    return STATUS_OK;
}

/* out[i] = row[at + i * stride], 0 beyond the row's `width`. */
static void unfold_row(const float *row, int64_t width, int64_t at, int64_t stride, int64_t count,
                       float *out)
{
    int64_t first = at < 0 ? (-at + stride - 1) / stride : 0;
    int64_t end = at < width ? (width - at + stride - 1) / stride : 0;
    end = end < count ? end : count;
    first = first < end ? first : end;
    memset(out, 0, (size_t)first * sizeof *out);
    if (stride == 1)
        memcpy(out + first, row + at + first, (size_t)(end - first) * sizeof *out);
    for (int64_t i = first; stride != 1 && i < end; i++)
        out[i] = row[at + i * stride];
    memset(out + end, 0, (size_t)(count - end) * sizeof *out);
}

/* One tap of one channel for outputs [first, first + count) of the plane: out[i] = x or 0. */
static void unfold_tap(const cpu_window *w, const float *x, const int64_t tap[CPU_WINDOW_DIMS],
                       int64_t first, int64_t count, float *out)
{
    int64_t ow = first % w->out[2], oh = first / w->out[2] % w->out[1];
    int64_t od = first / (w->out[2] * w->out[1]);
    int64_t shift = tap[2] * w->dilation[2] - w->pad_begin[2];
    while (count > 0) {
        int64_t run = w->out[2] - ow < count ? w->out[2] - ow : count;
        int64_t ih = oh * w->stride[1] + tap[1] * w->dilation[1] - w->pad_begin[1];
        int64_t id = od * w->stride[0] + tap[0] * w->dilation[0] - w->pad_begin[0];
        if (ih < 0 || ih >= w->in[1] || id < 0 || id >= w->in[0]) {
            memset(out, 0, (size_t)run * sizeof *out);
        } else {
            const float *row = x + (id * w->in[1] + ih) * w->in[2];
            unfold_row(row, w->in[2], ow * w->stride[2] + shift, w->stride[2], run, out);
        }
        out += run;
        count -= run;
        ow = 0;
        if (++oh == w->out[1]) {
            oh = 0;
            od++;
        }
    }
}

/* Panels of 32 outputs, each [channel * taps][32]; the last one filled up with zeros. */
static void unfold(const conv_state *s, const float *x, int64_t first, int64_t count, float *packed)
{
    const cpu_window *w = &s->window;
    int64_t rows = s->in_channels * w->taps;
    for (int64_t p = 0; p < count; p += GEMM_F32_PANEL_COLUMNS) {
        int64_t n = count - p < GEMM_F32_PANEL_COLUMNS ? count - p : GEMM_F32_PANEL_COLUMNS;
        float *to = packed + p * rows;
        for (int64_t ch = 0; ch < s->in_channels; ch++) {
            int64_t tap[CPU_WINDOW_DIMS] = {0};
            for (int64_t t = 0; t < w->taps; t++, to += GEMM_F32_PANEL_COLUMNS) {
                unfold_tap(w, x + ch * w->in_plane, tap, first + p, n, to);
                memset(to + n, 0, (size_t)(GEMM_F32_PANEL_COLUMNS - n) * sizeof *to);
                for (int d = CPU_WINDOW_DIMS - 1; d >= 0 && ++tap[d] == w->kernel[d]; d--)
                    tap[d] = 0;
            }
        }
    }
}

typedef struct gemm_run {
    const conv_state *s;
    const cpu_call *call;
    const float *x, *weights;
    float *out;
} gemm_run;

/* GEMM_COLUMNS outputs of all channels. */
static void convolve_columns(const void *context, void *memory, size_t unit)
{
    const gemm_run *r = context;
    const conv_state *s = r->s;
    const kernels *k = r->call->kernels;
    const cpu_window *w = &s->window;
    int64_t rows = s->in_channels * w->taps, first = (int64_t)unit * GEMM_COLUMNS;
    int64_t n = w->out_plane - first < GEMM_COLUMNS ? w->out_plane - first : GEMM_COLUMNS;
    if (cancel_check(r->call->cancel))
        return;
    if (s->is_pointwise)
        k->gemm_pack_f32(r->x + first, (size_t)w->in_plane, 1, (size_t)rows, (size_t)n, memory);
    else
        unfold(s, r->x, first, n, memory);
    k->gemm_f32(&(gemm_f32){.m = (size_t)s->out_channels,
                            .n = (size_t)n,
                            .k = (size_t)rows,
                            .a = r->weights,
                            .a_stride = (size_t)rows,
                            .b = memory,
                            .c = r->out + first,
                            .c_stride = (size_t)w->out_plane});
}

static status convolve_gemm(const conv_state *s, const cpu_call *c, const float *x,
                            const float *weights, float *out)
{
    const cpu_window *w = &s->window;
    gemm_run r = {s, c, x, weights, out};
    double steps = (double)w->out_plane * (double)(s->in_channels * w->taps * s->out_channels);
    cpu_split(c, steps / 32, convolve_columns, &r,
              (size_t)((w->out_plane + GEMM_COLUMNS - 1) / GEMM_COLUMNS));
    return cancel_check(c->cancel);
}

/* The window of one output: [channel][taps]. */
static void copy_window(const conv_state *s, const float *x, int64_t pixel, float *to)
{
    const cpu_window *w = &s->window;
    int64_t start[CPU_WINDOW_DIMS];
    for (int d = CPU_WINDOW_DIMS - 1; d >= 0; d--) {
        start[d] = pixel % w->out[d] * w->stride[d] - w->pad_begin[d];
        pixel /= w->out[d];
    }
    bool is_inside = w->dilation[2] == 1 && start[2] >= 0 && start[2] + w->kernel[2] <= w->in[2];
    for (int64_t ch = 0; ch < s->in_channels; ch++, x += w->in_plane)
        for (int64_t a = 0; a < w->kernel[0]; a++)
            for (int64_t b = 0; b < w->kernel[1]; b++, to += w->kernel[2]) {
                int64_t z = start[0] + a * w->dilation[0], y = start[1] + b * w->dilation[1];
                bool is_padding = z < 0 || z >= w->in[0] || y < 0 || y >= w->in[1];
                const float *row = is_padding ? x : x + (z * w->in[1] + y) * w->in[2];
                for (int64_t t = 0; t < w->kernel[2]; t++) {
                    int64_t at = start[2] + t * w->dilation[2];
                    to[t] = !is_padding && (is_inside || (at >= 0 && at < w->in[2])) ? row[at] : 0;
                }
            }
}

/* ROWS_AT_ONCE outputs, counted over all images. */
static void convolve_rows(const void *context, void *memory, size_t unit)
{
    const cpu_call *c = context;
    const conv_state *s = c->state;
    const cpu_window *w = &s->window;
    const tensor *bias = cpu_input(c->inputs, c->node, 2);
    int64_t total = s->batch * w->out_plane, first = (int64_t)unit * ROWS_AT_ONCE;
    int64_t count = total - first < ROWS_AT_ONCE ? total - first : ROWS_AT_ONCE;
    int64_t k = s->in_channels * w->taps, n = s->out_channels;
    float *rows = memory, *sums = rows + k * ROWS_AT_ONCE, *out = c->outputs[0].data;
    for (int64_t r = 0; r < count; r++)
        copy_window(s,
                    (const float *)c->inputs[0]->data +
                        (first + r) / w->out_plane * s->in_channels * w->in_plane,
                    (first + r) % w->out_plane, rows + r * k);
    c->kernels->gemm_f32(&(gemm_f32){.m = (size_t)count,
                                     .n = (size_t)n,
                                     .k = (size_t)k,
                                     .a = rows,
                                     .a_stride = (size_t)k,
                                     .b = s->packed,
                                     .c = sums,
                                     .c_stride = (size_t)n,
                                     .epilogue = {.bias = bias ? bias->data : NULL}});
    for (int64_t r = 0; r < count; r++) {
        int64_t image = (first + r) / w->out_plane, pixel = (first + r) % w->out_plane;
        for (int64_t o = 0; o < n; o++)
            out[(image * n + o) * w->out_plane + pixel] = sums[r * n + o];
    }
}

typedef struct plane {
    const float *x, *weights;
    float *out;
} plane;

static inline void gather_run(void *context, const cpu_window_run *r)
{
    const plane *p = context;
    const float *x = p->x + r->in;
    float *out = p->out + r->out, weight = p->weights[r->tap];
    for (int64_t i = 0; i < r->count; i++)
        out[i] += weight * x[i * r->stride];
}

/* out += weight * x shifted, tap by tap, for one channel. */
static void convolve_plane(const cpu_window *w, const float *x, const float *weights, float *out)
{
    memset(out, 0, (size_t)w->out_plane * sizeof *out);
    cpu_window_each_run(w, gather_run, &(plane){x, weights, out});
}

static status run_conv(const cpu_call *c)
{
    const conv_state *s = c->state;
    const cpu_window *w = &s->window;
    const float *x = c->inputs[0]->data, *weights = c->inputs[1]->data;
    const tensor *bias = cpu_input(c->inputs, c->node, 2);
    float *out = c->outputs[0].data;
    if (w->out_plane == 0)
        return STATUS_OK;
    if (s->volume)
        return cpu_conv_volume_run(s->volume, c);
    if (s->packed) {
        size_t rows = (size_t)(s->batch * w->out_plane);
        double steps = (double)rows * (double)(s->in_channels * w->taps * s->out_channels);
        cpu_split(c, steps / 32, convolve_rows, c, (rows + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE);
        return cancel_check(c->cancel);
    }
    int64_t group_weights = s->out_channels * s->in_channels * w->taps;
    status end = STATUS_OK;
    for (int64_t i = 0; i < s->batch * s->groups; i++) {
        int64_t group = i % s->groups;
        const float *from = x + i * s->in_channels * w->in_plane;
        float *to = out + i * s->out_channels * w->out_plane;
        for (int64_t o = 0; s->is_depthwise && o < s->out_channels && !end; o++) {
            end = cancel_check(c->cancel);
            if (!end)
                convolve_plane(w, from, weights + group * group_weights + o * w->taps,
                               to + o * w->out_plane);
        }
        if (!s->is_depthwise)
            end = convolve_gemm(s, c, from, weights + group * group_weights, to);
        if (end)
            return end;
        for (int64_t o = 0; bias && o < s->out_channels; o++)
            c->kernels->add_f32(to + o * w->out_plane, 1,
                                (const float *)bias->data + group * s->out_channels + o, 0,
                                to + o * w->out_plane, (size_t)w->out_plane);
    }
    return STATUS_OK;
}

/* ConvTranspose is the gradient of a convolution: each input element adds its weighted kernel to
 * the output. The window is that of the convolution, with input and output exchanged. */
static status prepare_spread(cpu_prepare *p, conv_state *s)
{
    const tensor *weights = p->inputs[1];
    size_t rows = (size_t)(s->out_channels * s->window.taps);
    size_t some = rows < SPREAD_ROWS ? rows : SPREAD_ROWS;
    p->part_bytes = ((size_t)s->in_channels + some) * GEMM_COLUMNS * sizeof(float);
    if (s->groups > 1 || !p->weights || !weights->data || weights->dtype != DTYPE_F32) {
        p->scratch_bytes = rows * (size_t)s->in_channels * sizeof(float);
        return STATUS_OK;
    }
    s->turned = cpu_weights_find(p->weights, p->kernels,
                                 &(cpu_weights_key){.constant = weights,
                                                    .format = CPU_WEIGHTS_TAPS,
                                                    .k = rows,
                                                    .n = (size_t)s->in_channels});
    return s->turned ? STATUS_OK : status_fail(STATUS_OUT_OF_MEMORY, "no memory to pack weights");
}

static status prepare_conv_transpose(cpu_prepare *p)
{
    const tensor *x = p->inputs[0], *weights = p->inputs[1], *out = &p->outputs[0];
    if (x->dtype != DTYPE_F32)
        return cpu_op_fail_dtype(p->node, x->dtype);
    conv_state *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    status result = cpu_window_init(&s->window, p->node, out, x, weights->dims + 2);
    if (result)
        return result;
    s->batch = x->dims[0];
    s->groups = graph_attribute_int(p->node, "group", 1);
    s->in_channels = weights->dims[0] / s->groups;
    s->out_channels = weights->dims[1];
    /* With output_shape or auto_pad the pads follow from the shapes. */
    const char *auto_pad = graph_attribute_string(p->node, "auto_pad", "NOTSET");
    const graph_attribute *padding = graph_find_attribute(p->node, "output_padding");
    bool is_computed =
        graph_find_attribute(p->node, "output_shape") || strncmp(auto_pad, "SAME", 4) == 0;
    cpu_window *w = &s->window;
    for (int d = 0; is_computed && d < CPU_WINDOW_DIMS; d++) {
        int spatial = d - (CPU_WINDOW_DIMS - (x->rank - 2));
        int64_t extra = padding && spatial >= 0 && (size_t)spatial < padding->count
                            ? padding->ints[spatial]
                            : 0;
        int64_t total = w->stride[d] * (w->out[d] - 1) + extra +
                        (w->kernel[d] - 1) * w->dilation[d] + 1 - w->in[d];
        total = total < 0 ? 0 : total;
        w->pad_begin[d] = strcmp(auto_pad, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
    }
    p->state = s;
    s->is_by_gemm = s->in_channels >= SPREAD_CHANNELS_MIN && w->out_plane > 0;
    return s->is_by_gemm ? prepare_spread(p, s) : STATUS_OK;
}

static inline void scatter_run(void *context, const cpu_window_run *r)
{
    const plane *p = context;
    const float *x = p->x + r->out;
    float *out = p->out + r->in, weight = p->weights[r->tap];
    for (int64_t i = 0; i < r->count; i++)
        out[i * r->stride] += weight * x[i];
}

/* One channel by one tap after another: out shifted += weight * x. */
static status spread_channels(const conv_state *s, const cpu_call *c, const float *x,
                              const float *weights, float *out)
{
    for (int64_t ch = 0; ch < s->in_channels; ch++) {
        status end = cancel_check(c->cancel);
        if (end)
            return end;
        cpu_window_each_run(&s->window, scatter_run,
                            &(plane){x + ch * s->window.out_plane,
                                     weights + ch * s->out_channels * s->window.taps, out});
    }
    return STATUS_OK;
}

/* Of one image and group: pixels [x0, x1) of `count` lines of the input. */
typedef struct spread_block {
    int64_t line, count, x0, x1;
} spread_block;

static spread_block block_of_unit(const cpu_window *w, int64_t unit)
{
    int64_t width = w->out[2], lines = w->out[0] * w->out[1];
    if (width >= GEMM_COLUMNS) {
        int64_t pieces = (width + GEMM_COLUMNS - 1) / GEMM_COLUMNS, x = unit % pieces;
        int64_t end = (x + 1) * GEMM_COLUMNS;
        return (spread_block){unit / pieces, 1, x * GEMM_COLUMNS, end < width ? end : width};
    }
    int64_t some = GEMM_COLUMNS / width, first = unit * some;
    return (spread_block){first, lines - first < some ? lines - first : some, 0, width};
}

static int64_t block_count(const cpu_window *w)
{
    int64_t width = w->out[2], lines = w->out[0] * w->out[1];
    if (width >= GEMM_COLUMNS)
        return lines * ((width + GEMM_COLUMNS - 1) / GEMM_COLUMNS);
    return (lines + GEMM_COLUMNS / width - 1) / (GEMM_COLUMNS / width);
}

/* Adds what tap `tap` gives, a sum for each pixel of the block, to a plane of the output. */
static void spread_tap(const conv_state *s, const kernels *k, const spread_block *b,
                       const int64_t tap[CPU_WINDOW_DIMS], const float *sums, float *out)
{
    const cpu_window *w = &s->window;
    int64_t first, end, stride = w->stride[2];
    cpu_window_range(w, 2, tap[2], &first, &end);
    first = first > b->x0 ? first : b->x0;
    end = end < b->x1 ? end : b->x1;
    for (int64_t i = b->line; i < b->line + b->count; i++, sums += b->x1 - b->x0) {
        int64_t z = i / w->out[1] * w->stride[0] + tap[0] * w->dilation[0] - w->pad_begin[0];
        int64_t y = i % w->out[1] * w->stride[1] + tap[1] * w->dilation[1] - w->pad_begin[1];
        if (z < 0 || z >= w->in[0] || y < 0 || y >= w->in[1] || first >= end)
            continue;
        float *to = out + (z * w->in[1] + y) * w->in[2] + first * stride + tap[2] * w->dilation[2] -
                    w->pad_begin[2];
        const float *from = sums + first - b->x0;
        if (stride == 1)
            k->add_f32(to, 1, from, 1, to, (size_t)(end - first));
        for (int64_t x = 0; stride != 1 && x < end - first; x++)
            to[x * stride] += from[x];
    }
}

/* Some channels of the output of one image and group. */
typedef struct spread_run {
    const conv_state *s;
    const cpu_call *call;
    const float *x, *weights; /* [channels out * taps][channels in] */
    float *out;
    int64_t channels; /* of a unit */
} spread_run;

/* The sums of all taps by GEMMs, SPREAD_ROWS of them at a time, are added where they belong. */
static void spread_unit(const void *context, void *memory, size_t unit)
{
    const spread_run *r = context;
    const conv_state *s = r->s;
    const cpu_window *w = &s->window;
    const kernels *k = r->call->kernels;
    int64_t first = (int64_t)unit * r->channels, left = s->out_channels - first;
    int64_t end = first + (left < r->channels ? left : r->channels);
    float *packed = memory, *sums = packed + s->in_channels * GEMM_COLUMNS;
    int64_t blocks = block_count(w), rows = end * w->taps;
    for (int64_t i = 0; i < blocks && !cancel_check(r->call->cancel); i++) {
        spread_block b = block_of_unit(w, i);
        int64_t n = b.count * (b.x1 - b.x0), some;
        k->gemm_pack_f32(r->x + b.line * w->out[2] + b.x0, (size_t)w->out_plane, 1,
                         (size_t)s->in_channels, (size_t)n, packed);
        for (int64_t row = first * w->taps; row < rows; row += some) {
            some = rows - row < SPREAD_ROWS ? rows - row : SPREAD_ROWS;
            k->gemm_f32(&(gemm_f32){.m = (size_t)some,
                                    .n = (size_t)n,
                                    .k = (size_t)s->in_channels,
                                    .a = r->weights + row * s->in_channels,
                                    .a_stride = (size_t)s->in_channels,
                                    .b = packed,
                                    .c = sums,
                                    .c_stride = (size_t)n});
            for (int64_t t = row; t < row + some; t++) {
                int64_t at = t % w->taps, face = w->kernel[1] * w->kernel[2];
                int64_t tap[] = {at / face, at % face / w->kernel[2], at % w->kernel[2]};
                spread_tap(s, k, &b, tap, sums + (t - row) * n, r->out + t / w->taps * w->in_plane);
            }
        }
    }
}

/* Channels of one image and group; `out` holds the bias already. */
static status spread_by_gemm(const conv_state *s, const cpu_call *c, const float *x,
                             const float *weights, float *out)
{
    size_t rows = (size_t)(s->out_channels * s->window.taps);
    size_t items = cpu_split_items(c, (size_t)s->out_channels, (size_t)s->out_channels, 1);
    spread_run r = {s, c, x, s->turned ? s->turned : c->scratch, out, (int64_t)items};
    if (!s->turned)
        c->kernels->transpose_plane(&(transpose_plane){.element_bytes = sizeof(float),
                                                       .rows = rows,
                                                       .columns = (size_t)s->in_channels,
                                                       .in = weights,
                                                       .in_stride = rows,
                                                       .out_stride = (size_t)s->in_channels,
                                                       .out = c->scratch});
    double steps = (double)rows * (double)s->in_channels * (double)s->window.out_plane;
    cpu_split(c, steps / 16, spread_unit, &r, ((size_t)s->out_channels + items - 1) / items);
    return cancel_check(c->cancel);
}

static status run_conv_transpose(const cpu_call *c)
{
    const conv_state *s = c->state;
    const cpu_window *w = &s->window; /* its `in` is our output */
    const float *x = c->inputs[0]->data, *weights = c->inputs[1]->data;
    const tensor *bias = cpu_input(c->inputs, c->node, 2);
    float *out = c->outputs[0].data;
    status end = STATUS_OK;
    for (int64_t i = 0; i < s->batch * s->groups && !end; i++) {
        int64_t group = i % s->groups;
        const float *from = x + i * s->in_channels * w->out_plane;
        const float *by = weights + group * s->in_channels * s->out_channels * w->taps;
        float *to = out + i * s->out_channels * w->in_plane;
        for (int64_t o = 0; o < s->out_channels; o++) {
            float start = bias ? ((const float *)bias->data)[group * s->out_channels + o] : 0;
            for (int64_t j = 0; j < w->in_plane; j++)
                to[o * w->in_plane + j] = start;
        }
        if (s->is_by_gemm)
            end = spread_by_gemm(s, c, from, by, to);
        for (int64_t o = 0; !s->is_by_gemm && o < s->out_channels && !end; o++)
            end = spread_channels(s, c, from, by + o * w->taps, to + o * w->in_plane);
    }
    return end;
}

static const cpu_op table[] = {
    {GRAPH_OP_CONV, prepare_conv, run_conv, CPU_WIDEN_FLOATS, false},
    {GRAPH_OP_CONV_TRANSPOSE, prepare_conv_transpose, run_conv_transpose, CPU_WIDEN_FLOATS, false},
};

const cpu_op_family cpu_ops_conv = {table, sizeof table / sizeof table[0]};
