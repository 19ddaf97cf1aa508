#include <math.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/tensor_loops/block.h"
#include "kernels/lines.h"
#include "kernels/tensor_u8.h"

/* QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear. Round half to even, then saturate. */

/* Which scale belongs to an element: one for all, one per index of an axis, or one per block of
 * `block` indices along it. */
typedef struct granularity {
    int64_t outer, n, inner, block, blocks;
} granularity;

static granularity granularity_of(const graph_node *node, const tensor *x, const tensor *scale)
{
    if (tensor_count(scale) == 1)
        return (granularity){1, 1, tensor_count(x), 1, 1};
    int axis = cpu_axis(graph_attribute_int(node, "axis", 1), x->rank);
    int64_t block = graph_attribute_int(node, "block_size", 0);
    granularity g = {cpu_dims_product(x->dims, 0, axis), x->dims[axis],
                     cpu_dims_product(x->dims, axis + 1, x->rank), block, 0};
    g.blocks = block ? scale->dims[axis] : 0;
    return g;
}

/* Index of the first scale of row (outer o, axis index i); elements of the row take the same one,
 * or, with blocks, one each. */
static int64_t scale_at(const granularity *g, int64_t o, int64_t i)
{
    return g->blocks ? (o * g->blocks + i / g->block) * g->inner : i;
}

static void load_f32(const tensor *t, int64_t index, int64_t stride, int64_t n, cpu_block *out)
{
    cpu_load(CPU_COMPUTE_F32, t->dtype, t->data, index, stride, (size_t)n, out);
}

static void load_i64(const tensor *t, int64_t index, int64_t stride, int64_t n, cpu_block *out)
{
    if (t)
        cpu_load(CPU_COMPUTE_I64, t->dtype, t->data, index, stride, (size_t)n, out);
    else
        for (int64_t i = 0; i < n; i++)
            out->i64[i] = 0;
}

typedef void (*block_quantiser)(const cpu_call *c, int64_t at, int64_t n, int64_t first,
                                int64_t stride);

static void each_block(const cpu_call *c, block_quantiser f)
{
    const tensor *x = c->inputs[0], *scale = c->inputs[1];
    granularity g = granularity_of(c->node, x, scale);
    for (int64_t row = 0; row < g.outer * g.n; row++) {
        int64_t first = scale_at(&g, row / g.n, row % g.n),
                stride = g.blocks > 0 && tensor_count(scale) > 1;
        for (int64_t i = 0; i < g.inner; i += CPU_BLOCK_ELEMENTS) {
            int64_t n = g.inner - i < CPU_BLOCK_ELEMENTS ? g.inner - i : CPU_BLOCK_ELEMENTS;
            f(c, row * g.inner + i, n, first + i * stride, stride);
        }
    }
}

static double clamp(double x, double low, double high)
{
    return x != x ? 0 : x < low ? low : x > high ? high : x;
}

/* Rows of one scale each have a kernel as whole tensors do. */
static bool has_row_kernel(const cpu_call *c, const tensor *floats, const tensor *bytes)
{
    const tensor *scale = c->inputs[1];
    if (floats->dtype != DTYPE_F32 || (bytes->dtype != DTYPE_U8 && bytes->dtype != DTYPE_I8) ||
        scale->dtype != DTYPE_F32 ||
        (tensor_count(scale) > 1 && graph_attribute_int(c->node, "block_size", 0)))
        return false;
    for (int64_t i = 0; i < tensor_count(scale); i++)
        if (!(((const float *)scale->data)[i] > 0))
            return false;
    return true;
}

typedef struct scaled_row {
    int64_t at, count; /* elements */
    float scale;
    int32_t zero;
} scaled_row;

static scaled_row row_at(const cpu_call *c, const granularity *g, int64_t row)
{
    const tensor *zero = cpu_input(c->inputs, c->node, 2);
    int64_t i = row % g->n;
    return (scaled_row){row * g->inner, g->inner, ((const float *)c->inputs[1]->data)[i],
                        zero ? (int32_t)tensor_get_integer(zero, tensor_count(zero) == 1 ? 0 : i)
                             : 0};
}

static void quantise_rows(const cpu_call *c)
{
    const tensor *out = &c->outputs[0];
    granularity g = granularity_of(c->node, c->inputs[0], c->inputs[1]);
    for (int64_t i = 0; i < g.outer * g.n; i++) {
        scaled_row r = row_at(c, &g, i);
        c->kernels->quantise_tensor_u8(
            &(quantise_tensor_u8){.x = (const float *)c->inputs[0]->data + r.at,
                                  .count = (size_t)r.count,
                                  .scale = r.scale,
                                  .zero = r.zero,
                                  .is_signed = out->dtype == DTYPE_I8,
                                  .out = (uint8_t *)out->data + r.at});
    }
}

static void dequantise_rows(const cpu_call *c)
{
    const tensor *x = c->inputs[0];
    granularity g = granularity_of(c->node, x, c->inputs[1]);
    for (int64_t i = 0; i < g.outer * g.n; i++) {
        scaled_row r = row_at(c, &g, i);
        c->kernels->dequantise_u8(&(dequantise_u8){.in = (const uint8_t *)x->data + r.at,
                                                   .count = (size_t)r.count,
                                                   .scale = r.scale,
                                                   .zero = r.zero,
                                                   .is_signed = x->dtype == DTYPE_I8,
                                                   .out = (float *)c->outputs[0].data + r.at});
    }
}

static void quantise_block(const cpu_call *c, int64_t at, int64_t n, int64_t first, int64_t stride)
{
    tensor *out = &c->outputs[0];
    double low = (double)dtype_integer_min(out->dtype),
           high = (double)dtype_integer_max(out->dtype);
    cpu_block x, scale, zero, y;
    load_f32(c->inputs[0], at, 1, n, &x);
    load_f32(c->inputs[1], first, stride, n, &scale);
    load_i64(cpu_input(c->inputs, c->node, 2), first, stride, n, &zero);
    for (int64_t i = 0; i < n; i++)
        y.i64[i] = (int64_t)clamp((double)nearbyintf(x.f32[i] / scale.f32[i]) + (double)zero.i64[i],
                                  low, high);
    cpu_store(CPU_COMPUTE_I64, out->dtype, &y, out->data, at, 1, (size_t)n);
}

static void dequantise_block(const cpu_call *c, int64_t at, int64_t n, int64_t first,
                             int64_t stride)
{
    tensor *out = &c->outputs[0];
    cpu_block x, scale, zero, y;
    load_i64(c->inputs[0], at, 1, n, &x);
    load_f32(c->inputs[1], first, stride, n, &scale);
    load_i64(cpu_input(c->inputs, c->node, 2), first, stride, n, &zero);
    for (int64_t i = 0; i < n; i++)
        y.f32[i] = (float)(x.i64[i] - zero.i64[i]) * scale.f32[i];
    cpu_store(CPU_COMPUTE_F32, out->dtype, &y, out->data, at, 1, (size_t)n);
}

/* I32 of one scale, as sums of products are: its zero point is 0. */
static bool is_scaled_i32(const cpu_call *c)
{
    const tensor *zero = cpu_input(c->inputs, c->node, 2);
    return c->inputs[0]->dtype == DTYPE_I32 && c->outputs[0].dtype == DTYPE_F32 &&
           c->inputs[1]->dtype == DTYPE_F32 && tensor_count(c->inputs[1]) == 1 &&
           (!zero || (tensor_count(zero) == 1 && tensor_get_integer(zero, 0) == 0));
}

static void dequantise_i32(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    const int32_t *in = (const int32_t *)c->inputs[0]->data + first;
    float *out = (float *)c->outputs[0].data + first, wide[CPU_BLOCK_ELEMENTS];
    for (size_t i = 0, n; i < count; i += n) {
        n = count - i < CPU_BLOCK_ELEMENTS ? count - i : CPU_BLOCK_ELEMENTS;
        c->kernels->convert_line(&(convert_line){DTYPE_I32, DTYPE_F32, in + i, wide, n});
        c->kernels->mul_f32(wide, 1, c->inputs[1]->data, 0, out + i, n);
    }
}

static status prepare_quantise(cpu_prepare *p)
{
    return dtype_is_integer(p->outputs[0].dtype) ? STATUS_OK
                                                 : cpu_op_fail_dtype(p->node, p->outputs[0].dtype);
}

static status prepare_dequantise(cpu_prepare *p)
{
    return dtype_is_integer(p->inputs[0]->dtype) ? STATUS_OK
                                                 : cpu_op_fail_dtype(p->node, p->inputs[0]->dtype);
}

static status run_quantise(const cpu_call *c)
{
    if (has_row_kernel(c, c->inputs[0], &c->outputs[0]))
        quantise_rows(c);
    else
        each_block(c, quantise_block);
    return STATUS_OK;
}

static status run_dequantise(const cpu_call *c)
{
    if (has_row_kernel(c, &c->outputs[0], c->inputs[0]))
        dequantise_rows(c);
    else if (is_scaled_i32(c))
        cpu_split_rows(c, (double)tensor_count(c->inputs[0]) / 8, dequantise_i32,
                       (size_t)tensor_count(c->inputs[0]));
    else
        each_block(c, dequantise_block);
    return STATUS_OK;
}

/* Floats at a time: they are read twice from the L1 cache. */
#define RANGE_FLOATS 4096
#define DYNAMIC_UNITS_MAX 16

typedef struct dynamic_run {
    const cpu_call *call;
    size_t count, items; /* floats: all, of a unit */
    float *ranges;       /* lowest and highest of each unit */
    float scale;
    int32_t zero;
} dynamic_run;

static void find_range(const void *context, void *memory, size_t unit)
{
    (void)memory;
    const dynamic_run *r = context;
    const kernels *k = r->call->kernels;
    size_t first = unit * r->items, end = r->count - first < r->items ? r->count : first + r->items;
    const float *x = r->call->inputs[0]->data;
    float low = INFINITY, high = -INFINITY;
    for (size_t i = first; i < end; i += RANGE_FLOATS) {
        size_t n = end - i < RANGE_FLOATS ? end - i : RANGE_FLOATS;
        float bottom = k->reduce_min_f32(x + i, n), top = k->reduce_max_f32(x + i, n);
        low = isnan(low) || low < bottom ? low : bottom; /* NaN stays */
        high = isnan(high) || high > top ? high : top;
    }
    r->ranges[2 * unit] = low;
    r->ranges[2 * unit + 1] = high;
}

static void quantise_some(const void *context, void *memory, size_t unit)
{
    (void)memory;
    const dynamic_run *r = context;
    size_t first = unit * r->items, left = r->count - first;
    r->call->kernels->quantise_tensor_u8(
        &(quantise_tensor_u8){.x = (const float *)r->call->inputs[0]->data + first,
                              .count = left < r->items ? left : r->items,
                              .scale = r->scale,
                              .zero = r->zero,
                              .out = (uint8_t *)r->call->outputs[0].data + first});
}

/* U8 over the whole tensor's range, which always includes zero. */
static status run_dynamic_quantise(const cpu_call *c)
{
    size_t count = (size_t)tensor_count(c->inputs[0]);
    float ranges[2 * DYNAMIC_UNITS_MAX], low = INFINITY, high = -INFINITY;
    dynamic_run r = {.call = c, .count = count, .items = count, .ranges = ranges};
    size_t most = (count + DYNAMIC_UNITS_MAX - 1) / DYNAMIC_UNITS_MAX, units = count > 0;
    double ns = (double)count / 8;
    if (count > RANGE_FLOATS) {
        r.items = cpu_split_items(c, count, count, 64);
        r.items = r.items < most ? most : r.items;
        units = (count + r.items - 1) / r.items;
    }
    cpu_split(c, ns, find_range, &r, units);
    for (size_t i = 0; i < units; i++) {
        low = isnan(low) || low < ranges[2 * i] ? low : ranges[2 * i];
        high = isnan(high) || high > ranges[2 * i + 1] ? high : ranges[2 * i + 1];
    }
    low = low < 0 ? low : 0;
    high = high > 0 ? high : 0;
    float scale = high == low ? 1 : (high - low) / 255;
    double zero = clamp((double)nearbyintf(0 - low / scale), 0, 255);
    r.scale = scale;
    r.zero = (int32_t)zero;
    if (c->outputs[0].data)
        cpu_split(c, ns, quantise_some, &r, units);
    if (c->outputs[1].data)
        *(float *)c->outputs[1].data = scale;
    if (c->outputs[2].data)
        *(uint8_t *)c->outputs[2].data = (uint8_t)zero;
    return STATUS_OK;
}

static status prepare_dynamic(cpu_prepare *p)
{
    return p->inputs[0]->dtype == DTYPE_F32 ? STATUS_OK
                                            : cpu_op_fail_dtype(p->node, p->inputs[0]->dtype);
}

static const cpu_op table[] = {
    {GRAPH_OP_QUANTIZE_LINEAR, prepare_quantise, run_quantise, 0, false},
    {GRAPH_OP_DEQUANTIZE_LINEAR, prepare_dequantise, run_dequantise, 0, false},
    {GRAPH_OP_DYNAMIC_QUANTIZE_LINEAR, prepare_dynamic, run_dynamic_quantise, 0, false},
};

const cpu_op_family cpu_ops_quantise = {table, sizeof table / sizeof table[0]};
