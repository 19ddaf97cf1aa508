#include "devices/cpu/ops/op.h"
#include "devices/cpu/tensor_loops/block.h"
#include "kernels/lines.h"

/* Running sums and products along an axis. Floats accumulate in double. */

static status prepare_cumulate(cpu_prepare *p)
{
    return p->inputs[0]->dtype < DTYPE_BYTES ? STATUS_OK
                                             : cpu_op_fail_dtype(p->node, p->inputs[0]->dtype);
}

/* CumSum and CumProd. */
static status run_cum_sum(const cpu_call *c)
{
    const tensor *in = c->inputs[0];
    tensor *out = &c->outputs[0];
    int64_t asked = tensor_get_integer(c->inputs[1], 0);
    if (asked < -in->rank || asked >= in->rank)
        return status_fail(STATUS_INVALID_ARGUMENT, "axis %lld of a tensor of rank %d",
                           (long long)asked, in->rank);
    int axis = cpu_axis(asked, in->rank);
    bool is_product = c->node->op == GRAPH_OP_CUM_PROD;
    bool is_exclusive = graph_attribute_int(c->node, "exclusive", 0) != 0;
    bool is_reverse = graph_attribute_int(c->node, "reverse", 0) != 0;
    int64_t n = in->dims[axis], outer = cpu_dims_product(in->dims, 0, axis);
    int64_t inner = cpu_dims_product(in->dims, axis + 1, in->rank);
    cpu_compute compute = cpu_compute_of(in->dtype);
    compute = compute == CPU_COMPUTE_F32 ? CPU_COMPUTE_F64 : compute;
    if (in->dtype == DTYPE_F32 && !is_product) {
        cumulate_f32 p = {.lines = (size_t)(inner > 1 ? inner : outer),
                          .line_stride = (size_t)(inner > 1 ? 1 : n),
                          .count = (size_t)n,
                          .step = (size_t)inner,
                          .is_exclusive = is_exclusive,
                          .is_reverse = is_reverse};
        for (int64_t o = 0; o < (inner > 1 ? outer : 1); o++) {
            p.in = (const float *)in->data + o * n * inner;
            p.out = (float *)out->data + o * n * inner;
            c->kernels->cumulate_f32(&p);
        }
        return STATUS_OK;
    }
    for (int64_t row = 0; row < outer * inner; row++) {
        int64_t first = row / inner * n * inner + row % inner;
        cpu_block x, sum = {.u64 = {0}};
        if (is_product && compute == CPU_COMPUTE_F64)
            sum.f64[0] = 1;
        else if (is_product)
            sum.u64[0] = 1;
        for (int64_t i = 0; i < n; i++) {
            int64_t at = first + (is_reverse ? n - 1 - i : i) * inner;
            cpu_load(compute, in->dtype, in->data, at, 1, 1, &x);
            if (is_exclusive)
                cpu_store(compute, out->dtype, &sum, out->data, at, 1, 1);
            if (compute == CPU_COMPUTE_F64)
                sum.f64[0] = is_product ? sum.f64[0] * x.f64[0] : sum.f64[0] + x.f64[0];
            else
                sum.u64[0] = is_product ? sum.u64[0] * x.u64[0] : sum.u64[0] + x.u64[0];
            if (!is_exclusive)
                cpu_store(compute, out->dtype, &sum, out->data, at, 1, 1);
        }
    }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_CUM_PROD, prepare_cumulate, run_cum_sum, 0, false},
    {GRAPH_OP_CUM_SUM, prepare_cumulate, run_cum_sum, 0, false},
};

const cpu_op_family cpu_ops_cumulate = {table, sizeof table / sizeof table[0]};
