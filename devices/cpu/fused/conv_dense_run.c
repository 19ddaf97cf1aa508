#include "devices/cpu/fused/conv_dense.h"

#include <assert.h>

#include "devices/cpu/fused/fused.h"
#include "devices/cpu/ops/split.h"
#include "kernels/gemm_f32.h"
#include "kernels/gemm_scaled.h"
#include "kernels/lines.h"
#include "kernels/tensor_u8.h"

/* penstock.Conv and penstock.Dense of graph/quantise/fuse.h: GEMMs with a fused epilogue. In a
 * convolution A is the image, a row per output pixel: the image itself where windows are single
 * pixels, windows of floats in place (conv_lines.h), others unfolded (im2col) some rows at a time,
 * so that they stay in the L2 cache. Work is
 * split among threads by rows, or by columns where rows are few: then each reads a part of the
 * weights. */

/* Fewer rows are split by columns among threads. */
#define FEW_ROWS 96
#define BLOCK_NS_MIN 20000 /* what takes less is not split further */
/* Results of a depthwise convolution at a time: half of an L1 cache of 32 KiB. */
#define DEPTHWISE_FLOATS 4096

/* Some rows of A and of the result, of one group. */
typedef struct gemm_rows {
    const void *a;
    size_t a_stride, count;
    size_t row; /* of the result, counted over all images */
    int64_t group;
    void *memory;           /* of the thread */
    size_t column, columns; /* 0 columns are all of them */
    /* Of A in segments (kernels/gemm_f32.h): */
    const gemm_f32_segment *segments;
    size_t segment_count, segment;
    size_t run, run_stride;
} gemm_rows;

static void multiply_f32(const cpu_call *c, const conv_dense *s, const gemm_rows *p)
{
    size_t stride = s->n * (size_t)s->groups, column = s->n * (size_t)p->group + p->column;
    const tensor *bias = cpu_input(c->inputs, c->node, CONV_DENSE_BIAS);
    const tensor *residual =
        s->after.adds_residual ? NULL : cpu_input(c->inputs, c->node, CONV_DENSE_RESIDUAL);
    size_t at = p->row * stride + column;
    c->kernels->gemm_f32(&(gemm_f32){
        .m = p->count,
        .n = p->columns ? p->columns : s->n,
        .k = s->k,
        .a = p->a,
        .a_stride = p->a_stride,
        .a_segments = p->segments,
        .a_segment_count = p->segment_count,
        .a_segment = p->segment,
        .a_run = p->run,
        .a_run_stride = p->run_stride,
        .b = (const float *)s->packed[p->group] + gemm_f32_packed_offset(s->k, p->column),
        .c = (float *)c->outputs[0].data + at,
        .c_stride = stride,
        .epilogue = {.bias = bias ? (const float *)bias->data + column : NULL,
                     .residual = residual ? (const float *)residual->data + at : NULL,
                     .residual_stride = stride,
                     .activation = s->activation}});
}

/* What a shift of all weights adds to the sums of each row: shift * sum of (a - zero). */
static void sum_rows(const conv_dense *s, const conv_dense_factors *f, const gemm_rows *p,
                     int32_t *out)
{
    for (size_t i = 0; i < p->count; i++) {
        const uint8_t *a = (const uint8_t *)p->a + i * p->a_stride;
        uint32_t sum = 0 - (uint32_t)s->k * (uint32_t)f->x_zero[i];
        for (size_t k = 0; k < s->k; k++)
            sum += a[k];
        out[i] = (int32_t)(sum * (uint32_t)s->weights_shift);
    }
}

static void multiply_u8s8(const cpu_call *c, const conv_dense *s, const conv_dense_factors *f,
                          const gemm_rows *p)
{
    size_t stride = s->n * (size_t)s->groups, column = s->n * (size_t)p->group + p->column;
    size_t panels = p->column / GEMM_SCALED_PANEL_COLUMNS;
    const tensor *residual = cpu_input(c->inputs, c->node, CONV_DENSE_RESIDUAL);
    size_t at = p->row * stride + column;
    bool is_u8_out = c->outputs[0].dtype == DTYPE_U8;
    int32_t *row_start =
        s->weights_shift ? (int32_t *)((char *)p->memory + s->row_start_offset) : NULL;
    if (row_start)
        sum_rows(s, f, p, row_start);
    void *out = is_u8_out ? (void *)((uint8_t *)c->outputs[0].data + at)
                          : (void *)((float *)c->outputs[0].data + at);
    c->kernels->gemm_u8s8(
        &(gemm_u8s8){.m = p->count,
                     .n = p->columns ? p->columns : s->n,
                     .k = s->k,
                     .a = p->a,
                     .a_stride = p->a_stride,
                     .a_zero = f->x_zero,
                     .b = (const char *)s->packed[p->group] + panels * gemm_u8s8_panel_bytes(s->k),
                     .start = f->start ? f->start + column : NULL,
                     .row_start = row_start,
                     .output = is_u8_out ? GEMM_U8 : GEMM_F32,
                     .c = out,
                     .c_stride = stride,
                     .c_zero = s->y_zero,
                     .epilogue = {.column_scale = f->scale + column,
                                  .bias = f->bias ? f->bias + column : NULL,
                                  .residual = residual ? (const float *)residual->data + at : NULL,
                                  .residual_stride = stride,
                                  .activation = s->activation}});
}

static void multiply(const cpu_call *c, const conv_dense *s, const conv_dense_factors *f,
                     const gemm_rows *p)
{
    if (s->is_u8)
        multiply_u8s8(c, s, f, p);
    else
        multiply_f32(c, s, p);
}

/* What the GEMM does not compute, for whole rows of the result. */
static void finish_rows(const cpu_call *c, const conv_dense *s, size_t first, size_t count)
{
    size_t width = s->n * (size_t)s->groups;
    const tensor *residual = cpu_input(c->inputs, c->node, CONV_DENSE_RESIDUAL);
    if (!s->is_u8)
        fused_epilogue_run(&s->after, c->kernels,
                           residual ? (const float *)residual->data + first * width : NULL,
                           (float *)c->outputs[0].data + first * width, count * width);
}

/* Pixels first .. first + count - 1 of an image. */
static void convolve_depthwise(const cpu_call *c, const conv_dense *s, const conv_dense_factors *f,
                               size_t image, size_t first, size_t count)
{
    const image_window *w = &s->window;
    const tensor *bias = cpu_input(c->inputs, c->node, CONV_DENSE_BIAS);
    size_t in = image * w->height * w->width * w->channels, out = image * s->rows * w->channels;
    size_t at = out + first * w->channels;
    bool is_u8_out = c->outputs[0].dtype == DTYPE_U8;
    if (s->is_u8)
        c->kernels->depthwise_u8s8(
            &(depthwise_u8s8){.window = *w,
                              .in = (const uint8_t *)c->inputs[CONV_DENSE_X]->data + in,
                              .in_zero = f->pad,
                              .weights = s->packed[0],
                              .start = f->start,
                              .scale = f->scale,
                              .bias = f->bias,
                              .has_relu = s->activation == KERNELS_RELU,
                              .first = first,
                              .count = count,
                              .out = is_u8_out ? (uint8_t *)c->outputs[0].data + at : NULL,
                              .out_f32 = is_u8_out ? NULL : (float *)c->outputs[0].data + at,
                              .zero = s->y_zero});
    size_t most = DEPTHWISE_FLOATS / w->channels + 1;
    const float *x = s->multiplier > 1 ? c->scratch : c->inputs[CONV_DENSE_X]->data;
    for (size_t some; !s->is_u8 && count > 0; first += some, count -= some) {
        some = count < most ? count : most;
        c->kernels->depthwise_f32(
            &(depthwise_f32){.window = *w,
                             .in = x + in,
                             .weights = s->packed[0],
                             .bias = bias ? bias->data : NULL,
                             .activation = s->activation,
                             .first = first,
                             .count = some,
                             .out = (float *)c->outputs[0].data + out + first * w->channels});
        finish_rows(c, s, image * s->rows + first, some);
    }
}

/* The windows of `count` output pixels from `first` on, counted over all images. */
static void unfold(const cpu_call *c, const conv_dense *s, const conv_dense_factors *f,
                   int64_t group, size_t first, size_t count, char *rows)
{
    static const float zero = 0;
    const image_window *w = &s->window;
    size_t item = s->is_u8 ? 1 : sizeof(float), channels = w->channels * (size_t)s->groups;
    const char *in =
        (const char *)c->inputs[CONV_DENSE_X]->data + (size_t)group * w->channels * item;
    while (count > 0) {
        size_t image = first / s->rows, pixel = first % s->rows;
        size_t some = s->rows - pixel < count ? s->rows - pixel : count;
        c->kernels->image_rows(
            &(image_rows){.window = *w,
                          .item_bytes = item,
                          .in = in + image * w->height * w->width * channels * item,
                          .in_stride = channels,
                          .pad_item = s->is_u8 ? (const void *)&f->pad : &zero,
                          .first = pixel,
                          .count = some,
                          .out = rows,
                          .out_stride = s->k});
        rows += some * s->k * item;
        first += some;
        count -= some;
    }
}

/* One execution, split into blocks of `items` rows, pixels or columns. */
typedef struct fused_run {
    const cpu_call *call;
    const conv_dense *s;
    const conv_dense_factors *f;
    size_t total, items;
    size_t piece, pieces; /* of lines: pixels of a piece, and how many make a line */
} fused_run;

static size_t block_of(const fused_run *r, size_t unit, size_t *count)
{
    size_t first = unit * r->items;
    *count = r->total - first < r->items ? r->total - first : r->items;
    return cancel_check(r->call->cancel) ? r->total : first;
}

/* About how long `rows` rows take on one core, at a usual speed of the kernels. */
static double estimate_ns(const conv_dense *s, size_t rows)
{
    double steps = (double)rows * (double)s->k * (double)s->n * (double)s->groups;
    return s->is_depthwise ? steps / 4 : steps / (s->is_u8 ? 100 : 32);
}

static void convolve_block(const void *context, void *memory, size_t unit)
{
    const fused_run *r = context;
    size_t count, first = block_of(r, unit, &count);
    for (int64_t g = 0; first < r->total && g < r->s->groups; g++) {
        unfold(r->call, r->s, r->f, g, first, count, memory);
        multiply(r->call, r->s, r->f,
                 &(gemm_rows){.a = memory,
                              .a_stride = r->s->k,
                              .count = count,
                              .row = first,
                              .group = g,
                              .memory = memory});
    }
    if (first < r->total)
        finish_rows(r->call, r->s, first, count);
}

/* Some lines of the results of all images, or a piece of one. */
typedef struct line_part {
    size_t first, lines, pixel, count; /* lines: of one image; pixels [pixel, pixel + count) */
    size_t column, columns;            /* 0 columns are all of them */
} line_part;

static const float *image_of(const fused_run *r, const line_part *p)
{
    const image_window *w = &r->s->window;
    return (const float *)r->call->inputs[CONV_DENSE_X]->data +
           p->first / w->out_height * w->height * w->width * r->s->lines.in_stride;
}

/* The windows of each line are a run of rows. */
static void multiply_lines(const fused_run *r, const line_part *p, void *memory)
{
    const conv_dense *s = r->s;
    const image_window *w = &s->window;
    size_t step = w->stride_x * s->lines.in_stride;
    assert(p->lines == 1 || p->count == w->out_width);
    const float *a =
        cpu_conv_lines_place(&s->lines, image_of(r, p), p->first % w->out_height, p->lines, memory);
    gemm_rows rows = {.a_stride = step,
                      .count = p->lines * p->count,
                      .segments = s->lines.segments,
                      .segment_count = s->lines.segment_count,
                      .segment = s->lines.segment,
                      .run = p->count,
                      .run_stride = w->stride_y * s->lines.pixels * s->lines.in_stride,
                      .row = p->first * w->out_width + p->pixel,
                      .column = p->column,
                      .columns = p->columns};
    for (rows.group = 0; rows.group < s->groups; rows.group++) {
        rows.a = a + p->pixel * step + (size_t)rows.group * w->channels;
        multiply_f32(r->call, s, &rows);
    }
}

/* One line whose taps are far apart. */
static void multiply_apart(const fused_run *r, const line_part *p, void *memory)
{
    const conv_dense *s = r->s;
    const image_window *w = &s->window;
    const float *in = image_of(r, p);
    gemm_rows rows = {.a_stride = w->stride_x * s->lines.in_stride,
                      .segments = memory,
                      .segment = s->lines.segment};
    for (size_t x = p->pixel, end = p->pixel + p->count; x < end; x += rows.count) {
        rows.count = end - x;
        rows.segment_count =
            cpu_conv_lines_segments(&s->lines, p->first % w->out_height, x, &rows.count, memory);
        rows.row = p->first * w->out_width + x;
        for (rows.group = 0; rows.group < s->groups; rows.group++) {
            rows.a = in + (size_t)rows.group * w->channels;
            multiply_f32(r->call, s, &rows);
        }
    }
}

/* How many of `left` lines from line `first` on are computed at a time. */
static size_t lines_at_once(const conv_dense *s, size_t first, size_t left)
{
    size_t some = s->window.out_height - first % s->window.out_height;
    some = some < left ? some : left;
    return some < s->lines.at_once ? some : s->lines.at_once;
}

/* Items are lines of the results of all images, cut into pieces where they are few. */
static void convolve_lines(const void *context, void *memory, size_t unit)
{
    const fused_run *r = context;
    const conv_dense *s = r->s;
    size_t left, width = s->window.out_width;
    line_part p = {.first = block_of(r, unit / r->pieces, &left),
                   .pixel = unit % r->pieces * r->piece};
    p.count = width - p.pixel < r->piece ? width - p.pixel : r->piece;
    for (; left > 0 && p.first < r->total; p.first += p.lines, left -= p.lines) {
        p.lines = lines_at_once(s, p.first, left);
        if (s->lines.is_apart)
            multiply_apart(r, &p, memory);
        else
            multiply_lines(r, &p, memory);
        finish_rows(r->call, s, p.first * width + p.pixel, p.lines * p.count);
    }
}

/* Items are columns: each thread reads a part of the weights, and all of the images. */
static void convolve_columns(const void *context, void *memory, size_t unit)
{
    const fused_run *r = context;
    const conv_dense *s = r->s;
    size_t count, first = block_of(r, unit, &count);
    size_t lines = (size_t)s->images * s->window.out_height;
    line_part p = {.count = s->window.out_width, .column = first, .columns = count};
    for (; first < r->total && p.first < lines; p.first += p.lines) {
        p.lines = lines_at_once(s, p.first, lines - p.first);
        multiply_lines(r, &p, memory);
    }
}

static bool are_lines_by_columns(const cpu_call *c, const conv_dense *s)
{
    size_t image = s->window.height * s->window.width * s->window.channels;
    return c->team && s->groups == 1 && !s->lines.is_apart && s->n >= 2 * GEMM_F32_PANEL_COLUMNS &&
           s->k * s->n > (size_t)s->images * image;
}

static void run_lines(const cpu_call *c, const conv_dense *s, const conv_dense_factors *f)
{
    size_t width = s->window.out_width, threads = cpu_split_threads(c);
    fused_run r = {.call = c,
                   .s = s,
                   .f = f,
                   .total = (size_t)s->images * s->window.out_height,
                   .piece = width,
                   .pieces = 1};
    size_t rows = r.total * width;
    double ns = estimate_ns(s, rows);
    if (threads > 1 && are_lines_by_columns(c, s)) {
        r.total = s->n;
        r.items = cpu_split_items(c, s->n, s->n, GEMM_F32_PANEL_COLUMNS);
        cpu_split(c, ns, convolve_columns, &r, (r.total + r.items - 1) / r.items);
        finish_rows(c, s, 0, rows);
        return;
    }
    r.items = cpu_split_items(c, r.total, s->lines.at_once, 1);
    if (r.total < threads) {
        r.piece = cpu_split_items(c, width, width, 12);
        r.pieces = (width + r.piece - 1) / r.piece;
    }
    cpu_split(c, ns, convolve_lines, &r, (r.total + r.items - 1) / r.items * r.pieces);
}

static void multiply_block(const void *context, void *memory, size_t unit)
{
    const fused_run *r = context;
    size_t item = r->s->is_u8 ? 1 : sizeof(float), count, first = block_of(r, unit, &count);
    size_t width = r->s->k * (size_t)r->s->groups; /* of a row, all groups */
    for (int64_t g = 0; first < r->total && g < r->s->groups; g++)
        multiply(r->call, r->s, r->f,
                 &(gemm_rows){.a = (const char *)r->call->inputs[CONV_DENSE_X]->data +
                                   (first * width + (size_t)g * r->s->k) * item,
                              .a_stride = width,
                              .count = count,
                              .row = first,
                              .group = g,
                              .memory = memory});
    if (first < r->total)
        finish_rows(r->call, r->s, first, count);
}

/* Some columns of few rows: a dense layer of one row is as wide as its weights. Unfolded rows lie
 * in the part of the calling thread. */
static void multiply_columns(const void *context, void *memory, size_t unit)
{
    const fused_run *r = context;
    const conv_dense *s = r->s;
    size_t count, first = block_of(r, unit, &count);
    if (first < r->total)
        multiply(
            r->call, s, r->f,
            &(gemm_rows){.a = s->is_direct ? r->call->inputs[CONV_DENSE_X]->data : r->call->parts,
                         .a_stride = s->k,
                         .count = (size_t)s->images * s->rows,
                         .column = first,
                         .columns = count,
                         .memory = memory});
}

static void unfold_block(const void *context, void *memory, size_t unit)
{
    (void)memory;
    const fused_run *r = context;
    size_t count, first = block_of(r, unit, &count), item = r->s->is_u8 ? 1 : sizeof(float);
    if (first < r->total)
        unfold(r->call, r->s, r->f, 0, first, count,
               (char *)r->call->parts + first * r->s->k * item);
}

/* Each thread reads a part of the weights, which few rows do not make up for reading whole. */
static void run_columns(const cpu_call *c, const conv_dense *s, const conv_dense_factors *f)
{
    size_t rows = (size_t)s->images * s->rows;
    size_t panel = s->is_u8 ? GEMM_SCALED_PANEL_COLUMNS : GEMM_F32_PANEL_COLUMNS;
    fused_run r = {.call = c, .s = s, .f = f, .total = rows};
    double ns = estimate_ns(s, rows);
    if (!s->is_direct) {
        r.items = cpu_split_items(c, rows, rows, 1);
        cpu_split(c, ns / 8, unfold_block, &r, (rows + r.items - 1) / r.items);
    }
    r.total = s->n;
    r.items = cpu_split_items(c, s->n, s->n, panel);
    cpu_split(c, ns, multiply_columns, &r, (r.total + r.items - 1) / r.items);
    finish_rows(c, s, 0, rows);
}

static void run_rows(const cpu_call *c, const conv_dense *s, const conv_dense_factors *f)
{
    fused_run r = {.call = c, .s = s, .f = f, .total = (size_t)s->images * s->rows};
    cpu_part part = s->is_direct ? multiply_block : convolve_block;
    double ns = estimate_ns(s, r.total);
    r.items =
        ns < BLOCK_NS_MIN ? s->rows_at_once : cpu_split_items(c, r.total, s->rows_at_once, 12);
    cpu_split(c, ns, part, &r, (r.total + r.items - 1) / r.items);
}

/* Few rows, and weights that exceed them. */
static bool is_by_columns(const cpu_call *c, const conv_dense *s)
{
    size_t rows = (size_t)s->images * s->rows;
    size_t panel = s->is_u8 ? GEMM_SCALED_PANEL_COLUMNS : GEMM_F32_PANEL_COLUMNS;
    return c->team && s->groups == 1 && rows <= FEW_ROWS && rows <= s->rows_at_once &&
           s->n >= 2 * panel && s->n > rows;
}

static void depthwise_block(const void *context, void *memory, size_t unit)
{
    (void)memory;
    const fused_run *r = context;
    size_t count, first = block_of(r, unit, &count);
    for (size_t some; count > 0 && first < r->total; first += some, count -= some) {
        size_t left = r->s->rows - first % r->s->rows; /* of the image */
        some = count < left ? count : left;
        convolve_depthwise(r->call, r->s, r->f, first / r->s->rows, first % r->s->rows, some);
    }
}

static void run_depthwise(const cpu_call *c, const conv_dense *s, const conv_dense_factors *f)
{
    fused_run r = {.call = c, .s = s, .f = f, .total = (size_t)s->images * s->rows};
    const tensor *x = c->inputs[CONV_DENSE_X];
    if (s->multiplier > 1)
        c->kernels->repeat_plane(&(repeat_plane){.element_bytes = sizeof(float),
                                                 .rows = 1,
                                                 .row_times = 1,
                                                 .columns = (size_t)tensor_count(x),
                                                 .times = s->multiplier,
                                                 .in = x->data,
                                                 .out = c->scratch});
    r.items = cpu_split_items(c, r.total, r.total, 1);
    cpu_split(c, estimate_ns(s, r.total), depthwise_block, &r, (r.total + r.items - 1) / r.items);
}

status conv_dense_run(const cpu_call *c)
{
    const conv_dense *s = c->state;
    if (s->in_place) {
        cpu_conv_u8s8_run(s->in_place, c->kernels, c->inputs[CONV_DENSE_X]->data, c->scratch,
                          c->outputs[0].data);
        return STATUS_OK;
    }
    conv_dense_factors f = s->known;
    if (s->is_u8 && !s->is_known) {
        conv_dense_place_factors(s, c->scratch, &f);
        conv_dense_fill_factors(s, c->inputs, c->node, &f);
    }
    if (s->is_depthwise)
        run_depthwise(c, s, &f);
    else if (s->is_by_line)
        run_lines(c, s, &f);
    else if (is_by_columns(c, s))
        run_columns(c, s, &f);
    else
        run_rows(c, s, &f);
    return cancel_check(c->cancel);
}
