#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/tensor_loops/block.h"
#include "devices/cpu/tensor_loops/walk.h"

/* Operators whose output comes from shapes and numbers: constant folding runs most of them. */

static status run_shape(const cpu_call *c)
{
    const tensor *in = c->inputs[0];
    int64_t *out = c->outputs[0].data, rank = in->rank;
    int64_t start = graph_attribute_int(c->node, "start", 0);
    start = start < 0 ? start + rank : start;
    start = start < 0 ? 0 : start;
    int64_t count = tensor_count(&c->outputs[0]);
    for (int64_t i = 0; i < count; i++)
        out[i] = in->dims[start + i];
    return STATUS_OK;
}

static status run_size(const cpu_call *c)
{
    *(int64_t *)c->outputs[0].data = tensor_count(c->inputs[0]);
    return STATUS_OK;
}

static status run_constant_of_shape(const cpu_call *c)
{
    const graph_attribute *value = graph_find_attribute(c->node, "value");
    tensor *out = &c->outputs[0];
    int64_t count = tensor_count(out);
    if (!count)
        return STATUS_OK;
    if (!value || !value->t)
        memset(out->data, 0, tensor_bytes(out));
    else
        cpu_fill(dtype_bytes(out->dtype), value->t->data, out->data, count);
    return STATUS_OK;
}

static status run_eye_like(const cpu_call *c)
{
    tensor *out = &c->outputs[0];
    int64_t k = graph_attribute_int(c->node, "k", 0), h = out->dims[0], w = out->dims[1];
    if (!tensor_count(out))
        return STATUS_OK;
    memset(out->data, 0, tensor_bytes(out));
    for (int64_t i = 0; i < h; i++)
        if (k < w && k > -h && i + k >= 0 && i + k < w)
            cpu_store(CPU_COMPUTE_I64, out->dtype, &(int64_t){1}, out->data, i * w + i + k, 1, 1);
    return STATUS_OK;
}

/* start + i * delta, each element by itself. */
static status run_range(const cpu_call *c)
{
    tensor *out = &c->outputs[0];
    int64_t count = tensor_count(out);
    cpu_compute compute = cpu_compute_of(out->dtype);
    if (compute == CPU_COMPUTE_F32)
        compute = CPU_COMPUTE_F64;
    cpu_block start, delta;
    cpu_load(compute, c->inputs[0]->dtype, c->inputs[0]->data, 0, 0, 1, &start);
    cpu_load(compute, c->inputs[2]->dtype, c->inputs[2]->data, 0, 0, 1, &delta);
    if (out->dtype == DTYPE_I64) {
        uint64_t *to = out->data;
        for (int64_t i = 0; i < count; i++)
            to[i] = start.u64[0] + (uint64_t)i * delta.u64[0];
        return STATUS_OK;
    }
    for (int64_t i = 0; i < count; i++) {
        cpu_block x;
        if (compute == CPU_COMPUTE_F64)
            x.f64[0] = start.f64[0] + (double)i * delta.f64[0];
        else
            x.u64[0] = start.u64[0] + (uint64_t)i * delta.u64[0];
        cpu_store(compute, out->dtype, &x, out->data, i, 1, 1);
    }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_SHAPE, NULL, run_shape, 0, false},
    {GRAPH_OP_SIZE, NULL, run_size, 0, false},
    {GRAPH_OP_CONSTANT_OF_SHAPE, NULL, run_constant_of_shape, 0, false},
    {GRAPH_OP_EYE_LIKE, NULL, run_eye_like, 0, false},
    {GRAPH_OP_RANGE, NULL, run_range, 0, false},
};

const cpu_op_family cpu_ops_generate = {table, sizeof table / sizeof table[0]};
