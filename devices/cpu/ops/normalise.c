#include <assert.h>
#include <math.h>
#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/ops/split.h"
#include "kernels/rows.h"

/* Normalisations, in F32 (others widen). Long sums are doubles of the kernels' sums of BLOCK
 * floats, in order. */

#define BLOCK 1024

typedef struct moments {
    double mean, inverse_deviation;
} moments;

static moments moments_of(const kernels *k, const float *x, int64_t n, double epsilon)
{
    double sum = 0, squares = 0;
    float spare[BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK)
        sum += (double)k->reduce_sum_f32(x + i, (size_t)(n - i < BLOCK ? n - i : BLOCK));
    float mean = (float)(sum / (double)n);
    for (int64_t i = 0; i < n; i += BLOCK) {
        size_t some = (size_t)(n - i < BLOCK ? n - i : BLOCK);
        k->sub_f32(x + i, 1, &mean, 0, spare, some);
        k->mul_f32(spare, 1, spare, 1, spare, some);
        squares += (double)k->reduce_sum_f32(spare, some);
    }
    return (moments){(double)mean, 1 / sqrt(squares / (double)n + epsilon)};
}

static status prepare_f32(cpu_prepare *p)
{
    return p->inputs[0]->dtype == DTYPE_F32 ? STATUS_OK
                                            : cpu_op_fail_dtype(p->node, p->inputs[0]->dtype);
}

/* Scale and bias hold all normalised elements, or broadcast to them. */
static float parameter_at(const tensor *t, const tensor *x, int axis, int64_t i, float otherwise)
{
    if (!t)
        return otherwise;
    int64_t at = 0, stride = 1;
    int d = t->rank - 1;
    for (int k = x->rank - 1; k >= axis; k--, d--) {
        int64_t index = i % x->dims[k];
        i /= x->dims[k];
        if (d >= 0) {
            at += t->dims[d] == 1 ? 0 : index * stride;
            stride *= t->dims[d];
        }
    }
    return ((const float *)t->data)[at];
}

/* Scale and bias hold all normalised elements. */
static void layer_norm_rows(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    const tensor *x = c->inputs[0], *scale = cpu_input(c->inputs, c->node, 1);
    const tensor *bias = cpu_input(c->inputs, c->node, 2);
    int axis = cpu_axis(graph_attribute_int(c->node, "axis", -1), x->rank);
    size_t width = (size_t)cpu_dims_product(x->dims, axis, x->rank);
    c->kernels->layer_norm_f32(
        &(layer_norm_f32){.rows = count,
                          .width = width,
                          .x = (const float *)x->data + first * width,
                          .x_stride = width,
                          .gamma = scale ? scale->data : NULL,
                          .beta = bias ? bias->data : NULL,
                          .epsilon = graph_attribute_float(c->node, "epsilon", 1e-5f),
                          .out = (float *)c->outputs[0].data + first * width,
                          .out_stride = width});
}

static status run_layer_normalization(const cpu_call *c)
{
    const tensor *x = c->inputs[0], *scale = cpu_input(c->inputs, c->node, 1);
    const tensor *bias = cpu_input(c->inputs, c->node, 2);
    tensor *out = &c->outputs[0];
    int axis = cpu_axis(graph_attribute_int(c->node, "axis", -1), x->rank);
    float epsilon = graph_attribute_float(c->node, "epsilon", 1e-5f);
    int64_t rows = cpu_dims_product(x->dims, 0, axis),
            width = cpu_dims_product(x->dims, axis, x->rank);
    if (!rows || !width)
        return STATUS_OK;
    bool is_plain =
        (!scale || tensor_count(scale) == width) && (!bias || tensor_count(bias) == width);
    if (is_plain && out->data)
        cpu_split_rows(c, (double)(rows * width), layer_norm_rows, (size_t)rows);
    float *means = c->node->output_count > 1 ? c->outputs[1].data : NULL;
    float *inverses = c->node->output_count > 2 ? c->outputs[2].data : NULL;
    if (is_plain && !means && !inverses)
        return STATUS_OK;
    for (int64_t r = 0; r < rows; r++) {
        const float *from = (const float *)x->data + r * width;
        moments m = moments_of(c->kernels, from, width, (double)epsilon);
        if (means)
            means[r] = (float)m.mean;
        if (inverses)
            inverses[r] = (float)m.inverse_deviation;
        for (int64_t i = 0; !is_plain && out->data && i < width; i++)
            ((float *)out->data)[r * width + i] =
                (float)(((double)from[i] - m.mean) * m.inverse_deviation) *
                    parameter_at(scale, x, axis, i, 1) +
                parameter_at(bias, x, axis, i, 0);
    }
    return STATUS_OK;
}

/* Inference form: y = (x - mean) / sqrt(variance + epsilon) * scale + bias per channel. */
static void scale_planes(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    const tensor *x = c->inputs[0];
    const float *scale = c->inputs[1]->data, *bias = c->inputs[2]->data;
    const float *mean = c->inputs[3]->data, *variance = c->inputs[4]->data;
    float epsilon = graph_attribute_float(c->node, "epsilon", 1e-5f);
    size_t channels = x->rank > 1 ? (size_t)x->dims[1] : 1;
    size_t plane = x->rank < 2 ? 1 : (size_t)cpu_dims_product(x->dims, 2, x->rank);
    for (size_t i = first; i < first + count; i++) {
        size_t channel = i % channels;
        float factor = scale[channel] / sqrtf(variance[channel] + epsilon);
        float shift = bias[channel] - mean[channel] * factor;
        const float *from = (const float *)x->data + i * plane;
        float *out = (float *)c->outputs[0].data + i * plane;
        c->kernels->mul_f32(from, 1, &factor, 0, out, plane);
        c->kernels->add_f32(out, 1, &shift, 0, out, plane);
    }
}

/* The same of rows of channels: their factors are found once. */
static void scale_rows(const cpu_call *c, void *memory, size_t first, size_t count)
{
    const tensor *x = c->inputs[0];
    const float *scale = c->inputs[1]->data, *bias = c->inputs[2]->data;
    const float *mean = c->inputs[3]->data, *variance = c->inputs[4]->data;
    float epsilon = graph_attribute_float(c->node, "epsilon", 1e-5f);
    size_t channels = (size_t)x->dims[1];
    float *factors = memory, *shifts = factors + channels;
    for (size_t i = 0; i < channels; i++) {
        factors[i] = scale[i] / sqrtf(variance[i] + epsilon);
        shifts[i] = bias[i] - mean[i] * factors[i];
    }
    for (size_t r = first; r < first + count; r++) {
        float *out = (float *)c->outputs[0].data + r * channels;
        c->kernels->mul_f32((const float *)x->data + r * channels, 1, factors, 1, out, channels);
        c->kernels->add_f32(out, 1, shifts, 1, out, channels);
    }
}

static status run_batch_normalization(const cpu_call *c)
{
    const tensor *x = c->inputs[0];
    if (x->rank > 1 && cpu_dims_product(x->dims, 2, x->rank) == 1) {
        cpu_split_rows(c, (double)tensor_count(x) / 2, scale_rows, (size_t)x->dims[0]);
        return STATUS_OK;
    }
    size_t channels = x->rank > 1 ? (size_t)x->dims[1] : 1;
    cpu_split_rows(c, (double)tensor_count(x) / 2, scale_planes, (size_t)x->dims[0] * channels);
    return STATUS_OK;
}

static status prepare_batch_normalization(cpu_prepare *p)
{
    if (graph_attribute_int(p->node, "training_mode", 0))
        return status_fail(STATUS_UNSUPPORTED, "training_mode 1 is not supported");
    if (p->inputs[0]->rank > 1)
        p->part_bytes = 2 * (size_t)p->inputs[0]->dims[1] * sizeof(float);
    return prepare_f32(p);
}

/* out = (x - mean) * inverse * scale + bias */
static void apply(const kernels *k, const float *x, int64_t n, moments m, float scale, float bias,
                  float *out)
{
    float mean = (float)m.mean, factor = (float)m.inverse_deviation * scale;
    for (int64_t i = 0; i < n; i += BLOCK) {
        size_t some = (size_t)(n - i < BLOCK ? n - i : BLOCK);
        k->sub_f32(x + i, 1, &mean, 0, out + i, some);
        k->mul_f32(out + i, 1, &factor, 0, out + i, some);
        k->add_f32(out + i, 1, &bias, 0, out + i, some);
    }
}

/* Planes first .. first + count - 1, counted over the whole batch. */
static void normalise_planes(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    const tensor *x = c->inputs[0];
    const float *scale = c->inputs[1]->data, *bias = c->inputs[2]->data;
    double epsilon = (double)graph_attribute_float(c->node, "epsilon", 1e-5f);
    int64_t channels = x->dims[1], plane = cpu_dims_product(x->dims, 2, x->rank);
    for (size_t i = first; i < first + count; i++) {
        const float *from = (const float *)x->data + i * (size_t)plane;
        size_t channel = i % (size_t)channels;
        apply(c->kernels, from, plane, moments_of(c->kernels, from, plane, epsilon), scale[channel],
              bias[channel], (float *)c->outputs[0].data + i * (size_t)plane);
    }
}

static status run_instance_normalization(const cpu_call *c)
{
    const tensor *x = c->inputs[0];
    double count = (double)tensor_count(x);
    if (count > 0)
        cpu_split_rows(c, count, normalise_planes, (size_t)(x->dims[0] * x->dims[1]));
    return STATUS_OK;
}

/* Groups first .. first + count - 1, counted over the whole batch. */
static void normalise_groups(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    const tensor *x = c->inputs[0], *scale = c->inputs[1];
    const float *scales = scale->data, *biases = c->inputs[2]->data;
    double epsilon = (double)graph_attribute_float(c->node, "epsilon", 1e-5f);
    int64_t groups = graph_attribute_int(c->node, "num_groups", 1), channels = x->dims[1];
    int64_t plane = cpu_dims_product(x->dims, 2, x->rank), size = channels / groups;
    /* Opset 21 scales each channel; opset 18 each group. */
    bool is_per_channel = scale->dims[0] == channels;
    for (int64_t i = (int64_t)first; i < (int64_t)(first + count); i++) {
        const float *from = (const float *)x->data + i * size * plane;
        moments m = moments_of(c->kernels, from, size * plane, epsilon);
        for (int64_t j = 0; j < size; j++) {
            int64_t p = is_per_channel ? i % groups * size + j : i % groups;
            apply(c->kernels, from + j * plane, plane, m, scales[p], biases[p],
                  (float *)c->outputs[0].data + (i * size + j) * plane);
        }
    }
}

static status run_group_normalization(const cpu_call *c)
{
    const tensor *x = c->inputs[0];
    double count = (double)tensor_count(x);
    int64_t groups = graph_attribute_int(c->node, "num_groups", 1);
    if (count > 0)
        cpu_split_rows(c, count, normalise_groups, (size_t)(x->dims[0] * groups));
    return STATUS_OK;
}

static bool is_listed(const graph_attribute *axes, int rank, int axis)
{
    if (!axes)
        return axis == 0 || axis == 2 || axis == 3;
    for (size_t i = 0; i < axes->count; i++)
        if (cpu_axis(axes->ints[i], rank) == axis)
            return true;
    return false;
}

/* MeanVarianceNormalization: x as runs of neighbours that are all reduced, or all kept. */
typedef struct mean_variance {
    int64_t run, runs; /* elements of a run, and how many there are */
    int64_t kept;      /* means, each of `reduced` elements */
    double reduced;
    bool is_run_reduced;
    int outer;                        /* dims before those of a run */
    int64_t strides[TENSOR_RANK_MAX]; /* of these dims among the means; 0: reduced */
} mean_variance;

static mean_variance plan_mean_variance(const graph_node *node, const tensor *x)
{
    const graph_attribute *axes = graph_find_attribute(node, "axes");
    mean_variance m = {.run = 1, .kept = 1, .outer = x->rank};
    m.is_run_reduced = x->rank > 0 && is_listed(axes, x->rank, x->rank - 1);
    for (; m.outer > 0 && is_listed(axes, x->rank, m.outer - 1) == m.is_run_reduced; m.outer--)
        m.run *= x->dims[m.outer - 1];
    m.kept = m.is_run_reduced ? 1 : m.run;
    for (int d = m.outer - 1; d >= 0; d--) {
        m.strides[d] = is_listed(axes, x->rank, d) ? 0 : m.kept;
        m.kept *= m.strides[d] ? x->dims[d] : 1;
    }
    m.runs = cpu_dims_product(x->dims, 0, m.outer);
    m.reduced = m.kept > 0 ? (double)tensor_count(x) / (double)m.kept : 0;
    return m;
}

/* (x - mean) / (sqrt(E[(x - mean)^2]) + 1e-9) over `axes`; scratch holds two doubles per mean. */
static status prepare_mean_variance(cpu_prepare *p)
{
    mean_variance m = plan_mean_variance(p->node, p->inputs[0]);
    p->scratch_bytes = (size_t)m.kept * 2 * sizeof(double);
    return prepare_f32(p);
}

/* Adds a run to its sums: of the elements, or (`means`) of the squares of what they differ by. */
static void add_run(const kernels *k, const mean_variance *m, const float *x, const double *means,
                    double *sums)
{
    float spare[BLOCK], mean = means ? (float)*means : 0;
    for (int64_t i = 0; m->is_run_reduced && i < m->run; i += BLOCK) {
        size_t some = (size_t)(m->run - i < BLOCK ? m->run - i : BLOCK);
        if (means) {
            k->sub_f32(x + i, 1, &mean, 0, spare, some);
            k->mul_f32(spare, 1, spare, 1, spare, some);
        }
        *sums += (double)k->reduce_sum_f32(means ? spare : x + i, some);
    }
    for (int64_t i = 0; !m->is_run_reduced && i < m->run; i++) {
        double centred = (double)x[i] - (means ? means[i] : 0);
        sums[i] += means ? centred * centred : centred;
    }
}

static void normalise_run(const kernels *k, const mean_variance *m, const float *x,
                          const double *means, const double *inverses, float *out)
{
    if (m->is_run_reduced)
        apply(k, x, m->run, (moments){*means, *inverses}, 1, 0, out);
    for (int64_t i = 0; !m->is_run_reduced && i < m->run; i++)
        out[i] = (float)(((double)x[i] - means[i]) * inverses[i]);
}

static status run_mean_variance(const cpu_call *c)
{
    const tensor *x = c->inputs[0];
    mean_variance m = plan_mean_variance(c->node, x);
    if (tensor_count(x) == 0)
        return STATUS_OK;
    double *means = c->scratch, *inverses = means + m.kept;
    memset(c->scratch, 0, (size_t)m.kept * 2 * sizeof *means);
    for (int pass = 0; pass < 3; pass++) {
        int64_t at[TENSOR_RANK_MAX] = {0};
        for (int64_t run = 0; run < m.runs; run++) {
            const float *from = (const float *)x->data + run * m.run;
            int64_t k = 0;
            for (int d = 0; d < m.outer; d++)
                k += at[d] * m.strides[d];
            if (pass < 2)
                add_run(c->kernels, &m, from, pass ? means + k : NULL,
                        (pass ? inverses : means) + k);
            else
                normalise_run(c->kernels, &m, from, means + k, inverses + k,
                              (float *)c->outputs[0].data + run * m.run);
            for (int d = m.outer - 1; d >= 0 && ++at[d] == x->dims[d]; d--)
                at[d] = 0;
        }
        for (int64_t k = 0; pass == 0 && k < m.kept; k++)
            means[k] /= m.reduced;
        for (int64_t k = 0; pass == 1 && k < m.kept; k++)
            inverses[k] = 1 / (sqrt(inverses[k] / m.reduced) + 1e-9);
    }
    return STATUS_OK;
}

/* y = x / (bias + alpha / size * sum of squares over neighbouring channels)^beta */
static status run_lrn(const cpu_call *c)
{
    const tensor *x = c->inputs[0];
    int64_t size = graph_attribute_int(c->node, "size", 1);
    double alpha = (double)graph_attribute_float(c->node, "alpha", 1e-4f);
    double beta = (double)graph_attribute_float(c->node, "beta", 0.75f);
    double bias = (double)graph_attribute_float(c->node, "bias", 1);
    int64_t channels = x->dims[1], plane = cpu_dims_product(x->dims, 2, x->rank);
    const float *from = x->data;
    float *out = c->outputs[0].data;
    for (int64_t n = 0; n < x->dims[0]; n++)
        for (int64_t ch = 0; ch < channels; ch++) {
            int64_t first = ch - (size - 1) / 2, end = ch + size / 2 + 1;
            first = first < 0 ? 0 : first;
            end = end > channels ? channels : end;
            for (int64_t i = 0; i < plane; i++) {
                double sum = 0;
                for (int64_t k = first; k < end; k++) {
                    double v = (double)from[(n * channels + k) * plane + i];
                    sum += v * v;
                }
                int64_t at = (n * channels + ch) * plane + i;
                out[at] = (float)((double)from[at] / pow(bias + alpha / (double)size * sum, beta));
            }
        }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_LAYER_NORMALIZATION, prepare_f32, run_layer_normalization, CPU_WIDEN_FLOATS, false},
    {GRAPH_OP_BATCH_NORMALIZATION, prepare_batch_normalization, run_batch_normalization,
     CPU_WIDEN_FLOATS, false},
    {GRAPH_OP_INSTANCE_NORMALIZATION, prepare_f32, run_instance_normalization, CPU_WIDEN_FLOATS,
     false},
    {GRAPH_OP_GROUP_NORMALIZATION, prepare_f32, run_group_normalization, CPU_WIDEN_FLOATS, false},
    {GRAPH_OP_MEAN_VARIANCE_NORMALIZATION, prepare_mean_variance, run_mean_variance,
     CPU_WIDEN_FLOATS, false},
    {GRAPH_OP_LRN, prepare_f32, run_lrn, CPU_WIDEN_FLOATS, false},
};

const cpu_op_family cpu_ops_normalise = {table, sizeof table / sizeof table[0]};
