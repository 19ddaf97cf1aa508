#include <assert.h>
#include <string.h>

#include "devices/cpu/fused/epilogue.h"
#include "devices/cpu/fused/fused.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/ops/weights.h"
#include "devices/cpu/tensor_loops/window.h"
#include "kernels/gemm_f32.h"
#include "kernels/lines.h"

/* penstock.ConvTranspose of graph/quantise/fuse.h: a GEMM gives what each input pixel adds to the
 * output, [taps][channels], some rows of pixels at a time; it is added there in the order of the
 * pixels, so an output's bits depend on its own inputs only. Where windows lie side by side, each
 * line of the output is one GEMM, written at once; lines of windows that are as short as an element
 * of transpose_plane are computed together and then drawn apart. */

enum { X, WEIGHTS, BIAS, RESIDUAL };

#define SUMS_BYTES (1 << 18) /* of one GEMM: they stay in the L2 cache */

typedef struct transpose_state {
    image_window window; /* of the convolution whose gradient this is: its input is our output */
    int64_t images;
    size_t in_channels, channels; /* channels of the output */
    size_t taps, pixels_at_once;
    const float *packed;
    bool is_side_by_side;          /* windows: then */
    bool is_drawn_apart;           /* `packed` and `bias` have all lines of a window */
    const float *const *by_line;   /* the weights of each line of a window */
    const float *bias;             /* [columns of a GEMM], or NULL */
    kernels_activation activation; /* of the GEMM */
    fused_epilogue after;
} transpose_state;

static bool are_side_by_side(const image_window *w)
{
    return w->stride_y == w->kernel_height && w->stride_x == w->kernel_width &&
           w->dilation_y == 1 && w->dilation_x == 1 && w->pad_top + w->pad_left == 0 &&
           w->height == w->out_height * w->stride_y && w->width == w->out_width * w->stride_x;
}

/* One packed matrix and one bias for each line of a window, or for all together. */
static status prepare_side_by_side(cpu_prepare *p, transpose_state *s)
{
    size_t columns = s->taps * s->channels, step = s->window.kernel_width * s->channels;
    s->is_drawn_apart = step <= 2;
    size_t line = s->is_drawn_apart ? columns : step, matrices = columns / line;
    const tensor *bias = cpu_input(p->inputs, p->node, BIAS);
    const float **packed = arena_allocate(p->memory, matrices * sizeof *packed);
    float *wide = arena_allocate(p->memory, line * sizeof *wide);
    if (!packed || !wide)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    for (size_t y = 0; y < matrices; y++) {
        packed[y] = cpu_weights_find(p->weights, p->kernels,
                                     &(cpu_weights_key){.constant = p->inputs[WEIGHTS],
                                                        .format = CPU_WEIGHTS_GEMM_F32,
                                                        .offset = y * line,
                                                        .k = s->in_channels,
                                                        .n = line,
                                                        .row_stride = columns,
                                                        .column_stride = 1});
        if (!packed[y])
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory to pack weights");
    }
    for (size_t i = 0; bias && i < line; i++)
        wide[i] = ((const float *)bias->data)[i % s->channels];
    s->is_side_by_side = true;
    s->by_line = packed;
    s->bias = bias ? wide : NULL;
    if (s->is_drawn_apart)
        p->part_bytes = s->window.out_width * columns * sizeof(float);
    fused_epilogue_prepare(p->node, true, s->is_drawn_apart ? NULL : &s->activation, &s->after);
    return STATUS_OK;
}

static status prepare_conv_transpose(cpu_prepare *p)
{
    const tensor *x = p->inputs[X], *weights = p->inputs[WEIGHTS];
    transpose_state *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    assert(p->weights && weights->data && x->dtype == DTYPE_F32);
    status result =
        cpu_window_init_image(&s->window, p->node, &p->outputs[0], x, weights->dims + 1);
    if (result)
        return result;
    s->images = x->dims[0];
    s->in_channels = (size_t)x->dims[3];
    s->channels = (size_t)weights->dims[3];
    s->taps = s->window.kernel_height * s->window.kernel_width;
    const tensor *bias = cpu_input(p->inputs, p->node, BIAS);
    p->state = s;
    if (are_side_by_side(&s->window) && (!bias || bias->data))
        return prepare_side_by_side(p, s);
    size_t pixels = s->window.out_height * s->window.out_width;
    size_t columns = s->taps * s->channels, most = SUMS_BYTES / sizeof(float) / (columns + 1) + 1;
    s->pixels_at_once = most < pixels ? most : pixels;
    s->packed = cpu_weights_find(p->weights, p->kernels,
                                 &(cpu_weights_key){.constant = weights,
                                                    .format = CPU_WEIGHTS_GEMM_F32,
                                                    .k = s->in_channels,
                                                    .n = columns,
                                                    .row_stride = columns,
                                                    .column_stride = 1});
    if (!s->packed)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to pack weights");
    fused_epilogue_prepare(p->node, true, NULL, &s->after);
    p->scratch_bytes = s->pixels_at_once * columns * sizeof(float);
    return STATUS_OK;
}

static void add_run(const kernels *k, const float *from, float *to, size_t count)
{
    if (count >= 32) {
        k->add_f32(to, 1, from, 1, to, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* Adds the sums of input pixel `pixel` to the output image. */
static void spread(const transpose_state *s, const kernels *k, size_t pixel, const float *sums,
                   float *out)
{
    const image_window *w = &s->window;
    ptrdiff_t y0 = (ptrdiff_t)(pixel / w->out_width * w->stride_y) - (ptrdiff_t)w->pad_top;
    ptrdiff_t x0 = (ptrdiff_t)(pixel % w->out_width * w->stride_x) - (ptrdiff_t)w->pad_left;
    bool is_inside = w->dilation_x == 1 && x0 >= 0 && (size_t)x0 + w->kernel_width <= w->width;
    for (size_t ky = 0; ky < w->kernel_height; ky++) {
        ptrdiff_t y = y0 + (ptrdiff_t)(ky * w->dilation_y);
        const float *from = sums + ky * w->kernel_width * s->channels;
        if (y < 0 || (size_t)y >= w->height)
            continue;
        float *line = out + (size_t)y * w->width * s->channels;
        if (is_inside) {
            add_run(k, from, line + (size_t)x0 * s->channels, w->kernel_width * s->channels);
            continue;
        }
        for (size_t kx = 0; kx < w->kernel_width; kx++) {
            ptrdiff_t x = x0 + (ptrdiff_t)(kx * w->dilation_x);
            if (x >= 0 && (size_t)x < w->width)
                add_run(k, from + kx * s->channels, line + (size_t)x * s->channels, s->channels);
        }
    }
}

static void fill_bias(const transpose_state *s, const tensor *bias, float *out, size_t pixels)
{
    if (!bias) {
        memset(out, 0, pixels * s->channels * sizeof *out);
        return;
    }
    for (size_t i = 0; i < pixels; i++)
        memcpy(out + i * s->channels, bias->data, s->channels * sizeof *out);
}

/* A line of input pixels by a matrix, with the bias. */
static void multiply_line(const transpose_state *s, const kernels *k, const float *in,
                          size_t matrix, size_t columns, float *out)
{
    k->gemm_f32(&(gemm_f32){.m = s->window.out_width,
                            .n = columns,
                            .k = s->in_channels,
                            .a = in,
                            .a_stride = s->in_channels,
                            .b = s->by_line[matrix],
                            .c = out,
                            .c_stride = columns,
                            .epilogue = {.bias = s->bias, .activation = s->activation}});
}

/* All lines of the windows of a line of input pixels, by way of `sums`. */
static void draw_apart(const transpose_state *s, const kernels *k, const float *in, float *sums,
                       float *out)
{
    const image_window *w = &s->window;
    size_t step = w->kernel_width * s->channels;
    multiply_line(s, k, in, 0, w->kernel_height * step, sums);
    k->transpose_plane(&(transpose_plane){.element_bytes = step * sizeof(float),
                                          .rows = w->kernel_height,
                                          .columns = w->out_width,
                                          .in = sums,
                                          .in_stride = w->kernel_height,
                                          .out_stride = w->out_width,
                                          .out = out});
}

/* The windows of lines first .. first + count - 1 of the input, counted over all images. */
static void write_lines(const cpu_call *c, void *memory, size_t first, size_t count)
{
    const transpose_state *s = c->state;
    const image_window *w = &s->window;
    const tensor *residual = cpu_input(c->inputs, c->node, RESIDUAL);
    size_t step = w->kernel_width * s->channels, line = w->width * s->channels;
    for (size_t i = first; i < first + count && !cancel_check(c->cancel); i++) {
        const float *in = (const float *)c->inputs[X]->data + i * w->out_width * s->in_channels;
        size_t at = i * w->kernel_height * line;
        float *out = (float *)c->outputs[0].data + at;
        if (s->is_drawn_apart)
            draw_apart(s, c->kernels, in, memory, out);
        for (size_t y = 0; !s->is_drawn_apart && y < w->kernel_height; y++)
            multiply_line(s, c->kernels, in, y, step, out + y * line);
        fused_epilogue_run(&s->after, c->kernels,
                           residual ? (const float *)residual->data + at : NULL, out,
                           w->kernel_height * line);
    }
}

static status run_conv_transpose(const cpu_call *c)
{
    const transpose_state *s = c->state;
    if (s->is_side_by_side) {
        size_t lines = (size_t)s->images * s->window.out_height;
        double steps = (double)(lines * s->window.out_width) *
                       (double)(s->taps * s->channels * s->in_channels);
        cpu_split_rows(c, steps / 16, write_lines, lines);
        return cancel_check(c->cancel);
    }
    const image_window *w = &s->window;
    const tensor *bias = cpu_input(c->inputs, c->node, BIAS);
    const tensor *residual = cpu_input(c->inputs, c->node, RESIDUAL);
    size_t pixels = w->out_height * w->out_width, columns = s->taps * s->channels;
    size_t results = w->height * w->width * s->channels;
    for (int64_t i = 0; i < s->images; i++) {
        const float *x = (const float *)c->inputs[X]->data + (size_t)i * pixels * s->in_channels;
        float *out = (float *)c->outputs[0].data + (size_t)i * results, *sums = c->scratch;
        fill_bias(s, bias, out, w->height * w->width);
        for (size_t first = 0, count; first < pixels; first += count) {
            count = pixels - first < s->pixels_at_once ? pixels - first : s->pixels_at_once;
            status end = cancel_check(c->cancel);
            if (end)
                return end;
            c->kernels->gemm_f32(&(gemm_f32){.m = count,
                                             .n = columns,
                                             .k = s->in_channels,
                                             .a = x + first * s->in_channels,
                                             .a_stride = s->in_channels,
                                             .b = s->packed,
                                             .c = sums,
                                             .c_stride = columns});
            for (size_t p = 0; p < count; p++)
                spread(s, c->kernels, first + p, sums + p * columns, out);
        }
        fused_epilogue_run(&s->after, c->kernels,
                           residual ? (const float *)residual->data + (size_t)i * results : NULL,
                           out, results);
    }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_FUSED_CONV_TRANSPOSE, prepare_conv_transpose, run_conv_transpose, 0, false},
};

const cpu_op_family cpu_ops_conv_transpose = {table, sizeof table / sizeof table[0]};
