#include <string.h>

#include "devices/cpu/ops/integer/integer.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/ops/weights.h"
#include "devices/cpu/tensor_loops/window.h"
#include "kernels/convolution.h"
#include "kernels/lines.h"

/* ConvInteger and QLinearConv as GEMMs: an image is turned so that its channels are last, the
 * windows of some pixels are unfolded at a time, as the rows of A, and what a block of pixels gives
 * is turned back. Groups of few channels would fill few columns: they keep the plain loops. */

#define ROWS_BYTES (1 << 19) /* unfolded at a time: they stay in the L2 cache */
#define ROWS_MIN ((size_t)48)
#define ROWS_MAX ((size_t)384)
#define GROUP_CHANNELS_MIN 16 /* out, of one of several groups */

struct conv_integer {
    image_window window;           /* channels: of a group */
    bool is_direct;                /* windows are single pixels: nothing to unfold */
    size_t groups, channels, n, k; /* channels: of all groups; n, k: of one */
    size_t in_plane, out_plane, rows_at_once;
    const void **packed;                                /* by group */
    size_t zeros_offset, starts_offset, results_offset; /* in the part of each thread */
};

static status pack_groups(cpu_prepare *p, const tensor *weights, conv_integer *s)
{
    size_t taps = s->window.kernel_height * s->window.kernel_width;
    s->packed = arena_allocate_zeroed(p->memory, s->groups, sizeof s->packed[0]);
    for (size_t g = 0; s->packed && g < s->groups; g++) {
        cpu_weights_key key = {.constant = weights,
                               .format = CPU_WEIGHTS_GEMM_U8S8,
                               .offset = g * s->n * s->k,
                               .k = s->k,
                               .n = s->n,
                               .row_stride = 1,
                               .column_stride = s->k,
                               .taps = taps};
        if (!(s->packed[g] = cpu_weights_find(p->weights, p->kernels, &key)))
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory to pack weights");
    }
    return s->packed ? STATUS_OK : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
}

static void place_parts(cpu_prepare *p, conv_integer *s)
{
    size_t rows = ROWS_BYTES / (s->k + 1);
    rows = rows < ROWS_MIN ? ROWS_MIN : rows > ROWS_MAX ? ROWS_MAX : rows / ROWS_MIN * ROWS_MIN;
    s->rows_at_once = rows < s->out_plane ? rows : s->out_plane;
    size_t numbers = cpu_scratch_round(s->rows_at_once * sizeof(int32_t));
    s->zeros_offset = s->is_direct ? 0 : cpu_scratch_round(s->rows_at_once * s->k);
    s->starts_offset = s->zeros_offset + numbers;
    s->results_offset = s->starts_offset + numbers;
    p->part_bytes = s->results_offset + s->rows_at_once * s->n * sizeof(int32_t);
    p->scratch_bytes =
        cpu_scratch_round(s->in_plane * s->channels) + s->groups * s->n * sizeof(float);
}

status conv_integer_prepare(cpu_prepare *p, const cpu_window *w, const conv_integer **out)
{
    integer_roles r = integer_roles_of(p->node->op);
    const tensor *x = p->inputs[r.a], *weights = p->inputs[r.b];
    int64_t groups = graph_attribute_int(p->node, "group", 1), n = weights->dims[0] / groups;
    *out = NULL;
    bool is_small = groups > 1 && n < GROUP_CHANNELS_MIN;
    if (!weights->data || x->rank > 4 || is_small || !integer_gemm_is_fit(p) ||
        tensor_count(weights) == 0 || w->out_plane == 0)
        return STATUS_OK;
    conv_integer *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    s->groups = (size_t)groups;
    s->channels = (size_t)x->dims[1];
    s->n = (size_t)n;
    s->k = (size_t)(weights->dims[1] * w->taps);
    s->in_plane = (size_t)w->in_plane;
    s->out_plane = (size_t)w->out_plane;
    s->window = (image_window){.height = (size_t)w->in[1],
                               .width = (size_t)w->in[2],
                               .channels = (size_t)weights->dims[1],
                               .out_height = (size_t)w->out[1],
                               .out_width = (size_t)w->out[2],
                               .kernel_height = (size_t)w->kernel[1],
                               .kernel_width = (size_t)w->kernel[2],
                               .stride_y = (size_t)w->stride[1],
                               .stride_x = (size_t)w->stride[2],
                               .dilation_y = (size_t)w->dilation[1],
                               .dilation_x = (size_t)w->dilation[2],
                               .pad_top = (size_t)w->pad_begin[1],
                               .pad_left = (size_t)w->pad_begin[2]};
    s->is_direct = w->taps == 1 && w->stride[1] * w->stride[2] == 1 &&
                   w->in_plane == w->out_plane && w->pad_begin[1] + w->pad_begin[2] == 0;
    place_parts(p, s);
    *out = s;
    return pack_groups(p, weights, s);
}

/* One image and group. */
typedef struct conv_run {
    const conv_integer *s;
    const cpu_call *call;
    integer_gemm gemm;
    const uint8_t *image; /* channels last; the group's first */
    int32_t zero;
    char *out; /* [n][pixels] */
} conv_run;

/* rows_at_once pixels. */
static void convolve_pixels(const void *context, void *memory, size_t unit)
{
    const conv_run *r = context;
    const conv_integer *s = r->s;
    size_t first = unit * s->rows_at_once, left = s->out_plane - first;
    size_t count = left < s->rows_at_once ? left : s->rows_at_once;
    size_t item = integer_gemm_item_bytes(&r->gemm);
    const uint8_t *rows = r->image + first * s->channels, pad = (uint8_t)r->zero;
    int32_t *zeros = (int32_t *)((char *)memory + s->zeros_offset);
    int32_t *starts = (int32_t *)((char *)memory + s->starts_offset);
    void *results = (char *)memory + s->results_offset;
    if (cancel_check(r->call->cancel))
        return;
    if (!s->is_direct) {
        r->call->kernels->image_rows(&(image_rows){.window = s->window,
                                                   .item_bytes = 1,
                                                   .in = r->image,
                                                   .in_stride = s->channels,
                                                   .pad_item = &pad,
                                                   .first = first,
                                                   .count = count,
                                                   .out = memory,
                                                   .out_stride = s->k});
        rows = memory;
    }
    for (size_t i = 0; i < count; i++)
        zeros[i] = r->zero;
    integer_gemm_rows(&r->gemm, rows, s->is_direct ? s->channels : s->k, count, zeros, starts,
                      results);
    r->call->kernels->transpose_plane(&(transpose_plane){.element_bytes = item,
                                                         .rows = s->n,
                                                         .columns = count,
                                                         .in = results,
                                                         .in_stride = s->n,
                                                         .out_stride = s->out_plane,
                                                         .out = r->out + first * item});
}

status conv_integer_run(const conv_integer *s, const cpu_call *c)
{
    integer_roles roles = integer_roles_of(c->node->op);
    const tensor *x = c->inputs[roles.a];
    size_t image_bytes = s->in_plane * s->channels, all = s->groups * s->n;
    uint8_t *turned = c->scratch;
    float *scales = (float *)((char *)c->scratch + cpu_scratch_round(image_bytes));
    conv_run r = {.s = s, .call = c};
    r.zero = integer_zero_at(integer_role(c->inputs, c->node, roles.a_zero), 0) +
             integer_flip_zero(x->dtype);
    double ns = (double)s->out_plane * (double)(s->k * s->n) / 100;
    size_t units = (s->out_plane + s->rows_at_once - 1) / s->rows_at_once;
    for (size_t i = 0; i < (size_t)x->dims[0] * s->groups; i++) {
        size_t image = i / s->groups, group = i % s->groups, column = group * s->n;
        if (group == 0) {
            c->kernels->transpose_plane(
                &(transpose_plane){.element_bytes = 1,
                                   .rows = s->in_plane,
                                   .columns = s->channels,
                                   .in = (const uint8_t *)x->data + image * image_bytes,
                                   .in_stride = s->in_plane,
                                   .out_stride = s->channels,
                                   .out = turned});
            if (x->dtype == DTYPE_I8)
                integer_flip(turned, image_bytes);
        }
        integer_gemm_init(&r.gemm, c, s->packed[group], s->k, s->n, column, scales + column);
        r.image = turned + group * s->window.channels;
        r.out = (char *)c->outputs[0].data +
                (image * all + column) * s->out_plane * integer_gemm_item_bytes(&r.gemm);
        cpu_split(c, ns, convolve_pixels, &r, units);
        status end = cancel_check(c->cancel);
        if (end)
            return end;
    }
    return STATUS_OK;
}
