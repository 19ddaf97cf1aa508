#include "devices/cpu/fused/conv_dense.h"

#include <assert.h>
#include <string.h>

#include "devices/cpu/fused/fused.h"
#include "devices/cpu/ops/weights.h"
#include "devices/cpu/tensor_loops/window.h"
#include "kernels/gemm_f32.h"

/* penstock.Conv and penstock.Dense of graph/quantise/fuse.h, prepared: which way they run
 * (conv_dense_run.c), their weights, scales and scratch. */

/* Bytes of unfolded rows at a time: half of an L2 cache. With fewer, weights that do not fit beside
 * them would be read more often. */
#define ROWS_BYTES (1 << 20)
#define ROWS_MAX 384
/* Of a dense layer: multiplications and additions of one piece, and its fewest rows. */
#define DENSE_STEPS_MAX ((size_t)1 << 35)
#define DENSE_ROWS_MIN 384

static bool is_known(const cpu_prepare *p, int input)
{
    const tensor *t = cpu_input(p->inputs, p->node, input);
    return !t || t->data;
}

static size_t factors_bytes(const conv_dense *s)
{
    return 3 * cpu_scratch_round(s->n * (size_t)s->groups * sizeof(float)) +
           cpu_scratch_round(s->rows_at_once * sizeof(int32_t));
}

void conv_dense_place_factors(const conv_dense *s, char *memory, conv_dense_factors *f)
{
    size_t step = cpu_scratch_round(s->n * (size_t)s->groups * sizeof(float));
    f->scale = (float *)memory;
    f->bias = (float *)(memory + step);
    f->start = (int32_t *)(memory + 2 * step);
    f->x_zero = (int32_t *)(memory + 3 * step);
}

void conv_dense_fill_factors(const conv_dense *s, const tensor *const *inputs, const graph_node *n,
                             conv_dense_factors *f)
{
    const tensor *bias = cpu_input(inputs, n, CONV_DENSE_BIAS),
                 *y_scale = cpu_input(inputs, n, CONV_DENSE_Y_SCALE);
    const tensor *w_scale = cpu_input(inputs, n, CONV_DENSE_W_SCALE);
    float x = cpu_fused_scale(cpu_input(inputs, n, CONV_DENSE_X_SCALE), 0),
          y = cpu_fused_scale(y_scale, 0);
    int32_t x_zero = cpu_fused_zero(cpu_input(inputs, n, CONV_DENSE_X_ZERO));
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

static const void *pack_group(const cpu_prepare *p, const conv_dense *s, int64_t group)
{
    size_t taps = s->window.kernel_height * s->window.kernel_width;
    bool is_transposed = s->is_conv || graph_attribute_int(p->node, "transB", 0) != 0;
    cpu_weights_key key = {.constant = p->inputs[CONV_DENSE_WEIGHTS],
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

static status prepare_weights(cpu_prepare *p, conv_dense *s)
{
    int64_t count = s->is_depthwise ? 1 : s->groups;
    s->packed = arena_allocate_zeroed(p->memory, (size_t)count, sizeof s->packed[0]);
    for (int64_t g = 0; s->packed && g < count; g++)
        if (!(s->packed[g] = pack_group(p, s, g)))
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory to pack weights");
    return s->packed ? STATUS_OK : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
}

static status prepare_factors(cpu_prepare *p, conv_dense *s)
{
    if (!s->is_u8)
        return STATUS_OK;
    s->is_known = true;
    for (int i = CONV_DENSE_BIAS; i <= CONV_DENSE_Y_ZERO; i++)
        s->is_known &= i == CONV_DENSE_RESIDUAL || is_known(p, i);
    size_t bytes = factors_bytes(s);
    s->y_zero = is_known(p, CONV_DENSE_Y_ZERO)
                    ? cpu_fused_zero(cpu_input(p->inputs, p->node, CONV_DENSE_Y_ZERO))
                    : 0;
    if (!s->is_known) {
        s->rows_offset = bytes;
        return STATUS_OK;
    }
    char *memory = arena_allocate(p->memory, bytes);
    if (!memory)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    conv_dense_place_factors(s, memory, &s->known);
    conv_dense_fill_factors(s, p->inputs, p->node, &s->known);
    return STATUS_OK;
}

/* Sets s->in_place where windows can be read in place. */
static status prepare_in_place(cpu_prepare *p, conv_dense *s)
{
    bool is_simple = s->activation == KERNELS_IDENTITY || s->activation == KERNELS_RELU;
    if (!s->is_conv || !s->is_known || !is_simple || s->groups > 1 || s->weights_shift ||
        p->outputs[0].dtype != DTYPE_U8 || cpu_input(p->inputs, p->node, CONV_DENSE_RESIDUAL))
        return STATUS_OK;
    cpu_conv_u8s8_spec spec = {.window = s->window,
                               .images = (size_t)p->outputs[0].dims[0],
                               .weights = p->inputs[CONV_DENSE_WEIGHTS],
                               .x_zero = s->known.pad,
                               .y_zero = s->y_zero,
                               .start = s->known.start,
                               .scale = s->known.scale,
                               .bias = s->known.bias,
                               .has_relu = s->activation == KERNELS_RELU};
    return cpu_conv_u8s8_prepare(p, &spec, &s->in_place);
}

static status finish_prepare(cpu_prepare *p, conv_dense *s)
{
    s->is_u8 = p->inputs[CONV_DENSE_X]->dtype == DTYPE_U8;
    s->weights_shift = (int32_t)graph_attribute_int(p->node, "weights_shift", 0);
    fused_epilogue_prepare(p->node, s->is_depthwise && !s->is_u8, &s->activation, &s->after);
    status result = prepare_factors(p, s);
    p->state = s;
    p->scratch_bytes = s->rows_offset;
    if (s->multiplier > 1)
        p->scratch_bytes =
            (size_t)tensor_count(p->inputs[CONV_DENSE_X]) * s->multiplier * sizeof(float);
    if (!result)
        result = prepare_in_place(p, s);
    if (result || s->in_place)
        return result;
    result = prepare_weights(p, s);
    bool is_wide = s->is_conv && !s->is_direct && !s->is_depthwise;
    if (!result && is_wide && !s->is_u8)
        result = cpu_conv_lines_init(&s->lines, &s->window, (size_t)s->groups, s->n,
                                     (size_t)s->images, p->memory, &s->is_by_line);
    if (s->is_by_line)
        p->part_bytes = cpu_scratch_round(cpu_conv_lines_scratch(&s->lines));
    else if (is_wide)
        p->part_bytes = cpu_scratch_round(s->rows_at_once * s->k * (s->is_u8 ? 1 : sizeof(float)));
    s->row_start_offset = p->part_bytes;
    if (s->weights_shift)
        p->part_bytes += cpu_scratch_round(s->rows_at_once * sizeof(int32_t));
    return result;
}

static status prepare_conv(cpu_prepare *p)
{
    const tensor *x = p->inputs[CONV_DENSE_X], *weights = p->inputs[CONV_DENSE_WEIGHTS];
    conv_dense *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
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
    s->is_depthwise =
        s->groups > 1 && weights->dims[1] == 1 && (s->n == 1 || x->dtype == DTYPE_F32);
    s->multiplier = 1;
    if (s->is_depthwise && s->n > 1) { /* a group for each result: channels are repeated first */
        s->multiplier = s->n;
        s->groups = weights->dims[0];
        s->n = 1;
    }
    if (s->is_depthwise && x->dtype == DTYPE_U8 &&
        cpu_input(p->inputs, p->node, CONV_DENSE_RESIDUAL))
        s->is_depthwise = false;
    if (s->is_depthwise && x->dtype == DTYPE_U8 && graph_find_attribute(p->node, "activation") &&
        cpu_fused_activation(p->node) != KERNELS_RELU)
        s->is_depthwise = false;
    s->is_direct = !s->is_depthwise && w->kernel_height * w->kernel_width == 1 &&
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
    w->channels = s->is_depthwise ? (size_t)s->groups : (size_t)(x->dims[3] / s->groups);
    return finish_prepare(p, s);
}

static status prepare_dense(cpu_prepare *p)
{
    const tensor *x = p->inputs[CONV_DENSE_X], *weights = p->inputs[CONV_DENSE_WEIGHTS];
    conv_dense *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
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

static const cpu_op table[] = {
    {GRAPH_OP_FUSED_CONV, prepare_conv, conv_dense_run, 0, false},
    {GRAPH_OP_FUSED_DENSE, prepare_dense, conv_dense_run, 0, false},
};

const cpu_op_family cpu_ops_conv_dense = {table, sizeof table / sizeof table[0]};
