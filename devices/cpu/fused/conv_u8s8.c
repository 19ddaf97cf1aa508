#include "devices/cpu/fused/conv_u8s8.h"

#include <stdlib.h>
#include <string.h>

#include "devices/cpu/fused/conv_layout.h"
#include "devices/cpu/ops/weights.h"
#include "kernels/conv_u8s8.h"

/* Bytes of the images laid out at a time: they stay in the L2 cache, and the weights of late
 * layers, which do not, are read once for all of them. */
#define IMAGES_BYTES (1 << 19)

/* Small windows over few channels leave most of a step empty: unfolding is faster when there are
 * more than this many steps for each step of unfolded rows. */
#define STEPS_RATIO_MAX 4

struct cpu_conv_u8s8 {
    cpu_conv_layout layout;
    conv_u8s8 kernel; /* complete but for in, out and images, which a run sets */
    size_t images, images_at_once, in_image_bytes;
    uint8_t pad;
};

static const void *find_weights(const cpu_prepare *p, const cpu_conv_u8s8_spec *spec,
                                const cpu_conv_layout *layout, const int32_t *items)
{
    const image_window *w = &spec->window;
    cpu_weights_key key = {.constant = spec->weights,
                           .format = CPU_WEIGHTS_CONV_U8S8,
                           .k = layout->steps * CONV_U8S8_STEP_BYTES,
                           .n = (size_t)spec->weights->dims[0],
                           .taps = w->kernel_height * w->kernel_width,
                           .items = items,
                           .arrangement = {w->stride_y, w->stride_x, w->dilation_y, w->dilation_x}};
    return cpu_weights_find(p->weights, p->kernels, &key);
}

/* What sums start with, the input's zero point subtracted, scales and bias; filled up to whole
 * tiles. */
static status fill_columns(cpu_prepare *p, const cpu_conv_u8s8_spec *spec, conv_u8s8 *c)
{
    size_t bytes = (c->n + CONV_U8S8_COLUMNS - 1) / CONV_U8S8_COLUMNS * CONV_U8S8_COLUMNS * 4;
    size_t k = (size_t)tensor_count(spec->weights) / c->n;
    int32_t *start = arena_allocate_zeroed(p->memory, 1, bytes);
    float *scale = arena_allocate_zeroed(p->memory, 1, bytes);
    float *bias = arena_allocate_zeroed(p->memory, 1, bytes);
    if (!start || !scale || !bias)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    const int8_t *weights = spec->weights->data;
    for (size_t j = 0; j < c->n; j++) {
        int32_t sum = 0;
        for (size_t i = 0; i < k; i++)
            sum += weights[j * k + i];
        uint32_t first = spec->start ? (uint32_t)spec->start[j] : 0;
        start[j] = (int32_t)(first - (uint32_t)spec->x_zero * (uint32_t)sum);
        scale[j] = spec->scale[j];
        bias[j] = spec->bias ? spec->bias[j] : 0;
    }
    c->start = start;
    c->scale = scale;
    c->bias = bias;
    return STATUS_OK;
}

static status fill_kernel(cpu_prepare *p, const cpu_conv_u8s8_spec *spec, cpu_conv_u8s8 *s)
{
    const cpu_conv_layout *q = &s->layout;
    size_t n = (size_t)spec->weights->dims[0], pixels = q->window.out_height * q->window.out_width;
    size_t *offsets = arena_allocate(p->memory, q->steps * sizeof *offsets);
    int32_t *items = malloc(q->steps * CONV_U8S8_STEP_BYTES * sizeof *items);
    const void *weights = NULL;
    if (offsets && items) {
        cpu_conv_layout_steps(q, offsets, items);
        weights = find_weights(p, spec, q, items);
    }
    free(items);
    if (!weights)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory to pack weights");
    s->kernel = (conv_u8s8){.in_image_bytes = q->image_bytes,
                            .out_image_bytes = pixels * n,
                            .cells = q->count,
                            .cell_bytes = q->cell_bytes,
                            .pitch = q->pitch,
                            .width = q->window.out_width,
                            .offsets = offsets,
                            .steps = q->steps,
                            .n = n,
                            .weights = weights,
                            .zero = spec->y_zero,
                            .low = spec->has_relu ? spec->y_zero : 0,
                            .out_stride = n};
    return fill_columns(p, spec, &s->kernel);
}

/* The pixels of all images are the rows of one matrix. */
static void use_images(cpu_conv_u8s8 *s)
{
    conv_u8s8 *c = &s->kernel;
    c->cells = c->pitch = c->width = s->images * s->layout.count;
    s->images = s->images_at_once = 1;
}

status cpu_conv_u8s8_prepare(cpu_prepare *p, const cpu_conv_u8s8_spec *spec,
                             const cpu_conv_u8s8 **out)
{
    const image_window *w = &spec->window;
    size_t k = (size_t)(tensor_count(spec->weights) / spec->weights->dims[0]);
    size_t steps = (k + CONV_U8S8_STEP_BYTES - 1) / CONV_U8S8_STEP_BYTES;
    cpu_conv_layout layout;
    *out = NULL;
    if (!conv_u8s8_is_fast(p->kernels) || spec->images * w->out_height * w->out_width == 0)
        return STATUS_OK;
    cpu_conv_layout_init(&layout, w);
    if (layout.steps > STEPS_RATIO_MAX * steps)
        return STATUS_OK;
    cpu_conv_u8s8 *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    size_t at_once = IMAGES_BYTES / layout.image_bytes;
    at_once = at_once < 1 ? 1 : at_once < spec->images ? at_once : spec->images;
    *s = (cpu_conv_u8s8){.layout = layout,
                         .images = spec->images,
                         .images_at_once = at_once,
                         .in_image_bytes = w->height * w->width * w->channels,
                         .pad = (uint8_t)spec->x_zero};
    status result = fill_kernel(p, spec, s);
    if (result)
        return result;
    if (layout.is_direct)
        use_images(s);
    else
        p->scratch_bytes += cpu_scratch_round(at_once * layout.image_bytes);
    *out = s;
    return STATUS_OK;
}

void cpu_conv_u8s8_run(const cpu_conv_u8s8 *s, const kernels *k, const uint8_t *in,
                       uint8_t *scratch, uint8_t *out)
{
    conv_u8s8 c = s->kernel;
    for (size_t first = 0; first < s->images; first += s->images_at_once) {
        size_t left = s->images - first;
        c.images = left < s->images_at_once ? left : s->images_at_once;
        c.in = s->layout.is_direct ? in : scratch;
        c.out = out + first * c.out_image_bytes;
        for (size_t i = 0; !s->layout.is_direct && i < c.images; i++)
            cpu_conv_layout_fill(&s->layout, in + (first + i) * s->in_image_bytes, s->pad,
                                 scratch + i * c.in_image_bytes);
        k->conv_u8s8(&c);
    }
}
