#include <math.h>
#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/ops/split.h"
#include "devices/cpu/tensor_loops/block.h"
#include "kernels/lines.h"
#include "kernels/rows.h"

/* Operators on the rows along one axis: a row is gathered as doubles, changed, and put back. F32
 * softmax and its logarithm are computed by kernels: along the last axis row by row, along others
 * many rows beside each other. */

#define BESIDE 512 /* rows beside each other */

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

/* F32 rows along the last axis. */
static void softmax_along(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    size_t n = (size_t)rows_of(c->node, c->inputs[0]).n;
    c->kernels->softmax_f32(&(softmax_f32){.rows = count,
                                           .width = n,
                                           .x = (const float *)c->inputs[0]->data + first * n,
                                           .x_stride = n,
                                           .scale = 1,
                                           .is_log = c->node->op == GRAPH_OP_LOG_SOFTMAX,
                                           .out = (float *)c->outputs[0].data + first * n,
                                           .out_stride = n});
}

/* F32 rows whose elements are `inner` apart: unit `first` is a block of BESIDE rows of one outer
 * index. `memory`: the maximum and the sum of each row, and spare room. */
static void softmax_beside(const cpu_call *c, void *memory, size_t first, size_t count)
{
    const kernels *k = c->kernels;
    axis_rows r = rows_of(c->node, c->inputs[0]);
    size_t inner = (size_t)r.inner, n = (size_t)r.n, blocks = (inner + BESIDE - 1) / BESIDE;
    bool is_log = c->node->op == GRAPH_OP_LOG_SOFTMAX;
    float *top = memory, *sum = top + BESIDE, *spare = sum + BESIDE;
    for (size_t unit = first; unit < first + count; unit++) {
        size_t column = unit % blocks * BESIDE, at = unit / blocks * n * inner + column;
        size_t width = inner - column < BESIDE ? inner - column : BESIDE;
        const float *x = (const float *)c->inputs[0]->data + at;
        float *out = (float *)c->outputs[0].data + at;
        memcpy(top, x, width * sizeof *top);
        for (size_t i = 1; i < n; i++)
            k->max_f32(top, 1, x + i * inner, 1, top, width);
        memset(sum, 0, width * sizeof *sum);
        for (size_t i = 0; i < n; i++) {
            float *to = is_log ? spare : out + i * inner;
            k->sub_f32(x + i * inner, 1, top, 1, to, width);
            k->exp_f32(to, to, width);
            k->add_f32(sum, 1, to, 1, sum, width);
        }
        for (size_t i = 0; is_log && i < width; i++)
            sum[i] = logf(sum[i]);
        for (size_t i = 0; i < n; i++) {
            if (is_log)
                k->sub_f32(x + i * inner, 1, top, 1, out + i * inner, width);
            (is_log ? k->sub_f32 : k->div_f32)(out + i * inner, 1, sum, 1, out + i * inner, width);
        }
    }
}

/* F32 rows of neighbours along another axis than the last: [n,B] where B is 1. The bits are those
 * of softmax_beside(), where the rows beside are other requests'. */
static void softmax_lone(const cpu_call *c, void *memory, size_t first, size_t count)
{
    const kernels *k = c->kernels;
    size_t n = (size_t)rows_of(c->node, c->inputs[0]).n;
    bool is_log = c->node->op == GRAPH_OP_LOG_SOFTMAX;
    for (size_t row = first; row < first + count; row++) {
        const float *x = (const float *)c->inputs[0]->data + row * n;
        float *out = (float *)c->outputs[0].data + row * n;
        float top = k->reduce_max_f32(x, n), sum = 0;
        for (size_t at = 0; at < n; at += BESIDE) {
            size_t some = n - at < BESIDE ? n - at : BESIDE;
            float *to = is_log ? memory : out + at;
            k->sub_f32(x + at, 1, &top, 0, to, some);
            k->exp_f32(to, to, some);
            for (size_t i = 0; i < some; i++)
                sum += to[i];
        }
        if (is_log) {
            sum = logf(sum);
            k->sub_f32(x, 1, &top, 0, out, n);
        }
        (is_log ? k->sub_f32 : k->div_f32)(out, 1, &sum, 0, out, n);
    }
}

/* Whether the rows lie along the last axis: then what is beside them is no row of another. */
static bool is_along_last(const cpu_call *c)
{
    const tensor *in = c->inputs[0];
    return cpu_axis(graph_attribute_int(c->node, "axis", -1), in->rank) == in->rank - 1;
}

#define NS_PER_ELEMENT 1

static status prepare_softmax(cpu_prepare *p)
{
    p->part_bytes = p->inputs[0]->dtype == DTYPE_F32 ? 3 * BESIDE * sizeof(float) : 0;
    return prepare_rows(p);
}

static void run_f32(const cpu_call *c)
{
    axis_rows r = rows_of(c->node, c->inputs[0]);
    size_t outer = (size_t)r.outer, inner = (size_t)r.inner;
    double ns = (double)tensor_count(c->inputs[0]) * NS_PER_ELEMENT;
    if (r.n == 0)
        return;
    if (is_along_last(c))
        cpu_split_rows(c, ns, softmax_along, outer);
    else if (inner == 1)
        cpu_split_rows(c, ns, softmax_lone, outer);
    else
        cpu_split_rows(c, ns, softmax_beside, outer * ((inner + BESIDE - 1) / BESIDE));
}

/* Softmax and LogSoftmax. */
static status run_softmax(const cpu_call *c)
{
    const tensor *in = c->inputs[0];
    bool is_log = c->node->op == GRAPH_OP_LOG_SOFTMAX;
    if (in->dtype == DTYPE_F32 && in->rank > 0)
        run_f32(c);
    else
        each_row(c, is_log ? change_log_softmax : change_softmax);
    return STATUS_OK;
}

static status run_hardmax(const cpu_call *c)
{
    each_row(c, change_hardmax);
    return STATUS_OK;
}

/* F32 rows of neighbours by kernels: the sum of BESIDE terms as a float, of all as a double. */
static void normalise_lp(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    int64_t n = rows_of(c->node, c->inputs[0]).n;
    bool is_absolute = graph_attribute_int(c->node, "p", 2) == 1;
    for (size_t row = first; row < first + count; row++) {
        const float *x = (const float *)c->inputs[0]->data + (int64_t)row * n;
        float *out = (float *)c->outputs[0].data + (int64_t)row * n, some;
        double sum = 0;
        for (int64_t i = 0; i < n; i += BESIDE) {
            c->kernels->fold_each_f32(
                &(fold_each_f32){.kind = is_absolute ? FOLD_SUM_ABS : FOLD_SUM_SQUARE,
                                 .rows = 1,
                                 .width = (size_t)(n - i < BESIDE ? n - i : BESIDE),
                                 .in = x + i,
                                 .out = &some});
            sum += (double)some;
        }
        float norm = (float)(is_absolute ? sum : sqrt(sum));
        if (norm == 0)
            memset(out, 0, (size_t)n * sizeof *out);
        else
            c->kernels->div_f32(x, 1, &norm, 0, out, (size_t)n);
    }
}

static status run_lp_normalization(const cpu_call *c)
{
    const tensor *in = c->inputs[0];
    if (in->dtype == DTYPE_F32 && in->rank > 0 && is_along_last(c)) {
        double ns = (double)tensor_count(in) / 4;
        cpu_split_rows(c, ns, normalise_lp, (size_t)rows_of(c->node, in).outer);
        return STATUS_OK;
    }
    each_row(c, change_lp_normalization);
    return STATUS_OK;
}

/* CumSum and CumProd; floats accumulate in double. */
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
    {GRAPH_OP_SOFTMAX, prepare_softmax, run_softmax, 0, false},
    {GRAPH_OP_LOG_SOFTMAX, prepare_softmax, run_softmax, 0, false},
    {GRAPH_OP_HARDMAX, prepare_rows, run_hardmax, 0, false},
    {GRAPH_OP_LP_NORMALIZATION, prepare_rows, run_lp_normalization, 0, false},
    {GRAPH_OP_CUM_PROD, cpu_op_prepare_numbers, run_cum_sum, 0, false},
    {GRAPH_OP_CUM_SUM, cpu_op_prepare_numbers, run_cum_sum, 0, false},
};

const cpu_op_family cpu_ops_softmax = {table, sizeof table / sizeof table[0]};
