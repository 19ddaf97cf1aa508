#include <assert.h>
#include <string.h>

#include "devices/cpu/fused/fused.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/tensor_loops/window.h"
#include "kernels/convolution.h"
#include "kernels/tensor_u8.h"

/* penstock.Pool and penstock.Add of graph/quantise/fuse.h: pooling and sums between fused
 * convolutions, channels last. */

typedef struct pool_state {
    image_window window;
    pool_kind kind;
} pool_state;

static status prepare_pool(cpu_prepare *p)
{
    const graph_attribute *kernel = graph_find_attribute(p->node, "kernel_shape");
    pool_state *s = arena_allocate_zeroed(p->memory, 1, sizeof *s);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a plan");
    assert(kernel && kernel->count == 2);
    bool is_max = strcmp(graph_attribute_string(p->node, "kind", ""), "Max") == 0;
    s->kind = is_max                                                 ? POOL_MAX
              : graph_attribute_int(p->node, "count_include_pad", 0) ? POOL_AVERAGE_PADDED
                                                                     : POOL_AVERAGE;
    p->state = s;
    return cpu_window_init_image(&s->window, p->node, p->inputs[0], &p->outputs[0], kernel->ints);
}

typedef struct pool_run {
    const cpu_call *call;
    size_t pixels, items, units; /* of one image: its pixels, in units of `items` */
} pool_run;

static void pool_piece(const void *context, void *memory, size_t unit)
{
    (void)memory;
    const pool_run *r = context;
    const pool_state *s = r->call->state;
    const image_window *w = &s->window;
    size_t image = unit / r->units, first = unit % r->units * r->items;
    size_t count = r->pixels - first < r->items ? r->pixels - first : r->items;
    size_t in = image * w->height * w->width * w->channels;
    size_t out = (image * r->pixels + first) * w->channels;
    r->call->kernels->pool_f32(&(pool_f32){.window = *w,
                                           .kind = s->kind,
                                           .in = (const float *)r->call->inputs[0]->data + in,
                                           .first = first,
                                           .count = count,
                                           .out = (float *)r->call->outputs[0].data + out});
}

static status run_pool(const cpu_call *c)
{
    const pool_state *s = c->state;
    const image_window *w = &s->window;
    const tensor *x = c->inputs[0];
    size_t pixels = w->out_height * w->out_width, in = w->height * w->width * w->channels;
    size_t images = (size_t)x->dims[0], results = images * pixels * w->channels;
    pool_run r = {c, pixels, cpu_split_items(c, pixels, pixels, 1), 1};
    r.units = (pixels + r.items - 1) / r.items;
    if (x->dtype != DTYPE_U8) {
        double ns = (double)(results * w->kernel_height * w->kernel_width) / 4;
        cpu_split(c, ns, pool_piece, &r, images * r.units);
        return STATUS_OK;
    }
    for (size_t i = 0; i < images; i++)
        c->kernels->pool_u8(
            &(pool_u8){.window = *w,
                       .in = (const uint8_t *)x->data + i * in,
                       .count = pixels,
                       .out = (uint8_t *)c->outputs[0].data + i * pixels * w->channels});
    return STATUS_OK;
}

/* The second operand repeats where its shape is a part of the first one's. */
static status run_add(const cpu_call *c)
{
    const tensor *a = c->inputs[0], *b = c->inputs[1];
    float y = cpu_fused_scale(c->inputs[6], 0);
    add_u8 p = {.count = (size_t)tensor_count(b),
                .b = b->data,
                .a_scale = cpu_fused_scale(c->inputs[2], 0) / y,
                .b_scale = cpu_fused_scale(c->inputs[4], 0) / y,
                .a_zero = cpu_fused_zero(c->inputs[3]),
                .b_zero = cpu_fused_zero(c->inputs[5]),
                .zero = cpu_fused_zero(c->inputs[7])};
    p.low = cpu_fused_activation(c->node) == KERNELS_RELU ? p.zero : 0;
    size_t count = (size_t)tensor_count(a);
    for (size_t i = 0; i < count; i += p.count) {
        p.a = (const uint8_t *)a->data + i;
        p.out = (uint8_t *)c->outputs[0].data + i;
        c->kernels->add_u8(&p);
    }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_FUSED_POOL, prepare_pool, run_pool, 0, false},
    {GRAPH_OP_FUSED_ADD, NULL, run_add, 0, false},
};

const cpu_op_family cpu_ops_pool_add = {table, sizeof table / sizeof table[0]};
