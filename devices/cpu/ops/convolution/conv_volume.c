#include "devices/cpu/ops/convolution/conv_volume.h"

#include <string.h>

#include "devices/cpu/ops/split.h"
#include "devices/cpu/ops/weights.h"
#include "kernels/gemm_f32.h"
#include "kernels/lines.h"

#define WIDTH_MIN 4    /* outputs of a line: shorter tiles wait for latency */
#define CHANNELS_MIN 8 /* results: half a vector */
#define PADDING_MAX 3  /* times the volume */
#define RESULT_FLOATS 65536

struct cpu_conv_volume {
    cpu_window window;
    int64_t batch;
    size_t channels, results;
    size_t slices, lines, pixels; /* of the volume with its padding: what windows read */
    size_t lines_at_once;         /* of the result */
    size_t segment, segment_count;
    const gemm_f32_segment *segments; /* of a window */
    const float *weights;
};

static size_t padded(const cpu_window *w, int d)
{
    return (size_t)((w->out[d] - 1) * w->stride[d] + (w->kernel[d] - 1) * w->dilation[d] + 1);
}

/* A segment is a line of the window, or a tap where taps are not neighbours. */
static bool fill_segments(cpu_conv_volume *s, arena *memory)
{
    const cpu_window *w = &s->window;
    size_t across = w->dilation[2] == 1 ? 1 : (size_t)w->kernel[2];
    s->segment = s->channels * (across == 1 ? (size_t)w->kernel[2] : 1);
    s->segment_count = (size_t)(w->kernel[0] * w->kernel[1]) * across;
    gemm_f32_segment *to = arena_allocate(memory, s->segment_count * sizeof *to);
    for (size_t i = 0; to && i < s->segment_count; i++) {
        size_t line = i / across, x = i % across * (size_t)w->dilation[2];
        size_t y = line % (size_t)w->kernel[1] * (size_t)w->dilation[1];
        size_t z = line / (size_t)w->kernel[1] * (size_t)w->dilation[0];
        to[i] = (gemm_f32_segment){.a = ((z * s->lines + y) * s->pixels + x) * s->channels,
                                   .k = i * s->segment};
    }
    s->segments = to;
    return to != NULL;
}

static bool is_better(const cpu_prepare *p, const cpu_conv_volume *s)
{
    const cpu_window *w = &s->window;
    return p->weights && p->inputs[1]->data && w->out_plane > 0 && w->out[0] * w->in[0] > 1 &&
           w->out[2] >= WIDTH_MIN && s->results >= CHANNELS_MIN &&
           s->slices * s->lines * s->pixels <= PADDING_MAX * (size_t)w->in_plane;
}

status cpu_conv_volume_prepare(cpu_prepare *p, const cpu_window *w, const cpu_conv_volume **out)
{
    const tensor *x = p->inputs[0], *weights = p->inputs[1];
    *out = NULL;
    cpu_conv_volume *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    *s = (cpu_conv_volume){.window = *w,
                           .batch = x->dims[0],
                           .channels = (size_t)weights->dims[1],
                           .results = (size_t)weights->dims[0],
                           .slices = padded(w, 0),
                           .lines = padded(w, 1),
                           .pixels = padded(w, 2)};
    if (!is_better(p, s))
        return STATUS_OK;
    size_t k = s->channels * (size_t)w->taps, width = (size_t)w->out[2] * s->results;
    size_t most = RESULT_FLOATS / width + 1, all = (size_t)w->out[1];
    s->lines_at_once = most < all ? most : all;
    s->weights = cpu_weights_find(p->weights, p->kernels,
                                  &(cpu_weights_key){.constant = weights,
                                                     .format = CPU_WEIGHTS_GEMM_F32,
                                                     .k = k,
                                                     .n = s->results,
                                                     .row_stride = 1,
                                                     .column_stride = k,
                                                     .taps = (size_t)w->taps});
    if (!s->weights || !fill_segments(s, p->memory))
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to pack weights");
    p->scratch_bytes = s->slices * s->lines * s->pixels * s->channels * sizeof(float);
    p->part_bytes = s->lines_at_once * width * sizeof(float);
    *out = s;
    return STATUS_OK;
}

/* One image. */
typedef struct volume_run {
    const cpu_conv_volume *s;
    const cpu_call *call;
    const float *x;
    float *out;
} volume_run;

/* One slice with its padding. */
static void place_slice(const void *context, void *memory, size_t unit)
{
    (void)memory;
    const volume_run *r = context;
    const cpu_conv_volume *s = r->s;
    const cpu_window *w = &s->window;
    size_t line = s->pixels * s->channels, before = (size_t)w->pad_begin[2];
    float *to = (float *)r->call->scratch + unit * s->lines * line;
    memset(to, 0, s->lines * line * sizeof *to);
    int64_t z = (int64_t)unit - w->pad_begin[0];
    if (z < 0 || z >= w->in[0] || before >= s->pixels)
        return;
    size_t room = s->pixels - before, width = (size_t)w->in[2] < room ? (size_t)w->in[2] : room;
    for (int64_t i = 0; i < (int64_t)s->lines; i++, to += line) {
        int64_t y = i - w->pad_begin[1];
        if (y >= 0 && y < w->in[1])
            r->call->kernels->transpose_plane(
                &(transpose_plane){.element_bytes = sizeof(float),
                                   .rows = width,
                                   .columns = s->channels,
                                   .in = r->x + (z * w->in[1] + y) * w->in[2],
                                   .in_stride = (size_t)w->in_plane,
                                   .out_stride = s->channels,
                                   .out = to + before * s->channels});
    }
}

/* Some lines of one slice of the result. */
static void convolve_lines(const void *context, void *memory, size_t unit)
{
    const volume_run *r = context;
    const cpu_conv_volume *s = r->s;
    const cpu_window *w = &s->window;
    const tensor *bias = cpu_input(r->call->inputs, r->call->node, 2);
    size_t all = (size_t)w->out[1], width = (size_t)w->out[2];
    size_t pieces = (all + s->lines_at_once - 1) / s->lines_at_once;
    size_t z = unit / pieces, y = unit % pieces * s->lines_at_once;
    size_t count = all - y < s->lines_at_once ? all - y : s->lines_at_once;
    size_t from = z * (size_t)w->stride[0] * s->lines + y * (size_t)w->stride[1];
    if (cancel_check(r->call->cancel))
        return;
    r->call->kernels->gemm_f32(
        &(gemm_f32){.m = count * width,
                    .n = s->results,
                    .k = s->channels * (size_t)w->taps,
                    .a = (const float *)r->call->scratch + from * s->pixels * s->channels,
                    .a_stride = (size_t)w->stride[2] * s->channels,
                    .a_segments = s->segments,
                    .a_segment_count = s->segment_count,
                    .a_segment = s->segment,
                    .a_run = width,
                    .a_run_stride = (size_t)w->stride[1] * s->pixels * s->channels,
                    .b = s->weights,
                    .c = memory,
                    .c_stride = s->results,
                    .epilogue = {.bias = bias ? bias->data : NULL}});
    r->call->kernels->transpose_plane(&(transpose_plane){.element_bytes = sizeof(float),
                                                         .rows = s->results,
                                                         .columns = count * width,
                                                         .in = memory,
                                                         .in_stride = s->results,
                                                         .out_stride = (size_t)w->out_plane,
                                                         .out = r->out + (z * all + y) * width});
}

status cpu_conv_volume_run(const cpu_conv_volume *s, const cpu_call *c)
{
    const cpu_window *w = &s->window;
    size_t pieces = ((size_t)w->out[1] + s->lines_at_once - 1) / s->lines_at_once;
    double moved = (double)(s->slices * s->lines * s->pixels * s->channels);
    double steps = (double)w->out_plane * (double)(s->channels * (size_t)w->taps * s->results);
    for (int64_t i = 0; i < s->batch; i++) {
        volume_run r = {
            .s = s,
            .call = c,
            .x = (const float *)c->inputs[0]->data + i * (int64_t)s->channels * w->in_plane,
            .out = (float *)c->outputs[0].data + i * (int64_t)s->results * w->out_plane};
        cpu_split(c, moved / 4, place_slice, &r, s->slices);
        cpu_split(c, steps / 32, convolve_lines, &r, (size_t)w->out[0] * pieces);
        status end = cancel_check(c->cancel);
        if (end)
            return end;
    }
    return STATUS_OK;
}
