#include <math.h>
#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/tensor_loops/block.h"
#include "kernels/rows.h"

/* Operators on the rows along one axis: a row is gathered as doubles, changed, and put back. F32
 * softmax along the last axis, the usual case, has a kernel. */

typedef struct axis_rows {
    int64_t outer, n, inner;
} axis_rows;

static axis_rows rows_of(const graph_node *node, const tensor *in)
{
    int axis = cpu_axis(graph_attribute_int(node, "axis", -1), in->rank);
    return (axis_rows){cpu_dims_product(in->dims, 0, axis), in->dims[axis],
                       cpu_dims_product(in->dims, axis + 1, in->rank)};
}

static status prepare_rows(cpu_prepare *p)
{
    if (!dtype_is_float(p->inputs[0]->dtype))
        return cpu_op_fail_dtype(p->node, p->inputs[0]->dtype);
    p->scratch_bytes =
        p->inputs[0]->rank ? (size_t)rows_of(p->node, p->inputs[0]).n * sizeof(double) : 8;
    return STATUS_OK;
}

static void each_row(const cpu_call *c,
                     void (*change)(const graph_node *node, double *x, int64_t n))
{
    const tensor *in = c->inputs[0];
    tensor *out = &c->outputs[0];
    axis_rows r = in->rank ? rows_of(c->node, in) : (axis_rows){1, 1, 1};
    for (int64_t row = 0; row < r.outer * r.inner && r.n; row++) {
        int64_t first = row / r.inner * r.n * r.inner + row % r.inner;
        cpu_load(CPU_COMPUTE_F64, in->dtype, in->data, first, r.inner, (size_t)r.n, c->scratch);
        change(c->node, c->scratch, r.n);
        cpu_store(CPU_COMPUTE_F64, out->dtype, c->scratch, out->data, first, r.inner, (size_t)r.n);
    }
}

static double maximum(const double *x, int64_t n)
{
    double top = x[0];
    for (int64_t i = 1; i < n; i++)
        top = x[i] > top || x[i] != x[i] ? x[i] : top;
    return top;
}

static void change_softmax(const graph_node *node, double *x, int64_t n)
{
    (void)node;
    double top = maximum(x, n), sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] = exp(x[i] - top);
    for (int64_t i = 0; i < n; i++)
        x[i] /= sum;
}

static void change_log_softmax(const graph_node *node, double *x, int64_t n)
{
    (void)node;
    double top = maximum(x, n), sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - top);
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] - top - log(sum);
}

static void change_hardmax(const graph_node *node, double *x, int64_t n)
{
    (void)node;
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    for (int64_t i = 0; i < n; i++)
        x[i] = i == best;
}

static void change_lp_normalization(const graph_node *node, double *x, int64_t n)
{
    int64_t p = graph_attribute_int(node, "p", 2);
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += p == 1 ? fabs(x[i]) : x[i] * x[i];
    double norm = p == 1 ? sum : sqrt(sum);
    for (int64_t i = 0; i < n; i++)
        x[i] = norm == 0 ? 0 : x[i] / norm;
}

static status run_softmax(const cpu_call *c)
{
    const tensor *in = c->inputs[0];
    tensor *out = &c->outputs[0];
    axis_rows r = in->rank ? rows_of(c->node, in) : (axis_rows){1, 1, 1};
    if (in->dtype == DTYPE_F32 && r.inner == 1) {
        if (r.outer && r.n)
            c->kernels->softmax_f32(&(softmax_f32){.rows = (size_t)r.outer,
                                                   .width = (size_t)r.n,
                                                   .x = in->data,
                                                   .x_stride = (size_t)r.n,
                                                   .scale = 1,
                                                   .out = out->data,
                                                   .out_stride = (size_t)r.n});
    } else {
        each_row(c, change_softmax);
    }
    return STATUS_OK;
}

static status run_log_softmax(const cpu_call *c)
{
    each_row(c, change_log_softmax);
    return STATUS_OK;
}

static status run_hardmax(const cpu_call *c)
{
    each_row(c, change_hardmax);
    return STATUS_OK;
}

static status run_lp_normalization(const cpu_call *c)
{
    each_row(c, change_lp_normalization);
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_SOFTMAX, prepare_rows, run_softmax, 0, false},
    {GRAPH_OP_LOG_SOFTMAX, prepare_rows, run_log_softmax, 0, false},
    {GRAPH_OP_HARDMAX, prepare_rows, run_hardmax, 0, false},
    {GRAPH_OP_LP_NORMALIZATION, prepare_rows, run_lp_normalization, 0, false},
};

const cpu_op_family cpu_ops_softmax = {table, sizeof table / sizeof table[0]};
