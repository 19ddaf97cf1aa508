#include <assert.h>
#include <string.h>

#include "devices/cpu/fused/conv_lines.h"
#include "devices/cpu/fused/conv_u8s8.h"
#include "devices/cpu/fused/epilogue.h"
#include "devices/cpu/fused/fused.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/ops/weights.h"
#include "devices/cpu/tensor_loops/window.h"
#include "kernels/convolution.h"
#include "kernels/gemm_f32.h"
#include "kernels/gemm_scaled.h"
#include "kernels/tensor_u8.h"

/* penstock.Conv and penstock.Dense of graph/quantise/fuse.h: GEMMs with a fused epilogue. In a
 * convolution A is the image, a row per output pixel: unfolded (im2col) some rows at a time, so
 * that they stay in the L2 cache, or, where windows are single pixels, the image itself. */

enum { X, WEIGHTS, BIAS, RESIDUAL, X_SCALE, X_ZERO, W_SCALE, Y_SCALE, Y_ZERO };

/* Bytes of unfolded rows at a time: half of an L2 cache. With fewer, weights that do not fit beside
 * them would be read more often. */
#define ROWS_BYTES (1 << 20)
#define ROWS_MAX 384
/* Results of a depthwise convolution at a time: half of an L1 cache of 32 KiB. */
#define DEPTHWISE_FLOATS 4096
/* Fewer rows are split by columns among threads. */
#define FEW_ROWS 48
#define BLOCK_NS_MIN 20000 /* what takes less is not split further */
/* Of a dense layer: multiplications and additions of one piece, and its fewest rows. */
#define DENSE_STEPS_MAX ((size_t)1 << 35)
#define DENSE_ROWS_MIN 384

/* What an epilogue takes beside the operands. */
typedef struct factors {
    float *scale;    /* [n]: of the sums; quantised only */
    float *bias;     /* [n], or NULL */
    int32_t *start;  /* [n], or NULL */
    int32_t *x_zero; /* [rows] */
    uint8_t pad;
} factors;

typedef struct fused_state {
    bool is_conv, is_u8, is_depthwise, is_direct;
    bool is_known; /* scales and zero points are constants: `known` holds them */
    int64_t images, groups;
    size_t rows;               /* of A; of a convolution: per image */
    size_t rows_at_once, k, n; /* k and n of a group */
    image_window window;
    kernels_activation activation; /* of the GEMM */
    fused_epilogue after;          /* behind it */
    const void **packed;           /* by group */
    int32_t y_zero;
    int32_t weights_shift;   /* of fuse.h; then: */
    size_t row_start_offset; /* in the part of each thread */
    factors known;
    size_t rows_offset; /* scratch: after the factors */
    bool is_by_line;    /* windows of floats are read in place: */
    cpu_conv_lines lines;
    const cpu_conv_u8s8 *in_place; /* runs the whole convolution; NULL: windows are unfolded */
} fused_state;

static bool is_known(const cpu_prepare *p, int input)
{
    const tensor *t = cpu_input(p->inputs, p->node, input);
    return !t || t->data;
}

static size_t factors_bytes(const fused_state *s)
{
    return 3 * cpu_scratch_round(s->n * (size_t)s->groups * sizeof(float)) +
           cpu_scratch_round(s->rows_at_once * sizeof(int32_t));
}

static void place_factors(const fused_state *s, char *memory, factors *f)
{
    size_t step = cpu_scratch_round(s->n * (size_t)s->groups * sizeof(float));
    f->scale = (float *)memory;
    f->bias = (float *)(memory + step);
    f->start = (int32_t *)(memory + 2 * step);
    f->x_zero = (int32_t *)(memory + 3 * step);
}

/* All factors in units of the result's scale. */
static void fill_factors(const fused_state *s, const tensor *const *inputs, const graph_node *n,
                         factors *f)
{
    const tensor *bias = cpu_input(inputs, n, BIAS), *y_scale = cpu_input(inputs, n, Y_SCALE);
    const tensor *w_scale = cpu_input(inputs, n, W_SCALE);
    float x = cpu_fused_scale(cpu_input(inputs, n, X_SCALE), 0), y = cpu_fused_scale(y_scale, 0);
    int32_t x_zero = cpu_fused_zero(cpu_input(inputs, n, X_ZERO));
    size_t all = s->n * (size_t)s->groups;
    for (size_t i = 0; i < all; i++)
        f->scale[i] = x * cpu_fused_scale(w_scale, i) / y;
    for (size_t i = 0; i < s->rows_at_once; i++)
        f->x_zero[i] = x_zero;
    f->pad = (uint8_t)x_zero;
    bool is_integer = bias && bias->dtype == DTYPE_I32;
    for (size_t i = 0; is_integer && i < all; i++)
        f->start[i] = ((const int32_t *)bias->data)[i];
    for (size_t i = 0; bias && !is_integer && i < all; i++)
        f->bias[i] = ((const float *)bias->data)[i] / y;
    f->start = is_integer ? f->start : NULL;
    f->bias = bias && !is_integer ? f->bias : NULL;
}

static const void *pack_group(const cpu_prepare *p, const fused_state *s, int64_t group)
{
    size_t taps = s->window.kernel_height * s->window.kernel_width;
    bool is_transposed = s->is_conv || graph_attribute_int(p->node, "transB", 0) != 0;
    cpu_weights_key key = {.constant = p->inputs[WEIGHTS],
                           .format = s->is_u8 ? CPU_WEIGHTS_GEMM_U8S8 : CPU_WEIGHTS_GEMM_F32,
                           .offset = (size_t)group * s->n * s->k,
                           .k = s->k,
                           .n = s->n,
                           .row_stride = is_transposed ? 1 : s->n,
                           .column_stride = is_transposed ? s->k : 1,
                           .taps = s->is_conv ? taps : 0};
    if (s->is_depthwise) {
        key.format = CPU_WEIGHTS_TAPS;
        key.offset = 0;
        key.k = taps;
        key.n = s->n * (size_t)s->groups;
    }
    return cpu_weights_find(p->weights, p->kernels, &key);
}

static status prepare_weights(cpu_prepare *p, fused_state *s)
{
    int64_t count = s->is_depthwise ? 1 : s->groups;
    s->packed = arena_allocate_zeroed(p->memory, (size_t)count, sizeof s->packed[0]);
    for (int64_t g = 0; s->packed && g < count; g++)
        if (!(s->packed[g] = pack_group(p, s, g)))
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory to pack weights");
    return s->packed ? STATUS_OK : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
}

static status prepare_factors(cpu_prepare *p, fused_state *s)
{
    if (!s->is_u8)
        return STATUS_OK;
    s->is_known = true;
    for (int i = BIAS; i <= Y_ZERO; i++)
        s->is_known &= i == RESIDUAL || is_known(p, i);
    size_t bytes = factors_bytes(s);
    s->y_zero = is_known(p, Y_ZERO) ? cpu_fused_zero(cpu_input(p->inputs, p->node, Y_ZERO)) : 0;
    if (!s->is_known) {
        s->rows_offset = bytes;
        return STATUS_OK;
    }
    char *memory = arena_allocate(p->memory, bytes);
    if (!memory)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    place_factors(s, memory, &s->known);
    fill_factors(s, p->inputs, p->node, &s->known);
    return STATUS_OK;
}

/* Sets s->in_place where windows can be read in place. */
static status prepare_in_place(cpu_prepare *p, fused_state *s)
{
    bool is_simple = s->activation == KERNELS_IDENTITY || s->activation == KERNELS_RELU;
    if (!s->is_conv || !s->is_known || !is_simple || s->groups > 1 || s->weights_shift ||
        p->outputs[0].dtype != DTYPE_U8 || cpu_input(p->inputs, p->node, RESIDUAL))
        return STATUS_OK;
    cpu_conv_u8s8_spec spec = {.window = s->window,
                               .images = (size_t)p->outputs[0].dims[0],
                               .weights = p->inputs[WEIGHTS],
                               .x_zero = s->known.pad,
                               .y_zero = s->y_zero,
                               .start = s->known.start,
                               .scale = s->known.scale,
                               .bias = s->known.bias,
                               .has_relu = s->activation == KERNELS_RELU};
    return cpu_conv_u8s8_prepare(p, &spec, &s->in_place);
}

static status finish_prepare(cpu_prepare *p, fused_state *s)
{
    s->is_u8 = p->inputs[X]->dtype == DTYPE_U8;
    s->weights_shift = (int32_t)graph_attribute_int(p->node, "weights_shift", 0);
    fused_epilogue_prepare(p->node, s->is_depthwise && !s->is_u8, &s->activation, &s->after);
    status result = prepare_factors(p, s);
    p->state = s;
    p->scratch_bytes = s->rows_offset;
    if (!result)
        result = prepare_in_place(p, s);
    if (result || s->in_place)
        return result;
    result = prepare_weights(p, s);
    bool is_wide = s->is_conv && !s->is_direct && !s->is_depthwise;
    s->is_by_line =
        is_wide && !s->is_u8 && s->groups == 1 && cpu_conv_lines_init(&s->lines, &s->window, s->n);
    if (s->is_by_line)
        p->part_bytes = cpu_scratch_round(cpu_conv_lines_scratch(&s->lines) * sizeof(float));
    else if (is_wide)
        p->part_bytes = cpu_scratch_round(s->rows_at_once * s->k * (s->is_u8 ? 1 : sizeof(float)));
    s->row_start_offset = p->part_bytes;
    if (s->weights_shift)
        p->part_bytes += cpu_scratch_round(s->rows_at_once * sizeof(int32_t));
    return result;
}

static status prepare_conv(cpu_prepare *p)
{
    const tensor *x = p->inputs[X], *weights = p->inputs[WEIGHTS];
    fused_state *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    assert(p->weights && weights->data);
    status result =
        cpu_window_init_image(&s->window, p->node, x, &p->outputs[0], weights->dims + 2);
    if (result)
        return result;
    image_window *w = &s->window;
    s->is_conv = true;
    s->images = x->dims[0];
    s->groups = graph_attribute_int(p->node, "group", 1);
    s->n = (size_t)(weights->dims[0] / s->groups);
    s->k = (size_t)weights->dims[1] * w->kernel_height * w->kernel_width;
    s->is_depthwise = s->groups > 1 && s->n == 1 && weights->dims[1] == 1;
    if (s->is_depthwise && x->dtype == DTYPE_U8 && cpu_input(p->inputs, p->node, RESIDUAL))
        s->is_depthwise = false;
    if (s->is_depthwise && x->dtype == DTYPE_U8 && graph_find_attribute(p->node, "activation") &&
        cpu_fused_activation(p->node) != KERNELS_RELU)
        s->is_depthwise = false;
    s->is_direct = s->groups == 1 && w->kernel_height * w->kernel_width == 1 &&
                   w->stride_x * w->stride_y == 1 && w->out_height == w->height &&
                   w->out_width == w->width && w->pad_top + w->pad_left == 0;
    s->rows = w->out_height * w->out_width;
    if (s->is_direct) { /* the pixels of all images are rows of one matrix */
        s->rows *= (size_t)s->images;
        s->images = 1;
    }
    size_t item = x->dtype == DTYPE_U8 ? 1 : sizeof(float), at_once = ROWS_BYTES / (s->k * item);
    at_once = at_once < 96 ? 96 : at_once > ROWS_MAX ? ROWS_MAX : at_once / 96 * 96;
    size_t total = (size_t)s->images * s->rows;
    s->rows_at_once = at_once < total ? at_once : total;
    w->channels = (size_t)x->dims[3] / (s->is_depthwise ? 1 : (size_t)s->groups);
    return finish_prepare(p, s);
}

static status prepare_dense(cpu_prepare *p)
{
    const tensor *x = p->inputs[X], *weights = p->inputs[WEIGHTS];
    fused_state *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    assert(p->weights && weights->data);
    bool is_transposed = graph_attribute_int(p->node, "transB", 0) != 0;
    s->images = s->groups = 1;
    s->k = (size_t)weights->dims[is_transposed];
    s->n = (size_t)weights->dims[!is_transposed];
    s->rows = (size_t)tensor_count(x) / s->k;
    /* One piece, unless it takes seconds: a load can be cancelled between pieces. */
    size_t most = DENSE_STEPS_MAX / (s->k * s->n + 1) / 96 * 96;
    most = most < DENSE_ROWS_MIN ? DENSE_ROWS_MIN : most;
    s->rows_at_once = s->rows < most ? s->rows : most;
    s->window = (image_window){.kernel_height = 1, .kernel_width = 1};
    s->is_direct = true;
    return finish_prepare(p, s);
}

/* Some rows of A and of the result, of one group. */
typedef struct gemm_rows {
    const void *a;
    size_t a_stride, count;
    size_t row; /* of the result, counted over all images */
    int64_t group;
    void *memory;                   /* of the thread */
    size_t segment, segment_stride; /* of a, in floats; 0: none */
    size_t column, columns;         /* of floats: 0 columns are all of them */
} gemm_rows;

static void multiply_f32(const cpu_call *c, const fused_state *s, const gemm_rows *p)
{
    size_t stride = s->n * (size_t)s->groups, column = s->n * (size_t)p->group + p->column;
    const tensor *bias = cpu_input(c->inputs, c->node, BIAS);
    const tensor *residual =
        s->after.adds_residual ? NULL : cpu_input(c->inputs, c->node, RESIDUAL);
    size_t at = p->row * stride + column;
    c->kernels->gemm_f32(&(gemm_f32){
        .m = p->count,
        .n = p->columns ? p->columns : s->n,
        .k = s->k,
        .a = p->a,
        .a_stride = p->a_stride,
        .a_segment = p->segment,
        .a_segment_stride = p->segment_stride,
        .b = (const float *)s->packed[p->group] + gemm_f32_packed_offset(s->k, p->column),
        .c = (float *)c->outputs[0].data + at,
        .c_stride = stride,
        .epilogue = {.bias = bias ? (const float *)bias->data + column : NULL,
                     .residual = residual ? (const float *)residual->data + at : NULL,
                     .residual_stride = stride,
                     .activation = s->activation}});
}

/* What a shift of all weights adds to the sums of each row: shift * sum of (a - zero). */
static void sum_rows(const fused_state *s, const factors *f, const gemm_rows *p, int32_t *out)
{
    for (size_t i = 0; i < p->count; i++) {
        const uint8_t *a = (const uint8_t *)p->a + i * p->a_stride;
        uint32_t sum = 0 - (uint32_t)s->k * (uint32_t)f->x_zero[i];
        for (size_t k = 0; k < s->k; k++)
            sum += a[k];
        out[i] = (int32_t)(sum * (uint32_t)s->weights_shift);
    }
}

static void multiply_u8s8(const cpu_call *c, const fused_state *s, const factors *f,
                          const gemm_rows *p)
{
    size_t stride = s->n * (size_t)s->groups, column = s->n * (size_t)p->group;
    const tensor *residual = cpu_input(c->inputs, c->node, RESIDUAL);
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
                     .n = s->n,
                     .k = s->k,
                     .a = p->a,
                     .a_stride = p->a_stride,
                     .a_zero = f->x_zero,
                     .b = s->packed[p->group],
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

static void multiply(const cpu_call *c, const fused_state *s, const factors *f, const gemm_rows *p)
{
    if (s->is_u8)
        multiply_u8s8(c, s, f, p);
    else
        multiply_f32(c, s, p);
}

/* What the GEMM does not compute, for whole rows of the result. */
static void finish_rows(const cpu_call *c, const fused_state *s, size_t first, size_t count)
{
    size_t width = s->n * (size_t)s->groups;
    const tensor *residual = cpu_input(c->inputs, c->node, RESIDUAL);
    if (!s->is_u8)
        fused_epilogue_run(&s->after, c->kernels,
                           residual ? (const float *)residual->data + first * width : NULL,
                           (float *)c->outputs[0].data + first * width, count * width);
}

/* Pixels first .. first + count - 1 of an image; of uint8 all of them. */
static void convolve_depthwise(const cpu_call *c, const fused_state *s, const factors *f,
                               size_t image, size_t first, size_t count)
{
    const image_window *w = &s->window;
    const tensor *bias = cpu_input(c->inputs, c->node, BIAS);
    size_t in = image * w->height * w->width * w->channels, out = image * s->rows * w->channels;
    bool is_u8_out = c->outputs[0].dtype == DTYPE_U8;
    if (s->is_u8)
        c->kernels->depthwise_u8s8(
            &(depthwise_u8s8){.window = *w,
                              .in = (const uint8_t *)c->inputs[X]->data + in,
                              .in_zero = f->pad,
                              .weights = s->packed[0],
                              .start = f->start,
                              .scale = f->scale,
                              .bias = f->bias,
                              .has_relu = s->activation == KERNELS_RELU,
                              .count = s->rows,
                              .out = is_u8_out ? (uint8_t *)c->outputs[0].data + out : NULL,
                              .out_f32 = is_u8_out ? NULL : (float *)c->outputs[0].data + out,
                              .zero = s->y_zero});
    size_t most = DEPTHWISE_FLOATS / w->channels + 1;
    for (size_t some; !s->is_u8 && count > 0; first += some, count -= some) {
        some = count < most ? count : most;
        c->kernels->depthwise_f32(
            &(depthwise_f32){.window = *w,
                             .in = (const float *)c->inputs[X]->data + in,
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
static void unfold(const cpu_call *c, const fused_state *s, const factors *f, int64_t group,
                   size_t first, size_t count, char *rows)
{
    static const float zero = 0;
    const image_window *w = &s->window;
    size_t item = s->is_u8 ? 1 : sizeof(float), channels = w->channels * (size_t)s->groups;
    const char *in = (const char *)c->inputs[X]->data + (size_t)group * w->channels * item;
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
    const fused_state *s;
    const factors *f;
    size_t total, items;
} fused_run;

static size_t block_of(const fused_run *r, size_t unit, size_t *count)
{
    size_t first = unit * r->items;
    *count = r->total - first < r->items ? r->total - first : r->items;
    return cancel_check(r->call->cancel) ? r->total : first;
}

/* About how long `rows` rows take on one core, at a usual speed of the kernels. */
static double estimate_ns(const fused_state *s, size_t rows)
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

/* Items are lines of the results of all images. */
static void convolve_lines(const void *context, void *memory, size_t unit)
{
    const fused_run *r = context;
    const fused_state *s = r->s;
    const image_window *w = &s->window;
    size_t left, first = block_of(r, unit, &left), length = s->lines.pixels * w->channels, some;
    for (; left > 0 && first < r->total; first += some, left -= some) {
        size_t y = first % w->out_height, row = first * w->out_width;
        some = w->out_height - y < left ? w->out_height - y : left;
        some = some < s->lines.at_once ? some : s->lines.at_once;
        const float *in = (const float *)r->call->inputs[X]->data +
                          first / w->out_height * w->height * w->width * w->channels;
        const float *a = cpu_conv_lines_place(&s->lines, in, y, some, memory);
        for (size_t i = 0; i < some; i++, a += w->stride_y * length, row += w->out_width) {
            multiply_f32(r->call, s,
                         &(gemm_rows){.a = a,
                                      .a_stride = w->stride_x * w->channels,
                                      .segment = w->kernel_width * w->channels,
                                      .segment_stride = w->dilation_y * length,
                                      .count = w->out_width,
                                      .row = row});
            finish_rows(r->call, s, row, w->out_width);
        }
    }
}

static void run_lines(const cpu_call *c, const fused_state *s, const factors *f)
{
    fused_run r = {.call = c, .s = s, .f = f, .total = (size_t)s->images * s->window.out_height};
    r.items = cpu_split_items(c, r.total, s->lines.at_once, 1);
    cpu_split(c, estimate_ns(s, r.total * s->window.out_width), convolve_lines, &r,
              (r.total + r.items - 1) / r.items);
}

static void multiply_block(const void *context, void *memory, size_t unit)
{
    const fused_run *r = context;
    size_t item = r->s->is_u8 ? 1 : sizeof(float), count, first = block_of(r, unit, &count);
    if (first >= r->total)
        return;
    multiply(r->call, r->s, r->f,
             &(gemm_rows){.a = (const char *)r->call->inputs[X]->data + first * r->s->k * item,
                          .a_stride = r->s->k,
                          .count = count,
                          .row = first,
                          .memory = memory});
    finish_rows(r->call, r->s, first, count);
}

/* Some columns of few rows: a dense layer of one row is as wide as its weights. */
static void multiply_columns(const void *context, void *memory, size_t unit)
{
    (void)memory;
    const fused_run *r = context;
    size_t count, first = block_of(r, unit, &count);
    if (first < r->total)
        multiply_f32(r->call, r->s,
                     &(gemm_rows){.a = r->call->inputs[X]->data,
                                  .a_stride = r->s->k,
                                  .count = r->s->rows,
                                  .column = first,
                                  .columns = count});
}

static void run_rows(const cpu_call *c, const fused_state *s, const factors *f)
{
    bool is_by_columns = s->is_direct && !s->is_u8 && s->rows <= FEW_ROWS && c->team &&
                         s->n >= 2 * GEMM_F32_PANEL_COLUMNS;
    fused_run r = {.call = c, .s = s, .f = f, .total = (size_t)s->images * s->rows};
    cpu_part part = s->is_direct ? multiply_block : convolve_block;
    double ns = estimate_ns(s, r.total);
    r.items =
        ns < BLOCK_NS_MIN ? s->rows_at_once : cpu_split_items(c, r.total, s->rows_at_once, 12);
    if (is_by_columns) {
        part = multiply_columns;
        r.total = s->n;
        r.items = cpu_split_items(c, s->n, s->n, GEMM_F32_PANEL_COLUMNS);
    }
    cpu_split(c, ns, part, &r, (r.total + r.items - 1) / r.items);
    if (is_by_columns)
        finish_rows(c, s, 0, s->rows);
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

static void run_depthwise(const cpu_call *c, const fused_state *s, const factors *f)
{
    fused_run r = {.call = c, .s = s, .f = f, .total = (size_t)s->images * s->rows};
    r.items = s->is_u8 ? s->rows : cpu_split_items(c, r.total, r.total, 1);
    cpu_split(c, estimate_ns(s, r.total), depthwise_block, &r, (r.total + r.items - 1) / r.items);
}

static status run_gemm(const cpu_call *c)
{
    const fused_state *s = c->state;
    if (s->in_place) {
        cpu_conv_u8s8_run(s->in_place, c->kernels, c->inputs[X]->data, c->scratch,
                          c->outputs[0].data);
        return STATUS_OK;
    }
    factors f = s->known;
    if (s->is_u8 && !s->is_known) {
        place_factors(s, c->scratch, &f);
        fill_factors(s, c->inputs, c->node, &f);
    }
    if (s->is_depthwise)
        run_depthwise(c, s, &f);
    else if (s->is_by_line)
        run_lines(c, s, &f);
    else
        run_rows(c, s, &f);
    return cancel_check(c->cancel);
}

static const cpu_op table[] = {
    {GRAPH_OP_FUSED_CONV, prepare_conv, run_gemm, 0, false},
    {GRAPH_OP_FUSED_DENSE, prepare_dense, run_gemm, 0, false},
};

const cpu_op_family cpu_ops_conv_dense = {table, sizeof table / sizeof table[0]};
