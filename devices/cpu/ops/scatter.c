#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/tensor_loops/block.h"
#include "devices/cpu/tensor_loops/index.h"
#include "devices/cpu/tensor_loops/walk.h"

typedef enum scatter_reduction {
    SCATTER_NONE,
    SCATTER_ADD,
    SCATTER_MUL,
    SCATTER_MAX,
    SCATTER_MIN
} scatter_reduction;

static scatter_reduction reduction_of(const graph_node *node)
{
    const char *name = graph_attribute_string(node, "reduction", "none");
    return strcmp(name, "add") == 0   ? SCATTER_ADD
           : strcmp(name, "mul") == 0 ? SCATTER_MUL
           : strcmp(name, "max") == 0 ? SCATTER_MAX
           : strcmp(name, "min") == 0 ? SCATTER_MIN
                                      : SCATTER_NONE;
}

#define COMBINE(member)                                                                            \
    (reduction == SCATTER_ADD   ? old.member[0] + new.member[0]                                    \
     : reduction == SCATTER_MUL ? old.member[0] * new.member[0]                                    \
     : reduction == SCATTER_MAX ? (old.member[0] > new.member[0] ? old.member[0] : new.member[0])  \
                                : (old.member[0] < new.member[0] ? old.member[0] : new.member[0]))

/* out[to + i] = reduction(out[to + i], updates[from + i]) */
static void combine(scatter_reduction reduction, tensor *out, int64_t to, const tensor *updates,
                    int64_t from, int64_t count)
{
    size_t bytes = dtype_bytes(out->dtype);
    if (reduction == SCATTER_NONE) {
        if (count)
            memcpy((char *)out->data + (size_t)to * bytes,
                   (const char *)updates->data + (size_t)from * bytes, (size_t)count * bytes);
        return;
    }
    if (out->dtype == DTYPE_F32 && (reduction == SCATTER_ADD || reduction == SCATTER_MUL)) {
        float *x = (float *)out->data + to;
        const float *y = (const float *)updates->data + from;
        for (int64_t i = 0; i < count; i++)
            x[i] = reduction == SCATTER_ADD ? x[i] + y[i] : x[i] * y[i];
        return;
    }
    cpu_compute compute = cpu_compute_of(out->dtype);
    bool is_unsigned =
        compute == CPU_COMPUTE_U64 || (compute == CPU_COMPUTE_I64 && reduction < SCATTER_MAX);
    for (int64_t i = 0; i < count; i++) {
        cpu_block old, new;
        cpu_load(compute, out->dtype, out->data, to + i, 1, 1, &old);
        cpu_load(compute, out->dtype, updates->data, from + i, 1, 1, &new);
        if (is_unsigned) /* wraps */
            old.u64[0] = COMBINE(u64);
        else if (compute == CPU_COMPUTE_I64)
            old.i64[0] = COMBINE(i64);
        else if (compute == CPU_COMPUTE_F64)
            old.f64[0] = COMBINE(f64);
        else
            old.f32[0] = COMBINE(f32);
        cpu_store(compute, out->dtype, &old, out->data, to + i, 1, 1);
    }
}

static status prepare_scatter(cpu_prepare *p)
{
    if (p->inputs[0]->dtype == DTYPE_BYTES && reduction_of(p->node) != SCATTER_NONE)
        return cpu_op_fail_dtype(p->node, DTYPE_BYTES);
    return STATUS_OK;
}

#define SCATTER_PLACES(type)                                                                       \
    do {                                                                                           \
        type *to = out->data;                                                                      \
        const type *from = updates->data;                                                          \
        for (int64_t o = 0; o < outer; o++, to += n * inner)                                       \
            for (int64_t i = 0; i < count; i++)                                                    \
                for (int64_t j = 0; j < inner; j++, done++) {                                      \
                    int64_t at = index[done] < 0 ? index[done] + n : index[done];                  \
                    if (at < 0 || at >= n)                                                         \
                        return cpu_index_at(indices, done, n, &at);                                \
                    to[at * inner + j] = from[done];                                               \
                }                                                                                  \
    } while (0)

/* Indices of the shape of the data, but for the axis; elements replace what was there. */
static status scatter_beside(const tensor *indices, const tensor *updates, int axis, tensor *out)
{
    const int64_t *index = indices->data;
    int64_t outer = cpu_dims_product(out->dims, 0, axis), n = out->dims[axis], done = 0;
    int64_t inner = cpu_dims_product(out->dims, axis + 1, out->rank), count = indices->dims[axis];
    size_t bytes = dtype_bytes(out->dtype);
    if (bytes == sizeof(uint8_t))
        SCATTER_PLACES(uint8_t);
    else if (bytes == sizeof(uint16_t))
        SCATTER_PLACES(uint16_t);
    else if (bytes == sizeof(uint32_t))
        SCATTER_PLACES(uint32_t);
    else
        SCATTER_PLACES(uint64_t);
    return STATUS_OK;
}

static bool is_beside(const tensor *out, const tensor *indices, int axis)
{
    bool is_same = indices->dtype == DTYPE_I64 && dtype_bytes(out->dtype) <= sizeof(uint64_t);
    for (int d = 0; d < out->rank; d++)
        is_same &= d == axis || out->dims[d] == indices->dims[d];
    return is_same;
}

static status run_scatter_elements(const cpu_call *c)
{
    const tensor *data = c->inputs[0], *indices = c->inputs[1], *updates = c->inputs[2];
    tensor *out = &c->outputs[0];
    scatter_reduction reduction = reduction_of(c->node);
    int axis = cpu_axis(graph_attribute_int(c->node, "axis", 0), data->rank);
    int64_t strides[TENSOR_RANK_MAX], at[TENSOR_RANK_MAX] = {0}, count = tensor_count(indices);
    if (tensor_count(data))
        memcpy(out->data, data->data, tensor_bytes(data));
    if (reduction == SCATTER_NONE && is_beside(out, indices, axis))
        return scatter_beside(indices, updates, axis, out);
    cpu_dense_strides(data->rank, data->dims, strides);
    for (int64_t i = 0; i < count; i++) {
        int64_t index = 0, to = 0;
        status s = cpu_index_at(indices, i, data->dims[axis], &index);
        if (s)
            return s;
        for (int d = 0; d < data->rank; d++)
            to += (d == axis ? index : at[d]) * strides[d];
        combine(reduction, out, to, updates, i, 1);
        for (int d = indices->rank - 1; d >= 0 && ++at[d] == indices->dims[d]; d--)
            at[d] = 0;
    }
    return STATUS_OK;
}

static status run_scatter_nd(const cpu_call *c)
{
    const tensor *data = c->inputs[0], *indices = c->inputs[1], *updates = c->inputs[2];
    tensor *out = &c->outputs[0];
    scatter_reduction reduction = reduction_of(c->node);
    int k = (int)indices->dims[indices->rank - 1];
    int64_t tuples = cpu_dims_product(indices->dims, 0, indices->rank - 1);
    int64_t strides[TENSOR_RANK_MAX], slice = cpu_dims_product(data->dims, k, data->rank);
    if (tensor_count(data))
        memcpy(out->data, data->data, tensor_bytes(data));
    cpu_dense_strides(data->rank, data->dims, strides);
    for (int64_t t = 0; t < tuples; t++) {
        int64_t to = 0;
        for (int d = 0; d < k; d++) {
            int64_t index = 0;
            status s = cpu_index_at(indices, t * k + d, data->dims[d], &index);
            if (s)
                return s;
            to += index * strides[d];
        }
        combine(reduction, out, to, updates, t * slice, slice);
    }
    return STATUS_OK;
}

static status run_one_hot(const cpu_call *c)
{
    const tensor *indices = c->inputs[0], *values = c->inputs[2];
    tensor *out = &c->outputs[0];
    int axis = cpu_axis(graph_attribute_int(c->node, "axis", -1), out->rank);
    int64_t depth = out->dims[axis], inner = cpu_dims_product(out->dims, axis + 1, out->rank);
    int64_t count = tensor_count(indices);
    size_t bytes = dtype_bytes(out->dtype);
    const char *off = values->data, *on = off + bytes;
    cpu_fill(bytes, off, out->data, tensor_count(out));
    for (int64_t i = 0; i < count; i++) {
        int64_t index = tensor_get_integer(indices, i);
        if (index < -depth || index >= depth) /* the specification: a row of off values */
            continue;
        index += index < 0 ? depth : 0;
        int64_t to = (i / inner * depth + index) * inner + i % inner;
        memcpy((char *)out->data + (size_t)to * bytes, on, bytes);
    }
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_SCATTER_ELEMENTS, prepare_scatter, run_scatter_elements, 0, false},
    {GRAPH_OP_SCATTER_ND, prepare_scatter, run_scatter_nd, 0, false},
    {GRAPH_OP_ONE_HOT, NULL, run_one_hot, 0, false},
};

const cpu_op_family cpu_ops_scatter = {table, sizeof table / sizeof table[0]};
